"""The encoder: rows of text, categories and numbers become the numbers of a context, always in the same way."""

from __future__ import annotations

import copy
import importlib
import inspect
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal, Protocol, Self, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from armlet.errors import InvalidTypeError, InvalidValueError, NotFittedError, suggesting
from armlet.inputs.codes import (
    CONSTANT,
    MOST_BUCKETS,
    Buckets,
    Code,
    Constant,
    Flags,
    Maybe,
    Moment,
    Number,
    Unknown,
    flag_names,
    read_code,
)
from armlet.inputs.contexts import PLAIN_ROWS, ContextReader, feature_names, is_table, one_row
from armlet.inputs.ranges import FeatureRanges
from armlet.inputs.tables import Row, TableColumns, TableLike
from armlet.types import Context, Contexts, Float64

Output: TypeAlias = Literal["default", "pandas", "polars"]


class Estimator:
    """A transformer whose settings are the arguments of its `__init__`, kept under their names."""

    _output: Output = "default"

    @classmethod
    def _settings(cls) -> dict[str, Any]:
        parameters = inspect.signature(cls.__init__).parameters.values()
        return {each.name: each.default for each in parameters if each.name != "self"}

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """Return the settings by name."""
        return {name: getattr(self, name) for name in self._settings()}

    def set_params(self, **params: Any) -> Self:
        """Change settings; what was fitted stays until it is fitted again."""
        known = self._settings()
        for name in params:
            if name not in known:
                raise InvalidValueError(f"{type(self).__name__} has no setting {name!r}; it has {', '.join(known)}")
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def set_output(self, *, transform: Output | None = None) -> Self:
        """Set what `transform` returns: a numpy matrix ("default"), or a DataFrame of "pandas" or "polars"."""
        if transform not in (None, "default", "pandas", "polars"):
            raise InvalidValueError(f"transform is {transform!r}; choose 'default', 'pandas' or 'polars'")
        if transform is not None:
            self._output = transform
        return self

    def _shown(self, values: Float64, names: tuple[str, ...], source: object) -> Any:
        if self._output == "default":
            return values
        make = importlib.import_module(self._output).DataFrame
        if self._output == "polars":
            return make(values, schema=list(names))
        index = getattr(source, "index", None)  # of a list, it is a method
        return make(values, columns=list(names), index=None if callable(index) else index)

    def __sklearn_tags__(self) -> Any:
        utils = importlib.import_module("sklearn.utils")
        tags = utils.Tags(
            estimator_type="transformer",
            target_tags=utils.TargetTags(required=False),
            transformer_tags=utils.TransformerTags(),
        )
        tags.input_tags.categorical = tags.input_tags.string = True
        tags.no_validation = True  # texts and missing values are refused in our own words
        return tags

    def __repr__(self) -> str:
        settings = [
            f"{name}={getattr(self, name)!r}"
            for name, usual in self._settings().items()
            if getattr(self, name) != usual
        ]
        return f"{type(self).__name__}({', '.join(settings)})"


def _object_array(names: Sequence[str]) -> npt.NDArray[np.object_]:
    return np.array(names, dtype=np.object_)


Extra: TypeAlias = Literal["refuse", "ignore"]
"""What columns that nobody asked for are: an error, or nothing."""


def check_columns(present: Collection[str], wanted: Iterable[str], what: str, extra: Extra) -> None:
    """Refuse columns that are missing, and unknown ones unless they are ignored, naming them all.

    Examples
    --------
    >>> check_columns(["age", "hight"], ["age", "height"], "the table", "refuse")
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: the table lacks 'height' and has the unknown 'hight'; give each column ...
    """
    wanted = list(wanted)
    lacks = [repr(name) for name in wanted if name not in present]
    unknown = [repr(name) for name in present if name not in wanted] if extra == "refuse" else []
    faults = {"lacks": lacks, "has the unknown": unknown}
    text = " and ".join(f"{fault} {', '.join(names)}" for fault, names in faults.items() if names)
    if text:
        fix = ", or set extra='ignore'" if unknown else ""
        raise InvalidValueError(f"{what} {text}; give each column once{fix}")


@dataclass(frozen=True, slots=True)
class Encoding:
    """Codes side by side.

    Examples
    --------
    >>> from armlet.inputs.codes import Constant, Flags, Number
    >>> encoding = Encoding((Constant(), Number("price"), Flags("colour", ("red",), "zeros")))
    >>> encoding.features, encoding.encode({"price": 2, "colour": "red"}, "refuse")
    (('1', 'price', 'colour=red'), array([1., 2., 1.]))
    """

    codes: tuple[Code, ...]
    columns: tuple[str, ...] = field(init=False, compare=False)  # those that are read
    features: tuple[str, ...] = field(init=False, compare=False)
    _slices: tuple[slice, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        names, _ = feature_names([name for code in self.codes for name in code.names], None)
        ends = np.cumsum([len(code.names) for code in self.codes]).tolist()
        slices = [slice(end - len(code.names), end) for code, end in zip(self.codes, ends, strict=True)]
        columns = [code.column for code in self.codes if not isinstance(code, Constant)]
        if len(set(columns)) < len(columns):
            raise InvalidValueError(f"the columns are {', '.join(columns)}; give each once")
        object.__setattr__(self, "columns", tuple(columns))
        object.__setattr__(self, "features", names)
        object.__setattr__(self, "_slices", tuple(slices))

    @property
    def dim(self) -> int:
        """How many numbers a row becomes."""
        return len(self.features)

    def encode(self, row: Row, extra: Extra) -> Float64:
        """Return the numbers of one row, (d,)."""
        if not isinstance(row, Mapping):
            raise InvalidTypeError(f"context is a {type(row).__name__}; give a mapping from columns to values")
        if extra == "ignore" or len(row) != len(self.columns) or any(name not in row for name in self.columns):
            check_columns(row, self.columns, "context", extra)
        out = np.zeros(self.dim)
        for code, place in zip(self.codes, self._slices, strict=True):
            code.put(row, out[place])
        return out

    def matrix(self, table: TableLike, extra: Extra) -> Float64:
        """Return the numbers of every row, (N, d)."""
        columns = TableColumns(table)
        if columns.names or not isinstance(table, list | tuple):  # an empty list of rows has no columns
            check_columns(columns.names, self.columns, "the table", extra)
        out = np.zeros((columns.n_rows, self.dim))
        if columns.n_rows:
            for code, place in zip(self.codes, self._slices, strict=True):
                code.fill(columns, out[:, place])
        return out

    def to_list(self) -> list[dict[str, Any]]:
        """Return all that it is, in plain JSON types."""
        return [code.to_dict() for code in self.codes]

    @classmethod
    def from_list(cls, saved: list[Any]) -> Encoding:
        """Restore what `to_list` returned, or refuse."""
        if not saved or not isinstance(saved, list):
            raise InvalidValueError(f"the columns of the encoder are {saved!r:.200}; there must be one at least")
        return cls(tuple(read_code(each) for each in saved))


MOST = 50
"""Texts of a column that have a flag of their own, unless it is said."""

Missing: TypeAlias = Literal["refuse", "flag"]
"""What a cell without a value is: an error, or a flag."""


class _Notes:
    """What `fit` has seen of one column, part by part."""

    def __init__(self, code: Number | Flags | Buckets | Moment) -> None:
        self.code = code
        self.texts = Counter[str]()
        self.rows = 0  # with a value
        self._sums = np.zeros(len(code.names))

    def add(self, part: TableColumns, name: str, missing: Missing) -> None:
        """Add a part; refuse what `transform` would refuse."""
        if missing == "flag" and (gone := part.missing(name)).any():
            part = part.without(name, gone)
        self.rows += part.n_rows
        if isinstance(self.code, Flags):
            self.texts.update(part.texts(name).counts())
        elif part.n_rows:
            numbers = np.zeros((part.n_rows, len(self._sums)))
            self.code.fill(part, numbers)
            self._sums += numbers.sum(axis=0)

    def usual(self, code: Number | Flags | Buckets | Moment) -> tuple[float, ...]:
        """Return the means of the numbers, zeros of flags: what a row without a value has in their place."""
        if isinstance(code, Flags | Buckets) or not self.rows:
            return (0.0,) * len(code.names)
        return tuple((self._sums / self.rows).tolist())


class Encoder(Estimator):
    """Numbers of a context from columns of text, categories and numbers.

    A column of numbers stays one number. A column of text or categories becomes a flag for each of its texts, in the
    order of the alphabet, and one for all others; or, if it is hashed, a flag for each bucket. A column of dates
    becomes days since 1970, the hour of the day and a flag for each day of the week, in UTC. What there is is fixed by
    `fit`, is saved in the model file of a bandit that carries it, and never changes by use.

    Parameters
    ----------
    columns
        The columns to read, in this order, "1" for a constant 1; all of the table that it is fitted on if left out.
    categories
        Columns whose whole numbers stand for categories.
    hashed
        Columns of text with too many values for a flag each, and how many buckets each has: {"city": 64}.
    most
        The most texts of a column that have a flag of their own: the most frequent ones. None for all.
    other
        What other texts become: "flag", one that they share; "zeros", no flag at all; "refuse", an error, which is also
        what more texts than `most` are then.
    missing
        What a cell without a value is (None, NaN, pandas' NA): "refuse", an error that names it; "flag": every column
        has one more number, a flag for it, and its other numbers are then their means over the table of `fit`.
    extra
        What unknown columns of a row or table are: "refuse", an error that names them; "ignore", nothing.

    Examples
    --------
    >>> import armlet
    >>> encoder = armlet.Encoder().fit({"colour": ["red", "blue", "red"], "price": [3.0, 4.5, 2.0]})
    >>> encoder.features
    ('colour=blue', 'colour=red', 'colour=other', 'price')
    >>> encoder.encode({"colour": "red", "price": 7})
    array([0., 1., 0., 7.])
    >>> bandit = armlet.Bandit(["left", "right"], encoder=encoder, policy=armlet.LinUCB(), seed=1)
    >>> bandit.decide({"colour": "green", "price": 1.5}).x
    array([0. , 0. , 1. , 1.5])
    """

    @suggesting("Encoder")
    def __init__(
        self,
        columns: Sequence[str] | None = None,
        *,
        categories: Sequence[str] = (),
        hashed: Mapping[str, int] | None = None,
        most: int | None = MOST,
        other: Unknown = "flag",
        missing: Missing = "refuse",
        extra: Extra = "refuse",
    ) -> None:
        # as scikit-learn wants it: kept as they are, and checked when they are used
        self.columns, self.categories, self.hashed = columns, categories, hashed
        self.most, self.other, self.missing, self.extra = most, other, missing, extra
        self._encoding: Encoding | None = None

    # ---- fitting

    def fit(self, X: TableLike, y: object = None) -> Self:  # noqa: ARG002
        """Learn which columns there are and which texts they have, again.

        Parameters
        ----------
        X
            A mapping of columns, a list of rows, or pandas, polars or Arrow.
        y
            Not looked at: scikit-learn has it.
        """
        return self.fit_many([X])

    def fit_many(self, tables: Iterable[TableLike]) -> Self:
        """Do the same with a table that comes in parts; no part is kept.

        Examples
        --------
        >>> import armlet
        >>> parts = ({"colour": [colour]} for colour in ("red", "blue"))
        >>> armlet.Encoder(other="zeros").fit_many(parts).features
        ('colour=blue', 'colour=red')
        """
        self._check()
        parts = map(TableColumns, tables)
        first = next(parts, None)
        if first is None or not first.n_rows:
            raise InvalidValueError("the table has no rows; give some, to learn from which columns and texts there are")
        wanted = first.names if self.columns is None else list(self.columns)
        self._check_roles(wanted)
        read = [name for name in wanted if name != CONSTANT or name in first.names]
        extra: Extra = "refuse" if self.columns is None else "ignore"
        held = {name: self._notes(first, name) for name in read if name in first.names}
        for part in chain([first], parts):
            check_columns(part.names, read, "the table", extra)
            for name, notes in held.items():
                notes.add(part, name, self.missing)
        self._encoding = Encoding(tuple(self._code(name, held.get(name)) for name in wanted))
        self.n_features_in_, self.feature_names_in_ = len(first.names), _object_array(first.names)
        return self

    def _check(self) -> None:
        choices: dict[str, tuple[str, ...]] = {"other": ("flag", "zeros", "refuse"), "extra": ("refuse", "ignore")}
        choices["missing"] = ("refuse", "flag")
        for name, words in choices.items():
            if (value := getattr(self, name)) not in words:
                raise InvalidValueError(f"{name} is {value!r}; choose one of {', '.join(map(repr, words))}")
        if self.most is not None and not _is_count(self.most, 1 << 31):
            raise InvalidValueError(f"most is {self.most!r}; give a whole number of at least 1, or None for all")
        for name in ("columns", "categories"):
            if isinstance(value := getattr(self, name), str):
                raise InvalidTypeError(f"{name} is the string {value!r}; give a list of names")
        for name, n in (self.hashed or {}).items():
            if not _is_count(n, MOST_BUCKETS):
                raise InvalidValueError(
                    f"hashed[{name!r}] is {n!r}; give the number of buckets, from 1 to {MOST_BUCKETS}"
                )

    def _check_roles(self, wanted: Sequence[str]) -> None:
        if not wanted:
            raise InvalidValueError("there are no columns; give a table with at least one")
        for role, names in (("categories", self.categories), ("hashed", self.hashed or {})):
            for name in names:
                if name not in wanted:
                    raise InvalidValueError(f"{role} names {name!r}, but the columns are {', '.join(wanted)}")

    def _notes(self, table: TableColumns, name: str) -> _Notes:
        if name in (self.hashed or {}):
            return _Notes(Buckets(name, (self.hashed or {})[name]))
        kind = "text" if name in self.categories else table.kind(name)
        if kind == "text":
            return _Notes(Flags(name, (), "flag"))
        return _Notes(Moment(name) if kind == "date" else Number(name))

    def _code(self, name: str, notes: _Notes | None) -> Code:
        if notes is None:
            return Constant(name)
        code = self._flags(name, notes) if isinstance(notes.code, Flags) else notes.code
        return code if self.missing == "refuse" else Maybe(code, notes.usual(code))

    def _flags(self, name: str, notes: _Notes) -> Flags:
        counts = notes.texts
        texts = sorted(counts, key=lambda text: (-counts[text], text))
        if self.most is not None and len(texts) > self.most:
            if self.other == "refuse":
                raise InvalidValueError(
                    f"column {name!r} has {len(texts):,} different texts; group them into {self.most} or fewer, raise "
                    "most, give them buckets with hashed={...}, or let the rare ones share a flag with other='flag'"
                )
            _warn_of_names(name, len(texts), notes.rows, self.most)
        return Flags(name, tuple(sorted(texts[: self.most])), self.other)

    # ---- numbers

    def encode(self, row: Row) -> Float64:
        """Return the numbers of one row, (d,).

        Examples
        --------
        >>> import armlet
        >>> encoder = armlet.Encoder().fit({"price": [3.0, 4.5]})
        >>> encoder.encode({"price": 2.0, "size": 7})
        Traceback (most recent call last):
        armlet.errors.InvalidValueError: context has the unknown 'size'; give each column once, or set ...
        """
        return self._fitted.encode(row, self.extra)

    def matrix(self, X: TableLike) -> Float64:
        """Return the numbers of every row, (N, d)."""
        return self._fitted.matrix(X, self.extra)

    def transform(self, X: TableLike) -> Any:
        """Return the numbers of every row, (N, d); as a DataFrame if `set_output` asked for one."""
        return self._shown(self.matrix(X), self.features, X)

    def fit_transform(self, X: TableLike, y: object = None) -> Any:
        """Fit, then transform the same table."""
        return self.fit(X, y).transform(X)

    # ---- what it is

    @property
    def is_fitted(self) -> bool:
        """Whether it has seen a table."""
        return self._encoding is not None

    def __sklearn_is_fitted__(self) -> bool:
        return self.is_fitted

    @property
    def _fitted(self) -> Encoding:
        if self._encoding is None:
            raise NotFittedError("the encoder has not seen a table yet; call encoder.fit(table) first")
        return self._encoding

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the numbers."""
        return self._fitted.features

    @property
    def dim(self) -> int:
        """How many numbers a row becomes."""
        return self._fitted.dim

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that a row must have."""
        return self._fitted.columns

    @property
    def flags(self) -> dict[str, tuple[str, ...]]:
        """The flags that stand for each column of text, categories or dates, of which a row has one.

        Examples
        --------
        >>> Encoder().fit({"colour": ["red", "blue"], "price": [2.0, 3.0]}).flags
        {'colour': ('colour=blue', 'colour=red', 'colour=other')}
        """
        return {code.column: names for code in self._fitted.codes if (names := flag_names(code))}

    def get_feature_names_out(self, input_features: object = None) -> npt.NDArray[np.object_]:  # noqa: ARG002
        """Return the names of the numbers as scikit-learn asks for them."""
        return _object_array(self.features)

    def to_dict(self) -> dict[str, Any]:
        """Return what a fitted encoder does in plain JSON types; `from_dict` takes it back.

        Examples
        --------
        >>> import armlet
        >>> encoder = armlet.Encoder().fit({"price": [3.0]})
        >>> encoder.to_dict()
        {'columns': [{'column': 'price', 'kind': 'number'}], 'extra': 'refuse'}
        >>> armlet.Encoder.from_dict(encoder.to_dict()) == encoder
        True
        """
        return {"columns": self._fitted.to_list(), "extra": self.extra}

    def _repr_html_(self) -> str:
        from armlet.report import notebook  # not before something is shown

        if not self.is_fitted:
            return notebook.fragment(repr(self), notebook.note("Not fitted: call encoder.fit(table) first."))
        codes, kinds = self._fitted.codes, [each["kind"] for each in self._fitted.to_list()]
        features = [notebook.shorten(", ".join(code.names)) for code in codes]
        shown = {"column": [code.column for code in codes], "becomes": kinds, "features": features}
        return notebook.fragment(f"{self!r}: {self.dim:,} features", notebook.table(shown))

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """Make an encoder that does what `to_dict` says, or refuse."""
        if not isinstance(saved, Mapping) or saved.keys() != {"columns", "extra"}:
            raise InvalidValueError(f"an encoder is said to be {saved!r:.200}; give what to_dict gave")
        encoding = Encoding.from_list(saved["columns"])
        missing: Missing = "flag" if any(isinstance(code, Maybe) for code in encoding.codes) else "refuse"
        out = cls([code.column for code in encoding.codes], missing=missing, extra=saved["extra"])
        out._check()
        out._encoding = encoding
        return out

    def copy(self) -> Self:
        """Make another that may be fitted again without this one."""
        return copy.copy(self)

    def __eq__(self, other: object) -> bool:
        """Whether both make the same numbers of the same columns."""
        return isinstance(other, Encoder) and self._encoding == other._encoding

    __hash__ = None  # type: ignore[assignment]


def _warn_of_names(name: str, texts: int, rows: int, most: int) -> None:
    """Warn of a column that names rows rather than tells of them: nearly every row has a text of its own."""
    if rows >= 100 and texts > rows // 2:
        text = (
            f"column {name!r} has {texts:,} different texts in {rows:,} rows, of which {most} get a flag: it looks "
            "like an identifier, which teaches nothing about other rows; leave it out with columns=[...], or hash it"
        )
        warnings.warn(text, UserWarning, stacklevel=2)


def _is_count(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most


class RowEncoder(Protocol):
    """What makes the numbers of a row: an `Encoder`, or `HashedFeatures`."""

    @property
    def dim(self) -> int:
        """How many numbers a row becomes."""

    def encode(self, row: Row) -> Float64:
        """Return the numbers of one row, (d,)."""

    def matrix(self, X: Any) -> Float64:
        """Return the numbers of every row, (N, d)."""


@dataclass(frozen=True, slots=True)
class EncodingReader:
    """Reads contexts by column, or, as a `ContextReader` does, the numbers that they became.

    Examples
    --------
    >>> reader = EncodingReader(Encoder().fit({"colour": ["red", "blue"]}))
    >>> reader.row({"colour": "red"}), reader.row([0.0, 1.0, 0.0])
    (array([0., 1., 0.]), array([0., 1., 0.]))
    >>> reader.matrix([{"colour": "blue"}])
    array([[1., 0., 0.]])
    """

    encoder: RowEncoder
    what: str = "context"  # what errors call a row
    ranges: FeatureRanges | None = None  # of its numbers that have a range

    @property
    def plain(self) -> ContextReader:
        """What reads the numbers."""
        return ContextReader(self.encoder.dim, what=self.what, ranges=self.ranges)

    def row(self, x: Context) -> Float64:
        """Read one context: a mapping from columns to values, or d numbers."""
        context: Any = x
        if is_table(context):
            row: Float64 = self.matrix(one_row(context, self.what))[0]
            return row
        if isinstance(context, PLAIN_ROWS) or not hasattr(context, "keys") or hasattr(context, "toarray"):
            return self.plain.row(x)
        return self._within(self.encoder.encode(context if isinstance(context, Mapping) else dict(context)))

    def matrix(self, X: Contexts) -> Float64:
        """Read many contexts: a table, a mapping of columns, a list of what `row` reads, or a matrix of numbers."""
        contexts: Any = X
        if isinstance(contexts, list | tuple):
            if contexts and not all(isinstance(x, Mapping) for x in contexts):
                return self.plain.matrix([self.row(x) for x in contexts] if any(map(_is_named, contexts)) else X)
            return self._within(self.encoder.matrix(contexts))
        if is_table(contexts) or isinstance(contexts, Mapping):
            return self._within(self.encoder.matrix(cast("Any", contexts)))
        return self.plain.matrix(X)

    def _within(self, values: Float64) -> Float64:
        return values if self.ranges is None else self.ranges.within(values, self.what)


def _is_named(x: object) -> bool:
    return not isinstance(x, PLAIN_ROWS) and hasattr(x, "keys")
