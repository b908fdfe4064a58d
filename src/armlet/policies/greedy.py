"""Greedy: plays what looks best and never explores; see Bastani, Bayati and Khosravi (2021).

"Mostly Exploration-Free Algorithms for Contextual Bandits" shows that it is rate optimal for two arms where contexts
are so diverse that they explore by themselves. Elsewhere it can lock in on a wrong arm forever: a floor.
Decide O(K d); update O(d^2), solve O(d^3) for one arm; memory O(K d^2). Propensities are exact.
"""

from __future__ import annotations

from dataclasses import dataclass

from armlet.inputs.settings import RidgeLike, Units, origin_like, ridge_like, settle, units_word
from armlet.kernel import ConstantRate, Statistics
from armlet.policies.base import FadingPolicy, IndexPolicy
from armlet.policies.discounts import HalfLife, MayFade, settle_discount
from armlet.types import Float64


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Greedy(MayFade, IndexPolicy[Statistics], FadingPolicy):
    """Play argmax x' theta_hat_a with ridge regression on every step, ties drawn.

    Parameters
    ----------
    ridge
        "paper", "1/n" or a positive number, see `armlet.inputs.settings.Ridge`. It pulls an arm that was never played
        to the mean reward (to 0 in units as given), so that arm is tried only where the others look worse than that.
    units, origin
        "free" units, in which neither zero nor size of features and rewards matters, about an origin (l, o_1, ..., o_d)
        that is found if left out; or "as given". See `armlet.reference.units`.
    discount, half_life
        What a row counts less for each step since its decision, such as 0.999; or after how many steps it counts half,
        or after what time: `timedelta(days=7)`, for loops. Nothing fades if both are left out.

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
    discount: float | None = None
    half_life: HalfLife = None

    def __post_init__(self) -> None:
        settle_discount(self)
        settle(self, ridge=ridge_like, units=units_word, origin=origin_like)

    def rule(self) -> ConstantRate:
        return ConstantRate(None)

    def upper_bounds(self, state: Statistics, x: Float64) -> Float64:
        """Return the estimate of each arm, (K,)."""
        return state.scores(x)
