"""A database as it is at one moment: what verifying and copying read, while replicas write.

Everything is read and counted in pages, since each statement has to end in time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from armlet.errors import StoreError
from armlet.stores import encoding
from armlet.stores.ledger import Head, LoopRecord, OutcomeRecord, Row, Usage
from armlet.stores.postgresql.connection import Connection, Rows
from armlet.stores.postgresql.session import HEAD, PAGE, ROW, SNAPSHOT, TALLY, read_page
from armlet.stores.postgresql.statements import WHOLE, Query, Statement

BEGIN: Final = Statement("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
LOOPS: Final = Statement(f"SELECT {', '.join(encoding.LOOP)} FROM loop ORDER BY id")
_PARTS = (("o", encoding.OUTCOME), ("e", encoding.EVENT), ("l", encoding.EVENT))
OUTCOME_RECORDS: Final = Statement(
    f"""SELECT {", ".join(f"{table}.{name}" for table, names in _PARTS for name in names)} FROM (
        SELECT * FROM outcome WHERE loop = $1 AND t > $2 ORDER BY loop, t LIMIT $3) AS o
    LEFT JOIN LATERAL (SELECT * FROM event WHERE loop = o.loop AND seq = o.seq LIMIT 1) AS e ON true
    LEFT JOIN LATERAL (SELECT * FROM event WHERE loop + 0 = o.loop AND t = o.t AND kind <> 'decide'
        ORDER BY seq DESC LIMIT 1) AS l ON true
    ORDER BY o.t""",
    *(WHOLE,) * 3,
)
COUNT_ROWS: Final = Statement(
    """SELECT count(*), max(seq), coalesce(sum(octet_length(fields) + coalesce(octet_length(x), 0)), 0)::bigint FROM (
        SELECT seq, fields, x FROM event WHERE loop = $1 AND seq > $2 ORDER BY loop, seq LIMIT $3) AS page""",
    *(WHOLE,) * 3,
)
COUNT_OUTCOMES: Final = Statement(
    """SELECT count(*), max(t), 0::bigint FROM (
        SELECT t FROM outcome WHERE loop = $1 AND t > $2 ORDER BY loop, t LIMIT $3) AS page""",
    *(WHOLE,) * 3,
)
_OTHERS = Statement(
    "SELECT (SELECT count(*) FROM early WHERE loop = $1), (SELECT count(*) FROM snapshot WHERE loop = $1)", WHOLE
)
COUNTED: Final = 20_000  # rows at once


class PostgreSQLView:
    """One read transaction of a connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def _all(self, query: Query) -> Rows:
        return self._connection.run([query])[0]

    def _one(self, query: Query) -> Sequence[Any] | None:
        found = self._all(query)
        return found[0] if found else None

    def check(self) -> None:
        """Refuse a loop without a head; pages and indexes are the database's to check."""
        for record in self.loops():
            if self.head(record.id) is None:
                raise StoreError(f"the head of loop {record.name!r} is missing; {encoding.WAY_OUT}")

    def loops(self) -> Sequence[LoopRecord]:
        return [encoding.read_record(found) for found in self._all(LOOPS())]

    def head(self, loop: int) -> Head | None:
        found = self._one(HEAD(loop))
        return None if found is None else encoding.read_head(found)[0]

    def row(self, loop: int, seq: int) -> Row | None:
        found = self._one(ROW(loop, seq))
        return None if found is None else encoding.read_event(found)

    def rows(self, loop: int, after: int) -> Iterator[Row]:
        while page := read_page(self._connection, loop, after):
            yield from page
            after = page[-1].seq

    def outcomes(self, loop: int) -> Iterator[OutcomeRecord]:
        after = -1
        while page := self._all(OUTCOME_RECORDS(loop, after, PAGE)):
            yield from map(encoding.read_outcome_record, page)
            after = page[-1][1]

    def snapshot(self, loop: int) -> tuple[int, bytes] | None:
        return encoding.read_snapshot(self._one(SNAPSHOT(loop)))

    def tally(self, loop: int) -> str | None:
        return encoding.read_tally(self._one(TALLY(loop)))

    def usage(self, loop: int) -> Usage:
        rows, size = self._count(COUNT_ROWS, loop)
        outcomes, _ = self._count(COUNT_OUTCOMES, loop)
        early, snapshots = self._all(_OTHERS(loop))[0]
        return Usage(rows, outcomes, early, snapshots, size)

    def _count(self, statement: Statement, loop: int) -> tuple[int, int]:
        n, size, after = 0, 0, -1
        while (page := self._all(statement(loop, after, COUNTED))[0])[0]:
            n, after, size = n + page[0], page[1], size + page[2]
        return n, size
