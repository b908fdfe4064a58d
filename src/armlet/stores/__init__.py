"""Durable loops: decisions and rewards that outlive their process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from armlet.stores.ledger import Ledger, LoopRecord, Moment, Outcome, Pruned, Row, Transaction
from armlet.stores.memory import Memory
from armlet.stores.rewards import Aggregation, Status
from armlet.stores.store import Loop, Store, load_sqlite, open_store
from armlet.stores.writer import ClockWarning

if TYPE_CHECKING:
    from armlet.stores.sqlite import SQLite

__all__ = [
    "Aggregation",
    "ClockWarning",
    "Ledger",
    "Loop",
    "LoopRecord",
    "Memory",
    "Moment",
    "Outcome",
    "Pruned",
    "Row",
    "SQLite",
    "Status",
    "Store",
    "Transaction",
    "open_store",
]


def __getattr__(name: str) -> object:
    """Import the ledger that needs apsw on first use."""
    if name == "SQLite":
        return load_sqlite().SQLite
    raise AttributeError(f"module 'armlet.stores' has no attribute {name!r}")
