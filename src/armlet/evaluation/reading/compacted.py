"""A compacted log as blocks of columns: what is read of a row group is turned into numpy as it lies there.

Blocks are runs of whole row groups, so that a worker reads its own and nothing else.
"""

from __future__ import annotations

import copy
import importlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from armlet.errors import LogError
from armlet.evaluation.reading.roster import CHANGES, Roster
from armlet.evaluation.rows import BLOCK, EXPLORATION, Blocks, Rows, without_erased
from armlet.inputs.columns import LARGEST
from armlet.log.faults import reading
from armlet.log.lines import parse
from armlet.log.parquet import read_metadata, side_lines
from armlet.log.rows import open_file
from armlet.types import Bool, Float64, Int64

_NUMBERS: Final = ("propensity", *EXPLORATION, "reward")
_COLUMNS: Final = ("t", "seq", "arm", "eligible", "explored", "greedy", "design", "probabilities", "weight", *_NUMBERS)
_BATCH: Final = 2**14


class CompactedBlocks(Blocks):
    """The rows of a log that `armlet.log.compact` wrote.

    Parameters
    ----------
    path
        Of the Parquet file; if arms came or went, what is beside it is read too.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        with reading(self._path.name), open_file(self._path) as file:
            about, self._layout = read_metadata(file.schema_arrow, self._path.name)
            sizes = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
        super().__init__(about)
        self._groups = list(_runs(sizes))
        self.n = sum(sizes)
        roster = Roster(about)
        self._eras = _eras(self._path, roster)
        self.arms = tuple(roster.labels)

    def __len__(self) -> int:
        return len(self._groups)

    def __getitem__(self, block: int) -> Rows:
        if not 0 <= block < len(self):
            raise IndexError(block)
        with reading(self._path.name):
            return self._block(block)

    def _block(self, block: int) -> Rows:
        names = [*_COLUMNS, *self._x_names()]
        with open_file(self._path, ["arm"] if self._layout.labels != "int" else []) as file:
            options = {"batch_size": _BATCH, "row_groups": self._groups[block], "columns": names}
            parts = [self._read(batch) for batch in file.iter_batches(**options, use_threads=False)]
        columns: dict[str, Any] = {
            name: np.concatenate([part[name] for part in parts]) for name in parts[0] if name != "probabilities"
        }
        chances = [part["probabilities"] for part in parts]
        columns["probabilities"] = None
        if any(each is not None for each in chances):
            shape = (len(self.arms),)
            columns["probabilities"] = np.concatenate(
                [
                    np.full((len(part["t"]), *shape), np.nan) if each is None else each
                    for each, part in zip(chances, parts, strict=True)
                ]
            )
        return Rows(**without_erased(columns))

    def _x_names(self) -> list[str]:
        return ["x"] if self._layout.contexts == "binary" else [f"x.{name}" for name in self._layout.features]

    def _read(self, batch: Any) -> dict[str, Any]:
        for name in ("seq", "t", "propensity"):
            if batch.column(name).null_count:
                raise LogError(f"{self._path.name} has a row without {name}; read the log that it was made from")
        seq = _whole(batch.column("seq"))
        arms = self._places(batch.column("arm"), self._path.name)
        columns: dict[str, Any] = {name: _floats(batch.column(name), np.nan) for name in _NUMBERS}
        columns |= {name: _truths(batch.column(name)) for name in ("explored", "greedy")}
        columns |= {"t": _whole(batch.column("t")), "arm": arms, "weight": _floats(batch.column("weight"), 1.0)}
        columns["weight"][np.isnan(columns["reward"])] = 1.0
        columns["turn"] = _is_turn(batch.column("design"))
        _check_ranges(columns, self._path.name)
        columns["X"] = self._contexts(batch)
        if (np.abs(columns["X"]) > LARGEST).any():
            raise LogError(f"{self._path.name} has a context beyond 1e40; read the log that it was made from")
        columns["eligible"] = self._eligible(batch.column("eligible"), seq)
        columns["probabilities"] = self._chances(batch.column("probabilities"), seq)
        return {EXPLORATION.get(name, name): column for name, column in columns.items()}

    def _contexts(self, batch: Any) -> Float64:
        names = self._x_names()
        if self._layout.contexts == "columns":
            return np.column_stack([_floats(batch.column(name), np.nan) for name in names])
        column, dim = batch.column("x"), self._layout.dim
        data = np.frombuffer(column.buffers()[1], "<f8", len(column) * dim, column.offset * dim * 8)
        X = data.reshape(len(column), dim).astype(np.float64)
        X[np.asarray(column.is_null())] = np.nan
        return X

    def _places(self, column: Any, name: str) -> Int64:
        """Give labels as indices of arms."""
        if column.null_count:
            raise LogError(f"{name} has a row without an arm; read the log that it was made from")
        known = {label: place for place, label in enumerate(self.arms)}
        coded = column if hasattr(column, "dictionary") else column.dictionary_encode()
        labels = coded.dictionary.to_pylist()
        if self._layout.labels == "json":
            labels = [json.loads(label) for label in labels]
        places = np.array([known.get(label, -1) for label in labels], dtype=np.int64)
        found: Int64 = places[coded.indices.to_numpy(zero_copy_only=False)] if len(labels) else places
        if (found < 0).any():
            unknown = labels[int(np.flatnonzero(places < 0)[0])]
            raise LogError(f"{name} names arm {unknown!r}, which the log does not have")
        return found

    def _eligible(self, column: Any, seq: Int64) -> Bool:
        plays = np.zeros((len(column), len(self.arms)), dtype=np.bool_)
        said = ~np.asarray(column.is_null())
        for rows, roster in self._by_era(seq):
            active = roster.active()
            plays[rows, : len(active)] = active
        if said.any():
            lengths = np.asarray(column.value_lengths().fill_null(0))
            plays[said] = False
            plays[np.repeat(np.arange(len(column)), lengths), self._places(column.flatten(), self._path.name)] = True
        return plays

    def _chances(self, column: Any, seq: Int64) -> Float64 | None:
        said = ~np.asarray(column.is_null())
        if not said.any():
            return None
        out = np.full((len(column), len(self.arms)), np.nan)
        out[said] = 0.0
        lengths = np.asarray(column.value_lengths().fill_null(0)).astype(np.int64)
        values = _floats(column.flatten(), np.nan)
        starts = np.cumsum(lengths) - lengths
        for rows, roster in self._by_era(seq):
            some = np.arange(len(column))[rows]
            some = some[said[some]]
            order = roster.order
            out[some[:, None], order] = values[starts[some][:, None] + np.arange(len(order))]
        return out

    def _by_era(self, seq: Int64) -> Iterator[tuple[slice, Roster]]:
        """Give rows between which arms did not change, and who was there."""
        cuts = np.searchsorted(seq, [begin for begin, _ in self._eras])
        ends = [*cuts[1:].tolist(), len(seq)]
        for begin, end, (_, roster) in zip(cuts.tolist(), ends, self._eras, strict=True):
            if begin < end:
                yield slice(begin, end), roster


def _check_ranges(columns: dict[str, Any], name: str) -> None:
    """Refuse values that no event has; NaN stands for null, but for a propensity."""
    wrong = {
        "propensity": ~((columns["propensity"] >= 0.0) & (columns["propensity"] <= 1.0)),
        **{each: (columns[each] < 0.0) | (columns[each] > 1.0) for each in EXPLORATION},
        "reward": np.abs(columns["reward"]) > LARGEST,
        "weight": ~((columns["weight"] > 0.0) & (columns["weight"] <= LARGEST)),
        "t": columns["t"] < 0,
    }
    for column, rows in wrong.items():
        if rows.any():
            value = columns[column][np.flatnonzero(rows)[0]]
            raise LogError(f"{name} has a row whose {column} is {value}; read the log that it was made from")


def _runs(sizes: list[int]) -> Iterator[list[int]]:
    """Give runs of row groups of a block's size at least, but for the last."""
    run: list[int] = []
    rows = 0
    for group, size in enumerate(sizes):
        run.append(group)
        rows += size
        if rows >= BLOCK:
            yield run
            run, rows = [], 0
    if rows:
        yield run


def _eras(path: Path, roster: Roster) -> list[tuple[int, Roster]]:
    """Give the arms as they were from the event of a number on, each time that they changed."""
    eras = [(0, copy.deepcopy(roster))]
    marks = [f'"kind":"{kind}"'.encode() for kind in CHANGES]
    with reading(path.name):
        for line in side_lines(path, f"it says which arms came and went in {path.name}"):
            if any(mark in line[:60] for mark in marks):
                event = parse(line, None, path.name)
                roster.happen(event)
                eras.append((event["seq"], copy.deepcopy(roster)))
    return eras


def _whole(column: Any) -> Int64:
    return column.to_numpy(zero_copy_only=False).astype(np.int64)  # type: ignore[no-any-return]


def _floats(column: Any, missing: float) -> Float64:
    filled = column.fill_null(missing) if column.null_count else column
    return filled.to_numpy(zero_copy_only=False).astype(np.float64)  # type: ignore[no-any-return]


def _truths(column: Any) -> Any:
    pa = importlib.import_module("pyarrow")
    return column.cast(pa.int8()).fill_null(-1).to_numpy(zero_copy_only=False)


def _is_turn(column: Any) -> Bool:
    compute = importlib.import_module("pyarrow.compute")
    plain = column.dictionary_decode() if hasattr(column, "dictionary") else column
    return np.asarray(compute.equal(plain, "turn").fill_null(False)).astype(np.bool_)
