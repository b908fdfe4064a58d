"""The row form of events: what a store writes of them in `row.fields`, checked by a look at types, and as events."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any, Final, NamedTuple

from armlet.record.kinds import KINDS, Fields
from armlet.record.values import Event


class _Shape(NamedTuple):
    """What a row of a kind has: its fields, and which types those that none may lack have together."""

    fields: Fields
    names: tuple[str, ...]
    types: frozenset[tuple[type, ...]]


def _shape(fields: Fields) -> _Shape:
    required = {name: field.check.types for name, field in fields.items() if not field.is_optional}
    return _Shape(fields, tuple(required), frozenset(product(*required.values())))


_SHAPES: Final = {name: _shape(kind.row) for name, kind in KINDS.items() if kind.row is not None}
_GUARDED: Final = ("control", "shadow", "shadows")
INTERNAL: Final = frozenset(
    name for shape in _SHAPES.values() for name, field in shape.fields.items() if field.is_internal
)
"""Fields that only a store needs."""
ROWS: Final = frozenset(_SHAPES)
"""Kinds of rows that stores have."""
PASSIVE: Final = frozenset(
    name for name in _SHAPES if KINDS[name].of == "actions" or KINDS[KINDS[name].logged_as or name].play is None
)
"""Kinds of rows that change no bandit: tables of actions are rows of their own, which decisions name."""


def damage(kind: str, fields: Mapping[str, Any]) -> str | None:
    """Return why fields are not those of a row of a kind, if so.

    Examples
    --------
    >>> damage("learn", {"of": 1})
    'id is missing, or is not a step and 16 hexadecimal digits, such as 12-00ff00ff00ff00ff'
    """
    shape = _SHAPES[kind]
    if tuple(map(type, map(fields.get, shape.names))) not in shape.types:
        for name in shape.names:
            check = shape.fields[name].check
            if type(fields.get(name, shape)) not in check.types:
                return f"{name} is missing, or is not {check.words}"
    for name in _GUARDED:
        if name in fields and not (check := shape.fields[name].check).holds(fields[name]):
            return f"{name} is not {check.words}"
    return None


def as_events(row: Event) -> list[Event]:
    """Return the events of a log that a row is, with the fields that only a store needs.

    Examples
    --------
    >>> as_events({"seq": 9, "kind": "change", "at": 5, "rules": {}, "replaces": [{"reward_range": [0.0, 1.0]}]})
    [{'seq': 9, 'kind': 'replace', 'at': 5, 'reward_range': [0.0, 1.0]}]
    """
    kind = KINDS[row["kind"]]
    event = {**row, "kind": kind.logged_as} if kind.logged_as else row
    return [event] if kind.logged is None else kind.logged(event)
