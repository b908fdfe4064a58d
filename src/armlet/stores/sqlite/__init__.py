"""A ledger in one SQLite file; needs apsw."""

from armlet.stores.sqlite.ledger import SQLite, SQLiteReader, Synchronous
from armlet.stores.sqlite.session import SQLiteSession

__all__ = ["SQLite", "SQLiteReader", "SQLiteSession", "Synchronous"]
