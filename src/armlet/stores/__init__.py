"""Durable loops: decisions and rewards that outlive their process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from armlet.cast.control import Control
from armlet.stores.gains import Gain
from armlet.stores.health import Alarm
from armlet.stores.ledger import Ledger, LoopRecord, Moment, Pending, Pruned, Row, Session
from armlet.stores.loop import Loop
from armlet.stores.memory import Memory
from armlet.stores.overview import Details
from armlet.stores.promotion import Gate, Promotion
from armlet.stores.rewards import Aggregation, Status
from armlet.stores.spec import LoopSpec
from armlet.stores.stats import Stats
from armlet.stores.store import Store, load_ledger, open_store
from armlet.stores.writer import ClockWarning
from armlet.types import KEEP

if TYPE_CHECKING:
    from armlet.stores.postgresql import PostgreSQL
    from armlet.stores.sqlite import SQLite

__all__ = [
    "KEEP",
    "Aggregation",
    "Alarm",
    "ClockWarning",
    "Control",
    "Details",
    "Gain",
    "Gate",
    "Ledger",
    "Loop",
    "LoopRecord",
    "LoopSpec",
    "Memory",
    "Moment",
    "Pending",
    "PostgreSQL",
    "Promotion",
    "Pruned",
    "Row",
    "SQLite",
    "Session",
    "Stats",
    "Status",
    "Store",
    "open_store",
]

_LEDGERS = {"SQLite": ("sqlite", "apsw"), "PostgreSQL": ("postgresql", "psycopg")}


def __getattr__(name: str) -> object:
    """Import a ledger that needs a package of its own on first use."""
    if name in _LEDGERS:
        return getattr(load_ledger(*_LEDGERS[name]), name)
    raise AttributeError(f"module 'armlet.stores' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__})
