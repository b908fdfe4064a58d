"""A ledger in a PostgreSQL database, which replicas share: a loop is locked by its head's row, others go on.

Nothing is answered before it is committed, and each call ends in time, by limits that the server keeps and one that
the client keeps itself. Whoever stands still with a lock loses it, since the server ends his session.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psycopg

from armlet.errors import StoreError
from armlet.stores import encoding
from armlet.stores.ledger import Head, LoopRecord, Moment, Row
from armlet.stores.postgresql.backup import copy_to_file
from armlet.stores.postgresql.connection import Address, Connection, Pool, Rows
from armlet.stores.postgresql.schema import COMMIT, bring_up_to_date
from armlet.stores.postgresql.session import BY_STEP, HEAD, REFUSALS, PostgreSQLSession, read_page
from armlet.stores.postgresql.statements import Query, Statement
from armlet.stores.postgresql.view import BEGIN, LOOPS, PostgreSQLView

_NEWEST = Statement(f"SELECT {', '.join(encoding.HEAD)} FROM head WHERE seq > 0 ORDER BY steady DESC LIMIT 1")
_SIZE = Statement(
    """SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
    WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()) AND relkind = 'r'"""
)
DEADLINE: Final = 10.0


class PostgreSQL:
    """A ledger in a database that other processes may write in too.

    Parameters
    ----------
    conninfo
        A URL such as "postgresql://user@host/name", or whatever else libpq takes; never shown, since it may hold a
        password. Where it leads to a pooler, that has to give out whole sessions, not transactions.
    schema
        Where the tables are; made if it is not there.
    deadline
        Seconds within which the database has to answer, or to be connected to, which may take 2 at least. A process
        that stands still for half of that in the midst of a transaction has lost it.
    """

    failures: tuple[type[Exception], ...] = (psycopg.Error,)
    refusals: tuple[type[Exception], ...] = REFUSALS
    is_shared = True

    def __init__(self, conninfo: str, *, schema: str = "armlet", deadline: float = DEADLINE) -> None:
        address = Address(conninfo, schema, deadline)
        self._schema = schema
        self._pool = Pool(address)
        try:
            with self._pool.connection() as connection:
                bring_up_to_date(connection, schema)
        except psycopg.Error as error:
            self._pool.close()
            raise StoreError(f"the database cannot be opened: {error}") from error
        except BaseException:
            self._pool.close()
            raise

    @contextmanager
    def session(self) -> Iterator[PostgreSQLSession]:
        with self._pool.connection() as connection:
            session = PostgreSQLSession(connection, self._schema)
            try:
                yield session
                session.commit()
            except BaseException:
                session.roll_back()
                raise

    # ---- reading, in any thread

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        try:
            with self._pool.connection() as connection:
                yield connection
        except psycopg.Error as error:
            raise StoreError(f"the database cannot be read: {error}") from error

    def _read(self, query: Query) -> Rows:
        with self._reading() as connection:
            return connection.run([query])[0]

    @contextmanager
    def view(self) -> Iterator[PostgreSQLView]:
        with self._reading() as connection:
            try:
                connection.run([BEGIN()])
                yield PostgreSQLView(connection)
                connection.run([COMMIT()])
            except BaseException:
                connection.close()  # which ends its transaction
                raise

    def newest(self) -> Moment | None:
        found = self._read(_NEWEST())
        if not found:
            return None
        head, _ = encoding.read_head(found[0])
        return Moment(head.ts, head.steady)

    def loops(self) -> Sequence[LoopRecord]:
        return [encoding.read_record(found) for found in self._read(LOOPS())]

    def head(self, loop: int) -> Head | None:
        found = self._read(HEAD(loop))
        return encoding.read_head(found[0])[0] if found else None

    def rows(self, loop: int, after: int = 0) -> Iterator[Row]:
        while page := self._page(loop, after):
            yield from page
            after = page[-1].seq

    def _page(self, loop: int, after: int) -> list[Row]:
        with self._reading() as connection:
            return read_page(connection, loop, after)

    def decided(self, loop: int, t: int) -> Row | None:
        found = self._read(BY_STEP(loop, t))
        return encoding.read_decided(found[0]).row if found else None

    def size(self) -> int:
        size: int = self._read(_SIZE())[0][0]
        return size

    def scrub(self) -> bool:
        """Do nothing: what was erased is nowhere to be read, but its bytes are the database's to overwrite.

        PostgreSQL leaves them in its files until VACUUM, which it runs by itself, has made room there and something
        else was written over them, and in its log and in backups as long as these are kept. Where bytes have to be gone
        by a certain day, `VACUUM FULL` writes the tables anew, and a checkpoint and the rotation of logs do the rest.
        """
        return True

    def backup(self, path: Path) -> None:
        """Copy everything into a new file, which can be opened as a store of its own."""
        with self._reading() as connection:
            try:
                copy_to_file(connection, path)
            except BaseException:
                connection.close()  # which ends its transaction
                raise

    def close(self) -> None:
        self._pool.close()
