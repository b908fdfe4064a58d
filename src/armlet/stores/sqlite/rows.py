"""Rows of SQLite's tables as the ledger's own, and back; each carries a check value, since pages have none."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import apsw

from armlet.core.errors import StoreError
from armlet.core.kernel import json_bytes
from armlet.stores.ledger import Kept, Outcome, Row

PAGE = 1000  # rows read at once

KEPT = "SELECT id, name, about, start, base FROM loop"
COLUMNS = ("loop", "seq", "ts", "kind", "t", "fields", "x", "crc")
ROW = f"SELECT {', '.join(COLUMNS)} FROM event WHERE loop = ? AND seq"
OUTCOME = "SELECT t, event, seq, phase, value, due FROM outcome WHERE loop = ? AND"


def as_json(fields: Mapping[str, Any]) -> str:
    """Write fields as the text of a row."""
    return json_bytes(fields).decode()


def check_value(loop: int, seq: int, ts: int, kind: str, t: int | None, fields: str, x: bytes | None) -> int:
    """Give what tells whether a row is as it was written, and where."""
    return zlib.crc32(x or b"", zlib.crc32(f"{loop} {seq} {ts} {kind} {t} {fields}".encode()))


def kept_of(found: Sequence[Any]) -> Kept:
    """Read a loop."""
    return Kept(id=found[0], name=found[1], about=found[2], start=found[3], base=found[4])


def outcome_of(found: Sequence[Any] | None) -> Outcome | None:
    """Read an outcome, if there is one."""
    if found is None:
        return None
    t, event, seq, phase, value, due = found
    return Outcome(t=t, event=event, seq=seq, phase=phase, value=value, due=due)


def row_of(found: Sequence[Any]) -> Row:
    """Read a row; refuse one that is not as it was written."""
    loop, seq, ts, kind, t, fields, x, crc = found
    if check_value(loop, seq, ts, kind, t, fields, x) != crc:
        raise StoreError(f"row {seq} of the loop is damaged: its checksum is wrong; go back to a backup")
    return Row(seq=seq, ts=ts, kind=kind, t=t, fields=json.loads(fields), x=x)


def rows_after(connection: apsw.Connection, loop: int, after: int) -> Iterator[Row]:
    """Read rows in order, a page at a time, so that nobody waits for the reader."""
    while page := connection.execute(f"{ROW} > ? ORDER BY seq LIMIT ?", (loop, after, PAGE)).fetchall():
        for found in page:
            row = row_of(found)
            yield row
            after = row.seq
