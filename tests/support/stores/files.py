"""Files of stores for whoever edits them by SQL: check values, and statements that mend them.

Check values are written down here a second time, as the file has them: a file of today must be read tomorrow.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path

import apsw


def check_values(*values: object) -> int:
    """Return the check value of an outcome, of a head, or of an early reward."""
    return zlib.crc32(repr(values).encode(errors="surrogatepass"))


def check_outcome(*values: object) -> int:
    """Return the check value of an outcome; where there is no other arm, or are no parts, it does not know of them."""
    *told, played, parts = values
    if parts is not None:
        return check_values(*values)
    return check_values(*told) if played is None else check_values(*told, played)


def check_event(loop: object, seq: object, ts: object, kind: object, t: object, fields: object, x: bytes | None) -> int:
    """Return the check value of a row."""
    crc = zlib.crc32(f"{loop} {seq} {ts} {kind} {t} {fields}".encode())
    return crc if x is None else zlib.crc32(x, crc)


def check_made(loop: object, name: object, about: object, start: bytes, base: object) -> int:
    """Return the check value of a loop's name, rules and model."""
    return zlib.crc32(start, check_values(loop, name, about, base))


def check_snapshot(loop: object, seq: object, model: bytes) -> int:
    """Return the check value of a snapshot."""
    return zlib.crc32(model, check_values(loop, seq))


def check_tally(loop: int, counts: str) -> int:
    """Return the check value of what was counted."""
    return zlib.crc32(counts.encode(), loop)


CHECKS: tuple[Callable[..., int], ...] = (
    check_values,
    check_outcome,
    check_event,
    check_made,
    check_snapshot,
    check_tally,
)

MEND_EVENT = ("UPDATE event SET crc = check_event(loop, seq, ts, kind, t, fields, x)",)
MEND_OUTCOME = (
    "UPDATE outcome SET crc = check_outcome(loop, t, event, seq, phase, value, due, rank, names, played, parts)",
)
MEND_TALLY = ("UPDATE tally SET crc = check_tally(loop, counts)",)
MEND_SNAPSHOT = ("UPDATE snapshot SET crc = check_snapshot(loop, seq, model)",)
MEND_EARLY = ("UPDATE early SET crc = check_values(loop, event, until, fields)",)
MEND_LOOP = (
    "UPDATE loop SET made = check_made(id, name, about, start, base)",
    "UPDATE head SET made = (SELECT made FROM loop WHERE loop.id = head.loop)",
)
MEND_HEAD = (
    "UPDATE head SET outcomes = (SELECT count(*) FROM outcome WHERE outcome.loop = head.loop)",
    "UPDATE head SET crc = check_values(loop, clock, seq, ts, steady, epoch, outcomes, early, tallied, made)",
)
MENDS = (*MEND_EVENT, *MEND_OUTCOME, *MEND_SNAPSHOT, *MEND_TALLY, *MEND_EARLY, *MEND_LOOP, *MEND_HEAD)


def tools(path: Path) -> apsw.Connection:
    """Open a file as somebody with SQLite would, with functions that mend check values."""
    connection = apsw.Connection(str(path))
    for check in CHECKS:
        connection.create_scalar_function(check.__name__, check)
    return connection


def edit(path: Path, *statements: str) -> None:
    """Edit a file by SQL."""
    connection = tools(path)
    try:
        for statement in statements:
            connection.execute(statement)
    finally:
        connection.close()
