"""The tables of a store in SQLite, by version; `PRAGMA user_version` says which a file has.

A file of an older version is brought up to date when it is opened, whole or not at all. To change a table, add a step
below: those that are there have been run on other people's files.
"""

from __future__ import annotations

import apsw

from armlet.core.errors import StoreError

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
    # what else there is about a decision, to be erased or pruned with it
    "CREATE INDEX event_by_step ON event (loop, t) WHERE kind <> 'decide';",
)
VERSION = len(STEPS)


def bring_up_to_date(connection: apsw.Connection, name: str) -> None:
    """Make the tables, or change those of an older version; refuse a newer one and what is no store."""
    found = connection.pragma("user_version")
    mark = connection.pragma("application_id")
    if mark != APPLICATION and (mark or found or connection.execute("SELECT 1 FROM sqlite_master").get):
        raise StoreError(f"{name} is a database, but not one of Armlet's; name another file")
    if found > VERSION:
        raise StoreError(f"{name} is of version {found}, this Armlet reads up to {VERSION}; install a newer Armlet")
    if found == VERSION:
        return
    with connection:
        for step in STEPS[found:]:
            connection.execute(step)
        connection.pragma("application_id", APPLICATION)
        connection.pragma("user_version", VERSION)
