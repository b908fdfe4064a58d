"""A database for tests: a private cluster, or the one that the environment names; schemas, and a way to cut it."""

from __future__ import annotations

import os
import selectors
import socket
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.sql import SQL, Identifier

from postgresql import VARIABLE, private_cluster

PATIENCE = 20.0  # seconds


class Server:
    """A database, and how to let it crash."""

    def __init__(self, conninfo: str, restart: Callable[[], None] | None = None) -> None:
        self.conninfo, self._restart = conninfo, restart

    def run(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Run one statement by a connection of its own."""
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            found = connection.execute(sql.encode(), values or None)
            return found.fetchall() if found.description else []

    def restart(self, name: str) -> None:
        """Let the private cluster crash and come back; in a database of others, end the sessions of this name."""
        if self._restart is not None:
            self._restart()
        else:
            self.run("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = %s", name)

    def until(self, state: str, name: str) -> None:
        """Wait until sessions of this name are in a state."""
        end = monotonic() + PATIENCE
        question = f"SELECT {state} FROM pg_stat_activity WHERE application_name = %s"
        while self.run(question, name) != [(True,)]:
            if monotonic() > end:
                raise TimeoutError(state)

    @contextmanager
    def schema(self) -> Iterator[str]:
        """Give the name of a schema that is not there, and drop it at the end."""
        name = f"armlet_{uuid.uuid4().hex[:12]}"
        try:
            yield name
        finally:
            with psycopg.connect(self.conninfo, autocommit=True) as connection:
                connection.execute(SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(Identifier(name)))


@contextmanager
def running_server() -> Iterator[Server]:
    """Give the database that the environment names, or a private cluster."""
    if given := os.environ.get(VARIABLE):
        yield Server(given)
        return
    with private_cluster() as cluster:
        yield Server(cluster.conninfo, cluster.restart)


class Proxy:
    """Stands between a client and the server, counts round trips, and cuts connections where a test wants it."""

    def __init__(self, conninfo: str) -> None:
        with psycopg.connect(conninfo) as connection:
            self._target = connection.info.host, connection.info.port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.conninfo = make_conninfo(
            conninfo, host="127.0.0.1", hostaddr="127.0.0.1", port=self._listener.getsockname()[1], sslmode="disable"
        )
        self.trips = self.cuts = 0  # `cuts`: answers that were not passed on
        self.cuts_before: bytes | None = None  # what the client sends is not passed on if this is in it
        self.cuts_after: bytes | None = None  # what the client sends is passed on, but no answer comes back
        self.is_silent = False  # passes nothing on, and cuts nothing
        self._is_open = True
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if not self._is_open:
                    client.close()
                    continue
                try:
                    server = self._connect()
                except OSError:  # it is down
                    client.close()
                    continue
                self._pairs.append((client, server))
                threading.Thread(target=self._pass_on, args=(client, server), daemon=True).start()

    def _connect(self) -> socket.socket:
        host, port = self._target
        if not host.startswith("/"):
            return socket.create_connection((host, port))
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(f"{host}/.s.PGSQL.{port}")
        except OSError:
            server.close()
            raise
        return server

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        is_asked = False
        with client, server, selectors.DefaultSelector() as selector, suppress(OSError, ValueError):
            selector.register(client, selectors.EVENT_READ)
            selector.register(server, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    source = client if key.fileobj is client else server
                    data = source.recv(1 << 20)
                    if not data or not self._may_pass(source is client, data, server):
                        return
                    if source is client and not is_asked:
                        self.trips += 1
                    is_asked = source is client
                    if not self.is_silent:
                        (server if source is client else client).sendall(data)

    def _may_pass(self, is_question: bool, data: bytes, server: socket.socket) -> bool:
        if is_question and self.cuts_before is not None and self.cuts_before in data:
            return False
        if is_question and self.cuts_after is not None and self.cuts_after in data:
            server.sendall(data)
            server.recv(1 << 20)  # it has done what it was asked
            self.cuts += 1
            return False
        return True

    def refuse(self) -> None:
        """Be away, as a database that is down."""
        self._is_open = False
        for pair in self._pairs:
            for each in pair:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def accept(self) -> None:
        """Be there again."""
        self._is_open = True

    def close(self) -> None:
        self.refuse()
        self._listener.close()
