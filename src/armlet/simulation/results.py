"""What simulations found: the regret of every run at its checkpoints, in memory, as a table, and as a folder.

DIR/manifest.json       settings, versions, machines, times
DIR/results/*.armlet    finished tasks, each written whole or not at all; a run that was killed continues from them
DIR/results.parquet     a row for each job, run and checkpoint, the settings of the jobs in its metadata; no times and
                        no names of machines: the same settings give the same bytes
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import platform
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from armlet.errors import ArmletError, InvalidTypeError, InvalidValueError, ModelFileError, UnknownNameError
from armlet.inference.means import Estimate, bootstrap
from armlet.log.tables import load_pyarrow
from armlet.model_file.disk import write_atomically
from armlet.model_file.encoding import Json, read_model
from armlet.parallel.seeds import Seeds
from armlet.simulation.play import PLACE, Curves, Job
from armlet.types import Float64, Int64
from armlet.version import __version__

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


FORMAT = 1


class ResultsError(ArmletError):
    """A folder holds results of something else, or none."""


def versions() -> dict[str, Json]:
    """Return the versions that numbers may depend on.

    Examples
    --------
    >>> sorted(versions())
    ['armlet', 'numpy']
    """
    return {"armlet": __version__, "numpy": np.__version__}


class Manifest:
    """DIR/manifest.json of some jobs; opening it again goes on where it stopped.

    Parameters
    ----------
    folder
        Made if it is not there. One that holds other jobs, or was written by other versions, is refused.
    jobs
        What is to be simulated.
    engine
        Where, for the record.
    """

    def __init__(self, folder: Path, jobs: Sequence[Job], *, engine: str) -> None:
        self.folder = folder
        self._jobs = [_storable(job) for job in jobs]
        self._began = time.monotonic()
        self._told = self._start(engine)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._write()

    def stop(self, status: str) -> None:
        """Note how it ended, and when."""
        self._told["sessions"][-1]["seconds"] = round(time.monotonic() - self._began, 3)
        self._told["status"] = status
        self._write()

    def _start(self, engine: str) -> dict[str, Any]:
        path = self.folder / "manifest.json"
        manifest = read_manifest(self.folder) if path.exists() else _fresh(self._jobs)
        if manifest["jobs"] != self._jobs:
            raise ResultsError(f"{self.folder} holds results of other settings ({self._difference(manifest['jobs'])})")
        for session in manifest["sessions"]:
            if session["versions"] | versions() != session["versions"]:
                was = ", ".join(f"{name} {session['versions'][name]}" for name in versions())
                raise ResultsError(f"{self.folder} was begun with {was}; go on with these, or choose another folder")
        manifest["status"] = "running"
        manifest["sessions"].append(new_session(engine))
        return manifest

    def _difference(self, jobs: list[Settings]) -> str:
        if len(jobs) != len(self._jobs):
            return f"{len(jobs)} jobs, not {len(self._jobs)}; choose another folder"
        ours, theirs = next((a, b) for a, b in zip(self._jobs, jobs, strict=True) if a != b)
        name = next(name for name in ours if ours[name] != theirs.get(name))
        return f"{name} is {theirs.get(name)!r:.80} there and {ours[name]!r:.80} here; choose another folder"

    def _write(self) -> None:
        text = json.dumps(self._told, indent=1, allow_nan=False)
        write_atomically(self.folder / "manifest.json", [text.encode(), b"\n"])


def _storable(job: Job) -> Settings:
    settings = settings_of(job)
    for name in ("environment", "policy"):
        match settings[name]:
            case {"name": kind, "settings": None}:
                raise InvalidTypeError(
                    f"{name} is a {kind}, no dataclass of plain data; a store cannot tell it from others"
                )
    return settings


def _fresh(jobs: Sequence[Settings]) -> dict[str, Any]:
    return {"format": FORMAT, "status": "running", "jobs": list(jobs), "sessions": []}


def new_session(engine: str) -> dict[str, Json]:
    """Say when, where and with what something is being computed."""
    machine: dict[str, Json] = {
        "system": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "processors": os.cpu_count(),
    }
    others = {name: _installed(name) for name in ("pyarrow", "distributed")}
    return {
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seconds": None,  # until it ends
        "engine": engine,
        "versions": {**versions(), "python": sys.version.split()[0], **others},
        "machine": machine,
    }


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def read_manifest(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Read what a folder says of itself."""
    path = Path(folder) / "manifest.json"
    try:
        manifest: dict[str, Any] = json.loads(path.read_bytes())
        if manifest["format"] == FORMAT:
            return manifest
    except FileNotFoundError:
        raise ResultsError(f"{folder} has no manifest.json, so it holds no results") from None
    except (ValueError, KeyError, TypeError):
        pass
    raise ResultsError(f"{path} is not a manifest that this version reads; choose another folder")


STAGE = "results"


def read(folder: str | os.PathLike[str]) -> list[Result]:
    """Read the results in a folder: of all jobs, or of the runs that were finished before an interrupt.

    Jobs of which no run is finished are left out.
    """
    manifest, table = read_manifest(folder), Path(folder) / f"{STAGE}.parquet"
    if table.exists():
        return read_parquet(table)
    tasks = sorted(_finished(Path(folder) / STAGE), key=lambda task: task[:2])
    found = []
    for job, settings in enumerate(manifest["jobs"]):
        mine = [(np.arange(first, first + len(curves.regret)), curves) for j, first, curves in tasks if j == job]
        if mine:
            runs = np.concatenate([numbers for numbers, _ in mine])
            steps = np.array(settings["checkpoints"], dtype=np.int64)
            found.append(Result(settings=settings, runs=runs, steps=steps, curves=joined([c for _, c in mine])))
    return found


def as_curves(arrays: Mapping[str, Any]) -> Curves:
    """Return what a task found as the curves that it was."""
    return Curves(arrays["regret"], arrays["exploring"], arrays["explored"])


def _finished(folder: Path) -> Iterator[tuple[int, int, Curves]]:
    for path in folder.glob("*.armlet"):
        try:
            header, arrays = read_model(path)
        except ModelFileError:
            continue
        task = json.loads(str(header["task"]))
        yield task["index"], task["first"], as_curves(arrays)
