"""Greedy: plays what looks best and never explores; see Bastani, Bayati and Khosravi (2021).

"Mostly Exploration-Free Algorithms for Contextual Bandits" shows that it is rate optimal for two arms where contexts
are so diverse that they explore by themselves. Elsewhere it can lock in on a wrong arm for ever: a floor.
Decide O(K d); update O(d^2), solve O(d^3) for one arm; memory O(K d^2). Propensities are exact.
"""

from __future__ import annotations

from dataclasses import dataclass

from armlet.inputs.settings import RidgeLike, Units, origin_like, ridge_like, settle, units_word
from armlet.kernel import ConstantRate, Statistics
from armlet.policies.base import RidgePolicy
from armlet.reference.choice import best_chances, play_best
from armlet.types import Bool, Choice, Coins, Float64


@dataclass(frozen=True, slots=True, kw_only=True)
class Greedy(RidgePolicy):
    """Play argmax x' theta_hat_a with ridge regression on every step, ties drawn.

    Parameters
    ----------
    ridge
        "paper", "1/n" or a positive number, see `armlet.inputs.settings.Ridge`. It pulls an arm that was never played
        to the mean reward (to 0 in units as given), so that arm is tried only where the others look worse than that.
    units
        "free": neither zero nor size of features and rewards matters, see `armlet.reference.units`; or "as given".
    origin
        In free units: about where rewards and features lie, l, o_1, ..., o_d, if they are far from zero and no row may
        be used to find out. Left out, it is zero, or beyond 1024 eight bits of the first row.

    Examples
    --------
    >>> import numpy as np
    >>> policy = Greedy()
    >>> state = policy.init(2, 1)
    >>> for arm, reward in enumerate([0.1, 0.0]):
    ...     state.add(arm, np.array([1.0]), reward)
    >>> policy.probabilities(state, 2, np.array([1.0]), np.array([True, True]))
    array([1., 0.])
    """

    ridge: RidgeLike = 1.0
    units: Units = "free"
    origin: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        settle(self, ridge=ridge_like, units=units_word, origin=origin_like)

    def rule(self) -> ConstantRate:
        """Play the best estimate."""
        return ConstantRate(None)

    def probabilities(self, state: Statistics, t: int, x: Float64, eligible: Bool) -> Float64:  # noqa: ARG002
        """Give 1 to the arm that looks best, shared by those that tie."""
        return best_chances(state.scores(x), eligible)

    def decide(self, state: Statistics, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:  # noqa: ARG002
        """Play the arm that looks best."""
        return play_best(state.scores(x), eligible, coins)
