"""The tables of a store in SQLite, and their rows as the ledger's own; each carries a check value, as pages have none.

What is read is checked here, its types too, for an editor of a file can mend a check value; the rest of the package may
trust it. A file whose schema is not exactly this one is refused: a trigger, say, would run with the next row.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any, NamedTuple, get_args

import apsw

from armlet.errors import StoreError
from armlet.kernel import json_bytes
from armlet.stores.ledger import LoopRecord, Outcome, Phase, Row

PAGE = 1000  # rows read at once

LOOP = "SELECT id, name, about, start, base, made FROM loop"
COLUMNS = ("loop", "seq", "ts", "kind", "t", "fields", "x", "crc")
ROW = f"SELECT {', '.join(COLUMNS)} FROM event WHERE loop = ? AND seq"
OUTCOME = "SELECT loop, t, event, seq, phase, value, due, rank, names, crc FROM outcome WHERE loop = ? AND"
HEAD = "SELECT id, clock, seq, ts, steady, outcomes, made, crc FROM loop"
SNAPSHOT = "SELECT loop, seq, model, crc FROM snapshot WHERE loop = ?"

_WHOLE, _REAL, _TEXT, _BYTES = (int,), (float,), (str,), (bytes,)
_NONE = (type(None),)
_TYPES = {
    "loop": (_WHOLE, _TEXT, _TEXT, _BYTES, _WHOLE, _WHOLE),
    "head": (_WHOLE,) * 8,
    "event": (_WHOLE, _WHOLE, _WHOLE, _TEXT, _WHOLE + _NONE, _TEXT, _BYTES + _NONE, _WHOLE),
    "outcome": (_WHOLE, _WHOLE, _TEXT, _WHOLE, _TEXT, _REAL + _NONE, _WHOLE + _NONE, _WHOLE, _TEXT, _WHOLE),
    "snapshot": (_WHOLE, _WHOLE, _BYTES, _WHOLE),
}
_SHAPES = {table: frozenset(product(*kinds)) for table, kinds in _TYPES.items()}


def as_json(fields: Mapping[str, Any]) -> str:
    """Write fields as the text of a row."""
    return json_bytes(fields).decode()


def as_names(names: Sequence[str]) -> str:
    """Write names of rewards as the text of an outcome."""
    return json.dumps(names) if names else "[]"


def check_value(loop: int, seq: int, ts: int, kind: str, t: int | None, fields: str, x: bytes | None) -> int:
    """Return the check value of a row and its place."""
    return zlib.crc32(x or b"", zlib.crc32(f"{loop} {seq} {ts} {kind} {t} {fields}".encode()))


def check_values(*values: object) -> int:
    """Return the check value of a row of any other table and its place."""
    return zlib.crc32(repr(values).encode(errors="surrogatepass"))


def check_made(loop: int, name: str, about: str, start: bytes, base: int) -> int:
    """Return the check value of a loop's name, reward rules and model."""
    return zlib.crc32(start, check_values(loop, name, about, base))


def check_snapshot(loop: int, seq: int, model: bytes) -> int:
    """Return the check value of a snapshot."""
    return zlib.crc32(model, check_values(loop, seq))


def fetch(connection: apsw.Connection, sql: str, values: tuple[object, ...] = ()) -> list[Any]:
    """Read all that a statement finds; invalid text is damage like any other."""
    try:
        return connection.execute(sql, values).fetchall()
    except UnicodeDecodeError as error:
        raise StoreError(f"a row of the store holds text that is not UTF-8: {error}; {_WAY_OUT}") from error


def fetch_one(connection: apsw.Connection, sql: str, values: tuple[object, ...] = ()) -> Any:
    """Read the first row that a statement finds, None if there is none."""
    found = fetch(connection, sql, values)
    return found[0] if found else None


def record_of(found: Sequence[Any]) -> LoopRecord:
    """Read a loop; refuse one that is not as it was written."""
    _check_types("loop", found, f"loop {found[1]!r:.80}")
    loop, name, about, start, base, made = found
    _check(check_made(loop, name, about, start, base) == made, f"loop {name!r:.80}")
    return LoopRecord(id=loop, name=name, about=about, start=start, base=base)


class Head(NamedTuple):
    """How far a loop has come."""

    clock: int = 0
    seq: int = 0
    ts: int = 0
    steady: int = 0
    outcomes: int = 0  # how many there are, so that none can be missed
    made: int = 0  # the check value of its other columns


def head_of(found: Sequence[Any] | None) -> Head:
    """Read how far a loop has come; refuse a head that is not as it was written."""
    if found is None:
        raise StoreError(f"a loop of the store is gone; {_WAY_OUT}")
    _check_types("head", found, f"loop {found[0]}")
    *values, crc = found
    _check(check_values(*values) == crc, f"the clock of loop {found[0]}")
    return Head(*values[1:])


def outcome_of(found: Sequence[Any]) -> Outcome:
    """Read an outcome; refuse one that is not as it was written."""
    loop, t, event, seq, phase, value, due, rank, names, crc = found
    what = f"the outcome of step {t} of the loop"
    _check_types("outcome", found, what)
    _check(check_values(loop, t, event, seq, phase, value, due, rank, names) == crc, what)
    told = () if names == "[]" else tuple(_parsed(names, list, what))
    _check(phase in get_args(Phase) and all(type(name) is str for name in told), what)
    return Outcome(t=t, event=event, seq=seq, phase=phase, value=value, due=due, rank=rank, names=told)


def row_of(found: Sequence[Any]) -> Row:
    """Read a row; refuse one that is not as it was written."""
    loop, seq, ts, kind, t, fields, x, crc = found
    what = f"row {seq} of the loop"
    _check_types("event", found, what)
    _check(check_value(loop, seq, ts, kind, t, fields, x) == crc, what)
    return Row(seq=seq, ts=ts, kind=kind, t=t, fields=_parsed(fields, dict, what), x=x)


def snapshot_of(found: Sequence[Any] | None) -> tuple[int, bytes] | None:
    """Read a snapshot; a damaged one is none, since the rows say the same."""
    if found is None or not _fits("snapshot", found):
        return None
    loop, seq, model, crc = found
    return (seq, model) if check_snapshot(loop, seq, model) == crc else None


def rows_after(connection: apsw.Connection, loop: int, after: int) -> Iterator[Row]:
    """Read rows in order, a page at a time, so that nobody waits for the reader."""
    while page := fetch(connection, f"{ROW} > ? ORDER BY seq LIMIT ?", (loop, after, PAGE)):
        for found in page:
            row = row_of(found)
            _check(row.seq > after, f"row {row.seq} of the loop")  # or this might never end
            yield row
            after = row.seq


_WAY_OUT = "go back to a backup"


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise StoreError(f"{what} is damaged: its checksum is wrong; {_WAY_OUT}")


def _fits(table: str, found: Sequence[Any]) -> bool:
    return tuple(map(type, found)) in _SHAPES[table]


def _check_types(table: str, found: Sequence[Any], what: str) -> None:
    if not _fits(table, found):
        raise StoreError(f"{what} is damaged: a value of it is of another type; {_WAY_OUT}")


def _parsed(text: str, kind: type, what: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{what} is damaged: it holds no JSON ({error}); {_WAY_OUT}") from error
    if type(value) is not kind:
        raise StoreError(f"{what} is damaged: it holds other JSON than it should; {_WAY_OUT}")
    return value


# ---- the schema

APPLICATION = 0x41524D4C  # "ARML"

VERSION = 5  # counted up when a table or the fields of a row change; a file of another version is refused
_TABLES = """
    CREATE TABLE loop (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, about TEXT NOT NULL, start BLOB NOT NULL,
        clock INTEGER NOT NULL DEFAULT 0, seq INTEGER NOT NULL DEFAULT 0, ts INTEGER NOT NULL DEFAULT 0,
        base INTEGER NOT NULL DEFAULT 0,  -- rows up to it have been learned by `start`, so that they may be erased
        steady INTEGER NOT NULL DEFAULT 0, outcomes INTEGER NOT NULL DEFAULT 0,
        made INTEGER NOT NULL,  -- the check value of name, about, start and base; `crc` is that of the rest
        crc INTEGER NOT NULL);
    CREATE TABLE event (
        loop INTEGER NOT NULL, seq INTEGER NOT NULL, ts INTEGER NOT NULL, kind TEXT NOT NULL, t INTEGER,
        fields TEXT NOT NULL, x BLOB, crc INTEGER NOT NULL, PRIMARY KEY (loop, seq)) WITHOUT ROWID;
    CREATE TABLE outcome (
        loop INTEGER NOT NULL, t INTEGER NOT NULL, event TEXT NOT NULL, seq INTEGER NOT NULL, phase TEXT NOT NULL,
        value REAL, due INTEGER, rank INTEGER NOT NULL, names TEXT NOT NULL, crc INTEGER NOT NULL,
        PRIMARY KEY (loop, t)) WITHOUT ROWID;
    CREATE UNIQUE INDEX outcome_by_event ON outcome (loop, event);
    CREATE INDEX outcome_by_due ON outcome (loop, due) WHERE due IS NOT NULL;
    CREATE INDEX event_by_step ON event (loop, t) WHERE kind <> 'decide';
    CREATE TABLE snapshot (
        loop INTEGER PRIMARY KEY, seq INTEGER NOT NULL, model BLOB NOT NULL, crc INTEGER NOT NULL);
"""


def check_ours(connection: apsw.Connection, name: str) -> None:
    """Refuse a file that is not a store, is of another version, has another schema, or is damaged."""
    version, mark, schema = connection.pragma("user_version"), connection.pragma("application_id"), _schema(connection)
    if mark != APPLICATION and (mark or version or schema):
        raise StoreError(f"{name} is a database, but not one of Armlet's; name another file")
    if mark == APPLICATION and version != VERSION:
        raise StoreError(
            f"{name} is a store of version {version}; this Armlet reads {VERSION} only: use the one that wrote it"
        )
    if odd := sorted(schema ^ (_known() if mark else frozenset())):
        kind, thing = odd[0][:2]
        raise StoreError(
            f"{name} has another schema than a store of Armlet's: see {kind} {thing!r}; go back to a backup"
        )
    if (told := connection.execute("PRAGMA integrity_check(1)").get) != "ok":
        raise StoreError(f"{name} is damaged: {told}; go back to a backup")


def create_tables(connection: apsw.Connection) -> None:
    """Make the tables of an empty file, all or none."""
    if connection.pragma("user_version") != VERSION:
        with connection:
            connection.execute(_TABLES)
            connection.pragma("application_id", APPLICATION)
            connection.pragma("user_version", VERSION)


def check_counts(connection: apsw.Connection, name: str) -> None:
    """Refuse a file that has lost some of its outcomes: rewards would count again."""
    found = dict(fetch(connection, "SELECT loop, count(*) FROM outcome GROUP BY loop"))
    heads = {each[0]: head_of(each).outcomes for each in fetch(connection, HEAD)}
    if found != {loop: count for loop, count in heads.items() if count}:
        raise StoreError(f"{name} is damaged: outcomes are missing, or there are too many; go back to a backup")


def _schema(connection: apsw.Connection) -> set[tuple[str, ...]]:
    found = fetch(connection, "SELECT type, name, tbl_name, sql FROM sqlite_master")
    return {tuple(map(str, each)) for each in found}


@cache
def _known() -> frozenset[tuple[str, ...]]:
    connection = apsw.Connection(":memory:")
    connection.execute(_TABLES)
    known = frozenset(_schema(connection))
    connection.close()
    return known
