"""Epsilon-greedy with a constant epsilon: Sutton and Barto (1998), "Reinforcement Learning", with contexts.

Explores every step with the same probability, else plays what ridge regression on every step thinks best.
Decide O(K d); update O(d^2), solve O(d^3) for one arm; memory O(K d^2). Propensities are exact, from
epsilon / K up.

Theory: exploration never ends, so regret is linear, epsilon times the mean gap at least; it suits environments that
drift, and logs for off-policy evaluation. Any rewards, no horizon.
"""

from __future__ import annotations

from dataclasses import dataclass

from armlet.inputs.settings import RidgeLike, Units, number, origin_like, ridge_like, settle, units_word
from armlet.kernel import ConstantRate, Statistics
from armlet.policies.base import FadingPolicy
from armlet.policies.discounts import HalfLife, MayFade, settle_discount
from armlet.reference.choice import best_chances, mixed, play_or_explore
from armlet.types import Bool, Choice, Coins, Float64


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FixedEpsilon(MayFade, FadingPolicy):
    """Explore with probability epsilon, else play argmax x' theta_hat_a.

    Parameters
    ----------
    epsilon
        How often to explore: 0 is greedy, 1 is uniform.
    ridge
        "paper", "1/n" or a positive number; see `armlet.inputs.settings.Ridge`.
    units, origin
        "free" units, in which neither zero nor size of features and rewards matters, about an origin (l, o_1, ..., o_d)
        that is found if left out; or "as given". See `armlet.reference.units`.
    discount, half_life
        What a row counts less for each step since its decision, such as 0.999; or after how many steps it counts half,
        or after what time: `timedelta(days=7)`, for loops. Nothing fades if both are left out.

    Examples
    --------
    >>> import numpy as np
    >>> policy = FixedEpsilon(epsilon=0.1)
    >>> state = policy.init(2, 1)
    >>> for arm, reward in enumerate([0.1, 0.0]):
    ...     state.add(arm, np.array([1.0]), reward)
    >>> policy.probabilities(state, 2, np.array([1.0]), np.array([True, True]))
    array([0.95, 0.05])
    """

    epsilon: float = 0.1
    ridge: RidgeLike = 1.0
    units: Units = "free"
    origin: tuple[float, ...] | None = None
    discount: float | None = None
    half_life: HalfLife = None

    def __post_init__(self) -> None:
        settle_discount(self)
        settle(
            self,
            epsilon=number(0, 1, fix="give a probability from 0 to 1"),
            ridge=ridge_like,
            units=units_word,
            origin=origin_like,
        )

    def rule(self) -> ConstantRate:
        return ConstantRate(self.epsilon)

    def probabilities(self, state: Statistics, t: int, x: Float64, eligible: Bool) -> Float64:
        """Share epsilon among all alike, and the rest to the arms that look best."""
        state.as_of(t)
        return mixed(best_chances(state.scores(x), eligible), eligible, self.epsilon)

    def decide(self, state: Statistics, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        """Explore by the coin, or play the arm that looks best."""
        chances = self.probabilities(state, t, x, eligible)
        return play_or_explore(state.scores(x), eligible, coins, chances, self.epsilon)
