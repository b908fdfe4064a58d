"""A database for the tests in this folder, and a schema for each of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from armlet.stores.postgresql import PostgreSQL
from armlet.testing.stores import Place
from support.postgresql import Proxy, Server, running_server


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with running_server() as found:
        yield found


@pytest.fixture
def schema(server: Server) -> Iterator[str]:
    with server.schema() as name:
        yield name


@pytest.fixture
def ledger(server: Server, schema: str) -> Iterator[PostgreSQL]:
    opened = PostgreSQL(server.conninfo, schema=schema)
    yield opened
    opened.close()


@pytest.fixture
def place(server: Server, schema: str) -> Place:
    """Open the same ledger again and again, for the tests of loops over any ledger."""
    return lambda: PostgreSQL(server.conninfo, schema=schema)


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    opened = Proxy(server.conninfo)
    yield opened
    opened.close()
