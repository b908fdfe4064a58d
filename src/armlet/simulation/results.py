"""What simulations found: the regret of every run at its checkpoints, in memory and as a table, and how fast it grows.

The table has a row for each job, run and checkpoint, and the settings of the jobs in its metadata; no times and no
names of machines: the same settings give the same bytes.

Growth is what "logarithmic" in Section 6 is judged by. The steps of one run depend on each other, so the standard error
of a line fitted through a curve means nothing: every interval here is a percentile bootstrap over whole runs.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from armlet.disk import write_atomically
from armlet.errors import InvalidValueError, UnknownNameError, load_pyarrow
from armlet.inference.intervals import bootstrap
from armlet.parallel import Seeds
from armlet.simulation.play import PLACE, Curves, Settings
from armlet.types import Array, Estimate, Float64, Int64

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
        places = np.flatnonzero(self.steps == step)
        if not places.size:
            raise UnknownNameError(f"step {step} is no checkpoint; there are {self.steps.tolist()}")
        column: Float64 = self.regret[:, places[0]]
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


def _columns(job: int, result: Result) -> list[Array]:
    n, c = len(result.runs), len(result.steps)
    where = [np.full(n * c, job), np.repeat(result.runs, c), np.tile(result.steps, n)]
    return where + [curve.ravel() for curve in result.curves]


def _result(settings: Settings, columns: Mapping[str, Array], mine: Array) -> Result:
    runs, steps = (np.unique(columns[name][mine]) for name in ("run", "step"))
    regret, exploring, explored = (columns[name][mine].reshape(len(runs), len(steps)) for name in COLUMNS[3:])
    return Result(settings=settings, runs=runs, steps=steps, curves=Curves(regret, exploring, explored))
