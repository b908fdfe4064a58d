"""Arm labels at the border: str or int outside, indices 0..K-1 inside."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from armlet.core.types import Arm


def check_label(label: object) -> Arm:
    """Return a label that may name an arm.

    Examples
    --------
    >>> check_label("north"), check_label(3)
    ('north', 3)
    """
    if isinstance(label, (str, int, np.integer)) and not isinstance(label, bool):
        return label if isinstance(label, str) else int(label)
    raise TypeError(f"an arm is named {label!r}, a {type(label).__name__}; use a str or an int")


def check_labels(labels: Iterable[object]) -> list[Arm]:
    """Return the labels of a new bandit: at least one, no two alike.

    Examples
    --------
    >>> check_labels(["north", "south"])
    ['north', 'south']
    """
    if isinstance(labels, str):
        raise TypeError(f"arms is the string {labels!r}; give a list of labels such as ['north', 'south']")
    checked = [check_label(label) for label in labels]
    if not checked:
        raise ValueError("arms is empty; give at least one label")
    twice = sorted({str(label) for label in checked if checked.count(label) > 1})
    if twice:
        raise ValueError(f"arms has {', '.join(twice)} more than once; labels must differ")
    return checked


def label_array(labels: list[Arm]) -> npt.NDArray[np.object_]:
    """Make an array of labels that stay what they are; numpy's own strings and integers would clip some."""
    return np.array(labels, dtype=np.object_)
