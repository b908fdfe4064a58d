"""The tables of a store in SQLite, by version; `PRAGMA user_version` says which a file has.

A file of an older version is brought up to date when it is opened, whole or not at all. To change a table, add a step
below: those that are there have been run on other people's files. A file whose schema is not exactly what the steps
make is refused: a trigger, say, would run with the next row.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import apsw

from armlet.errors import StoreError
from armlet.stores.sqlite.rows import HEAD, check_made, check_snapshot, check_values, fetch, head_of

APPLICATION = 0x41524D4C  # "ARML"

STEPS = (
    """
    CREATE TABLE loop (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, about TEXT NOT NULL, start BLOB NOT NULL,
        clock INTEGER NOT NULL DEFAULT 0, seq INTEGER NOT NULL DEFAULT 0, ts INTEGER NOT NULL DEFAULT 0);
    CREATE TABLE event (
        loop INTEGER NOT NULL, seq INTEGER NOT NULL, ts INTEGER NOT NULL, kind TEXT NOT NULL, t INTEGER,
        fields TEXT NOT NULL, x BLOB, crc INTEGER NOT NULL, PRIMARY KEY (loop, seq)) WITHOUT ROWID;
    CREATE TABLE outcome (
        loop INTEGER NOT NULL, t INTEGER NOT NULL, event TEXT NOT NULL, seq INTEGER NOT NULL, phase TEXT NOT NULL,
        value REAL, due INTEGER, PRIMARY KEY (loop, t)) WITHOUT ROWID;
    CREATE UNIQUE INDEX outcome_by_event ON outcome (loop, event);
    CREATE INDEX outcome_by_due ON outcome (loop, due) WHERE due IS NOT NULL;
    CREATE TABLE snapshot (loop INTEGER PRIMARY KEY, seq INTEGER NOT NULL, model BLOB NOT NULL);
    """,
    # rows up to `base` have been learned by `start`, so that they may be erased
    "ALTER TABLE loop ADD COLUMN base INTEGER NOT NULL DEFAULT 0;",
    # check values in every table; `made` is that of a loop's name, about, start and base, `crc` that of the rest, with
    # the number of its outcomes. The time that windows go by, `steady`, was that of rows
    """
    ALTER TABLE loop ADD COLUMN steady INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE loop ADD COLUMN outcomes INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE loop ADD COLUMN made INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE loop ADD COLUMN crc INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE outcome ADD COLUMN rank INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE outcome ADD COLUMN names TEXT NOT NULL DEFAULT '[]';
    ALTER TABLE outcome ADD COLUMN crc INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE snapshot ADD COLUMN crc INTEGER NOT NULL DEFAULT 0;
    """,
    # what else there is about a decision, to be erased or pruned with it
    "CREATE INDEX event_by_step ON event (loop, t) WHERE kind <> 'decide';",
)
FILLED = 3  # the version with check values in every table
VERSION = len(STEPS)

_FILL = """
    UPDATE loop SET steady = ts, made = check_made(id, name, about, start, base),
        outcomes = (SELECT count(*) FROM outcome WHERE outcome.loop = loop.id);
    UPDATE loop SET crc = check_values(id, clock, seq, ts, steady, outcomes, made);
    UPDATE outcome SET crc = check_values(loop, t, event, seq, phase, value, due, rank, names);
    UPDATE snapshot SET crc = check_snapshot(loop, seq, model);
"""


def check_ours(connection: apsw.Connection, name: str) -> None:
    """Refuse a newer version, what is no store, what has another schema than a store, and what is damaged."""
    found = connection.pragma("user_version")
    mark = connection.pragma("application_id")
    schema = _schema(connection)
    if mark != APPLICATION and (mark or found or schema):
        raise StoreError(f"{name} is a database, but not one of Armlet's; name another file")
    if not 0 <= found <= VERSION:
        raise StoreError(f"{name} is of version {found}, this Armlet reads up to {VERSION}; install a newer Armlet")
    if odd := sorted(schema ^ _known(found)):
        kind, thing = odd[0][:2]
        raise StoreError(
            f"{name} has another schema than a store of Armlet's: see {kind} {thing!r}; go back to a backup"
        )
    if (told := connection.execute("PRAGMA integrity_check(1)").get) != "ok":
        raise StoreError(f"{name} is damaged: {told}; go back to a backup")


def bring_up_to_date(connection: apsw.Connection) -> None:
    """Make the tables of a file that is ours, or change those of an older version."""
    found = connection.pragma("user_version")
    if found == VERSION:
        return
    with connection:
        for step in STEPS[found:]:
            connection.execute(step)
        if found < FILLED:
            _fill(connection)
        connection.pragma("application_id", APPLICATION)
        connection.pragma("user_version", VERSION)


def check_counts(connection: apsw.Connection, name: str) -> None:
    """Refuse a file that has lost some of its outcomes: rewards would count again."""
    found = dict(fetch(connection, "SELECT loop, count(*) FROM outcome GROUP BY loop"))
    heads = {each[0]: head_of(each).outcomes for each in fetch(connection, HEAD)}
    if found != {loop: count for loop, count in heads.items() if count}:
        raise StoreError(f"{name} is damaged: outcomes are missing, or there are too many; go back to a backup")


def _fill(connection: apsw.Connection) -> None:
    checks: tuple[Callable[..., int], ...] = (check_made, check_values, check_snapshot)
    for check in checks:
        connection.create_scalar_function(check.__name__, check)
    connection.execute(_FILL)
    for check in checks:
        connection.create_scalar_function(check.__name__, None)


def _schema(connection: apsw.Connection) -> set[tuple[str, ...]]:
    found = fetch(connection, "SELECT type, name, tbl_name, sql FROM sqlite_master")
    return {tuple(map(str, each)) for each in found}


@cache
def _known(version: int) -> frozenset[tuple[str, ...]]:
    connection = apsw.Connection(":memory:")
    for step in STEPS[:version]:
        connection.execute(step)
    known = frozenset(_schema(connection))
    connection.close()
    return known
