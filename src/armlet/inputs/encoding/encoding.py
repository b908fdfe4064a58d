"""What an encoder has come to: a code for every column, side by side. Frozen; a row O(d), a table O(N d)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from armlet.errors import InvalidTypeError, InvalidValueError
from armlet.inputs.contexts import feature_names
from armlet.inputs.encoding.codes import Code, Constant, read_code
from armlet.inputs.encoding.tables import Columns, Row, Table
from armlet.types import Float64

Extra: TypeAlias = Literal["refuse", "ignore"]
"""What columns that nobody asked for are: an error, or nothing."""


def check_columns(given: Collection[str], wanted: Iterable[str], what: str, extra: Extra) -> None:
    """Refuse columns that are missing, and unknown ones unless they are ignored, naming them all.

    Examples
    --------
    >>> check_columns(["age", "hight"], ["age", "height"], "the table", "refuse")
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: the table lacks 'height' and has the unknown 'hight'; give each column ...
    """
    wanted = list(wanted)
    lacks = [repr(name) for name in wanted if name not in given]
    unknown = [repr(name) for name in given if name not in wanted] if extra == "refuse" else []
    faults = {"lacks": lacks, "has the unknown": unknown}
    told = " and ".join(f"{fault} {', '.join(names)}" for fault, names in faults.items() if names)
    if told:
        fix = ", or set extra='ignore'" if unknown else ""
        raise InvalidValueError(f"{what} {told}; give each column once{fix}")


@dataclass(frozen=True, slots=True)
class Encoding:
    """Codes side by side.

    Examples
    --------
    >>> from armlet.inputs.encoding.codes import Constant, Flags, Number
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
        """Give the numbers of one row, (d,)."""
        if not isinstance(row, Mapping):
            raise InvalidTypeError(f"context is a {type(row).__name__}; give a mapping from columns to values")
        if extra == "ignore" or len(row) != len(self.columns) or any(name not in row for name in self.columns):
            check_columns(row, self.columns, "context", extra)
        out = np.zeros(self.dim)
        for code, place in zip(self.codes, self._slices, strict=True):
            code.put(row, out[place])
        return out

    def matrix(self, table: Table, extra: Extra) -> Float64:
        """Give the numbers of every row, (N, d)."""
        given = Columns(table)
        if given.names or not isinstance(table, list | tuple):  # an empty list of rows has no columns
            check_columns(given.names, self.columns, "the table", extra)
        out = np.zeros((given.n_rows, self.dim))
        if given.n_rows:
            for code, place in zip(self.codes, self._slices, strict=True):
                code.fill(given, out[:, place])
        return out

    def to_list(self) -> list[dict[str, Any]]:
        """Give all that it is, in plain JSON types."""
        return [code.to_dict() for code in self.codes]

    @classmethod
    def from_list(cls, saved: list[Any]) -> Encoding:
        """Take back what `to_list` gave, or refuse."""
        if not saved or not isinstance(saved, list):
            raise InvalidValueError(f"the columns of the encoder are {saved!r:.200}; there must be one at least")
        return cls(tuple(read_code(each) for each in saved))
