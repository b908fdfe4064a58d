"""The rows of one arm: each with how often it was met and the sum of what it paid.

Appending is O(d) on average, deleting O(N d); memory O(N d).
"""

from __future__ import annotations

from typing import Self

import numpy as np
import numpy.typing as npt

from armlet.errors import InvalidValueError
from armlet.types import Float64


class Past:
    """Rows that can be appended to, in memory that the kernel reads as it lies.

    Examples
    --------
    >>> past = Past.of([[1.0, 0.0], [1.0, 1.0]], rewards=[0.5, 2.0])
    >>> past.append(np.array([0.0, 1.0]), 3.0, 6.0)
    >>> len(past), past.counts, past.sums
    (3, array([1., 1., 3.]), array([0.5, 2. , 6. ]))
    """

    def __init__(self, dim: int) -> None:
        self._rows, self._counts, self._sums = np.zeros((0, dim)), np.zeros(0), np.zeros(0)
        self._size = 0

    @classmethod
    def of(cls, rows: npt.ArrayLike, rewards: npt.ArrayLike | None = None, counts: npt.ArrayLike | None = None) -> Self:
        """Take rows, (N, d), what each paid in all, (N,), and how often each was met; 0 and once if left out."""
        given = np.array(rows, dtype=np.float64)
        if given.ndim != 2 or not np.isfinite(given).all():
            raise InvalidValueError(f"rows has shape {given.shape}; give finite numbers, one row of d values each")
        past = cls(given.shape[1])
        past._size, past._rows = len(given), given
        past._counts = _column("counts", 1.0 if counts is None else counts, len(given))
        past._sums = _column("rewards", 0.0 if rewards is None else rewards, len(given))
        if not ((past._counts >= 1) & (past._counts == np.floor(past._counts))).all():
            raise InvalidValueError(f"counts are {past._counts}; give whole numbers of at least 1")
        return past

    def __len__(self) -> int:
        return self._size

    @property
    def dim(self) -> int:
        """The number of features of a context, d."""
        return self._rows.shape[1]

    @property
    def rows(self) -> Float64:
        """The rows themselves, not a copy: (N, d)."""
        return self._rows[: self._size]

    @property
    def counts(self) -> Float64:
        """How often each was met, (N,): whole numbers."""
        return self._counts[: self._size]

    @property
    def sums(self) -> Float64:
        """What each paid in all, (N,)."""
        return self._sums[: self._size]

    def append(self, row: Float64, count: float, paid: float) -> None:
        """Add a row."""
        if self._size == len(self._rows):
            room = np.zeros((max(4, self._size), self.dim))
            self._rows = np.concatenate([self._rows, room])
            self._counts, self._sums = (np.append(a, np.zeros(len(room))) for a in (self._counts, self._sums))
        self.replace(self._size, row, count, paid)
        self._size += 1

    def replace(self, place: int, row: Float64, count: float, paid: float) -> None:
        """Put a row where another was."""
        self._rows[place], self._counts[place], self._sums[place] = row, count, paid

    def delete(self, place: int) -> None:
        """Drop a row; those after it move up."""
        for array in (self._rows, self._counts, self._sums):
            array[place : self._size - 1] = array[place + 1 : self._size]
        self._size -= 1

    def find(self, row: Float64, paid: float) -> int | None:
        """Give the place of the last such row, if there is one."""
        same = np.flatnonzero((self.rows == row).all(axis=1) & (self.sums == paid * self.counts))
        return int(same[-1]) if same.size else None


def _column(name: str, values: npt.ArrayLike, n: int) -> Float64:
    given = np.asarray(values, dtype=np.float64)
    if given.shape not in ((), (n,)) or not np.isfinite(given).all():
        raise InvalidValueError(f"{name} has shape {given.shape}; give {n} finite numbers, one for each row")
    return np.broadcast_to(given, (n,)).copy()
