"""Intervals: the bootstrap over whole runs, and Student's t.

The steps of one run depend on each other, so the unit that is drawn with replacement is a run. With n runs a
percentile interval covers about as often as a normal interval covers under Student's law with n - 1 degrees of
freedom: 90 % of the time for 10 runs, 94 % for 40, when 95 % is asked for.
O(resamples * runs) time and memory for each statistic.

The tail of Student's t is a regularised incomplete beta function, by its continued fraction; the quantile is the root
of the tail, for any degrees of freedom above 0, whole or not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from armlet.errors import InvalidValueError
from armlet.inputs.columns import is_number
from armlet.types import Estimate, Float64, Int64, Interval

RESAMPLES: Final = 2000
LEVEL: Final = 0.95
Z: Final = 1.959963984540054  # 97.5 % of a normal lie below

Pairing: TypeAlias = Literal["paired", "independent"]


def bootstrap(
    statistic: Callable[..., npt.ArrayLike],
    *columns: npt.ArrayLike,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> Estimate:
    """Return a statistic of all runs, and its percentile interval over runs drawn with replacement.

    Parameters
    ----------
    statistic
        Takes every column with the runs along its last axis, and reduces that axis.
    columns
        One number for each run; entry i of every column belongs to run i, and they are drawn together.
    level
        How often the interval should cover; the two tails left out are of equal size.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> late, early = rng.gamma(9.0, 1.0, (2, 50))
    >>> found = bootstrap(lambda a, b: a.mean(-1) / b.mean(-1), late, early, rng=rng)
    >>> found.low < 1 < found.high
    True
    """
    if not (is_number(level) and 0 < level < 1):
        raise InvalidValueError(f"level is {level} but must lie between 0 and 1")
    if resamples * (1 - level) < 2:
        raise InvalidValueError(
            f"resamples is {resamples} but level {level} needs at least {math.ceil(2 / (1 - level))}"
        )
    interval = percentile(statistic, columns, rng, resamples=resamples, level=level)
    if interval is None:
        raise InvalidValueError(
            "the statistic is not a finite number in every resample; use one that is defined in all"
        )
    return interval


def paired_difference(first: npt.ArrayLike, second: npt.ArrayLike, rng: np.random.Generator) -> Estimate:
    """Return the mean of first - second over runs in the same environments.

    Examples
    --------
    >>> print(f"{paired_difference([5.0, 9.0, 7.0], [4.0, 8.0, 6.0], np.random.default_rng(0)):.1f}")
    1.0 [1.0 to 1.0]
    """
    ours, theirs = _columns([first, second], "paired")
    return bootstrap(mean_of_runs, ours - theirs, rng=rng)


def band(curves: npt.ArrayLike, rng: np.random.Generator) -> Float64:
    """Return the mean curve and its pointwise 95 % interval: (3, checkpoints), rows mean, low, high.

    Examples
    --------
    >>> band([[1.0, 2.0], [1.0, 4.0]], np.random.default_rng(0)).tolist()
    [[1.0, 3.0], [1.0, 2.0], [1.0, 4.0]]
    """
    regret = as_runs(curves, "(runs, checkpoints)")
    runs = len(regret)
    weights = resampled(runs, rng) / runs
    return np.vstack([regret.mean(axis=0), np.quantile(weights @ regret, _tails(LEVEL), axis=0)])


def resampled(runs: int, rng: np.random.Generator, resamples: int = RESAMPLES) -> Int64:
    """Return how often each run is drawn in each resample, (resamples, runs): for means of many columns at once."""
    return rng.multinomial(runs, np.full(runs, 1 / runs), size=resamples)


def spread(values: Float64, share: float) -> Interval:
    """Return the interval that holds a share of single runs, as many below it as above.

    Examples
    --------
    >>> spread(np.arange(1.0, 8.0), 0.5)
    Interval(low=2.0, high=6.0)
    """
    n = values.size
    # the next run is as likely to fall into any of the n + 1 gaps between these
    ranks = np.clip(np.array(_tails(share)) * (n + 1) - 1, 0, n - 1) / max(1, n - 1)
    low, high = np.quantile(values, ranks)
    return Interval(float(low), float(high))


def rough_t_quantile(freedom: int, z: float = Z) -> float:
    """Return the 97.5 % quantile of Student's t by its expansion in 1/freedom: within 1 % from 3 degrees on.

    With another quantile of the normal law in place of `z`, that of Student's: within 3 % for 99.75 % from 4 on.

    Examples
    --------
    >>> round(rough_t_quantile(4), 2), round(rough_t_quantile(1000), 2)
    (2.77, 1.96)
    """
    return _expanded(z, max(3, freedom))


def percentile(
    statistic: Callable[..., npt.ArrayLike],
    columns: Sequence[npt.ArrayLike],
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    pairing: Pairing = "paired",
) -> Estimate | None:
    """Do what `bootstrap` does; return None if the statistic is not a finite number in every resample.

    The pairing is "paired" if entry i of every column belongs to run i, and they are drawn together.
    """
    columns = _columns(columns, pairing)
    draws = np.asarray(statistic(*_resample(columns, rng, resamples, pairing)), dtype=np.float64)
    if draws.shape != (resamples,):
        raise InvalidValueError(f"the statistic gives shape {draws.shape} but must reduce the last axis, and it alone")
    value = float(np.asarray(statistic(*columns)))
    if not (math.isfinite(value) and np.isfinite(draws).all()):
        return None
    low, high = np.quantile(draws, _tails(level))
    return Estimate(value, float(low), float(high))


def _resample(columns: Sequence[Float64], rng: np.random.Generator, n: int, pairing: Pairing) -> Iterator[Float64]:
    """Draw whole runs with replacement: (n, runs) of every column."""
    picks: Int64 | None = None
    for column in columns:
        if picks is None or pairing == "independent":
            picks = rng.integers(len(column), size=(n, len(column)))
        yield column[picks]


def _tails(level: float) -> list[float]:
    return [(1 - level) / 2, (1 + level) / 2]


def mean_of_runs(column: Float64) -> Float64:
    """Return the mean along the last axis."""
    return np.asarray(column.mean(axis=-1))


def _columns(columns: Sequence[npt.ArrayLike], pairing: Pairing) -> list[Float64]:
    values = [as_runs(column, "(runs,)") for column in columns]
    if pairing == "paired" and len({len(value) for value in values}) != 1:
        raise InvalidValueError(f"paired columns need as many runs each; got {[len(value) for value in values]}")
    return values


def as_runs(runs: npt.ArrayLike, shape: str) -> Float64:
    """Return runs along the first axis, at least two of them, of finite numbers; or say what is wrong."""
    values = np.asarray(runs, dtype=np.float64)
    if values.ndim != len(shape.strip("(,)").split(",")):
        raise InvalidValueError(f"an array must be {shape}; got shape {values.shape}")
    if len(values) < 2:
        raise InvalidValueError(f"an interval needs at least 2 runs; got {len(values)}")
    if not np.isfinite(values).all():
        raise InvalidValueError("some values are not finite; give every run a number everywhere")
    return values


MANY: Final = 1e4
TINY: Final = 1e-300


def t_quantile(probability: float, freedom: float) -> float:
    """Return the value below which Student's t lies with a probability, to 10 digits.

    Examples
    --------
    >>> [round(t_quantile(0.975, freedom), 4) for freedom in (1, 2.5, 30, 1e9)]
    [12.7062, 3.5747, 2.0423, 1.96]
    """
    if not 0.0 < probability < 1.0:
        raise InvalidValueError(f"probability is {probability!r} but must lie between 0 and 1")
    if not freedom > 0.0:
        raise InvalidValueError(f"freedom is {freedom!r}; give a positive number of degrees of freedom")
    if probability < 0.5:
        return -t_quantile(1.0 - probability, freedom)
    if freedom > MANY:
        return _expanded(NormalDist().inv_cdf(probability), freedom)
    return _root(1.0 - probability, freedom)


def t_tail(t: float, freedom: float) -> float:
    """Return the probability that Student's t lies above a value, to 15 places after the point.

    Examples
    --------
    >>> round(t_tail(1.0, 1.0), 12), round(t_tail(-2.0, 10.0), 6)
    (0.25, 0.963306)
    """
    if t < 0.0:
        return 1.0 - t_tail(-t, freedom)
    if freedom > MANY:
        return _large_tail(t, freedom)
    square = t * t
    if square > freedom:
        return 0.5 * _beta_share(freedom / 2, 0.5, freedom / (freedom + square))
    return 0.5 - 0.5 * _beta_share(0.5, freedom / 2, square / (freedom + square))


def _large_tail(t: float, v: float) -> float:
    z = t  # Newton on the expansion: its slope is 1 + O(1/v)
    for _ in range(6):
        z -= _expanded(z, v) - t
    return NormalDist().cdf(-z)


def _expanded(z: float, v: float) -> float:
    """Return the quantile of t where the normal law has z: Fisher's expansion in 1/v."""
    terms = (
        z,
        (z**3 + z) / (4 * v),
        (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2),
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3),
    )
    return sum(terms)


@lru_cache(maxsize=1024)  # several estimates of one log have as many effective rows
def _root(tail: float, freedom: float) -> float:
    """Find the t with this tail, at most one half: Newton's steps within bounds that close in on it, or halves."""
    low, high = 0.0, 1.0
    while t_tail(high, freedom) > tail and high < 1e300:
        low, high = high, high * 4.0
    t = (low + high) / 2
    for _ in range(200):
        excess = t_tail(t, freedom) - tail
        low, high = (t, high) if excess > 0.0 else (low, t)
        slope = _density(t, freedom)
        step = excess / slope if slope > 0.0 else math.inf
        following = t + step if low < t + step < high else (low + high) / 2
        if abs(following - t) <= 1e-14 * t or following in (low, high):
            return following
        t = following
    return t


def _density(t: float, v: float) -> float:
    log_front = math.lgamma((v + 1) / 2) - math.lgamma(v / 2) - 0.5 * math.log(v * math.pi)
    return math.exp(log_front - (v + 1) / 2 * math.log1p(t * t / v))


def _beta_share(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b)."""
    if x <= 0.0 or x >= 1.0:
        return min(1.0, max(0.0, x))
    if x > (a + 1) / (a + b + 2):
        return 1.0 - _beta_share(b, a, 1.0 - x)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(log_front) * _fraction(a, b, x) / a


def _fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of I_x(a, b), from its head on (Lentz)."""
    c, d = 1.0, 1.0 / _off_zero(1.0 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        change = 1.0
        for term in (even, odd):
            d = 1.0 / _off_zero(1.0 + term * d)
            c = _off_zero(1.0 + term / c)
            change = c * d
            value *= change
        if abs(change - 1.0) < 1e-16:
            break
    return value


def _off_zero(value: float) -> float:
    return value if abs(value) > TINY else TINY


# ---- how a curve grows

SHORTEST: Final = 100  # steps: below, T/4 and T/2 are too rough to speak of growth

RATES: Final = {"logarithmic": 1.0, "square-root": math.sqrt(2.0), "linear": 2.0}
"""The doubling ratio of each kind of growth."""


def doubling_ratio(steps: npt.ArrayLike, curves: npt.ArrayLike, rng: np.random.Generator) -> Estimate | None:
    """Return [R(T) - R(T/2)] / [R(T/2) - R(T/4)], means over runs: 1 for log t, 1.41 for sqrt t, 2 for t.

    None if some resample has no regret in (T/4, T/2]: the ratio then has no interval.

    Parameters
    ----------
    steps
        The checkpoints, (checkpoints,): increasing, with T, T // 2 and T // 4 among them.
    curves
        Cumulative regret at the checkpoints, (runs, checkpoints).

    Examples
    --------
    >>> steps = np.array([100, 250, 500, 1000])
    >>> print(f"{doubling_ratio(steps, [np.sqrt(steps)] * 3, np.random.default_rng(0)):.2f}")
    1.41 [1.41 to 1.41]
    """
    at, regret = _curves(steps, curves)
    horizon = int(at[-1])
    if horizon < SHORTEST:
        raise InvalidValueError(f"the horizon is {horizon} but growth needs at least {SHORTEST} steps; run longer")
    end, half, quarter = (regret[:, _position(at, horizon // part)] for part in (1, 2, 4))
    return percentile(_ratio, [end - half, half - quarter], rng)


def log_slope(
    steps: npt.ArrayLike, curves: npt.ArrayLike, rng: np.random.Generator, start: float, unit: float = 1.0
) -> Estimate:
    """Return the least-squares slope of regret on log t over the checkpoints in [start, T].

    Every checkpoint weighs the same, so space them evenly in log t. Exploring at rate p/t costs p times the
    mean gap for each unit of log t: with that as `unit`, 1 means that regret is the price of exploring alone.

    Examples
    --------
    >>> steps = np.geomspace(100, 10_000, 9).round()
    >>> print(f"{log_slope(steps, [6 * np.log(steps)] * 3, np.random.default_rng(0), start=500, unit=3):.2f}")
    2.00 [2.00 to 2.00]
    """
    at, regret = _curves(steps, curves)
    if not 0 < unit < math.inf:
        raise InvalidValueError(f"unit is {unit} but must be positive and finite")
    if not 0 < start <= at[-1] / 2:
        raise InvalidValueError(f"start is {start} but must lie between 0 and half the horizon, {at[-1] / 2:g}")
    inside = at >= start
    if inside.sum() < 3:
        raise InvalidValueError(
            f"only {inside.sum()} checkpoints lie in [{start}, {at[-1]:.0f}]; a slope needs at least 3"
        )
    x = np.log(at[inside])
    x -= x.mean()
    slopes = regret[:, inside] @ x / (x @ x) / unit
    return bootstrap(mean_of_runs, slopes, rng=rng)  # the slope of the mean is the mean slope


def power_slope(
    settings: npt.ArrayLike,
    outcomes: Sequence[npt.ArrayLike],
    rng: np.random.Generator,
    *,
    pairing: Pairing = "paired",
    average: Literal["mean", "median"] = "mean",
) -> Estimate | None:
    """Return the exponent b of the power law outcome = c * setting^b that fits best on log-log scales.

    None if the average of some setting is not positive in every resample. To ask how an outcome grows for
    each unit of d rather than for each doubling of it, give 2.0 ** d as settings: b is then in bits per unit.

    Parameters
    ----------
    settings, outcomes
        What was varied, positive values; and for each of them a column of runs.
    pairing
        "paired" if entry i of every column shares its environment (they are drawn together), else "independent".

    Examples
    --------
    >>> runs = np.random.default_rng(0).uniform(1, 3, 40)
    >>> print(f"{power_slope([5, 10, 100], [5 * runs, 10 * runs, 100 * runs], np.random.default_rng(1)):.2f}")
    1.00 [1.00 to 1.00]
    """
    x = np.asarray(settings, dtype=np.float64)
    if x.ndim != 1 or len(x) != len(outcomes):
        raise InvalidValueError(f"settings has shape {x.shape} but there are {len(outcomes)} columns of outcomes")
    if not np.all((x > 0) & np.isfinite(x)) or len(set(x.tolist())) < 2:
        raise InvalidValueError(f"settings is {x.tolist()} but needs positive values, at least two of them different")
    x = np.log(x) - np.log(x).mean()
    centre = np.mean if average == "mean" else np.median

    def slope(*columns: Float64) -> Float64:
        middle = np.stack([centre(column, axis=-1) for column in columns])
        logs = np.log(middle, where=middle > 0, out=np.full_like(middle, np.nan))
        return np.asarray(np.tensordot(x, logs, 1) / (x @ x))

    return percentile(slope, outcomes, rng, pairing=pairing)


def classify(ratio: Estimate | None) -> tuple[str, ...]:
    """Name the kinds of growth whose doubling ratio the interval contains: none, one or several.

    Examples
    --------
    >>> classify(Estimate(1.05, 0.97, 1.12))
    ('logarithmic',)
    >>> classify(Estimate(1.2, 1.1, 1.3))
    ()
    """
    return () if ratio is None else tuple(name for name, rate in RATES.items() if ratio.low <= rate <= ratio.high)


def growth(ratio: Estimate | None) -> str:
    """Put a doubling ratio into words, chosen by which rates its interval contains.

    Examples
    --------
    >>> growth(Estimate(1.05, 0.97, 1.12))
    '1.05 [0.97 to 1.12], consistent with logarithmic growth'
    >>> growth(Estimate(1.2, 1.1, 1.3))
    '1.20 [1.10 to 1.30], between logarithmic and square-root growth'
    """
    if ratio is None:
        return "not defined, too little regret after T/4"
    below = [name for name, rate in RATES.items() if rate < ratio.low]
    above = [name for name, rate in RATES.items() if rate > ratio.high]
    if inside := classify(ratio):
        words = f"consistent with {' or '.join(inside)}"
    elif below and above:
        words = f"between {below[-1]} and {above[0]}"
    else:
        words = f"slower than {above[0]}" if above else f"faster than {below[-1]}"
    return f"{ratio:.2f}, {words} growth"


def _ratio(above: Float64, below: Float64) -> Float64:
    top, bottom = mean_of_runs(above), mean_of_runs(below)
    return np.divide(top, bottom, where=bottom > 0, out=np.full_like(bottom, np.nan))


def _curves(steps: npt.ArrayLike, curves: npt.ArrayLike) -> tuple[Float64, Float64]:
    at, regret = np.asarray(steps, dtype=np.float64), as_runs(curves, "(runs, checkpoints)")
    if at.shape != regret.shape[1:] or not at.size:
        raise InvalidValueError(f"steps has shape {at.shape} but curves has {regret.shape[1]} checkpoints")
    if at[0] < 1 or np.any(np.diff(at) <= 0):
        raise InvalidValueError("steps must increase and start at 1 or later")
    return at, regret


def _position(at: Float64, step: int) -> int:
    place = int(np.searchsorted(at, step))
    if at[place] != step:
        raise InvalidValueError(f"steps has no checkpoint at {step}; keep T, T // 2 and T // 4 for T = {at[-1]:.0f}")
    return place
