"""Estimators and the intervals of their values. An estimator is one class here and one line of `ESTIMATORS`.

An estimator is read off the Gram matrix of a target's row features (named in `armlet.reference.evaluate`): a value,
and the influence of a row on it, linear in the row's features. Here w = pi/e is the weight of a row, D what the reward
model predicts for the target, q what it predicts for the arm played, both without the row itself, and
psi = D + w (r - q); v = pi/c and x = 1 on explored rows, where c is the probability of the arm given exploring.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from armlet.errors import ArgumentError, CheckedSettings
from armlet.inference.intervals import t_quantile
from armlet.inputs.settings import Range
from armlet.reference.evaluate import PLACE, Parts
from armlet.types import Float64, Interval


@dataclass(frozen=True, slots=True)
class Estimated:
    """A value, what each feature of a row adds to its error, and how many rows of equal weight would tell as much."""

    value: float
    influence: Float64 | None  # (13,): None if there is no honest error
    ess: float
    rows: float  # that say anything

    def variance(self, own: Float64) -> float:
        """Return the square of its standard error."""
        if self.influence is None or self.rows < 2:
            return math.nan
        return max(0.0, float(self.influence @ own @ self.influence)) * self.rows / (self.rows - 1.0)

    def standard_error(self, own: Float64) -> float:
        """Return its standard error; NaN if there is no honest one."""
        variance = self.variance(own)
        return math.sqrt(variance) if variance >= 0 else math.nan

    def covariance(self, other: Estimated, paired: Float64) -> float:
        """Return the covariance with another value, from the sums F' B over the same rows."""
        if self.influence is None or other.influence is None or min(self.rows, other.rows) < 2:
            return math.nan
        free = self.rows / (self.rows - 1.0) * other.rows / (other.rows - 1.0)
        return float(self.influence @ paired @ other.influence) * math.sqrt(free)


UNKNOWN: Final = Estimated(math.nan, None, 0.0, 0.0)


class Gram(NamedTuple):
    """Products of row features, summed over rows, and the place of each feature in it."""

    matrix: Float64  # (13, 13), or more if estimators have columns of their own
    places: Mapping[str, int] = PLACE

    def total(self, feature: str) -> float:
        """Return the sum of a feature."""
        return float(self.matrix[0, self.places[feature]])

    def kish(self, weight: str = "w") -> float:
        """Return the effective rows of a weight, (S w)^2 / S w^2."""
        squares = float(self.matrix[self.places[weight], self.places[weight]])
        return self.total(weight) ** 2 / squares if squares > 0 else 0.0

    def mean(self, *features: str, honest: bool = True) -> Estimated:
        """Return the mean of a sum of features; its influence is (f - V) / n."""
        n = self.total("one")
        value = float(sum(self.matrix[0, self.places[name]] for name in features)) / n
        influence = np.zeros(len(self.matrix))
        for name in features:
            influence[self.places[name]] = 1.0 / n
        influence[0] = -value / n
        return Estimated(value, influence if honest else None, self.kish(), n)

    def ratio(self, top: str, bottom: str, *, ess: float | None = None, rows: str = "one") -> Estimated:
        """Return S top / S bottom; its influence is (top - V bottom) / S bottom."""
        total = self.total(bottom)
        if total == 0.0:
            return UNKNOWN
        value = self.total(top) / total
        influence = np.zeros(len(self.matrix))
        influence[self.places[top]], influence[self.places[bottom]] = 1.0 / total, -value / total
        squares = float(self.matrix[self.places[bottom], self.places[bottom]])
        return Estimated(value, influence, total * total / squares if ess is None else ess, self.total(rows))


class Estimator(ABC):
    """How a value is read off sums.

    A new one is a subclass that solves for its value from the features there are. If it needs a feature that the kernel
    lacks, `column` computes it in numpy: slower, but nothing else has to change.
    """

    name: ClassVar[str]
    needs: ClassVar[Literal["propensities", "explored rows", "exploration rates"]] = "propensities"
    counts_misses: ClassVar[bool] = True
    """Whether rows whose arm the target would not play lower the error, too."""

    @abstractmethod
    def solve(self, sums: Gram) -> Estimated:
        """Return the estimate of a log that has rows."""

    def constants(self) -> dict[str, float]:
        """Return the constants of its column in the kernel."""
        return {}

    def column(self, parts: Parts) -> Float64:
        """Return a feature of rows that the kernel lacks, (n,); it is found under the name of the estimator."""
        raise NotImplementedError

    @property
    def has_column(self) -> bool:
        """Whether it defines `column`."""
        return type(self).column is not Estimator.column


class InversePropensity(Estimator):
    """Inverse propensity scoring."""

    name = "ips"
    counts_misses = False  # S wr knows nothing of rows without a match

    def solve(self, sums: Gram) -> Estimated:
        """Return S wr / n."""
        return sums.mean("wr")


class SelfNormalized(Estimator):
    """Self-normalised inverse propensity scoring."""

    name = "snips"

    def solve(self, sums: Gram) -> Estimated:
        """Return S wr / S w."""
        return sums.ratio("wr", "w")


class DirectMethod(Estimator):
    """The direct method: the reward model alone. Its error is bias, which no row knows of: it has no interval."""

    name = "dm"

    def solve(self, sums: Gram) -> Estimated:
        """Return S D / n."""
        return sums.mean("direct", honest=False)


class DoublyRobust(Estimator):
    """Doubly robust."""

    name = "dr"

    def solve(self, sums: Gram) -> Estimated:
        """Return S psi / n."""
        return sums.mean("direct", "wq")


class SelfNormalizedDoublyRobust(Estimator):
    """Doubly robust with self-normalised weights."""

    name = "sndr"

    def solve(self, sums: Gram) -> Estimated:
        """Return S D / n + S w(r-q) / S w; its influence is the sum of theirs."""
        off, model = sums.ratio("wq", "w"), sums.mean("direct")
        if off.influence is None or model.influence is None:
            return off
        return Estimated(model.value + off.value, model.influence + off.influence, sums.kish(), model.rows)


@dataclass(frozen=True, slots=True)
class Switch(CheckedSettings, Estimator):
    """Switch-DR: the reward model alone where the weight is above the threshold. Biased, as "dm" is."""

    threshold: float = 10.0

    name = "switch"

    def constants(self) -> dict[str, float]:
        """Return the constant of its column."""
        return {"most": self.threshold}

    def solve(self, sums: Gram) -> Estimated:
        """Return S D / n + S w(r-q) / n, the second sum over weights up to the threshold."""
        return sums.mean("switch", honest=False)


@dataclass(frozen=True, slots=True)
class Shrunk(CheckedSettings, Estimator):
    """DRos, doubly robust with optimistic shrinkage of weights. Biased, as "dm" is."""

    strength: float = 1.0

    name = "shrunk"

    def constants(self) -> dict[str, float]:
        """Return the constant of its column."""
        return {"shrink": self.strength}

    def solve(self, sums: Gram) -> Estimated:
        """Return S D / n + S w'(r-q) / n, where w' = strength w / (w^2 + strength)."""
        return sums.mean("shrunk", honest=False)


class ReplayMethod(Estimator):
    """The replay method: explored rows whose arm the target plays."""

    name = "replay"
    needs = "explored rows"

    def solve(self, sums: Gram) -> Estimated:
        """Return S vr / S v."""
        return sums.ratio("vr", "v", rows="x")


class Explored(Estimator):
    """Doubly robust over explored rows."""

    name = "explored"
    needs = "explored rows"

    def solve(self, sums: Gram) -> Estimated:
        """Return S psi with v for w / their number."""
        return sums.ratio("xpsi", "x", ess=sums.kish("v"), rows="x")


class Weighted(Estimator):
    """Doubly robust with row weights h that are known before the arm is drawn."""

    name = "weighted"
    needs = "exploration rates"

    def solve(self, sums: Gram) -> Estimated:
        """Return S h psi / S h."""
        return sums.ratio("hpsi", "h", ess=sums.total("h"))


ESTIMATORS: Final[dict[str, Estimator]] = {
    each.name: each
    for each in (
        InversePropensity(),
        SelfNormalized(),
        DirectMethod(),
        DoublyRobust(),
        SelfNormalizedDoublyRobust(),
        Switch(),
        Shrunk(),
        ReplayMethod(),
        Explored(),
        Weighted(),
    )
}
EstimatorLike: TypeAlias = str | Estimator
"""The name of an estimator, or one with constants of its own, such as `Switch(20)`."""


def choose_from(estimator: EstimatorLike) -> dict[str, Estimator]:
    """Return all estimators, with the one that is given in place of its namesake."""
    if isinstance(estimator, Estimator):
        return ESTIMATORS | {estimator.name: estimator}
    if estimator != "auto" and estimator not in ESTIMATORS:
        text = "{estimator} is {value!r}; choose 'auto', one of {all}, or give an Estimator"
        raise ArgumentError(text, value=estimator, all=tuple(ESTIMATORS))
    return ESTIMATORS


def kernel_constants(estimators: Iterable[Estimator]) -> dict[str, float]:
    """Return the constants of all columns in the kernel, by name."""
    return {name: value for each in estimators for name, value in each.constants().items()}


def places_of(estimators: Iterable[Estimator]) -> dict[str, int]:
    """Return the place of every feature: those of the kernel, and columns of estimators behind."""
    more = [each.name for each in estimators if each.has_column]
    return {**PLACE, **{name: len(PLACE) + place for place, name in enumerate(more)}}


def estimate(estimator: EstimatorLike, own: Float64, places: Mapping[str, int] = PLACE) -> Estimated:
    """Return an estimate from the Gram matrix of a target.

    Examples
    --------
    >>> from armlet.reference.evaluate import gram
    >>> F = np.zeros((2, 13))
    >>> F[:, 0], F[:, 1], F[:, 2] = 1.0, [2.0, 0.0], [1.0, 0.0]
    >>> estimate("ips", gram(F, F)).value, estimate("snips", gram(F, F)).value
    (0.5, 0.5)
    """
    solver = ESTIMATORS[estimator] if isinstance(estimator, str) else estimator
    return UNKNOWN if own[0, 0] == 0 else solver.solve(Gram(own, places))


EVERYWHERE: Final = Interval(-math.inf, math.inf)
ROUNDED: Final = 1e-9  # of a range: an estimate that misses it by less has been rounded


class Rewards(NamedTuple):
    """What is known of the rewards of a log."""

    range: Range | None  # (0, 1) where every reward is one of these; else as declared
    binary: bool = False
    constant: float | None = None  # the reward of every row, where all are the same


def mean_interval(value: float, se: float, ess: float, level: float, rewards: Rewards) -> tuple[Interval | None, str]:
    """Return the interval of a mean of rewards at one look; or None, and why.

    Binary rewards, such as clicks, get Wilson's interval: V -+ t se is short where clicks are few, since its se is
    small just when V is too low, and is [0, 0] for none.

    Examples
    --------
    >>> mean_interval(0.5, 0.1, 1e9, 0.95, Rewards((0.0, 0.6)))
    (Interval(low=0.304..., high=0.6), '')
    >>> mean_interval(7.0, 0.0, 50.0, 0.95, Rewards(None, constant=7.0))
    (None, 'every reward is 7, so nothing tells how far others may lie; declare reward_range')
    >>> mean_interval(1.5, 0.1, 50.0, 0.95, Rewards((0.0, 1.0)))[1]
    'the estimate, 1.5 [1.3, 1.7], lies outside the declared range of rewards, [0, 1]'
    """
    ends, constant = rewards.range, rewards.constant
    if constant is not None and ends is None:
        return None, f"every reward is {constant:g}, so nothing tells how far others may lie; declare reward_range"
    if constant is not None and ends is not None:
        return hull(wilson(value, 0.0, ess, level, ends), Interval(constant, constant), ends), ""
    if ends is not None and (rewards.binary or se == 0.0):
        return wilson(value, se, ess, level, ends), ""
    interval = t_interval(value, se, ess, level)
    if ends is None:
        return (interval, "") if interval != EVERYWHERE else (None, "too few rows tell of it for an interval")
    within = Interval(max(interval.low, ends[0]), min(interval.high, ends[1]))
    if within.low <= within.high:
        return within, ""
    shown = f"{value:.2g} [{interval.low:.2g}, {interval.high:.2g}]"
    return None, f"the estimate, {shown}, lies outside the declared range of rewards, [{ends[0]:g}, {ends[1]:g}]"


def clamp(value: float, ends: Range | None) -> tuple[float, str]:
    """Return the number nearest to an estimate that a mean of rewards can be, and a note if that is another.

    Examples
    --------
    >>> clamp(-0.54, (0.0, 1.0))
    (0.0, 'the estimate, -0.54, is outside the range of rewards, [0, 1]: its end is given')
    >>> clamp(-0.54, None), clamp(1.0000000000000002, (0.0, 1.0))
    ((-0.54, ''), (1.0, ''))
    """
    if ends is None or not math.isfinite(value):
        return value, ""
    within = min(max(value, ends[0]), ends[1])
    if abs(value - within) <= ROUNDED * (ends[1] - ends[0]):
        return within, ""
    note = f"the estimate, {value:.4g}, is outside the range of rewards, [{ends[0]:g}, {ends[1]:g}]: its end is given"
    return within, note


def t_interval(value: float, se: float, ess: float, level: float) -> Interval:
    """Return V -+ t se; all numbers if there are too few rows, or rewards never differed.

    Examples
    --------
    >>> t_interval(0.5, 0.1, 1e9, 0.95)
    Interval(low=0.304..., high=0.695...)
    """
    if not (math.isfinite(value) and se > 0.0 and ess > 1.0):
        return EVERYWHERE
    reach = t_quantile(0.5 + level / 2, ess - 1.0) * se
    return Interval(value - reach, value + reach)


def wilson(value: float, se: float, ess: float, level: float, ends: Range) -> Interval:
    """Return Wilson's interval for a mean of rewards that are one of two numbers.

    It asks which v would explain V: (V - v)^2 <= z^2 v (1 - v) / n, with for n as many rows of equal weight as have the
    same standard error, V (1 - V) / se^2. Weights can carry V out of the range; no v explains that, and the interval is
    then as wide as V -+ t se where they overlap, at least.

    Examples
    --------
    >>> low, high = wilson(0.0, 0.0, 100.0, 0.95, (0.0, 1.0))
    >>> low, round(high, 3)
    (0.0, 0.038)
    >>> low, high = wilson(1.02, 0.06, 100.0, 0.95, (0.0, 1.0))
    >>> round(low, 3), high
    (0.901, 1.0)
    """
    low, high = ends
    if not math.isfinite(value) or ess <= 0.0:
        return Interval(low, high)
    V = (value - low) / (high - low)
    u = min(1.0, max(0.0, V))
    spread = (se / (high - low)) ** 2 if se > 0.0 else 0.0
    n = u * (1.0 - u) / spread if spread > 0.0 and 0.0 < u < 1.0 else ess
    n = max(n, 1e-12)
    z = t_quantile(0.5 + level / 2, max(ess - 1.0, 1.0))
    middle = (u + z * z / (2 * n)) / (1 + z * z / n)
    reach = z / (1 + z * z / n) * math.sqrt(u * (1 - u) / n + z * z / (4 * n * n))
    bottom, top = max(0.0, middle - reach), min(1.0, middle + reach)
    if u == 0.0:
        bottom, top = 0.0, min(1.0, max(top, V + z * math.sqrt(spread)))
    if u == 1.0:
        bottom, top = max(0.0, min(bottom, V - z * math.sqrt(spread))), 1.0
    return Interval(low + (high - low) * bottom, low + (high - low) * top)


def hull(one: Interval, other: Interval, ends: Range) -> Interval:
    """Return the smallest interval that holds both, cut to the range of rewards.

    Examples
    --------
    >>> hull(Interval(0.2, 0.8), Interval(0.5, 1.1), (0.0, 1.0))
    Interval(low=0.2, high=1.0)
    """
    return Interval(max(ends[0], min(one.low, other.low)), min(ends[1], max(one.high, other.high)))


def difference_interval(
    one: tuple[float, Interval | None], other: tuple[float, Interval | None], correlation: float
) -> Interval | None:
    """Return the interval of one - other, each a value with its own interval: reaches are added as those of normals.

    It keeps the room that an interval leaves for clicks that were not seen, where a standard error of 0 would not.

    Examples
    --------
    >>> none, few = (0.0, Interval(0.0, 0.04)), (0.01, Interval(0.005, 0.02))
    >>> low, high = difference_interval(none, few, 0.0)
    >>> round(low, 3), round(high, 3)
    (-0.02, 0.03)
    """
    (a, mine), (b, theirs) = one, other
    if mine is None or theirs is None:
        return None
    below = _reach(a - mine.low, theirs.high - b, correlation)
    above = _reach(mine.high - a, b - theirs.low, correlation)
    return Interval(a - b - below, a - b + above)


def _reach(one: float, other: float, correlation: float) -> float:
    one, other = max(0.0, one), max(0.0, other)
    return math.sqrt(max(0.0, one * one + other * other - 2.0 * correlation * one * other))
