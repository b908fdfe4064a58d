"""Confidence sequences: intervals for a mean that may be looked at after every row, and acted upon.

An interval of level .95 covers at one look that was fixed before; looked at 60 times, it fails in a third of all runs
and more. A sequence covers at all looks at once with that probability, so its reader may stop when it says enough. Its
price is width, and that the range of rewards must be *declared*: the smallest and largest reward seen are no range.

`MeanSequence` is for the mean of rewards, or of weighted rewards w u with E w = 1, which is the value of a policy.
Weights need no bound: the lower end comes from w u, the upper one is 1 minus the lower one of w (1 - u).
`DifferenceSequence` is for the difference of two such means over the same rows.

Either end is a lower bound by betting. Scores X_1, X_2, ... >= 0 have mean mu in [0, 1] given what came before. Who
bets that the mean is above nu, at fair odds, cannot expect to gain if it is not (mu <= nu), so wealth that reaches
1/chance refutes nu: it ever does so wrongly with at most that chance (Ville). The lower bound is the largest nu that
is refuted. Nothing is asked of how large a score may be.

- `GammaExponential`: bets of all sizes at once, mixed by a gamma law (Howard et al. 2021; Waudby-Smith et al. 2024,
  where it bounds the value of a policy; the `cs` of vw-estimators). O(1) state, many means at once.
- `Betting`: one bet a row, sized by what the rows before it show, against every nu of a grid (Waudby-Smith and Ramdas
  2024). Narrower for few rows. O(grid) a row.
- `Hedge`: half of the money on each, the bettor stopping after 500 rows. The mean of two wealths is a wealth, so
  nothing is chosen by looking; it costs log 2.

If the mean given the past moves, `GammaExponential` bounds the running mean of these means; the others are for a mean
that stays. Which bets are made is settled by words before any row comes, never by looking at rows. State O(1); time
O(1) a row, and for a hedge O(256) in each of the first 500.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from armlet.errors import InvalidValueError
from armlet.inference.intervals import LEVEL
from armlet.inputs.columns import is_number
from armlet.inputs.settings import Range, check_range
from armlet.types import Float64, Interval

# ---- lower bounds

RHO: Final = 1.0
"""The gamma law of the sizes of bets: mass near 1 / sqrt(variance seen) when that is small."""
SWITCH: Final = 500
"""The bettor of a hedge bets on so many rows."""
GRID: Final[Float64] = np.sin(np.linspace(0.0, np.pi / 2, 258)[1:-1]) ** 2  # (256,): finest where means are near 0 or 1
BLOCK: Final = 256  # rows of a table of bets
DROP: Final = 36.0  # parts of an integral below exp(-36) of its peak are left out
NODES, WEIGHTS = np.polynomial.legendre.leggauss(96)


@dataclass(slots=True)
class BetSums:
    """What rows leave behind: how many, their total, and their squares about a guess made before each."""

    rows: int = 0
    total: Float64 = field(default_factory=lambda: np.zeros(()))
    squares: Float64 = field(default_factory=lambda: np.zeros(()))

    def add(self, X: Float64) -> Float64:
        """Add rows, (n, ...); return the squares before each of them."""
        totals, before = _running(self.total, X), np.arange(self.rows, self.rows + len(X))
        # a guess above 1 would break the inequality: X - guess must not fall below -1
        guesses = np.minimum((totals[:-1] + 0.5) / (before + 1.0).reshape(-1, *[1] * (X.ndim - 1)), 1.0)
        squares = _running(self.squares, (X - guesses) ** 2)
        self.rows, self.total, self.squares = self.rows + len(X), totals[-1], squares[-1]
        return squares[:-1]


def _running(start: Float64, steps: Float64) -> Float64:
    """Return start, start + step 1, ..., added one by one: the same bits however rows are cut into blocks."""
    first = np.broadcast_to(start, steps.shape[1:])[np.newaxis]
    return np.asarray(np.cumsum(np.concatenate([first, steps]), axis=0))


@dataclass(slots=True)
class GammaExponential:
    """Lower bounds on one mean, or on J of them at once.

    Examples
    --------
    >>> bets = GammaExponential(0.025)
    >>> bets.add(np.tile([0.0, 1.0], 500))
    >>> round(float(bets.bound()), 3)
    0.44
    """

    chance: float
    sums: BetSums = field(default_factory=BetSums)

    def add(self, X: Float64) -> None:
        """Add rows: (n,), or (n, J) for J means."""
        self.sums.add(X)

    def log_wealth(self, nu: npt.ArrayLike) -> Float64:
        """Return the log of the wealth against nu."""
        excess = self.sums.total - self.sums.rows * np.asarray(nu, dtype=np.float64)
        return mixed_wealth(excess, self.sums.squares)

    def bound(self) -> Float64:
        """Return the lower bound of each mean."""
        return self.bound_at(-math.log(self.chance))

    def bound_at(self, log_wealth: float) -> Float64:
        """Return the nu against which the log of the wealth is so large."""
        if self.sums.rows == 0:
            return np.zeros_like(self.sums.total)
        return self._below(mixed_margin(self.sums.squares, log_wealth))

    def bracket(self) -> tuple[Float64, Float64]:
        """Return what the bounds of J means lie between: margins grow with the squares, and are found for 33 of them.

        Examples
        --------
        >>> bets = GammaExponential(0.025)
        >>> bets.add(np.random.default_rng(1).random((500, 100)))
        >>> lowest, highest = bets.bracket()
        >>> bool((lowest <= bets.bound()).all() and (bets.bound() <= highest).all())
        True
        >>> bool((highest - lowest).max() < 2e-4)
        True
        """
        v = self.sums.squares
        steps = np.linspace(v.min(), v.max(), 33)
        margins = mixed_margin(steps, -math.log(self.chance))
        place = np.clip(np.searchsorted(steps, v), 1, len(steps) - 1)
        # Newton stops within 1e-12 of a margin
        return self._below(margins[place] * (1.0 + 1e-9)), self._below(margins[place - 1] * (1.0 - 1e-9))

    def of(self, which: npt.NDArray[np.bool_]) -> GammaExponential:
        """Return the bets on some of J means."""
        return GammaExponential(self.chance, BetSums(self.sums.rows, self.sums.total[which], self.sums.squares[which]))

    def _below(self, margin: Float64) -> Float64:
        return np.clip((self.sums.total - margin) / self.sums.rows, 0.0, 1.0)


def mixed_wealth(excess: npt.ArrayLike, squares: npt.ArrayLike) -> Float64:
    """Return the log of the integral of exp(l s - (-log(1 - l) - l) v) over l in [0, 1), by the gamma law.

    With a = v + rho and x = s + a that is a lower incomplete gamma function of (a, x) times simple terms; here in the
    logarithm of its variable, about the peak, where Gauss's rule has 11 digits for any a.

    Examples
    --------
    >>> round(float(mixed_wealth(20.0, 50.0)), 6)
    1.534304
    """
    return _mixed(np.asarray(excess, dtype=np.float64), np.asarray(squares, dtype=np.float64))[0]


def _mixed(s: Float64, v: Float64) -> tuple[Float64, Float64]:
    """Return the log of the mixed wealth, and its slope in s; far below s = 0 there is next to none, here none."""
    a = v + RHO
    inside = s > -np.minimum(0.9 * a, 8 * np.sqrt(a))
    s = np.where(inside, s, 0.0)
    last, q = np.log1p(s / a), np.sqrt(2 * DROP / a)
    right = np.minimum(q, last)
    left = np.minimum(right, 0.0) - (q + q * q / 2)  # all of it lies left of the peak if s < 0
    half = (right - left) / 2
    z = (left + right)[..., np.newaxis] / 2 + half[..., np.newaxis] * NODES
    area = half * (np.exp(a[..., np.newaxis] * (z - np.expm1(z))) @ WEIGHTS)
    log_wealth = CONSTANT + (s - a * last) + np.log(area)
    slope = s / (a + s) + np.exp(a * (last - np.expm1(last))) / (area * (a + s))
    return np.where(inside, log_wealth, -np.inf), slope


CONSTANT: Final = RHO * math.log(RHO) - math.log(-math.expm1(-RHO)) - RHO  # of the gamma law cut at 1, for rho = 1


def mixed_margin(squares: npt.ArrayLike, log_wealth: npt.ArrayLike) -> Float64:
    """Return the excess at which the mixed wealth is so large, to rounding, on the safe side.

    Examples
    --------
    >>> margin = mixed_margin(50.0, math.log(40))
    >>> round(float(margin), 3), round(math.exp(mixed_wealth(margin, 50.0)), 6)
    (26.841, 40.0)
    """
    v, goal = np.broadcast_arrays(np.asarray(squares, dtype=np.float64), np.asarray(log_wealth, dtype=np.float64))
    reach = goal + 2.0 + np.log1p(v)
    s = np.sqrt(2 * (v + RHO) * reach) + reach  # right of the root; the log of the wealth is convex in s, so Newton
    for _ in range(30):  # comes down to it without passing
        wealth, slope = _mixed(s, v)
        step = (wealth - goal) / slope
        s = s - step
        if bool(np.all(np.abs(step) <= 1e-12 * (1.0 + np.abs(s)))):
            break
    return np.asarray(s)


@dataclass(slots=True)
class Betting:
    """A lower bound from bets against every nu of a grid: the last of them that is refuted, for the next is not.

    Wealth falls as nu grows, row by row, so those refuted come first.

    Examples
    --------
    >>> bets = Betting(0.025)
    >>> bets.add(np.tile([0.0, 1.0], 50))
    >>> round(bets.bound(), 3)
    0.335
    """

    chance: float
    sums: BetSums = field(default_factory=BetSums)
    log_wealth: Float64 = field(default_factory=lambda: np.zeros(len(GRID)))

    def add(self, X: Float64) -> None:
        """Add rows, (n,)."""
        for start in range(0, len(X), BLOCK):
            self._add(X[start : start + BLOCK])

    def _add(self, X: Float64) -> None:
        t = np.arange(self.sums.rows + 1, self.sums.rows + len(X) + 1)
        variance = (0.25 + self.sums.add(X)) / t
        sizes = np.sqrt(-2 * math.log(self.chance) / (variance * t * np.log1p(t)))
        bets = np.minimum(sizes[:, np.newaxis], 0.5 / GRID)  # at most half of the wealth can be lost in a row
        self.log_wealth = _running(self.log_wealth, np.log1p(bets * (X[:, np.newaxis] - GRID)))[-1]

    def bound(self) -> float:
        """Return the last nu that is refuted, 0 if none is."""
        refuted = np.flatnonzero(self.log_wealth >= -math.log(self.chance))
        return float(GRID[refuted[-1]]) if refuted.size else 0.0


@dataclass(slots=True)
class Hedge:
    """A lower bound from half of the money on each of the two, chosen before any row.

    Examples
    --------
    >>> few, many = Hedge(0.025), Hedge(0.025)
    >>> few.add(np.tile([0.0, 1.0], 50))
    >>> many.add(np.tile([0.0, 1.0], 500))
    >>> round(few.bound(), 3), round(many.bound(), 3)
    (0.324, 0.437)
    """

    chance: float
    mixture: GammaExponential = field(init=False)
    bettor: Betting = field(init=False)

    def __post_init__(self) -> None:
        self.mixture, self.bettor = GammaExponential(self.chance), Betting(self.chance)

    def add(self, X: Float64) -> None:
        """Add rows, (n,)."""
        left = max(0, SWITCH - self.bettor.sums.rows)
        self.bettor.add(X[:left])  # after that its wealth is kept, which is a bet of 0
        self.mixture.add(X)

    def bound(self) -> float:
        """Return the largest nu that is refuted."""
        refuted, goal = self._refuted(), math.log(2 / self.chance)  # nu of the grid that are refuted come first
        low = float(GRID[refuted - 1]) if refuted else 0.0
        if refuted == len(GRID):
            return low
        # up to the next nu the bettor has at least what it has there; what is missing, the mixture must have
        missing = goal + math.log1p(-math.exp(float(self.bettor.log_wealth[refuted]) - goal))
        return max(low, float(self.mixture.bound_at(missing)))

    def _refuted(self) -> int:
        """Count the nu of the grid that are refuted, by halving: wealth falls as nu grows."""
        goal = math.log(2 / self.chance)

        def is_kept(place: int) -> bool:
            both = np.logaddexp(self.bettor.log_wealth[place], self.mixture.log_wealth(GRID[place]))
            return bool(both < goal)

        return bisect_left(range(len(GRID)), True, key=is_kept)


# ---- sequences

Kind: TypeAlias = Literal["auto", "gamma-exponential", "beta-binomial", "betting", "hedge"]
"""How bets are made. "auto" is "beta-binomial" for scores that are 0 or 1, and "hedge" for all others."""
Scores: TypeAlias = Literal["0 or 1", "within", "weighted"]
"""What is declared of rewards: the two ends of their range only, anything within it, or anything with weights."""

LOWER: Final = {"gamma-exponential": GammaExponential, "betting": Betting, "hedge": Hedge}


class TwoSided(Protocol):
    """Scores in [0, 1], with or without weights, and where their mean lies."""

    def add(self, u: Float64, w: Float64) -> None:
        """Add rows."""

    def interval(self) -> Interval:
        """Return both ends."""


class Mirrored:
    """Two lower bounds, each wrong with half of the chance: that of one kind of scores and that of its opposite."""

    def __init__(self, kind: Kind, chance: float) -> None:
        self.below, self.above = (LOWER[kind](chance / 2) for _ in range(2))

    def add(self, u: Float64, w: Float64) -> None:
        """Add rows: scores u with weights w."""
        self.add_pair(w * u, w * (1.0 - u))

    def add_pair(self, X: Float64, opposite: Float64) -> None:
        """Add rows: scores of the lower end, and of the upper one."""
        self.below.add(X)
        self.above.add(opposite)

    def interval(self) -> Interval:
        """Return both ends."""
        return Interval(float(self.below.bound()), 1.0 - float(self.above.bound()))


@dataclass(slots=True)
class BetaBinomial:
    """Bets on either side, mixed by the arc-sine law: for 0 and 1 the likelihood of all means next to that of one.

    Valid for any scores in [0, 1] whose mean stays, since no such score is spread wider than 0 and 1 with that mean.

    Examples
    --------
    >>> bets = BetaBinomial(0.05)
    >>> bets.add(np.tile([0.0, 1.0], 500), np.ones(1000))
    >>> print("[{:.3f}, {:.3f}]".format(*bets.interval()))
    [0.442, 0.558]
    """

    chance: float
    rows: int = 0
    total: float = 0.0

    def add(self, u: Float64, w: Float64) -> None:
        """Add rows; their weights are 1."""
        self.rows += len(w)
        self.total = float(np.cumsum(np.append(self.total, u))[-1])

    def log_wealth(self, p: float) -> float:
        """Return the log of the wealth against p, which lies between 0 and 1."""
        ones, zeros = self.total, self.rows - self.total
        mixed = math.lgamma(ones + 0.5) + math.lgamma(zeros + 0.5) - math.lgamma(self.rows + 1.0) - math.log(math.pi)
        return mixed - ones * math.log(p) - zeros * math.log1p(-p)

    def interval(self) -> Interval:
        """Return the last p refuted on either side."""
        if self.rows == 0:
            return Interval(0.0, 1.0)
        mean = self.total / self.rows
        return Interval(self._end(0.0, mean), self._end(1.0, mean))

    def _end(self, refuted: float, kept: float) -> float:
        if refuted == kept:
            return refuted
        while True:
            p = (refuted + kept) / 2
            if p in (refuted, kept) or abs(kept - refuted) < 1e-15:
                return refuted
            if self.log_wealth(p) >= -math.log(self.chance):
                refuted = p
            else:
                kept = p


class MeanSequence:
    """Where the mean of rewards lies, at any look.

    Parameters
    ----------
    reward_range
        (lowest, highest) reward there can be; rewards outside are refused.
    scores
        What is known beforehand: "0 or 1" if rewards are the two ends of the range and nothing between, "within" if
        they lie anywhere in it, "weighted" if they come with weights whose mean is 1 given the past.
    kind
        How bets are made. "auto" goes by `scores` alone, so that it is settled before the first row.
    level
        How often the interval covers at all looks, at least.

    Examples
    --------
    >>> clicks = MeanSequence((0.0, 1.0), scores="0 or 1")
    >>> for _ in range(20):
    ...     clicks.add([0.0, 0.0, 0.0, 1.0])
    >>> clicks.rows, "[{:.3f}, {:.3f}]".format(*clicks.interval())
    (80, '[0.117, 0.427]')
    >>> value = MeanSequence((0.0, 10.0))
    >>> value.add([4.0, 6.0] * 300, weights=[2.0, 0.0] * 300)
    >>> print("[{:.2f}, {:.2f}]".format(*value.interval()))
    [3.36, 4.95]
    """

    def __init__(
        self, reward_range: Range, *, scores: Scores = "weighted", kind: Kind = "auto", level: float = LEVEL
    ) -> None:
        check_range(reward_range)
        self.reward_range, self.scores, self.level = reward_range, scores, _check_level(level)
        self.kind: Kind = _settled(kind, scores)
        self.rows = 0
        chance = 1.0 - level
        self._bets: TwoSided = BetaBinomial(chance) if self.kind == "beta-binomial" else Mirrored(self.kind, chance)

    def add(self, rewards: npt.ArrayLike, *, weights: npt.ArrayLike | None = None) -> None:
        """Add rows, one or many, in the order in which they happened."""
        u = in_range(rewards, self.reward_range)
        if weights is not None and self.scores != "weighted":
            raise InvalidValueError(f"weights are given but scores is {self.scores!r}; declare scores='weighted'")
        self._bets.add(u, np.ones(len(u)) if weights is None else _weights(weights, len(u)))
        self.rows += len(u)

    def interval(self) -> Interval:
        """Return where the mean lies, in the units of rewards."""
        return _stretched(self._bets.interval(), *self.reward_range)


class DifferenceSequence:
    """Where the difference of two means over the same rows lies, at any look: first minus second.

    Each row has one reward u and two weights, those of two policies; the means are E w1 u and E w2 u.

    Parameters
    ----------
    reward_range
        (lowest, highest) reward there can be.
    largest_weight
        A bound that no weight passes, known beforehand: 1 over the smallest propensity. With it a row where both
        weights are alike adds nothing to the width. Without it (None) the weights themselves add to it:
        bets are then on w1 u + w2 (1 - u), which is never negative.
    kind, level
        As in `MeanSequence`; there is no "beta-binomial" here.

    Examples
    --------
    >>> gain = DifferenceSequence((0.0, 1.0), largest_weight=2.0)
    >>> gain.add([1.0, 0.0, 1.0, 1.0] * 200, [2.0, 0.0, 2.0, 0.0] * 200, [0.0, 2.0, 2.0, 0.0] * 200)
    >>> print("[{:.2f}, {:.2f}]".format(*gain.interval()))
    [0.42, 0.59]
    """

    def __init__(
        self, reward_range: Range, *, largest_weight: float | None = None, kind: Kind = "auto", level: float = LEVEL
    ) -> None:
        check_range(reward_range)
        if largest_weight is not None and not 1.0 <= largest_weight < math.inf:
            raise InvalidValueError(
                f"largest_weight is {largest_weight!r}; weights have mean 1, so give a bound of at least 1"
            )
        self.reward_range, self.largest_weight, self.level = reward_range, largest_weight, _check_level(level)
        self.kind: Kind = _settled(kind, "weighted")
        self.rows = 0
        self._total = 0.0  # of rewards, as shares of their range
        self._bets = Mirrored(self.kind, 1.0 - level)

    def add(self, rewards: npt.ArrayLike, first: npt.ArrayLike, second: npt.ArrayLike) -> None:
        """Add rows: rewards, and the weights of both policies."""
        u = in_range(rewards, self.reward_range)
        w1, w2 = _weights(first, len(u)), _weights(second, len(u))
        most = self.largest_weight
        if most is None:
            self._bets.add_pair((w1 * u + w2 * (1.0 - u)) / 2.0, (w2 * u + w1 * (1.0 - u)) / 2.0)
        else:
            top = float(max(w1.max(initial=0.0), w2.max(initial=0.0)))
            if top > most * (1.0 + 1e-9):
                raise InvalidValueError(f"largest_weight is {most!r} but a weight is {top!r}; declare a larger bound")
            D = (w1 - w2) * (u - self._middles(u))  # D + most >= 0, scaled so that its mean is at most 1
            self._bets.add_pair((most + D) / (most + 1.0), (most - D) / (most + 1.0))
        self.rows += len(u)

    def _middles(self, u: Float64) -> Float64:
        """Return the mean of earlier rewards, before each row: both weights have mean 1, so it may be taken off."""
        totals = np.cumsum(np.append(self._total, u))
        self._total = float(totals[-1])
        return np.asarray((totals[:-1] + 0.5) / np.arange(self.rows + 1, self.rows + len(u) + 1))

    def interval(self) -> Interval:
        """Return where the difference lies, in the units of rewards."""
        most = 1.0 if self.largest_weight is None else self.largest_weight
        low, high = self._bets.interval()
        size = self.reward_range[1] - self.reward_range[0]
        ends = ((most + 1.0) * low - most, most - (most + 1.0) * (1.0 - high))
        return Interval(size * max(-1.0, ends[0]), size * min(1.0, ends[1]))


class UnitSequence:
    """Where the mean of weighted rewards a row lies, at any look, where rows come in units that share a draw.

    A unit of m rows has one score, the sum of its w u, whose mean is m times what is looked for. In parts of the
    largest unit that there can be, scores never fall below 0 and guesses never pass 1, which is all that
    `GammaExponential` asks for; it bounds the mean over the rows of units so far.

    Parameters
    ----------
    reward_range
        (lowest, highest) reward there can be.
    largest
        The most rows that a unit can have, known beforehand.
    level
        How often the interval covers at all looks, at least.

    Examples
    --------
    >>> value = UnitSequence((0.0, 1.0), largest=4)
    >>> value.add(sizes=[4.0, 2.0] * 300, scores=[3.0, 0.0] * 300, opposite=[1.0, 2.0] * 300)
    >>> print("[{:.2f}, {:.2f}]".format(*value.interval()))
    [0.45, 0.55]
    """

    def __init__(self, reward_range: Range, *, largest: int, level: float = LEVEL) -> None:
        check_range(reward_range)
        if largest < 1:
            raise InvalidValueError(f"largest is {largest!r}; give the most rows that a unit can have, 1 or more")
        self.reward_range, self.largest, self.level = reward_range, largest, _check_level(level)
        self.units = 0
        self._size = 0.0
        self._total, self._squares = np.zeros(2), np.zeros(2)  # of scores, and of their opposites

    def add(self, sizes: npt.ArrayLike, scores: npt.ArrayLike, opposite: npt.ArrayLike) -> None:
        """Add units: their rows, and the sums of w u and of w (1 - u) over these."""
        size = np.asarray(sizes, dtype=np.float64) / self.largest
        X = np.column_stack([np.asarray(each, dtype=np.float64) for each in (scores, opposite)]) / self.largest
        if (size > 1.0).any():
            most = float(size.max()) * self.largest
            raise InvalidValueError(f"largest is {self.largest} but a unit has {most:g} rows; declare a larger bound")
        before, totals = np.cumsum(np.append(self._size, size)), _running(self._total, X)
        means = np.minimum((totals[:-1] + 0.5) / (before[:-1, np.newaxis] + 1.0), 1.0)
        self._squares = _running(self._squares, (X - size[:, np.newaxis] * means) ** 2)[-1]
        self._size, self._total, self.units = float(before[-1]), totals[-1], self.units + len(size)

    def interval(self) -> Interval:
        """Return where the mean lies, in the units of rewards."""
        if self._size == 0.0:
            return Interval(*self.reward_range)
        margin = mixed_margin(self._squares, -math.log((1.0 - self.level) / 2))
        low, opposite = np.clip((self._total - margin) / self._size, 0.0, 1.0).tolist()
        return _stretched(Interval(low, 1.0 - opposite), *self.reward_range)


def in_range(rewards: npt.ArrayLike, reward_range: Range) -> Float64:
    """Return rewards as shares of their range, (n,).

    Examples
    --------
    >>> in_range([1.0, 4.0], (0.0, 2.0))
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: a reward is 4.0 but reward_range is (0.0, 2.0); declare the range that ...
    """
    low, high = reward_range
    values = np.atleast_1d(np.asarray(rewards, dtype=np.float64))
    wrong = values[~((values >= low) & (values <= high))]
    if wrong.size:
        raise InvalidValueError(
            f"a reward is {float(wrong[0])!r} but reward_range is {reward_range!r}; "
            "declare the range that rewards can have"
        )
    return np.asarray((values - low) / (high - low))


def _weights(values: npt.ArrayLike, n: int) -> Float64:
    weights = np.atleast_1d(np.asarray(values, dtype=np.float64))
    if weights.shape != (n,):
        raise InvalidValueError(f"weights have shape {weights.shape} but there are {n} rewards; give one for each")
    if not (np.isfinite(weights) & (weights >= 0.0)).all():
        raise InvalidValueError("a weight is negative or not finite; weights are probabilities over propensities")
    return weights


def _check_level(level: float) -> float:
    if not (is_number(level) and 0.0 < level < 1.0):
        raise InvalidValueError(f"level is {level!r} but must lie between 0 and 1")
    return level


def _settled(kind: Kind, scores: Scores) -> Kind:
    if scores not in get_args(Scores):
        raise InvalidValueError(f"scores is {scores!r}; choose one of {', '.join(map(repr, get_args(Scores)))}")
    if kind not in get_args(Kind):
        raise InvalidValueError(f"kind is {kind!r}; choose one of {', '.join(map(repr, get_args(Kind)))}")
    if kind == "auto":
        return "beta-binomial" if scores == "0 or 1" else "hedge"
    if kind == "beta-binomial" and scores == "weighted":
        raise InvalidValueError("kind is 'beta-binomial' but scores are weighted; choose 'hedge' or leave kind out")
    return kind


def _stretched(interval: Interval, low: float, high: float) -> Interval:
    return Interval(low + (high - low) * interval.low, low + (high - low) * interval.high)
