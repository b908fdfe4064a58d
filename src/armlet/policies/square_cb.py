"""SquareCB: Foster and Rakhlin (2020), "Beyond UCB: Optimal and Efficient Contextual Bandits with Regression Oracles".

Turns the predictions of a regression, here ridge on every step, into probabilities: an arm that looks worse than the
best by a gap gets 1 / (K + gamma gap), and the best gets the rest. Abe and Long (1999), "Associative Reinforcement
Learning using Linear Probabilistic Concepts", had this inverse gap weighting first.
Decide O(K d); update O(d^2), solve O(d^3) for one arm; memory O(K d^2). Propensities are exact and never 0.

Theory: rewards in [0, 1] (others are taken, but gamma then means something else: it is per unit of reward), a known
horizon for the constant gamma, and a regression whose square loss has a known regret.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from armlet.core.checks import HUGE, number, optional, ridge_like, settle
from armlet.core.choosing import play_drawn
from armlet.core.kernel import Statistics
from armlet.core.policy import RidgePolicy
from armlet.core.ridge import RidgeLike
from armlet.core.types import Bool, Choice, Coins, Float64


def theory_gamma(*, n_arms: int, dim: int, horizon: int, delta: float = 0.05) -> float:
    """Give gamma = sqrt(K T / (R + log(2 / delta))) / 2, R the regret of the regression.

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
    """Give 1 / (K + gamma gap) to the arms below the best, and the rest to the best, shared by those that tie.

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
    among[best] = (1.0 - among[~best].sum()) / np.count_nonzero(best)
    chances = np.zeros(len(scores))
    chances[arms] = among
    return chances


@dataclass(frozen=True, slots=True, kw_only=True)
class SquareCB(RidgePolicy):
    """Play each arm with a probability that falls with its estimated gap.

    Parameters
    ----------
    gamma
        A constant, such as `theory_gamma`; None lets it grow. 0 is uniform play.
    gamma_scale
        If gamma is None, gamma_t = gamma_scale sqrt(t), for horizons that are not known. For rewards of about 1, try 3
        to 10; where it is too large, play locks in as greedy play does.
    ridge
        "paper", "1/n" or a positive number; see `armlet.core.ridge`.

    Examples
    --------
    >>> policy = SquareCB(gamma=8.0)
    >>> state = policy.init(2, 1)
    >>> state.add(0, np.array([1.0]), 2.0)
    >>> policy.probabilities(state, 2, np.array([1.0]), np.array([True, True]))
    array([0.9, 0.1])
    """

    gamma: float | None = None
    gamma_scale: float = 1.0
    ridge: RidgeLike = 1.0

    def __post_init__(self) -> None:
        settle(self, gamma=optional(number(0, HUGE)), gamma_scale=number(0, HUGE), ridge=ridge_like)

    def gamma_at(self, t: int) -> float:
        """Give gamma at step t: the one that was set, or one that grows with sqrt(t)."""
        return self.gamma_scale * math.sqrt(t) if self.gamma is None else self.gamma

    def probabilities(self, state: Statistics, t: int, x: Float64, eligible: Bool) -> Float64:
        """Weigh the arms by their inverse gaps."""
        return inverse_gap_chances(state.scores(x), eligible, self.gamma_at(t))

    def decide(self, state: Statistics, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        """Draw an arm; every step explores."""
        return play_drawn(self.probabilities(state, t, x, eligible), coins)
