"""A copy of all loops in a store's file, as they are at one moment: it can be opened like any other.

Rows have the same columns and check values in every database, so that they are copied as they are.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from armlet.disk import sync_directory
from armlet.errors import StoreError, load_package
from armlet.stores import encoding
from armlet.stores.postgresql.connection import Connection, Rows
from armlet.stores.postgresql.schema import COMMIT
from armlet.stores.postgresql.statements import TEXT, WHOLE, Statement, Type
from armlet.stores.postgresql.view import BEGIN

PAGE: Final = 1000  # rows read at once; models, one by one


class Table(NamedTuple):
    """A table, and by what its rows are read in order."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    types: tuple[Type, ...]
    first: tuple[int | str, ...]  # before all keys
    page: int = PAGE


@cache
def _next_rows(table: Table) -> Statement:
    """Return the statement that reads rows after a key; their own keys follow their columns."""
    key = ", ".join(table.key)
    after = ", ".join(f"${i}" for i in range(1, len(table.key) + 1))
    return Statement(
        f"""SELECT {", ".join(table.columns)}, {key} FROM {table.name}
        WHERE ({key}) > ({after}) ORDER BY {key} LIMIT {table.page}""",
        *table.types,
    )


TABLES: Final = (
    Table("loop", encoding.LOOP, ("id",), (WHOLE,), (-1,), 1),
    Table("head", encoding.HEAD, ("loop",), (WHOLE,), (-1,)),
    Table("tally", encoding.TALLY, ("loop",), (WHOLE,), (-1,)),
    Table("snapshot", encoding.SNAPSHOT, ("loop",), (WHOLE,), (-1,), 1),
    Table("event", encoding.EVENT, ("loop", "seq"), (WHOLE, WHOLE), (-1, -1)),
    Table("outcome", encoding.OUTCOME, ("loop", "t"), (WHOLE, WHOLE), (-1, -1)),
    Table("early", encoding.EARLY, ("loop", "event", "id"), (WHOLE, TEXT, WHOLE), (-1, "", -1)),
)


def copy_to_file(connection: Connection, path: Path) -> None:
    """Copy everything into a new file; a copy that fails leaves nothing behind."""
    apsw = load_package("apsw", "a copy of a store in a file needs")
    if path.exists():
        raise StoreError(f"{path} exists; name a file that does not")
    part = path.with_name(f".armlet-{os.urandom(8).hex()}.tmp")
    try:
        _copy(connection, part)
        part.rename(path)
        sync_directory(path.parent)
    except (OSError, apsw.Error) as error:
        raise StoreError(f"{path} cannot be written: {error}; make room, or name a file elsewhere") from error
    finally:
        for end in ("", "-journal", "-wal", "-shm", ".lock"):
            Path(f"{part}{end}").unlink(missing_ok=True)


def _copy(connection: Connection, path: Path) -> None:
    import apsw

    from armlet.stores.sqlite import SQLite

    SQLite(path).close()  # makes the tables
    target = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.run([BEGIN()])
        with target:
            for table in TABLES:
                columns = ", ".join(table.columns)
                sql = f"INSERT INTO {table.name} ({columns}) VALUES ({', '.join('?' * len(table.columns))})"
                for page in _pages(connection, table):
                    target.executemany(sql, page)
        connection.run([COMMIT()])
    finally:
        target.close()


def _pages(connection: Connection, table: Table) -> Iterator[Rows]:
    statement, after, n = _next_rows(table), table.first, len(table.columns)
    while page := connection.run([statement(*after)])[0]:
        yield [row[:n] for row in page]
        after = page[-1][n:]
