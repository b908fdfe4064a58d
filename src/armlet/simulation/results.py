"""What simulations found: the regret of every run at its checkpoints, in memory and as a Parquet table.

The table has one row for each job, run and checkpoint, and the settings of the jobs in its metadata. It holds no times
and no names of machines: the same settings give the same bytes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from armlet.disk import write_atomically
from armlet.errors import InvalidTypeError, InvalidValueError, UnknownNameError
from armlet.inference.intervals import Estimate, bootstrap
from armlet.log.tables import load_pyarrow
from armlet.model_file.encoding import Json
from armlet.parallel.seeds import Seeds
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
        """Give the regret of every run at one checkpoint, (n,)."""
        found = np.flatnonzero(self.steps == step)
        if not found.size:
            raise UnknownNameError(f"step {step} is no checkpoint; there are {self.steps.tolist()}")
        column: Float64 = self.regret[:, found[0]]
        return column

    def estimate(self, step: int) -> Estimate:
        """Give the mean regret at one checkpoint with its bootstrap interval over runs; exact if there is but one."""
        values = self.at(step)
        if len(values) == 1:
            return Estimate(float(values[0]), float(values[0]), float(values[0]))
        return bootstrap(lambda values: values.mean(-1), values, rng=self.rng("regret interval", step))

    def rng(self, word: str, *which: int | str) -> np.random.Generator:
        """Give the randomness of an interval: the same wherever it is shown, so that it is the same interval."""
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
    >>> world = FigureA(theta=((1.0, 0.0), (0.0, 1.0)))
    >>> job = Job(world=world, policy=Uniform(), horizon=4, runs=2, seed=1, method="python")
    >>> settings_of(job)["policy"]
    {'name': 'Uniform', 'settings': {'ridge': 'paper'}}
    """
    return {
        "world": _described(job.world),
        "policy": _described(job.policy),
        "horizon": job.horizon,
        "runs": job.runs,
        "seed": job.seed,
        "checkpoints": list(job.checkpoints),
        "method": job.method,
    }


def _described(thing: object) -> Json:
    """Give the name and settings; settings are None if they are not plain data."""
    name, settings = type(thing).__name__, None
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        with contextlib.suppress(TypeError):
            values = {field.name: getattr(thing, field.name) for field in dataclasses.fields(thing)}
            # a setting may be a world itself, whose name tells as much as its settings
            settings = {n: _described(v) if dataclasses.is_dataclass(v) else plain(v) for n, v in values.items()}
    return {"name": name, "settings": settings}


def plain(value: object) -> Json:
    """Give a setting as plain data, or raise TypeError.

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
