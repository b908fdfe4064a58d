"""Rows of a compacted log as the lines that they were made of, by the kernel; and blocks of events as such rows.

Whatever columns cannot tell is an `UnclearError`: the reader of rows takes such a log. The lines are read again by
`BlockReader`, whose check values prove them. Needs pyarrow. O(bytes), about 2 us a row.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np

from armlet.errors import LogError
from armlet.kernel import json_bytes, write_events
from armlet.record.block import DECIDE, LEARN, OTHER, Block
from armlet.record.kinds import EXPLORATION
from armlet.record.parquet import Layout
from armlet.types import Bool, Float64, Int64

Columns = dict[str, Any]
Other = tuple[int, bytes]
"""The number and the line of an event without columns."""

_REWARD: Final = ("id", "learned_seq", "rewarded_at", "learned_crc", "weight", "reward", "first_reward")


class UnclearError(LogError):
    """Columns do not say what the lines were."""


class BatchWriter:
    """Writes the lines of batches of rows, each with those of the events in between that have no row.

    Parameters
    ----------
    layout
        How events became rows.
    others
        The lines of events that have no row.
    """

    def __init__(self, layout: Layout, others: Iterable[bytes]) -> None:
        if layout.outcomes:
            raise UnclearError("rewards are made of outcomes")
        self._layout = layout
        self._others = ((_number(line), line) for line in others)
        self._next: Other | None = next(self._others, None)
        self._rewards: Any = None  # as a table, those that come after the rows so far
        self._seq = 0  # of the next event

    def lines(self, batches: Iterable[Any]) -> Iterator[bytes]:
        """Yield the lines of all events, many at a time."""
        batch = None
        for batch in batches:
            seqs = batch.column("seq").to_numpy()
            if len(seqs):
                self._add_rewards(batch)
                yield self._write(batch, int(seqs[-1]) + 1)
        if batch is not None or self._next is not None:
            yield self._write(None if batch is None else batch.slice(0, 0), None)

    def _add_rewards(self, batch: Any) -> None:
        pa = importlib.import_module("pyarrow")
        has_reward = batch.column("learned_crc").is_valid()
        rows = pa.Table.from_batches([batch.select(list(_REWARD)).filter(has_reward)])
        self._rewards = rows if self._rewards is None else pa.concat_tables([self._rewards, rows])

    def _write(self, batch: Any, end: int | None) -> bytes:
        """Return the lines of events up to number `end`, which is not among them; of all that are left, if None."""
        pc = importlib.import_module("pyarrow.compute")
        others = self._take_others(end)
        if batch is None:
            raise UnclearError("there are no rows")
        has_line = batch.column("line").is_valid()
        if pc.any(has_line).as_py():
            others += _lines_of_rows(batch.filter(has_line))
            others.sort()
            batch = batch.filter(pc.invert(has_line))
        rewards = self._rewards
        if end is not None:
            due = pc.less(rewards.column("learned_seq"), end)
            rewards, self._rewards = rewards.filter(due), rewards.filter(pc.invert(due))
        rewards = rewards.sort_by("learned_seq").combine_chunks()
        columns, rewarded = decision_columns(batch, self._layout), _reward_columns(rewards)
        seqs = (np.array([seq for seq, _ in others], np.int64), columns["seq"], rewarded["seq"])
        all_seqs = np.concatenate(seqs)
        order = np.argsort(all_seqs, kind="stable")
        if not np.array_equal(all_seqs[order], np.arange(self._seq, self._seq + len(order))):
            raise UnclearError("an event is missing, or there twice")
        self._seq += len(order)
        kinds = np.repeat(np.array([OTHER, DECIDE, LEARN], np.int8), [*map(len, seqs)])[order]
        is_of_actions = self._layout.action_dim is not None
        return write_events(kinds, columns, rewarded, [line for _, line in others], is_of_actions)

    def _take_others(self, end: int | None) -> list[Other]:
        some: list[Other] = []
        while self._next is not None and (end is None or self._next[0] < end):
            some.append(self._next)
            self._next = next(self._others, None)
        return some


def _number(line: bytes) -> int:
    head, _, _ = line.partition(b",")
    if not head.startswith(b'{"seq":') or not head[7:].isdigit() or len(head) > 26:
        raise UnclearError("a line has no number")
    return int(head[7:])


def _lines_of_rows(batch: Any) -> list[Other]:
    """Return the lines of rows that have some, which must be those of the decisions in these rows."""
    others = list(zip(batch.column("seq").to_pylist(), batch.column("line").to_pylist(), strict=True))
    if not all(line.startswith(b'{"seq":%d,"kind":"decide",' % seq) for seq, line in others):
        raise UnclearError("a row holds the line of another event")
    return others


# ---- columns of Arrow's as arrays


def decision_columns(batch: Any, layout: Layout) -> Columns:
    """Return the columns of decisions as those of a `Block`, but for ids, labels and texts, which are JSON here."""
    n = batch.num_rows
    labels, texts = _Places(layout.labels == "json"), _Places()
    columns: Columns = {
        "seq": _whole(batch.column("seq")),
        "at": _whole(batch.column("decided_at")),
        "crc": batch.column("crc").to_numpy(zero_copy_only=False).astype(np.uint32),
        **_id_columns(batch.column("id")),
        **{name: _whole(batch.column(name)) for name in ("t", "tag")},
        **{name: _numbers(batch.column(name)) for name in ("propensity", *EXPLORATION)},
        **{name: _truths(batch.column(name)) for name in ("explored", "optimistic", "greedy")},
        **{name: texts.of(batch.column(name)) for name in ("design", "unit", "event")},
        "epoch": _whole(batch.column("epoch"), -1),
        "arm": labels.of(batch.column("arm")),
    }
    columns["X"], columns["has_x"] = _vectors(batch, "x", layout)
    columns["eligible"], columns["eligible_ends"] = labels.of_lists(batch.column("eligible"))
    columns["probabilities"], columns["probabilities_ends"] = _lists(batch.column("probabilities"))
    if layout.action_dim is None:
        none = np.zeros(0, np.int64)
        columns |= {"Z": np.zeros((0, 0)), "has_z": np.zeros(0, np.bool_), "n_actions": none, "support_ends": none}
        columns |= {"actions": none.astype(np.int32), "support": none.astype(np.int32), "support_chances": np.zeros(0)}
    else:
        columns["Z"], columns["has_z"] = _vectors(batch, "z", layout)
        columns |= {"actions": texts.of(batch.column("actions")), "n_actions": _whole(batch.column("n_actions"))}
        columns["support"], columns["support_ends"] = labels.of_lists(batch.column("support"))
        columns["support_chances"], ends = _lists(batch.column("support_probabilities"))
        if not np.array_equal(ends, columns["support_ends"]):
            raise UnclearError("support has not as many labels as probabilities")
    if len(columns["X"]) != n or min(columns["arm"], default=0) < 0:
        raise UnclearError("a decision has no arm")
    return columns | {"labels": labels.json, "texts": texts.json}


def _reward_columns(rewards: Any) -> Columns:
    pc = importlib.import_module("pyarrow.compute")
    first = pc.coalesce(rewards.column("first_reward"), rewards.column("reward"))
    return {
        "seq": _whole(rewards.column("learned_seq")),
        "at": _whole(rewards.column("rewarded_at")),
        "crc": rewards.column("learned_crc").to_numpy().astype(np.uint32),
        **_id_columns(rewards.column("id")),
        "reward": first.to_numpy(),
        "weight": rewards.column("weight").to_numpy(),
    }


def _whole(column: Any, null: int | None = None) -> Int64:
    if column.null_count and null is None:
        raise UnclearError("a number is missing")
    filled = column.fill_null(null) if column.null_count else column
    return np.ascontiguousarray(filled.cast("int64").to_numpy(), np.int64)


def _numbers(column: Any) -> Float64:
    values: Float64 = np.ascontiguousarray(column.to_numpy(zero_copy_only=False), np.float64)
    if np.isnan(values).sum() != column.null_count:
        raise UnclearError("a number is not finite")
    return values


def _truths(column: Any) -> Any:
    return column.cast("int8").fill_null(-1).to_numpy(zero_copy_only=False)


def _id_columns(column: Any) -> Columns:
    """Return texts as bytes, one after the other, and where they end."""
    pa = importlib.import_module("pyarrow")
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    _, ends, data = whole.cast(pa.large_string()).buffers()
    at = np.frombuffer(ends, np.int64)[whole.offset :][: len(whole) + 1] if len(whole) else np.zeros(1, np.int64)
    return {"id": np.frombuffer(data or b"", np.uint8), "id_ends": np.ascontiguousarray(at)}


def _ends(column: Any) -> Int64:
    """Return where lists end, and begin; empty ones are those that are null."""
    pc = importlib.import_module("pyarrow.compute")
    lengths = pc.list_value_length(column).fill_null(0).to_numpy().astype(np.int64)
    if (lengths == 0).sum() != column.null_count:
        raise UnclearError("a list is empty")
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


def _lists(column: Any) -> tuple[Float64, Int64]:
    return _numbers(column.flatten()), _ends(column)


def _vectors(batch: Any, name: str, layout: Layout) -> tuple[Float64, Bool]:
    """Return vectors as a matrix, with zeros where they are null, and where they are not."""
    dim = layout.dim if name == "x" else layout.action_dim or 0
    n = batch.num_rows
    if layout.contexts == "columns":
        columns = [batch.column(f"{name}.{feature}") for feature in layout.features_of(name)]
        has = columns[0].is_valid().to_numpy(zero_copy_only=False) if columns else np.ones(n, np.bool_)
        if any(column.null_count != n - has.sum() for column in columns):
            raise UnclearError(f"a part of {name} is missing")
        return np.column_stack([np.where(has, _numbers(column), 0.0) for column in columns] or [np.zeros((n, 0))]), has
    column = batch.column(name)
    has = column.is_valid().to_numpy(zero_copy_only=False)
    if name == "x":
        data = np.frombuffer(column.buffers()[1], "<f8").reshape(-1, dim)[column.offset :][:n]
        return (data if has.all() else np.where(has[:, None], data, 0.0)), has
    ends = _ends(column) if dim else None
    if ends is None or not np.isin(np.diff(ends), (0, dim)).all():
        raise UnclearError(f"{name} has another number of values")
    matrix = np.zeros((n, dim))
    matrix[has] = _numbers(column.flatten()).reshape(-1, dim)
    return matrix, has


class _Places:
    """The values of columns as places in one dictionary of JSON."""

    def __init__(self, is_json: bool = False) -> None:
        self.json: list[bytes] = []
        self._is_json = is_json

    def of(self, column: Any) -> Any:
        """Return the places of values, -1 where they are null."""
        pa = importlib.import_module("pyarrow")
        if column.null_count == len(column):
            return np.full(len(column), -1, np.int32)
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        places = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
        places[places >= 0] += len(self.json)
        for value in encoded.dictionary.to_pylist():
            self.json.append(json_bytes(json.loads(value) if self._is_json else value))
        return places

    def of_lists(self, column: Any) -> tuple[Any, Int64]:
        """Return the places of values in lists, and where those end."""
        return self.of(column.flatten()), _ends(column)


# ---- arrays as columns of Arrow's


def rows_of(block: Block, layout: Layout, schema: Any) -> Any:
    """Return a table of the decisions of a block, in which nothing is known of their rewards.

    Words are texts in it: where a dictionary is shared, and by which rows, is for the writer to say.
    """
    pa = importlib.import_module("pyarrow")
    n, places = len(block.t), block.places(DECIDE)
    if n == 0:
        return schema.empty_table()
    labels = pa.array([layout.written_label(label) for label in block.labels], schema.field("arm").type)
    texts = pa.array(block.texts, pa.string())
    columns: Columns = {
        "id": _ids(block.t, block.mark),
        "seq": pa.array(places + block.first),
        "decided_at": pa.array(block.at[places]).cast(schema.field("decided_at").type),
        "crc": pa.array(block.crc[places]),
        **{name: pa.array(getattr(block, name)) for name in ("t", "tag", "propensity")},
        **{name: pa.array(getattr(block, name), from_pandas=True) for name in EXPLORATION},
        **{name: _boolean(getattr(block, name)) for name in ("explored", "optimistic", "greedy")},
        **{name: _taken(texts, getattr(block, name)) for name in ("design", "unit", "event")},
        "epoch": pa.array(block.epoch, mask=block.epoch < 0),
        "arm": _taken(labels, block.arm),
        "eligible": _list_column(_taken(labels, block.eligible), block.eligible_ends),
        "probabilities": _list_column(pa.array(block.probabilities), block.probabilities_ends),
        **_vector_columns("x", block.X, block.has_x, layout),
    }
    if layout.action_dim is not None:
        columns |= {"actions": _taken(texts, block.actions), "n_actions": pa.array(block.n_actions)}
        columns["support"] = _list_column(_taken(labels, block.support), block.support_ends)
        columns["support_probabilities"] = _list_column(pa.array(block.support_chances), block.support_ends)
        columns |= _vector_columns("z", block.Z, block.has_z, layout)
    nothing = {name: pa.nulls(n, schema.field(name).type) for name in schema.names if name not in columns}
    return pa.table([(columns | nothing)[name] for name in schema.names], schema=schema)


def _ids(t: Int64, mark: Any) -> Any:
    pa, pc = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.compute")
    halves = mark.astype(">u8").view(np.uint8)[:, None] >> np.array([4, 0], np.uint8) & 15
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)[halves]
    marks = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(t), [None, pa.py_buffer(digits.tobytes())])
    return pc.binary_join_element_wise(pa.array(t).cast(pa.string()), marks.cast(pa.binary()).cast(pa.string()), "-")


def _boolean(values: Any) -> Any:
    return importlib.import_module("pyarrow").array(values == 1, mask=values < 0)


def _taken(values: Any, places: Any) -> Any:
    pa = importlib.import_module("pyarrow")
    return values.take(pa.array(places, mask=places < 0))


def _list_column(values: Any, ends: Int64) -> Any:
    """Return lists as a column, in which empty ones are null."""
    pa = importlib.import_module("pyarrow")
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), values, mask=pa.array(np.diff(ends) == 0))


def _vector_columns(name: str, values: Float64, has: Bool, layout: Layout) -> Columns:
    pa = importlib.import_module("pyarrow")
    if layout.contexts == "columns":
        return {
            f"{name}.{feature}": pa.array(values[:, place], mask=~has)
            for place, feature in enumerate(layout.features_of(name))
        }
    if name == "x":
        valid = None if has.all() else pa.py_buffer(np.packbits(has, bitorder="little"))
        buffers = [valid, pa.py_buffer(np.ascontiguousarray(values, "<f8"))]
        return {name: pa.FixedSizeBinaryArray.from_buffers(pa.binary(8 * layout.dim), len(has), buffers)}
    ends = np.arange(len(has) + 1, dtype=np.int32) * values.shape[1]
    column = pa.ListArray.from_arrays(pa.array(ends), pa.array(values.ravel()), mask=pa.array(~has))
    return {name: column}
