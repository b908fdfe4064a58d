"""A transaction in SQLite, statement by statement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import apsw

from armlet.stores.clock import Moment
from armlet.stores.ledger import Kept, Outcome, Row
from armlet.stores.sqlite.rows import (
    HEAD,
    KEPT,
    OUTCOME,
    ROW,
    SNAPSHOT,
    as_json,
    as_names,
    check_made,
    check_snapshot,
    check_value,
    check_values,
    fetch,
    fetch_one,
    head_of,
    kept_of,
    outcome_of,
    row_of,
    rows_after,
    snapshot_of,
)

_PUT = """
    INSERT INTO outcome (loop, t, event, seq, phase, value, due, rank, names, crc) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (loop, t) DO UPDATE SET seq = excluded.seq, phase = excluded.phase, value = excluded.value,
    due = excluded.due, rank = excluded.rank, names = excluded.names, crc = excluded.crc"""
_CREATE = "INSERT INTO loop (id, name, about, start, made, crc) VALUES (?, ?, ?, ?, ?, ?)"
_SPARE = """
    INSERT INTO spare SELECT outcome.t FROM outcome JOIN event USING (loop, seq)
    WHERE loop = ? AND due IS NULL AND ts < ? AND NOT json_extract(fields, '$.explored')"""


class SQLitePen:
    """A transaction of the connection that writes."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._run = connection.execute
        self._heads: dict[int, list[int]] = {}  # loop -> clock, seq, ts, steady, made: written once, at the end

    def _head(self, loop: int) -> list[int]:
        if loop not in self._heads:
            self._heads[loop] = head_of(self._one(f"{HEAD} WHERE id = ?", loop))
        return self._heads[loop]

    def _one(self, sql: str, *values: object) -> Any:
        return fetch_one(self._connection, sql, values)

    def finish(self) -> None:
        """Write down how far loops have come."""
        sql = "UPDATE loop SET clock = ?, seq = ?, ts = ?, steady = ?, made = ?, crc = ? WHERE id = ?"
        for loop, head in self._heads.items():
            self._run(sql, (*head, check_values(loop, *head), loop))

    def create(self, name: str, about: str, start: bytes) -> Kept:
        loop = self._one("SELECT coalesce(max(id), 0) + 1 FROM loop")[0]
        made = check_made(loop, name, about, start, 0)
        self._run(_CREATE, (loop, name, about, start, made, check_values(loop, 0, 0, 0, 0, made)))
        return Kept(id=loop, name=name, about=about, start=start)

    def kept(self, name: str) -> Kept | None:
        found = self._one(f"{KEPT} WHERE name = ?", name)
        return None if found is None else kept_of(found)

    def lease(self, loop: int, steps: int) -> int:
        head = self._head(loop)
        head[0] += steps
        return head[0] - steps + 1

    def append(
        self, loop: int, now: Moment, kind: str, t: int | None, fields: Mapping[str, Any], x: bytes | None
    ) -> int:
        head = self._head(loop)
        text = as_json(fields)
        seq = head[1] + 1
        values = (loop, seq, now.wall, kind, t, text, x, check_value(loop, seq, now.wall, kind, t, text, x))
        self._run("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
        head[1:4] = seq, now.wall, now.steady
        return seq

    def row(self, loop: int, seq: int) -> Row | None:
        found = self._one(f"{ROW} = ?", loop, seq)
        return None if found is None else row_of(found)

    def rows(self, loop: int, after: int) -> Iterator[Row]:
        return rows_after(self._connection, loop, after)

    def put(self, loop: int, outcome: Outcome) -> None:
        o = outcome
        value = None if o.value is None else o.value + 0.0  # SQLite keeps no sign of zero
        values = (loop, o.t, o.event, o.seq, o.phase, value, o.due, o.rank, as_names(o.names))
        self._run(_PUT, (*values, check_values(*values)))

    def outcome(self, loop: int, event: str) -> Outcome | None:
        found = self._one(f"{OUTCOME} event = ?", loop, event)
        return None if found is None else outcome_of(found)

    def at(self, loop: int, t: int) -> Outcome | None:
        found = self._one(f"{OUTCOME} t = ?", loop, t)
        return None if found is None else outcome_of(found)

    def due(self, loop: int, now: int, most: int) -> Sequence[Outcome]:
        sql = f"{OUTCOME} due <= ? ORDER BY due, t LIMIT ?"
        return [outcome_of(found) for found in fetch(self._connection, sql, (loop, now, most))]

    def snapshot(self, loop: int) -> tuple[int, bytes] | None:
        return snapshot_of(self._one(SNAPSHOT, loop))

    def keep(self, loop: int, seq: int, model: bytes) -> None:
        values = (loop, seq, model, check_snapshot(loop, seq, model))
        self._run("INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?, ?)", values)

    def rebase(self, loop: int, seq: int, model: bytes) -> None:
        kept = kept_of(self._one(f"{KEPT} WHERE id = ?", loop))
        self._run("UPDATE loop SET start = ?, base = ? WHERE id = ?", (model, seq, loop))
        self._head(loop)[4] = check_made(loop, kept.name, kept.about, model, seq)
        self._run("DELETE FROM snapshot WHERE loop = ?", (loop,))

    def erase(self, loop: int, t: int) -> None:
        outcome = self.at(loop, t)
        row = None if outcome is None else self.row(loop, outcome.seq)
        if row is None:
            raise KeyError(t)
        fields = as_json({name: value for name, value in row.fields.items() if name != "event"})
        crc = check_value(loop, row.seq, row.ts, row.kind, row.t, fields, None)
        sql = "UPDATE event SET fields = ?, x = NULL, crc = ? WHERE loop = ? AND seq = ?"
        self._run(sql, (fields, crc, loop, row.seq))
        self._run("DELETE FROM outcome WHERE loop = ? AND t = ?", (loop, t))

    def prune(self, loop: int, before: int) -> int:
        self._run("CREATE TEMP TABLE spare (t INTEGER PRIMARY KEY)")
        self._run(_SPARE, (loop, before))
        self._run("DELETE FROM event WHERE loop = ? AND t IN (SELECT t FROM spare)", (loop,))
        self._run("DELETE FROM outcome WHERE loop = ? AND t IN (SELECT t FROM spare)", (loop,))
        n: int = self._run("SELECT count(*) FROM spare").get
        self._run("DROP TABLE spare")
        return n
