"""How fast regret grows, with intervals: what "logarithmic" in Section 6 is judged by.

The steps of one run depend on each other, so the standard error of a line fitted through a curve means
nothing. Every interval here is a percentile bootstrap over whole runs; see `armlet.inference.means`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from armlet.errors import InvalidValueError
from armlet.inference.intervals import Estimate, Pairing, as_runs, bootstrap, mean_of_runs, percentile
from armlet.types import Float64

SHORTEST: Final = 100  # steps: below, T/4 and T/2 are too rough to speak of growth

RATES: Final = {"logarithmic": 1.0, "square-root": math.sqrt(2.0), "linear": 2.0}
"""The doubling ratio of each kind of growth."""


def doubling_ratio(steps: npt.ArrayLike, curves: npt.ArrayLike, rng: np.random.Generator) -> Estimate | None:
    """Give [R(T) - R(T/2)] / [R(T/2) - R(T/4)], means over runs: 1 for log t, 1.41 for sqrt t, 2 for t.

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
    """Give the least-squares slope of regret on log t over the checkpoints in [start, T].

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
    """Give the exponent b of the power law outcome = c * setting^b that fits best on log-log scales.

    None if the average of some setting is not positive in every resample. To ask how an outcome grows for
    each unit of d rather than for each doubling of it, give 2.0 ** d as settings: b is then in bits per unit.

    Parameters
    ----------
    settings, outcomes
        What was varied, positive values; and for each of them a column of runs.
    pairing
        "paired" if entry i of every column shares its world (they are drawn together), else "independent".

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
