"""LinUCB with hybrid models: Li, Chu, Langford and Schapire (2010), Algorithm 2, with x itself as shared features.

The paper is "A Contextual-Bandit Approach to Personalized News Article Recommendation". Rewards are x'(beta + theta_a):
what arms have in common is learned from all of them, what is left from each alone. With z = x everything that the paper
keeps follows from each arm's own A_a and b_a. Let W_a = (ridge I + A_a)^-1 and M = (1 + K) I - sum_a ridge W_a, so that
the paper's A_0 is ridge M; then

    beta = M^-1 sum_a W_a b_a,   x'(beta + theta_a) = x'W_a b_a + ridge x'W_a beta,
    s_a = x'W_a x + ridge (W_a x)' M^-1 (W_a x).

Nothing is subtracted from running sums, so no error piles up as in the paper's update of A_0, rows can be taken back,
and M, between I and (1 + K) I, is always well conditioned.
The paper proves nothing for it; alpha is meant for rewards within [0, 1] and |x| <= 1.
Propensities are exact: 1, shared among ties.
Decide O(K d^2 + d^3), and O(d^3) for an arm that changed; update O(d^2); memory O(K d^2) regardless of t.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from armlet.inputs.settings import Ridge, chance, optional, positive, settle
from armlet.policies.base import IndexPolicy
from armlet.types import Float64
from armlet_lab.literature.derived import Derived, ridge_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridLinUCB(IndexPolicy[Derived]):
    """Play the highest upper confidence bound of a ridge regression whose arms share what they have in common.

    Parameters
    ----------
    delta
        The chance of failure that alpha is computed from.
    alpha
        What the width sqrt(s_a) is multiplied with; the paper's 1 + sqrt(log(2 / delta) / 2) if left out.
    ridge
        The ridge of beta and of every theta_a; 1 in the paper.

    Examples
    --------
    >>> policy = HybridLinUCB(alpha=0.5)
    >>> state = policy.init(2, 1)
    >>> state.add(0, np.array([1.0]), 1.5)
    >>> policy.estimates(state)  # arm 1 was never played, and learns what arms have in common
    array([[1. ],
           [0.5]])
    """

    delta: float = 0.05
    alpha: float | None = None
    ridge: float = 1.0

    def __post_init__(self) -> None:
        settle(self, delta=chance(), alpha=optional(positive()), ridge=positive())

    def init(self, n_arms: int, dim: int) -> Derived:
        """Start empty sums, with what the shared regression needs of each arm."""
        return Derived(n_arms, dim, Ridge.parse(self.ridge), self._rows)

    def width_factor(self) -> float:
        """Return alpha, what widths are multiplied with: the one that was set, or the paper's."""
        return 1 + math.sqrt(math.log(2 / self.delta) / 2) if self.alpha is None else self.alpha

    def estimates(self, state: Derived) -> Float64:
        """Return beta + theta_a of every arm, (K, d)."""
        own, F, M = self._solve(state)
        beta = np.linalg.solve(M, own.sum(0))
        return own + self.ridge * _pulled(F, F @ beta)

    def _rows(self, A: Float64, b: Float64) -> Float64:
        return ridge_rows(A, b, self.ridge)

    def _solve(self, state: Derived) -> tuple[Float64, Float64, Float64]:
        """Return W_a b_a, (K, d), F_a with F_a'F_a = W_a, (K, d, d), and M, (d, d)."""
        rows = state.derived()
        F = rows[:, 1:]
        stacked = F.reshape(-1, state.dim)  # its square is the sum of all W_a
        return rows[:, 0], F, (1 + state.n_arms) * np.eye(state.dim) - self.ridge * (stacked.T @ stacked)

    def bounds(self, state: Derived, x: Float64) -> tuple[Float64, Float64]:
        """Return the estimate and the width alpha sqrt(s_a) of every arm, (K,) each."""
        own, F, M = self._solve(state)
        z = F @ x
        y = _pulled(F, z)  # (K, d): W_a x
        solved = np.linalg.solve(M, np.vstack([own.sum(0), y]).T)  # beta, then M^-1 W_a x
        s = (z * z).sum(1) + self.ridge * (y * solved[:, 1:].T).sum(1)
        return own @ x + self.ridge * (y @ solved[:, 0]), self.width_factor() * np.sqrt(s)

    def upper_bounds(self, state: Derived, x: Float64) -> Float64:
        """Return the upper confidence bound of each arm, (K,)."""
        estimates, widths = self.bounds(state, x)
        return estimates + widths


def _pulled(F: Float64, z: Float64) -> Float64:
    """F_a'z_a of every arm, (K, d)."""
    return (z[:, None, :] @ F)[:, 0]
