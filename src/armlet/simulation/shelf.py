"""What tasks found, kept in a folder while they run and afterwards.

DIR/data/fig-a/play/*.armlet   finished tasks, each written whole or not at all; a run that was killed goes on from them
DIR/data/fig-a/play.parquet    all of them at the end: a row for each task, its settings first, then its arrays as lists

Neither holds dates or names of machines: unless a task measures time, the same settings give the same bytes.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from armlet.disk import write_atomically
from armlet.errors import ModelFileError
from armlet.log.tables import load_pyarrow
from armlet.model_file.encoding import Array, Json, read_model, write_model
from armlet.simulation.results import plain
from armlet.types import Float64

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Arrays: TypeAlias = Mapping[str, Array]


def as_floats(array: Array) -> Float64:
    """Give an array of results as float64.

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
        """Give what is known already, by the index of the task."""
        found = self._read_table(stage, tasks) if self._table(stage).exists() else {}
        for index, task in enumerate(tasks):
            if index not in found and (arrays := self._read_chunk(stage, task)) is not None:
                found[index] = arrays
        return found

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
        """Say whether single tasks are kept that no table has taken the place of."""
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
        kept: list[str] = json.loads(table.schema.metadata[b"armlet"])
        names = [name for name in table.column_names if name.startswith(ARRAY)]
        rows = zip(*(table.column(name).to_pylist() for name in names), strict=True)
        short = [name.removeprefix(ARRAY) for name in names]
        known = {
            text: {name: np.array(value) for name, value in zip(short, row, strict=True)}
            for text, row in zip(kept, rows, strict=True)
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
