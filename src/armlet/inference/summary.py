"""Coefficients with their intervals, the summary that people read, and explanations of estimates: as tables."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, overload

import numpy as np

from armlet.errors import UnknownNameError, load_package, require_package
from armlet.inference.model import Ask, Model
from armlet.inference.regression import Direction, Regression
from armlet.types import Arm, Float64

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Tabled(ABC):
    """What can be read as a table: printed, or handed on."""

    __slots__ = ()

    @abstractmethod
    def columns(self) -> dict[str, list[Any]]:
        """Give the table by columns."""

    def __str__(self) -> str:
        return table_text(self.columns())

    def __repr__(self) -> str:
        return str(self)

    def to_pandas(self) -> Any:
        """Return a pandas.DataFrame; None becomes NaN."""
        try:
            pd = importlib.import_module("pandas")
        except ImportError as error:
            raise ModuleNotFoundError("data frames need pandas; pip install pandas", name="pandas") from error
        return pd.DataFrame(self.columns())

    def to_arrow(self) -> Any:
        """Return a pyarrow.Table; None becomes null."""
        pa = load_package("pyarrow", "Arrow tables need")
        return pa.table({name: pa.array(_alike(values)) for name, values in self.columns().items()})

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)


def table_text(columns: Mapping[str, Sequence[object]]) -> str:
    """Lay columns out: numbers to the right with four digits, words to the left.

    Examples
    --------
    >>> print(table_text({"arm": ["a", "bb"], "value": [1.23456, None]}))
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


def _alike(values: Sequence[object]) -> list[object]:
    """A column holds one kind: labels of both kinds become text."""
    kinds = {type(value) for value in values if value is not None}
    return [str(value) for value in values] if kinds == {int, str} else list(values)


COLUMNS: Final = ("arm", "feature", "value", "error", "low", "high", "rows", "why")


@dataclass(frozen=True, slots=True)
class Coefficient:
    """What one feature adds to the reward of one arm, in the user's units; or why that is not known."""

    arm: Arm
    feature: str
    value: float | None  # by least squares; None if rows do not tell it
    error: float | None  # its standard error; None also where rows were chosen by what had been learned
    low: float | None
    high: float | None
    rows: float  # of the arm, by weight
    why: str | None = None  # why there is no interval


class Coefficients(Tabled, Sequence[Coefficient]):
    """The coefficients of all arms: a sequence, a table, a data frame.

    Attributes
    ----------
    interval, level
        As asked for.
    words
        What is guaranteed, and why.
    """

    def __init__(self, rows: Sequence[Coefficient], ask: Ask, words: str) -> None:
        self._rows = list(rows)
        self.interval, self.level, self.words = ask.interval, ask.level, words

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, place: int) -> Coefficient: ...
    @overload
    def __getitem__(self, place: slice) -> list[Coefficient]: ...
    def __getitem__(self, place: int | slice) -> Coefficient | list[Coefficient]:
        return self._rows[place]

    def __iter__(self) -> Iterator[Coefficient]:
        return iter(self._rows)

    def of(self, arm: Arm, feature: str) -> Coefficient:
        """Give the coefficient of one feature of one arm."""
        for row in self._rows:
            if (row.arm, row.feature) == (arm, feature):
                return row
        raise UnknownNameError(f"there is no coefficient of {feature!r} for arm {arm!r}")

    def columns(self) -> dict[str, list[Any]]:
        """Give the table by columns."""
        return {name: [getattr(row, name) for row in self._rows] for name in COLUMNS}

    def __str__(self) -> str:
        columns = self.columns()
        reasons = columns.pop("why")
        if any(reasons):
            columns["why no interval"] = [why or "" for why in reasons]
        return f"{table_text(columns)}\n{100 * self.level:g} % intervals. {self.words}"


def coefficients(model: Model, ask: Ask) -> Coefficients:
    """Work out all of them."""
    rows = []
    for arm, label in enumerate(model.arms):
        found = model.regression(arm)
        rows += [_coefficient(model, arm, label, found, each, ask) for each in model.coefficients()]
    return Coefficients(rows, ask, model.words(ask))


def _coefficient(
    model: Model, arm: int, label: Arm, found: Regression, named: tuple[str, Direction], ask: Ask
) -> Coefficient:
    name, direction = named
    why = model.why_not(found, name, direction)
    value = found.value(direction) if found.tells(direction) else None
    if why is not None:
        return Coefficient(label, name, value, None, None, None, found.rows, why)
    half = model.half_width(arm, found, direction, ask)
    error = None if model.rows == "chosen" else found.error(direction)
    if value is None or half is None:
        return Coefficient(label, name, value, None, None, None, found.rows, "noise_scale is not known")
    return Coefficient(label, name, value, error, value - half, value + half, found.rows)


@dataclass(frozen=True, slots=True)
class ArmRow:
    """What an arm's rows look like."""

    arm: Arm
    rows: float
    mean: float | None  # of rewards, in the user's sense
    noise: float | None  # the deviation of rewards about the regression
    state: str  # "plays" or "retired"


@dataclass(frozen=True, slots=True)
class Summary:
    """A model that people can read: its arms and its coefficients. Printed, it is two tables."""

    title: str
    arms: list[ArmRow]
    coefficients: Coefficients

    def __str__(self) -> str:
        return f"{self.title}\n\n{table_text(self._arm_columns())}\n\n{self.coefficients}"

    __repr__ = __str__

    def _arm_columns(self) -> dict[str, list[Any]]:
        return {name: [getattr(row, name) for row in self.arms] for name in ("arm", "rows", "mean", "noise", "state")}

    def to_pandas(self) -> Any:
        """Give the coefficients as a pandas.DataFrame."""
        return self.coefficients.to_pandas()

    def to_arrow(self) -> Any:
        """Give the coefficients as a pyarrow.Table."""
        return self.coefficients.to_arrow()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.coefficients.__arrow_c_stream__(requested_schema)

    def plot(self) -> Figure:
        """Draw the coefficients and their intervals, one panel a feature; needs `armlet[plots]`."""
        return forest(self.coefficients)


def summary(model: Model, ask: Ask, retired: Sequence[Arm]) -> Summary:
    """Put a model into words and numbers."""
    rows = []
    for arm, label in enumerate(model.arms):
        found, n = model.regression(arm), float(model.state.n[arm])
        noise = found.deviation if found.is_enough else None
        rows.append(ArmRow(label, n, _mean(model, arm, found), noise, "retired" if label in retired else "plays"))
    what = "rewards" if model.settings.objective == "max" else "costs"
    scaled = ", of contexts scaled to length 1" if model.settings.normalize == "l2" else ""
    title = f"{model.settings.policy}\n{model.t} decisions; {what}{scaled}, in units as they were given"
    return Summary(title, rows, coefficients(model, ask))


def _mean(model: Model, arm: int, found: Regression) -> float | None:
    if found.rows <= 0:
        return None
    return found.level if found.has_constant else model.settings.sign * float(model.state.sum_r[arm]) / found.rows


@dataclass(frozen=True, slots=True, repr=False)
class Explanation(Tabled):
    """The estimate of every arm in one context, taken apart: base + contributions = total.

    In free units the base is what an arm is expected to give in the mean context of all rows, and a feature contributes
    what its distance from the mean adds; in units as given the base is 0 and a feature contributes theta_j x_j.
    """

    arms: list[Arm]
    features: list[str]
    base: Float64  # (K,)
    contributions: Float64  # (K, d)

    @property
    def total(self) -> Float64:
        """The estimate of each arm, (K,)."""
        return np.asarray(self.base + self.contributions.sum(axis=1))

    def of(self, arm: Arm) -> dict[str, float]:
        """Give what each feature adds for one arm."""
        if arm not in self.arms:
            raise UnknownNameError(f"arm {arm!r} is not one of {self.arms}")
        return dict(zip(self.features, self.contributions[self.arms.index(arm)].tolist(), strict=True))

    def columns(self) -> dict[str, list[Any]]:
        """Give the table by columns, one row an arm."""
        parts = dict(zip(self.features, self.contributions.T.tolist(), strict=True))
        return {"arm": list(self.arms), "estimate": self.total.tolist(), "base": self.base.tolist(), **parts}


def explanation(
    arms: list[Arm], features: list[str], row: Float64, theta: Float64, base: float, sign: float
) -> Explanation:
    """Take estimates apart: row is x, or (1, z) in free units."""
    parts = sign * theta * row + 0.0  # no -0
    if len(row) == len(features):
        return Explanation(arms, features, np.zeros(len(arms)), parts)
    return Explanation(arms, features, sign * base + parts[:, 0], parts[:, 1:])


def forest(rows: Coefficients) -> Figure:
    """Draw every coefficient with its interval; those without one are empty circles."""
    require_package("matplotlib", "plots need")
    from matplotlib.figure import Figure

    features = list(dict.fromkeys(row.feature for row in rows))
    arms = list(dict.fromkeys(str(row.arm) for row in rows))
    figure = Figure(figsize=(2.4 * len(features) + 1.2, 0.35 * len(arms) + 1.2), layout="constrained")
    panels = figure.subplots(1, len(features), squeeze=False, sharey=True)[0]
    for axes, feature in zip(panels, features, strict=True):
        _panel(axes, [row for row in rows if row.feature == feature])
        axes.set_title(feature, fontsize=9)
    panels[0].set_yticks(range(len(arms)), arms)
    panels[0].invert_yaxis()
    return figure


def _panel(axes: Axes, rows: list[Coefficient]) -> None:
    axes.axvline(0.0, color="0.6", linewidth=0.8)
    axes.margins(y=0.3)
    for place, row in enumerate(rows):
        if row.value is None:
            axes.plot([], [])
        elif row.low is None or row.high is None:
            axes.plot(row.value, place, "o", color="0.4", markerfacecolor="none", markersize=5)
        else:
            axes.plot([row.low, row.high], [place, place], "-", color="#1f7fc4", linewidth=1.6)
            axes.plot(row.value, place, "o", color="#1f7fc4", markersize=5)
    axes.tick_params(labelsize=8)
