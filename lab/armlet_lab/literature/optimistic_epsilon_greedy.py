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
It runs in Python: a step takes 0.1 ms at K = 6, d = 3, and 2 ms at 32 and 32.
Decide O(K d^2); update O(d^2); a solve is O(K d^3), at most 1 + log(n) / log(1 + growth) times for an arm with n rows
of weight 1; memory O(K d^2), three times that of Algorithm 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from armlet.errors import InvalidValueError, MergeError
from armlet.inputs.settings import (
    HUGE,
    TINY,
    Ridge,
    Units,
    number,
    one_of,
    optional,
    origin_like,
    positive,
    settle,
    units_word,
)
from armlet.kernel import Statistics
from armlet.policies.base import BasePolicy, record
from armlet.policies.state import fresh
from armlet.reference.choice import best_arms
from armlet.reference.evidence import Clock, ExploringLaw, alike, by_evidence, turn
from armlet.reference.linear import BEYOND_ANY, cholesky, ordered_scores
from armlet.reference.units import FreeUnits
from armlet.types import Array, Bool, Choice, Coins, Float64, Int64, Interaction, Shapes
from armlet_lab.literature.layers import Layers, layered_shapes

FITS_BELOW = 1.5  # rough widths fit an arm if, squared, they are less than this many times too large over its rows
NOT_A_SUM = (
    "what each arm was last solved for depends on the order of its rows, so two such states cannot be added, and have "
    "no difference"
)
SOLVED, ALL = 0, 1  # the layers of the state: the rows that estimates are from, and all rows


class SolvedRarely(Layers):
    """The rows that each arm was last solved for, with their rough widths, and all rows.

    Examples
    --------
    >>> state = SolvedRarely(1, 1, ridge=Ridge.parse(1.0))
    >>> state[ALL].add(0, np.array([1.0]), 2.0)
    >>> state.solve(0)
    >>> state[SOLVED].n, state.rough_widths(np.array([1.0]))  # 1 / sqrt(ridge + A)
    (array([1.]), array([0.70710678]))
    """

    def __init__(
        self, n_arms: int, dim: int, *, ridge: Ridge, units: Units = "as given", origin: tuple[float, ...] | None = None
    ) -> None:
        super().__init__(n_arms, dim, ridge=ridge, units=units, origin=origin)
        self._shift = ridge.value
        self._measure()

    def solve(self, arm: int, *, renew: bool = False) -> None:
        """Solve an arm for all of its rows; `renew` takes means and deviations of free units again, for all arms."""
        more, is_first = self[ALL].n[arm] - self[SOLVED].n[arm], not self[SOLVED].n.any()
        arrays, every = self[SOLVED].arrays(), self[ALL].arrays()
        arrays["records"][arm] = every["records"][arm]
        if self._units is not None:
            self._units.left -= more
            renew |= is_first or self._units.left <= 0.0
            arrays["units"] = every["units"] if renew else self._units.values()
        self[SOLVED].restore_arrays(arrays)
        if renew:
            self[SOLVED].renew()
        self._measure(None if renew else arm)

    def leaves(self, interaction: Interaction) -> bool:
        """Return whether a row lies so far outside of what a feature has been that units are to be taken again."""
        units, weight = self._units, interaction.weight
        if units is None or weight <= 0.0:
            return False
        return units.leaves(units.row(interaction.x), weight, float(self[SOLVED].n.sum()) + weight)

    def rough_widths(self, x: Float64) -> Float64:
        """Return sqrt(sum_j z_j^2 (V^-1)_jj) of each arm, (K,)."""
        z = self[SOLVED].standard(x[None])
        widths: Float64 = np.sqrt(ordered_scores(z * z, self._variances)[0])
        return widths

    def inflations(self) -> Float64:
        """Return how many times too large squared rough widths are on average, over the arm's rows; inf without any."""
        return self._inflations

    def _measure(self, arm: int | None = None) -> None:
        """Take units and rough widths from the sums, of one arm or of all."""
        solved = self[SOLVED]
        solved.noise()  # so that factors are there from the start, and memory stays what it is
        arrays, A, b = solved.arrays(), solved.A, solved.b
        self._units = FreeUnits.of(arrays["units"].astype(np.float64)) if "units" in arrays else None
        if arm is None:
            self._variances, self._inflations = np.zeros(b.shape), np.full(self.n_arms, np.inf)
        for each in range(self.n_arms) if arm is None else [arm]:
            M, extra = A[each], 0.0
            if self._units is not None:  # whose constant has a ridge of 1
                M, extra = self._units.system(M, b[each])[0], 1.0 - self._shift
                M[0, 0] += extra
            self._variances[each] = variances = inverse_diagonal(M + self._shift * np.eye(len(M)))
            # over the rows, x'V^-1 x adds up to d - ridge tr(V^-1), and its rough form to sum_j A_jj (V^-1)_jj
            own = len(M) - self._shift * _in_order(variances) - extra * variances[0]
            rough = _in_order(np.diag(M) * variances) - extra * variances[0]
            self._inflations[each] = rough / own if solved.n[each] > 0.0 and own > 0.0 else np.inf

    def restore_arrays(self, arrays: dict[str, Array]) -> None:
        """Restore what `arrays` returned."""
        super().restore_arrays(arrays)
        self._measure()

    def copy(self) -> Self:
        """Make another that shares nothing with this one."""
        twin = super().copy()
        twin._measure()
        return twin

    def add_arm(self) -> None:
        """Append an arm without rows."""
        super().add_arm()
        self._measure()

    def remove_arm(self, arm: int) -> None:
        """Drop an arm from both layers."""
        super().remove_arm(arm)
        self._measure()

    def merge(self, other: Self, into: list[int]) -> None:  # noqa: ARG002
        """Refuse: these do not add up."""
        raise MergeError(NOT_A_SUM)

    def subtract(self, earlier: Self, into: list[int]) -> None:  # noqa: ARG002
        """Refuse also."""
        raise MergeError(NOT_A_SUM)


def inverse_diagonal(M: Float64) -> Float64:
    """Return (M^-1)_jj = |L^-1 e_j|^2 for M = L L', (d,).

    Examples
    --------
    >>> inverse_diagonal(np.diag([4.0, 0.5]))
    array([0.25, 2.  ])
    """
    L, inverse = cholesky(M)
    Y, squares = np.eye(len(M)), np.zeros(len(M))
    for k in range(len(M)):
        Y[k] *= inverse[k]
        Y[k + 1 :] -= Y[k] * L[k + 1 :, k, None]
        squares += Y[k] * Y[k]
    return np.where(squares <= BEYOND_ANY, squares, BEYOND_ANY)  # for NaN too


def _in_order(values: Float64) -> float:
    total = 0.0
    for value in values.tolist():
        total += value
    return total


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimisticEpsilonGreedy(BasePolicy[SolvedRarely]):
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
        """Refuse a p below the number of arms, with which the first steps could not try them all."""
        if self.clock == "steps" and self.p is not None and t < self.p < n_arms:
            raise InvalidValueError(
                f"p is {self.p} but there are {n_arms} arms, so the first ceil(p) steps cannot try them all; "
                f"use p >= {n_arms}, or leave it out"
            )

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        """Return the shapes of the state's arrays."""
        return layered_shapes(n_arms, dim, self.units)

    def init(self, n_arms: int, dim: int) -> SolvedRarely:
        """Start two empty sets of sums: of rows solved for, and of all rows."""
        return SolvedRarely(n_arms, dim, ridge=Ridge.parse(self.ridge), units=self.units, origin=self.origin)

    def estimates(self, state: SolvedRarely) -> Float64:
        """Return theta_hat of every arm at its last solve, which is what decisions use, (K, d)."""
        return state[SOLVED].estimates()

    def fitted(self, state: SolvedRarely) -> Statistics:
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

    def _bounds(self, state: SolvedRarely, x: Float64, widths: Float64) -> Float64:
        bounds: Float64 = state[SOLVED].scores(x) + self.width_scale * state[SOLVED].noise() * widths
        return bounds

    def rough_bounds(self, state: SolvedRarely, x: Float64) -> Float64:
        """Return the bound of each arm by its rough width, (K,)."""
        return self._bounds(state, x, state.rough_widths(x))

    def upper_bounds(self, state: SolvedRarely, x: Float64) -> Float64:
        """Return the bound of each arm by its width, (K,)."""
        return self._bounds(state, x, state[SOLVED].widths(x))

    def leaders(self, state: SolvedRarely, x: Float64, arms: Int64) -> Int64:
        """Return those of `arms` that have the highest bound, none of them by a rough width that does not fit it."""
        bounds, exact = self.rough_bounds(state, x), self.upper_bounds(state, x)
        rough = state.inflations() >= FITS_BELOW
        while (waiting := (best := best_arms(bounds, arms))[rough[best]]).size:
            bounds[waiting[0]], rough[waiting[0]] = exact[waiting[0]], False
        return best

    def exploring(self, state: SolvedRarely, t: int, eligible: Bool) -> ExploringLaw:
        """Return whether step t explores, and with which arm, regardless of x."""
        if self.clock == "evidence":
            q = 1.0 if self.p is None else self.p / state.n_arms
            return by_evidence(state[ALL].n, eligible, t, q=q, floor=self.floor)
        arms, K = np.flatnonzero(eligible), state.n_arms
        return turn(arms, t) if self._warming_up(t, K) else alike(arms, self.exploration_rate(t, K))

    def probabilities(self, state: SolvedRarely, t: int, x: Float64, eligible: Bool) -> Float64:
        """Return the exact probability of each arm: exploration, plus the share of the arms in the lead."""
        law = self.exploring(state, t, eligible)
        return law.with_best(state.n_arms, lambda arms: self.leaders(state, x, arms))

    def decide(self, state: SolvedRarely, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        """Play step t: by turns, by the coin, or an arm in the lead, ties broken by the coins."""
        law = self.exploring(state, t, eligible)
        return law.decide(state.n_arms, lambda arms: self.leaders(state, x, arms), coins)

    def update(self, state: SolvedRarely, interaction: Interaction) -> None:
        """Record every step; the arm is solved for all of its rows once they are enough more."""
        arm = interaction.arm
        fresh(interaction, type(self).__name__)
        record(state[ALL], interaction)
        is_new = state.leaves(interaction)
        if is_new or state[ALL].n[arm] >= (1 + self.growth) * state[SOLVED].n[arm]:
            state.solve(arm, renew=is_new)
