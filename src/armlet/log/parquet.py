"""A compacted log: Parquet with one row a decision, and next to it the events that have no row. Needs pyarrow.

Read as the events that it was made of, in their order and to the last byte; what does not fit a row keeps its line.
Columns that repeat what events say, such as the last reward, are compared with those events by an audit, since people
and `evaluate` read them. Memory holds a batch of rows, and the rewards learned later than the row that is being read.
"""

from __future__ import annotations

import functools
import gzip
import heapq
import importlib
import itertools
import math
import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

from armlet.errors import ArmletError, load_pyarrow
from armlet.log.reader import log_html
from armlet.record.arms import ArmLabels
from armlet.record.batches import BatchWriter, UnclearError
from armlet.record.block import MOST, Block, BlockReader
from armlet.record.faults import DamagedLineError, MissingFileError, check_ordinary, is_fault, reading
from armlet.record.jsonl import CHANGED, carried, encode_event, parse, read_lines
from armlet.record.kinds import KINDS
from armlet.record.outcomes import Prices
from armlet.record.parquet import REWARD, Layout, Rewarded, Row, read_metadata
from armlet.record.values import Event

_BATCH: Final = 2**12
_ROW, _SIDE = 0, 1  # the sources of events: rows, and what is next to them
_GROUPS: Final = 4  # groups of rows that are kept for decisions of long ago


class _Beside:
    """What the events without a row say: of each decision, and of outcomes over time."""

    def __init__(self, lines: Iterator[bytes], name: str, layout: Layout) -> None:
        self._layout = layout
        self._rewards: dict[str, list[Event]] = {}
        self._notes: dict[str, Event] = {}
        self._prices: Prices | None = None
        for line in lines:
            self._take(parse(line, None, name))

    def _take(self, event: Event) -> None:
        compacted = KINDS[event["kind"]].compacted
        if compacted == "note":
            self._notes[event["id"]] = event
        elif compacted is not None and "played" not in event:
            self._rewards.setdefault(event["id"], []).append(event)
        elif event["kind"] == "start" and self._layout.outcomes:
            self._prices = Prices(event)
        elif self._prices is not None:
            self._prices.take(event)

    def without_plain(self, batch: Any) -> Any:
        """Return a batch without the rows whose columns are those of their own events, to which nothing was added."""
        pa, pc = load_pyarrow()[0], importlib.import_module("pyarrow.compute")
        if self._layout.outcomes:
            return batch
        has = {name: batch.column(name).is_valid() for name in (*REWARD, "outcomes", "source", "line")}
        rewarded = (has[name] for name in ("reward", "weight", "learned_seq", "rewarded_at"))
        is_odd = pc.and_not(functools.reduce(pc.or_, rewarded), has["learned_crc"])
        others = (has[name] for name in ("first_reward", "outcomes", "source", "line"))
        named = pc.is_in(batch.column("id"), pa.array([*self._rewards, *self._notes], pa.string()))
        return batch.filter(functools.reduce(pc.or_, others, pc.or_(is_odd, named)))

    def columns(self, decision: Event, reward: Event | None, row: dict[str, Any]) -> dict[str, Any]:
        """Return the columns that a row must have by its events; `reward` is the one that the row itself holds."""
        name = decision["id"]
        rewarded = Rewarded(has_outcomes=self._prices is not None)
        for event in (*(() if reward is None else (reward,)), *self._rewards.get(name, ())):
            rewarded = rewarded.then(event)
        return self._layout.later_columns(decision, rewarded, row["learned_crc"], self._notes.get(name), self._prices)


# ---- reading


class _Stored(NamedTuple):
    """An event as it is stored, to be merged with others by its number."""

    seq: int
    order: int  # in which it was found: of two events of one number
    event: Event
    crc: int | None
    line: bytes | None  # of an event that has one
    source: int


class ParquetLog(ArmLabels):
    """The events of a compacted log."""

    sealed: ClassVar = True
    """Whether its events must be sealed: a property of the reader, never of the file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        _, pq = load_pyarrow()
        self.path = Path(path)
        check_ordinary(self.path, "log")
        with reading(self.name):
            self._file = pq.ParquetFile(self.path, page_checksum_verification=True)
            self._about, self.layout = read_metadata(self._file.schema_arrow, self.name)
        self._groups: OrderedDict[int, dict[str, Event]] = OrderedDict()

    @property
    def name(self) -> str:
        """The file's name."""
        return self.path.name

    @property
    def about(self) -> Mapping[str, Any]:
        """The fields of the start."""
        return self._about

    def __repr__(self) -> str:
        return f"ParquetLog({str(self.path)!r})"

    def _repr_html_(self) -> str:
        return log_html(repr(self), self.path, lambda: self)

    def __iter__(self) -> Iterator[Event]:
        for _, event in self.with_lines():
            yield event

    def with_lines(self) -> Iterator[tuple[bytes, Event]]:
        """Yield every event with the line that it was; refuse one that is not as it was written."""
        for block in self.blocks():
            yield from block.with_lines()

    def blocks(self) -> Iterator[Block]:
        """Yield all events in blocks of columns; refuse one that is not as it was written, after those before it.

        What the quick reader does not take as it is, the exact one does, which reads the log event by event.
        """
        reader = BlockReader(self.name)
        try:
            batches = self._file.iter_batches(batch_size=MOST)
            for data in BatchWriter(self.layout, self._side()).lines(batches):
                for block in reader.read(data):
                    if block.first == 0 and block.line_of(0) != encode_event(dict(self._about), 0)[0]:
                        raise UnclearError("the metadata tell of another start")
                    yield block
            return
        except Exception as error:
            if not is_fault(error) and not isinstance(error, ArmletError):
                raise
        yield from self._exact_blocks(reader)

    def _exact_blocks(self, reader: BlockReader) -> Iterator[Block]:
        """Yield the blocks of the events that a reader has not read yet."""
        lines: list[bytes] = []
        try:
            for seq, line in enumerate(self._exact_lines()):
                if seq >= reader.seq + len(lines):
                    lines.append(line)
                if len(lines) == MOST:
                    yield from reader.read(b"".join(lines))
                    lines = []
        except Exception:
            yield from reader.read(b"".join(lines))
            raise
        yield from reader.read(b"".join(lines))

    def _exact_lines(self) -> Iterator[bytes]:
        """Yield every line; refuse an event that is not as it was written."""
        crc = seq = 0
        with reading(self.name):
            for stored in self._ordered():
                event = stored.event
                if stored.seq != seq:
                    why = f"it is missing, or its number is {stored.seq:,}"
                    raise DamagedLineError(self.name, seq, event["kind"], why)
                line, crc = encode_event(event, crc)
                if crc != stored.crc or (stored.line is not None and stored.line != line):
                    raise DamagedLineError(self.name, seq, event["kind"], CHANGED)
                if seq == 0 and line != encode_event(dict(self._about), 0)[0]:
                    raise DamagedLineError(self.name, 0, event["kind"], "the metadata tell of another start")
                yield line
                seq += 1
        if seq == 0:
            raise DamagedLineError(self.name, 0, "start", "it is missing")

    def _ordered(self) -> Iterator[_Stored]:
        """Merge rows, the rewards in them and the other events by number."""
        waiting: list[_Stored] = []
        side, order = self._side(), itertools.count()

        def before(seq: float) -> Iterator[_Stored]:
            while waiting and waiting[0].seq < seq:
                stored = heapq.heappop(waiting)
                yield stored
                if stored.source == _SIDE:
                    push_side()

        def push_side() -> None:
            line = next(side, None)
            if line is not None:
                event = parse(line, None, self.name)
                heapq.heappush(waiting, _Stored(event["seq"], next(order), event, carried(line), line, _SIDE))

        push_side()
        for decision, reward, row in self._rows(self._file.iter_batches(batch_size=_BATCH)):
            yield from before(row["seq"])
            yield _Stored(row["seq"], next(order), decision, row["crc"], row["line"], _ROW)
            if reward is not None:
                stored = _Stored(reward["seq"], next(order), reward, row["learned_crc"], None, _ROW)
                heapq.heappush(waiting, stored)
        yield from before(math.inf)

    def check_columns(self) -> None:
        """Refuse rows whose columns say something else than the events of which they are copies."""
        with reading(self.name):
            beside = _Beside(self._side(), self.name, self.layout)
            batches = (beside.without_plain(batch) for batch in self._file.iter_batches(batch_size=MOST))
            for decision, reward, row in self._rows(batches):
                wanted = beside.columns(decision, reward, row)
                if row["line"] is not None:
                    wanted |= self.layout.row(decision, row["crc"])
                for column, value in wanted.items():
                    if row[column] != value:
                        why = f"its column {column} is {row[column]!r}, but by its events {value!r}"
                        raise DamagedLineError(self.name, row["seq"], "decide", why)

    def _side(self) -> Iterator[bytes]:
        return side_lines(self.path, f"it holds the events of {self.name} that have no row")

    def _rows(self, batches: Iterable[Any]) -> Iterator[Row]:
        for batch in batches:
            yield from self.layout.read_events(batch, self.name)

    def find(self, name: str) -> Event | None:
        """Find a decision by its id; None if it is not there."""
        t = int(name.partition("-")[0])
        with reading(self.name):
            place = self._file.schema_arrow.get_field_index("t")
            for group in range(self._file.num_row_groups):
                known = self._file.metadata.row_group(group).column(place).statistics
                if known is None or not known.has_min_max or known.min <= t <= known.max:
                    decision = self._group(group).get(name)
                    if decision is not None:
                        return decision
        return None

    def _group(self, group: int) -> dict[str, Event]:
        if group not in self._groups:
            batches = self._file.read_row_group(group).to_batches()
            rows = (row for batch in batches for row in self.layout.read_events(batch, self.name))
            self._groups[group] = {event["id"]: event for event, _, _ in rows}
            if len(self._groups) > _GROUPS:
                self._groups.popitem(last=False)
        self._groups.move_to_end(group)
        return self._groups[group]


def events_beside(path: Path) -> Path:
    """Return the path of the events of a compacted log that have no row.

    Examples
    --------
    >>> events_beside(Path("decisions.parquet")).name
    'decisions.events.jsonl.gz'
    """
    return path.with_name(f"{path.stem}.events.jsonl.gz")


def side_lines(path: Path, what: str) -> Iterator[bytes]:
    """Yield the lines next to a compacted log: of the events that have no row, the start first."""
    beside = events_beside(path)
    if not beside.exists():
        raise MissingFileError(f"{beside} is missing: {what}; bring it along")
    check_ordinary(beside, "log")
    with reading(beside.name), gzip.open(beside, "rb") as file:
        yield from read_lines(file, beside.name)
