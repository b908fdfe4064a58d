"""Nested JSON as one row: every value by where it stands, such as `user.device`. O(values)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from armlet.errors import InvalidTypeError, InvalidValueError
from armlet.inputs.columns import LARGEST

Cell: TypeAlias = str | float
MOST: Final = 10_000  # values
DEEPEST: Final = 32


def flatten(nested: object) -> dict[str, Cell]:
    """Return the values of an object, or of a list of objects together, by their paths.

    A text in a list is a flag of its own, `tags=new`, since lists of texts have no order that means anything; a number
    in a list goes by its place. What is null is left out, and of a path that is there twice the last value counts.

    Examples
    --------
    >>> flatten([{"hour": 9}, {"user": {"age": 31, "member": True, "city": None}}, {"tags": ["new", "sale"]}])
    {'hour': 9.0, 'user.age': 31.0, 'user.member': 1.0, 'tags=new': 1.0, 'tags=sale': 1.0}
    >>> flatten({"embedding": [0.5, -1], "colour": "red"})
    {'embedding.0': 0.5, 'embedding.1': -1.0, 'colour': 'red'}
    """
    cells: dict[str, Cell] = {}
    for place, value in _leaves(nested, "", DEEPEST):
        cells[place] = value
        if len(cells) > MOST:
            raise InvalidValueError(f"there are more than {MOST:,} values; give fewer")
    return cells


def _leaves(value: object, place: str, depth: int) -> Iterator[tuple[str, Cell]]:
    if not depth:
        raise InvalidValueError(f"{place} is nested more than {DEEPEST} levels deep; give less")
    if place and isinstance(value, str):  # what most are, and quickly seen
        yield place, value
    elif place and isinstance(value, int | float):
        yield place, float(value) if abs(value) <= LARGEST else math.inf  # which readers refuse by its name
    elif isinstance(value, list | tuple):
        yield from _listed(value, place, depth - 1)
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, f"{place}.{name}" if place else str(name), depth - 1)
    elif value is not None:
        raise InvalidTypeError(f"{place or 'it'} is a {type(value).__name__}; give objects of texts and numbers")


def _listed(values: Sequence[object], place: str, depth: int) -> Iterator[tuple[str, Cell]]:
    for i, value in enumerate(values):
        if place and isinstance(value, str):
            yield f"{place}={value}", 1.0
        else:
            is_object = not place or isinstance(value, Mapping)
            yield from _leaves(value, place if is_object else f"{place}.{i}", depth)
