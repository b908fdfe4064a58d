"""The contract of stores over PostgreSQL."""

from __future__ import annotations

import pytest

from armlet.stores.postgresql import PostgreSQL
from armlet.testing import STORE_CHECKS
from armlet.testing.stores import StoreCheck
from support.postgresql import Server

pytestmark = pytest.mark.spread


@pytest.mark.parametrize("check", STORE_CHECKS, ids=lambda check: check.__name__)
def test_a_database_keeps_the_contract(check: StoreCheck, server: Server, schema: str) -> None:
    check(lambda: PostgreSQL(server.conninfo, schema=schema))
