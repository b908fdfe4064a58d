"""Loops in one SQLite file."""

from armlet.stores.sqlite.ledger import SQLite, Synchronous, check_library
from armlet.stores.sqlite.transaction import SQLiteTransaction

__all__ = ["SQLite", "SQLiteTransaction", "Synchronous", "check_library"]
