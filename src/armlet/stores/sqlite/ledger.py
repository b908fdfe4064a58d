"""A ledger in one SQLite file: nothing is answered before it is on disk.

WAL with synchronous=FULL: a commit is one fsync, shared by all that waited. One process at a time writes, by a lock on
a file next to it; readers wait for nobody, and may be other processes. Every row carries a checksum, since SQLite's
pages have none, and the whole file is checked when it is opened to be written: a damaged index could hide a row.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Final, Literal, TypeAlias

import apsw

from armlet.disk import LockedFile, sync_directory
from armlet.errors import StoreError, StoreFailedError
from armlet.stores import encoding
from armlet.stores.encoding import WAY_OUT
from armlet.stores.ledger import Head, LoopRecord, Moment, Row
from armlet.stores.sqlite.session import (
    BY_STEP,
    HEAD,
    INCREMENTAL,
    LOOP,
    REFUSALS,
    SQLiteSession,
    SQLiteView,
    check_counts,
    check_pages,
    fetch,
    marks,
    read_rows,
)

RESERVE = 1 << 20  # bytes of the lock's file
PATIENCE = 10_000  # milliseconds that others may need to open or to close the file
OLDEST = (3, 51, 3)  # before it, two connections could damage a file in WAL mode (the "WAL-reset" fault)

Synchronous: TypeAlias = Literal["FULL", "NORMAL"]

# after these a transaction may be tried again; after any other nobody knows what the disk has
_PASSING = (apsw.FullError, apsw.BusyError, *REFUSALS)
LARGEST = 0xFFFFFFFE  # pages of a file, as SQLite has it
_RAW = (apsw.Error, OSError, ValueError, TypeError, OverflowError)  # what a file can make others raise


_SETTINGS = (
    (apsw.SQLITE_DBCONFIG_DEFENSIVE, 1),
    (apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
    (apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0),
    (apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0),
    (apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0),
    (apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1),  # or a statement is planned anew for every value
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


class SQLiteReader:
    """What can be read from a store's file, also next to the process that writes in it.

    Parameters
    ----------
    path
        The file; it is refused if it is not a store of this version.

    Examples
    --------
    >>> import armlet
    >>> from pathlib import Path
    >>> with armlet.open_store("shop.db") as store:  # in a process that goes on
    ...     loop = store.loop("homepage", arms=["a", "b"], dim=1, policy=armlet.Algorithm1(p=8), seed=1)
    ...     [each.name for each in SQLiteReader(Path("shop.db")).loops()]  # in another one
    ['homepage']
    """

    def __init__(self, path: Path) -> None:
        check_library(apsw.sqlite_lib_version())
        self._name, self._path = str(path), Path(os.path.realpath(path))  # through two links it has one lock
        self._is_open = True
        self._check()

    def _check(self) -> None:
        if not self._path.is_file():
            raise StoreError(f"{self._name} is not there; give the path of a store")
        with self._reading() as connection:
            check_ours(connection, self._name, brings_up_to_date=False)

    @contextmanager
    def view(self) -> Iterator[SQLiteView]:
        with self._reading() as connection:
            connection.execute("BEGIN")  # ends with the connection
            yield SQLiteView(connection, self._name)

    def newest(self) -> Moment | None:
        with self._reading() as connection:
            heads = [encoding.read_head(found)[0] for found in fetch(connection, HEAD)]
        newest = max(heads, key=lambda head: head.steady, default=None)
        return None if newest is None or not newest.seq else Moment(wall=newest.ts, steady=newest.steady)

    def loops(self) -> Sequence[LoopRecord]:
        with self._reading() as connection:
            return [encoding.read_record(found) for found in fetch(connection, f"{LOOP} ORDER BY id")]

    def rows(self, loop: int, after: int = 0) -> Iterator[Row]:
        with self._reading() as connection:
            yield from read_rows(connection, loop, after)

    def head(self, loop: int) -> Head | None:
        with self._reading() as connection:
            found = fetch(connection, f"{HEAD} WHERE loop = ?", (loop,))
        return encoding.read_head(found[0])[0] if found else None

    def decided(self, loop: int, t: int) -> Row | None:
        with self._reading() as connection:
            found = fetch(connection, f"{BY_STEP} = ?", (loop, t))
        return encoding.read_decided(found[0][1:]).row if found else None

    def size(self) -> int:
        files = (Path(f"{self._path}{end}") for end in ("", "-wal", "-shm"))
        return sum(file.stat().st_size for file in files if file.exists())

    @contextmanager
    def _reading(self) -> Iterator[apsw.Connection]:
        if not self._is_open:
            raise StoreError("the store is closed; open it again")
        try:
            connection = _connect(self._path, apsw.SQLITE_OPEN_READONLY)
            try:
                connection.set_busy_timeout(PATIENCE)
                yield connection
            finally:
                connection.close()
        except apsw.Error as error:
            raise StoreError(f"{self._name} cannot be read: {error}") from error

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
        self._is_open = False


class SQLite(SQLiteReader):
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
    refusals: tuple[type[Exception], ...] = REFUSALS
    is_shared = False

    def __init__(self, path: Path, *, synchronous: Synchronous = "FULL") -> None:
        self._synchronous: Synchronous = synchronous
        super().__init__(path)

    def _check(self) -> None:
        self._broken: str | None = None
        self._lock = _Lock(self._path, self._name)
        try:
            self._connection = self._open(self._synchronous)
            self._reserve()
        except BaseException as error:
            self._lock.remove()
            self._lock.close()
            if isinstance(error, _RAW):
                raise StoreError(f"{self._name} cannot be opened: {error}") from error
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
            connection.set_busy_timeout(
                PATIENCE
            )  # somebody who reads may be mending the log of a process that was killed
            check_ours(connection, self._name)  # before anything is changed
            check_pages(connection, self._name)
            if not self._path.stat().st_size:  # only a new file can be told
                connection.pragma("auto_vacuum", INCREMENTAL)
            if connection.pragma("journal_mode", "WAL") != "wal":
                raise StoreError(f"{self._name} is where SQLite cannot keep a log (WAL); name a file on a local disk")
            connection.pragma("synchronous", synchronous)
            connection.pragma("secure_delete", True)
            bring_up_to_date(connection)
            check_counts(connection, self._name)
            connection.execute("BEGIN IMMEDIATE; ROLLBACK")  # SQLite finds its log, and room for it, before it is used
            connection.set_busy_timeout(0)
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def session(self) -> Iterator[SQLiteSession]:
        """Open the one transaction; an error of the disk other than a full one ends the store, for the disk may lie."""
        if self._broken is not None:
            raise StoreFailedError(f"{self._name} failed before ({self._broken}); close it and open it again")
        connection = self._connection
        try:
            if not self._has_reserve:
                self._reserve()
            connection.execute("BEGIN IMMEDIATE")
            yield SQLiteSession(connection)
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

    def scrub(self) -> bool:
        """Bring the log of SQLite into the file, where deleted bytes are zeros, and empty it.

        It waits for nobody: where somebody reads what the log has, the log cannot be emptied yet.
        """
        try:
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.BusyError:
            return False
        return True

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


# ---- the tables of a store, and what brings a file of an earlier version to this one

APPLICATION: Final = 0x41524D4C  # "ARML"
VERSION: Final = 8  # counted up when a table or the fields of a row change

_OUTCOME = """
    CREATE TABLE outcome (
        loop INTEGER NOT NULL, t INTEGER NOT NULL, event TEXT NOT NULL, seq INTEGER NOT NULL, phase TEXT NOT NULL,
        value REAL, due INTEGER, rank INTEGER NOT NULL, names TEXT NOT NULL, played TEXT, {}crc INTEGER NOT NULL,
        PRIMARY KEY (loop, t)) WITHOUT ROWID;
    CREATE UNIQUE INDEX outcome_by_event ON outcome (loop, event);
    CREATE INDEX outcome_by_due ON outcome (loop, due) WHERE due IS NOT NULL;
"""
_SINCE_8 = _OUTCOME.format("parts TEXT, ")
_ONLY_7 = _OUTCOME.format("")
_SINCE_7 = """
    CREATE TABLE loop (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, about TEXT NOT NULL, start BLOB NOT NULL,
        base INTEGER NOT NULL DEFAULT 0,  -- rows up to it have been learned by `start`, so that they may be erased
        made INTEGER NOT NULL);  -- the check value of the others
    CREATE TABLE head (
        loop INTEGER PRIMARY KEY, clock INTEGER NOT NULL, seq INTEGER NOT NULL, ts INTEGER NOT NULL,
        steady INTEGER NOT NULL, epoch INTEGER NOT NULL, outcomes INTEGER NOT NULL, early INTEGER NOT NULL,
        tallied INTEGER NOT NULL, made INTEGER NOT NULL, crc INTEGER NOT NULL);
    CREATE TABLE early (
        id INTEGER PRIMARY KEY, loop INTEGER NOT NULL, event TEXT NOT NULL, until INTEGER NOT NULL,
        fields TEXT NOT NULL, crc INTEGER NOT NULL);
    CREATE INDEX early_by_event ON early (loop, event);
    CREATE INDEX early_by_time ON early (loop, until);
    CREATE TABLE tally (loop INTEGER PRIMARY KEY, counts TEXT NOT NULL, crc INTEGER NOT NULL);
"""
_SINCE_6 = """
    CREATE TABLE event (
        loop INTEGER NOT NULL, seq INTEGER NOT NULL, ts INTEGER NOT NULL, kind TEXT NOT NULL, t INTEGER,
        fields TEXT NOT NULL, x BLOB, crc INTEGER NOT NULL, PRIMARY KEY (loop, seq)) WITHOUT ROWID;
    CREATE INDEX event_by_step ON event (loop, t) WHERE kind <> 'decide';
    CREATE TABLE snapshot (
        loop INTEGER PRIMARY KEY, seq INTEGER NOT NULL, model BLOB NOT NULL, crc INTEGER NOT NULL);
"""
_ONLY_6 = """
    CREATE TABLE loop (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, about TEXT NOT NULL, start BLOB NOT NULL,
        clock INTEGER NOT NULL DEFAULT 0, seq INTEGER NOT NULL DEFAULT 0, ts INTEGER NOT NULL DEFAULT 0,
        base INTEGER NOT NULL DEFAULT 0,  -- rows up to it have been learned by `start`, so that they may be erased
        steady INTEGER NOT NULL DEFAULT 0, outcomes INTEGER NOT NULL DEFAULT 0,
        made INTEGER NOT NULL,  -- the check value of name, about, start and base; `crc` is that of the rest
        crc INTEGER NOT NULL);
    CREATE TABLE outcome (
        loop INTEGER NOT NULL, t INTEGER NOT NULL, event TEXT NOT NULL, seq INTEGER NOT NULL, phase TEXT NOT NULL,
        value REAL, due INTEGER, rank INTEGER NOT NULL, names TEXT NOT NULL, crc INTEGER NOT NULL,
        PRIMARY KEY (loop, t)) WITHOUT ROWID;
    CREATE UNIQUE INDEX outcome_by_event ON outcome (loop, event);
    CREATE INDEX outcome_by_due ON outcome (loop, due) WHERE due IS NOT NULL;
"""
TABLES: Final[Mapping[int, str]] = {
    6: _ONLY_6 + _SINCE_6,
    7: _ONLY_7 + _SINCE_7 + _SINCE_6,
    VERSION: _SINCE_8 + _SINCE_7 + _SINCE_6,
}
"""Those of this version, and of the ones that are brought to it."""


# ---- from version to version


def _from_6(connection: apsw.Connection) -> None:
    """Give heads a table of their own, and outcomes the arm that was played instead."""
    loops = fetch(connection, "SELECT id, clock, seq, ts, steady, outcomes, made, crc FROM loop")
    connection.execute("ALTER TABLE loop RENAME TO loop_6")
    connection.execute(_SINCE_7)
    connection.execute("INSERT INTO loop SELECT id, name, about, start, base, made FROM loop_6")
    _copy_outcomes(
        connection, _ONLY_7, "loop, t, event, seq, phase, value, due, rank, names"
    )  # nothing else was played
    for loop, clock, seq, ts, steady, outcomes, made, crc in loops:
        if zlib.crc32(repr((loop, clock, seq, ts, steady, outcomes, made)).encode()) != crc:
            raise StoreError(f"the clock of loop {loop} is damaged: its checksum is wrong; {WAY_OUT}")
        head = Head(clock=clock, seq=seq, ts=ts, steady=steady, outcomes=outcomes)
        connection.execute(
            f"INSERT INTO head VALUES ({marks(len(encoding.HEAD))})", encoding.head_values(loop, head, made)
        )
    connection.execute("DROP TABLE loop_6")


def _from_7(connection: apsw.Connection) -> None:
    """Give outcomes the parts of several."""
    _copy_outcomes(connection, _SINCE_8, "loop, t, event, seq, phase, value, due, rank, names, played")


def _copy_outcomes(connection: apsw.Connection, tables: str, columns: str) -> None:
    """Copy outcomes into a table that has more columns: their check values stay, since these are empty."""
    for index in ("outcome_by_event", "outcome_by_due"):
        connection.execute(f"DROP INDEX {index}")
    connection.execute("ALTER TABLE outcome RENAME TO outcome_before")
    connection.execute(tables)
    connection.execute(f"INSERT INTO outcome ({columns}, crc) SELECT {columns}, crc FROM outcome_before")
    connection.execute("DROP TABLE outcome_before")


_STEPS: Mapping[int, Callable[[apsw.Connection], None]] = {6: _from_6, 7: _from_7}


def bring_up_to_date(connection: apsw.Connection) -> None:
    """Make the tables of an empty file, or bring those of an earlier version to this one; all or nothing."""
    version = connection.pragma("user_version")
    if version == VERSION:
        return
    with connection:
        if version == 0:
            connection.execute(TABLES[VERSION])
            connection.pragma("application_id", APPLICATION)
        for step in range(version or VERSION, VERSION):
            _STEPS[step](connection)
        connection.pragma("user_version", VERSION)


# ---- what is refused


def check_ours(connection: apsw.Connection, name: str, *, brings_up_to_date: bool = True) -> None:
    """Refuse a file that is not a store, is of a version that is not known, or has another schema."""
    version, mark, schema = connection.pragma("user_version"), connection.pragma("application_id"), _schema(connection)
    if mark != APPLICATION and (mark or version or schema):
        raise StoreError(f"{name} is a database, but not one of Armlet's; name another file")
    if mark != APPLICATION and not brings_up_to_date:
        raise StoreError(f"{name} is empty; give the path of a store")
    if mark == APPLICATION and version not in TABLES:
        known = " and ".join(map(str, TABLES))
        raise StoreError(
            f"{name} is a store of version {version}; this Armlet reads {known} only: use the one that wrote it"
        )
    if mark == APPLICATION and version != VERSION and not brings_up_to_date:
        raise StoreError(
            f"{name} is a store of version {version}, and can be read once it is of version {VERSION}: "
            "open it with armlet.open_store, which brings it there"
        )
    if odd := sorted(schema ^ (_known(version) if mark else frozenset())):
        kind, thing = odd[0][:2]
        raise StoreError(f"{name} has another schema than a store of Armlet's: see {kind} {thing!r}; {WAY_OUT}")


def _schema(connection: apsw.Connection) -> set[tuple[str, ...]]:
    found = fetch(connection, "SELECT type, name, tbl_name, sql FROM sqlite_master")
    return {tuple(map(str, each)) for each in found}


@cache
def _known(version: int) -> frozenset[tuple[str, ...]]:
    connection = apsw.Connection(":memory:")
    connection.execute(TABLES[version])
    known = frozenset(_schema(connection))
    connection.close()
    return known
