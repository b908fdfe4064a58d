"""A Pareto curve: what every dial would have had of every outcome, which are on the frontier, drawn and as a page."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

import numpy as np

from armlet.evaluation.checks import Check
from armlet.evaluation.page import checks_table, cut, listed
from armlet.evaluation.provenance import Provenance
from armlet.report import notebook, plots
from armlet.report.document import Section, Table, check_pictures, document, figure, folded_section, table
from armlet.report.numbers import column, percent, show
from armlet.report.plots import COLOURS, GREY, INK, Picture, legend, page_picture, point_style, short
from armlet.report.result import WIDTH, Answered, Columns, fields_of, table_text
from armlet.types import Bool, Estimate, Float64

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOGGED: Final = "logged"
FRONTIER: Final = "frontier"
BEHIND: Final = "behind"
DOMINATED: Final = "dominated"
OPEN: Final = "not judged"
MOST: Final = 60  # values in a table for people


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class ParetoCurve(Answered):
    """The answer of `armlet.evaluate(..., dials=)`: P values, the first of them that of what ran.

    `standing` says of each: "frontier", no other value is better in one outcome of the curve and as good in the other;
    "behind", one is; "dominated", one is for certain, by intervals that hold together; "not judged", and `notes` why.
    """

    curve: tuple[str, str]
    """The outcome that is drawn, and the one against which."""
    senses: tuple[float, float]
    """1.0 where more of it is better, -1.0 where less is."""
    policies: tuple[str, ...]  # P
    dials: tuple[str, ...]  # P: what each is called; empty where there is no dial
    weights: tuple[Mapping[str, float] | None, ...]  # P: of outcomes in each dial
    values: Mapping[str, Float64]
    """By outcome, (P,): its mean a decision; NaN where the log does not tell."""
    low: Mapping[str, Float64]
    """The lower ends of intervals that hold together, for all outcomes, policies and dials; NaN where there is none."""
    high: Mapping[str, Float64]
    counted: tuple[str, ...]
    """Outcomes that are known of every arm and were counted, exactly, over all decisions of the log."""
    effective_rows: Float64  # (P,)
    standing: tuple[str, ...]  # P
    notes: tuple[str, ...]  # P
    rows: int
    """Decisions in the log."""
    told: int
    """Those that tell all outcomes that are not counted; the others are left out."""
    units: int | None
    level: float
    each: float
    """The level of each interval by itself, at which all hold together."""
    warnings: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    made: Provenance | None = None

    def __len__(self) -> int:
        return len(self.policies)

    @property
    def frontier(self) -> list[int]:
        """The places of the values on the frontier, in the order of the second outcome."""
        places = [place for place, word in enumerate(self.standing) if word == FRONTIER]
        return sorted(places, key=lambda place: float(self.values[self.curve[1]][place]))

    @property
    def answer(self) -> str:
        """Which dial would have had as much as what ran for less, in a sentence."""
        return f"On {self.told:,} decisions {self._found()}."

    def _found(self) -> str:
        y, x = self.curve
        chosen = self._headline()
        if chosen is None:
            return f"no dial can be judged: {next((note for note in self.notes[1:] if note), 'there is none')}"
        ran = f"{y} {self._shown(y, 0)} at {x} {self._shown(x, 0)}"
        had = f"would have had {y} {self._shown(y, chosen)} at {x} {self._shown(x, chosen)}"
        return f"{self.called(chosen)} {had}{self._share(chosen)}; what ran had {ran}"

    def _headline(self) -> int | None:
        """Return the value on the frontier that is as good as what ran in the first outcome, and best in the second."""
        y, x = (sense * self.values[name] for name, sense in zip(self.curve, self.senses, strict=True))
        judged = [place for place in range(1, len(self)) if self.standing[place] != OPEN]
        if not judged:
            return None
        equal = [place for place in judged if y[place] >= y[0]]
        return max(equal, key=lambda at: (x[at], y[at])) if equal else max(judged, key=lambda at: (y[at], x[at]))

    def called(self, place: int) -> str:
        """Return what a value is called in a sentence."""
        whose = f"{self.policies[place]} with " if len(set(self.policies[1:])) > 1 else ""
        if place == 0:
            return "what ran"
        return f"{whose}a dial of {self.dials[place]}" if self.dials[place] else self.policies[place]

    def _share(self, place: int) -> str:
        x = self.values[self.curve[1]]
        positive = self.senses[1] < 0 and x[place] >= 0.0 and x[0] > 0.0
        return f", {percent(float(x[place] / x[0]))} of what ran spent" if positive else ""

    def _shown(self, name: str, place: int) -> str:
        return show(self._estimate(name, place))

    def _estimate(self, name: str, place: int) -> Estimate | None:
        """Return a value with its interval; None if it needs one and has none."""
        value, low, high = (float(each[name][place]) for each in (self.values, self.low, self.high))
        if name in self.counted:
            return Estimate(value, value, value)
        return None if math.isnan(low) else Estimate(value, low, high)

    def basis(self) -> str:
        """Return what the answer rests on."""
        of = "" if self.units is None else f", in {self.units:,} units that count as one draw each"
        sentences = [
            f"{self.told:,} of {self.rows:,} decisions have their outcomes{of}.",
            f"Intervals of all {len(self):,} values hold together at {percent(self.level)}, each at "
            f"{percent(self.each)}, so those of a dial hold although it was selected.",
        ]
        if self.counted:
            names = " and ".join(self.counted)
            sentences.append(f"What is known of arms, {names}, was counted over all decisions: it has no interval.")
        words = {word: self.standing.count(word) for word in (FRONTIER, BEHIND, DOMINATED, OPEN)}
        sentences.append(", ".join(f"{count:,} {word}" for word, count in words.items() if count) + ".")
        return " ".join(sentences)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON types."""
        return {"answer": self.answer, **fields_of(self)}

    def columns(self) -> Columns:
        """Return a row for every policy and dial, what ran first."""
        columns: Columns = {"policy": list(self.policies), "dial": [dial or None for dial in self.dials]}
        weighed = next((each for each in self.weights if each is not None), {})
        for name in weighed:
            columns[f"weight_{name}"] = [None if each is None else each[name] for each in self.weights]
        for name in self.values:
            for word, part in (("", self.values), ("_low", self.low), ("_high", self.high)):
                columns[name + word] = [None if math.isnan(each) else each for each in part[name].tolist()]
        return columns | {"effective_rows": self.effective_rows.tolist(), "standing": list(self.standing)}

    def table(self) -> tuple[Columns, int]:
        """Return the table for people, and how many values it leaves out: if there are many, all but the frontier."""
        places = list(range(len(self)))
        if len(places) > MOST:
            front = self.frontier
            some = np.linspace(0, len(front) - 1, min(len(front), MOST - 1)).astype(int)
            places = [0, *(front[i] for i in some if front[i])]
        shown: Columns = {
            "policy": [self.policies[place] for place in places],
            "dial": [self.dials[place] or "-" for place in places],
        }
        for name in self.values:
            estimates = [self._estimate(name, place) for place in places]
            shown[name] = [
                "none" if each is None else text for each, text in zip(estimates, column(estimates), strict=True)
            ]
        shown["effective rows"] = [f"{self.effective_rows[place]:,.0f}" for place in places]
        return shown | {"standing": [self.standing[place] for place in places]}, len(self) - len(places)

    def __str__(self) -> str:
        shown, left_out = self.table()
        lines = [*textwrap.wrap(self.answer, WIDTH), "", *textwrap.wrap(self.basis(), WIDTH), "", table_text(shown)]
        lines += [f"{left_out:,} more: to_pandas() has all"] if left_out else []
        for warning in self.warnings:
            lines += textwrap.wrap(f"! {warning}", WIDTH, subsequent_indent="  ")
        return "\n".join(lines)

    def plot(self) -> Figure:
        """Draw one outcome against the other, with the frontier and what ran; needs `armlet[plots]`."""
        return curve_figure(self)

    def _html(self) -> Iterable[str]:

        return notebook_parts(self)

    def _page(self) -> str:

        return render(self)


def standings(values: Float64, low: Float64, high: Float64, judged: Bool) -> tuple[str, ...]:
    """Return the standing of P values of two outcomes of which more is better, (P, 2) each.

    Examples
    --------
    >>> values = np.array([[0.9, -3.0], [0.8, -1.0], [0.7, -2.0], [0.79, -1.0]])
    >>> standings(values, values - 0.05, values + 0.05, np.array([True, True, True, True]))
    ('frontier', 'frontier', 'dominated', 'behind')
    """
    places = np.flatnonzero(judged)
    some = [np.ascontiguousarray(part[places]) for part in (values, low, high)]
    behind = _beaten(some[0], some[0]) | _beaten(some[0][:, ::-1], some[0][:, ::-1])
    surely = _beaten(some[1], some[2]) | _beaten(some[1][:, ::-1], some[2][:, ::-1])
    words = np.full(len(values), OPEN, dtype=object)
    words[places] = np.where(surely, DOMINATED, np.where(behind, BEHIND, FRONTIER))
    return tuple(words.tolist())


def _beaten(better: Float64, than: Float64) -> Bool:
    """Return for which rows of `than` some row of `better` is higher in the first column and no lower in the second."""
    order = np.argsort(-better[:, 1], kind="stable")
    best = np.maximum.accumulate(better[order, 0]) if len(order) else better[:, 0]
    at = np.searchsorted(-better[order, 1], -than[:, 1], side="right") - 1  # the last that is no lower
    return np.asarray((at >= 0) & (best[np.maximum(at, 0)] > than[:, 0])) if len(order) else np.zeros(0, dtype=np.bool_)


COLOURED: Final = 5  # policies with a colour of their own
NAMED: Final = 5  # dials that are named
LIMITS: Final = (
    "Values are of the contexts and outcomes of this log, in its time: nothing here says that they stay.",
    "A policy that would change who comes, or what they expect, is valued as if it did not.",
    "The dial that looks best looks better than it is. Its interval allows for that, its value does not; a gate on "
    "later rows settles whether it should be shipped.",
    "Intervals are right for one look, at a number of rows that was fixed beforehand.",
)


def render(result: ParetoCurve) -> str:
    """Return the page; of one result always the same."""
    drawn = picture(result)
    check_pictures([drawn])
    shown, left_out = result.table()
    caption = f"Values, and intervals that hold together at {percent(result.level)}"
    rows = tuple(zip(*shown.values(), strict=True))
    more = [f"<p>{left_out:,} more: to_pandas() has all.</p>"] if left_out else []
    parts: list[str | Section] = [
        figure(drawn),
        f"<p>{escape(result.basis())}</p>",
        *([listed(result.warnings)] if result.warnings else []),
        folded_section("numbers", "Numbers", [table(Table(caption=caption, head=tuple(shown), rows=rows)), *more]),
        *([folded_section("checks", "Checks", [checks_table(result.checks)])] if result.checks else []),
        folded_section("limits", "What this cannot tell", [listed(LIMITS)]),
    ]
    return document("Pareto curve", result.answer, parts, {} if result.made is None else result.made.lines())


def notebook_parts(result: ParetoCurve) -> list[str]:
    """Return what a curve shows in a notebook below its answer."""
    key = f"pareto-{crc32(str(result).encode()):08x}"
    drawn = [figure(picture(result, key=key))] if find_spec("matplotlib") else []
    return [*drawn, notebook.table(result.table()[0]), notebook.note(result.basis())]


def picture(result: ParetoCurve, *, key: str = "pareto") -> Picture:
    """Return the figure for a page, or under another key for a notebook."""
    y, x = result.curve
    whiskers = "" if x in result.counted else " and sideways"
    caption = (
        f"{y} against {x}, a decision. The line joins the frontier; whiskers{whiskers} are intervals that hold "
        f"together at {percent(result.level)}. Grey: behind. Values that are not judged are not drawn."
    )
    return page_picture(curve_figure(result), key=key, alt=result.answer, caption=caption)


def curve_figure(result: ParetoCurve) -> Figure:
    """Draw values with their intervals, the frontier, and what ran."""
    names = list(dict.fromkeys(result.policies[1:]))
    shown = names if len(names) <= COLOURED else []
    labels = [cut(name) for name in shown] + ["frontier", "what ran"]
    with plots.frame(height=3.6, labels=labels) as (drawn, axes):
        y, x = result.curve
        for index, name in enumerate(shown or ["policies"]):
            here = [i for i in range(1, len(result)) if not shown or result.policies[i] == name]
            _draw_policy(axes, result, here, index, cut(name))
        _draw_frontier(axes, result)
        _whiskers(axes, result, 0, INK)
        axes.plot(result.values[x][0], result.values[y][0], color=INK, marker="D", linestyle="none", label="what ran")
        spread = result.values[x][np.isfinite(result.values[x])]
        if spread.size and spread.min() > 0.0 and spread.max() > 10.0 * spread.min():
            axes.set_xscale("log")
            plots.plain_numbers(axes.xaxis)
        else:
            axes.xaxis.set_major_formatter(lambda value, _: short(value))
        axes.set(xlabel=f"{x} a decision", ylabel=f"{y} a decision")
        axes.yaxis.set_major_formatter(lambda value, _: short(value))
        legend(drawn, axes)
    return drawn


def _draw_policy(axes: Axes, result: ParetoCurve, here: list[int], index: int, label: str) -> None:
    """Draw the values of one policy that are judged: those behind in grey."""
    y, x = result.curve
    style = point_style(index)
    front = [place for place in here if result.standing[place] == FRONTIER]
    others = [place for place in here if result.standing[place] not in (FRONTIER, OPEN)]
    for places, colour, size in ((others, GREY, 3), (front, style["color"], 5)):
        if len(here) <= 200:
            for place in places:
                _whiskers(axes, result, place, colour)
        name = label if places is front else None
        how: dict[str, Any] = {"linestyle": "none", "markersize": size, **style, "color": colour}
        axes.plot(result.values[x][places], result.values[y][places], label=name, **how)


def _whiskers(axes: Axes, result: ParetoCurve, place: int, colour: str) -> None:
    y, x = result.curve
    at = (float(result.values[x][place]), float(result.values[y][place]))
    if result.standing[place] == OPEN or not all(map(math.isfinite, at)):
        return
    style: dict[str, Any] = {"color": colour, "linewidth": 1.0, "alpha": 0.7}
    axes.plot((at[0], at[0]), (result.low[y][place], result.high[y][place]), **style)
    axes.plot((result.low[x][place], result.high[x][place]), (at[1], at[1]), **style)


def _draw_frontier(axes: Axes, result: ParetoCurve) -> None:
    y, x = result.curve
    front = result.frontier
    axes.plot(result.values[x][front], result.values[y][front], color=COLOURS[0], linewidth=1.2, label="frontier")
    dialed = [place for place in front if result.policies[place] != LOGGED]
    chosen = sorted({dialed[i] for i in np.linspace(0, len(dialed) - 1, NAMED).astype(int)}) if dialed else []
    for place in chosen:
        name = result.dials[place] or cut(result.policies[place])
        at = (float(result.values[x][place]), float(result.values[y][place]))
        axes.annotate(name, at, (5, -12), textcoords="offset points", fontsize=10)
