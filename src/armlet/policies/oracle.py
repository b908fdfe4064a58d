"""The oracle: plays the arm that is best in truth, the ceiling that regret is measured from (Section 3).

It is given theta, so it never explores. It keeps the sums all the same, but does not look at them.
Decide O(K d); update O(d^2); memory O(K d^2).
"""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from armlet.errors import InvalidValueError
from armlet.inputs.columns import LARGEST
from armlet.kernel import Statistics
from armlet.policies.base import SumsPolicy
from armlet.reference.choice import below, best_arms
from armlet.types import Bool, Choice, Coins, Float64


@dataclass(frozen=True, slots=True, kw_only=True)
class Oracle(SumsPolicy[Statistics]):
    """Know theta and play argmax x' theta_a, ties broken at random.

    Parameters
    ----------
    theta
        One row per arm. In units of reward: with `objective="min"` give minus the cost.

    Examples
    --------
    >>> oracle = Oracle(theta=[[0.0, 1.0], [1.0, 0.0]])
    >>> oracle.probabilities(oracle.init(2, 2), 1, np.array([1.0, 0.0]), np.array([True, True])).tolist()
    [0.0, 1.0]
    """

    theta: Sequence[Sequence[float]]

    def __post_init__(self) -> None:
        try:
            rows = np.array(self.theta, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidValueError(
                f"theta is {reprlib.repr(self.theta)}; give one row of finite numbers per arm"
            ) from error
        if rows.ndim != 2 or not (np.abs(rows) <= LARGEST).all():
            raise InvalidValueError(
                f"theta has shape {rows.shape}; give one row of finite numbers per arm, of at most {LARGEST:g} in size"
            )
        object.__setattr__(self, "theta", tuple(map(tuple, rows.tolist())))

    def check(self, n_arms: int, dim: int, t: int) -> None:  # noqa: ARG002
        """Refuse a problem of another shape."""
        shape = np.shape(self.theta)
        if shape != (n_arms, dim):
            raise InvalidValueError(f"theta has shape {shape} but there are {n_arms} arms of dim {dim}")

    def init(self, n_arms: int, dim: int) -> Statistics:
        """Start empty sums."""
        return Statistics(n_arms, dim)

    def estimates(self, state: Statistics) -> Float64:  # noqa: ARG002
        """Return theta itself."""
        return np.array(self.theta)

    def _best(self, x: Float64, eligible: Bool) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return best_arms(np.array(self.theta) @ x, np.flatnonzero(eligible))

    def probabilities(self, state: Statistics, t: int, x: Float64, eligible: Bool) -> Float64:  # noqa: ARG002
        """Share everything among the best arms."""
        best, chances = self._best(x, eligible), np.zeros(len(self.theta))
        chances[best] = 1.0 / len(best)
        return chances

    def decide(self, state: Statistics, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:  # noqa: ARG002
        """Play the best arm."""
        best = self._best(x, eligible)
        return Choice(int(best[below(coins.tie, len(best))]), 1.0 / len(best), False)
