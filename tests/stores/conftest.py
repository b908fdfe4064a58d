"""The ledgers that tests of loops run over; another folder gives the same tests a `place` of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from armlet.stores import Memory, SQLite
from armlet.testing.stores import Place


@pytest.fixture(params=["memory", "file"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Open the same ledger again and again."""
    if request.param == "file":
        return lambda: SQLite(tmp_path / "shop.db")
    ledger = Memory()
    return lambda: ledger
