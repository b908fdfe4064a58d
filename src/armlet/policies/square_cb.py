"""SquareCB: Foster and Rakhlin (2020), "Beyond UCB: Optimal and Efficient Contextual Bandits with Regression Oracles".

Turns the predictions of a regression, here ridge on every step, into probabilities: an arm that looks worse than the
best by a gap gets 1 / (K + gamma gap), and the best gets the rest. Abe and Long (1999), "Associative Reinforcement
Learning using Linear Probabilistic Concepts", had this inverse gap weighting first.
Decide O(K d); update O(d^2), solve O(d^3) for one arm; memory O(K d^2). Propensities are exact; none is 0,
unless rewards have no noise.

Theory: rewards in [0, 1], units as given, a known horizon for the constant gamma, and a regression whose square loss
has a known regret. In free units gaps are counted in deviations of the noise of rewards, which is estimated, and gamma
grows by sqrt(t) times a constant that was tried, not derived: `benchmarks/defaults.py` has the trials.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from armlet.errors import InvalidValueError
from armlet.inputs.settings import HUGE, RidgeLike, Units, number, optional, origin_like, ridge_like, settle, units_word
from armlet.kernel import InverseGaps, Statistics
from armlet.policies.base import FadingPolicy
from armlet.policies.discounts import HalfLife, MayFade, fading, settle_discount
from armlet.reference.choice import best_chances, play_drawn
from armlet.types import Bool, Choice, Coins, Float64

GROWTH = 16.0
"""What sqrt(t) is multiplied by in free units, if nothing is set: the best of four on problems that judged nothing."""


def theory_gamma(*, n_arms: int, dim: int, horizon: int, delta: float = 0.05) -> float:
    """Return gamma = sqrt(K T / (R + log(2 / delta))) / 2, R the regret of the regression.

    For R we take K d log(1 + T / d), which bounds ridge regression on K blocks of d values for contexts no longer
    than 1 and rewards in [0, 1], up to a constant.

    Examples
    --------
    >>> round(theory_gamma(n_arms=6, dim=3, horizon=2000), 1)
    5.0
    """
    regression = n_arms * dim * math.log(1 + horizon / dim)
    return 0.5 * math.sqrt(n_arms * horizon / (regression + math.log(2 / delta)))


def inverse_gap_chances(scores: Float64, eligible: Bool, gamma: float) -> Float64:
    """Assign 1 / (K + gamma gap) to the arms below the best, and the rest to the best, shared by those that tie.

    Examples
    --------
    >>> inverse_gap_chances(np.array([1.0, 0.0, 0.5]), np.array([True, True, True]), 2.0)
    array([0.55, 0.2 , 0.25])
    """
    arms = np.flatnonzero(eligible)
    gaps = scores[arms].max() - scores[arms]
    best = gaps == 0.0
    among = 1.0 / (len(arms) + gamma * gaps)
    # a drawn one of m tied arms would get the rest and the others 1/K each: on average an equal share
    others = np.cumsum(np.where(best, 0.0, among))[-1]  # from left to right, as the kernel adds
    among[best] = (1.0 - others) / np.count_nonzero(best)
    chances = np.zeros(len(scores))
    chances[arms] = among
    return chances


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SquareCB(MayFade, FadingPolicy):
    """Play each arm with a probability that falls with its estimated gap.

    Parameters
    ----------
    gamma
        A constant; None lets it grow. 0 is uniform play. In units as given it is per unit of reward, such as
        `theory_gamma`; in free units per deviation of the noise of rewards, which is estimated.
    gamma_scale
        If gamma is None, gamma_t = gamma_scale sqrt(t), for horizons that are not known. Left out it is 16 in free
        units, and 1 in units as given: there try 3 to 10 over the noise. Where it is too large, play locks in as greedy
        play does.
    ridge
        A positive number; in units as given also "paper" or "1/n", see `armlet.inputs.settings.Ridge`.
    units, origin
        "free" units, in which neither zero nor size of features and rewards matters, about an origin (l, o_1, ..., o_d)
        that is found if left out; or "as given". See `armlet.reference.units`.
    discount, half_life
        What a row counts less for each step since its decision, such as 0.999; or after how many steps it counts half,
        or after what time: `timedelta(days=7)`, for loops. Only with a constant gamma: one that grows would explore
        ever less, while gaps are known no better. Nothing is discounted if both are left out.

    Examples
    --------
    >>> policy = SquareCB(gamma=8.0, units="as given")
    >>> state = policy.init(2, 1)
    >>> state.add(0, np.array([1.0]), 2.0)
    >>> policy.probabilities(state, 2, np.array([1.0]), np.array([True, True]))
    array([0.9, 0.1])
    >>> SquareCB().gamma_at(100)  # an arm 0.1 deviations of the noise behind gets 1 / (K + 16)
    160.0
    """

    gamma: float | None = None
    gamma_scale: float | None = None
    ridge: RidgeLike = 1.0
    units: Units = "free"
    origin: tuple[float, ...] | None = None
    discount: float | None = None
    half_life: HalfLife = None

    def __post_init__(self) -> None:
        settle_discount(self)
        size = optional(number(0, HUGE))
        settle(self, gamma=size, gamma_scale=size, ridge=ridge_like, units=units_word, origin=origin_like)
        if self.units == "free" and isinstance(self.ridge, str):
            fix = "give a number, or units='as given'"
            raise InvalidValueError(f"ridge is {self.ridge!r}, but noise is estimated with a constant one; {fix}")
        if fading(self) and self.gamma is None:
            raise InvalidValueError(
                "gamma is None, so it grows, but discounted rows know gaps no better with time; give gamma, such as 100"
            )

    def gamma_at(self, t: int) -> float:
        """Return gamma at step t: the one that was set, or one that grows with sqrt(t)."""
        return self.gamma if self.gamma is not None else self._growth * math.sqrt(t)

    @property
    def _growth(self) -> float:
        usual = GROWTH if self.units == "free" else 1.0
        return usual if self.gamma_scale is None else self.gamma_scale

    def rule(self) -> InverseGaps:
        """Draw by inverse gaps, in free units over the noise."""
        grows = self.gamma is None
        size = self._growth if self.gamma is None else self.gamma
        return InverseGaps(gamma=size, grows=grows, by_noise=self.units == "free")

    def probabilities(self, state: Statistics, t: int, x: Float64, eligible: Bool) -> Float64:
        """Weigh the arms by their inverse gaps."""
        state.as_of(t)
        scores, gamma = state.scores(x), self.gamma_at(t)
        if self.units == "as given":
            return inverse_gap_chances(scores, eligible, gamma)
        noise = state.typical_noise()
        if gamma > 0.0 and gamma / HUGE >= noise:  # no noise to speak of: what looks best is
            return best_chances(scores, eligible)
        return inverse_gap_chances(scores, eligible, gamma / noise if gamma > 0.0 else 0.0)

    def decide(self, state: Statistics, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        """Draw an arm; every step explores."""
        return play_drawn(self.probabilities(state, t, x, eligible), coins)
