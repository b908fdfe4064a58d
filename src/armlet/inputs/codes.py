"""How one column becomes numbers: as it is, as a flag for each text or bucket of a hash, as parts of a date, or as a 1.

A code is frozen: what it makes of a value depends on nothing else. One value O(1), a column O(N).
"""

from __future__ import annotations

import hashlib
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np

from armlet.errors import InvalidValueError
from armlet.inputs.columns import LARGEST, refused
from armlet.inputs.tables import DAY, Row, TableColumns, first_row, is_missing, microseconds_of, text_of
from armlet.types import Float64, Int64

CONSTANT = "1"
OTHER = "other"

MISSING = "missing"
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
HOUR = DAY // 24

Unknown: TypeAlias = Literal["flag", "zeros", "refuse"]
"""What a text that was not there when the encoder was fitted becomes: a flag, no flag at all, or an error."""


class Code(Protocol):
    """What one column becomes."""

    @property
    def column(self) -> str:
        """The column that it reads."""

    @property
    def names(self) -> tuple[str, ...]:
        """What its numbers are called."""

    def put(self, row: Row, out: Float64) -> None:
        """Write the numbers of one row, (width,); `out` is all zeros before."""

    def fill(self, table: TableColumns, out: Float64) -> None:
        """Write the numbers of all rows, (N, width); `out` is all zeros before."""

    def to_dict(self) -> dict[str, Any]:
        """Return all settings, in plain JSON types."""


@dataclass(frozen=True, slots=True)
class _Named:
    """A code whose one number is called what its column is."""

    kind: ClassVar[str]
    column: str

    @property
    def names(self) -> tuple[str, ...]:
        return (self.column,)

    def to_dict(self) -> dict[str, Any]:
        return {"column": self.column, "kind": self.kind}


@dataclass(frozen=True, slots=True)
class Constant(_Named):
    """A 1 in every row."""

    kind: ClassVar = "constant"
    column: str = CONSTANT

    def put(self, row: Row, out: Float64) -> None:  # noqa: ARG002
        out[0] = 1.0

    def fill(self, table: TableColumns, out: Float64) -> None:  # noqa: ARG002
        out[:, 0] = 1.0


@dataclass(frozen=True, slots=True)
class Number(_Named):
    """The number that the column has."""

    kind: ClassVar = "number"

    def put(self, row: Row, out: Float64) -> None:
        value = row[self.column]
        wrong = refused(value, f"context[{self.column!r}]")
        if wrong is not None:
            raise wrong
        out[0] = value  # type: ignore[call-overload]

    def fill(self, table: TableColumns, out: Float64) -> None:
        out[:, 0] = table.numbers(self.column)


@dataclass(frozen=True, slots=True)
class Moment(_Named):
    """A date in nine numbers: days since 1970, the hour of the day from 0 to 24, and a flag for each day of the week.

    All in UTC; a date without a time zone is taken for it, and one without a time for midnight.

    Examples
    --------
    >>> import datetime
    >>> code, out = Moment("seen"), np.zeros(9)
    >>> code.put({"seen": datetime.datetime(2026, 11, 17, 18, 30)}, out)
    >>> dict(zip(code.names[:4], out[:4].tolist()))
    {'seen.days': 20774.770833333332, 'seen.hour': 18.5, 'seen=Mon': 0.0, 'seen=Tue': 1.0}
    """

    kind: ClassVar = "date"

    @property
    def names(self) -> tuple[str, ...]:
        return (f"{self.column}.days", f"{self.column}.hour", *(f"{self.column}={day}" for day in WEEKDAYS))

    def put(self, row: Row, out: Float64) -> None:
        try:
            moment = microseconds_of(row[self.column])
        except (TypeError, ValueError) as error:
            raise type(error)(f"context[{self.column!r}]: {error}") from None
        self._write(np.array([moment], dtype=np.int64), out[np.newaxis])

    def fill(self, table: TableColumns, out: Float64) -> None:
        self._write(table.moments(self.column), out)

    def _write(self, moments: Int64, out: Float64) -> None:
        out[:, 0], out[:, 1] = moments / DAY, moments % DAY / HOUR
        out[np.arange(len(moments)), 2 + (moments // DAY + 3) % 7] = 1.0  # 1970 began on a Thursday


@dataclass(frozen=True, slots=True)
class Flags:
    """A 1 at the place of the text, 0 at all others; texts that were not there before share a place, if they have one.

    Examples
    --------
    >>> code = Flags("colour", ("blue", "red"), "flag")
    >>> out = np.zeros(3)
    >>> code.put({"colour": "green"}, out)
    >>> code.names, out
    (('colour=blue', 'colour=red', 'colour=other'), array([0., 0., 1.]))
    """

    kind: ClassVar = "flags"
    column: str
    texts: tuple[str, ...]
    other: Unknown
    _places: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_places", {text: place for place, text in enumerate(self.texts)})

    @property
    def names(self) -> tuple[str, ...]:
        shared = (OTHER,) if self.other == "flag" and OTHER not in self._places else ()
        return tuple(f"{self.column}={text}" for text in (*self.texts, *shared))

    def put(self, row: Row, out: Float64) -> None:
        place = self._place(_text(row, self.column), lambda: f"context[{self.column!r}]")
        if place >= 0:
            out[place] = 1.0

    def fill(self, table: TableColumns, out: Float64) -> None:
        texts = table.texts(self.column)

        def where(place: int) -> str:
            return table.where(first_row(texts.codes, place), self.column)

        places = np.array([self._place(text, partial(where, i)) for i, text in enumerate(texts.texts)])
        rows = places[texts.codes] if places.size else texts.codes
        seen = np.flatnonzero(rows >= 0)
        out[seen, rows[seen]] = 1.0

    def _place(self, text: str, where: Callable[[], str]) -> int:
        """Return the place of a text; -1 if it has none."""
        place = self._places.get(text)
        if place is not None:
            return place
        if self.other == "refuse":
            raise InvalidValueError(
                f"{where()} is {text!r}, which is none of {reprlib.repr(list(self.texts))}; fit it again"
            )
        return self._places.get(OTHER, len(self.texts)) if self.other == "flag" else -1

    def to_dict(self) -> dict[str, Any]:
        return {"column": self.column, "kind": self.kind, "texts": list(self.texts), "other": self.other}


def bucket_of(text: str, n: int) -> int:
    """Return the bucket of a text, one of n: the same on every machine."""
    digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") % n


@dataclass(frozen=True, slots=True)
class Buckets:
    """A 1 in the bucket that a hash of the text says: any number of texts in so many places, known or not.

    The hash is BLAKE2b of the text's UTF-8 bytes, eight bytes of it, little-endian, modulo the number of buckets.

    Examples
    --------
    >>> code = Buckets("city", 4)
    >>> out = np.zeros(4)
    >>> code.put({"city": "Oslo"}, out)
    >>> code.names[:2], out.sum()
    (('city#0', 'city#1'), np.float64(1.0))
    """

    kind: ClassVar = "buckets"
    column: str
    n: int

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.column}#{bucket}" for bucket in range(self.n))

    def put(self, row: Row, out: Float64) -> None:
        out[self._bucket(_text(row, self.column))] = 1.0

    def fill(self, table: TableColumns, out: Float64) -> None:
        texts = table.texts(self.column)
        buckets = np.array([self._bucket(text) for text in texts.texts], dtype=np.int64)
        out[np.arange(table.n_rows), buckets[texts.codes]] = 1.0

    def _bucket(self, text: str) -> int:
        return bucket_of(text, self.n)

    def to_dict(self) -> dict[str, Any]:
        return {"column": self.column, "kind": self.kind, "n": self.n}


@dataclass(frozen=True, slots=True)
class Maybe:
    """The numbers of another code, and a flag that there is no value; then the other numbers are those of `usual`.

    Examples
    --------
    >>> code, out = Maybe(Number("price"), (3.5,)), np.zeros(2)
    >>> code.put({"price": None}, out)
    >>> code.names, out
    (('price', 'price=missing'), array([3.5, 1. ]))
    """

    code: Number | Flags | Buckets | Moment
    usual: tuple[float, ...]

    @property
    def column(self) -> str:
        return self.code.column

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.code.names, f"{self.column}={MISSING}")

    def put(self, row: Row, out: Float64) -> None:
        if is_missing(row[self.column]):
            out[:-1], out[-1] = self.usual, 1.0
        else:
            self.code.put(row, out[:-1])

    def fill(self, table: TableColumns, out: Float64) -> None:
        gone = table.missing(self.column)
        there = np.zeros((len(gone) - int(gone.sum()), len(self.usual)))
        if len(there):
            self.code.fill(table.without(self.column, gone), there)
        out[~gone, :-1] = there
        out[gone, :-1], out[gone, -1] = self.usual, 1.0

    def to_dict(self) -> dict[str, Any]:
        return {**self.code.to_dict(), "missing": list(self.usual)}


def flag_names(code: Code) -> tuple[str, ...]:
    """Return the names of flags of which a row has just one: those of a category, or of the days of a week.

    Examples
    --------
    >>> flag_names(Maybe(Flags("colour", ("blue", "red"), "refuse"), (0.0, 0.0)))
    ('colour=blue', 'colour=red', 'colour=missing')
    >>> flag_names(Number("price"))
    ()
    """
    match code:
        case Flags():
            return code.names
        case Moment():
            return code.names[2:]
        case Maybe(Flags()):
            return code.names
        case Maybe():
            return flag_names(code.code)
    return ()


def read_code(saved: Mapping[str, Any]) -> Code:
    """Restore what `to_dict` returned, or refuse.

    Examples
    --------
    >>> read_code({"column": "price", "kind": "log"})
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: a column of the encoder is {'column': 'price', 'kind': 'log'}, which is ...
    """
    match saved:
        case {"missing": list(usual), **rest}:
            code = read_code(rest)
            numbers = [float(value) for value in usual if type(value) in (int, float) and abs(value) <= LARGEST]
            if len(numbers) == len(usual) == len(code.names) and isinstance(code, Number | Flags | Buckets | Moment):
                return Maybe(code, tuple(numbers))
        case {"kind": "date", "column": str(column), **rest} if not rest:
            return Moment(column)
        case {"kind": "constant", "column": str(column), **rest} if not rest:
            return Constant(column)
        case {"kind": "number", "column": str(column), **rest} if not rest:
            return Number(column)
        case {"kind": "buckets", "column": str(column), "n": int(n), **rest} if not rest and 1 <= n <= MOST_BUCKETS:
            return Buckets(column, int(n))
        case {"kind": "flags", "column": str(column), "texts": list(texts), "other": other, **rest} if not rest:
            differ = len({text for text in texts if isinstance(text, str)}) == len(texts)
            if differ and other in ("flag", "zeros", "refuse"):
                return Flags(column, tuple(texts), other)
    raise InvalidValueError(f"a column of the encoder is {saved!r:.200}, which is none that an encoder can have")


MOST_BUCKETS = 1 << 20


def _text(row: Row, column: str) -> str:
    try:
        return text_of(row[column])
    except (TypeError, ValueError) as error:
        raise type(error)(f"context[{column!r}]: {error}") from None
