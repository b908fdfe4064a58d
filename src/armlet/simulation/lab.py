"""Where experiments and simulations are computed: their tasks on any engine, kept in a folder as they finish.

An experiment is settings, tasks made from them, and an analysis of what the tasks found. The lab does the rest: the
same tasks give the same arrays on any engine, and one that was found before is not computed again.

DIR/data/fig-a/play/*.armlet   finished tasks, each written whole or not at all; a killed run continues from them
DIR/data/fig-a/play.parquet    all of them at the end: a row for each task, its settings first, then its arrays as lists

Neither holds dates or names of machines: unless a task measures time, the same settings give the same bytes.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import numpy as np

from armlet.disk import Array, Json, read_model, write_atomically, write_model
from armlet.errors import ArmletError, InvalidTypeError, InvalidValueError, ModelFileError, load_pyarrow
from armlet.parallel import Pool, Progress, Seeds, make_pool, map_in_order, silent
from armlet.simulation.play import Job, Settings, plain, settings_of
from armlet.types import Float64, __version__

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


Arrays: TypeAlias = Mapping[str, Array]


def as_floats(array: Array) -> Float64:
    """Return an array of results as float64.

    Examples
    --------
    >>> as_floats(np.array([1, 2]))
    array([1., 2.])
    """
    return array.astype(np.float64)


class Shelf:
    """The data of one experiment or simulation, stage by stage.

    Parameters
    ----------
    folder
        DIR/data/NAME; made when something is kept.

    Examples
    --------
    >>> import tempfile
    >>> @dataclasses.dataclass(frozen=True)
    ... class Task:
    ...     p: float
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     shelf = Shelf(Path(folder))
    ...     shelf.keep("play", Task(24.0), {"regret": np.array([1.0, 2.0])})
    ...     shelf.close("play", [Task(24.0)], [{"regret": np.array([1.0, 2.0])}])
    ...     Shelf(Path(folder)).find("play", [Task(24.0), Task(60.0)])
    {0: {'regret': array([1., 2.])}}
    """

    def __init__(self, folder: Path) -> None:
        load_pyarrow()  # better now than after the computation
        self._folder = folder

    def find(self, stage: str, tasks: Sequence[DataclassInstance]) -> dict[int, Arrays]:
        """Return what is known already, by the index of the task."""
        known = self._read_table(stage, tasks) if self._table(stage).exists() else {}
        for index, task in enumerate(tasks):
            if index not in known and (arrays := self._read_chunk(stage, task)) is not None:
                known[index] = arrays
        return known

    def keep(self, stage: str, task: DataclassInstance, arrays: Arrays) -> None:
        """Keep what one task found, whole or not at all."""
        path = self._chunk(stage, task)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_model(path, {"task": _text(task)}, arrays)

    def close(self, stage: str, tasks: Sequence[DataclassInstance], results: Sequence[Arrays]) -> None:
        """Write all that a stage found as one table, which takes the place of the single tasks."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._write_table(stage, tasks, results)
        shutil.rmtree(self._folder / stage, ignore_errors=True)

    def is_open(self, stage: str) -> bool:
        """Return whether single tasks are kept that no table has taken the place of."""
        return (self._folder / stage).exists()

    def clear(self) -> None:
        """Forget everything."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _table(self, stage: str) -> Path:
        return self._folder / f"{stage}.parquet"

    def _chunk(self, stage: str, task: DataclassInstance) -> Path:
        return self._folder / stage / f"{hashlib.sha256(_text(task).encode()).hexdigest()[:24]}.armlet"

    def _write_table(self, stage: str, tasks: Sequence[DataclassInstance], results: Sequence[Arrays]) -> None:
        pa, pq = load_pyarrow()
        columns = _columns(tasks, results)
        table = pa.table(columns, metadata={"armlet": json.dumps([_text(task) for task in tasks])})
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd")
        write_atomically(self._table(stage), [sink.getvalue().to_pybytes()])

    def _read_table(self, stage: str, tasks: Sequence[DataclassInstance]) -> dict[int, Arrays]:
        _, pq = load_pyarrow()
        table = pq.read_table(self._table(stage))
        texts: list[str] = json.loads(table.schema.metadata[b"armlet"])
        names = [name for name in table.column_names if name.startswith(ARRAY)]
        rows = zip(*(table.column(name).to_pylist() for name in names), strict=True)
        short = [name.removeprefix(ARRAY) for name in names]
        known = {
            text: {name: np.array(value) for name, value in zip(short, row, strict=True)}
            for text, row in zip(texts, rows, strict=True)
        }
        return {index: known[text] for index, text in enumerate(map(_text, tasks)) if text in known}

    def _read_chunk(self, stage: str, task: DataclassInstance) -> Arrays | None:
        try:
            return read_model(self._chunk(stage, task))[1]
        except (FileNotFoundError, ModelFileError):  # a damaged file is computed again
            return None


ARRAY = "found."


def _text(task: DataclassInstance) -> str:
    """Tell a task from every other of its stage."""
    return json.dumps(_settings(task), sort_keys=True, allow_nan=False)


def _settings(task: DataclassInstance) -> dict[str, Json]:
    return {field.name: plain(getattr(task, field.name)) for field in dataclasses.fields(task)}


def _columns(tasks: Sequence[DataclassInstance], results: Sequence[Arrays]) -> dict[str, list[Json]]:
    settings = [_settings(task) for task in tasks]
    columns: dict[str, list[Json]] = {}
    for name in settings[0]:
        values = [each[name] for each in settings]
        # of one kind, or as text: an infinite number is a word here
        flat = any(all(value is None or isinstance(value, kind) for value in values) for kind in (str, int | float))
        columns[name] = values if flat else [json.dumps(value) for value in values]
    for name in results[0]:
        columns[ARRAY + name] = [np.asarray(each[name]).tolist() for each in results]
    return columns


Scale: TypeAlias = Literal["quick", "full"]
T = TypeVar("T", bound="DataclassInstance")


class Unfinished(ArmletError):  # noqa: N818 - it is a state of affairs
    """What an experiment needs has not been computed, and computing was not asked for."""


def _mute(_: str) -> Progress:
    return silent


def _one(_: object) -> int:
    return 1


class Lab:
    """Runs the tasks of one experiment, or of one simulation.

    Parameters
    ----------
    seed
        Of everything that is drawn; `rng` and `seeds` hand it out by word.
    name
        Of the experiment: those with different names draw differently, also for the same words.
    scale
        "quick" or "full": which of its settings the experiment takes.
    where
        The engine; this process if left out.
    shelf
        What keeps finished tasks; nothing is kept if left out.
    progress
        Receives what is being done and returns a `Progress` that reports how far it is; silent if left out.

    Examples
    --------
    >>> import dataclasses
    >>> import numpy as np
    >>> @dataclasses.dataclass(frozen=True)
    ... class Task:
    ...     number: int
    >>> def square(task: Task) -> Arrays:
    ...     return {"square": np.array([task.number**2])}
    >>> Lab(seed=1).map("squares", square, [Task(2), Task(3)])
    [{'square': array([4])}, {'square': array([9])}]
    """

    def __init__(
        self,
        *,
        seed: int,
        name: str = "",
        scale: Scale = "quick",
        where: Pool | None = None,
        shelf: Shelf | None = None,
        progress: Callable[[str], Progress] = _mute,
    ) -> None:
        self.seeds, self.scale = Seeds(seed, name), scale
        self._where, self._shelf, self._progress = where, shelf, progress

    def rng(self, word: str, *which: int | str) -> np.random.Generator:
        """Return the generator of a word, such as lab.rng("worlds", 3); tasks carry `seeds`, which give the same."""
        return self.seeds.rng(word, *which)

    def map(
        self,
        stage: str,
        function: Callable[[T], Arrays],
        tasks: Sequence[T],
        label: str = "",
        amount: Callable[[T], int] = _one,
    ) -> list[Arrays]:
        """Run a function over tasks and give what each found, in order.

        Parameters
        ----------
        stage
            Names the table that is kept; one word for each call within an experiment.
        function
            Importable by name; gives arrays of numbers that follow from the task alone.
        tasks
            Frozen dataclasses of plain data, each a few seconds of work at most, no two alike.
        label
            What is being done, for people to read.
        amount
            How much of the whole a task is, for the report of progress; one if left out.
        """
        return self._run(stage, function, tasks, label, self._where, amount)

    def alone(self, stage: str, function: Callable[[T], Arrays], tasks: Sequence[T], label: str = "") -> list[Arrays]:
        """Do the same in this process, one task after the other, while nothing else runs: for measuring time."""
        return self._run(stage, function, tasks, label, None)

    def _run(
        self,
        stage: str,
        function: Callable[[T], Arrays],
        tasks: Sequence[T],
        label: str,
        where: Pool | None,
        amount: Callable[[T], int] = _one,
    ) -> list[Arrays]:
        _check_tasks(stage, tasks)
        report = self._progress(label or stage)
        by_index = {} if self._shelf is None else self._shelf.find(stage, tasks)
        missing = [index for index in range(len(tasks)) if index not in by_index]
        done, total = sum(amount(tasks[index]) for index in by_index), sum(map(amount, tasks))
        report(done, total)

        def keep(place: int, arrays: Arrays) -> None:
            nonlocal done
            index = missing[place]
            by_index[index] = arrays
            if self._shelf is not None:
                self._shelf.keep(stage, tasks[index], arrays)
            done += amount(tasks[index])
            report(done, total)

        if missing:
            self._compute(function, [tasks[index] for index in missing], where, keep)
        results = [by_index[index] for index in range(len(tasks))]
        if self._shelf is not None and (missing or self._shelf.is_open(stage)):
            self._shelf.close(stage, tasks, results)
        return results

    def _compute(
        self,
        function: Callable[[T], Arrays],
        tasks: Sequence[T],
        where: Pool | None,
        keep: Callable[[int, Arrays], None],
    ) -> None:
        if where is None:
            with make_pool("serial") as here:
                map_in_order(function, tasks, here, keep)
        else:
            map_in_order(function, tasks, where, keep)


def _check_tasks(stage: str, tasks: Sequence[DataclassInstance]) -> None:
    first: dict[DataclassInstance, int] = {}
    for index, task in enumerate(tasks):
        if (before := first.setdefault(task, index)) != index:
            raise InvalidValueError(f"tasks {before} and {index} of stage {stage!r} are alike, {task}; give each once")


class Archive(Lab):
    """A lab that only looks up: what was not computed before is missing."""

    def _compute(
        self,
        function: Callable[[T], Arrays],  # noqa: ARG002
        tasks: Sequence[T],
        where: Pool | None,  # noqa: ARG002
        keep: Callable[[int, Arrays], None],  # noqa: ARG002
    ) -> None:
        raise Unfinished(f"tasks still to be computed: {len(tasks)}")


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
        self._manifest = self._start(engine)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._write()

    def stop(self, status: str) -> None:
        """Note how it ended, and when."""
        self._manifest["sessions"][-1]["seconds"] = round(time.monotonic() - self._began, 3)
        self._manifest["status"] = status
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
        text = json.dumps(self._manifest, indent=1, allow_nan=False)
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
    """Describe when, where and with what something is being computed."""
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
