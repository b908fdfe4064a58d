"""A connection that answers in time, and a few of them that are kept.

Statements are sent as a pipeline straight through libpq: any number of them is one round trip, and costs the client a
part of what psycopg's cursors do. Whatever does not end in time, or is interrupted, closes the connection.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any, Final, TypeAlias

import psycopg
from psycopg import errors, pq
from psycopg.adapt import Transformer
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from armlet.errors import InvalidValueError, StoreError
from armlet.stores.postgresql.statements import TEXT, Query, Statement

OLDEST: Final = 14  # of PostgreSQL's versions
MOST_IDLE: Final = 4  # connections that are kept

Rows: TypeAlias = list[tuple[Any, ...]]

# Every statement has exactly one index that fits; without scans of whole tables, what was planned for an empty table
# stays right for a full one; where there is nothing else, their price would have PostgreSQL compile the statement each
# time, for 30 ms. A replica that stands still loses its locks before others have waited for too long.
_SET = Statement("SELECT set_config($1, $2, false)", TEXT, TEXT)
_BE_DURABLE = Statement(
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
)
SETTINGS: Final = {"enable_seqscan": "off", "jit": "off", "plan_cache_mode": "force_generic_plan"}
_TIMEOUTS: Final = {  # shares of the deadline
    "idle_in_transaction_session_timeout": 0.5,
    "lock_timeout": 0.7,
    "statement_timeout": 0.8,
    "tcp_user_timeout": 1.0,
}

_TUPLES, _FATAL, _SYNC = pq.ExecStatus.TUPLES_OK, pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.PIPELINE_SYNC
_BAD: Final = pq.ConnStatus.BAD


class Address:
    """Where a database is, and how long to wait for it. Its text is never shown, since it may hold a password."""

    def __init__(self, conninfo: str, schema: str, deadline: float) -> None:
        if not deadline > 0:
            raise InvalidValueError(f"deadline is {deadline}; give seconds above 0")
        if not schema or "\0" in schema or schema.startswith("pg_") or len(schema.encode()) > 63:
            raise InvalidValueError(f"schema is {schema!r}; give a name of at most 63 bytes that PostgreSQL allows")
        self.schema, self.deadline = schema, deadline
        self.conninfo = self._with_limits(conninfo)

    def _with_limits(self, conninfo: str) -> str:
        try:
            given = conninfo_to_dict(conninfo)
        except psycopg.Error:
            raise InvalidValueError(
                "the address of the database is not valid, and not shown, since it may hold a password; "
                "give a URL: postgresql://user@host/name"
            ) from None
        seconds, milliseconds = max(1, round(self.deadline)), round(self.deadline * 1000)
        ours: dict[str, str | int] = {
            "fallback_application_name": "armlet",
            "connect_timeout": seconds,
            "tcp_user_timeout": milliseconds,
            "keepalives_idle": seconds,
            "keepalives_interval": max(1, seconds // 3),
            "keepalives_count": 3,
        }
        return make_conninfo("", **{**ours, **given, "client_encoding": "UTF8"})


class Connection:
    """A connection to a database, which runs any number of statements in one round trip."""

    def __init__(self, address: Address) -> None:
        self._deadline = address.deadline
        self._connection = psycopg.Connection.connect(address.conninfo, autocommit=True)
        self._libpq = self._connection.pgconn
        self._reader = Transformer(self._connection)
        self._prepared: set[Statement] = set()
        self._connection.add_notice_handler(self._hear)
        self._is_done = True  # with what it was last asked
        self._pid = os.getpid()
        self._poll = select.poll()
        self._poll.register(self._libpq.socket, select.POLLIN)
        try:
            self._libpq.enter_pipeline_mode()
            self._set_up(address)
        except BaseException:
            self.close()
            raise

    def _set_up(self, address: Address) -> None:
        if self._libpq.server_version < OLDEST * 10_000:
            version = self._libpq.server_version // 10_000
            raise StoreError(f"the database is PostgreSQL {version}; use {OLDEST} or later")
        times = {name: f"{max(1, round(share * address.deadline * 1000))}ms" for name, share in _TIMEOUTS.items()}
        path = '"' + address.schema.replace('"', '""') + '"'
        settings = {**SETTINGS, **times, "search_path": path}
        self.run([*(_SET(name, value) for name, value in settings.items()), _BE_DURABLE()])

    def _hear(self, words: errors.Diagnostic) -> None:
        """Hear what the server says unasked: that it ends the session, before it does so."""
        if words.severity_nonlocalized in ("FATAL", "PANIC"):
            self._is_done = False

    @property
    def is_broken(self) -> bool:
        """Whether it cannot be used any more."""
        return not self._is_done or self._libpq.status == _BAD

    @property
    def is_stale(self) -> bool:
        """Whether it is broken, or the server has ended it meanwhile."""
        with suppress(psycopg.OperationalError):
            for _ in range(3):  # the last words of a server, and then its end
                if self.is_broken or not self._poll.poll(0):
                    break
                self._libpq.consume_input()
                self._libpq.is_busy()  # lets libpq read what came
            else:
                self.close()
            return self.is_broken
        return True

    @property
    def is_of_this_process(self) -> bool:
        """Whether it was made here, and not before a fork."""
        return self._pid == os.getpid()

    def run(self, queries: Sequence[Query]) -> list[Rows]:
        """Send statements, and return what each has found; after the first that fails, none is run."""
        self._is_done = False
        end = monotonic() + self._deadline
        try:
            fresh = self._send(queries)
            self._flush(end)
            found = self._receive(end)
        except psycopg.Error:
            self.close()
            raise
        finally:
            if not self._is_done:  # interrupted, too: what is under way belongs to nobody
                self.close()
        return self._rows(queries, fresh, found)

    def _send(self, queries: Sequence[Query]) -> list[Statement]:
        """Queue statements, and return those that are prepared first."""
        libpq, prepared, fresh = self._libpq, self._prepared, []
        for statement, values in queries:
            if statement not in prepared and statement not in fresh:
                libpq.send_prepare(statement.name, statement.sql.encode(), statement.oids)
                fresh.append(statement)
            libpq.send_query_prepared(statement.name, values, statement.formats, 1)
        libpq.pipeline_sync()
        return fresh

    def _flush(self, end: float) -> None:
        if not self._libpq.flush():
            return
        fd = self._libpq.socket
        self._poll.modify(fd, select.POLLIN | select.POLLOUT)
        while self._libpq.flush():
            if self._wait(end) & ~select.POLLOUT:
                self._libpq.consume_input()  # or both sides might wait for each other
        self._poll.modify(fd, select.POLLIN)

    def _wait(self, end: float) -> int:
        found = self._poll.poll(max(0.0, (end - monotonic()) * 1000))
        if not found:
            raise errors.OperationalError(f"the database has not answered within {self._deadline:g} s")
        return found[0][1]

    def _receive(self, end: float) -> list[pq.abc.PGresult]:
        """Return all results, in the order of what was sent."""
        found: list[pq.abc.PGresult] = []
        libpq, ended = self._libpq, False
        while True:
            while libpq.is_busy() and libpq.status != _BAD:
                self._wait(end)
                with suppress(psycopg.OperationalError):  # what came before is still to be read
                    libpq.consume_input()
            result = libpq.get_result()
            if result is None:  # the end of one statement's results; twice, of them all
                if ended or libpq.status == _BAD:
                    raise self._lost(found)
                ended = True
                continue
            ended = False
            if result.status == _SYNC:
                self._is_done = True
                return found
            found.append(result)

    def _lost(self, found: Sequence[pq.abc.PGresult]) -> psycopg.Error:
        """Return the error of a connection that was lost: the server's last words, if there are any."""
        for result in found:
            if result.status == _FATAL and result.error_field(pq.DiagnosticField.SQLSTATE):
                return errors.error_from_result(result)
        return errors.OperationalError("the connection to the database was lost")

    def _rows(
        self, queries: Sequence[Query], fresh: Sequence[Statement], found: Sequence[pq.abc.PGresult]
    ) -> list[Rows]:
        results, rows, new = iter(found), [], list(fresh)
        for statement, _ in queries:
            if new and new[0] is statement:
                self._raise_error(next(results))
                self._prepared.add(new.pop(0))
            result = next(results)
            self._raise_error(result)
            rows.append(self._read(result) if result.status == _TUPLES else [])
        return rows

    def _raise_error(self, result: pq.abc.PGresult) -> None:
        if result.status == _FATAL:
            raise errors.error_from_result(result)

    def _read(self, result: pq.abc.PGresult) -> Rows:
        if not result.ntuples:
            return []
        self._reader.set_pgresult(result)
        return self._reader.load_rows(0, result.ntuples, tuple)

    def close(self) -> None:
        """Close it; the server undoes what was not committed."""
        self._is_done = False
        self._connection.close()


class Pool:
    """A few connections that are kept, for any thread.

    One that was lost, or made before a fork, is not used again; a new one is made with the next call, once.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
        self._inherited: list[Connection] = []  # from before a fork: closing them would end those of the parent
        self._is_open = True

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Lend a connection."""
        connection = self._take()
        try:
            yield connection
        finally:
            self._give(connection)

    def _take(self) -> Connection:
        if not self._is_open:
            raise StoreError("the store is closed; open it again")
        while (kept := self._next()) is not None:
            if not kept.is_of_this_process:
                self._inherited.append(kept)
            elif kept.is_stale:
                kept.close()
            else:
                return kept
        return Connection(self._address)

    def _next(self) -> Connection | None:
        with self._lock:
            return self._idle.pop() if self._idle else None

    def _give(self, connection: Connection) -> None:
        with self._lock:
            if self._is_open and not connection.is_broken and len(self._idle) < MOST_IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Close them all; those that are lent, when they come back."""
        self._is_open = False
        while (kept := self._next()) is not None:
            if kept.is_of_this_process:
                kept.close()
