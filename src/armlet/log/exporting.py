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
from typing import IO, Any, Final, Self, get_args

import numpy as np

from armlet.errors import ArgumentError, InvalidValueError, load_pyarrow
from armlet.log.parquet import events_beside
from armlet.log.reader import LogFile, Source, read
from armlet.record.arms import labels_of
from armlet.record.events import Events
from armlet.record.faults import reading
from armlet.record.jsonl import carried, encode_checked
from armlet.record.kinds import KINDS, Compacted
from armlet.record.outcomes import Prices, parts_of
from armlet.record.parquet import Contexts, Labels, Layout, Rewarded, feature_names, names_of
from armlet.record.values import Event
from armlet.types import Float64, Int64

HIDDEN: Final = ("crc", "learned_crc", "line")  # what only the reader of a compacted log needs
ROWS: Final = 2**14  # rows of a group
_PARTS: Final = get_args(Compacted)
_DECISION, _FIRST, _LAST, _NOTE = range(4)
_KINDS: Final = {name.encode(): _PARTS.index(kind.compacted) for name, kind in KINDS.items() if kind.compacted}
_HEAD: Final = re.compile(rb'\{"seq":\d+,"kind":"(%b)","at":\d+,"id":"(\d+)-([0-9a-f]{16})"' % b"|".join(_KINDS))
_NAME: Final = np.dtype([("t", "<i8"), ("mark", "<u8")])
_HAPPENED: Final = np.dtype([("t", "<i8"), ("mark", "<u8"), ("kind", "<i8"), ("offset", "<i8")])
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
            pq = importlib.import_module("pyarrow.parquet")
            layout = self._layout(about)
            schema = layout.schema(about)
            beside = events_beside(self._folder / name)
            with (
                pq.ParquetWriter(self._folder / name, schema, compression="zstd", write_page_checksum=True) as writer,
                gzip.GzipFile(beside, "wb", compresslevel=6, mtime=0) as side,
            ):
                rows: list[dict[str, Any]] = []
                for row in self._rows(places, layout, file, side):
                    rows.append(row)
                    if len(rows) == ROWS:
                        _write_rows(writer, rows, schema)
                _write_rows(writer, rows, schema)

    def _survey(self, places: Places) -> Event:
        about: Event = {}
        for line, event in self._source.with_lines():
            about = about or event
            _check_features(event, self._source.name)
            places.note(line, self._end)
            self._learn_outcomes(event, places)
            self._learn_kinds(event)
            self._end += len(line)
        places.settle()
        return about

    def _learn_outcomes(self, event: Event, places: Places) -> None:
        if event["kind"] == "start" and "outcomes" in event:
            self._prices = Prices(event)
            places.expect(names_of(event)[1])
        elif self._prices is not None:
            self._prices.take(event)
            places.note_parts(event)

    def _lines(self) -> Iterator[bytes]:
        left = self._end
        with self._source.path.open("rb", buffering=2**20) as file:
            while left > 0 and (line := file.readline()):
                left -= len(line)
                yield line

    def _learn_kinds(self, event: Event) -> None:
        for label in labels_of(event):
            small = isinstance(label, str) or -(2**63) <= label < 2**63
            self._kinds.add("json" if not small else "str" if isinstance(label, str) else "int")

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

    def _rows(self, places: Places, layout: Layout, file: Any, side: gzip.GzipFile) -> Iterator[dict[str, Any]]:
        offset = decisions = 0
        for line in self._lines():
            event = json.loads(line)
            kind = event["kind"]
            if kind == "decide":
                del event["crc"]
                row = layout.row(event, carried(line))
                row["line"] = None if layout.fits(event) else line
                first, last, note = (_event_at(file, at) if at else None for at in places.of(decisions))
                crc = None if first is None else int(first.pop("crc"), 16)
                parts, weight = places.parts(decisions)
                row |= layout.later_columns(event, Rewarded(first, last, weight, parts), crc, note, self._prices)
                decisions += 1
                yield row
            elif kind != "learn" or not _in_a_row(places, layout, event, offset):
                side.write(line)
            offset += len(line)


def _check_features(event: Event, name: str) -> None:
    """Refuse a log in which features are replaced: a table has the same columns in all rows."""
    if event["kind"] == "replace" and "features" in event:
        text = "{log} is {name}, in which features are replaced at event {seq:,}; write .jsonl, or evaluate it as it is"
        raise ArgumentError(text, name=name, seq=event["seq"])


def _event_at(file: Any, offset: int) -> Event:
    file.seek(offset)
    event: Event = json.loads(file.readline())
    return event


def _in_a_row(places: Places, layout: Layout, event: Event, offset: int) -> bool:
    del event["crc"]
    return places.first(event["id"]) == offset and layout.is_plain_learn(event, places.weight(event["id"]))


def _write_rows(writer: Any, rows: list[dict[str, Any]], schema: Any) -> None:
    if rows:
        pa = importlib.import_module("pyarrow")
        writer.write_table(pa.Table.from_pylist(rows, schema=schema), row_group_size=ROWS)
        rows.clear()


class Places:
    """The offsets of every decision's first reward, last change of it and last note, in files. O(1) memory.

    With several outcomes also what came of each, and the weight that was learned with it last.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._decisions: IO[bytes] = (folder / "decisions").open("wb")
        self._happened: IO[bytes] = (folder / "happened").open("wb")
        self._names: Any = np.empty(0, _NAME)
        self._offsets: Int64 = np.empty((0, 3), np.int64)
        self._outcomes: dict[str, int] = {}  # by name: its place among the parts, of which the last is the weight
        self._values: IO[bytes] = (folder / "values").open("wb")
        self._parts: Float64 = np.empty((0, 0))

    def note(self, line: bytes, offset: int) -> None:
        """Note what a line is about, if it is about a decision."""
        match = _HEAD.match(line)
        if match is None:
            return
        kind, t, mark = _KINDS[match[1]], int(match[2]), int(match[3], 16)
        if kind in (_FIRST, _LAST) and b'"played":' in line:  # of another arm than the one that was decided
            return
        if kind == _DECISION:
            self._decisions.write(np.array((t, mark), _NAME).tobytes())
        else:
            self._happened.write(np.array((t, mark, kind, offset), _HAPPENED).tobytes())

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
        later = (kind != _NOTE) & (self._offsets[rows, 0] != offset)
        self._offsets[rows[later], 1] = offset[later]  # of several the last stays
        self._offsets[rows[kind == _NOTE], 2] = offset[kind == _NOTE]

    def _rows(self, t: Any, mark: Any) -> Int64:
        """Return the rows of decisions by name; -1 for those that the log does not have."""
        rows: Int64 = np.searchsorted(self._names["t"], t)
        inside = np.minimum(rows, len(self._names) - 1)
        same = (self._names["t"][inside] == t) & (self._names["mark"][inside] == mark)
        return np.where(same, inside, -1)

    def of(self, row: int) -> list[int]:
        """Return the offsets of a decision's first reward, its last change and the last note; 0 if there is none."""
        offsets: list[int] = self._offsets[row].tolist()
        return offsets

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
        del self._names, self._offsets, self._parts  # which are mapped, before the folder goes
