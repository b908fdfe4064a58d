"""Loops in one SQLite file."""

from armlet.stores.sqlite.ledger import SQLite, Synchronous, check_library
from armlet.stores.sqlite.pen import SQLitePen

__all__ = ["SQLite", "SQLitePen", "Synchronous", "check_library"]
