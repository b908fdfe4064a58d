"""A classification table as a bandit problem: its classes are the arms, and the right one pays 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armlet.datasets.encoding import encode
from armlet.errors import ArmletError
from armlet.types import Float64, Int64

MISSING = ("", "?", "<null>")


class DatasetError(ArmletError):
    """Real data that is not here, cannot be fetched, or is not what it should be."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
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
        """Give what every arm would have paid in every row: (n, K)."""
        return np.eye(self.n_arms)[self.y]

    def standardised(self) -> Float64:
        """Give the contexts with mean 0 and standard deviation 1 over the whole table, which no learner could know."""
        spread = self.X.std(axis=0)
        return np.asarray((self.X - self.X.mean(axis=0)) / np.where(spread > 0, spread, 1.0))


def read_table(name: str, text: str) -> Table:
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
        raise DatasetError(f"table {name!r} has one column; a class needs something to be told from")
    labels, y = np.unique(classes, return_inverse=True)
    features, X = encode(columns)
    return Table(name, X, y.astype(np.int64), tuple(labels.tolist()), features, dropped=len(cells) - len(whole))
