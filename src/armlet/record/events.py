"""What can be read as a log, and the check of its events: each holds what its kind allows, and contradicts nothing."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol, get_args, runtime_checkable

from armlet.disk import decode_model
from armlet.errors import ArmletError, LogError
from armlet.record.contradictions import ACTION_SCHEMA, SCHEMA, Shape
from armlet.record.faults import InvalidEventError, shorten
from armlet.record.kinds import FORMAT, KINDS, LOGGED, Kind, Whose, fields_of
from armlet.record.values import Check, Event

LAST: Final = 253_402_300_800_000_000 - 1
"""The last microsecond of the year 9999, after which calendars give up."""
_MISSING: Final = object()


def _checks(of: Whose) -> Mapping[str, tuple[tuple[str, Check, bool], ...]]:
    return {
        kind: tuple((name, field.check, field.is_optional) for name, field in fields_of(kind, of).items())
        for kind in LOGGED
    }


_CHECKS: Final[Mapping[Whose, Mapping[str, tuple[tuple[str, Check, bool], ...]]]] = {
    of: _checks(of) for of in get_args(Whose)
}


@runtime_checkable
class Events(Protocol):
    """What can be read as a log: what the start says, and the events in order, the start first."""

    @property
    def about(self) -> Mapping[str, Any]:
        """The fields of the start."""

    def __iter__(self) -> Iterator[Event]:
        """Yield the events, from the first one on, each time."""


def shape_after(event: Event, shape: Shape | None) -> Shape | None:
    """Return the shape of a log after an event.

    Examples
    --------
    >>> shape_after({"kind": "replace", "features": ["age", "height"], "fill": {"height": 0.0}}, Shape(1))
    Shape(dim=2, action_dim=None)
    """
    if event["kind"] == "start":
        return Shape.of(event)
    if event["kind"] == "resync" and shape is not None:
        with contextlib.suppress(ArmletError, ValueError, LookupError):  # else its replay refuses it
            return shape._replace(dim=header_of(event)["dim"])
    if shape is None or event["kind"] != "replace" or "features" not in event:
        return shape
    return shape._replace(dim=len(event["features"]))


def header_of(event: Event) -> Any:
    """Return the header of the model that an event holds."""
    return decode_model(base64.b64decode(event["model"]))[0]


def check_event(event: Event, seq: int, name: str, shape: Shape | None = None) -> None:
    """Refuse an event that its kind does not allow, or, given its shape, the log.

    Examples
    --------
    >>> check_event({"seq": 3, "kind": "advance", "at": 5, "t": -1}, 3, "a.jsonl")
    Traceback (most recent call last):
    armlet.record.faults.InvalidEventError: event 3 of a.jsonl (advance) is not valid: t is -1, not a whole number ...
    """
    if type(event) is not dict:
        raise InvalidEventError(name, seq, "not an event", "it is not an object")
    kind, at = event.get("kind"), event.get("at")
    if type(kind) is not str or kind not in LOGGED:
        raise InvalidEventError(name, seq, "unknown", f"its kind is {shorten(kind)}, which this version does not know")
    if event.get("seq") != seq or type(event["seq"]) is not int:
        raise InvalidEventError(name, seq, kind, f"its number is {shorten(event.get('seq'))}")
    if type(at) is not int or not 0 <= at <= LAST:
        raise InvalidEventError(name, seq, kind, f"at is {shorten(at)}, not microseconds since 1970")
    entry = KINDS[kind]
    is_of_actions = entry.of == "actions" or (entry.mark != "" and entry.mark in event)
    for field, (holds, words, _), is_optional in _CHECKS["actions" if is_of_actions else "arms"][kind]:
        value = event.get(field, _MISSING)
        if value is _MISSING:
            if not is_optional:
                raise InvalidEventError(name, seq, kind, f"{field} is missing")
        elif not holds(value):
            raise InvalidEventError(name, seq, kind, f"{field} is {shorten(value)}, not {words}")
    if why := _misplaced(entry, is_of_actions, shape) or (entry.contradiction and entry.contradiction(event, shape)):
        raise InvalidEventError(name, seq, kind, why)


def check_fields(kind: str, fields: Mapping[str, Any], name: str) -> None:
    """Refuse what a writer is to add as an event, before it has a number."""
    check_event({"seq": 0, "kind": kind, "at": 0, **fields}, 0, name)


def _misplaced(kind: Kind, is_of_actions: bool, shape: Shape | None) -> str | None:
    """Return why an event cannot be in a log, if so: some are of arms, and some of actions with features."""
    if shape is None or not (kind.mark or kind.of) or is_of_actions == (shape.action_dim is not None):
        return None
    has, about = ("arms", "actions with features") if is_of_actions else ("actions with features", "arms")
    return f"it is about {about}, but the log has {has}"


def check_start(event: Event, name: str) -> None:
    """Refuse a first event that starts no log, or one of another schema than this version reads.

    Examples
    --------
    >>> check_start({"seq": 0, "kind": "start", "format": "armlet log", "schema": 1}, "old.jsonl")
    Traceback (most recent call last):
    armlet.errors.LogError: old.jsonl is a log of schema 1; this version reads 3 and 4 only: use the one that wrote it
    """
    if event.get("kind") != "start" or event.get("format") != FORMAT:
        raise LogError(f"{name} is not an Armlet log: its first line is not a start", 0)
    if event.get("schema") not in (SCHEMA, ACTION_SCHEMA):
        schema, reads = shorten(event.get("schema")), f"{SCHEMA} and {ACTION_SCHEMA}"
        raise LogError(
            f"{name} is a log of schema {schema}; this version reads {reads} only: use the one that wrote it", 0
        )
