"""Columns of plain values as a table that people read, and as one that programs do."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any


class Tabled(ABC):
    """What can be read as a table: printed, or handed on."""

    __slots__ = ()

    @abstractmethod
    def columns(self) -> dict[str, list[Any]]:
        """Give the table by columns."""

    def __str__(self) -> str:
        return text(self.columns())

    def __repr__(self) -> str:
        return str(self)

    def to_pandas(self) -> Any:
        """Give a pandas.DataFrame."""
        return pandas(self.columns())

    def to_arrow(self) -> Any:
        """Give a pyarrow.Table."""
        return arrow(self.columns())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)


def text(columns: Mapping[str, Sequence[object]]) -> str:
    """Lay columns out: numbers to the right with four digits, words to the left.

    Examples
    --------
    >>> print(text({"arm": ["a", "bb"], "value": [1.23456, None]}))
    arm   value
    a     1.235
    bb        -
    """
    cells = {name: [_cell(value) for value in values] for name, values in columns.items()}
    lines = [list(cells), *map(list, zip(*cells.values(), strict=True))]
    widths = [max(len(line[j]) for line in lines) for j in range(len(cells))]
    right = [not any(isinstance(value, str) for value in values) for values in columns.values()]
    return "\n".join(_line(line, widths, right) for line in lines)


def _line(line: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    parts = [
        cell.rjust(w) if is_right else cell.ljust(w) for cell, w, is_right in zip(line, widths, right, strict=True)
    ]
    return "  ".join(parts).rstrip()


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def arrow(columns: Mapping[str, Sequence[object]]) -> Any:
    """Give a pyarrow.Table; None becomes null."""
    try:
        pa = importlib.import_module("pyarrow")
    except ImportError as error:
        raise ModuleNotFoundError("Arrow tables need pyarrow; pip install 'armlet[data]'", name="pyarrow") from error
    return pa.table({name: pa.array(_alike(values)) for name, values in columns.items()})


def pandas(columns: Mapping[str, Sequence[object]]) -> Any:
    """Give a pandas.DataFrame; None becomes NaN."""
    try:
        pd = importlib.import_module("pandas")
    except ImportError as error:
        raise ModuleNotFoundError("data frames need pandas; pip install pandas", name="pandas") from error
    return pd.DataFrame({name: list(values) for name, values in columns.items()})


def _alike(values: Sequence[object]) -> list[object]:
    """A column holds one kind: labels of both kinds become text."""
    kinds = {type(value) for value in values if value is not None}
    return [str(value) for value in values] if kinds == {int, str} else list(values)
