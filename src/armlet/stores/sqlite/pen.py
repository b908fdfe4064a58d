"""A transaction in SQLite, statement by statement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import apsw

from armlet.stores.ledger import Kept, Outcome, Row
from armlet.stores.sqlite.rows import (
    KEPT,
    OUTCOME,
    ROW,
    as_json,
    check_value,
    kept_of,
    outcome_of,
    row_of,
    rows_after,
)

_PUT = """
    INSERT INTO outcome VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (loop, t)
    DO UPDATE SET seq = excluded.seq, phase = excluded.phase, value = excluded.value, due = excluded.due"""
_SPARE = """
    INSERT INTO spare SELECT outcome.t FROM outcome JOIN event USING (loop, seq)
    WHERE loop = ? AND due IS NULL AND ts < ? AND NOT json_extract(fields, '$.explored')"""


class SQLitePen:
    """A transaction of the connection that writes."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._run = connection.execute
        self._heads: dict[int, list[int]] = {}  # loop -> clock, seq, ts: written once, at the end

    def _head(self, loop: int) -> list[int]:
        if loop not in self._heads:
            self._heads[loop] = list(next(self._run("SELECT clock, seq, ts FROM loop WHERE id = ?", (loop,))))
        return self._heads[loop]

    def finish(self) -> None:
        """Write down how far loops have come."""
        for loop, (clock, seq, ts) in self._heads.items():
            self._run("UPDATE loop SET clock = ?, seq = ?, ts = ? WHERE id = ?", (clock, seq, ts, loop))

    def create(self, name: str, about: str, start: bytes) -> Kept:
        sql = "INSERT INTO loop (name, about, start) VALUES (?, ?, ?)"
        self._run(sql, (name, about, start))
        return Kept(id=self._connection.last_insert_rowid(), name=name, about=about, start=start)

    def kept(self, name: str) -> Kept | None:
        found = self._run(f"{KEPT} WHERE name = ?", (name,)).fetchone()
        return None if found is None else kept_of(found)

    def lease(self, loop: int, steps: int) -> int:
        head = self._head(loop)
        head[0] += steps
        return head[0] - steps + 1

    def append(self, loop: int, ts: int, kind: str, t: int | None, fields: Mapping[str, Any], x: bytes | None) -> int:
        head = self._head(loop)
        text = as_json(fields)
        seq = head[1] + 1
        values = (loop, seq, ts, kind, t, text, x, check_value(loop, seq, ts, kind, t, text, x))
        self._run("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
        head[1:] = seq, max(head[2], ts)
        return seq

    def row(self, loop: int, seq: int) -> Row | None:
        found = self._run(f"{ROW} = ?", (loop, seq)).fetchone()
        return None if found is None else row_of(found)

    def rows(self, loop: int, after: int) -> Iterator[Row]:
        return rows_after(self._connection, loop, after)

    def put(self, loop: int, outcome: Outcome) -> None:
        o = outcome
        values = (loop, o.t, o.event, o.seq, o.phase, o.value, o.due)
        self._run(_PUT, values)

    def outcome(self, loop: int, event: str) -> Outcome | None:
        return outcome_of(self._run(f"{OUTCOME} event = ?", (loop, event)).fetchone())

    def at(self, loop: int, t: int) -> Outcome | None:
        return outcome_of(self._run(f"{OUTCOME} t = ?", (loop, t)).fetchone())

    def due(self, loop: int, now: int, most: int) -> Sequence[Outcome]:
        found = self._run(f"{OUTCOME} due <= ? ORDER BY due, t LIMIT ?", (loop, now, most))
        return [outcome for each in found.fetchall() if (outcome := outcome_of(each))]

    def snapshot(self, loop: int) -> tuple[int, bytes] | None:
        found: tuple[int, bytes] | None = self._run(
            "SELECT seq, model FROM snapshot WHERE loop = ?", (loop,)
        ).fetchone()
        return found

    def keep(self, loop: int, seq: int, model: bytes) -> None:
        self._run("INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?)", (loop, seq, model))

    def rebase(self, loop: int, seq: int, model: bytes) -> None:
        self._run("UPDATE loop SET start = ?, base = ? WHERE id = ?", (model, seq, loop))
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
