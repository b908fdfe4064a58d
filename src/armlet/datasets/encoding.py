"""Columns of text as numbers: a number stays one, any other word becomes a flag."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from armlet.inputs.encoder import Encoder
from armlet.types import Float64


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
    return encode_named({f"c{i}": column for i, column in enumerate(columns)})


def encode_named(columns: Mapping[str, Sequence[str]]) -> tuple[tuple[str, ...], Float64]:
    """Do the same with columns that have names.

    Examples
    --------
    >>> encode_named({"colour": ["red", "blue"]})[0]
    ('colour=blue', 'colour=red')
    """
    table = {name: given if (found := _numbers(given)) is None else found for name, given in columns.items()}
    encoder = Encoder(most=None, other="refuse").fit(table)
    return encoder.features, encoder.matrix(table)


def _numbers(column: Sequence[str]) -> Float64 | None:
    try:
        found = [float(word) for word in column]
    except ValueError:
        return None
    return np.array(found) if all(map(math.isfinite, found)) else None
