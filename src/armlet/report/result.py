"""What every result has: `to_dict`, `to_pandas`, `save`, text and a notebook's HTML, all made of its columns.

A result says what it holds with `columns`, and draws itself with `plot` where there is something to draw. Whatever is
heavy (pandas, pyarrow, matplotlib) is imported when it is asked for.
"""

from __future__ import annotations

import csv
import dataclasses
import importlib
import io
import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np

from armlet.disk import write_atomically
from armlet.errors import InvalidValueError, load_package
from armlet.report import notebook

LINES: Final = 40  # of a repr
WIDTH: Final = 92  # columns of sentences

Columns = dict[str, list[Any]]


class Result(ABC):
    """The base of results. A frozen dataclass of it is declared with `repr=False`, or it would show its fields.

    Examples
    --------
    >>> @dataclasses.dataclass(frozen=True, repr=False)
    ... class Counted(Result):
    ...     arms: list[str]
    ...     counts: list[float]
    ...
    ...     def columns(self):
    ...         return {"arm": self.arms, "count": self.counts}
    >>> found = Counted(["a", "b"], [3.0, float("nan")])
    >>> found
    arm  count
    a        3
    b        -
    >>> found.to_dict()
    {'arms': ['a', 'b'], 'counts': [3.0, None]}
    >>> found.save("counted.xls")
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: path is 'counted.xls'; give a name that ends in .html, .json or .csv
    """

    __slots__ = ()

    @abstractmethod
    def columns(self) -> Columns:
        """Return its main table by columns."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain JSON types; what is not a finite number is None."""
        return fields_of(self)

    def to_pandas(self) -> Any:
        """Return its main table as a pandas.DataFrame; None becomes NaN."""
        return data_frame(self.columns())

    def to_arrow(self) -> Any:
        """Return its main table as a pyarrow.Table; None becomes null."""
        pa = load_package("pyarrow", "Arrow tables need")
        return pa.table({name: pa.array(_alike(values)) for name, values in self.columns().items()})

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file, by the ending of its name: .html a page, .json `to_dict`, .csv the table.

        Those that have a `plot` can also be a .png or an .svg.
        """
        save(self, path)

    def __str__(self) -> str:
        return table_text(self.columns())

    def __repr__(self) -> str:
        return shown_lines(str(self))

    def _title(self) -> str:
        """Return what stands on top of it in a notebook and on a page."""
        return type(self).__name__

    def _answer(self) -> str:
        """Return what was found, in a sentence, for the top."""
        return ""

    def _html(self) -> Iterable[str]:
        """Return what it shows in a notebook and on a page, as HTML: see `armlet.report.notebook`."""
        return [notebook.table(self.columns())]

    def _page(self) -> str:
        """Return the page that `save` writes."""
        return page(self, self._title(), self._answer(), self._html())

    def _repr_html_(self) -> str:
        return notebook.fragment(self._title(), notebook.note(self._answer()), *self._html())


class Answered(Result):
    """The base of results that answer in a sentence, and say what it rests on."""

    __slots__ = ()

    @property
    @abstractmethod
    def answer(self) -> str:
        """The answer, in a sentence."""

    @abstractmethod
    def basis(self) -> str:
        """Return what the answer rests on."""

    def __str__(self) -> str:
        return f"{self.answer}\n{self.basis()}"

    def _title(self) -> str:
        return self.answer


# ---- what they share with results of compiled classes, which cannot have a base


def fields_of(result: Any) -> dict[str, Any]:
    """Return the fields of a dataclass in plain JSON types."""
    return {field.name: plain(getattr(result, field.name)) for field in dataclasses.fields(result)}


def plain(value: Any) -> Any:
    """Return a value in plain JSON types: arrays and tuples as lists, None for what is not a finite number.

    Examples
    --------
    >>> plain({"x": np.array([1.0, np.inf]), 3: (True, np.float64(0.5))})
    {'x': [1.0, None], '3': [True, 0.5]}
    """
    if hasattr(value, "to_dict"):
        return plain(value.to_dict())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return fields_of(value)
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, Path):
        return str(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def data_frame(columns: Mapping[str, Sequence[Any]]) -> Any:
    """Return columns as a pandas.DataFrame."""
    try:
        pd = importlib.import_module("pandas")
    except ImportError as error:
        raise ModuleNotFoundError("data frames need pandas; pip install pandas", name="pandas") from error
    return pd.DataFrame(columns)


def save(result: Any, path: str | os.PathLike[str]) -> None:
    """Write a result, by the ending of the name."""
    writers: dict[str, Callable[[], bytes]] = {
        ".html": lambda: result._page().encode(),
        ".json": lambda: (json.dumps(result.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode(),
        ".csv": lambda: _csv(result.columns()).encode(),
    }
    if hasattr(result, "plot"):
        writers |= {f".{kind}": partial(_drawn, result, kind) for kind in ("png", "svg")}
    writer = writers.get(Path(path).suffix.lower())
    if writer is None:
        *most, last = writers
        raise InvalidValueError(f"path is {str(path)!r}; give a name that ends in {', '.join(most)} or {last}")
    write_atomically(Path(os.path.realpath(path)), [writer()])


def page(result: Any, title: str, answer: str, parts: Iterable[str]) -> str:
    """Return a page: the answer, the plot if there is one and something to draw it with, and what a notebook shows."""
    from armlet.report.document import document, figure  # a notebook does without them
    from armlet.report.plots import page_picture

    shown = [notebook.fragment("", *parts)]
    if hasattr(result, "plot") and find_spec("matplotlib") is not None:
        drawn = figure(page_picture(result.plot(), key="plot", alt=f"Plot: {title}", caption=""))
        shown.insert(0, f'<div class="wide"><div style="min-width: 40rem">{drawn}</div></div>')  # letters stay legible
    return document(title, [answer] if answer else [], shown, {})


def _csv(columns: Mapping[str, Sequence[Any]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([list(columns), *zip(*columns.values(), strict=True)])
    return out.getvalue()


def _drawn(result: Any, kind: str) -> bytes:
    out = io.BytesIO()
    result.plot().savefig(out, format=kind, facecolor="white", metadata={"Date": None} if kind == "svg" else None)
    return out.getvalue()


# ---- text


def table_text(columns: Mapping[str, Sequence[object]]) -> str:
    """Lay columns out: numbers to the right with four digits, words to the left.

    Examples
    --------
    >>> print(table_text({"arm": ["a", "bb"], "value": [1.23456, None]}))
    arm   value
    a     1.235
    bb        -
    """
    cells = {name: [notebook.cell(value) for value in values] for name, values in columns.items()}
    lines = [list(cells), *map(list, zip(*cells.values(), strict=True))]
    widths = [max(len(line[j]) for line in lines) for j in range(len(cells))]
    right = [notebook.is_numeric(values) for values in columns.values()]
    return "\n".join(_line(line, widths, right) for line in lines)


def _line(line: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    parts = [
        cell.rjust(w) if is_right else cell.ljust(w) for cell, w, is_right in zip(line, widths, right, strict=True)
    ]
    return "  ".join(parts).rstrip()


def shown_lines(text: str) -> str:
    r"""Cut what a repr would print over pages.

    Examples
    --------
    >>> shown_lines("a\n" * 100).splitlines()[-1]
    '... 60 more lines: print() shows them'
    """
    lines = text.splitlines()
    if len(lines) <= LINES:
        return text
    return "\n".join([*lines[:LINES], f"... {len(lines) - LINES:,} more lines: print() shows them"])


def _alike(values: Sequence[object]) -> list[object]:
    """A column holds one kind: labels of both kinds become text."""
    kinds = {type(value) for value in values if value is not None}
    return [str(value) for value in values] if kinds == {int, str} else list(values)
