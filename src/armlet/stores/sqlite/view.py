"""A file as it is at one moment: one read transaction, in which others may write on.

The log of SQLite cannot be emptied while it lasts, so that the file grows meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import apsw

from armlet.errors import StoreError
from armlet.stores import encoding
from armlet.stores.ledger import Head, LoopRecord, OutcomeRecord, Row, Usage
from armlet.stores.sqlite.schema import check_counts, check_pages, fetch
from armlet.stores.sqlite.session import EVENT, HEAD, LOOP, PAGE, SNAPSHOT, TALLY, read_rows

_COLUMNS = ", ".join(
    [
        *(f"outcome.{name}" for name in encoding.OUTCOME),
        *(f"event.{name}" for name in encoding.EVENT),
        *(f"last.{name}" for name in encoding.EVENT),
    ]
)
_OUTCOME_RECORDS: Final = f"""SELECT {_COLUMNS} FROM outcome
    LEFT JOIN event ON event.loop = outcome.loop AND event.seq = outcome.seq
    LEFT JOIN event AS last ON last.loop = outcome.loop AND last.seq = (
        SELECT max(seq) FROM event AS heard INDEXED BY event_by_step
        WHERE heard.loop = outcome.loop AND heard.t = outcome.t AND heard.kind <> 'decide')
    WHERE outcome.loop = ? AND outcome.t > ? ORDER BY outcome.t LIMIT ?"""
_BYTES: Final = """
    SELECT count(*), total(octet_length(fields)) + total(octet_length(x)) FROM event WHERE loop = ?"""


class SQLiteView:
    """One read transaction of a connection."""

    def __init__(self, connection: apsw.Connection, name: str) -> None:
        self._connection, self._name = connection, name

    def _all(self, sql: str, *values: object) -> list[Any]:
        return fetch(self._connection, sql, values)

    def _one(self, sql: str, *values: object) -> Any:
        found = self._all(sql, *values)
        return found[0] if found else None

    def check(self) -> None:
        check_pages(self._connection, self._name)
        check_counts(self._connection, self._name)

    def loops(self) -> Sequence[LoopRecord]:
        return [encoding.read_record(found) for found in self._all(f"{LOOP} ORDER BY id")]

    def head(self, loop: int) -> Head | None:
        found = self._one(f"{HEAD} WHERE loop = ?", loop)
        return None if found is None else encoding.read_head(found)[0]

    def row(self, loop: int, seq: int) -> Row | None:
        found = self._one(f"{EVENT} = ?", loop, seq)
        return None if found is None else encoding.read_event(found)

    def rows(self, loop: int, after: int) -> Iterator[Row]:
        return read_rows(self._connection, loop, after)

    def outcomes(self, loop: int) -> Iterator[OutcomeRecord]:
        after = -1
        while page := self._all(_OUTCOME_RECORDS, loop, after, PAGE):
            yield from map(encoding.read_outcome_record, page)
            if page[-1][1] <= after:  # or this might never end
                raise StoreError(f"the outcome of step {after} of the loop stands twice; {encoding.WAY_OUT}")
            after = page[-1][1]

    def snapshot(self, loop: int) -> tuple[int, bytes] | None:
        return encoding.read_snapshot(self._one(SNAPSHOT, loop))

    def tally(self, loop: int) -> str | None:
        return encoding.read_tally(self._one(TALLY, loop))

    def usage(self, loop: int) -> Usage:
        rows, size = self._one(_BYTES, loop)
        outcomes, early, snapshots = (
            self._one(f"SELECT count(*) FROM {table} WHERE loop = ?", loop)[0]
            for table in ("outcome", "early", "snapshot")
        )
        return Usage(rows, outcomes, early, snapshots, int(size))
