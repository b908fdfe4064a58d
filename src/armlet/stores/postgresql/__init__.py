"""Loops in a PostgreSQL database, which any number of processes may write in."""

from __future__ import annotations

from armlet.stores.postgresql.ledger import PostgreSQL

__all__ = ["PostgreSQL"]
