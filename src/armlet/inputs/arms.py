"""Arm labels at the border: str or int outside, indices 0..K-1 inside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from armlet.errors import InvalidTypeError, InvalidValueError
from armlet.types import Arm

WIDEST = 256  # characters of a label in an array of strings, four bytes each in every entry


def check_label(label: object) -> Arm:
    """Return a label that may name an arm.

    Examples
    --------
    >>> check_label("north"), check_label(3)
    ('north', 3)
    """
    if isinstance(label, (str, int, np.integer)) and not isinstance(label, (bool, np.timedelta64)):
        return label if isinstance(label, str) else int(label)
    raise InvalidTypeError(f"an arm is named {label!r}, a {type(label).__name__}; use a str or an int")


def listed(argument: str, given: Iterable[object]) -> list[object]:
    """Return what a list of labels or names holds; a string is a label, not a list of them.

    Examples
    --------
    >>> listed("arms", 5)
    Traceback (most recent call last):
    armlet.errors.InvalidTypeError: arms is 5; give a list such as ['north', 'south']
    """
    if isinstance(given, str):
        raise InvalidTypeError(f"{argument} is the string {given!r}; give a list of labels such as ['north', 'south']")
    if not isinstance(given, Iterable):
        raise InvalidTypeError(f"{argument} is {given!r}; give a list such as ['north', 'south']")
    return list(given)


def check_labels(labels: Iterable[object]) -> list[Arm]:
    """Return the labels of a new bandit: at least one, no two alike.

    Examples
    --------
    >>> check_labels(["north", "south"])
    ['north', 'south']
    """
    checked = [check_label(label) for label in listed("arms", labels)]
    if not checked:
        raise InvalidValueError("arms is empty; give at least one label")
    twice = sorted({str(label) for label, count in Counter(checked).items() if count > 1})
    if twice:
        raise InvalidValueError(f"arms has {', '.join(twice)} more than once; labels must differ")
    return checked


def label_array(labels: list[Arm]) -> npt.NDArray[Any]:
    """Make an array of labels that stay what they are: of numpy's strings or int64 where these can hold them all.

    Labels of both kinds, integers beyond int64, strings that numpy would cut (it drops trailing NULs) and those longer
    than `WIDEST`, which every entry would have to make room for, stay Python's own, in an array of objects.

    Examples
    --------
    >>> label_array(["a", "bc"]), label_array([7, -1])
    (array(['a', 'bc'], dtype='<U2'), array([ 7, -1]))
    >>> label_array(["a", 1])
    array(['a', 1], dtype=object)
    """
    kinds = {type(label) for label in labels}
    if kinds == {int} and all(-(2**63) <= label < 2**63 for label in cast("list[int]", labels)):
        return np.array(labels, dtype=np.int64)
    if kinds == {str} and not any(len(label) > WIDEST or label.endswith("\0") for label in cast("list[str]", labels)):
        return np.array(labels, dtype=np.str_)
    return np.array(labels, dtype=np.object_)
