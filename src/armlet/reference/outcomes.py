"""Mirrors kernel/state/outcomes/outcome_sums and weighing: estimates and residuals of several outcomes, in plain numpy.

All outcomes of an arm share A, so each has a right-hand side of its own and nothing else: theta(w) = sum_j w_j theta_j
for any weights w, and the squared residuals of the weighted sum are w' E w.
"""

from __future__ import annotations

import numpy as np

from armlet.inputs.settings import Ridge
from armlet.kernel import Statistics
from armlet.reference.linear import solve
from armlet.reference.units import FreeUnits
from armlet.types import Float64


class OutcomeRows:
    """The sums of each arm's outcomes, as the kernel keeps them."""

    def __init__(self, state: Statistics) -> None:
        arrays = state.copy().arrays()
        records: Float64 = np.asarray(arrays["outcomes"], dtype=np.float64)
        m = self.n = arrays["outcome_units"].size // 2
        self.origin, self.middle = np.split(np.asarray(arrays["outcome_units"], dtype=np.float64), 2)
        self.sums, packed, b = np.split(records, [m, m + m * (m + 1) // 2], axis=1)
        self.b: Float64 = b.reshape(len(records), m, -1)
        self.products = np.zeros((len(records), m, m))
        rows, columns = np.triu_indices(m)
        self.products[:, rows, columns] = self.products[:, columns, rows] = packed
        self.count, self.A = np.asarray(state.n), np.asarray(state.A)
        self.units: FreeUnits | None = None
        if "units" in arrays:
            self.units = FreeUnits(state.dim)
            _, self.units.origin, self.units.middle, self.units.spread = np.split(
                np.asarray(arrays["units"], dtype=np.float64), [1, 1 + len(self.A[0]), 1 + 2 * len(self.A[0])]
            )

    def system(self, arm: int, ridge: Ridge) -> tuple[Float64, Float64]:
        """Return V and the right-hand side of each outcome, (m, D), as they are solved."""
        if self.units is None:
            shift = ridge.shift(float(self.count[arm]))
            return self.A[arm] + shift * np.eye(len(self.A[arm])), self.b[arm].copy()
        sides = []
        for j in range(self.n):
            self.units.middle[0] = self.middle[j]
            A, side = self.units.system(self.A[arm], self.b[arm, j])
            sides.append(side)
        shift = ridge.shift(max(float(self.count[arm]), 1.0))
        A[0, 0] += 1.0 - shift  # the constant is penalised as by one row, whatever the ridge
        return A + shift * np.eye(len(A)), np.array(sides)


def outcome_estimates(state: Statistics, ridge: Ridge) -> Float64:
    """Return theta_hat of each outcome from all rows, (m, K, D)."""
    rows = OutcomeRows(state)
    out = np.zeros((rows.n, state.n_arms, rows.A.shape[1]))
    for arm in np.flatnonzero(rows.count > 0):
        V, sides = rows.system(int(arm), ridge)
        out[:, arm] = [solve(V, side) for side in sides]
    return out


def residual_products(state: Statistics, ridge: Ridge) -> Float64:
    """Return the sums of products of residuals, with what estimates are penalised for, (K, m, m)."""
    rows, theta = OutcomeRows(state), outcome_estimates(state, ridge)
    out = np.zeros((state.n_arms, rows.n, rows.n))
    for arm in range(state.n_arms):
        _, sides = rows.system(arm, ridge)
        r, s, n = rows.middle, rows.sums[arm], rows.count[arm]
        centred = rows.products[arm] - np.outer(r, s) - np.outer(s, r) + n * np.outer(r, r)
        out[arm] = centred - sides @ theta[:, arm].T
    return out
