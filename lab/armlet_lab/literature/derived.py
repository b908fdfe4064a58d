"""Sums of rows, and something that is computed from each arm's A and b and kept until these change.

Policies with confidence sets need an inverse, a root or eigenvalues of every A at every step, but one arm changes at a
time. What is kept is a function of A and b alone: a state that was saved, copied or replayed has the same, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from armlet.inputs.settings import Ridge
from armlet.kernel import Statistics
from armlet.types import Float64


class Derived(Statistics):
    """Statistics that remember what was computed from A and b.

    Parameters
    ----------
    n_arms, dim
        K and d.
    ridge
        Of the estimates.
    of
        From A, (m, d, d), and b, (m, d), of some arms to what is wanted of them, (m, ...).

    Examples
    --------
    >>> state = Derived(2, 1, Ridge.parse(1.0), lambda A, b: b[:, 0] / (1 + A[:, 0, 0]))
    >>> state.add(1, np.array([1.0]), 5.0)
    >>> state.derived()
    array([0. , 2.5])
    """

    def __init__(self, n_arms: int, dim: int, ridge: Ridge, of: Callable[[Float64, Float64], Float64]) -> None:
        super().__init__(n_arms, dim, ridge=ridge.kind, value=ridge.value)
        self._ridge, self._of = ridge, of
        self._seen = self.versions  # (K,): stamps of the arms when they were last looked at
        self._kept = of(self.A, self.b)

    @property
    def nbytes(self) -> int:
        """Bytes of the sums and of what is kept."""
        return super().nbytes + self.derived().nbytes + self._seen.nbytes

    def derived(self) -> Float64:
        """Return what is wanted of every arm, (K, ...), computed where its sums changed."""
        versions = self.versions
        if len(versions) != len(self._seen):  # arms came or went
            self._kept = self._of(self.A, self.b)
        else:
            changed = np.flatnonzero(versions != self._seen)
            if changed.size:
                self._kept[changed] = self._of(self.A[changed], self.b[changed])
        self._seen = versions
        return self._kept

    def copy(self) -> Derived:
        """Make another that goes its own way."""
        twin = Derived(self.n_arms, self.dim, self._ridge, self._of)
        twin.restore_arrays(self.arrays())
        return twin


def ridge_rows(A: Float64, b: Float64, ridge: float) -> Float64:
    """Stack theta_hat = V^-1 b, V = ridge I + A, on F with F'F = V^-1: (..., 1 + d, d).

    Examples
    --------
    >>> ridge_rows(np.diag([0.0, 3.0]), np.array([2.0, 4.0]), ridge=1.0)
    array([[2. , 1. ],
           [1. , 0. ],
           [0. , 0.5]])
    """
    values, U = np.linalg.eigh(A)
    # rows that were taken back can leave an eigenvalue just below zero
    F = U.swapaxes(-1, -2) / np.sqrt(np.maximum(values, 0.0) + ridge)[..., None]
    return np.concatenate([estimate_row(F, b), F], axis=-2)


def estimate_row(F: Float64, b: Float64) -> Float64:
    """Return F'F b as a row, (..., 1, d)."""
    return (F @ b[..., None]).swapaxes(-1, -2) @ F
