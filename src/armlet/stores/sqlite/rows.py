"""Rows of SQLite's tables as the ledger's own, and back; each carries a check value, since pages have none.

What is read is checked here, its types too, for whoever edits a file can mend a check value. After that the rest of the
package may trust it.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple, get_args

import apsw

from armlet.errors import StoreError
from armlet.kernel import json_bytes
from armlet.stores.ledger import Kept, Outcome, Phase, Row

PAGE = 1000  # rows read at once

KEPT = "SELECT id, name, about, start, base, made FROM loop"
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
    """Give what tells whether a row is as it was written, and where."""
    return zlib.crc32(x or b"", zlib.crc32(f"{loop} {seq} {ts} {kind} {t} {fields}".encode()))


def check_values(*values: object) -> int:
    """Give what tells whether a row of any other table is as it was written, and where."""
    return zlib.crc32(repr(values).encode(errors="surrogatepass"))


def check_made(loop: int, name: str, about: str, start: bytes, base: int) -> int:
    """Give what tells whether a loop's name, terms and model are as they were written."""
    return zlib.crc32(start, check_values(loop, name, about, base))


def check_snapshot(loop: int, seq: int, model: bytes) -> int:
    """Give what tells whether a snapshot is as it was written."""
    return zlib.crc32(model, check_values(loop, seq))


def fetch(connection: apsw.Connection, sql: str, values: tuple[object, ...] = ()) -> list[Any]:
    """Read all that a statement finds; text that is none is damage like any other."""
    try:
        return connection.execute(sql, values).fetchall()
    except UnicodeDecodeError as error:
        raise StoreError(f"a row of the store holds text that is not UTF-8: {error}; {_WAY_OUT}") from error


def fetch_one(connection: apsw.Connection, sql: str, values: tuple[object, ...] = ()) -> Any:
    """Read the first row that a statement finds, None if there is none."""
    found = fetch(connection, sql, values)
    return found[0] if found else None


def kept_of(found: Sequence[Any]) -> Kept:
    """Read a loop; refuse one that is not as it was written."""
    _check_types("loop", found, f"loop {found[1]!r:.80}")
    loop, name, about, start, base, made = found
    _check(check_made(loop, name, about, start, base) == made, f"loop {name!r:.80}")
    return Kept(id=loop, name=name, about=about, start=start, base=base)


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
