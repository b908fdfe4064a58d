"""Optimistic epsilon-greedy: the exploration of Algorithm 1, and in between confidence bounds from all rows.

Not Algorithm 1: it learns from every step. Where it does not explore, it adds c sigma_hat times a width to each arm's
estimate and plays the highest sum. The width of an arm at x is sqrt(x' V^-1 x), V = ridge I + A, as in LinUCB, but it
is worked out only for arms in the lead. The rest have a rough one, sqrt(sum_j x_j^2 (V^-1)_jj), and so has an arm whose
own rows it fits on average. It may be off either way: too high where an arm's features go together, too low by at most
sqrt(d). An arm is solved again only when n has grown by a tenth. sigma_hat is estimated from residuals, so that rewards
may have any scale.
What is proved: only what the exploration proves by itself, that every arm keeps being tried in contexts of the world's
own law. Theorem 2 does not hold, since estimates rest on contexts that earlier estimates chose, and neither does the
analysis of LinUCB, whose widths are exact and whose estimates are fresh.
Propensities are exact. What an arm was last solved for depends on the order of its rows, so states do not merge and
rows cannot be taken back.
Decide O(K d), and O(d^2) for each arm in the lead that rough widths do not fit, mostly none to four; update O(d^2), of
eight rows at a time; a solve is O(d^3), at most 1 + log(n) / log(1 + growth) times for an arm with n rows of weight 1;
memory O(K d^2) regardless of t, three times that of Algorithm 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from armlet.errors import InvalidValueError
from armlet.inputs.settings import (
    HUGE,
    TINY,
    Ridge,
    Units,
    check_origin,
    number,
    one_of,
    optional,
    origin_like,
    positive,
    settle,
    units_word,
)
from armlet.kernel import FrozenStatistics, OptimisticGreedy, Statistics, sum_shapes
from armlet.policies.base import BasePolicy, record
from armlet.policies.state import fresh
from armlet.reference.choice import best_arms
from armlet.reference.evidence import Clock, Exploring, alike, by_evidence, turn
from armlet.types import Bool, Choice, Coins, Float64, Int64, Interaction, Shapes

FITS_BELOW = 1.5  # rough widths fit an arm if, squared, they are less than this many times too large over its rows
SOLVED, ALL = 0, 1  # the layers of the state: the rows that estimates are from, and all rows


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimisticEpsilonGreedy(BasePolicy[FrozenStatistics]):
    """Explore with probability p/t, else play the highest confidence bound, of estimates that are solved rarely.

    Parameters
    ----------
    p
        How much to explore: about p (1 + log(T / p)) of T decisions. At least the number of arms; if left out, the
        number of arms that there are.
    width_scale
        c, how many deviations of an estimate are added to it: more tries arms for longer.
    ridge
        The ridge, in units of squared features, or of standard ones.
    growth
        An arm is solved again when n exceeds that of its last solve by this share.
    clock
        "steps" explores step t with probability p/t, all eligible arms alike; "evidence" explores arms that have few
        rows of any steps, as `AllDataEpsilonGreedy` does: seldom, since most have enough from being played.
    floor
        By evidence: a share of all steps that explores forever, all eligible arms alike.
    units, origin
        "free" units, in which neither zero nor size of features and rewards matters, about an origin (l, o_1, ..., o_d)
        that is found if left out; or "as given". See `armlet.reference.units`.

    Examples
    --------
    >>> policy = OptimisticEpsilonGreedy(units="as given")
    >>> state = policy.init(n_arms=2, dim=1)
    >>> for t in range(1, 21):
    ...     policy.update(state, Interaction(t=t, x=np.array([1.0]), arm=0, reward=1.0))
    >>> state[ALL].n[0], state[SOLVED].n[0]  # solved at 17 and at 19, next at 21
    (np.float64(20.0), np.float64(19.0))
    >>> policy.rough_bounds(state, np.array([1.0])).round(2)
    array([0.99, 0.06])
    """

    p: float | None = None
    width_scale: float = 2.0
    ridge: float = 0.3
    growth: float = 0.1
    clock: Clock = "steps"
    floor: float = 0.0
    units: Units = "free"
    origin: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        settle(self, clock=one_of("steps", "evidence"), floor=number(0.0, 1.0))
        least = 1.0 if self.clock == "steps" else TINY
        settle(self, p=optional(number(least, HUGE)), width_scale=number(0.0, HUGE))
        settle(self, ridge=positive(), growth=positive())
        if self.clock == "steps" and self.floor != 0.0:
            raise InvalidValueError(f"floor is {self.floor}, but only clock='evidence' has one; leave it out")
        settle(self, units=units_word, origin=origin_like)

    def check(self, n_arms: int, dim: int, t: int) -> None:  # noqa: ARG002
        if self.clock == "steps" and self.p is not None and t < self.p < n_arms:
            raise InvalidValueError(
                f"p is {self.p} but there are {n_arms} arms, so the first ceil(p) steps cannot try them all; "
                f"use p >= {n_arms}, or leave it out"
            )

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        return sum_shapes(n_arms, dim, 2, units=self.units)

    def init(self, n_arms: int, dim: int) -> FrozenStatistics:
        """Start two empty sets of sums: of rows solved for, and of all rows."""
        ridge = Ridge.parse(self.ridge)
        origin = check_origin(self.origin, dim)
        return FrozenStatistics(n_arms, dim, ridge=ridge.kind, value=ridge.value, units=self.units, origin=origin)

    def rule(self) -> OptimisticGreedy:
        how = {"width_scale": self.width_scale, "growth": self.growth, "floor": self.floor}
        return OptimisticGreedy(p=self.p or 0.0, by_evidence=self.clock == "evidence", **how)

    def estimates(self, state: FrozenStatistics) -> Float64:
        """Return theta_hat of every arm at its last solve, which is what decisions use, (K, d)."""
        return state[SOLVED].estimates()

    def fitted(self, state: FrozenStatistics) -> Statistics:
        """Predict from the rows that arms were last solved for."""
        return state[SOLVED]

    def exploration_rate(self, t: int, n_arms: int) -> float:
        """Return the probability that step t explores by the clock.

        Examples
        --------
        >>> OptimisticEpsilonGreedy().exploration_rate(60, n_arms=6)
        0.1
        """
        return 1.0 if self._warming_up(t, n_arms) else (self.p or n_arms) / t

    def _warming_up(self, t: int, n_arms: int) -> bool:
        return t <= math.ceil(self.p or n_arms)

    def _bounds(self, state: FrozenStatistics, x: Float64, widths: Float64) -> Float64:
        bounds: Float64 = state[SOLVED].scores(x) + self.width_scale * state[SOLVED].noise() * widths
        return bounds

    def rough_bounds(self, state: FrozenStatistics, x: Float64) -> Float64:
        """Return the bound of each arm by its rough width, (K,)."""
        return self._bounds(state, x, state[SOLVED].rough_widths(x))

    def upper_bounds(self, state: FrozenStatistics, x: Float64) -> Float64:
        """Return the bound of each arm by its width, (K,)."""
        return self._bounds(state, x, state[SOLVED].widths(x))

    def leaders(self, state: FrozenStatistics, x: Float64, arms: Int64) -> Int64:
        """Return those of `arms` that have the highest bound, none of them by a rough width that does not fit it."""
        bounds, exact = self.rough_bounds(state, x), self.upper_bounds(state, x)
        rough = state[SOLVED].inflations() >= FITS_BELOW
        while (waiting := (best := best_arms(bounds, arms))[rough[best]]).size:
            bounds[waiting[0]], rough[waiting[0]] = exact[waiting[0]], False
        return best

    def exploring(self, state: FrozenStatistics, t: int, eligible: Bool) -> Exploring:
        """Return whether step t explores, and with which arm, regardless of x."""
        if self.clock == "evidence":
            q = 1.0 if self.p is None else self.p / state[ALL].n_active
            return by_evidence(state[ALL].n, eligible, t, q=q, floor=self.floor)
        arms, K = np.flatnonzero(eligible), state.n_arms
        return turn(arms, t) if self._warming_up(t, K) else alike(arms, self.exploration_rate(t, K))

    def probabilities(self, state: FrozenStatistics, t: int, x: Float64, eligible: Bool) -> Float64:
        """Return the exact probability of each arm: exploration, plus the share of the arms in the lead."""
        law = self.exploring(state, t, eligible)
        return law.with_best(state.n_arms, lambda arms: self.leaders(state, x, arms))

    def decide(self, state: FrozenStatistics, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        """Play step t: by turns, by the coin, or an arm in the lead, ties broken by the coins."""
        law = self.exploring(state, t, eligible)
        return law.decide(state.n_arms, lambda arms: self.leaders(state, x, arms), coins)

    def update(self, state: FrozenStatistics, interaction: Interaction) -> None:
        """Record every step; the arm is solved for all of its rows once they are enough more."""
        arm = interaction.arm
        fresh(interaction, type(self).__name__)
        record(state[ALL], interaction)
        is_new = state[SOLVED].leaves(interaction.x, interaction.weight)
        if is_new or state[ALL].n[arm] >= (1 + self.growth) * state[SOLVED].n[arm]:
            state[SOLVED].follow(arm, state[ALL])
        if is_new:
            state[SOLVED].renew()
