"""A compacted log, read as the events that it was made of, in their order and to the last byte.

Memory holds a batch of rows, and the rewards that were learned later than the row that is being read.
"""

from __future__ import annotations

import gzip
import heapq
import json
import math
import os
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from armlet.log.lines import DamagedLineError, encode_event
from armlet.log.parquet.compacting import events_beside
from armlet.log.parquet.layout import read_metadata
from armlet.log.schema import Event
from armlet.log.tables import load_pyarrow

_BATCH: Final = 2**12
_SIDE: Final = -1  # the source of events that have no row
_GROUPS: Final = 4  # groups of rows that are kept for decisions of long ago


class ParquetLog:
    """The events of a compacted log.

    Parameters
    ----------
    path
        Of the Parquet file; its other events are beside it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        _, pq = load_pyarrow()
        self.path = Path(path)
        self._file = pq.ParquetFile(self.path)
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
        crc = seq = 0
        for event, written in self._ordered():
            kind = event["kind"]
            if event["seq"] != seq:
                raise DamagedLineError(self.name, seq, kind, f"it is missing, or its number is {event['seq']:,}")
            crc_now = encode_event(event, crc)[1]
            if crc_now != written:
                raise DamagedLineError(self.name, seq, kind, "it is not as it was written")
            yield event
            crc, seq = crc_now, seq + 1

    def _ordered(self) -> Iterator[tuple[Event, int]]:
        """Merge rows, the rewards in them and the other events by number."""
        waiting: list[tuple[int, int, int, Event]] = []  # number, source, check value
        side = self._side()

        def before(seq: float) -> Iterator[tuple[Event, int]]:
            while waiting and waiting[0][0] < seq:
                _, source, crc, event = heapq.heappop(waiting)
                yield event, crc
                if source == _SIDE:
                    _push(waiting, next(side, None))

        _push(waiting, next(side, None))
        for decision, reward, row in self._rows():
            yield from before(row["seq"])
            yield decision, row["crc"]
            if reward is not None:
                heapq.heappush(waiting, (reward["seq"], row["seq"], row["learned_crc"], reward))
        yield from before(math.inf)

    def _side(self) -> Iterator[tuple[Event, int]]:
        beside = events_beside(self.path)
        if not beside.exists():
            raise FileNotFoundError(
                f"{beside} is missing: it holds the events of {self.name} that have no row; bring it along"
            )
        with gzip.open(beside, "rb") as file:
            for line in file:
                event = json.loads(line)
                yield event, int(event.pop("crc"), 16)

    def _rows(self) -> Iterator[tuple[Event, Event | None, dict[str, Any]]]:
        for batch in self._file.iter_batches(batch_size=_BATCH):
            yield from self.layout.read_events(batch)

    def find(self, name: str) -> Event | None:
        """Find a decision by its id; None if it is not there."""
        t = int(name.partition("-")[0])
        place = self._file.schema_arrow.get_field_index("t")
        for group in range(self._file.num_row_groups):
            known = self._file.metadata.row_group(group).column(place).statistics
            if known.min <= t <= known.max:
                return self._group(group).get(name)
        return None

    def _group(self, group: int) -> dict[str, Event]:
        if group not in self._groups:
            table = self._file.read_row_group(group)
            batches = table.to_batches()
            found = {event["id"]: event for batch in batches for event, _, _ in self.layout.read_events(batch)}
            self._groups[group] = found
            if len(self._groups) > _GROUPS:
                self._groups.popitem(last=False)
        self._groups.move_to_end(group)
        return self._groups[group]


def _push(waiting: list[tuple[int, int, int, Event]], found: tuple[Event, int] | None) -> None:
    if found is not None:
        event, crc = found
        heapq.heappush(waiting, (event["seq"], _SIDE, crc, event))
