"""What simulations found: the regret of every run at its checkpoints, in memory and as a table, and how fast it grows.

The table has a row for each job, run and checkpoint, and the settings of the jobs in its metadata; no times and no
names of machines: the same settings give the same bytes.

Growth is what "logarithmic" in Section 6 is judged by. The steps of one run depend on each other, so the standard error
of a line fitted through a curve means nothing: every interval here is a percentile bootstrap over whole runs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from armlet.disk import Json, write_atomically
from armlet.errors import InvalidTypeError, InvalidValueError, UnknownNameError, load_pyarrow
from armlet.inference.intervals import Estimate, Pairing, as_runs, bootstrap, mean_of_runs, percentile
from armlet.parallel import Seeds
from armlet.simulation.play import PLACE, Curves, Job
from armlet.types import Float64, Int64

Settings: TypeAlias = dict[str, Json]

COLUMNS = ("job", "run", "step", "regret", "exploring", "explored")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The regret of every run of one job at its checkpoints.

    Examples
    --------
    >>> at = np.array([1, 10])
    >>> curves = Curves(np.array([[1.0, 4.0], [0.0, 2.0]]), np.zeros((2, 2)), np.ones((2, 2), dtype=np.int64))
    >>> result = Result(settings={"seed": 1}, runs=np.arange(2), steps=at, curves=curves)
    >>> result.at(10), result.mean
    (array([4., 2.]), array([0.5, 3. ]))
    """

    settings: Settings
    runs: Int64  # (n,): the numbers of the runs; not all of a job's if it was interrupted
    steps: Int64  # (C,)
    curves: Curves  # each (n, C)

    @property
    def regret(self) -> Float64:
        """Cumulative regret, (n, C)."""
        return self.curves.regret

    @property
    def exploring(self) -> Float64:
        """The part of it that was paid on explored steps, (n, C)."""
        return self.curves.exploring

    @property
    def explored(self) -> Int64:
        """How many steps explored so far, (n, C)."""
        return self.curves.explored

    @property
    def mean(self) -> Float64:
        """Mean regret over runs, (C,)."""
        mean: Float64 = self.regret.mean(axis=0)
        return mean

    def at(self, step: int) -> Float64:
        """Return the regret of every run at one checkpoint, (n,)."""
        found = np.flatnonzero(self.steps == step)
        if not found.size:
            raise UnknownNameError(f"step {step} is no checkpoint; there are {self.steps.tolist()}")
        column: Float64 = self.regret[:, found[0]]
        return column

    def estimate(self, step: int) -> Estimate:
        """Return the mean regret at one checkpoint with its bootstrap interval over runs; exact if there is but one."""
        values = self.at(step)
        if len(values) == 1:
            return Estimate(float(values[0]), float(values[0]), float(values[0]))
        return bootstrap(lambda values: values.mean(-1), values, rng=self.rng("regret interval", step))

    def rng(self, word: str, *which: int | str) -> np.random.Generator:
        """Return the randomness of an interval: the same wherever it is shown, so that it is the same interval."""
        seed = self.settings["seed"]
        return Seeds(seed if isinstance(seed, int) else 0, PLACE).rng(word, *which)


def stack(runs: Iterable[Curves]) -> Curves:
    """Put single runs, (C,), into one table of runs, (n, C)."""
    regret, exploring, explored = zip(*runs, strict=True)
    return Curves(np.stack(regret), np.stack(exploring), np.stack(explored))


def joined(parts: Iterable[Curves]) -> Curves:
    """Put the runs of several tasks, (n, C) each, one below the other."""
    regret, exploring, explored = zip(*parts, strict=True)
    return Curves(np.concatenate(regret), np.concatenate(exploring), np.concatenate(explored))


def settings_of(job: Job) -> Settings:
    """Describe a job as plain data.

    Examples
    --------
    >>> from armlet.environments import FigureA
    >>> from armlet.policies import Uniform
    >>> environment = FigureA(theta=((1.0, 0.0), (0.0, 1.0)))
    >>> job = Job(environment=environment, policy=Uniform(), horizon=4, runs=2, seed=1, method="python")
    >>> settings_of(job)["policy"]
    {'name': 'Uniform', 'settings': {'ridge': 'paper'}}
    """
    return {
        "environment": _described(job.environment),
        "policy": _described(job.policy),
        "horizon": job.horizon,
        "runs": job.runs,
        "seed": job.seed,
        "checkpoints": list(job.checkpoints),
        "method": job.method,
    }


def _described(thing: object) -> Json:
    """Return the name and settings; settings are None if they are not plain data."""
    name, settings = type(thing).__name__, None
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        with contextlib.suppress(TypeError):
            values = {field.name: getattr(thing, field.name) for field in dataclasses.fields(thing)}
            # a setting may be an environment itself, whose name tells as much as its settings
            settings = {n: _described(v) if dataclasses.is_dataclass(v) else plain(v) for n, v in values.items()}
    return {"name": name, "settings": settings}


def plain(value: object) -> Json:
    """Return a setting as plain data, or raise TypeError.

    Examples
    --------
    >>> plain((1, np.float64(0.5), float("inf")))
    [1, 0.5, 'inf']
    """
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no infinity
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Job):
        return settings_of(value)
    if isinstance(value, Seeds):
        return {"root": value.root, "place": value.place}
    raise InvalidTypeError(f"{value!r} is not plain data")


def write_parquet(path: str | os.PathLike[str], results: Sequence[Result]) -> None:
    """Write results as one table, whole or not at all.

    Examples
    --------
    >>> import tempfile
    >>> curves = Curves(np.array([[1.0, 4.0]]), np.zeros((1, 2)), np.ones((1, 2), dtype=np.int64))
    >>> result = Result(settings={"seed": 1}, runs=np.arange(1), steps=np.array([1, 10]), curves=curves)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_parquet(f"{folder}/results.parquet", [result])
    ...     read_parquet(f"{folder}/results.parquet")[0].at(10)
    array([4.])
    """
    pa, pq = load_pyarrow()
    columns = [np.concatenate(parts) for parts in zip(*map(_columns, range(len(results)), results), strict=True)]
    described = json.dumps([result.settings for result in results], sort_keys=True, allow_nan=False)
    table = pa.table(dict(zip(COLUMNS, columns, strict=True)), metadata={"armlet": described})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    write_atomically(Path(path), [sink.getvalue().to_pybytes()])


def read_parquet(path: str | os.PathLike[str]) -> list[Result]:
    """Read back what `write_parquet` was given."""
    _, pq = load_pyarrow()
    table = pq.read_table(path)
    try:
        settings = json.loads(table.schema.metadata[b"armlet"])
    except (KeyError, TypeError) as error:
        raise InvalidValueError(f"{os.fspath(path)} is a table, but none of Armlet's results") from error
    columns = {name: table.column(name).to_numpy() for name in COLUMNS}
    return [_result(described, columns, columns["job"] == job) for job, described in enumerate(settings)]


def _columns(job: int, result: Result) -> list[np.ndarray[Any, Any]]:
    n, c = len(result.runs), len(result.steps)
    where = [np.full(n * c, job), np.repeat(result.runs, c), np.tile(result.steps, n)]
    return where + [curve.ravel() for curve in result.curves]


def _result(settings: Settings, columns: Mapping[str, np.ndarray[Any, Any]], mine: np.ndarray[Any, Any]) -> Result:
    runs, steps = (np.unique(columns[name][mine]) for name in ("run", "step"))
    regret, exploring, explored = (columns[name][mine].reshape(len(runs), len(steps)) for name in COLUMNS[3:])
    return Result(settings=settings, runs=runs, steps=steps, curves=Curves(regret, exploring, explored))


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
