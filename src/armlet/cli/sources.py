"""What commands read: logs in files, and the logs of loops in stores, next to the process that runs these.

A store is told from a log by what it is: the address of a database, or a file that begins as SQLite's do.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from armlet.cli.command import arg
from armlet.errors import ArgumentError, StoreError, choices
from armlet.stores.rows.log import LoopLog
from armlet.stores.store import load_ledger

if TYPE_CHECKING:
    from armlet.log.reader import Source
    from armlet.stores.ledger import LedgerReader, LoopRecord, View

ADDRESSES: Final = ("postgresql://", "postgres://")
MAGIC: Final = b"SQLite format 3\0"

Place: TypeAlias = Path | str
"""A file, or the address of a database."""


def place(text: str) -> Place:
    """Read a path, or the address of a database, whose slashes stay.

    Examples
    --------
    >>> place("shop.db").name, place("postgresql://db.example/shop")
    ('shop.db', 'postgresql://db.example/shop')
    """
    return text if text.startswith(ADDRESSES) else Path(text)


LOG_OR_STORE: Final = arg("log", type=place, metavar="LOG", help="a log, .jsonl or .parquet; or a store with --loop")
LOOP: Final = arg("--loop", metavar="NAME", help="of a store: whose log to read; default: the only one there is")
STORE: Final = arg("store", type=place, metavar="STORE", help="a file, such as shop.db, or postgresql://...")


def is_store(where: Place) -> bool:
    """Whether a place is a store rather than a log."""
    if isinstance(where, str):
        return True
    if not where.is_file():
        return False
    with where.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


@contextmanager
def open_log(a: argparse.Namespace) -> Iterator[Source]:
    """Give the log that a command was given: its path, or the events of a loop in a store."""
    if not is_store(a.log):
        if a.loop is not None:
            raise ArgumentError("{loop} is {name!r}, but {log} is not a store; leave it out", name=a.loop)
        yield Path(a.log)
        return
    with open_reader(a.log) as ledger:
        yield LoopLog(ledger, choose(ledger.loops(), a.loop, "loop"), None)


@contextmanager
def open_reader(where: Place) -> Iterator[LedgerReader]:
    """Open a store to be read, next to the process that writes in it."""
    ledger: LedgerReader
    if isinstance(where, str):
        ledger = load_ledger("postgresql", "psycopg").PostgreSQL(where)
    else:
        ledger = load_ledger("sqlite", "apsw").SQLiteReader(where)
    with closing(ledger):
        yield ledger


@contextmanager
def open_view(where: Place) -> Iterator[View]:
    """Look at a store as it is at one moment."""
    with open_reader(where) as ledger, ledger.view() as view:
        yield view


def choose(records: Iterable[LoopRecord], name: str | None, argument: str) -> LoopRecord:
    """Return the loop of a name, or the only one there is."""
    by_name = {record.name: record for record in records}
    if not by_name:
        raise StoreError("the store has no loops yet; store.loop(name, arms=...) makes one")
    if name is None and len(by_name) == 1:
        return next(iter(by_name.values()))
    if name is None:
        raise ArgumentError("{" + argument + "} is missing; give one of {names}", names=", ".join(by_name))
    if name not in by_name:
        raise ArgumentError("{" + argument + "} is {name!r}; {fix}", name=name, fix=choices(name, by_name))
    return by_name[name]
