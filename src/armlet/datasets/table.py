"""A classification table as a bandit problem: its classes are the arms, and the right one pays 1.

Tables are read from text, where a number stays one and any other word becomes a flag, or through scikit-learn.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final

import numpy as np

from armlet.errors import ArmletError
from armlet.inputs.encoder import Encoder
from armlet.types import Float64, Int64


def encode(columns: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], Float64]:
    """Return the names of the features and their values, a row for each row of the columns.

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
        numbers = [float(word) for word in column]
    except ValueError:
        return None
    return np.array(numbers) if all(map(math.isfinite, numbers)) else None


MISSING = ("", "?", "<null>")


class DatasetError(ArmletError):
    """Real data that is not here, cannot be fetched, or is not what it should be."""


@dataclass(frozen=True, slots=True, eq=False)
class DatasetTable:
    """Rows of numbers, and the class of each.

    Examples
    --------
    >>> rows = ("5.1, red, a", "4.9, blue, b", "", "6.3, ?, b")
    >>> table = read_table("flowers", chr(10).join(rows))
    >>> table.labels, table.features, table.y.tolist()
    (('a', 'b'), ('c0', 'c1=blue', 'c1=red'), [0, 1])
    >>> table.n_arms, table.dim, table.dropped
    (2, 3, 1)
    """

    name: str
    X: Float64  # (n, d)
    y: Int64  # (n,): the index of the class
    labels: tuple[str, ...]  # the classes
    features: tuple[str, ...]
    dropped: int = 0  # rows with a missing value, which are left out

    @property
    def n_arms(self) -> int:
        """How many classes there are."""
        return len(self.labels)

    @property
    def dim(self) -> int:
        """How many numbers a context has."""
        return len(self.features)

    def __len__(self) -> int:
        return len(self.y)

    def rewards(self) -> Float64:
        """Return what every arm would have paid in every row: (n, K)."""
        return np.eye(self.n_arms)[self.y]

    def standardised(self) -> Float64:
        """Return the contexts with mean 0 and standard deviation 1 over the whole table, which no learner knows."""
        spread = self.X.std(axis=0)
        return np.asarray((self.X - self.X.mean(axis=0)) / np.where(spread > 0, spread, 1.0))


def read_table(name: str, text: str) -> DatasetTable:
    """Read comma-separated rows without a head, the class in the last column."""
    cells = [[cell.strip() for cell in line.split(",")] for line in text.splitlines() if line.strip()]
    if not cells:
        raise DatasetError(f"table {name!r} has no rows")
    if wrong := [place for place, row in enumerate(cells) if len(row) != len(cells[0])]:
        had, wanted = len(cells[wrong[0]]), len(cells[0])
        raise DatasetError(f"row {wrong[0] + 1} of table {name!r} has {had} columns where the first has {wanted}")
    whole = [row for row in cells if not any(cell in MISSING for cell in row)]
    *columns, classes = zip(*whole, strict=True)
    if not columns:
        raise DatasetError(f"table {name!r} has one column; a class needs features too")
    labels, y = np.unique(classes, return_inverse=True)
    features, X = encode(columns)
    return DatasetTable(name, X, y.astype(np.int64), tuple(labels.tolist()), features, dropped=len(cells) - len(whole))


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """Tables of a package that users have, or install; nothing is fetched."""

    name: str
    package: str
    tables: tuple[str, ...]
    about: str
    licence: str

    def is_here(self) -> bool:
        """Return whether the package is installed."""
        return find_spec(self.name) is not None


SKLEARN: Final = Installed(
    name="sklearn",
    package="scikit-learn",
    tables=("breast_cancer", "digits", "iris", "wine"),
    about="classification tables that scikit-learn carries: digits, iris, wine, breast cancer; most of them from UCI",
    licence="the package is under BSD-3-Clause; each table has the terms of its source",
)


def load_installed(source: Installed, name: str) -> DatasetTable:
    """Read a table of scikit-learn."""
    if name not in source.tables:
        raise DatasetError(f"{source.name} has no table {name!r}; it has {', '.join(source.tables)}")
    if not source.is_here():
        raise DatasetError(
            f"table {name!r} is in {source.package}, which is not installed: pip install {source.package}"
        )
    module = importlib.import_module(f"{source.name}.datasets")
    bunch = getattr(module, f"load_{name}")()
    return DatasetTable(
        f"{source.name}/{name}",
        np.ascontiguousarray(bunch.data, dtype=np.float64),
        np.asarray(bunch.target, dtype=np.int64),
        tuple(str(label) for label in bunch.target_names),
        tuple(str(each) for each in bunch.feature_names),
    )
