"""Columns of text as numbers: a number stays one, any other word becomes a flag."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from armlet.core.types import Float64


def encode(columns: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], Float64]:
    """Give the names of the features and their values, a row for each row of the columns.

    A column of numbers is one feature. Any other has a feature for each of its words, in the order of the alphabet: 1
    where the column has that word, else 0. Columns are named by their number.

    Examples
    --------
    >>> names, X = encode([["1.5", "2"], ["red", "blue"]])
    >>> names
    ('c0', 'c1=blue', 'c1=red')
    >>> X.tolist()
    [[1.5, 0.0, 1.0], [2.0, 1.0, 0.0]]
    """
    names: list[str] = []
    values: list[Float64] = []
    for index, column in enumerate(columns):
        numbers = _numbers(column)
        if numbers is not None:
            names.append(f"c{index}")
            values.append(numbers)
        else:
            words = sorted(set(column))
            names += [f"c{index}={word}" for word in words]
            values += [np.array([each == word for each in column], dtype=np.float64) for word in words]
    return tuple(names), np.column_stack(values)


def _numbers(column: Sequence[str]) -> Float64 | None:
    try:
        found = [float(word) for word in column]
    except ValueError:
        return None
    return np.array(found) if all(map(math.isfinite, found)) else None
