"""Confidence sequences: intervals for a mean that may be looked at after every row, and acted upon.

An interval of level .95 covers at one look that was fixed before; looked at 60 times, it fails in a third of all runs
and more. A sequence covers at all looks at once with that probability, so its reader may stop when it says enough. Its
price is width, and that the range of rewards must be *declared*: the smallest and largest reward seen are no range.

`MeanSequence` is for the mean of rewards, or of weighted rewards w u with E w = 1, which is the value of a policy.
Weights need no bound: the lower end comes from w u, the upper one is 1 minus the lower one of w (1 - u).
`DifferenceSequence` is for the difference of two such means over the same rows.

Which bets are made is settled by words before any row comes (`wealth.py`), never by looking at rows. State O(1);
time O(1) a row, and for a hedge O(256) in each of the first 500.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from armlet.errors import InvalidValueError
from armlet.inference.betting import Betting, GammaExponential, Hedge
from armlet.inference.intervals import LEVEL, Interval
from armlet.inputs.settings import Range, check_range
from armlet.types import Float64

Kind: TypeAlias = Literal["auto", "gamma-exponential", "beta-binomial", "betting", "hedge"]
"""How bets are made. "auto" is "beta-binomial" for scores that are 0 or 1, and "hedge" for all others."""
Scores: TypeAlias = Literal["0 or 1", "within", "weighted"]
"""What is declared of rewards: the two ends of their range only, anything within it, or anything with weights."""

LOWER: Final = {"gamma-exponential": GammaExponential, "betting": Betting, "hedge": Hedge}


class TwoSided(Protocol):
    """Scores in [0, 1], with or without weights, and where their mean lies."""

    def add(self, u: Float64, w: Float64) -> None:
        """Take rows in."""

    def interval(self) -> Interval:
        """Give both ends."""


class Mirrored:
    """Two lower bounds, each wrong with half of the chance: that of one kind of scores and that of its opposite."""

    def __init__(self, kind: Kind, chance: float) -> None:
        self.below, self.above = (LOWER[kind](chance / 2) for _ in range(2))

    def add(self, u: Float64, w: Float64) -> None:
        """Take rows in: scores u with weights w."""
        self.add_pair(w * u, w * (1.0 - u))

    def add_pair(self, X: Float64, opposite: Float64) -> None:
        """Take rows in: scores of the lower end, and of the upper one."""
        self.below.add(X)
        self.above.add(opposite)

    def interval(self) -> Interval:
        """Give both ends."""
        return Interval(float(self.below.bound()), 1.0 - float(self.above.bound()))


@dataclass(slots=True)
class BetaBinomial:
    """Bets on either side, mixed by the arc-sine law: for 0 and 1 the likelihood of all means beside that of one.

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
        """Take rows in; their weights are 1."""
        self.rows += len(w)
        self.total = float(np.cumsum(np.append(self.total, u))[-1])

    def log_wealth(self, p: float) -> float:
        """Give the log of the wealth against p, which lies between 0 and 1."""
        ones, zeros = self.total, self.rows - self.total
        mixed = math.lgamma(ones + 0.5) + math.lgamma(zeros + 0.5) - math.lgamma(self.rows + 1.0) - math.log(math.pi)
        return mixed - ones * math.log(p) - zeros * math.log1p(-p)

    def interval(self) -> Interval:
        """Give the last p refuted on either side."""
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
        check_range(reward_range, "refuse")
        self.reward_range, self.scores, self.level = reward_range, scores, _check_level(level)
        self.kind: Kind = _settled(kind, scores)
        self.rows = 0
        chance = 1.0 - level
        self._bets: TwoSided = BetaBinomial(chance) if self.kind == "beta-binomial" else Mirrored(self.kind, chance)

    def add(self, rewards: npt.ArrayLike, *, weights: npt.ArrayLike | None = None) -> None:
        """Take rows in, one or many, in the order in which they happened."""
        u = in_range(rewards, self.reward_range)
        if weights is not None and self.scores != "weighted":
            raise InvalidValueError(f"weights are given but scores is {self.scores!r}; declare scores='weighted'")
        self._bets.add(u, np.ones(len(u)) if weights is None else _weights(weights, len(u)))
        self.rows += len(u)

    def interval(self) -> Interval:
        """Give where the mean lies, in the units of rewards."""
        return _stretched(self._bets.interval(), *self.reward_range)


class DifferenceSequence:
    """Where the difference of two means over the same rows lies, at any look: first minus second.

    Each row has one reward u and two weights, those of two policies; the means are E w1 u and E w2 u. `add_pairs` is
    for two rewards a row instead.

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
        check_range(reward_range, "refuse")
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
        """Take rows in: rewards, and the weights of both policies."""
        u = in_range(rewards, self.reward_range)
        w1, w2 = _weights(first, len(u)), _weights(second, len(u))
        most = self.largest_weight
        if most is None:
            self._bets.add_pair((w1 * u + w2 * (1.0 - u)) / 2.0, (w2 * u + w1 * (1.0 - u)) / 2.0)
        else:
            top = float(max(w1.max(initial=0.0), w2.max(initial=0.0)))
            if top > most * (1.0 + 1e-9):
                raise InvalidValueError(f"largest_weight is {most!r} but a weight is {top!r}; declare a larger bound")
            self._add_bounded((w1 - w2) * (u - self._middles(u)), most)
        self.rows += len(u)

    def _middles(self, u: Float64) -> Float64:
        """Give the mean of earlier rewards, before each row: both weights have mean 1, so it may be taken off."""
        totals = np.cumsum(np.append(self._total, u))
        self._total = float(totals[-1])
        return np.asarray((totals[:-1] + 0.5) / np.arange(self.rows + 1, self.rows + len(u) + 1))

    def add_pairs(self, first: npt.ArrayLike, second: npt.ArrayLike) -> None:
        """Take rows in: two rewards each, without weights."""
        u1, u2 = in_range(first, self.reward_range), in_range(second, self.reward_range)
        if len(u1) != len(u2):
            raise InvalidValueError(f"first has {len(u1)} rewards and second {len(u2)}; give pairs")
        self._add_bounded(u1 - u2, 1.0 if self.largest_weight is None else self.largest_weight)
        self.rows += len(u1)

    def _add_bounded(self, D: Float64, most: float) -> None:
        """Bet on D + most >= 0, scaled so that its mean is at most 1."""
        self._bets.add_pair((most + D) / (most + 1.0), (most - D) / (most + 1.0))

    def interval(self) -> Interval:
        """Give where the difference lies, in the units of rewards."""
        most = 1.0 if self.largest_weight is None else self.largest_weight
        low, high = self._bets.interval()
        size = self.reward_range[1] - self.reward_range[0]
        ends = ((most + 1.0) * low - most, most - (most + 1.0) * (1.0 - high))
        return Interval(size * max(-1.0, ends[0]), size * min(1.0, ends[1]))


def in_range(rewards: npt.ArrayLike, reward_range: Range) -> Float64:
    """Give rewards as shares of their range, (n,).

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


def _weights(given: npt.ArrayLike, n: int) -> Float64:
    weights = np.atleast_1d(np.asarray(given, dtype=np.float64))
    if weights.shape != (n,):
        raise InvalidValueError(f"weights have shape {weights.shape} but there are {n} rewards; give one for each")
    if not (np.isfinite(weights) & (weights >= 0.0)).all():
        raise InvalidValueError("a weight is negative or not finite; weights are probabilities over propensities")
    return weights


def _check_level(level: float) -> float:
    if not 0.0 < level < 1.0:
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
