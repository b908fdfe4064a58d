"""The figures of an evaluation: values beside each other, how they settled, and the weights they rest on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from armlet.inference.intervals import LEVEL, Estimate, Interval
from armlet.report import plots
from armlet.report.document import show
from armlet.report.plots import COLOURS, DASHES, INK, MARKERS, Picture, legend, short
from armlet.types import Float64, Int64

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GREY: Final = "#808890"
MOST: Final = 6  # paths or histograms in a figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One policy of a forest plot."""

    name: str
    value: float | None  # None where it is refused
    fixed: Interval | None
    anytime: Interval | None
    grey: str = ""  # why it cannot be believed


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """The value of one policy after so many rows, with its sequence where it has one."""

    name: str
    rows: Int64  # (looks,)
    value: Float64  # (looks,)
    low: Float64  # (looks,): NaN where there is no sequence
    high: Float64


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """How the weights of one policy are spread: rows between each power of 2 and the next."""

    name: str
    powers: Int64  # (bins,): a bin holds weights from 2^power on, to below twice that
    rows: Int64  # (bins,)
    zeros: int  # rows of weight 0


def forest(lines: Sequence[Line], *, baseline: str | None, xlabel: str, level: float = LEVEL) -> Picture:
    """Draw values with their intervals, fixed ones thick and sequences thin, and a line at the baseline's value.

    Examples
    --------
    >>> lines = [
    ...     Line(name="logged", value=0.5, fixed=Interval(0.4, 0.6), anytime=None),
    ...     Line(name="new", value=0.6, fixed=Interval(0.5, 0.7), anytime=Interval(0.4, 0.8), grey="few rows"),
    ...     Line(name="none", value=None, fixed=None, anytime=None),
    ... ]
    >>> forest(lines, baseline="logged", xlabel="mean reward").svg[:4]
    '<svg'
    """
    with plots.frame(height=1.1 + 0.42 * len(lines), labels=_kinds(lines)) as (figure, axes):
        for place, line in enumerate(lines):
            _draw_line(axes, place, line)
        shown = next((line.value for line in lines if line.name == baseline), None)
        if shown is not None:
            axes.axvline(shown, color=INK, linestyle=DASHES[1], linewidth=1.2)
        for kind in _kinds(lines):
            axes.plot([], [], label=kind, **_looks(kind))
        axes.set_yticks(range(len(lines)), [cut(line.name) for line in lines])
        axes.set_ylim(len(lines) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(xlabel)
        axes.xaxis.set_major_formatter(lambda value, _: short(value))
        legend(figure, axes)
    told = "; ".join(_told(line) for line in lines)
    caption = f"Values with {100 * level:g} % intervals. " + (
        "" if baseline is None else f"The dashed line is at {baseline}, to which differences are taken."
    )
    return _picture(figure, key="forest", alt=f"Value of every policy: {told}", caption=caption.strip())


def running(paths: Sequence[Path], *, ylabel: str) -> Picture:
    """Draw how values settled as rows came in, with sequences that hold at every look.

    Examples
    --------
    >>> rows, value = np.array([10, 100]), np.array([0.4, 0.5])
    >>> path = Path(name="new", rows=rows, value=value, low=value - 0.1, high=value + 0.1)
    >>> running([path], ylabel="mean reward").caption[:11]
    'Every value'
    """
    paths = list(paths)[:MOST]
    faint = 0.16 if len(paths) < 3 else 0.06  # bands lie over each other
    with plots.frame(height=3.2, labels=[cut(path.name) for path in paths]) as (figure, axes):
        for index, path in enumerate(paths):
            colour = COLOURS[index % 6]
            axes.plot(path.rows, path.value, color=colour, linestyle=DASHES[index % 6], label=cut(path.name))
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
    told = "; ".join(f"{path.name} {path.value[-1]:.3g} after {path.rows[-1]:,} rows" for path in paths)
    banded = any(np.isfinite(path.low).any() for path in paths)
    caption = "Every value after so many rows whose arm was drawn by chance." + (
        " Bands hold at all looks at once with 95 %, so that you may stop at any of them." if banded else ""
    )
    return _picture(figure, key="running", alt=f"How values settled: {told}", caption=caption)


def weights(spreads: Sequence[Weighed]) -> Picture:
    """Draw how many rows have which weight.

    Examples
    --------
    >>> spread = Weighed(name="new", powers=np.array([0, 1]), rows=np.array([20, 3]), zeros=40)
    >>> weights([spread]).caption[:5]
    'Rows '
    """
    spreads = list(spreads)[:MOST]
    with plots.frame(height=2.8, labels=[cut(spread.name) for spread in spreads]) as (figure, axes):
        for index, spread in enumerate(spreads):
            style: dict[str, Any] = {"color": COLOURS[index % 6], "marker": MARKERS[index % 6], "markersize": 5}
            axes.plot(2.0 ** (spread.powers + 0.5), spread.rows, linewidth=1.4, label=cut(spread.name), **style)
        axes.set(xscale="log", yscale="log", xlabel="weight (log scale)", ylabel="rows (log scale)")
        for axis in (axes.xaxis, axes.yaxis):
            plots.plain_numbers(axis)
        axes.axvline(1.0, color=INK, linestyle=DASHES[2], linewidth=1.2)
        legend(figure, axes)
    told = "; ".join(f"{spread.name} {_range(spread.powers)}, {spread.zeros:,} rows of weight 0" for spread in spreads)
    caption = (
        "Rows by their weight: how much likelier the policy was to play the logged arm than the logger. "
        "Far to the right few rows carry much, and intervals are wide."
    )
    return _picture(figure, key="weights", alt=f"Weights of rows: {told}", caption=caption)


def cut(name: str, most: int = 18) -> str:
    """Shorten a name that would not leave room for the figure.

    Examples
    --------
    >>> cut("the policy of last summer")
    'the policy of las…'
    """
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _draw_line(axes: Axes, place: int, line: Line) -> None:
    if line.value is None:
        style: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "va": "center"}
        axes.annotate("refused: see the checks", (0, place), (4, 0), **style)
        return
    colour = GREY if line.grey else COLOURS[0]
    if line.anytime is not None:
        axes.plot(line.anytime, (place, place), color=colour, linewidth=1.2)
        axes.plot(line.anytime, (place, place), color=colour, marker="|", linestyle="none", markersize=7)
    if line.fixed is not None:
        axes.plot(line.fixed, (place, place), color=colour, linewidth=5, alpha=0.75, solid_capstyle="butt")
    axes.plot(line.value, place, color=colour, marker="D" if line.grey else "s", markersize=6)


def _kinds(lines: Sequence[Line]) -> list[str]:
    kinds = {
        "at this look": any(line.fixed is not None and not line.grey for line in lines),
        "at any look": any(line.anytime is not None for line in lines),
    }
    return [kind for kind, there in kinds.items() if there] + list(dict.fromkeys(e.grey for e in lines if e.grey))


def _looks(kind: str) -> dict[str, Any]:
    if kind == "at any look":
        return {"color": COLOURS[0], "linewidth": 1.2, "marker": "|"}
    if kind == "at this look":
        return {"color": COLOURS[0], "linewidth": 5, "alpha": 0.75}
    return {"color": GREY, "marker": "D", "linestyle": "none"}


def _told(line: Line) -> str:
    if line.value is None:
        return f"{line.name} refused"
    ends = line.fixed or line.anytime or Interval(line.value, line.value)
    return f"{line.name} {show(Estimate(line.value, *ends))}"


def _range(powers: Int64) -> str:
    return f"from {2.0 ** powers[0]:.3g} to {2.0 ** (powers[-1] + 1):.3g}" if powers.size else "none"


def _window(paths: Sequence[Path]) -> tuple[float, float]:
    """Give a frame that holds all values, and all sequences from a tenth of the rows on."""
    seen: list[float] = []
    for path in paths:
        late = path.rows >= path.rows[-1] / 10
        seen += [float(v) for part in (path.value, path.low, path.high) for v in part[late] if math.isfinite(v)]
    low, high = min(seen, default=0.0), max(seen, default=1.0)
    room = 0.08 * (high - low) or 0.1
    return low - room, high + room


def _picture(figure: Figure, *, key: str, alt: str, caption: str) -> Picture:
    return Picture(plots.svg(figure, key=key, alt=alt), b"", caption)  # stands in a page only, so there is no PNG
