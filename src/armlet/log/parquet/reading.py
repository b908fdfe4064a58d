"""A compacted log, read as the events that it was made of, in their order and to the last byte.

Memory holds a batch of rows, and the rewards that were learned later than the row that is being read.
"""

from __future__ import annotations

import gzip
import heapq
import itertools
import math
import os
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

from armlet.log.faults import MissingFileError, check_ordinary, reading
from armlet.log.lines import DamagedLineError, carried, encode_event, parse, read_lines
from armlet.log.parquet.compacting import events_beside
from armlet.log.parquet.derived import check_columns
from armlet.log.parquet.layout import read_metadata
from armlet.log.schema import Event
from armlet.log.tables import load_pyarrow

_BATCH: Final = 2**12
_ROW, _SIDE = 0, 1  # the sources of events: rows, and what is beside them
_GROUPS: Final = 4  # groups of rows that are kept for decisions of long ago


class _Stored(NamedTuple):
    """An event as it is stored, to be merged with others by its number."""

    seq: int
    order: int  # in which it was found: of two events of one number
    event: Event
    crc: int | None
    line: bytes | None  # of an event that has one
    source: int


class ParquetLog:
    """The events of a compacted log.

    Parameters
    ----------
    path
        Of the Parquet file; its other events are beside it.
    """

    sealed: ClassVar = True
    """Whether its events must be sealed: so says the reader, never the file."""

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

    def __iter__(self) -> Iterator[Event]:
        for _, event in self.with_lines():
            yield event

    def with_lines(self) -> Iterator[tuple[bytes, Event]]:
        """Give every event with the line that it was; refuse one that is not as it was written."""
        crc = seq = 0
        with reading(self.name):
            for stored in self._ordered():
                event = stored.event
                if stored.seq != seq:
                    why = f"it is missing, or its number is {stored.seq:,}"
                    raise DamagedLineError(self.name, seq, event["kind"], why)
                line, crc = encode_event(event, crc)
                if crc != stored.crc or (stored.line is not None and stored.line != line):
                    why = "its check value differs: it was changed, dropped or moved after it was written"
                    raise DamagedLineError(self.name, seq, event["kind"], why)
                if seq == 0 and line != encode_event(dict(self._about), 0)[0]:
                    raise DamagedLineError(self.name, 0, event["kind"], "the metadata tell of another start")
                yield line, event
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
        for decision, reward, row in self._rows():
            yield from before(row["seq"])
            yield _Stored(row["seq"], next(order), decision, row["crc"], row["line"], _ROW)
            if reward is not None:
                stored = _Stored(reward["seq"], next(order), reward, row["learned_crc"], None, _ROW)
                heapq.heappush(waiting, stored)
        yield from before(math.inf)

    def check_columns(self) -> None:
        """Refuse rows whose columns say something else than the events of which they are copies."""
        with reading(self.name):
            check_columns(self.layout, self._rows(), self._side(), self.name)

    def _side(self) -> Iterator[bytes]:
        return side_lines(self.path, f"it holds the events of {self.name} that have no row")

    def _rows(self) -> Iterator[tuple[Event, Event | None, dict[str, Any]]]:
        for batch in self._file.iter_batches(batch_size=_BATCH):
            yield from self.layout.read_events(batch, self.name)

    def find(self, name: str) -> Event | None:
        """Find a decision by its id; None if it is not there."""
        t = int(name.partition("-")[0])
        with reading(self.name):
            place = self._file.schema_arrow.get_field_index("t")
            for group in range(self._file.num_row_groups):
                known = self._file.metadata.row_group(group).column(place).statistics
                if known is None or not known.has_min_max or known.min <= t <= known.max:
                    found = self._group(group).get(name)
                    if found is not None:
                        return found
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


def side_lines(path: Path, what: str) -> Iterator[bytes]:
    """Give the lines beside a compacted log: of the events that have no row, the start first."""
    beside = events_beside(path)
    if not beside.exists():
        raise MissingFileError(f"{beside} is missing: {what}; bring it along")
    check_ordinary(beside, "log")
    with reading(beside.name), gzip.open(beside, "rb") as file:
        yield from read_lines(file, beside.name)
