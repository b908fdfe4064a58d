"""Rows of a database as the ledger's own, and back, with check values: the same in every database.

What is read is checked here, its types too, since whoever edits a table can mend a check value; the rest may trust it.
A check value covers the place of a row, so that no row can stand in for another.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, TypeAlias, cast, get_args

import msgspec

from armlet.errors import StoreError
from armlet.kernel import json_bytes
from armlet.stores.ledger import Decided, Early, Head, LoopRecord, OutcomeRecord, Part, PartPhase, Pending, Phase, Row

EVENT = ("loop", "seq", "ts", "kind", "t", "fields", "x", "crc")
OUTCOME = ("loop", "t", "event", "seq", "phase", "value", "due", "rank", "names", "played", "parts", "crc")
HEAD = ("loop", "clock", "seq", "ts", "steady", "epoch", "outcomes", "early", "tallied", "made", "crc")
LOOP = ("id", "name", "about", "start", "base", "made")
EARLY = ("loop", "event", "until", "fields", "crc")
SNAPSHOT = ("loop", "seq", "model", "crc")
TALLY = ("loop", "counts", "crc")

WAY_OUT = "go back to a backup"
Values: TypeAlias = tuple[Any, ...]

_WHOLE, _REAL, _TEXT, _BYTES = (int,), (float,), (str,), (bytes,)
_NONE = (type(None),)
_TYPES = {
    "loop": (_WHOLE, _TEXT, _TEXT, _BYTES, _WHOLE, _WHOLE),
    "head": (_WHOLE,) * 11,
    "event": (_WHOLE, _WHOLE, _WHOLE, _TEXT, _WHOLE + _NONE, _TEXT, _BYTES + _NONE, _WHOLE),
    "outcome": (
        *(_WHOLE, _WHOLE, _TEXT, _WHOLE, _TEXT, _REAL + _NONE, _WHOLE + _NONE, _WHOLE, _TEXT),
        *(_TEXT + _NONE, _TEXT + _NONE, _WHOLE),
    ),
    "early": (_WHOLE, _TEXT, _WHOLE, _TEXT, _WHOLE),
    "snapshot": (_WHOLE, _WHOLE, _BYTES, _WHOLE),
}
_SHAPES = {table: frozenset(product(*kinds)) for table, kinds in _TYPES.items()}
_new = tuple.__new__
_EVENT = _SHAPES["event"]
_PHASES = frozenset(get_args(Phase))
_PART_PHASES = frozenset(get_args(PartPhase))
_decode = msgspec.json.Decoder().decode
_decode_names = msgspec.json.Decoder(list[str]).decode


class _Part(msgspec.Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """A part as it is written."""

    value: float
    phase: str
    rank: int
    names: list[str]
    billed: float | None = None


_decode_parts = msgspec.json.Decoder(dict[str, _Part]).decode


# ---- writing


def _crc(*values: object) -> int:
    return zlib.crc32(repr(values).encode(errors="surrogatepass"))


def event_values(loop: int, row: Row) -> Values:
    """Return a row as it is written."""
    seq, ts, kind, t, fields, x = row
    text = json_bytes(fields).decode()
    crc = zlib.crc32(f"{loop} {seq} {ts} {kind} {t} {text}".encode())
    return (loop, seq, ts, kind, t, text, x, crc if x is None else zlib.crc32(x, crc))


def outcome_values(loop: int, pending: Pending) -> Values:
    """Return an outcome as it is written."""
    t, event, seq, phase, value, due, rank, names, played, parts = pending
    value = None if value is None else value + 0.0  # a database may keep no sign of zero
    fields = (loop, t, event, seq, phase, value, due, rank, json_bytes(names).decode() if names else "[]")
    arm = None if played is None else json_bytes(played).decode()
    text = None if parts is None else json_bytes({name: _plain(part) for name, part in parts.items()}).decode()
    return (*fields, arm, text, _outcome_crc(fields, arm, text))


def _plain(part: Part) -> list[object]:
    fields: list[object] = [part.value + 0.0, part.phase, part.rank, list(part.names)]
    return fields if part.billed is None else [*fields, part.billed + 0.0]


def _outcome_crc(fields: tuple[object, ...], arm: str | None, parts: str | None) -> int:
    """Return the check value of an outcome; what is not there is not in it, as in versions that did not know it."""
    last = (arm, parts) if parts is not None else () if arm is None else (arm,)
    return zlib.crc32(repr((*fields, *last) if last else fields).encode(errors="surrogatepass"))


def head_values(loop: int, head: Head, made: int) -> Values:
    """Return how far a loop has come as it is written; `made` is the check value of its record."""
    return (loop, *head, made, _crc(loop, *head, made))


def made_value(loop: int, name: str, about: str, start: bytes, base: int) -> int:
    """Return the check value of a loop's name, rules and model."""
    return zlib.crc32(start, _crc(loop, name, about, base))


def early_values(loop: int, early: Early) -> Values:
    """Return an early reward as it is written."""
    text = json_bytes(early.fields).decode()
    return (loop, early.event, early.until, text, _crc(loop, early.event, early.until, text))


def snapshot_values(loop: int, seq: int, model: bytes) -> Values:
    """Return a snapshot as it is written."""
    return (loop, seq, model, zlib.crc32(model, _crc(loop, seq)))


def tally_values(loop: int, counts: str) -> Values:
    """Return a tally as it is written."""
    return (loop, counts, zlib.crc32(counts.encode(), loop))


# ---- reading


def read_event(found: Sequence[Any]) -> Row:
    """Read a row."""
    loop, seq, ts, kind, t, text, x, crc = found
    if tuple(map(type, found)) in _EVENT:  # millions of them are read, so nothing is called that need not be
        value = zlib.crc32(f"{loop} {seq} {ts} {kind} {t} {text}".encode())
        if crc == (value if x is None else zlib.crc32(x, value)):
            return _new(Row, (seq, ts, kind, t, _parsed(text, seq), x))
    what = f"row {seq} of the loop"
    _check_types("event", found, what)
    _check(False, what)
    raise AssertionError(what)


def read_outcome(found: Sequence[Any]) -> Pending:
    """Read an outcome."""
    *fields, arm, parts, crc = found
    t, phase, names = fields[1], fields[4], fields[8]
    what = f"the outcome of step {t} of the loop"
    _check_types("outcome", found, what)
    _check(_outcome_crc(tuple(fields), arm, parts) == crc and phase in _PHASES, what)
    try:
        heard = () if names == "[]" else tuple(_decode_names(names))
        played = None if arm is None else _decode(arm)
        several = None if parts is None else _decode_parts(parts)
    except (msgspec.DecodeError, RecursionError) as error:
        raise StoreError(f"{what} is damaged: {error}; {WAY_OUT}") from error
    _check(played is None or type(played) in (str, int), what)
    _check(all(each.phase in _PART_PHASES for each in (several or {}).values()), what)
    return Pending(t, fields[2], fields[3], phase, fields[5], fields[6], fields[7], heard, played, _parts(several))


def _parts(found: Mapping[str, _Part] | None) -> Mapping[str, Part] | None:
    if found is None:
        return None
    return {
        name: Part(each.value, cast("PartPhase", each.phase), each.rank, tuple(each.names), each.billed)
        for name, each in found.items()
    }


def read_decided(found: Sequence[Any]) -> Decided:
    """Read an outcome and the row of its decision, one behind the other."""
    pending, rest = read_outcome(found[: len(OUTCOME)]), found[len(OUTCOME) :]
    if rest[0] is None:
        raise StoreError(f"row {pending.seq} of the loop is missing; {WAY_OUT}")
    row = read_event(rest)
    _check(row.kind == "decide" and row.t == pending.t, f"the outcome of step {pending.t} of the loop")
    return Decided(pending, row)


def read_outcome_record(found: Sequence[Any]) -> OutcomeRecord:
    """Read an outcome, the row of its decision, and the last one about it, one behind the other; None where missing."""
    row, last = len(OUTCOME), len(OUTCOME) + len(EVENT)
    if found[row] is None:
        pending = read_outcome(found[:row])
        raise StoreError(f"row {pending.seq} of the loop, the decision of step {pending.t}, is missing; {WAY_OUT}")
    heard = None if found[last] is None else read_event(found[last:])
    return OutcomeRecord(*read_decided(found[:last]), heard)


def read_head(found: Sequence[Any] | None) -> tuple[Head, int]:
    """Read how far a loop has come, and the check value of its record."""
    if found is None:
        raise StoreError(f"a loop of the store is gone; {WAY_OUT}")
    what = f"the head of loop {found[0]}"
    _check_types("head", found, what)
    *values, crc = found
    _check(_crc(*values) == crc, what)
    return Head(*values[1:-1]), values[-1]


def read_record(found: Sequence[Any]) -> LoopRecord:
    """Read a loop."""
    loop, name, about, start, base, made = found
    what = f"loop {name!r:.80}"
    _check_types("loop", found, what)
    _check(made_value(loop, name, about, start, base) == made, what)
    return LoopRecord(id=loop, name=name, about=about, start=start, base=base)


def read_early(found: Sequence[Any]) -> Early:
    """Read an early reward."""
    loop, event, until, text, crc = found
    _check_types("early", found, "an early reward")
    _check(_crc(loop, event, until, text) == crc, "an early reward")
    return Early(event, until, _parsed(text, "of an early reward"))


def read_snapshot(found: Sequence[Any] | None) -> tuple[int, bytes] | None:
    """Read a snapshot; a damaged one is none, since the rows say the same."""
    if found is None or tuple(map(type, found)) not in _SHAPES["snapshot"]:
        return None
    loop, seq, model, _ = found
    return (seq, model) if snapshot_values(loop, seq, model) == tuple(found) else None


def read_tally(found: Sequence[Any] | None) -> str | None:
    """Read a tally."""
    if found is None:
        return None
    loop, counts, _ = found
    if type(counts) is not str or tally_values(loop, counts) != tuple(found):
        raise StoreError(f"the tally of the loop is damaged: its checksum is wrong; {WAY_OUT}")
    return counts


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise StoreError(f"{what} is damaged: its checksum is wrong; {WAY_OUT}")


def _check_types(table: str, found: Sequence[Any], what: str) -> None:
    if tuple(map(type, found)) not in _SHAPES[table]:
        raise StoreError(f"{what} is damaged: a value of it is of another type; {WAY_OUT}")


def _parsed(text: str, which: object) -> Mapping[str, Any]:
    try:
        value = _decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise StoreError(f"row {which} of the loop is damaged: it holds no JSON ({error}); {WAY_OUT}") from error
    if type(value) is not dict:
        raise StoreError(f"row {which} of the loop is damaged: it holds other JSON than it should; {WAY_OUT}")
    return value
