"""A ledger in one SQLite file: nothing is answered before it is on disk.

WAL with synchronous=FULL: a commit is one fsync, shared by all that waited. One process at a time, by a lock on a file
beside it; readers of the same process do not wait. Every row carries a checksum, since SQLite's pages have none.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeAlias

import apsw

from armlet.core.errors import StoreError
from armlet.stores.ledger import Kept, Row
from armlet.stores.sqlite.pen import INCREMENTAL, SQLitePen
from armlet.stores.sqlite.rows import KEPT, ROW, kept_of, row_of, rows_after
from armlet.stores.sqlite.schema import bring_up_to_date

OLDEST = (3, 51, 3)  # before it, two connections could damage a file in WAL mode (the "WAL-reset" fault)

Synchronous: TypeAlias = Literal["FULL", "NORMAL"]

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
            if not path.stat().st_size:  # only a new file can be told
                self._connection.pragma("auto_vacuum", INCREMENTAL)
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
            return [kept_of(found) for found in connection.execute(f"{KEPT} ORDER BY id").fetchall()]

    def rows(self, loop: int, after: int = 0) -> Iterator[Row]:
        """Read what is kept for good, a page at a time, with a connection of its own."""
        with self._reading() as connection:
            yield from rows_after(connection, loop, after)

    def decided(self, loop: int, t: int) -> Row | None:
        """Read the row of a decision that is kept for good, by its step."""
        with self._reading() as connection:
            sql = f"{ROW} = (SELECT seq FROM outcome WHERE loop = ? AND t = ?)"
            found = connection.execute(sql, (loop, loop, t)).fetchone()
            return None if found is None else row_of(found)

    @contextmanager
    def _reading(self) -> Iterator[apsw.Connection]:
        connection = apsw.Connection(str(self._path), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            yield connection
        finally:
            connection.close()

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
