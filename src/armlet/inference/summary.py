"""Coefficients with their intervals, the summary that people read, and explanations of estimates: as tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, overload

import numpy as np

from armlet.errors import UnknownNameError, choices
from armlet.inference.model import CONSTANT, Ask, FittedModel, Term
from armlet.inference.regression import Regression
from armlet.report import notebook
from armlet.report.result import Columns, Result, plain, table_text
from armlet.types import Arm, Bool, Float64

if TYPE_CHECKING:
    from matplotlib.figure import Figure


ACROSS: Final = 6  # arms that an explanation shows next to each other
COLUMNS: Final = ("arm", "feature", "base", "value", "error", "low", "high", "rows", "why")


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
    base: str | None = None  # of a category, the level that it is the difference from; of the constant, all of them


class Coefficients(Result, Sequence[Coefficient]):
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
        """Return the coefficient of one feature of one arm."""
        for row in self._rows:
            if (row.arm, row.feature) == (arm, feature):
                return row
        known = list(dict.fromkeys(row.feature for row in self._rows if row.arm == arm))
        if not known:
            arms = list(dict.fromkeys(row.arm for row in self._rows))
            raise UnknownNameError(f"arm {arm!r} is not one of {arms}")
        if any(row.base == feature for row in self._rows if row.feature != CONSTANT):
            raise UnknownNameError(f"{feature!r} is a base level, part of {CONSTANT!r}; choose another one by base=")
        raise UnknownNameError(f"there is no coefficient of {feature!r}; {choices(str(feature), known)}")

    def columns(self) -> Columns:
        """Return the table by columns, one row a coefficient."""
        return {name: [getattr(row, name) for row in self._rows] for name in COLUMNS}

    def to_dict(self) -> dict[str, object]:
        """Return everything in plain JSON types."""
        fields = {"interval": self.interval, "level": self.level, "words": self.words}
        return {**fields, "coefficients": plain(self._rows)}

    def plot(self) -> Figure:
        """Draw them with their intervals, one panel a feature; needs `armlet[plots]`."""
        from armlet.inference.drawings import forest

        return forest(self._rows)

    def _shown(self) -> Columns:
        """Return the columns that people read: reasons only where there are any."""
        columns = self.columns()
        reasons = columns.pop("why")
        if not any(columns["base"]):
            columns.pop("base")
        return {**columns, "why no interval": [why or "" for why in reasons]} if any(reasons) else columns

    def _words(self) -> str:
        return f"{100 * self.level:g} % intervals. {self.words}"

    def __str__(self) -> str:
        return f"{table_text(self._shown())}\n{self._words()}"

    def _title(self) -> str:
        return "Coefficients"

    def _html(self) -> Iterable[str]:
        return [notebook.table(self._shown()), notebook.note(self._words())]


def coefficients(model: FittedModel, ask: Ask) -> Coefficients:
    """Return all coefficients with their intervals."""
    rows = []
    for arm, label in enumerate(model.arms):
        regression = model.regression(arm)
        rows += [_coefficient(model, arm, label, regression, each, ask) for each in model.terms(ask.base)]
    return Coefficients(rows, ask, model.words(ask))


def _coefficient(model: FittedModel, arm: int, label: Arm, regression: Regression, term: Term, ask: Ask) -> Coefficient:
    name, direction, base = term
    why = model.why_not(regression, name, direction, base)
    value = regression.value(direction) if regression.tells(direction) else None
    if why is not None:
        return Coefficient(label, name, value, None, None, None, regression.rows, why, base)
    half = model.half_width(arm, regression, direction, ask)
    error = None if model.rows == "chosen" else regression.error(direction)
    if value is None or half is None:
        return Coefficient(label, name, value, None, None, None, regression.rows, model.why_no_width, base)
    return Coefficient(label, name, value, error, value - half, value + half, regression.rows, base=base)


@dataclass(frozen=True, slots=True)
class ArmRow:
    """What an arm's rows look like."""

    arm: Arm
    rows: float
    mean: float | None  # of rewards, in the user's sense
    noise: float | None  # the deviation of rewards about the regression
    state: str  # "plays" or "retired"


@dataclass(frozen=True, slots=True, repr=False)
class Summary(Result):
    """A model that people can read: its arms and its coefficients. Printed, it is two tables."""

    title: str
    arms: list[ArmRow]
    coefficients: Coefficients

    def __str__(self) -> str:
        return f"{self.title}\n\n{table_text(self._arm_columns())}\n\n{self.coefficients}"

    def _arm_columns(self) -> Columns:
        return {name: [getattr(row, name) for row in self.arms] for name in ("arm", "rows", "mean", "noise", "state")}

    def columns(self) -> Columns:
        """Return the coefficients by columns."""
        return self.coefficients.columns()

    def plot(self) -> Figure:
        """Draw the coefficients and their intervals, one panel a feature; needs `armlet[plots]`."""
        return self.coefficients.plot()

    def _title(self) -> str:
        return "Summary"

    def _answer(self) -> str:
        return " ".join(self.title.splitlines())

    def _html(self) -> Iterable[str]:
        return [notebook.table(self._arm_columns()), *self.coefficients._html()]


def summary(model: FittedModel, ask: Ask, retired: Sequence[Arm]) -> Summary:
    """Return the summary of a model."""
    rows = []
    for arm, label in enumerate(model.arms):
        regression, n = model.regression(arm), float(model.state.n[arm])
        noise = regression.deviation if regression.is_enough else None
        rows.append(ArmRow(label, n, _mean(model, arm, regression), noise, "retired" if label in retired else "plays"))
    what = "rewards" if model.settings.objective == "max" else "costs"
    scaled = ", of contexts scaled to length 1" if model.settings.normalize == "l2" else ""
    title = f"{notebook.brief(model.settings.policy)}\n{model.t} decisions; {what}{scaled}, in units as they were given"
    return Summary(title, rows, coefficients(model, ask))


def _mean(model: FittedModel, arm: int, regression: Regression) -> float | None:
    if regression.rows <= 0:
        return None
    return (
        regression.level
        if regression.has_constant
        else model.settings.sign * float(model.state.sum_r[arm]) / regression.rows
    )


@dataclass(frozen=True, slots=True, repr=False)
class Explanation(Result):
    """The estimate of every arm in one context, taken apart: base + contributions = total.

    In free units the base is what an arm is expected to give in the mean context of all rows, and a feature contributes
    what its distance from the mean adds; in units as given the base is 0 and a feature contributes theta_j x_j.
    """

    arms: list[Arm]
    features: list[str]
    base: Float64  # (K,)
    contributions: Float64  # (K, d)
    ranked: list[Arm]  # those that may be played, the best estimate first

    @property
    def total(self) -> Float64:
        """The estimate of each arm, (K,)."""
        return np.asarray(self.base + self.contributions.sum(axis=1))

    def of(self, arm: Arm) -> dict[str, float]:
        """Return what each feature adds for one arm."""
        if arm not in self.arms:
            raise UnknownNameError(f"arm {arm!r} is not one of {self.arms}")
        return dict(zip(self.features, self.contributions[self.arms.index(arm)].tolist(), strict=True))

    def columns(self) -> Columns:
        """Return the table by columns, one row an arm."""
        parts = dict(zip(self.features, self.contributions.T.tolist(), strict=True))
        return {"arm": list(self.arms), "estimate": self.total.tolist(), "base": self.base.tolist(), **parts}

    def to_dict(self) -> dict[str, object]:
        """Return everything in plain JSON types."""
        rows = zip(self.arms, self.total, self.base, strict=True)
        arms = [{"arm": arm, "estimate": t, "base": b, "contributions": self.of(arm)} for arm, t, b in rows]
        return {"arms": plain(arms), "ranked": list(self.ranked)}

    def plot(self) -> Figure:
        """Draw how features add up to the estimates of the best arm and of the next; needs `armlet[plots]`."""
        from armlet.inference.drawings import waterfall

        return waterfall(self)

    def _title(self) -> str:
        return "Estimates"

    def _answer(self) -> str:
        total = dict(zip(self.arms, self.total.tolist(), strict=True))
        best = [f"{arm}: {total[arm]:.4g}" for arm in self.ranked[:2]]
        return f"Best estimate {', then '.join(best)}." if best else "No arm may be played."

    def _html(self) -> Iterable[str]:
        """Show one column an arm, as there are more features than arms; the best first, the largest part on top."""
        order = [*self.ranked, *(arm for arm in self.arms if arm not in self.ranked)][:ACROSS]
        rows = [self.arms.index(arm) for arm in order]
        parts = np.argsort(-np.abs(self.contributions[rows]).max(axis=0, initial=0.0), kind="stable")
        named = ["estimate", "base", *(self.features[j] for j in parts)]
        values = np.column_stack([self.total[rows], self.base[rows], self.contributions[rows][:, parts]])
        shown = {"": named, **{str(arm): row for arm, row in zip(order, values.tolist(), strict=True)}}
        left = len(self.arms) - len(order)
        return [notebook.table(shown), notebook.note(f"{left:,} more arms" if left > 0 else "")]


def explanation(
    arms: list[Arm], playable: Bool, features: list[str], row: Float64, theta: Float64, base: float, sign: float
) -> Explanation:
    """Split estimates into contributions: row is x, or (1, z) in free units."""
    parts = sign * theta * row + 0.0  # no -0
    bases, parts = (
        (np.zeros(len(arms)), parts) if len(row) == len(features) else (sign * base + parts[:, 0], parts[:, 1:])
    )
    order = np.argsort(-sign * (bases + parts.sum(axis=1)), kind="stable")
    return Explanation(arms, features, bases, parts, [arms[place] for place in order if playable[place]])
