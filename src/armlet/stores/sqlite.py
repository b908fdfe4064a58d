"""A ledger in one SQLite file: nothing is answered before it is on disk.

WAL with synchronous=FULL: a commit is one fsync, shared by all that waited. One process at a time, by a lock on a file
beside it; readers of the same process do not wait. Every row carries a checksum, since SQLite's pages have none.
"""

from __future__ import annotations

import fcntl
import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

import apsw

from armlet.core.errors import StoreError
from armlet.core.kernel import json_bytes
from armlet.stores.ledger import Kept, Outcome, Row
from armlet.stores.schema import bring_up_to_date

OLDEST = (3, 51, 3)  # before it, two connections could damage a file in WAL mode (the "WAL-reset" fault)
PAGE = 1000  # rows read at once
PATIENCE = 10_000  # milliseconds to wait for those who read or write

Synchronous: TypeAlias = Literal["FULL", "NORMAL"]

_KEPT = "SELECT id, name, about, start, base FROM loop"
_ROW = "SELECT loop, seq, ts, kind, t, fields, x, crc FROM event WHERE loop = ? AND seq"
_OUTCOME = "SELECT t, event, seq, phase, value, due FROM outcome WHERE loop = ? AND"

_PUT = """
    INSERT INTO outcome VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (loop, t)
    DO UPDATE SET seq = excluded.seq, phase = excluded.phase, value = excluded.value, due = excluded.due"""
_SPARE = """
    INSERT INTO spare SELECT outcome.t FROM outcome JOIN event USING (loop, seq)
    WHERE loop = ? AND due IS NULL AND ts < ? AND NOT json_extract(fields, '$.explored')"""
# after these a transaction may be tried again; after any other nobody knows what the disk has
_PASSING = (apsw.FullError, apsw.BusyError, apsw.ConstraintError, apsw.TooBigError)


def check_library(version: str) -> None:
    """Refuse a SQLite with a fault that can lose what was answered.

    Examples
    --------
    >>> check_library("3.40.1")
    Traceback (most recent call last):
    armlet.core.errors.StoreError: SQLite is 3.40.1, but before 3.51.3 it can damage a file in WAL mode; ...
    """
    if tuple(map(int, version.split("."))) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise StoreError(
            f"SQLite is {version}, but before {oldest} it can damage a file in WAL mode; install apsw {oldest} or later"
        )


def _json(fields: Mapping[str, Any]) -> str:
    return json_bytes(fields).decode()


def _crc(loop: int, seq: int, ts: int, kind: str, t: int | None, fields: str, x: bytes | None) -> int:
    return zlib.crc32(x or b"", zlib.crc32(f"{loop} {seq} {ts} {kind} {t} {fields}".encode()))


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
        found = self._run(f"{_KEPT} WHERE name = ?", (name,)).fetchone()
        return None if found is None else _kept(found)

    def lease(self, loop: int, steps: int) -> int:
        head = self._head(loop)
        head[0] += steps
        return head[0] - steps + 1

    def append(self, loop: int, ts: int, kind: str, t: int | None, fields: Mapping[str, Any], x: bytes | None) -> int:
        head = self._head(loop)
        text = _json(fields)
        seq = head[1] + 1
        values = (loop, seq, ts, kind, t, text, x, _crc(loop, seq, ts, kind, t, text, x))
        self._run("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
        head[1:] = seq, max(head[2], ts)
        return seq

    def row(self, loop: int, seq: int) -> Row | None:
        found = self._run(f"{_ROW} = ?", (loop, seq)).fetchone()
        return None if found is None else _row(found)

    def rows(self, loop: int, after: int) -> Iterator[Row]:
        return _rows(self._connection, loop, after)

    def put(self, loop: int, outcome: Outcome) -> None:
        o = outcome
        values = (loop, o.t, o.event, o.seq, o.phase, o.value, o.due)
        self._run(_PUT, values)

    def outcome(self, loop: int, event: str) -> Outcome | None:
        return _outcome(self._run(f"{_OUTCOME} event = ?", (loop, event)).fetchone())

    def at(self, loop: int, t: int) -> Outcome | None:
        return _outcome(self._run(f"{_OUTCOME} t = ?", (loop, t)).fetchone())

    def due(self, loop: int, now: int, most: int) -> Sequence[Outcome]:
        found = self._run(f"{_OUTCOME} due <= ? ORDER BY due, t LIMIT ?", (loop, now, most))
        return [outcome for each in found.fetchall() if (outcome := _outcome(each))]

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
        fields = _json({name: value for name, value in row.fields.items() if name != "event"})
        crc = _crc(loop, row.seq, row.ts, row.kind, row.t, fields, None)
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


def _kept(found: Sequence[Any]) -> Kept:
    return Kept(id=found[0], name=found[1], about=found[2], start=found[3], base=found[4])


def _outcome(found: Sequence[Any] | None) -> Outcome | None:
    if found is None:
        return None
    t, event, seq, phase, value, due = found
    return Outcome(t=t, event=event, seq=seq, phase=phase, value=value, due=due)


def _row(found: Sequence[Any]) -> Row:
    loop, seq, ts, kind, t, fields, x, crc = found
    if _crc(loop, seq, ts, kind, t, fields, x) != crc:
        raise StoreError(f"row {seq} of the loop is damaged: its checksum is wrong; go back to a backup")
    return Row(seq=seq, ts=ts, kind=kind, t=t, fields=json.loads(fields), x=x)


def _rows(connection: apsw.Connection, loop: int, after: int) -> Iterator[Row]:
    while page := connection.execute(f"{_ROW} > ? ORDER BY seq LIMIT ?", (loop, after, PAGE)).fetchall():
        for found in page:
            row = _row(found)
            yield row
            after = row.seq


class SQLite:
    """A ledger in a file.

    Parameters
    ----------
    path
        Where; made if it is not there, readable by its owner alone, since it holds the seeds of loops.
    synchronous
        "FULL": a commit is on disk. "NORMAL": it survives the process but not a power cut; for measuring what that
        costs.

    Examples
    --------
    >>> from pathlib import Path
    >>> from armlet.stores import SQLite
    >>> ledger = SQLite(Path("shop.db"))
    >>> SQLite(Path("shop.db"))
    Traceback (most recent call last):
    armlet.core.errors.StoreError: shop.db is open already, here or in another process; close it there first
    >>> ledger.close()
    """

    failures: tuple[type[Exception], ...] = (apsw.Error,)

    def __init__(self, path: Path, *, synchronous: Synchronous = "FULL") -> None:
        check_library(apsw.sqlite_lib_version())
        self._path = path
        self._lock = _lock(path)
        self._broken: str | None = None
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            self._connection = apsw.Connection(str(path))
            if self._connection.pragma("journal_mode", "WAL") != "wal":
                raise StoreError(f"{path} is where SQLite cannot keep a log (WAL); name a file on a local disk")
            self._connection.pragma("synchronous", synchronous)
            self._connection.pragma("secure_delete", True)
            bring_up_to_date(self._connection, str(path))
        except BaseException as error:
            os.close(self._lock)
            if isinstance(error, (apsw.Error, OSError)):
                raise StoreError(f"{path} cannot be opened: {error}") from error
            raise

    @contextmanager
    def writing(self) -> Iterator[SQLitePen]:
        """Open the one transaction; an error of the disk other than a full one ends the store, for the disk may lie."""
        if self._broken is not None:
            raise StoreError(f"{self._path} failed before ({self._broken}); close it and open it again")
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            pen = SQLitePen(connection)
            yield pen
            pen.finish()
            connection.execute("COMMIT")
        except BaseException as error:
            if isinstance(error, apsw.Error) and not isinstance(error, _PASSING):
                self._broken = str(error)
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        try:
            if self._connection.in_transaction:  # SQLite may have rolled back by itself
                self._connection.execute("ROLLBACK")
        except apsw.Error as error:
            self._broken = str(error)

    def newest(self) -> int:
        """Give the newest time in any row, 0 if there is none."""
        newest: int | None = self._connection.execute("SELECT max(ts) FROM loop").get
        return newest or 0

    def loops(self) -> Sequence[Kept]:
        """Give all loops, the oldest first."""
        with self._reading() as connection:
            return [_kept(found) for found in connection.execute(f"{_KEPT} ORDER BY id").fetchall()]

    def rows(self, loop: int, after: int = 0) -> Iterator[Row]:
        """Read what is kept for good, a page at a time, with a connection of its own."""
        with self._reading() as connection:
            yield from _rows(connection, loop, after)

    def decided(self, loop: int, t: int) -> Row | None:
        """Read the row of a decision that is kept for good, by its step."""
        with self._reading() as connection:
            sql = f"{_ROW} = (SELECT seq FROM outcome WHERE loop = ? AND t = ?)"
            found = connection.execute(sql, (loop, loop, t)).fetchone()
            return None if found is None else _row(found)

    @contextmanager
    def _reading(self) -> Iterator[apsw.Connection]:
        connection = apsw.Connection(str(self._path), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            yield connection
        finally:
            connection.close()

    def scrub(self) -> None:
        """Bring the log of SQLite into the file, where deleted bytes are zeros, and empty it."""
        connection = apsw.Connection(str(self._path))
        connection.set_busy_timeout(PATIENCE)
        connection.pragma("user_version")  # SQLite finds its log when it reads
        try:
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.Error as error:
            raise StoreError(f"{self._path} has let go of it, but its -wal file has not: {error}; try again") from error
        finally:
            connection.close()

    def backup(self, path: Path) -> None:
        """Copy everything into a new file, as it is at one moment."""
        if path.exists():
            raise StoreError(f"{path} exists; name a file that does not")
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        target = apsw.Connection(str(path))
        with self._reading() as source, target.backup("main", source, "main") as copy:
            while not copy.done:
                copy.step(-1)
        target.close()

    def close(self) -> None:
        """Let go of the file and of its lock."""
        self._connection.close()
        os.close(self._lock)


def _lock(path: Path) -> int:
    """Take the lock beside a file, which ends with the process whatever ends it."""
    try:
        lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StoreError(f"{path} cannot be opened: {error}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        raise StoreError(f"{path} is open already, here or in another process; close it there first") from error
    return lock
