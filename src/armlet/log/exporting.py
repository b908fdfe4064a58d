"""A log written again: as JSON lines to the last byte, as Parquet, or as a plain table. O(1) memory.

Parquet has one row a decision, with the reward that came for it, however late. It takes two passes: the first notes, in
files of their own, where the rewards of each decision are; the second writes rows.
"""

from __future__ import annotations

import contextlib
import gzip
import importlib
import json
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, Self, get_args

import numpy as np

from armlet.errors import ArgumentError, InvalidValueError, load_pyarrow
from armlet.log.parquet import events_beside
from armlet.log.reader import LogFile, Source, read
from armlet.record.arms import labels_of
from armlet.record.batches import rows_of
from armlet.record.block import DECIDE, LEARN, OTHER, Block
from armlet.record.events import Events
from armlet.record.faults import reading
from armlet.record.jsonl import carried, encode_checked
from armlet.record.kinds import KINDS, Compacted
from armlet.record.outcomes import Prices, parts_of
from armlet.record.parquet import Contexts, Labels, Layout, Rewarded, feature_names, names_of
from armlet.record.values import Event
from armlet.types import Arm, Bool, Float64, Int64

HIDDEN: Final = ("crc", "learned_crc", "line")  # what only the reader of a compacted log needs
ROWS: Final = 2**14  # rows of a group
_PARTS: Final = get_args(Compacted)
_DECISION, _FIRST, _LAST, _NOTE = range(4)
_KINDS: Final = {name.encode(): _PARTS.index(kind.compacted) for name, kind in KINDS.items() if kind.compacted}
_HEAD: Final = re.compile(rb'\{"seq":\d+,"kind":"(%b)","at":\d+,"id":"(\d+)-([0-9a-f]{16})"' % b"|".join(_KINDS))
_NAME: Final = np.dtype([("t", "<i8"), ("mark", "<u8")])
_NAME_AT: Final = np.dtype([*_NAME.descr, ("offset", "<i8")])
_FIRST_REWARD: Final = np.dtype([("seq", "<i8"), ("at", "<i8"), ("crc", "<u4"), ("reward", "<f8"), ("weight", "<f8")])
_HAPPENED: Final = np.dtype([*_NAME.descr, ("kind", "<i8"), ("offset", "<i8"), *_FIRST_REWARD.descr])
_VALUE: Final = np.dtype([("t", "<i8"), ("mark", "<u8"), ("place", "<i8"), ("value", "<f8")])
_CHUNK: Final = 2**18


def write(log: Source, target: str | os.PathLike[str], *, contexts: Contexts = "binary") -> Path:
    """Write a log again, by the ending of the target's name; return its path.

    Parameters
    ----------
    log
        A path, an `armlet.Log`, or `Events` of any origin.
    target
        .jsonl: all events, those of a log to the last byte. .parquet: compacted. .csv, .arrow or .feather: a table with
        one row a decision and one column a feature. It must not be there yet.
    contexts
        In Parquet: "binary", or "columns" for a column a feature.

    Examples
    --------
    >>> from armlet.log import from_obp
    >>> feedback = {"action": [1, 0], "reward": [0, 1], "pscore": [0.5, 0.5], "context": [[1.0], [2.0]]}
    >>> path = write(from_obp(feedback), Path(tempfile.mkdtemp()) / "feedback.jsonl")
    >>> len(list(read(path)))
    5
    """
    path, events = Path(target), read(log)
    if os.path.lexists(path):
        raise ArgumentError("{target} is {name}, which is there already; move it away", name=path.name)
    if path.suffix == ".jsonl":
        return _write_lines(events, path)
    if path.suffix not in (".parquet", ".csv", ".arrow", ".feather"):
        endings = ".jsonl, .parquet, .csv, .arrow or .feather"
        raise ArgumentError("{target} is {name}; give a name that ends in {endings}", name=path.name, endings=endings)
    name = getattr(events, "name", "the log")
    with reading(name, "exported"), tempfile.TemporaryDirectory(dir=path.parent, prefix=".armlet-") as folder:
        lines = events.path if isinstance(events, LogFile) else _write_lines(events, Path(folder) / "lines.jsonl")
        if path.suffix == ".parquet":
            return compact(lines, path, contexts=contexts)
        return _write_table(compact(lines, Path(folder) / "log.parquet", contexts="columns"), path)


def _write_lines(events: Events, path: Path) -> Path:
    crc, name = 0, getattr(events, "name", "the log")
    part = path.with_name(f".armlet-{os.urandom(8).hex()}.tmp")
    try:
        with part.open("xb", buffering=2**20) as file:
            for seq, event in enumerate(events):
                line, crc = encode_checked(event, seq, crc, name)
                file.write(line)
        return part.rename(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _write_table(source: Path, path: Path) -> Path:
    pa, pq = load_pyarrow()
    file = pq.ParquetFile(source)
    names = [name for name in file.schema_arrow.names if name not in HIDDEN]
    schema = pa.schema([_plain(file.schema_arrow.field(name), path.suffix) for name in names])
    part = source.with_name("table")
    with _writer(part, schema, path.suffix) as writer:
        for batch in file.iter_batches(columns=names):
            columns = [_as_text(batch.column(name), schema.field(name)) for name in names]
            writer.write_batch(pa.record_batch(columns, schema=schema))
    return part.rename(path)


def _plain(field: Any, suffix: str) -> Any:
    pa = importlib.import_module("pyarrow")
    flat = suffix == ".csv" and (pa.types.is_list(field.type) or pa.types.is_dictionary(field.type))
    return field.with_type(pa.string()) if flat else field


def _as_text(column: Any, field: Any) -> Any:
    pa = importlib.import_module("pyarrow")
    if column.type == field.type:
        return column
    if pa.types.is_dictionary(column.type):
        return column.cast(pa.string())
    texts = (None if value is None else " ".join(map(str, value)) for value in column.to_pylist())
    return pa.array(texts, pa.string())


@contextlib.contextmanager
def _writer(path: Path, schema: Any, suffix: str) -> Iterator[Any]:
    if suffix == ".csv":
        with importlib.import_module("pyarrow.csv").CSVWriter(path, schema) as writer:
            yield writer
    else:
        with importlib.import_module("pyarrow.ipc").new_file(path, schema) as writer:
            yield writer


# ---- Parquet


def compact(
    log: str | os.PathLike[str], target: str | os.PathLike[str] | None = None, *, contexts: Contexts = "binary"
) -> Path:
    """Write a log of JSON lines as Parquet, one row a decision; return the path.

    Events that are no decision and no plain reward go next to it, into a file that ends in .events.jsonl.gz: both
    together hold every line of the log, and `armlet log export` writes it again to the last byte.

    Parameters
    ----------
    log
        The log, which stays as it is.
    target
        Where to; the log's own name with the ending .parquet, if left out. It must not be there yet.
    contexts
        "binary": a context is one value, its float64s in a row. "columns": a column for each feature.
    """
    if contexts not in ("binary", "columns"):
        raise InvalidValueError(f"contexts is {contexts!r}; choose 'binary' or 'columns'")
    load_pyarrow()
    source = LogFile(log)
    path = Path(target) if target is not None else source.path.with_suffix(".parquet")
    if path.suffix != ".parquet":
        raise ArgumentError("{target} is {name}; give a name that ends in .parquet", name=path.name)
    for there in (path, events_beside(path)):
        if os.path.lexists(there):
            raise ArgumentError("{target} is {name}, which is there already; move it away", name=there.name)
    with reading(source.name, "compacted"), tempfile.TemporaryDirectory(dir=path.parent, prefix=".armlet-") as folder:
        _Compactor(source, Path(folder), contexts).write(path.name)
        beside = (Path(folder) / events_beside(path).name).rename(events_beside(path))
        try:
            (Path(folder) / path.name).rename(path)
        except BaseException:
            beside.unlink()  # it is of no use alone
            raise
    return path


class _Compactor:
    def __init__(self, source: LogFile, folder: Path, contexts: Contexts) -> None:
        self._source, self._folder, self._contexts = source, folder, contexts
        self._kinds: set[Labels] = set()
        self._prices: Prices | None = None
        self._end = 0

    def write(self, name: str) -> None:
        with Places(self._folder) as places, self._source.path.open("rb") as file:
            about = self._survey(places)
            layout = self._layout(about)
            beside = events_beside(self._folder / name)
            with (
                _RowWriter(self._folder / name, layout.schema(about)) as writer,
                gzip.GzipFile(beside, "wb", compresslevel=6, mtime=0) as side,
            ):
                offset = decisions = 0
                for block in self._source.blocks(self._end):
                    rows = _BlockRows(block, layout, places.part(block, offset, decisions), self._prices, file)
                    writer.add(rows.table(writer.schema))
                    side.write(rows.side())
                    offset, decisions = offset + len(block.lines), decisions + rows.n

    def _survey(self, places: Places) -> Event:
        about: Event = {}
        for block in self._source.blocks():
            about = about or block.others[0]
            is_of_outcomes = self._prices is not None  # where a plain reward is one of another kind of log
            for event in (event for _, event in block.with_lines()) if is_of_outcomes else block.others:
                _check_features(event, self._source.name)
                self._learn_outcomes(event, places)
                self._learn_kinds(event)
            for arm in np.unique(block.arm).tolist():
                self._kinds.add(_kind_of(block.labels[arm]))
            places.note(block, self._end)
            self._end += len(block.lines)
        places.settle()
        return about

    def _learn_outcomes(self, event: Event, places: Places) -> None:
        if event["kind"] == "start" and "outcomes" in event:
            self._prices = Prices(event)
            places.expect(names_of(event)[1])
        elif self._prices is not None:
            self._prices.take(event)
            places.note_parts(event)

    def _learn_kinds(self, event: Event) -> None:
        self._kinds |= {_kind_of(label) for label in labels_of(event)}

    def _layout(self, about: Event) -> Layout:
        dim = int(about["dim"])
        labels: Labels = next(iter(self._kinds)) if len(self._kinds) == 1 else "json"
        names, learned = names_of(about)
        return Layout(
            dim=dim,
            features=feature_names(about),
            labels=labels,
            contexts=self._contexts if dim else "columns",  # Parquet has no values of no bytes
            outcomes=names,
            learned=learned,
            action_dim=about.get("action_dim"),
            action_features=feature_names(about, "action_"),
        )


def _kind_of(label: Arm) -> Labels:
    if isinstance(label, str):
        return "str"
    return "int" if -(2**63) <= label < 2**63 else "json"


def _check_features(event: Event, name: str) -> None:
    """Refuse a log in which features are replaced: a table has the same columns in all rows."""
    if event["kind"] == "replace" and "features" in event:
        text = "{log} is {name}, in which features are replaced at event {seq:,}; write .jsonl, or evaluate it as it is"
        raise ArgumentError(text, name=name, seq=event["seq"])


def _event_at(file: Any, offset: int) -> Event:
    file.seek(offset)
    event: Event = json.loads(file.readline())
    return event


class _BlockRows:
    """What a block adds to a compacted log: rows, and lines that have none.

    A decision of which no more than one plain reward is known has its row from columns; that of any other is made from
    its events.
    """

    def __init__(self, block: Block, layout: Layout, part: _Part, prices: Prices | None, file: IO[bytes]) -> None:
        self._block, self._layout, self._part, self._prices, self._file = block, layout, part, prices, file
        kinds = np.array([event["kind"] == "decide" for event in block.others], np.bool_)
        self._decides = block.kind == DECIDE
        self._decides[block.places(OTHER)[kinds]] = True
        self._rows = np.cumsum(self._decides) - 1
        self.n = int(self._decides.sum())
        """Decisions of the block."""

    def table(self, schema: Any) -> Any:
        """Return the rows."""
        pa = importlib.import_module("pyarrow")
        block, part = self._block, self._part
        places = block.places(DECIDE)
        rows = self._rows[places]
        is_plain = part.is_plain[rows] & self._layout.fit(block) & (not self._layout.outcomes)
        table = rows_of(block, self._layout, schema)
        for name, values in part.reward_columns(rows).items():
            column = pa.array(values, mask=~part.has_first[rows]).cast(schema.field(name).type)
            table = table.set_column(schema.get_field_index(name), schema.field(name), column)
        if is_plain.all() and len(rows) == self.n:
            return table
        others = np.setdiff1d(np.flatnonzero(self._decides), places[is_plain])
        made = pa.Table.from_pylist([self._row(int(place)) for place in others], schema=schema)
        order = np.argsort(np.concatenate([places[is_plain], others]), kind="stable")
        return pa.concat_tables([table.filter(pa.array(is_plain)), made]).take(pa.array(order))

    def _row(self, place: int) -> dict[str, Any]:
        """Return the row of a decision by its events."""
        block, layout, row = self._block, self._layout, int(self._rows[place])
        event, line = block.event_of(place), block.line_of(place)
        first, last, note = (_event_at(self._file, at) if at else None for at in self._part.offsets[row].tolist())
        crc = None if first is None else int(first.pop("crc"), 16)
        parts, weight = self._part.parts(row)
        return {
            **layout.row(event, carried(line)),
            "line": None if layout.fits(event) else line,
            **layout.later_columns(event, Rewarded(first, last, weight, parts), crc, note, self._prices),
        }

    def side(self) -> bytes:
        """Return the lines that have no row."""
        block, is_kept = self._block, ~self._decides & ~self._part.is_first
        for place in np.flatnonzero(self._part.is_first & (block.kind == OTHER)).tolist():
            is_kept[place] = not self._is_plain(place)
        return b"".join(map(block.line_of, np.flatnonzero(is_kept).tolist()))

    def _is_plain(self, place: int) -> bool:
        event = self._block.event_of(place)
        return self._layout.is_plain_learn(event, self._part.weight(event["id"]))


class _Part(NamedTuple):
    """What is known of the decisions of a block, by row."""

    places: Places
    begin: int  # the first row
    offsets: Int64  # (n, 3)
    firsts: Any  # (n,) of _FIRST_REWARD
    is_first: Bool  # (events,): which are the first reward of a decision

    @property
    def has_first(self) -> Bool:
        """Which have a reward."""
        return self.offsets[:, 0] > 0

    @property
    def is_plain(self) -> Bool:
        """Of which no more is known than a reward that has columns."""
        has_later = (self.offsets[:, 1:] > 0).any(axis=1)
        return np.asarray(~has_later & (~self.has_first | (self.firsts["seq"] > 0)))

    def reward_columns(self, rows: Int64) -> dict[str, Any]:
        """Return what rewards that have columns have."""
        some = self.firsts[rows]
        names = {"reward": "reward", "weight": "weight", "learned_seq": "seq", "rewarded_at": "at"}
        return {name: some[each] for name, each in {**names, "learned_crc": "crc"}.items()}

    def parts(self, row: int) -> tuple[dict[str, float], float | None]:
        """Return the outcomes of a decision, and the weight that it was learned with last."""
        return self.places.parts(self.begin + row)

    def weight(self, name: str) -> float | None:
        """Return the weight that was learned last with outcomes of a decision, if any was."""
        return self.places.weight(name)


class _RowWriter:
    """Writes tables of rows, in groups of `ROWS`."""

    def __init__(self, path: Path, schema: Any) -> None:
        pq = importlib.import_module("pyarrow.parquet")
        self._written = schema
        self.schema = _plain_schema(schema)
        """That of the tables: words are texts."""
        self._writer = pq.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True)
        self._waiting: Any = self.schema.empty_table()

    def add(self, table: Any) -> None:
        """Add rows."""
        pa = importlib.import_module("pyarrow")
        self._waiting = pa.concat_tables([self._waiting, table])
        while len(self._waiting) >= ROWS:
            self._write(self._waiting[:ROWS])
            self._waiting = self._waiting[ROWS:]

    def _write(self, table: Any) -> None:
        self._writer.write_table(table.combine_chunks().cast(self._written), row_group_size=ROWS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None and len(self._waiting):
            self._write(self._waiting)
        self._writer.close()


def _plain_schema(schema: Any) -> Any:
    pa = importlib.import_module("pyarrow")
    words = (name for name in schema.names if pa.types.is_dictionary(schema.field(name).type))
    for name in words:
        schema = schema.set(schema.get_field_index(name), schema.field(name).with_type(pa.string()))
    return schema


class Places:
    """The offsets of every decision's first reward, last change of it and last note, in files. O(1) memory.

    With a first reward that has columns also these; with several outcomes what came of each, and the weight that was
    learned with it last.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._decisions: IO[bytes] = (folder / "decisions").open("wb")
        self._happened: IO[bytes] = (folder / "happened").open("wb")
        self._names: Any = np.empty(0, _NAME)
        self._offsets: Int64 = np.empty((0, 3), np.int64)
        self._firsts: Any = np.empty(0, _FIRST_REWARD)
        self._outcomes: dict[str, int] = {}  # by name: its place among the parts, of which the last is the weight
        self._values: IO[bytes] = (folder / "values").open("wb")
        self._parts: Float64 = np.empty((0, 0))

    def note(self, block: Block, offset: int) -> None:
        """Note which events of a block, whose lines begin at an offset, are about decisions."""
        decides, learns = block.places(DECIDE), block.places(LEARN)
        made, happened = np.zeros(len(decides), _NAME_AT), np.zeros(len(learns), _HAPPENED)
        made["t"], made["mark"], made["offset"] = block.t, block.mark, block.ends[decides]
        happened["t"], happened["mark"], happened["kind"] = block.learn_t, block.learn_mark, _FIRST
        happened["offset"], happened["seq"], happened["at"] = block.ends[learns], learns + block.first, block.at[learns]
        happened["reward"], happened["weight"], happened["crc"] = block.reward, block.weight, block.crc[learns]
        others_made, others_happened = [], []
        for place in block.places(OTHER).tolist():
            match = _HEAD.match(line := block.line_of(place))
            if match is None:
                continue
            kind, t, mark, at = _KINDS[match[1]], int(match[2]), int(match[3], 16), int(block.ends[place])
            if kind == _DECISION:
                others_made.append((t, mark, at))
            elif kind not in (_FIRST, _LAST) or b'"played":' not in line:  # of another arm than the one decided
                others_happened.append((t, mark, kind, at, 0, 0, 0, 0.0, 0.0))
        made = np.concatenate([made, np.array(others_made, _NAME_AT)])
        happened = np.concatenate([happened, np.array(others_happened, _HAPPENED)])
        made, happened = made[np.argsort(made["offset"])], happened[np.argsort(happened["offset"])]
        happened["offset"] += offset
        self._decisions.write(made[["t", "mark"]].astype(_NAME).tobytes())
        self._happened.write(happened.tobytes())

    def part(self, block: Block, offset: int, begin: int) -> _Part:
        """Return what is known of the decisions of a block, whose lines begin at an offset, from a row on."""
        n = np.count_nonzero(block.kind == DECIDE) + sum(event["kind"] == "decide" for event in block.others)
        is_first = np.zeros(len(block), np.bool_)
        learns = block.places(LEARN)
        if len(self._names):
            is_first[learns] = self._is_first(block.learn_t, block.learn_mark, block.ends[learns] + offset)
        for place, event in zip(block.places(OTHER).tolist(), block.others, strict=True):
            if event["kind"] == "learn":
                is_first[place] = self.first(event["id"]) == offset + int(block.ends[place])
        rows = slice(begin, begin + n)
        return _Part(self, begin, np.array(self._offsets[rows]), np.array(self._firsts[rows]), is_first)

    def _is_first(self, t: Int64, mark: Any, offsets: Int64) -> Bool:
        rows = self._rows(t, mark)
        return np.asarray((rows >= 0) & (self._offsets[np.maximum(rows, 0), 0] == offsets))

    def expect(self, learned: Sequence[str]) -> None:
        """Take note that rewards are made of these outcomes."""
        self._outcomes = {name: place for place, name in enumerate(learned)}

    def note_parts(self, event: Event) -> None:
        """Note what an event says of outcomes."""
        kind = event["kind"]
        if KINDS[kind].compacted not in ("first reward", "last reward") or "played" in event:
            return
        t, _, mark = event["id"].partition("-")
        if kind == "forget":
            values = [(place, np.nan) for place in self._outcomes.values()]
        else:
            values = [(self._outcomes[name], value) for name, value in parts_of(event).items()]
        if kind == "learn":
            values.append((len(self._outcomes), event["weight"]))
        self._values.write(np.array([(int(t), int(mark, 16), *one) for one in values], _VALUE).tobytes())

    def settle(self) -> None:
        """Have the events of each decision ready."""
        for file in (self._decisions, self._happened, self._values):
            file.close()
        if (self._folder / "decisions").stat().st_size == 0:
            return
        self._names = np.memmap(self._folder / "decisions", _NAME, mode="r")
        shape = (len(self._names), 3)
        self._offsets = np.memmap(self._folder / "offsets", np.int64, mode="w+", shape=shape)
        self._firsts = np.memmap(self._folder / "firsts", _FIRST_REWARD, mode="w+", shape=(len(self._names),))
        if (self._folder / "happened").stat().st_size:
            happened = np.memmap(self._folder / "happened", _HAPPENED, mode="r")
            for begin in range(0, len(happened), _CHUNK):
                self._place(np.asarray(happened[begin : begin + _CHUNK]))
        if (self._folder / "values").stat().st_size:
            self._settle_parts()

    def _settle_parts(self) -> None:
        shape = (len(self._names), len(self._outcomes) + 1)
        self._parts = np.memmap(self._folder / "parts", np.float64, mode="w+", shape=shape)
        self._parts[:] = np.nan
        values = np.memmap(self._folder / "values", _VALUE, mode="r")
        for begin in range(0, len(values), _CHUNK):
            some = np.asarray(values[begin : begin + _CHUNK])
            rows = self._rows(some["t"], some["mark"])
            rows, some = rows[rows >= 0], some[rows >= 0]
            self._parts[rows, some["place"]] = some["value"]  # of several the last stays

    def _place(self, happened: Any) -> None:
        rows = self._rows(happened["t"], happened["mark"])
        known = rows >= 0
        rows, kind, offset = rows[known], happened["kind"][known], happened["offset"][known]
        first_of, at = np.unique(rows[kind == _FIRST], return_index=True)
        new = self._offsets[first_of, 0] == 0
        self._offsets[first_of[new], 0] = offset[kind == _FIRST][at[new]]
        for name in _FIRST_REWARD.names or ():
            self._firsts[name][first_of[new]] = happened[name][known][kind == _FIRST][at[new]]
        later = (kind != _NOTE) & (self._offsets[rows, 0] != offset)
        self._offsets[rows[later], 1] = offset[later]  # of several the last stays
        self._offsets[rows[kind == _NOTE], 2] = offset[kind == _NOTE]

    def _rows(self, t: Any, mark: Any) -> Int64:
        """Return the rows of decisions by name; -1 for those that the log does not have."""
        rows: Int64 = np.searchsorted(self._names["t"], t)
        inside = np.minimum(rows, len(self._names) - 1)
        same = (self._names["t"][inside] == t) & (self._names["mark"][inside] == mark)
        return np.where(same, inside, -1)

    def parts(self, row: int) -> tuple[dict[str, float], float | None]:
        """Return the outcomes of a decision as they are now, and the weight that was learned with them last."""
        if not len(self._parts):
            return {}, None
        *values, weight = self._parts[row].tolist()
        named = zip(self._outcomes, values, strict=True)
        return {name: value for name, value in named if value == value}, weight if weight == weight else None

    def first(self, name: str) -> int:
        """Return the offset of the first reward of a decision; 0 if the log does not have it."""
        row = self._row(name)
        return int(self._offsets[row, 0]) if row >= 0 else 0

    def weight(self, name: str) -> float | None:
        """Return the weight that was learned last with outcomes of a decision, if any was."""
        row = self._row(name) if self._outcomes else -1
        return self.parts(row)[1] if row >= 0 else None

    def _row(self, name: str) -> int:
        if len(self._names) == 0:
            return -1
        t, _, mark = name.partition("-")
        return int(self._rows(np.int64(int(t)), np.uint64(int(mark, 16))))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in (self._decisions, self._happened, self._values):
            file.close()
        del self._names, self._offsets, self._firsts, self._parts  # which are mapped, before the folder goes
