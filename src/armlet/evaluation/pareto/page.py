"""A Pareto curve as one HTML page that opens from disk: the curve drawn, what it rests on, numbers, checks, limits."""

from __future__ import annotations

import math
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

import numpy as np

from armlet.evaluation.page import checks_table, cut, listed
from armlet.evaluation.pareto.curve import FRONTIER, LOGGED, OPEN, ParetoCurve
from armlet.report import notebook, plots
from armlet.report.document import Section, Table, check_pictures, document, figure, folded_section, table
from armlet.report.numbers import percent
from armlet.report.plots import COLOURS, GREY, INK, Picture, legend, page_picture, point_style, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST: Final = 5  # policies with a colour of their own
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
    shown = names if len(names) <= MOST else []
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
