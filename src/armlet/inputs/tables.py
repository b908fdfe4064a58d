"""Tables of any kind, column by column: which there are, whether they hold text or dates, and what they hold.

A table is a mapping of columns, a list of mappings, or pandas, polars or Arrow; a column holds one value a row. A
refused value is named by its row and column. Cost O(N) a column.
"""

from __future__ import annotations

import datetime
import reprlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from armlet.errors import InvalidTypeError, InvalidValueError, load_package
from armlet.inputs.columns import as_float64, is_number, python_values, refused
from armlet.types import ArrowTable, Bool, Float64, Int64

Row: TypeAlias = Mapping[str, object]
"""One row at the border: a value for each column."""

Table: TypeAlias = Mapping[str, Any] | Sequence[Row] | ArrowTable
"""Many rows at the border: a mapping of columns, a list of rows, or pandas, polars or Arrow."""

CATEGORIES = ("category", "categorical", "enum", "dictionary")  # as pandas, polars and Arrow call them

DATES = (datetime.date, np.datetime64)  # a datetime is a date
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
MICROSECOND = datetime.timedelta(microseconds=1)
DAY = 86_400_000_000  # microseconds


class Texts(NamedTuple):
    """A column of text: each of its texts once, and which of them every row has."""

    texts: list[str]
    codes: Int64  # (N,): places in `texts`

    def counts(self) -> Counter[str]:
        """Return how often each text occurs."""
        times = np.bincount(self.codes, minlength=len(self.texts)).tolist()
        return Counter(dict(zip(self.texts, times, strict=True)))


class TableColumns:
    """A table by its columns.

    Examples
    --------
    >>> table = TableColumns([{"colour": "red", "price": 3}, {"colour": "blue", "price": 4}])
    >>> table.names, table.n_rows, table.is_text("colour"), table.numbers("price")
    (['colour', 'price'], 2, True, array([3., 4.]))
    """

    def __init__(self, table: object) -> None:
        self._columns = _by_name(table)
        self.names = list(self._columns)
        lengths = {name: _length(name, column) for name, column in self._columns.items()}
        self.n_rows = next(iter(lengths.values()), 0)
        for name, length in lengths.items():
            if length != self.n_rows:
                first = self.names[0]
                raise InvalidValueError(
                    f"column {name!r} has {length} values and {first!r} has {self.n_rows}; give as many"
                )

    def is_date(self, name: str) -> bool:
        """Whether a column holds dates, with or without a time."""
        column = self._columns[name]
        if not isinstance(column, list | tuple) and np.asarray(column).dtype.kind == "M":
            return True
        return isinstance(next((v for v in python_values(column) if not is_missing(v)), None), DATES)

    def is_text(self, name: str) -> bool:
        """Whether a column holds text or categories; what holds neither should be dates or numbers."""
        column = self._columns[name]
        word = str(getattr(column, "dtype", getattr(column, "type", "")))
        if word.lower().startswith(CATEGORIES):
            return True
        if not isinstance(column, list | tuple):
            column = np.asarray(column)
            if column.dtype.kind in "fiubmM":
                return False
        return any(isinstance(value, str) for value in python_values(column))

    def numbers(self, name: str) -> Float64:
        """Return a column of numbers as float64."""
        column = self._columns[name]
        values = np.asarray(column) if not isinstance(column, list | tuple) else _plain(column)
        numbers = as_float64(values)
        return numbers if numbers is not None else _one_by_one(python_values(column), name)

    def moments(self, name: str) -> Int64:
        """Return a column of dates as microseconds since 1970."""
        values = python_values(self._columns[name])
        moments = [_located(microseconds_of, value, f"row {i}: column {name!r}") for i, value in enumerate(values)]
        return np.array(moments, dtype=np.int64)

    def missing(self, name: str) -> Bool:
        """Return where a column has no value, (N,)."""
        return np.array([is_missing(value) for value in python_values(self._columns[name])], dtype=np.bool_)

    def without(self, name: str, gone: Bool) -> TableColumns:
        """Return one column without some of its rows."""
        held = zip(python_values(self._columns[name]), gone.tolist(), strict=True)
        return TableColumns({name: [value for value, is_gone in held if not is_gone]})

    def texts(self, name: str) -> Texts:
        """Return a column of text, of categories or of whole numbers that stand for some."""
        values, codes = _factors(self._columns[name])
        gone = np.flatnonzero(codes < 0)
        if gone.size:
            text = "has no value; fill it in, drop the row, or set missing='flag'"
            raise InvalidValueError(f"row {gone[0]}: column {name!r} {text}")
        try:
            texts = [text_of(value) for value in values]
        except (TypeError, ValueError):
            _first_wrong(values, codes, name)
            raise
        return _merged(texts, codes)


def text_of(value: object) -> str:
    """Return the text of a category: itself, or a whole number as it is written.

    Examples
    --------
    >>> text_of("red"), text_of(7)
    ('red', '7')
    >>> text_of(None)
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: there is no value; fill it in
    """
    if isinstance(value, str):
        return str(value)
    if is_missing(value):
        raise InvalidValueError("there is no value; fill it in")
    if isinstance(value, (int, np.integer, np.bool_)) and not isinstance(value, np.timedelta64):
        return str(value)
    raise InvalidTypeError(f"it is {reprlib.repr(value)} ({type(value).__name__}); give text, or a whole number")


def is_missing(value: object) -> bool:
    """Whether a cell has no value: None, NaN, or what pandas has in their place.

    Examples
    --------
    >>> [is_missing(value) for value in (None, float("nan"), np.datetime64("NaT"), 0.0, "")]
    [True, True, True, False, False]
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating, np.datetime64)) and bool(value != value)


def microseconds_of(value: object) -> int:
    """Return the microseconds from 1970 to a date; one without a time zone is taken for UTC.

    Examples
    --------
    >>> microseconds_of(datetime.date(1970, 1, 3)) // DAY, microseconds_of(datetime.datetime(1970, 1, 1, 0, 0, 1))
    (2, 1000000)
    """
    if is_missing(value):
        raise InvalidValueError("there is no value; fill it in, or set missing='flag'")
    if isinstance(value, np.datetime64):
        return int(value.astype("datetime64[us]").astype(np.int64))
    if isinstance(value, datetime.datetime):
        moment = value if value.tzinfo is not None else value.replace(tzinfo=datetime.UTC)
        return (moment - EPOCH) // MICROSECOND
    if isinstance(value, datetime.date):
        return DAY * (value.toordinal() - EPOCH.toordinal())
    raise InvalidTypeError(f"it is {reprlib.repr(value)} ({type(value).__name__}); give a date")


def _located(read: Callable[[object], int], value: object, where: str) -> int:
    try:
        return read(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{where}: {error}") from None


def _by_name(table: Any) -> dict[str, Any]:
    if isinstance(table, Mapping):
        return {_name(name): column for name, column in table.items()}
    if isinstance(table, list | tuple):
        return _turned(table)
    if not hasattr(table, "column_names") and not hasattr(table, "columns"):
        if not hasattr(table, "__arrow_c_stream__"):
            what = f"the table is {reprlib.repr(table)} ({type(table).__name__})"
            raise InvalidTypeError(f"{what}; give a mapping of columns, a list of rows, or pandas, polars or Arrow")
        table = load_package("pyarrow", "a table that others stream needs").table(table)  # somebody else's stream
    names = [_name(name) for name in getattr(table, "column_names", getattr(table, "columns", ()))]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InvalidValueError(f"the table has more than one column {twice[0]!r}; rename them")
    return {name: table[name] for name in names}


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise InvalidTypeError(f"a column is named {name!r} ({type(name).__name__}); name columns by strings")
    return str(name)


def _turned(rows: Sequence[Any]) -> dict[str, Any]:
    """Return the columns of a list of rows, which must all have the same."""
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            what = f"row {i} is {reprlib.repr(row)} ({type(row).__name__})"
            raise InvalidTypeError(f"{what}; give each row as a mapping from columns to values")
        if row.keys() != rows[0].keys():
            named = sorted(row.keys() ^ rows[0].keys(), key=str)
            raise InvalidValueError(f"row {i} and row 0 do not both have {named[0]!r}; give all rows the same columns")
    return {_name(name): [row[name] for row in rows] for name in (rows[0] if rows else ())}


def _length(name: str, column: Any) -> int:
    if isinstance(column, str | bytes | Mapping) or not hasattr(column, "__len__"):
        what = f"column {name!r} is {reprlib.repr(column)} ({type(column).__name__})"
        raise InvalidTypeError(f"{what}; give one value a row, or use encode for a single row")
    return len(column)


def _plain(values: Iterable[object]) -> Any:
    """Return an array of what is all numbers; of objects if not, since numpy would make text of a mixed list."""
    held = list(values)
    return np.asarray(held) if all(is_number(value) for value in held) else np.array(held, dtype=np.object_)


def _one_by_one(values: Sequence[object], name: str) -> Float64:
    out = np.empty(len(values))
    for i, value in enumerate(values):
        wrong = refused(value, f"row {i}: column {name!r}")
        if wrong is not None:
            raise wrong
        out[i] = value  # type: ignore[call-overload]
    return out


def _factors(column: Any) -> tuple[list[object], Int64]:
    """Return each value once, and which of them every row has; -1 where there is none."""
    if hasattr(column, "dictionary_encode"):  # pyarrow
        coded = column.dictionary_encode()
        coded = coded.unify_dictionaries().combine_chunks() if hasattr(coded, "chunks") else coded
        codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return coded.dictionary.to_pylist(), codes.astype(np.int64)
    if hasattr(column, "factorize"):  # pandas
        codes, values = column.factorize()
        return list(values), np.asarray(codes, dtype=np.int64)
    places: dict[object, int] = {None: -1}
    codes = [places.setdefault(value, len(places) - 1) for value in python_values(column)]
    return list(places)[1:], np.array(codes, dtype=np.int64)


def _first_wrong(values: Sequence[object], codes: Int64, name: str) -> None:
    """Raise what is wrong with a value, with the first row that has it."""
    for place, value in enumerate(values):
        try:
            text_of(value)
        except (TypeError, ValueError) as error:
            row = np.flatnonzero(codes == place)[:1].tolist()
            raise type(error)(f"row {row[0] if row else 0}: column {name!r}: {error}") from None


def _merged(texts: list[str], codes: Int64) -> Texts:
    """Return texts that differ: 7 and "7" are one."""
    places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    if len(places) == len(texts):
        return Texts(texts, codes)
    return Texts(list(places), np.array([places[text] for text in texts], dtype=np.int64)[codes])
