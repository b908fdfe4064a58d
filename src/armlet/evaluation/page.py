"""An evaluation as one HTML page that opens from disk: values, how they settled, weights, checks, and their limits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

import numpy as np

from armlet.evaluation.checks import Check, Word, shown
from armlet.evaluation.monitor import ValuePath, WeightHistogram
from armlet.evaluation.result import Evaluation, Value, is_logged, valued
from armlet.report import notebook, plots
from armlet.report.document import Section, Table, check_pictures, document, figure, folded_section, table
from armlet.report.numbers import percent, show
from armlet.report.plots import (
    COLOURS,
    DASHES,
    GREY,
    INK,
    Picture,
    legend,
    line_style,
    page_picture,
    point_style,
    short,
)
from armlet.types import Int64

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CLASSES: Final = {Word.FINE: "yes", Word.WARNING: "partly", Word.REFUSED: "no"}
SIGNS: Final = {Word.FINE: "✓", Word.WARNING: "!", Word.REFUSED: "✗"}
MOST: Final = 6  # paths or histograms in a figure
FIXED: Final = "fixed sample"
ANYTIME: Final = "anytime-valid"


def render(result: Evaluation) -> str:
    """Return the page: the answer, values drawn, what it rests on, the rest folded; of one result always the same."""
    drawn = {"forest": forest(result)}
    if paths := [path for path in result.paths if path.rows.size]:
        drawn["running"] = running(paths, ylabel=f"mean {result.unit}", level=result.level)
    if spreads := [spread for spread in result.spreads if spread.rows.sum()]:
        drawn["weights"] = weights(spreads)
    check_pictures(list(drawn.values()))
    without = _without_path(result, paths)
    parts: list[str | Section] = [
        figure(drawn["forest"]),
        f"<p>{escape(' '.join(result.basis()))}</p>",
        folded_section("numbers", "Numbers", _numbers(result)),
        *([folded_section("running", "As rows came in", [figure(drawn["running"]), *without])] if paths else []),
        *([folded_section("weights", "Weights", [figure(drawn["weights"])])] if spreads else []),
        *([folded_section("checks", "Checks", [checks_table(result.checks)])] if result.checks else []),
        folded_section("limits", "What this cannot tell", [listed(limits(result))]),
    ]
    return document("Off-policy evaluation", result.answer, parts, {} if result.made is None else result.made.lines())


def notebook_parts(result: Evaluation) -> list[str]:
    """Return what an evaluation shows in a notebook below its answer: values, differences, and what it rests on.

    Values are also drawn where matplotlib is installed; in a notebook nothing else tells two figures apart, so the
    names inside are made of what is drawn.
    """
    key = f"forest-{crc32(str(result).encode()):08x}"
    drawn = [figure(forest(result, key=key))] if find_spec("matplotlib") else []
    tables = [result.value_rows()] + ([result.difference_rows()] if result.differences else [])
    shown = [notebook.table({name: [row[i] for row in rows] for i, name in enumerate(head)}) for head, rows in tables]
    return [*drawn, *shown, notebook.note(" ".join(result.basis()))]


def _numbers(result: Evaluation) -> list[str]:
    head, rows = result.value_rows()
    caption = f"Values: {percent(result.level)} intervals for a {FIXED}, and {ANYTIME} ones"
    parts = [table(Table(caption=caption, head=head, rows=tuple(rows)))]
    if result.differences:
        head, rows = result.difference_rows()
        caption = result.compared()
        parts.append(table(Table(caption=caption[:1].upper() + caption[1:], head=head, rows=tuple(rows))))
    return parts + ([listed(result.notes())] if result.notes() else [])


def _without_path(result: Evaluation, paths: Sequence[ValuePath]) -> list[str]:
    """Return why some values have no path."""
    drawn = {path.name for path in paths[:MOST]}
    gone = [each.name for each in result.values.values() if each.name not in drawn and not is_logged(each)]
    if not gone:
        return []
    text = (
        f"Not drawn: {', '.join(gone)}. There is no path of what was learned from these very rows or is refused, and "
        f"room for {MOST}."
    )
    return [f"<p>{escape(text)}</p>"]


def checks_table(checks: Sequence[Check]) -> str:
    """Show the worst ones first."""
    order = list(reversed(Word))
    rows = [
        f'<tr role="row"><th scope="row" role="rowheader">{escape(_whose(check))}'
        f"<small>{escape(check.sentence)}</small></th>"
        f'<td role="cell" class="number">{escape(_measured(check))}</td><td role="cell">{_badge(check.word)}</td></tr>'
        for check in sorted(checks, key=lambda check: order.index(check.word))
    ]
    names = "".join(f'<th scope="col">{name}</th>' for name in ("Check", "Number", "Word"))
    body = "\n".join(rows)
    return (
        '<table class="stack" role="table"><caption>What was looked at before any value was believed</caption>'
        f"<thead><tr>{names}</tr></thead><tbody>\n{body}\n</tbody></table>"
    )


def _whose(check: Check) -> str:
    name = check.name[0].upper() + check.name[1:]
    return name if check.target is None else f"{name}, {check.target}"


def _measured(check: Check) -> str:
    first = check.unit in ("p-value", "share")
    return f"{check.unit} {shown(check.number)}" if first else f"{shown(check.number)} {check.unit}"


def _badge(word: Word) -> str:
    sign = f'<span class="sign" aria-hidden="true">{SIGNS[word]}</span>'
    return f'<span class="verdict {CLASSES[word]}">{sign}{escape(word)}</span>'


def listed(sentences: Iterable[str]) -> str:
    """Return sentences as a list."""
    return "<ul>\n" + "\n".join(f"<li>{escape(sentence)}</li>" for sentence in sentences) + "\n</ul>"


def limits(result: Evaluation) -> list[str]:
    """Return what a value does not say: what holds of every log, and what holds of this one."""
    sentences = [
        "A value is of the contexts and rewards of this log, in its time. Nothing here says that they stay.",
        "A policy that would change who comes, or what they expect, is valued as if it did not.",
        f"An interval for a {FIXED} is right for one look, at a number of rows that was fixed beforehand. To look "
        f"again and again, and to stop when it suits, take the {ANYTIME} one.",
        "Intervals are about chance alone. Rewards that were measured wrongly are valued wrongly.",
    ]
    if result.differences:
        sentences.append(
            "Differences hold together. The highest of several values is too high on average, because it was chosen."
        )
    if not any(each.anytime for each in result.values.values()):
        sentences.append("No range of rewards was declared, so there is no anytime-valid interval.")
    if any(check.name.startswith("drift") and check.word is not Word.FINE for check in result.checks):
        sentences.append("The environment changed during this log, so that no value here need hold for its end.")
    return sentences


def forest(result: Evaluation, *, key: str = "forest") -> Picture:
    """Return the figure of values for a page, or under another key for a notebook."""
    alt = "; ".join(_in_words(line) for line in result.values.values())
    side = "higher" if result.objective == "max" else "lower"
    caption = (
        f"Values, of which {side} is better, with {percent(result.level)} intervals. "
        f"The dashed line is at {result.baseline}, to which differences are taken."
    )
    return page_picture(forest_figure(result), key=key, alt=f"Value of every policy: {alt}", caption=caption)


def forest_figure(result: Evaluation) -> Figure:
    """Draw values with their intervals, fixed ones thick and sequences thin, and a line at the baseline's value."""
    lines = list(result.values.values())
    kinds = _kinds(lines)
    with plots.frame(height=1.1 + 0.42 * len(lines), labels=kinds) as (figure, axes):
        for place, line in enumerate(lines):
            _draw_line(axes, place, line)
        base = next((line.value for line in lines if line.name == result.baseline and line.interval), math.nan)
        if not math.isnan(base):
            axes.axvline(base, color=INK, linestyle=DASHES[1], linewidth=1.2)
        for kind in kinds:
            axes.plot([], [], label=kind, **_style(kind))
        axes.set_yticks(range(len(lines)), [cut(line.name) for line in lines])
        axes.set_ylim(len(lines) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(f"mean {result.unit} a decision")
        axes.xaxis.set_major_formatter(lambda value, _: short(value))
        legend(figure, axes)
    return figure


def _draw_line(axes: Axes, place: int, line: Value) -> None:
    if math.isnan(line.value):
        style: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "va": "center"}
        axes.annotate("refused: see the checks", (0, place), (4, 0), **style)
        return
    colour = GREY if line.doubtful else COLOURS[0]
    if line.anytime is not None:
        axes.plot(line.anytime, (place, place), color=colour, linewidth=1.2)
        axes.plot(line.anytime, (place, place), color=colour, marker="|", linestyle="none", markersize=7)
    if line.interval is not None:
        axes.plot(line.interval, (place, place), color=colour, linewidth=5, alpha=0.75, solid_capstyle="butt")
        axes.plot(line.value, place, color=colour, marker="D" if line.doubtful else "s", markersize=6)


def _kinds(lines: Sequence[Value]) -> list[str]:
    kinds = {
        FIXED: any(line.interval is not None and not line.doubtful for line in lines),
        ANYTIME: any(line.anytime is not None for line in lines),
    }
    doubts = dict.fromkeys(line.doubtful for line in lines if line.doubtful)
    return [kind for kind, there in kinds.items() if there] + list(doubts)


def _style(kind: str) -> dict[str, Any]:
    if kind == ANYTIME:
        return {"color": COLOURS[0], "linewidth": 1.2, "marker": "|"}
    if kind == FIXED:
        return {"color": COLOURS[0], "linewidth": 5, "alpha": 0.75}
    return {"color": GREY, "marker": "D", "linestyle": "none"}


def _in_words(line: Value) -> str:
    if math.isnan(line.value):
        return f"{line.name} refused"
    return f"{line.name} {valued(line)}"


def running(paths: Sequence[ValuePath], *, ylabel: str, level: float) -> Picture:
    """Draw how values settled as rows came in, with their confidence sequences."""
    paths = list(paths)[:MOST]
    faint = 0.16 if len(paths) < 3 else 0.06  # bands lie over each other
    with plots.frame(height=3.2, labels=[cut(path.name) for path in paths]) as (figure, axes):
        for index, path in enumerate(paths):
            style = line_style(index)
            colour = style["color"]
            axes.plot(path.rows, path.value, label=cut(path.name), **style)
            there = np.isfinite(path.low) & np.isfinite(path.high)
            axes.fill_between(path.rows, path.low, path.high, where=there, color=colour, alpha=faint, linewidth=0)
            for end in (path.low, path.high):
                axes.plot(path.rows, end, color=colour, linewidth=0.9)
        axes.set(xscale="log", xlabel="rows so far (log scale)", ylabel=ylabel)
        axes.set_ylim(*_window(paths))
        axes.xaxis.set_major_formatter(lambda value, _: short(value))
        axes.xaxis.set_minor_formatter(lambda *_: "")
        axes.yaxis.set_major_formatter(lambda value, _: short(value))
        legend(figure, axes)
    alt = "; ".join(f"{path.name} {show(float(path.value[-1]))} after {path.rows[-1]:,} rows" for path in paths)
    banded = any(np.isfinite(path.low).any() for path in paths)
    caption = "Every value after so many rows whose arm was drawn by chance." + (
        f" Bands are {ANYTIME} at {percent(level)}: you may stop wherever you like." if banded else ""
    )
    return page_picture(figure, key="running", alt=f"How values settled: {alt}", caption=caption)


def _window(paths: Sequence[ValuePath]) -> tuple[float, float]:
    """Return limits that hold all values, and all sequences from a tenth of the rows on."""
    seen: list[float] = []
    for path in paths:
        late = path.rows >= path.rows[-1] / 10
        seen += [float(v) for part in (path.value, path.low, path.high) for v in part[late] if math.isfinite(v)]
    low, high = min(seen, default=0.0), max(seen, default=1.0)
    room = 0.08 * (high - low) or 0.1
    return low - room, high + room


def weights(spreads: Sequence[WeightHistogram]) -> Picture:
    """Draw how many rows have which weight."""
    spreads = list(spreads)[:MOST]
    with plots.frame(height=2.8, labels=[cut(spread.name) for spread in spreads]) as (figure, axes):
        for index, spread in enumerate(spreads):
            style = {"linewidth": 1.4, "markersize": 5, **point_style(index)}
            axes.plot(2.0 ** (spread.powers + 0.5), spread.rows, label=cut(spread.name), **style)
        axes.set(xscale="log", yscale="log", xlabel="weight (log scale)", ylabel="rows (log scale)")
        for axis in (axes.xaxis, axes.yaxis):
            plots.plain_numbers(axis)
        axes.axvline(1.0, color=INK, linestyle=DASHES[2], linewidth=1.2)
        legend(figure, axes)
    alt = "; ".join(f"{spread.name} {_range(spread.powers)}, {spread.zeros:,} rows of weight 0" for spread in spreads)
    caption = (
        "Rows by their weight: how much likelier the policy was to play the logged arm than the logger. "
        "Far to the right few rows carry much, and intervals are wide."
    )
    return page_picture(figure, key="weights", alt=f"Weights of rows: {alt}", caption=caption)


def _range(powers: Int64) -> str:
    return f"from {2.0 ** powers[0]:.3g} to {2.0 ** (powers[-1] + 1):.3g}" if powers.size else "none"


def cut(name: str, most: int = 18) -> str:
    """Shorten a name that would not leave room for the figure.

    Examples
    --------
    >>> cut("the policy of last summer")
    'the policy of las…'
    """
    return name if len(name) <= most else f"{name[: most - 1]}…"
