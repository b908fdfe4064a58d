"""Tables of any kind, column by column: which there are, whether they hold text or dates, and what they hold.

A table is a mapping of columns, a list of mappings, or pandas, polars or Arrow; a column holds one value a row. A
refused value is named by its row and column. Cost O(N) a column, in the library that holds it where it can do that.
"""

from __future__ import annotations

import datetime
import reprlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np

from armlet.errors import InvalidTypeError, InvalidValueError, TableError, load_package
from armlet.inputs.columns import as_float64, check_label, check_utf8, is_number, python_values, refused
from armlet.types import Arm, ArrowTable, Bool, Float64, Int64

Row: TypeAlias = Mapping[str, object]
"""One row at the border: a value for each column."""

Kind: TypeAlias = Literal["number", "text", "date"]
"""What a column holds; categories are text."""

# how numpy, pandas, polars and Arrow begin the names of their types, in small letters
TYPES: dict[Kind, tuple[str, ...]] = {
    "text": ("category", "categorical", "enum", "dictionary", "str", "large_string", "utf8", "<u"),
    "number": ("int", "uint", "float", "double", "halffloat", "bool"),
    "date": ("date", "timestamp"),
}

Value = TypeVar("Value")

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
    >>> table.names, table.n_rows, table.kind("colour"), table.numbers("price")
    (['colour', 'price'], 2, 'text', array([3., 4.]))
    """

    def __init__(self, table: object, *, file: str = "", first: int = 0) -> None:
        self._columns = _by_name(table)
        self.file, self._first = file, first  # the row of the file that it begins with
        self._rows: Int64 | None = None  # which rows of a table these are, if some were left out
        self.names = list(self._columns)
        lengths = {name: _length(name, column) for name, column in self._columns.items()}
        self.n_rows = next(iter(lengths.values()), 0)
        for name, length in lengths.items():
            if length != self.n_rows:
                text = f"column {name!r} has {length} values and {self.names[0]!r} has {self.n_rows}; give as many"
                raise InvalidValueError(text)

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def select(self, names: Iterable[str]) -> TableColumns:
        """Return some of the columns."""
        return self._part({name: self._columns[name] for name in names}, self._rows)

    def _part(self, columns: dict[str, Any], rows: Int64 | None) -> TableColumns:
        part = TableColumns(columns)
        part.file, part._first, part._rows = self.file, self._first, rows
        part.n_rows = self.n_rows if rows is None else len(rows)
        return part

    def kind(self, name: str) -> Kind:
        """Return what a column holds: by its type, or by its values where the type leaves that open.

        Examples
        --------
        >>> table = TableColumns({"colour": ["red"], "seen": [datetime.date(2026, 3, 1)], "price": [None]})
        >>> [table.kind(name) for name in table.names]
        ['text', 'date', 'number']
        """
        column = self._columns[name]
        word = str(getattr(column, "dtype", getattr(column, "type", ""))).lower()
        for kind, begins in TYPES.items():
            if word.startswith(begins):
                return kind
        values = python_values(column)
        if isinstance(next((value for value in values if not is_missing(value)), None), DATES):
            return "date"
        return "text" if any(isinstance(value, str) for value in values) else "number"

    def numbers(self, name: str) -> Float64:
        """Return a column of numbers as float64; refuse one with gaps."""
        values = self._array(name)
        numbers = as_float64(values)
        return numbers if numbers is not None else self._one_by_one(python_values(self._columns[name]), name)

    def measured(self, name: str) -> Float64:
        """Return a column of numbers as float64, NaN where it has no value.

        Examples
        --------
        >>> TableColumns({"click": [1, None, True]}).measured("click")
        array([ 1., nan,  1.])
        """
        gone = self.missing(name)
        if not gone.any():
            return self.numbers(name)
        numbers = np.full(self.n_rows, np.nan)
        numbers[~gone] = self.without(name, gone).numbers(name)
        return numbers

    def moments(self, name: str) -> Int64:
        """Return a column of dates as microseconds since 1970."""
        column = self._columns[name]
        if hasattr(column, "dt") and hasattr(column.dt, "tz_convert"):  # pandas, whose array would hold objects
            column = column.dt.tz_convert(None) if column.dt.tz is not None else column
        array = column if isinstance(column, list | tuple) else np.asarray(column)
        if isinstance(array, np.ndarray) and array.dtype.kind == "M" and not np.isnat(array).any():
            return array.astype("datetime64[us]").astype(np.int64)
        listed = enumerate(python_values(column))
        return np.array([_located(microseconds_of, value, self.where(i, name)) for i, value in listed], dtype=np.int64)

    def missing(self, name: str) -> Bool:
        """Return where a column has no value, (N,)."""
        column = self._columns[name]
        if hasattr(column, "isna"):  # pandas
            return np.asarray(column.isna(), dtype=np.bool_)
        if isinstance(column, np.ndarray) and column.dtype.kind in "biuU":
            return np.zeros(self.n_rows, dtype=np.bool_)
        if isinstance(column, np.ndarray) and column.dtype.kind in "fM":
            return np.asarray(column != column)
        if hasattr(column, "is_null"):  # Arrow and polars
            gone = np.array(column.is_null(), dtype=np.bool_)
            if self.kind(name) == "number":
                values = np.asarray(column)
                gone |= (values != values) if values.dtype.kind == "f" else False
            return gone
        return np.array([is_missing(value) for value in python_values(column)], dtype=np.bool_)

    def without(self, name: str, gone: Bool) -> TableColumns:
        """Return one column without some of its rows."""
        column, stay = self._columns[name], ~gone
        if isinstance(column, np.ndarray) or hasattr(column, "iloc"):
            some = column[stay]
        elif hasattr(column, "filter"):  # Arrow and polars
            some = column.filter(stay)
        else:
            some = [value for value, is_there in zip(column, stay.tolist(), strict=True) if is_there]
        return self._part({name: some}, np.flatnonzero(stay) if self._rows is None else self._rows[stay])

    def labels(self, name: str, read: Callable[[object], object] = lambda value: value) -> tuple[list[Arm], Int64]:
        """Return the labels of arms once each, and which of them every row has; `read` makes a label of a cell.

        Examples
        --------
        >>> TableColumns({"ad": ["b", "a", "b"]}).labels("ad")
        (['b', 'a'], array([0, 1, 0]))
        """
        return self._each_once(name, lambda value: check_label(read(value)), "fill it in, or leave the row out")

    def _each_once(self, name: str, read: Callable[[object], Value], fix: str) -> tuple[list[Value], Int64]:
        """Return what each value of a column means, once, and which of them every row has."""
        values, codes = _factors(self._columns[name])
        if (gone := np.flatnonzero(codes < 0)).size:
            raise InvalidValueError(f"{self.where(gone[0], name)} has no value; {fix}")
        means = []
        for place, value in enumerate(values):
            try:
                means.append(read(value))
            except (TypeError, ValueError) as error:
                raise type(error)(f"{self.where(first_row(codes, place), name)}: {error}") from None
        return means, codes

    def lists(self, name: str) -> list[object]:
        """Return the Python values of a column."""
        return list(python_values(self._columns[name]))

    def vectors(self, name: str) -> Float64 | None:
        """Return a column whose every value is a whole context, as lists or float64 as bytes; None if it holds none."""
        column = self._columns[name]
        if isinstance(column, np.ndarray):
            return as_float64(column) if column.ndim == 2 else None
        if not isinstance(column, list | tuple) and hasattr(column, "combine_chunks"):
            column = column.combine_chunks()
        width = vector_width(getattr(column, "type", ""))
        if not width:
            return _listed_vectors(column)
        if column.null_count:
            gone = int(np.flatnonzero(np.asarray(column.is_null()))[0])
            raise InvalidValueError(f"{self.where(gone, name)} has no value; leave out rows without a context")
        if str(column.type).startswith("fixed_size_list"):
            return TableColumns({name: column.flatten()}).numbers(name).reshape(self.n_rows, width)
        return _from_bytes(column.buffers()[1], self.n_rows, width, column.offset * width * 8)

    def _array(self, name: str) -> Any:
        column = self._columns[name]
        if isinstance(column, list | tuple):
            return _plain(column)
        if hasattr(column, "to_numpy") and hasattr(getattr(column, "dtype", None), "na_value"):  # pandas' nullable ones
            is_whole = self.kind(name) == "number" and not column.isna().any()
            return column.to_numpy(dtype=column.dtype.type) if is_whole else np.asarray(column)
        return np.asarray(column)

    def where(self, row: int, name: str) -> str:
        """Return what errors call a cell."""
        number = self._first + int(row if self._rows is None else self._rows[row])
        return f"{self.file}, row {number}: column {name!r}" if self.file else f"row {number}: column {name!r}"

    def _one_by_one(self, values: Sequence[object], name: str) -> Float64:
        out = np.empty(len(values))
        for i, value in enumerate(values):
            wrong = refused(value, self.where(i, name))
            if wrong is not None:
                raise wrong
            out[i] = value  # type: ignore[call-overload]
        return out

    def texts(self, name: str) -> Texts:
        """Return a column of text, of categories or of whole numbers that stand for some."""
        return _merged(*self._each_once(name, text_of, "fill it in, drop the row, or set missing='flag'"))

    def texts_or_none(self, name: str) -> Texts:
        """Return a column of text whose codes are -1 where it has no value."""
        gone = self.missing(name)
        if not gone.any():
            return self.texts(name)
        some = self.without(name, gone).texts(name)
        codes = np.full(self.n_rows, -1, dtype=np.int64)
        codes[~gone] = some.codes
        return Texts(some.texts, codes)


TableLike: TypeAlias = Mapping[str, Any] | Sequence[Row] | ArrowTable | TableColumns
"""Many rows at the border: a mapping of columns, a list of rows, or pandas, polars or Arrow."""


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
    if isinstance(table, TableColumns):
        return table._columns
    if isinstance(table, Mapping):
        return {_name(name): column for name, column in table.items()}
    if isinstance(table, list | tuple):
        return _turned(table)
    if not hasattr(table, "column_names") and not hasattr(table, "columns"):
        if not hasattr(table, "__arrow_c_stream__"):
            what = f"the table is {reprlib.repr(table)} ({type(table).__name__})"
            raise InvalidTypeError(f"{what}; give a mapping of columns, a list of rows, or pandas, polars or Arrow")
        table = _streamed(table)
    names = [_name(name) for name in getattr(table, "column_names", getattr(table, "columns", ()))]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InvalidValueError(f"the table has more than one column {twice[0]!r}; rename them")
    return {name: table[name] for name in names}


def _streamed(table: ArrowTable) -> Any:
    """Return the table of a library that only streams it."""
    pa = load_package("pyarrow", "a table that others stream needs")
    try:
        return pa.table(table)
    except (pa.ArrowException, RuntimeError, TypeError, ValueError) as error:
        what = f"the table is a {type(table).__name__}, whose Arrow stream cannot be read"
        reason = str(error).partition("\n")[0]
        raise TableError(f"{what}: {reason}; give another one") from error


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise InvalidTypeError(f"a column is named {name!r} ({type(name).__name__}); name columns by strings")
    return check_utf8("the name of a column", str(name))


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


def first_row(codes: Int64, place: int) -> int:
    """Return the first row that has one of the values; 0 where none has."""
    rows = np.flatnonzero(codes == place)[:1].tolist()
    return rows[0] if rows else 0


def _merged(texts: list[str], codes: Int64) -> Texts:
    """Return texts that differ: 7 and "7" are one."""
    places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    if len(places) == len(texts):
        return Texts(texts, codes)
    return Texts(list(places), np.array([places[text] for text in texts], dtype=np.int64)[codes])


# ---- columns that hold whole contexts


def vector_width(kind: object) -> int:
    """Return how many float64 a value of an Arrow column holds, if it holds a whole context; 0 if not.

    Examples
    --------
    >>> vector_width("fixed_size_binary[16]"), vector_width("fixed_size_list<item: double>[3]"), vector_width("int64")
    (2, 3, 0)
    """
    word, _, size = str(kind).rstrip("]").rpartition("[")
    if word == "fixed_size_binary":
        return int(size) // 8 if int(size) % 8 == 0 else 0
    return int(size) if word.startswith("fixed_size_list") else 0


def _from_bytes(data: Any, n: int, width: int, start: int = 0) -> Float64:
    values = np.frombuffer(data, dtype="<f8", count=n * width, offset=start)
    return values.reshape(n, width).astype(np.float64, copy=False)


def _listed_vectors(column: Any) -> Float64 | None:
    values = python_values(column)
    first = next(iter(values), None)
    if isinstance(first, bytes):
        if len({len(value) for value in values}) > 1 or len(first) % 8:
            raise InvalidValueError("a column has rows of bytes that are not equally many float64; give contexts alike")
        return _from_bytes(b"".join(values), len(values), len(first) // 8)
    if not isinstance(first, list | tuple | np.ndarray):
        return None
    return as_float64(np.asarray([list(value) for value in values]))
