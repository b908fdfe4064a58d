"""A database as it is at one moment: what verifying and copying read, while replicas write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from armlet.errors import StoreError
from armlet.stores import encoding
from armlet.stores.ledger import Head, LoopRecord, Row, Told, Usage
from armlet.stores.postgresql.connection import Connection, Rows
from armlet.stores.postgresql.session import HEAD, PAGE, ROW, SNAPSHOT, TALLY, read_page
from armlet.stores.postgresql.statements import WHOLE, Query, Statement

BEGIN: Final = Statement("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
LOOPS: Final = Statement(f"SELECT {', '.join(encoding.LOOP)} FROM loop ORDER BY id")
_PARTS = (("o", encoding.OUTCOME), ("e", encoding.EVENT), ("l", encoding.EVENT))
_TOLD = Statement(
    f"""SELECT {", ".join(f"{table}.{name}" for table, names in _PARTS for name in names)} FROM (
        SELECT * FROM outcome WHERE loop = $1 AND t > $2 ORDER BY loop, t LIMIT $3) AS o
    LEFT JOIN LATERAL (SELECT * FROM event WHERE loop = o.loop AND seq = o.seq LIMIT 1) AS e ON true
    LEFT JOIN LATERAL (SELECT * FROM event WHERE loop = o.loop AND t = o.t AND kind <> 'decide'
        ORDER BY seq DESC LIMIT 1) AS l ON true
    ORDER BY o.t""",
    *(WHOLE,) * 3,
)
_BYTES = Statement(
    """SELECT count(*), coalesce(sum(octet_length(fields) + coalesce(octet_length(x), 0)), 0)::bigint
    FROM event WHERE loop = $1""",
    WHOLE,
)
_COUNTS = {
    table: Statement(f"SELECT count(*) FROM {table} WHERE loop = $1", WHOLE)
    for table in ("outcome", "early", "snapshot")
}


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
        """Compare heads with what there is; pages and indexes are the database's to check."""
        for record in self.loops():
            head, usage = self.head(record.id), self.usage(record.id)
            if head is None or (head.outcomes, head.early) != (usage.outcomes, usage.early):
                raise StoreError(f"loop {record.name!r} is damaged: outcomes are missing, or there are too many")

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

    def outcomes(self, loop: int) -> Iterator[Told]:
        after = -1
        while page := self._all(_TOLD(loop, after, PAGE)):
            yield from map(encoding.read_told, page)
            after = page[-1][1]

    def snapshot(self, loop: int) -> tuple[int, bytes] | None:
        return encoding.read_snapshot(self._one(SNAPSHOT(loop)))

    def tally(self, loop: int) -> str | None:
        return encoding.read_tally(self._one(TALLY(loop)))

    def usage(self, loop: int) -> Usage:
        rows, size = self._one(_BYTES(loop)) or (0, 0)
        outcomes, early, snapshots = (self._all(statement(loop))[0][0] for statement in _COUNTS.values())
        return Usage(rows, outcomes, early, snapshots, size)

