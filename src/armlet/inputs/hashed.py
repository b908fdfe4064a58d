"""Features by hashed names: rows of any names and any number of them become a fixed number of columns.

What Vowpal Wabbit does with text, at the size that one model of a few hundred terms holds. Nothing is fitted, so a name
that was never seen has its place too; names that share a place share its weight. O(entries of a row).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np

from armlet.errors import CheckedSettings, InvalidTypeError, InvalidValueError
from armlet.inputs.codes import bucket_of
from armlet.inputs.columns import is_number, reward
from armlet.inputs.settings import settle, whole
from armlet.inputs.tables import is_missing, text_of
from armlet.types import Float64

MOST: Final = 511  # with a constant, the terms of one model


@dataclass(frozen=True, slots=True)
class HashedFeatures(CheckedSettings):
    """An encoder of mappings from any names to numbers, texts, lists of texts or further mappings.

    A number is added to the column that the hash of its name says; a text counts 1 in that of `name=text`, and so does
    each text of a list. Names of mappings within mappings are joined by points. A value that is missing counts nothing.

    Parameters
    ----------
    n
        How many columns there are.

    Examples
    --------
    >>> encoder = HashedFeatures(8)
    >>> encoder.encode({"price": 2.5, "tags": ["hot", "sweet"], "origin": {"country": "Japan"}}).sum()
    np.float64(5.5)
    >>> encoder.features[:2], encoder.dim
    (('#0', '#1'), 8)
    """

    n: int = 64

    def __post_init__(self) -> None:
        fix = "the columns that names are hashed into; for many thousands use Vowpal Wabbit"
        if isinstance(self.n, int) and self.n > MOST:
            raise InvalidValueError(f"n is {self.n}; give at most {MOST}, {fix}")
        settle(self, n=whole(1, MOST))

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(f"#{place}" for place in range(self.n))

    @property
    def dim(self) -> int:
        """How many numbers a row becomes."""
        return self.n

    def encode(self, row: Mapping[str, object]) -> Float64:
        """Return the numbers of one row, (n,)."""
        if not isinstance(row, Mapping):
            raise InvalidTypeError(f"a row is a {type(row).__name__}; give a mapping from names to values")
        out = np.zeros(self.n)
        for name, value in _entries(row):
            out[_place(name, self.n)] += value
        return out

    def matrix(self, rows: Iterable[Mapping[str, object]]) -> Float64:
        """Return the numbers of every row, (N, n)."""
        if isinstance(rows, Mapping) or not isinstance(rows, Iterable):
            raise InvalidTypeError(f"rows is a {type(rows).__name__}; give a list of mappings")
        numbers = []
        for place, row in enumerate(rows):
            try:
                numbers.append(self.encode(row))
            except (TypeError, ValueError) as error:
                raise type(error)(f"row {place}: {error}") from None
        return np.array(numbers).reshape(len(numbers), self.n)

    def copy(self) -> HashedFeatures:
        """Return itself, since it never changes."""
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return its settings in plain JSON types."""
        return {"hashed": self.n}


@lru_cache(maxsize=2**16)
def _place(name: str, n: int) -> int:
    return bucket_of(name, n)


def _entries(row: Mapping[str, object], before: str = "") -> Iterator[tuple[str, float]]:
    """Yield every name and number of a row, texts as 1."""
    for key, value in row.items():
        name = f"{before}{key}"
        if isinstance(value, Mapping):
            yield from _entries(value, f"{name}.")
        elif isinstance(value, list | tuple):
            for each in value:
                yield from (
                    _entries(each, f"{name}.") if isinstance(each, Mapping) else [(f"{name}={text_of(each)}", 1.0)]
                )
        elif isinstance(value, str):
            yield f"{name}={value}", 1.0
        elif is_number(value):
            if not is_missing(value):
                yield name, reward(value, f"features[{name!r}]")
        elif not is_missing(value):
            raise InvalidTypeError(f"features[{name!r}] is {value!r} ({type(value).__name__}); give a number or text")
