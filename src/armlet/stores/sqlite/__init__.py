"""A ledger in one SQLite file; needs apsw."""

from armlet.stores.sqlite.ledger import SQLite, Synchronous
from armlet.stores.sqlite.session import SQLiteSession

__all__ = ["SQLite", "SQLiteSession", "Synchronous"]
