"""LinUCB with disjoint arms: Li, Chu, Langford and Schapire (2010), Algorithm 1 there.

Each arm has its own ridge regression on all steps at which it was played; the arm with the highest upper confidence
bound plays. No regret bound is known for this form: the staged SupLinUCB has one.
What differs from the paper, which learns each reward before the next decision: decisions whose rewards have not come
back count as rows to come. Of an arm with n rows, widths are sqrt((n + 1) / (n + 1 + e)) of what they were, e the rows
that its decisions under way stand for. An arm of which nothing has come back (n = 0) has no estimate: it is put
sigma e / (e + 1) below the mean of all rewards, or below the others' best estimate where that is lower, sigma the noise
of rewards; and e counts from five on, so that it is not given up because a few rewards were lost. So an arm whose
rewards come late, or never, is tried but does not take over. With prompt rewards nothing is under way when an arm is
chosen, and all is as in the paper.
With a discount it is D-LinUCB (Russac, Vernade and Cappé 2019, "Weighted Linear Bandits for Non-Stationary
Environments"), for disjoint arms: with w_s = discount^(t - s), A = sum w_s x x', A2 = sum w_s^2 x x' and in both the
same ridge, which does not fade, the width is sqrt(x' V^-1 (A2 + ridge I) V^-1 x). What differs from the paper: how far
sums have faded against the ridge is looked at 64 times in a half-life, 1.1 % more each time, so that in between arms
are solved only for their new rows; and alpha is a constant times the noise, not the radius of the theorem.
Decide O(K d^2); update O(d^2), refactoring O(d^3) for one arm; memory O(K d^2) regardless of t.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from armlet.inputs.settings import HUGE, Units, chance, number, optional, origin_like, positive, settle, units_word
from armlet.kernel import Optimism, Statistics
from armlet.policies.base import WaitingPolicy
from armlet.policies.discounts import HalfLife, MayFade, settle_discount
from armlet.reference.choice import best_chances, play_best
from armlet.reference.elementary import log
from armlet.types import Bool, Choice, Coins, Float64, Int64


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LinUCB(MayFade, WaitingPolicy):
    """Play argmax of x' theta_hat_a + alpha sqrt(x' V_a^-1 x), with V_a = ridge I + A_a.

    Parameters
    ----------
    alpha
        How optimistic to be, in free units as a multiple of the estimated noise of rewards. Left out it is
        1 + sqrt(log(2 / delta) / 2), as printed.
    delta
        The probability with which a single bound may fail, from which alpha follows if it is left out.
    ridge
        The ridge, a positive number.
    units, origin
        "free" units, in which neither zero nor size of features and rewards matters, about an origin (l, o_1, ..., o_d)
        that is found if left out; or "as given". See `armlet.reference.units`.
    discount, half_life
        What a row counts less for each step since its decision, such as 0.999; or after how many steps it counts half,
        or after what time: `timedelta(days=7)`, for loops. Nothing fades if both are left out. See
        `docs/how-to/drift.md`.

    Examples
    --------
    >>> import numpy as np
    >>> round(LinUCB().width_factor, 4)
    2.3581
    >>> policy = LinUCB(alpha=0.5, units="as given")
    >>> state = policy.init(n_arms=2, dim=1)
    >>> state.add(0, np.array([1.0]), 1.0)
    >>> policy.upper_bounds(state, np.array([1.0])).round(3)  # 1/2 + alpha / sqrt(2), and 0 + alpha
    array([0.854, 0.5  ])
    """

    alpha: float | None = None
    delta: float = 0.05
    ridge: float = 1.0
    units: Units = "free"
    origin: tuple[float, ...] | None = None
    discount: float | None = None
    half_life: HalfLife = None

    weighted_widths: ClassVar[bool] = True

    def __post_init__(self) -> None:
        settle_discount(self)
        settle(
            self,
            alpha=optional(number(0.0, HUGE)),
            delta=chance(),
            ridge=positive(),
            units=units_word,
            origin=origin_like,
        )

    @property
    def width_factor(self) -> float:
        """The alpha in use."""
        return 1.0 + math.sqrt(log(2.0 / self.delta) / 2.0) if self.alpha is None else float(self.alpha)

    def rule(self) -> Optimism:
        return Optimism.constant(self.width_factor, by_noise=self.units == "free")

    def upper_bounds(self, state: Statistics, x: Float64, arms: Int64 | None = None) -> Float64:
        """Return what each arm may pay at best, (K,).

        Parameters
        ----------
        state, x
            What is known, and the context.
        arms
            Those that may be played, which an arm without any reward yet is compared with; all if left out.
        """
        arms = np.arange(state.n_arms) if arms is None else arms
        factor = self.width_factor * state.typical_noise() if self.units == "free" else self.width_factor
        bounds: Float64 = self.means(state, x, arms) + factor * self.widths(state, x)
        return bounds

    def probabilities(self, state: Statistics, t: int, x: Float64, eligible: Bool) -> Float64:
        """Share all probability among the arms with the highest bound."""
        state.as_of(t)
        return best_chances(self.upper_bounds(state, x, np.flatnonzero(eligible)), eligible)

    def decide(self, state: Statistics, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        """Play the arm with the highest bound, ties broken by the coins."""
        state.as_of(t)
        return play_best(self.upper_bounds(state, x, np.flatnonzero(eligible)), eligible, coins)
