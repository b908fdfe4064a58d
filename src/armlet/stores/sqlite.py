"""A ledger in one SQLite file: nothing is answered before it is on disk.

WAL with synchronous=FULL: a commit is one fsync, shared by all that waited. One process at a time, by a lock on a file
next to it; readers of the same process do not wait. Every row carries a checksum, since SQLite's pages have none, and
the whole file is checked when it is opened: a damaged index could hide a row that is there.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import product
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import apsw

from armlet.disk import LockedFile, sync_directory
from armlet.errors import StoreError, UnknownNameError
from armlet.kernel import json_bytes
from armlet.stores.ledger import LoopRecord, Moment, Outcome, Phase, Pruned, Row

# ---- the tables, and their rows as the ledger's own: what is read is checked here, its types too, for an editor of a
# file can mend a check value; the rest may trust it. A file whose schema is not exactly this one is refused: a trigger,
# say, would run with the next row

PAGE = 1000  # rows read at once

LOOP = "SELECT id, name, about, start, base, made FROM loop"
COLUMNS = ("loop", "seq", "ts", "kind", "t", "fields", "x", "crc")
ROW = f"SELECT {', '.join(COLUMNS)} FROM event WHERE loop = ? AND seq"
OUTCOME = "SELECT loop, t, event, seq, phase, value, due, rank, names, crc FROM outcome WHERE loop = ? AND"
HEAD = "SELECT id, clock, seq, ts, steady, outcomes, made, crc FROM loop"
SNAPSHOT = "SELECT loop, seq, model, crc FROM snapshot WHERE loop = ?"

_WHOLE, _REAL, _TEXT, _BYTES = (int,), (float,), (str,), (bytes,)
_NONE = (type(None),)
_TYPES = {
    "loop": (_WHOLE, _TEXT, _TEXT, _BYTES, _WHOLE, _WHOLE),
    "head": (_WHOLE,) * 8,
    "event": (_WHOLE, _WHOLE, _WHOLE, _TEXT, _WHOLE + _NONE, _TEXT, _BYTES + _NONE, _WHOLE),
    "outcome": (_WHOLE, _WHOLE, _TEXT, _WHOLE, _TEXT, _REAL + _NONE, _WHOLE + _NONE, _WHOLE, _TEXT, _WHOLE),
    "snapshot": (_WHOLE, _WHOLE, _BYTES, _WHOLE),
}
_SHAPES = {table: frozenset(product(*kinds)) for table, kinds in _TYPES.items()}


def _as_json(fields: Mapping[str, Any]) -> str:
    return json_bytes(fields).decode()


def _as_names(names: Sequence[str]) -> str:
    return json.dumps(names) if names else "[]"


def check_value(loop: int, seq: int, ts: int, kind: str, t: int | None, fields: str, x: bytes | None) -> int:
    """Return the check value of a row and its place."""
    return zlib.crc32(x or b"", zlib.crc32(f"{loop} {seq} {ts} {kind} {t} {fields}".encode()))


def check_values(*values: object) -> int:
    """Return the check value of a row of any other table and its place."""
    return zlib.crc32(repr(values).encode(errors="surrogatepass"))


def check_made(loop: int, name: str, about: str, start: bytes, base: int) -> int:
    """Return the check value of a loop's name, reward rules and model."""
    return zlib.crc32(start, check_values(loop, name, about, base))


def check_snapshot(loop: int, seq: int, model: bytes) -> int:
    """Return the check value of a snapshot."""
    return zlib.crc32(model, check_values(loop, seq))


def _fetch(connection: apsw.Connection, sql: str, values: tuple[object, ...] = ()) -> list[Any]:
    """Read all that a statement finds; invalid text is damage like any other."""
    try:
        return connection.execute(sql, values).fetchall()
    except UnicodeDecodeError as error:
        raise StoreError(f"a row of the store holds text that is not UTF-8: {error}; {_WAY_OUT}") from error


def _fetch_one(connection: apsw.Connection, sql: str, values: tuple[object, ...] = ()) -> Any:
    found = _fetch(connection, sql, values)
    return found[0] if found else None


def _record_of(found: Sequence[Any]) -> LoopRecord:
    _check_types("loop", found, f"loop {found[1]!r:.80}")
    loop, name, about, start, base, made = found
    _check(check_made(loop, name, about, start, base) == made, f"loop {name!r:.80}")
    return LoopRecord(id=loop, name=name, about=about, start=start, base=base)


class Head(NamedTuple):
    """How far a loop has come."""

    clock: int = 0
    seq: int = 0
    ts: int = 0
    steady: int = 0
    outcomes: int = 0  # how many there are, so that none can be missed
    made: int = 0  # the check value of its other columns


def _head_of(found: Sequence[Any] | None) -> Head:
    if found is None:
        raise StoreError(f"a loop of the store is gone; {_WAY_OUT}")
    _check_types("head", found, f"loop {found[0]}")
    *values, crc = found
    _check(check_values(*values) == crc, f"the clock of loop {found[0]}")
    return Head(*values[1:])


def _outcome_of(found: Sequence[Any]) -> Outcome:
    loop, t, event, seq, phase, value, due, rank, names, crc = found
    what = f"the outcome of step {t} of the loop"
    _check_types("outcome", found, what)
    _check(check_values(loop, t, event, seq, phase, value, due, rank, names) == crc, what)
    told = () if names == "[]" else tuple(_parsed(names, list, what))
    _check(phase in get_args(Phase) and all(type(name) is str for name in told), what)
    return Outcome(t=t, event=event, seq=seq, phase=phase, value=value, due=due, rank=rank, names=told)


def _row_of(found: Sequence[Any]) -> Row:
    loop, seq, ts, kind, t, fields, x, crc = found
    what = f"row {seq} of the loop"
    _check_types("event", found, what)
    _check(check_value(loop, seq, ts, kind, t, fields, x) == crc, what)
    return Row(seq=seq, ts=ts, kind=kind, t=t, fields=_parsed(fields, dict, what), x=x)


def _snapshot_of(found: Sequence[Any] | None) -> tuple[int, bytes] | None:
    """Read a snapshot; a damaged one is none, since the rows say the same."""
    if found is None or not _fits("snapshot", found):
        return None
    loop, seq, model, crc = found
    return (seq, model) if check_snapshot(loop, seq, model) == crc else None


def _rows_after(connection: apsw.Connection, loop: int, after: int) -> Iterator[Row]:
    """Read rows in order, a page at a time, so that nobody waits for the reader."""
    while page := _fetch(connection, f"{ROW} > ? ORDER BY seq LIMIT ?", (loop, after, PAGE)):
        for found in page:
            row = _row_of(found)
            _check(row.seq > after, f"row {row.seq} of the loop")  # or this might never end
            yield row
            after = row.seq


_WAY_OUT = "go back to a backup"


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise StoreError(f"{what} is damaged: its checksum is wrong; {_WAY_OUT}")


def _fits(table: str, found: Sequence[Any]) -> bool:
    return tuple(map(type, found)) in _SHAPES[table]


def _check_types(table: str, found: Sequence[Any], what: str) -> None:
    if not _fits(table, found):
        raise StoreError(f"{what} is damaged: a value of it is of another type; {_WAY_OUT}")


def _parsed(text: str, kind: type, what: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{what} is damaged: it holds no JSON ({error}); {_WAY_OUT}") from error
    if type(value) is not kind:
        raise StoreError(f"{what} is damaged: it holds other JSON than it should; {_WAY_OUT}")
    return value


# ---- the schema

APPLICATION = 0x41524D4C  # "ARML"

VERSION = 6  # counted up when a table or the fields of a row change; a file of another version is refused
_TABLES = """
    CREATE TABLE loop (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, about TEXT NOT NULL, start BLOB NOT NULL,
        clock INTEGER NOT NULL DEFAULT 0, seq INTEGER NOT NULL DEFAULT 0, ts INTEGER NOT NULL DEFAULT 0,
        base INTEGER NOT NULL DEFAULT 0,  -- rows up to it have been learned by `start`, so that they may be erased
        steady INTEGER NOT NULL DEFAULT 0, outcomes INTEGER NOT NULL DEFAULT 0,
        made INTEGER NOT NULL,  -- the check value of name, about, start and base; `crc` is that of the rest
        crc INTEGER NOT NULL);
    CREATE TABLE event (
        loop INTEGER NOT NULL, seq INTEGER NOT NULL, ts INTEGER NOT NULL, kind TEXT NOT NULL, t INTEGER,
        fields TEXT NOT NULL, x BLOB, crc INTEGER NOT NULL, PRIMARY KEY (loop, seq)) WITHOUT ROWID;
    CREATE TABLE outcome (
        loop INTEGER NOT NULL, t INTEGER NOT NULL, event TEXT NOT NULL, seq INTEGER NOT NULL, phase TEXT NOT NULL,
        value REAL, due INTEGER, rank INTEGER NOT NULL, names TEXT NOT NULL, crc INTEGER NOT NULL,
        PRIMARY KEY (loop, t)) WITHOUT ROWID;
    CREATE UNIQUE INDEX outcome_by_event ON outcome (loop, event);
    CREATE INDEX outcome_by_due ON outcome (loop, due) WHERE due IS NOT NULL;
    CREATE INDEX event_by_step ON event (loop, t) WHERE kind <> 'decide';
    CREATE TABLE snapshot (
        loop INTEGER PRIMARY KEY, seq INTEGER NOT NULL, model BLOB NOT NULL, crc INTEGER NOT NULL);
"""


def check_ours(connection: apsw.Connection, name: str) -> None:
    """Refuse a file that is not a store, is of another version, has another schema, or is damaged."""
    version, mark, schema = connection.pragma("user_version"), connection.pragma("application_id"), _schema(connection)
    if mark != APPLICATION and (mark or version or schema):
        raise StoreError(f"{name} is a database, but not one of Armlet's; name another file")
    if mark == APPLICATION and version != VERSION:
        raise StoreError(
            f"{name} is a store of version {version}; this Armlet reads {VERSION} only: use the one that wrote it"
        )
    if odd := sorted(schema ^ (_known() if mark else frozenset())):
        kind, thing = odd[0][:2]
        raise StoreError(
            f"{name} has another schema than a store of Armlet's: see {kind} {thing!r}; go back to a backup"
        )
    if (told := connection.execute("PRAGMA integrity_check(1)").get) != "ok":
        raise StoreError(f"{name} is damaged: {told}; go back to a backup")


def _create_tables(connection: apsw.Connection) -> None:
    """Make the tables of an empty file, all or none."""
    if connection.pragma("user_version") != VERSION:
        with connection:
            connection.execute(_TABLES)
            connection.pragma("application_id", APPLICATION)
            connection.pragma("user_version", VERSION)


def check_counts(connection: apsw.Connection, name: str) -> None:
    """Refuse a file that has lost some of its outcomes: rewards would count again."""
    found = dict(_fetch(connection, "SELECT loop, count(*) FROM outcome GROUP BY loop"))
    heads = {each[0]: _head_of(each).outcomes for each in _fetch(connection, HEAD)}
    if found != {loop: count for loop, count in heads.items() if count}:
        raise StoreError(f"{name} is damaged: outcomes are missing, or there are too many; go back to a backup")


def _schema(connection: apsw.Connection) -> set[tuple[str, ...]]:
    found = _fetch(connection, "SELECT type, name, tbl_name, sql FROM sqlite_master")
    return {tuple(map(str, each)) for each in found}


@cache
def _known() -> frozenset[tuple[str, ...]]:
    connection = apsw.Connection(":memory:")
    connection.execute(_TABLES)
    known = frozenset(_schema(connection))
    connection.close()
    return known


# ---- a transaction, statement by statement

_NEW = """
    INSERT INTO outcome (loop, t, event, seq, phase, value, due, rank, names, crc) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (loop, t) DO NOTHING"""
_CHANGED = """
    UPDATE outcome SET seq = ?4, phase = ?5, value = ?6, due = ?7, rank = ?8, names = ?9, crc = ?10
    WHERE loop = ?1 AND t = ?2"""
_CREATE = "INSERT INTO loop (id, name, about, start, made, crc) VALUES (?, ?, ?, ?, ?, ?)"
_PIECE = f"""
    SELECT outcome.t, due, phase, event.{", event.".join(COLUMNS)} FROM outcome JOIN event USING (loop, seq)
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
        self._heads: dict[int, Head] = {}  # by loop; written at the end

    def _head(self, loop: int) -> Head:
        if loop not in self._heads:
            self._heads[loop] = _head_of(self._one(f"{HEAD} WHERE id = ?", loop))
        return self._heads[loop]

    def _one(self, sql: str, *values: object) -> Any:
        return _fetch_one(self._connection, sql, values)

    def savepoint(self) -> _Savepoint:
        return _Savepoint(self)

    def finish(self) -> None:
        """Write down how far loops have come."""
        sql = "UPDATE loop SET clock = ?, seq = ?, ts = ?, steady = ?, outcomes = ?, made = ?, crc = ? WHERE id = ?"
        for loop, head in self._heads.items():
            self._run(sql, (*head, check_values(loop, *head), loop))

    def create(self, name: str, about: str, start: bytes) -> LoopRecord:
        loop = self._one("SELECT coalesce(max(id), 0) + 1 FROM loop")[0]
        head = Head(made=check_made(loop, name, about, start, 0))
        self._run(_CREATE, (loop, name, about, start, head.made, check_values(loop, *head)))
        return LoopRecord(id=loop, name=name, about=about, start=start)

    def find(self, name: str) -> LoopRecord | None:
        found = self._one(f"{LOOP} WHERE name = ?", name)
        return None if found is None else _record_of(found)

    def lease(self, loop: int, steps: int) -> int:
        head = self._head(loop)
        self._heads[loop] = head._replace(clock=head.clock + steps)
        return head.clock + 1

    def append(
        self, loop: int, now: Moment, kind: str, t: int | None, fields: Mapping[str, Any], x: bytes | None
    ) -> int:
        head = self._head(loop)
        text = _as_json(fields)
        seq = head.seq + 1
        values = (loop, seq, now.wall, kind, t, text, x, check_value(loop, seq, now.wall, kind, t, text, x))
        self._run("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
        self._heads[loop] = head._replace(seq=seq, ts=now.wall, steady=now.steady)
        return seq

    def last(self, loop: int) -> int:
        return self._head(loop).seq

    def row(self, loop: int, seq: int) -> Row | None:
        found = self._one(f"{ROW} = ?", loop, seq)
        return None if found is None else _row_of(found)

    def rows(self, loop: int, after: int) -> Iterator[Row]:
        return _rows_after(self._connection, loop, after)

    def put(self, loop: int, outcome: Outcome) -> None:
        o = outcome
        value = None if o.value is None else o.value + 0.0  # SQLite keeps no sign of zero
        told = (loop, o.t, o.event, o.seq, o.phase, value, o.due, o.rank, _as_names(o.names))
        values = (*told, check_values(*told))
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
        outcome = _outcome_of(found)
        if outcome.phase == "open" and outcome.value is None and self._one(_ABOUT, loop, outcome.t):
            raise StoreError(f"the outcome of step {outcome.t} of the loop is older than its rows; go back to a backup")
        return outcome

    def outcome(self, loop: int, event: str) -> Outcome | None:
        found = self._one(f"{OUTCOME} event = ?", loop, event)
        return None if found is None else self._believed(loop, found)

    def at(self, loop: int, t: int) -> Outcome | None:
        found = self._one(f"{OUTCOME} t = ?", loop, t)
        return None if found is None else _outcome_of(found)

    def due(self, loop: int, now: int, most: int) -> Sequence[Outcome]:
        sql = f"{OUTCOME} due <= ? ORDER BY due, t LIMIT ?"
        return [self._believed(loop, found) for found in _fetch(self._connection, sql, (loop, now, most))]

    def snapshot(self, loop: int) -> tuple[int, bytes] | None:
        return _snapshot_of(self._one(SNAPSHOT, loop))

    def keep(self, loop: int, seq: int, model: bytes) -> None:
        values = (loop, seq, model, check_snapshot(loop, seq, model))
        self._run("INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?, ?)", values)

    def rebase(self, loop: int, seq: int, model: bytes) -> None:
        record = _record_of(self._one(f"{LOOP} WHERE id = ?", loop))
        head = self._head(loop)._replace(made=check_made(loop, record.name, record.about, model, seq))
        self._run("UPDATE loop SET start = ?, base = ?, made = ? WHERE id = ?", (model, seq, head.made, loop))
        self._heads[loop] = head
        self._run("DELETE FROM snapshot WHERE loop = ?", (loop,))

    def erase(self, loop: int, t: int) -> None:
        outcome = self.at(loop, t)
        row = None if outcome is None else self.row(loop, outcome.seq)
        if row is None:
            raise UnknownNameError(t)
        fields = _as_json({name: value for name, value in row.fields.items() if name != "event"})
        crc = check_value(loop, row.seq, row.ts, row.kind, row.t, fields, None)
        sql = "UPDATE event SET fields = ?, x = NULL, crc = ? WHERE loop = ? AND seq = ?"
        self._run(sql, (fields, crc, loop, row.seq))
        self._delete_about(loop, t)

    def _delete_about(self, loop: int, t: int) -> None:
        for sql in _ALL_ABOUT:
            self._run(sql, (loop, t))
        self._count(loop, -self._connection.changes())

    def prune(self, loop: int, before: int, after: int, most: int) -> Pruned:
        base: int = self._run("SELECT base FROM loop WHERE id = ?", (loop,)).get
        found = _fetch(self._connection, _PIECE, (loop, after, most))
        decided = [(t, phase, _row_of(row)) for t, due, phase, *row in found if due is None]
        old = [
            (t, phase, row.seq)
            for t, phase, row in decided
            if row.ts < before and not row.fields.get("explored", True) and row.seq <= base
        ]
        spare = [each for each in old if not self._run(_NEEDED, (loop, each[0], base)).get]
        gone = [(t, seq) for t, phase, seq in spare if phase != "open"]
        for t, seq in gone:
            self._run("DELETE FROM event WHERE loop = ? AND seq = ?", (loop, seq))
            self._delete_about(loop, t)
        waiting = [self.at(loop, t) for t, phase, _ in spare if phase == "open"]
        after_this = found[-1][0] if len(found) == most else None
        return Pruned(len(gone), after_this, tuple(outcome for outcome in waiting if outcome is not None))

    def shrink(self, most: int) -> bool:
        if self._connection.pragma("auto_vacuum") != INCREMENTAL:
            return False  # somebody has set that: what is free is used again, but not given back
        before: int = self._connection.pragma("freelist_count")
        self._run(f"PRAGMA incremental_vacuum({most})").fetchall()
        free: int = self._connection.pragma("freelist_count")
        return 0 < free < before  # of a damaged file the count may stay


# ---- the ledger

RESERVE = 1 << 20  # bytes of the lock's file
OLDEST = (3, 51, 3)  # before it, two connections could damage a file in WAL mode (the "WAL-reset" fault)

Synchronous: TypeAlias = Literal["FULL", "NORMAL"]

# after these a transaction may be tried again; after any other nobody knows what the disk has
_PASSING = (apsw.FullError, apsw.BusyError, apsw.ConstraintError, apsw.TooBigError)
LARGEST = 0xFFFFFFFE  # pages of a file, as SQLite has it
_RAW = (apsw.Error, OSError, ValueError, TypeError, OverflowError)  # what a file can make others raise


_SETTINGS = (
    (apsw.SQLITE_DBCONFIG_DEFENSIVE, 1),
    (apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
    (apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0),
    (apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0),
    (apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0),
)


def check_library(version: str) -> None:
    """Refuse a SQLite with a fault that can lose what was answered.

    Examples
    --------
    >>> check_library("3.40.1")
    Traceback (most recent call last):
    armlet.errors.StoreError: SQLite is 3.40.1, but before 3.51.3 it can damage a file in WAL mode; ...
    """
    if tuple(map(int, version.split("."))) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise StoreError(
            f"SQLite is {version}, but before {oldest} it can damage a file in WAL mode; install apsw {oldest} or later"
        )


class _Lock(LockedFile):
    """The lock of a store, in a file next to it, and a little room for a full disk in that file.

    The lock ends with the process whatever ends it. What it reserves is returned to the disk where SQLite finds none,
    so that a store on a full disk can still be opened, read and pruned.
    """

    def __init__(self, path: Path, name: str) -> None:
        try:
            super().__init__(Path(f"{path}.lock"), 0o600)
        except BlockingIOError as error:
            raise StoreError(f"{name} is open already, here or in another process; close it there first") from error
        except OSError as error:
            raise StoreError(f"{name} cannot be opened: {error}") from error

    def reserve(self) -> bool:
        """Keep room on the disk; return whether there is any."""
        try:
            os.posix_fallocate(self.fd, 0, RESERVE)
        except OSError:
            self.release()
            return False
        return True

    def release(self) -> bool:
        """Return the room to the disk; return whether there was any."""
        held = os.fstat(self.fd).st_size > 0
        os.ftruncate(self.fd, 0)
        return held


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
    armlet.errors.StoreError: shop.db is open already, here or in another process; close it there first
    >>> ledger.close()
    """

    failures: tuple[type[Exception], ...] = (apsw.Error,)

    def __init__(self, path: Path, *, synchronous: Synchronous = "FULL") -> None:
        check_library(apsw.sqlite_lib_version())
        self._name, self._path = str(path), Path(os.path.realpath(path))  # through two links it has one lock
        self._broken: str | None = None
        self._is_open = True
        self._lock = _Lock(self._path, self._name)
        try:
            self._connection = self._open(synchronous)
            self._reserve()
        except BaseException as error:
            self._lock.remove()
            self._lock.close()
            if isinstance(error, _RAW):
                raise StoreError(f"{path} cannot be opened: {error}") from error
            raise

    def _open(self, synchronous: Synchronous) -> apsw.Connection:
        """Open the file; on a full disk, with the room that was kept for it."""
        is_new = not self._path.exists()
        try:
            try:
                return self._connected(synchronous)
            except (apsw.IOError, apsw.FullError, apsw.CantOpenError, OSError):
                if not self._lock.release():
                    raise
                return self._connected(synchronous)
        except BaseException:
            if is_new:
                _remove(self._path)
            raise

    def _connected(self, synchronous: Synchronous) -> apsw.Connection:
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        connection = _connect(self._path)
        try:
            check_ours(connection, self._name)  # before anything is changed
            if not self._path.stat().st_size:  # only a new file can be told
                connection.pragma("auto_vacuum", INCREMENTAL)
            if connection.pragma("journal_mode", "WAL") != "wal":
                raise StoreError(f"{self._name} is where SQLite cannot keep a log (WAL); name a file on a local disk")
            connection.pragma("synchronous", synchronous)
            connection.pragma("secure_delete", True)
            _create_tables(connection)
            check_counts(connection, self._name)
            connection.execute("BEGIN IMMEDIATE; ROLLBACK")  # SQLite finds its log, and room for it, before it is used
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def transaction(self) -> Iterator[SQLiteTransaction]:
        """Open the one transaction; an error of the disk other than a full one ends the store, for the disk may lie."""
        if self._broken is not None:
            raise StoreError(f"{self._name} failed before ({self._broken}); close it and open it again")
        connection = self._connection
        try:
            if not self._has_reserve:
                self._reserve()
            connection.execute("BEGIN IMMEDIATE")
            tx = SQLiteTransaction(connection)
            yield tx
            tx.finish()
            connection.execute("COMMIT")
        except BaseException as error:
            if isinstance(error, apsw.Error) and not isinstance(error, _PASSING):
                self._broken = str(error)
            self._roll_back()
            if isinstance(error, apsw.FullError):
                self._make_room()
            raise

    def _roll_back(self) -> None:
        try:
            if self._connection.in_transaction:  # SQLite may have rolled back by itself
                self._connection.execute("ROLLBACK")
        except apsw.Error as error:
            self._broken = str(error)

    def _reserve(self) -> None:
        """Keep room for a full disk; without it the file may not grow, so that rows can still be deleted from it."""
        self._has_reserve = self._lock.reserve()
        most = LARGEST if self._has_reserve else self._connection.pragma("page_count")
        self._connection.pragma("max_page_count", most)

    def _make_room(self) -> None:
        """Bring the log of SQLite into the file, with the reserve if need be, so that the log's room is free again."""
        with suppress(apsw.Error):  # somebody reads, or the next transaction will say what is wrong
            try:
                self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
            except apsw.FullError:
                if self._lock.release():
                    self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
                    self._has_reserve = False

    def newest(self) -> Moment | None:
        with self._reading() as connection:
            heads = [_head_of(found) for found in _fetch(connection, HEAD)]
        newest = max(heads, key=lambda head: head.steady, default=None)
        return None if newest is None or not newest.seq else Moment(wall=newest.ts, steady=newest.steady)

    def loops(self) -> Sequence[LoopRecord]:
        with self._reading() as connection:
            return [_record_of(found) for found in _fetch(connection, f"{LOOP} ORDER BY id")]

    def rows(self, loop: int, after: int = 0) -> Iterator[Row]:
        with self._reading() as connection:
            yield from _rows_after(connection, loop, after)

    def decided(self, loop: int, t: int) -> Row | None:
        with self._reading() as connection:
            sql = f"{ROW} = (SELECT seq FROM outcome WHERE loop = ? AND t = ?)"
            found = _fetch_one(connection, sql, (loop, loop, t))
            return None if found is None else _row_of(found)

    @contextmanager
    def _reading(self) -> Iterator[apsw.Connection]:
        if not self._is_open:
            raise StoreError("the store is closed; open it again")
        try:
            connection = _connect(self._path, apsw.SQLITE_OPEN_READONLY)
            try:
                yield connection
            finally:
                connection.close()
        except apsw.Error as error:
            raise StoreError(f"{self._name} cannot be read: {error}") from error

    def scrub(self) -> bool:
        """Bring the log of SQLite into the file, where deleted bytes are zeros, and empty it.

        It waits for nobody: where somebody reads what the log has, the log cannot be emptied yet.
        """
        try:
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.BusyError:
            return False
        return True

    def backup(self, path: Path) -> None:
        """Copy everything into a new file, as it is at one moment; a copy that fails leaves nothing behind."""
        if path.exists():
            raise StoreError(f"{path} exists; name a file that does not")
        part = path.with_name(f".armlet-{os.urandom(8).hex()}.tmp")
        try:
            with self._reading() as source:
                _copy(source, part)
            part.rename(path)
            sync_directory(path.parent)
        except OSError as error:
            raise StoreError(f"{path} cannot be written: {error}; make room, or name a file elsewhere") from error
        finally:
            _remove(part)

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            try:
                self._connection.close()
            finally:
                self._lock.close()


def _connect(path: Path, flags: int = apsw.SQLITE_OPEN_READWRITE) -> apsw.Connection:
    """Open a file that is there, with triggers, views and functions of its schema switched off."""
    connection = apsw.Connection(str(path), flags=flags)
    try:
        for setting, value in _SETTINGS:
            connection.config(setting, value)
        connection.pragma("cell_size_check", True)
    except BaseException:
        connection.close()
        raise
    return connection


def _copy(source: apsw.Connection, path: Path) -> None:
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    target = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        with target.backup("main", source, "main") as copy:
            while not copy.done:
                copy.step(-1)
    except apsw.Error as error:  # of which SQLite says "not an error" where the disk is full
        raise OSError(f"the disk is full, or fails ({type(error).__name__})") from error
    finally:
        target.close()


def _remove(path: Path) -> None:
    for end in ("", "-journal", "-wal", "-shm"):
        Path(f"{path}{end}").unlink(missing_ok=True)
