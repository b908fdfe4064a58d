"""The rows of a compacted log, read column by column, as they lie.

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
from armlet.evaluation.paid import Paid, widen_range
from armlet.evaluation.provenance import micros
from armlet.evaluation.rows import BLOCK, Blocks, Rows, without_erased
from armlet.evaluation.units import unit_codes
from armlet.inputs.columns import LARGEST
from armlet.log.parquet import side_lines
from armlet.log.tables import open_file
from armlet.record.arms import Roster
from armlet.record.faults import reading
from armlet.record.jsonl import parse
from armlet.record.kinds import ARM_CHANGES, EXPLORATION
from armlet.record.outcomes import PART
from armlet.record.parquet import read_metadata
from armlet.record.values import Event
from armlet.types import Bool, Float64, Int64

_NUMBERS: Final = ("propensity", *EXPLORATION, "reward")
_COLUMNS: Final = ("t", "seq", "arm", "eligible", "explored", "greedy", "design", "probabilities", "weight", *_NUMBERS)
_BATCH: Final = 2**14


class CompactedBlocks(Blocks):
    """The rows of a log that `armlet.log.compact` wrote; if arms came or went, the file next to it is read too."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        with reading(self._path.name), open_file(self._path) as file:
            about, self._layout = read_metadata(file.schema_arrow, self._path.name)
            sizes = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
            self.name, self.period = self._path.name, _stated_period(file)
            self._units = _has_values(file, "unit")
            self._parts = [name for name in file.schema_arrow.names if name.startswith(PART)]
        super().__init__(about)
        self._groups = list(_runs(sizes))
        self.n = sum(sizes)
        roster = Roster(about)
        self._eras = _eras(self._path, roster, self.about)
        self.arms = tuple(roster.labels)

    @property
    def has_units(self) -> bool:
        """Whether a row names a unit."""
        return self._units

    def __len__(self) -> int:
        return len(self._groups)

    def _read(self, block: int) -> Rows:
        with reading(self._path.name):
            return self._block(block)

    def _block(self, block: int) -> Rows:
        names = [*_COLUMNS, *self._x_names(), *self._parts, *(("unit", "epoch") if self._units else ())]
        with open_file(self._path, ["arm"] if self._layout.labels != "int" else []) as file:
            options = {"batch_size": _BATCH, "row_groups": self._groups[block], "columns": names}
            parts = [self._columns(batch) for batch in file.iter_batches(**options, use_threads=False)]
        probabilities = [part.pop("probabilities") for part in parts]
        columns: dict[str, Any] = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        columns["probabilities"] = None
        if any(each is not None for each in probabilities):
            filled = [
                np.full((len(part["t"]), len(self.arms)), np.nan) if each is None else each
                for each, part in zip(probabilities, parts, strict=True)
            ]
            columns["probabilities"] = np.concatenate(filled)
        if self._parts:
            columns["outcomes"] = {name.removeprefix(PART): columns.pop(name) for name in self._parts}
        return Rows(**without_erased(columns))

    def _x_names(self) -> list[str]:
        return ["x"] if self._layout.contexts == "binary" else [f"x.{name}" for name in self._layout.features]

    def _columns(self, batch: Any) -> dict[str, Any]:
        name = self._path.name
        for column in ("seq", "t", "propensity"):
            if batch.column(column).null_count:
                raise LogError(f"{name} has a row without {column}; read the log that it was made from")
        seq = _whole(batch.column("seq"))
        columns: dict[str, Any] = {each: _floats(batch.column(each), np.nan) for each in _NUMBERS}
        for each in ("explored", "greedy"):
            columns[each] = batch.column(each).cast("int8").fill_null(-1).to_numpy(zero_copy_only=False)
        columns["arm"] = self._places(batch.column("arm"))
        columns |= {"t": _whole(batch.column("t")), "weight": _floats(batch.column("weight"), 1.0)}
        columns["weight"][np.isnan(columns["reward"])] = 1.0
        columns["turn"] = _is_turn(batch.column("design"))
        columns |= {each: _floats(batch.column(each), np.nan) for each in self._parts}
        if self._units:
            units, epochs = batch.column("unit"), batch.column("epoch")
            columns["unit"] = unit_codes(units.to_pylist(), epochs.to_pylist(), columns["t"])
            columns["epoch"] = _whole(epochs.fill_null(-1))
        _check_ranges(columns, name)
        columns["X"] = self._contexts(batch)
        if (np.abs(columns["X"]) > LARGEST).any():
            raise LogError(f"{name} has a context beyond 1e40; read the log that it was made from")
        columns["eligible"] = self._eligible(batch.column("eligible"), seq)
        columns["probabilities"] = self._probabilities(batch.column("probabilities"), seq)
        return columns

    def _contexts(self, batch: Any) -> Float64:
        if self._layout.contexts == "columns":
            return np.column_stack([_floats(batch.column(name), np.nan) for name in self._x_names()])
        column, dim = batch.column("x"), self._layout.dim
        data = np.frombuffer(column.buffers()[1], "<f8", len(column) * dim, column.offset * dim * 8)
        X = data.reshape(len(column), dim).astype(np.float64)
        X[np.asarray(column.is_null())] = np.nan
        return X

    def _places(self, column: Any) -> Int64:
        """Return labels as indices of arms."""
        name = self._path.name
        if column.null_count:
            raise LogError(f"{name} has a row without an arm; read the log that it was made from")
        known = {label: place for place, label in enumerate(self.arms)}
        coded = column if hasattr(column, "dictionary") else column.dictionary_encode()
        labels = coded.dictionary.to_pylist()
        if self._layout.labels == "json":
            labels = [json.loads(label) for label in labels]
        places = np.array([known.get(label, -1) for label in labels], dtype=np.int64)
        by_row: Int64 = places[coded.indices.to_numpy(zero_copy_only=False)] if len(labels) else places
        if (by_row < 0).any():
            unknown = labels[int(np.flatnonzero(places < 0)[0])]
            raise LogError(f"{name} names arm {unknown!r}, which the log does not have")
        return by_row

    def _eligible(self, column: Any, seq: Int64) -> Bool:
        plays = np.zeros((len(column), len(self.arms)), dtype=np.bool_)
        stated = ~np.asarray(column.is_null())
        for rows, roster in self._by_era(seq):
            active = roster.active()
            plays[rows, : len(active)] = active
        if stated.any():
            lengths = np.asarray(column.value_lengths().fill_null(0))
            plays[stated] = False
            plays[np.repeat(np.arange(len(column)), lengths), self._places(column.flatten())] = True
        return plays

    def _probabilities(self, column: Any, seq: Int64) -> Float64 | None:
        stated = ~np.asarray(column.is_null())
        if not stated.any():
            return None
        out = np.full((len(column), len(self.arms)), np.nan)
        out[stated] = 0.0
        lengths = np.asarray(column.value_lengths().fill_null(0)).astype(np.int64)
        values = _floats(column.flatten(), np.nan)
        starts = np.cumsum(lengths) - lengths
        for rows, roster in self._by_era(seq):
            some = np.arange(len(column))[rows]
            some = some[stated[some]]
            order = roster.order
            out[some[:, None], order] = values[starts[some][:, None] + np.arange(len(order))]
        return out

    def _by_era(self, seq: Int64) -> Iterator[tuple[slice, Roster]]:
        """Yield rows between which arms did not change, with the roster of that time."""
        cuts = np.searchsorted(seq, [begin for begin, _ in self._eras])
        ends = [*cuts[1:].tolist(), len(seq)]
        for begin, end, (_, roster) in zip(cuts.tolist(), ends, self._eras, strict=True):
            if begin < end:
                yield slice(begin, end), roster


def _check_ranges(columns: dict[str, Any], name: str) -> None:
    """Refuse values that no event has; NaN stands for null, except for a propensity."""
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
    """Yield runs of row groups of at least a block's size, except for the last."""
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


def _eras(path: Path, roster: Roster, about: Event) -> list[tuple[int, Roster]]:
    """Return the arms as they were from the event of a number on, each time that they changed; declare all rewards."""
    eras, paid = [(0, copy.deepcopy(roster))], Paid(about)
    marks = [f'"kind":"{kind}"'.encode() for kind in (*ARM_CHANGES, "replace")]
    with reading(path.name):
        for line in side_lines(path, f"it says which arms came and went in {path.name}"):
            if any(mark in line[:60] for mark in marks):
                event = parse(line, None, path.name)
                widen_range(about, event)
                if "outcomes" in event:
                    paid.replace(event["outcomes"])
                if event["kind"] != "replace":
                    roster.apply(event)
                    eras.append((event["seq"], copy.deepcopy(roster)))
    return eras


def _whole(column: Any) -> Int64:
    return column.to_numpy(zero_copy_only=False).astype(np.int64)  # type: ignore[no-any-return]


def _floats(column: Any, missing: float) -> Float64:
    filled = column.fill_null(missing) if column.null_count else column
    return filled.to_numpy(zero_copy_only=False).astype(np.float64)  # type: ignore[no-any-return]


def _is_turn(column: Any) -> Bool:
    compute = importlib.import_module("pyarrow.compute")
    plain = column.dictionary_decode() if hasattr(column, "dictionary") else column
    return np.asarray(compute.equal(plain, "turn").fill_null(False)).astype(np.bool_)


def _stated_period(file: Any) -> tuple[int, int] | None:
    """Return the first and the last time by the statistics of row groups; None where there are none, or no times."""
    place = [file.metadata.schema.column(i).path for i in range(file.metadata.num_columns)].index("decided_at")
    stated = [file.metadata.row_group(i).column(place).statistics for i in range(file.metadata.num_row_groups)]
    if not stated or not all(each is not None and each.has_min_max for each in stated):
        return None
    first, last = (micros(each) for each in (min(s.min for s in stated), max(s.max for s in stated)))
    return (first, last) if last else None  # 0 where times are not known


def _has_values(file: Any, name: str) -> bool:
    """Whether a column has a value in any row."""
    if name not in file.schema_arrow.names:
        return False
    place = [file.metadata.schema.column(i).path for i in range(file.metadata.num_columns)].index(name)
    for group in range(file.metadata.num_row_groups):
        stated = file.metadata.row_group(group).column(place).statistics
        if stated is None or not stated.has_null_count or stated.null_count < file.metadata.row_group(group).num_rows:
            return True
    return False
