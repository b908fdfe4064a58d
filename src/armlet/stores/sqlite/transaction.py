"""A transaction in SQLite, statement by statement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

import apsw

from armlet.errors import StoreError, UnknownNameError
from armlet.stores.ledger import LoopRecord, Moment, Outcome, Pruned, Row
from armlet.stores.sqlite import tables

_NEW = """
    INSERT INTO outcome (loop, t, event, seq, phase, value, due, rank, names, crc) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (loop, t) DO NOTHING"""
_CHANGED = """
    UPDATE outcome SET seq = ?4, phase = ?5, value = ?6, due = ?7, rank = ?8, names = ?9, crc = ?10
    WHERE loop = ?1 AND t = ?2"""
_CREATE = "INSERT INTO loop (id, name, about, start, made, crc) VALUES (?, ?, ?, ?, ?, ?)"
_PIECE = f"""
    SELECT outcome.t, due, event.{", event.".join(tables.COLUMNS)} FROM outcome JOIN event USING (loop, seq)
    WHERE outcome.loop = ? AND outcome.t > ? ORDER BY outcome.t LIMIT ?"""
# the planner, which has no statistics, would read the whole loop instead
_NEEDED = "SELECT 1 FROM event INDEXED BY event_by_step WHERE loop = ? AND t = ? AND kind <> 'decide' AND seq > ?"
_ABOUT = "SELECT 1 FROM event INDEXED BY event_by_step WHERE loop = ? AND t = ? AND kind <> 'decide' LIMIT 1"
_ALL_ABOUT = (
    "DELETE FROM event INDEXED BY event_by_step WHERE loop = ? AND t = ? AND kind <> 'decide'",
    "DELETE FROM outcome WHERE loop = ? AND t = ?",
)
_REFUSED = (apsw.ConstraintError, apsw.TooBigError)  # of one statement; the transaction is as it was before it
INCREMENTAL = 2  # of PRAGMA auto_vacuum


class _Savepoint:
    """A part of a transaction that can be undone by itself; one is made for every call, so it is no generator."""

    __slots__ = ("_heads", "_run", "_tx")

    def __init__(self, tx: SQLiteTransaction) -> None:
        self._tx, self._run, self._heads = tx, tx._run, tx._heads.copy()

    def __enter__(self) -> None:
        self._run("SAVEPOINT call")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        is_refused = isinstance(error, _REFUSED)
        if isinstance(error, apsw.Error) and not is_refused:
            return  # of the disk: SQLite may have ended the transaction by itself
        if error is not None:
            self._run("ROLLBACK TO call")
            self._tx._heads = self._heads
        self._run("RELEASE call")
        if is_refused:
            raise StoreError(f"nothing of this call was kept: {error}") from error


class SQLiteTransaction:
    """A transaction of the connection that writes."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._run = connection.execute
        self._heads: dict[int, tables.Head] = {}  # by loop; written at the end

    def _head(self, loop: int) -> tables.Head:
        if loop not in self._heads:
            self._heads[loop] = tables.head_of(self._one(f"{tables.HEAD} WHERE id = ?", loop))
        return self._heads[loop]

    def _one(self, sql: str, *values: object) -> Any:
        return tables.fetch_one(self._connection, sql, values)

    def savepoint(self) -> _Savepoint:
        return _Savepoint(self)

    def finish(self) -> None:
        """Write down how far loops have come."""
        sql = "UPDATE loop SET clock = ?, seq = ?, ts = ?, steady = ?, outcomes = ?, made = ?, crc = ? WHERE id = ?"
        for loop, head in self._heads.items():
            self._run(sql, (*head, tables.check_values(loop, *head), loop))

    def create(self, name: str, about: str, start: bytes) -> LoopRecord:
        loop = self._one("SELECT coalesce(max(id), 0) + 1 FROM loop")[0]
        head = tables.Head(made=tables.check_made(loop, name, about, start, 0))
        self._run(_CREATE, (loop, name, about, start, head.made, tables.check_values(loop, *head)))
        return LoopRecord(id=loop, name=name, about=about, start=start)

    def find(self, name: str) -> LoopRecord | None:
        found = self._one(f"{tables.LOOP} WHERE name = ?", name)
        return None if found is None else tables.record_of(found)

    def lease(self, loop: int, steps: int) -> int:
        head = self._head(loop)
        self._heads[loop] = head._replace(clock=head.clock + steps)
        return head.clock + 1

    def append(
        self, loop: int, now: Moment, kind: str, t: int | None, fields: Mapping[str, Any], x: bytes | None
    ) -> int:
        head = self._head(loop)
        text = tables.as_json(fields)
        seq = head.seq + 1
        values = (loop, seq, now.wall, kind, t, text, x, tables.check_value(loop, seq, now.wall, kind, t, text, x))
        self._run("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
        self._heads[loop] = head._replace(seq=seq, ts=now.wall, steady=now.steady)
        return seq

    def last(self, loop: int) -> int:
        return self._head(loop).seq

    def row(self, loop: int, seq: int) -> Row | None:
        found = self._one(f"{tables.ROW} = ?", loop, seq)
        return None if found is None else tables.row_of(found)

    def rows(self, loop: int, after: int) -> Iterator[Row]:
        return tables.rows_after(self._connection, loop, after)

    def put(self, loop: int, outcome: Outcome) -> None:
        o = outcome
        value = None if o.value is None else o.value + 0.0  # SQLite keeps no sign of zero
        told = (loop, o.t, o.event, o.seq, o.phase, value, o.due, o.rank, tables.as_names(o.names))
        values = (*told, tables.check_values(*told))
        is_new = o.phase == "open" and o.value is None and self._changes(_NEW, values)
        if not is_new and not self._changes(_CHANGED, values):
            is_new = self._changes(_NEW, values)
        if is_new:
            self._count(loop, 1)

    def _changes(self, sql: str, values: tuple[Any, ...]) -> bool:
        self._run(sql, values)
        return self._connection.changes() > 0

    def _count(self, loop: int, more: int) -> None:
        head = self._head(loop)
        self._heads[loop] = head._replace(outcomes=head.outcomes + more)

    def _believed(self, loop: int, found: Any) -> Outcome:
        """Read an outcome; one that knows of no reward is believed only if there is no row of one."""
        outcome = tables.outcome_of(found)
        if outcome.phase == "open" and outcome.value is None and self._one(_ABOUT, loop, outcome.t):
            raise StoreError(f"the outcome of step {outcome.t} of the loop is older than its rows; go back to a backup")
        return outcome

    def outcome(self, loop: int, event: str) -> Outcome | None:
        found = self._one(f"{tables.OUTCOME} event = ?", loop, event)
        return None if found is None else self._believed(loop, found)

    def at(self, loop: int, t: int) -> Outcome | None:
        found = self._one(f"{tables.OUTCOME} t = ?", loop, t)
        return None if found is None else tables.outcome_of(found)

    def due(self, loop: int, now: int, most: int) -> Sequence[Outcome]:
        sql = f"{tables.OUTCOME} due <= ? ORDER BY due, t LIMIT ?"
        return [self._believed(loop, found) for found in tables.fetch(self._connection, sql, (loop, now, most))]

    def snapshot(self, loop: int) -> tuple[int, bytes] | None:
        return tables.snapshot_of(self._one(tables.SNAPSHOT, loop))

    def keep(self, loop: int, seq: int, model: bytes) -> None:
        values = (loop, seq, model, tables.check_snapshot(loop, seq, model))
        self._run("INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?, ?)", values)

    def rebase(self, loop: int, seq: int, model: bytes) -> None:
        record = tables.record_of(self._one(f"{tables.LOOP} WHERE id = ?", loop))
        head = self._head(loop)._replace(made=tables.check_made(loop, record.name, record.about, model, seq))
        self._run("UPDATE loop SET start = ?, base = ?, made = ? WHERE id = ?", (model, seq, head.made, loop))
        self._heads[loop] = head
        self._run("DELETE FROM snapshot WHERE loop = ?", (loop,))

    def erase(self, loop: int, t: int) -> None:
        outcome = self.at(loop, t)
        row = None if outcome is None else self.row(loop, outcome.seq)
        if row is None:
            raise UnknownNameError(t)
        fields = tables.as_json({name: value for name, value in row.fields.items() if name != "event"})
        crc = tables.check_value(loop, row.seq, row.ts, row.kind, row.t, fields, None)
        sql = "UPDATE event SET fields = ?, x = NULL, crc = ? WHERE loop = ? AND seq = ?"
        self._run(sql, (fields, crc, loop, row.seq))
        self._delete_about(loop, t)

    def _delete_about(self, loop: int, t: int) -> None:
        for sql in _ALL_ABOUT:
            self._run(sql, (loop, t))
        self._count(loop, -self._connection.changes())

    def prune(self, loop: int, before: int, after: int, most: int) -> Pruned:
        base: int = self._run("SELECT base FROM loop WHERE id = ?", (loop,)).get
        found = tables.fetch(self._connection, _PIECE, (loop, after, most))
        decided = [(t, tables.row_of(row)) for t, due, *row in found if due is None]
        old = [
            (t, row.seq)
            for t, row in decided
            if row.ts < before and not row.fields.get("explored", True) and row.seq <= base
        ]
        spare = [(t, seq) for t, seq in old if not self._run(_NEEDED, (loop, t, base)).get]
        for t, seq in spare:
            self._run("DELETE FROM event WHERE loop = ? AND seq = ?", (loop, seq))
            self._delete_about(loop, t)
        return Pruned(len(spare), found[-1][0] if len(found) == most else None)

    def shrink(self, most: int) -> bool:
        if self._connection.pragma("auto_vacuum") != INCREMENTAL:
            return False  # somebody has set that: what is free is used again, but not given back
        self._run(f"PRAGMA incremental_vacuum({most})").fetchall()
        free: int = self._connection.pragma("freelist_count")
        return free > 0
