"""Every coefficient of a model, with its interval; and the summary that people read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, overload

from armlet.errors import UnknownNameError
from armlet.inference import bounds, tables
from armlet.inference.model import Ask, Model
from armlet.inference.regression import Direction, Regression
from armlet.types import Arm

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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


class Coefficients(tables.Tabled, Sequence[Coefficient]):
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
        return f"{tables.text(columns)}\n{100 * self.level:g} % intervals. {self.words}"


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
    error = None if model.rows == "chosen" else bounds.error(found, direction)
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
        return f"{self.title}\n\n{tables.text(self._arm_columns())}\n\n{self.coefficients}"

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
        from armlet.inference.plots import forest

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
