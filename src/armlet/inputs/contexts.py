"""Contexts at the border: rows of any kind become float64 rows that inner code trusts.

A context is d real numbers, by position or by feature name; a refused one is named by its row and its index or feature.
Cost O(d) a row, O(N d) a matrix; float64 in C order passes through uncopied.
"""

from __future__ import annotations

import operator
import reprlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from armlet.errors import InvalidTypeError, InvalidValueError
from armlet.inputs.columns import (
    LARGEST,
    as_array,
    as_float64,
    check_names,
    check_utf8,
    first_refused,
    has_items,
    is_number,
)
from armlet.inputs.ranges import FeatureRanges
from armlet.inputs.tables import TableColumns
from armlet.types import ArrowTable, Context, Contexts, Float64

__all__ = ["LARGEST", "ContextReader", "feature_names"]

PLAIN_ROWS = (list, tuple, np.ndarray)
FLOAT64 = np.dtype(np.float64)
SQUARE = LARGEST**2
SHORT = 1000  # values; a product of more wakes BLAS's threads
MOST_VALUES = 2**31  # a row of 16 GiB; squares of it can still be counted


@dataclass(frozen=True, slots=True)
class ContextReader:
    """Reads contexts of `dim` values, by name once `features` are known.

    Examples
    --------
    >>> reader = ContextReader(2, ("age", "height"))
    >>> reader.row({"height": 1.7, "age": 31})
    array([31. ,  1.7])
    >>> reader.row([31, float("nan")])
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: context['height'] is nan; give a finite number of at most 1e+40 in size
    """

    dim: int
    features: tuple[str, ...] | None = None
    what: str = "context"  # what errors call a row
    ranges: FeatureRanges | None = None  # of features that have a range

    @property
    def plain(self) -> ContextReader:
        """What reads the numbers: itself."""
        return self

    def row(self, x: Context) -> Float64:
        """Read one context: a row or a list of `dim` real numbers, or a mapping from every feature name to its number.

        Returns (d,) float64 in C order; `x` itself if it is that already.

        Examples
        --------
        >>> ContextReader(3).row([1, 2, 3, 4])
        Traceback (most recent call last):
        armlet.errors.InvalidValueError: dim is 3 but the context has 4 values; got shape (4,)
        """
        values = self._row(x)
        return values if self.ranges is None else self.ranges.within(values, self.what)

    def _row(self, x: Context) -> Float64:
        if is_table(x):
            row: Float64 = self._matrix(one_row(x, self.what))[0]
            return row
        ordered = self._in_order(x) if self._is_named(x) else x
        if type(ordered) is list and (plain := self._floats(ordered)) is not None:
            return plain
        values = as_array(ordered, self.what, self.features)
        if values.shape != (self.dim,):
            raise self._wrong_row(ordered, values.shape)
        checked = as_float64(values)
        if checked is None:
            raise first_refused(ordered, self.what, self.features)
        return checked

    def matrix(self, X: Contexts) -> Float64:
        """Read many contexts, one a row: a matrix with `dim` columns, or a list of what `row` reads.

        Once the features are named, also a table (pandas, polars, Arrow) with exactly these columns in any order.
        Returns (N, d) float64 in C order; `X` itself if it is that already.

        Examples
        --------
        >>> ContextReader(2).matrix([[1, 2], [3, "4"]])
        Traceback (most recent call last):
        armlet.errors.InvalidTypeError: row 1: context[1] is '4' (str); give a real number
        """
        values = self._matrix(X)
        return values if self.ranges is None else self.ranges.within(values, self.what)

    def _matrix(self, X: Contexts) -> Float64:
        if isinstance(X, list | tuple):
            stacked = self._stack(X)
            return self._one_by_one(X) if stacked is None else stacked
        values = self._table(cast("ArrowTable", X)) if is_table(X) else as_array(X, f"{self.what}s")
        if values.shape == (0,):
            values = values.reshape(0, self.dim)
        if values.ndim != 2 or values.shape[1] != self.dim:
            raise self._wrong_matrix(X, values.shape)
        checked = as_float64(values)
        return self._one_by_one(values) if checked is None else checked

    def _floats(self, row: list[float]) -> Float64 | None:
        """Read a list of floats, as JSON brings them, in a third of the time; None if it needs a closer look."""
        try:
            values = np.array(row)
        except (RuntimeError, TypeError, ValueError):
            return None
        is_fit = values.dtype is FLOAT64 and values.shape == (self.dim,) and self.dim <= SHORT
        return values if is_fit and np.vdot(values, values) <= SQUARE else None  # NaN fails that, without a warning

    def _is_named(self, x: object) -> bool:
        """Whether x goes by feature name: a mapping, or a pandas or database row if names are known."""
        if type(x) is dict:
            return True
        if isinstance(x, PLAIN_ROWS) or hasattr(x, "toarray"):  # a sparse matrix may be a dict of its entries
            return False
        named_row = self.features is not None and hasattr(x, "keys") and getattr(x, "ndim", 1) == 1
        return named_row or isinstance(x, Mapping)

    def _in_order(self, x: Any) -> list[float]:
        if self.features is None:
            raise InvalidTypeError(
                f"{self.what} is a {type(x).__name__} but the bandit has no feature names; "
                f"pass features=[...] to Bandit, or give a list of {self.dim} values"
            )
        if type(x) is dict and len(x) == len(self.features):
            try:
                return [x[name] for name in self.features]
            except KeyError:
                pass  # and say which, below
        named = x if isinstance(x, Mapping) else dict(x)
        if named.keys() != set(self.features):
            if isinstance(x, Mapping) or not named.keys().isdisjoint(self.features):
                check_names(list(named), self.features, self.what)
            raise InvalidValueError(
                f"{self.what} is a {type(x).__name__} with the labels {reprlib.repr(list(named))}, none of them a "
                f"feature; label its values {reprlib.repr(list(self.features))}, or give them in this order with "
                ".to_numpy()"
            )
        return [named[name] for name in self.features]

    def _stack(self, X: Sequence[Any]) -> Float64 | None:
        """All rows at once, or None if one of them needs a closer look."""
        try:
            values = np.asarray([x if type(x) in PLAIN_ROWS else self._in_order(x) for x in X])
        except (TypeError, ValueError):
            return None
        return as_float64(values) if values.shape == (len(X), self.dim) else None

    def _one_by_one(self, X: Sequence[Any] | npt.NDArray[Any]) -> Float64:
        if len(X) > 0 and is_number(X[0]):
            raise self._wrong_matrix(X, (len(X),))
        rows = np.empty((len(X), self.dim))
        for i, x in enumerate(X):
            try:
                rows[i] = self._row(x)
            except TypeError as error:
                raise InvalidTypeError(f"row {i}: {error}") from None
            except ValueError as error:
                raise InvalidValueError(f"row {i}: {error}") from None
        return rows

    def _table(self, table: ArrowTable) -> Float64:
        if self.features is None:
            raise InvalidValueError(
                f"{self.what}s are a {type(table).__name__} but the bandit has no feature names to match its "
                "columns; pass features=[...] to Bandit, or give a matrix such as table.to_numpy()"
            )
        columns = TableColumns(table)
        check_names(columns.names, self.features, "the table")
        for name in self.features:
            if (kind := columns.kind(name)) != "number":
                fix = "turn it into numbers, or give the bandit an encoder"
                raise InvalidTypeError(f"column {name!r} holds {'text' if kind == 'text' else 'dates'}; {fix}")
            if (gone := np.flatnonzero(columns.missing(name))).size:
                where = f"row {gone[0]}: {self.what}[{name!r}]"
                raise InvalidValueError(f"{where} is missing (null or NaN); fill it in, or drop the row")
        return np.column_stack([columns.numbers(name) for name in self.features])

    def _wrong_row(self, row: object, shape: tuple[int, ...]) -> Exception:
        if len(shape) == 0:
            what = f"{self.what} is {reprlib.repr(row)} ({type(row).__name__})"
            return InvalidTypeError(f"{what}; give a row of {self.dim} real numbers")
        if len(shape) == 1:
            return InvalidValueError(f"dim is {self.dim} but the {self.what} has {shape[0]} values; got shape {shape}")
        if len(shape) == 2:
            return InvalidValueError(f"{self.what} has shape {shape}; use decide_many for a table, or x[0] for one row")
        return InvalidValueError(f"{self.what} has shape {shape}; give a row of {self.dim} values")

    def _wrong_matrix(self, X: object, shape: tuple[int, ...]) -> Exception:
        if len(shape) == 0:
            what = f"{self.what}s are {reprlib.repr(X)} ({type(X).__name__})"
            return InvalidTypeError(f"{what}; give a matrix, a list of rows or mappings, or a table")
        if len(shape) == 1:
            fix = f"for one {self.what} give [x], or X.reshape(1, -1)"
            return InvalidValueError(f"{self.what}s have shape {shape}; {fix}")
        if len(shape) == 2:
            what = f"dim is {self.dim} but the {self.what}s have {shape[1]} columns"
            return InvalidValueError(f"{what}; got shape {shape}")
        return InvalidValueError(f"{self.what}s have shape {shape}; give a matrix of shape (N, {self.dim})")


def is_table(value: object) -> bool:
    """Return whether it is a table of pandas, polars or Arrow; a Series is not one, although it speaks the protocol."""
    # an isinstance of the protocol takes ten microseconds
    return hasattr(value, "__arrow_c_stream__") and len(getattr(value, "shape", (0, 0))) == 2


def one_row(table: Any, what: str) -> Any:
    """Return a table of one row, which is a context; refuse any other."""
    if not hasattr(table, "num_rows") and not hasattr(table, "__len__"):  # a stream of rows
        raise InvalidTypeError(f"{what} is a {type(table).__name__} of unknown length; give a table of one row")
    rows = table.num_rows if hasattr(table, "num_rows") else len(table)
    if rows != 1:
        raise InvalidValueError(f"{what} is a table of {rows:,} rows; use decide_many for many, or give one of them")
    return table


def feature_names(
    features: Iterable[str] | None, dim: int | None, prefix: str = ""
) -> tuple[tuple[str, ...] | None, int]:
    """Check the names of the features and how many there are; return both. None for `dim` counts the names.

    Errors call them `features` and `dim`, with a prefix.

    Examples
    --------
    >>> feature_names(["age", "height"], None), feature_names(None, 3)
    ((('age', 'height'), 2), (None, 3))
    """
    if features is None:
        return None, _dimension(dim, prefix)
    if isinstance(features, str | bytes | set | frozenset) or not has_items(features):
        raise InvalidTypeError(f"{prefix}features is {features!r}; give a list of names, in the order of the values")
    names = tuple(features)
    for i, name in enumerate(names):
        if not isinstance(name, str):
            raise InvalidTypeError(f"{prefix}features[{i}] is {name!r} ({type(name).__name__}); give a string")
        check_utf8(f"{prefix}features[{i}]", name)
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InvalidValueError(f"{prefix}features has {twice[0]!r} more than once; give each feature its own name")
    if _dimension(len(names) if dim is None else dim, prefix) != len(names):
        raise InvalidValueError(
            f"{prefix}dim is {dim} but {prefix}features has {len(names)} names; leave {prefix}dim out, or name them all"
        )
    return tuple(map(str, names)), len(names)


def _dimension(dim: int | None, prefix: str) -> int:
    if dim is None:
        raise InvalidValueError("dim is None; give dim, the number of values in a context, or features, their names")
    if isinstance(dim, bool | np.bool_) or not hasattr(dim, "__index__") or getattr(dim, "ndim", 0) > 0:
        raise InvalidTypeError(f"{prefix}dim is {dim!r} ({type(dim).__name__}); give a whole number")
    try:
        number = operator.index(dim)
    except TypeError as error:  # an array of floats has the method too
        raise InvalidTypeError(f"{prefix}dim is {dim!r} ({type(dim).__name__}); give a whole number") from error
    if not 1 <= number <= MOST_VALUES:
        whose = "an action" if prefix else "a context"
        raise InvalidValueError(f"{prefix}dim is {number}; {whose} has at least one value, and at most 2^31")
    return number
