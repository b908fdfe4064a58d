"""The tables of a store in a file, how a file of the version before is brought to this one, and what is refused.

A file whose schema is not exactly this one is refused: a trigger, say, would run with the next row.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

import apsw

from armlet.errors import StoreError
from armlet.stores.encoding import HEAD, WAY_OUT, head_values, read_head
from armlet.stores.ledger import Head

APPLICATION: Final = 0x41524D4C  # "ARML"
VERSION: Final = 8  # counted up when a table or the fields of a row change

_OUTCOME = """
    CREATE TABLE outcome (
        loop INTEGER NOT NULL, t INTEGER NOT NULL, event TEXT NOT NULL, seq INTEGER NOT NULL, phase TEXT NOT NULL,
        value REAL, due INTEGER, rank INTEGER NOT NULL, names TEXT NOT NULL, played TEXT, {}crc INTEGER NOT NULL,
        PRIMARY KEY (loop, t)) WITHOUT ROWID;
    CREATE UNIQUE INDEX outcome_by_event ON outcome (loop, event);
    CREATE INDEX outcome_by_due ON outcome (loop, due) WHERE due IS NOT NULL;
"""
_SINCE_8 = _OUTCOME.format("parts TEXT, ")
_ONLY_7 = _OUTCOME.format("")
_SINCE_7 = """
    CREATE TABLE loop (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, about TEXT NOT NULL, start BLOB NOT NULL,
        base INTEGER NOT NULL DEFAULT 0,  -- rows up to it have been learned by `start`, so that they may be erased
        made INTEGER NOT NULL);  -- the check value of the others
    CREATE TABLE head (
        loop INTEGER PRIMARY KEY, clock INTEGER NOT NULL, seq INTEGER NOT NULL, ts INTEGER NOT NULL,
        steady INTEGER NOT NULL, epoch INTEGER NOT NULL, outcomes INTEGER NOT NULL, early INTEGER NOT NULL,
        tallied INTEGER NOT NULL, made INTEGER NOT NULL, crc INTEGER NOT NULL);
    CREATE TABLE early (
        id INTEGER PRIMARY KEY, loop INTEGER NOT NULL, event TEXT NOT NULL, until INTEGER NOT NULL,
        fields TEXT NOT NULL, crc INTEGER NOT NULL);
    CREATE INDEX early_by_event ON early (loop, event);
    CREATE INDEX early_by_time ON early (loop, until);
    CREATE TABLE tally (loop INTEGER PRIMARY KEY, counts TEXT NOT NULL, crc INTEGER NOT NULL);
"""
_SINCE_6 = """
    CREATE TABLE event (
        loop INTEGER NOT NULL, seq INTEGER NOT NULL, ts INTEGER NOT NULL, kind TEXT NOT NULL, t INTEGER,
        fields TEXT NOT NULL, x BLOB, crc INTEGER NOT NULL, PRIMARY KEY (loop, seq)) WITHOUT ROWID;
    CREATE INDEX event_by_step ON event (loop, t) WHERE kind <> 'decide';
    CREATE TABLE snapshot (
        loop INTEGER PRIMARY KEY, seq INTEGER NOT NULL, model BLOB NOT NULL, crc INTEGER NOT NULL);
"""
_ONLY_6 = """
    CREATE TABLE loop (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, about TEXT NOT NULL, start BLOB NOT NULL,
        clock INTEGER NOT NULL DEFAULT 0, seq INTEGER NOT NULL DEFAULT 0, ts INTEGER NOT NULL DEFAULT 0,
        base INTEGER NOT NULL DEFAULT 0,  -- rows up to it have been learned by `start`, so that they may be erased
        steady INTEGER NOT NULL DEFAULT 0, outcomes INTEGER NOT NULL DEFAULT 0,
        made INTEGER NOT NULL,  -- the check value of name, about, start and base; `crc` is that of the rest
        crc INTEGER NOT NULL);
    CREATE TABLE outcome (
        loop INTEGER NOT NULL, t INTEGER NOT NULL, event TEXT NOT NULL, seq INTEGER NOT NULL, phase TEXT NOT NULL,
        value REAL, due INTEGER, rank INTEGER NOT NULL, names TEXT NOT NULL, crc INTEGER NOT NULL,
        PRIMARY KEY (loop, t)) WITHOUT ROWID;
    CREATE UNIQUE INDEX outcome_by_event ON outcome (loop, event);
    CREATE INDEX outcome_by_due ON outcome (loop, due) WHERE due IS NOT NULL;
"""
TABLES: Final[Mapping[int, str]] = {
    6: _ONLY_6 + _SINCE_6,
    7: _ONLY_7 + _SINCE_7 + _SINCE_6,
    VERSION: _SINCE_8 + _SINCE_7 + _SINCE_6,
}
"""Those of this version, and of the ones that are brought to it."""


# ---- from version to version


def _from_6(connection: apsw.Connection) -> None:
    """Give heads a table of their own, and outcomes the arm that was played instead."""
    loops = fetch(connection, "SELECT id, clock, seq, ts, steady, outcomes, made, crc FROM loop")
    connection.execute("ALTER TABLE loop RENAME TO loop_6")
    connection.execute(_SINCE_7)
    connection.execute("INSERT INTO loop SELECT id, name, about, start, base, made FROM loop_6")
    _copy_outcomes(
        connection, _ONLY_7, "loop, t, event, seq, phase, value, due, rank, names"
    )  # nothing else was played
    for loop, clock, seq, ts, steady, outcomes, made, crc in loops:
        if zlib.crc32(repr((loop, clock, seq, ts, steady, outcomes, made)).encode()) != crc:
            raise StoreError(f"the clock of loop {loop} is damaged: its checksum is wrong; {WAY_OUT}")
        head = Head(clock=clock, seq=seq, ts=ts, steady=steady, outcomes=outcomes)
        connection.execute(f"INSERT INTO head VALUES ({marks(len(HEAD))})", head_values(loop, head, made))
    connection.execute("DROP TABLE loop_6")


def _from_7(connection: apsw.Connection) -> None:
    """Give outcomes the parts of several."""
    _copy_outcomes(connection, _SINCE_8, "loop, t, event, seq, phase, value, due, rank, names, played")


def _copy_outcomes(connection: apsw.Connection, tables: str, columns: str) -> None:
    """Copy outcomes into a table that has more columns: their check values stay, since these are empty."""
    for index in ("outcome_by_event", "outcome_by_due"):
        connection.execute(f"DROP INDEX {index}")
    connection.execute("ALTER TABLE outcome RENAME TO outcome_before")
    connection.execute(tables)
    connection.execute(f"INSERT INTO outcome ({columns}, crc) SELECT {columns}, crc FROM outcome_before")
    connection.execute("DROP TABLE outcome_before")


_STEPS: Mapping[int, Callable[[apsw.Connection], None]] = {6: _from_6, 7: _from_7}


def bring_up_to_date(connection: apsw.Connection) -> None:
    """Make the tables of an empty file, or bring those of an earlier version to this one; all or nothing."""
    version = connection.pragma("user_version")
    if version == VERSION:
        return
    with connection:
        if version == 0:
            connection.execute(TABLES[VERSION])
            connection.pragma("application_id", APPLICATION)
        for step in range(version or VERSION, VERSION):
            _STEPS[step](connection)
        connection.pragma("user_version", VERSION)


# ---- what is refused


def check_ours(connection: apsw.Connection, name: str, *, brings_up_to_date: bool = True) -> None:
    """Refuse a file that is not a store, is of a version that is not known, or has another schema."""
    version, mark, schema = connection.pragma("user_version"), connection.pragma("application_id"), _schema(connection)
    if mark != APPLICATION and (mark or version or schema):
        raise StoreError(f"{name} is a database, but not one of Armlet's; name another file")
    if mark != APPLICATION and not brings_up_to_date:
        raise StoreError(f"{name} is empty; give the path of a store")
    if mark == APPLICATION and version not in TABLES:
        known = " and ".join(map(str, TABLES))
        raise StoreError(
            f"{name} is a store of version {version}; this Armlet reads {known} only: use the one that wrote it"
        )
    if mark == APPLICATION and version != VERSION and not brings_up_to_date:
        raise StoreError(
            f"{name} is a store of version {version}, and can be read once it is of version {VERSION}: "
            "open it with armlet.open_store, which brings it there"
        )
    if odd := sorted(schema ^ (_known(version) if mark else frozenset())):
        kind, thing = odd[0][:2]
        raise StoreError(f"{name} has another schema than a store of Armlet's: see {kind} {thing!r}; {WAY_OUT}")


def check_pages(connection: apsw.Connection, name: str) -> None:
    """Refuse a file whose tables or indexes are damaged; reads all of it."""
    if (answer := connection.execute("PRAGMA integrity_check(1)").get) != "ok":
        raise StoreError(f"{name} is damaged: {' '.join(str(answer).split())}; {WAY_OUT}")


def check_counts(connection: apsw.Connection, name: str) -> None:
    """Refuse a file that has lost some of its outcomes, since rewards would count again, or the head of a loop."""
    found = dict(fetch(connection, "SELECT loop, count(*) FROM outcome GROUP BY loop"))
    heads = {each[0]: read_head(each)[0].outcomes for each in fetch(connection, f"SELECT {', '.join(HEAD)} FROM head")}
    if found != {loop: count for loop, count in heads.items() if count}:
        raise StoreError(f"{name} is damaged: outcomes are missing, or there are too many; {WAY_OUT}")
    if heads.keys() != {loop for (loop,) in fetch(connection, "SELECT id FROM loop")}:
        raise StoreError(f"{name} is damaged: the head of a loop is missing; {WAY_OUT}")


def _schema(connection: apsw.Connection) -> set[tuple[str, ...]]:
    found = fetch(connection, "SELECT type, name, tbl_name, sql FROM sqlite_master")
    return {tuple(map(str, each)) for each in found}


@cache
def _known(version: int) -> frozenset[tuple[str, ...]]:
    connection = apsw.Connection(":memory:")
    connection.execute(TABLES[version])
    known = frozenset(_schema(connection))
    connection.close()
    return known


# ---- statements


def fetch(connection: apsw.Connection, sql: str, values: tuple[object, ...] = ()) -> list[Any]:
    """Read all that a statement finds; invalid text is damage like any other."""
    try:
        return connection.execute(sql, values).fetchall()
    except UnicodeDecodeError as error:
        raise StoreError(f"a row of the store holds text that is not UTF-8: {error}; {WAY_OUT}") from error


@cache
def marks(n: int) -> str:
    """Return placeholders for so many values."""
    return ", ".join("?" * n)
