"""Thompson sampling for linear rewards: Agrawal and Goyal (2013), with parameters of its own for each arm.

Plays the arm that would be best if theta_a were a draw from N(theta_hat_a, v^2 V_a^-1). One decision sees only
x' theta_a, which is normal, so a single standard normal for each arm is drawn: the same law at a fraction of the cost.
Decide O(K d^2), plus an integral over O(K) normals for its propensity; update O(d^2), refactoring O(d^3) for one arm;
memory O(K d^2) regardless of t.

What differs from the paper: it has one parameter of d values for all arms, and proves its bound for
v = R sqrt(9 d log(t / delta)) with that d, |x| <= 1 and |theta| <= 1. All arms' parameters side by side have K d
values. The v of the theory here takes the d of a single arm, so it is smaller by sqrt(K), and the bound is not proved
for it; width_scale = sqrt(K) gives the paper's. And the paper learns each reward before the next decision. Where
rewards are late, decisions under way count as rows to come, as they do for LinUCB: a posterior is
sqrt((n + 1) / (n + 1 + e)) as wide, e the rows that they stand for, and that of an arm of which nothing has come back
is lowered. So an arm whose rewards come late, or never, is tried but does not take over; propensities are those of what
is drawn, so they are exact.
With a discount it is D-LinTS (Kim and Tewari 2020, "Randomized Exploration for Non-Stationary Stochastic Linear
Bandits"), for disjoint arms: the posterior's covariance is v^2 V^-1 (A2 + ridge I) V^-1, as in `linucb.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from armlet.errors import InvalidValueError
from armlet.inputs.settings import (
    HUGE,
    NOISE_SCALE,
    Units,
    chance,
    number,
    optional,
    origin_like,
    positive,
    settle,
    units_word,
)
from armlet.kernel import Statistics, Thompson, normals, win_probabilities
from armlet.policies.base import WaitingPolicy
from armlet.policies.discounts import HalfLife, MayFade, settle_discount
from armlet.reference.choice import below, best_arms
from armlet.reference.elementary import log
from armlet.types import Bool, Choice, Coins, Float64

DELTA = 0.05


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ThompsonSampling(MayFade, WaitingPolicy):
    """Play argmax of x' theta_a for theta_a drawn from N(theta_hat_a, v^2 V_a^-1), with V_a = ridge I + A_a.

    Parameters
    ----------
    v
        How far to spread. In free units a multiple of the estimated noise of rewards, 1 if left out. In units as given
        itself, and if left out that of the theory, for the d of one arm: width_scale R sqrt(9 d log(t / delta)).
    noise_scale
        R of the theory, in units as given: the noise of a reward is R-sub-Gaussian.
    delta
        The probability with which the regret bound of the theory may fail.
    width_scale
        What the v of the theory is multiplied by.
    ridge
        The ridge, a positive number; 1 in the theory.
    units, origin
        "free" units, in which neither zero nor size of features and rewards matters, about an origin (l, o_1, ..., o_d)
        that is found if left out; or "as given". See `armlet.reference.units`.
    discount, half_life
        What a row counts less for each step since its decision, such as 0.999; or after how many steps it counts half,
        or after what time: `timedelta(days=7)`, for loops. Nothing fades if both are left out.

    Examples
    --------
    >>> policy = ThompsonSampling(v=0.5, units="as given")
    >>> state = policy.init(n_arms=3, dim=2)
    >>> state.add(2, np.array([1.0, 0.0]), 3.0)
    >>> policy.probabilities(state, 2, np.array([1.0, 0.0]), np.ones(3, dtype=bool)).round(3)
    array([0.007, 0.007, 0.986])
    """

    v: float | None = None
    noise_scale: float = NOISE_SCALE
    delta: float = DELTA
    width_scale: float = 1.0
    ridge: float = 1.0
    units: Units = "free"
    origin: tuple[float, ...] | None = None
    discount: float | None = None
    half_life: HalfLife = None

    weighted_widths: ClassVar[bool] = True

    def __post_init__(self) -> None:
        settle_discount(self)
        size = number(0.0, HUGE)
        settle(
            self,
            v=optional(size),
            noise_scale=size,
            width_scale=size,
            delta=chance(),
            ridge=positive(),
            units=units_word,
            origin=origin_like,
        )
        theory = {"noise_scale": NOISE_SCALE, "delta": DELTA, "width_scale": 1.0}
        set_anyway = [name for name, usual in theory.items() if getattr(self, name) != usual]
        if self.units == "free" and set_anyway:
            name = set_anyway[0]
            raise InvalidValueError(
                f"{name} is {getattr(self, name)}, of the theory in units as given; set v, or units='as given'"
            )

    def rule(self) -> Thompson:
        if self.units == "free":
            return Thompson.constant(1.0 if self.v is None else self.v, by_noise=True)
        if self.v is not None:
            return Thompson.constant(self.v)
        return Thompson.theory(noise_scale=self.noise_scale, delta=self.delta, scale=self.width_scale)

    def spread(self, dim: int, t: int) -> float:
        """Return v at step t, in free units as a multiple of the noise."""
        if self.units == "free":
            return 1.0 if self.v is None else float(self.v)
        if self.v is not None:
            return float(self.v)
        return self.noise_scale * math.sqrt(9.0 * dim * log(t / self.delta)) * self.width_scale

    def deviations(self, state: Statistics, t: int, x: Float64) -> Float64:
        """Return the standard deviation of what is drawn for each arm, (K,)."""
        spread = self.spread(state.dim, t)
        return (spread * state.typical_noise() if self.units == "free" else spread) * self.widths(state, x)

    def probabilities(self, state: Statistics, t: int, x: Float64, eligible: Bool) -> Float64:
        """Return the probability that each arm's sample is the highest."""
        state.as_of(t)
        arms, chances = np.flatnonzero(eligible), np.zeros(state.n_arms)
        means, deviations = self.means(state, x, arms), self.deviations(state, t, x)
        chances[arms] = win_probabilities(means[arms], deviations[arms])
        return chances

    def decide(self, state: Statistics, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        """Play the arm with the highest sample; ties, which need contexts of zero, are broken by the coins."""
        state.as_of(t)
        z, arms = normals(coins.pick, coins.tie, state.n_arms), np.flatnonzero(eligible)
        samples = self.means(state, x, arms) + self.deviations(state, t, x) * z
        best = best_arms(samples, arms)
        arm = int(best[below(coins.tie, len(best))])
        return Choice(arm, float(self.probabilities(state, t, x, eligible)[arm]), False)
