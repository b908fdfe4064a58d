"""Figures that a phone can show and a dark page too: SVG with text as text, and PNG.

Backgrounds are transparent, ink takes the colour of the page around it, and curves have eight colours that stand out on
white and on near-black and that colour-blind people tell apart; dashes and markers do it without colour. The same
numbers give the same bytes: no dates, no random names. A figure is 360 units wide, so that on a phone its letters keep
their size.
Needs matplotlib, `armlet[plots]`, imported when something is drawn.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree

import numpy as np

from armlet.errors import InvalidValueError, require_package
from armlet.report.numbers import RAISED
from armlet.types import Estimate, Float64

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


INK: Final = "#1a1b1c"  # text, axes and grid; in an SVG it becomes the colour of the text around
NEUTRAL: Final = "#7b7b7b"  # what that colour is where there is no page around: legible on white and on black
LETTERS: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif"  # those of the page
FAMILIES: Final = re.compile(r"font(: [^;']*px|-family:) '[^;]*")
SVG: Final = "{http://www.w3.org/2000/svg}"
XLINK: Final = "{http://www.w3.org/1999/xlink}"

STYLE: Final[Any] = {  # matplotlib's own type for it lists every key it knows
    "svg.hashsalt": "armlet",
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.size": 12,
    "legend.fontsize": 11.5,
    "legend.frameon": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.alpha": 0.15,
    "lines.linewidth": 2,
    **{f"{name}.color": INK for name in ("text", "xtick", "ytick", "grid")},
    **{f"axes.{name}color": INK for name in ("edge", "label")},
}


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure for a page and for a file: an SVG element that names what it shows, a PNG, and a caption."""

    svg: str
    png: bytes
    caption: str


def require_matplotlib() -> None:
    """Describe how to get what draws, if it is not there: better before a computation than after it."""
    require_package("matplotlib", "plots need")


def picture(figure: Figure, *, key: str, alt: str, caption: str) -> Picture:
    """Return a figure as SVG and PNG; see `svg` for the key and the alternative text.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> picture(Figure(), key="one", alt="Nothing", caption="Empty.").caption
    'Empty.'
    """
    return Picture(svg(figure, key=key, alt=alt), png(figure), caption)


def svg(figure: Figure, *, key: str, alt: str) -> str:
    """Return a figure as an SVG element that can stand in a file or, with others, in a page.

    Parameters
    ----------
    key
        Put before every name inside, so that the names of two figures on one page differ.
    alt
        What the figure shows, for those who cannot see it.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> figure = Figure()
    >>> _ = figure.text(0, 0, "word", color=INK)
    >>> text = svg(figure, key="one", alt="A bar")
    >>> "currentColor" in text, 'aria-label="A bar"' in text
    (True, True)
    """
    root = ElementTree.fromstring(_save(figure, "svg", transparent=True, metadata=dict.fromkeys(_METADATA)))
    for parent in list(root.iter()):
        for child in [child for child in parent if child.tag in (f"{SVG}metadata", f"{SVG}style")]:
            parent.remove(child)
    for element in root.iter():
        element.tag = element.tag.removeprefix(SVG)
        element.attrib = {name.removeprefix(XLINK): _own(name, value, key) for name, value in element.items()}
    # what the page says of svg { color } comes before the attribute; in a file of its own there is only this
    about = {"role": "img", "aria-label": alt, "color": NEUTRAL, "stroke-linejoin": "round"}
    root.attrib = {"xmlns": SVG.strip("{}"), **about, **root.attrib}
    return ElementTree.tostring(root, encoding="unicode")


def png(figure: Figure) -> bytes:
    """Return a figure as a PNG, dark on white.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> png(Figure())[1:4]
    b'PNG'
    """
    return _save(figure, "png", dpi=220, facecolor="white", metadata={"Software": None})


_METADATA: Final = ("Date", "Creator", "Format", "Type")


def _save(figure: Figure, kind: str, **options: Any) -> bytes:
    import matplotlib as mpl

    buffer = io.BytesIO()
    with mpl.rc_context(STYLE):
        figure.savefig(buffer, format=kind, **options)
    return buffer.getvalue()


def _own(name: str, value: str, key: str) -> str:
    """Prefix names and the references to them, and let ink follow the page."""
    if name == "id":
        return f"{key}-{value}"
    if name.endswith("href"):
        return value.replace("#", f"#{key}-")
    if name == "style":
        value = FAMILIES.sub(f"font\\1 {LETTERS}", value)
    value = value.replace("url(#", f"url(#{key}-")
    return value.replace(INK, "currentColor") if name == "style" else value


# Within the luminance that both pages allow, as far apart as a search found for eyes that miss one colour or none.
COLOURS: Final = ("#2c5dce", "#ea6d0a", "#7d5d4c", "#3a9ae5", "#7130ff", "#ae8e58", "#b13e0a", "#725a93")
GREY: Final = "#808890"  # what is there to compare with: playing at random, a value that is not to be believed
DASHES: Final[tuple[Any, ...]] = (
    "-",
    (0, (6, 2)),
    (0, (1, 1.2)),
    (0, (6, 2, 1, 2)),
    (0, (3, 1.5)),
    (0, (8, 2, 2, 2)),
    (0, (6, 2, 1, 2, 1, 2)),
    (0, (10, 3)),
)
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "p")
LONGEST: Final = 23  # letters of a name that stands at the end of its line
ROOM: Final = 0.2  # inches from one such name to the next


def line_style(index: int) -> dict[str, Any]:
    """Return colour and dash of the line with this index; after the eighth colours come again, with other dashes."""
    return {
        "color": COLOURS[index % len(COLOURS)],
        "linestyle": DASHES[(index + index // len(COLOURS)) % len(DASHES)],
    }


def point_style(index: int) -> dict[str, Any]:
    """Return colour and marker of the points with this index."""
    return {"color": COLOURS[index % len(COLOURS)], "marker": MARKERS[index % len(MARKERS)]}


@dataclass(frozen=True, slots=True)
class Curve:
    """A named mean with its interval at every step: what `intervals.band` gives."""

    label: str
    steps: Float64  # (checkpoints,)
    band: Float64  # (3, checkpoints): mean, low, high


@dataclass(frozen=True, slots=True)
class Series:
    """Named estimates at several settings, and the exponent that fits them, if there is one."""

    label: str
    settings: tuple[float, ...]
    outcomes: tuple[Estimate, ...]
    slope: Estimate | None = None


def regret(
    curves: Sequence[Curve],
    *,
    xlabel: str = "step t (log scale)",
    ylabel: str = "cumulative regret R(t)",
    top: float | None = None,
    grey: Collection[str] = (),
) -> Figure:
    """Draw curves with their spread against log t: logarithmic growth is a straight line.

    Parameters
    ----------
    curves
        At least one. Names stand at the ends of the lines if they are short, else below the frame.
    top
        Where the frame ends, if some curve should leave it.
    grey
        Labels of curves that are there to compare with.

    Examples
    --------
    >>> steps = np.array([1.0, 10.0, 100.0])
    >>> figure = regret([Curve("p = 600", steps, np.array([[0, 5, 9], [0, 4, 8], [0, 6, 10]]))])
    >>> svg(figure, key="fig-a", alt="Regret of one policy")[:16]
    '<svg xmlns="http'
    """
    named_at_ends = all(len(curve.label) <= LONGEST for curve in curves) and len(curves) <= len(COLOURS) + len(grey)
    height = max(3.2, 1.0 + ROOM * len(curves))
    with frame(height=height, labels=[] if named_at_ends else [curve.label for curve in curves]) as (figure, axes):
        styles = list(_styles(curves, grey))
        for curve, style in zip(curves, styles, strict=True):
            mean, low, high = curve.band
            axes.plot(curve.steps, mean, label=curve.label, **style)
            axes.fill_between(curve.steps, low, high, color=style["color"], alpha=0.22, linewidth=0)
        first, last = min(curve.steps[0] for curve in curves), max(curve.steps[-1] for curve in curves)
        axes.set(xscale="log", xlim=(first, last), xlabel=xlabel, ylabel=ylabel)
        axes.set_ylim(0, top)
        _powers_of_ten(axes.xaxis)
        axes.yaxis.set_major_formatter(lambda value, _: short(value))
        if named_at_ends:
            name_ends(axes, [(curve.label, float(curve.band[0, -1])) for curve in curves], styles, height)
            figure.draw_without_rendering()
            figure.set_layout_engine("none")  # it would find a slightly other layout at every drawing
        else:
            legend(figure, axes)
    return figure


def _styles(curves: Sequence[Curve], grey: Collection[str]) -> Iterator[dict[str, Any]]:
    index = 0
    for curve in curves:
        if curve.label in grey:
            yield {"color": GREY, "linestyle": DASHES[2]}
        else:
            yield line_style(index)
            index += 1


def name_ends(
    axes: Axes, ends: Sequence[tuple[str, float]], styles: Sequence[Mapping[str, Any]], height: float
) -> None:
    """Write the name of each line to the right of its end, apart from each other; an arrow where it has left the frame.

    Parameters
    ----------
    ends
        Names and last values, on a linear scale.
    styles
        Colour and dash of each line.
    height
        Of the figure, in inches.
    """
    low, high = axes.get_ylim()
    wanted = [(value - low) / (high - low) for _, value in ends]
    places = apart([min(max(place, 0.0), 1.0) for place in wanted], gap=ROOM / (0.78 * height))
    for (name, _), at, place, style in zip(ends, wanted, places, styles, strict=True):
        axes.annotate(
            f"{name} ↑" if at > 1 else name,
            (1, min(max(at, 0.0), 1.0)),
            (1.06, place),
            xycoords="axes fraction",
            va="center",
            fontsize=11.5,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "linewidth": 1.6, "shrinkA": 1, "shrinkB": 0, "relpos": (0, 0.5), **style},
        )


def apart(places: Sequence[float], *, gap: float) -> list[float]:
    """Move places between 0 and 1 as little as need be until no two are closer than a gap; their order stays.

    Examples
    --------
    >>> [round(place, 2) for place in apart([0.5, 0.5, 0.9], gap=0.1)]
    [0.45, 0.55, 0.9]
    """
    order = sorted(range(len(places)), key=lambda index: places[index])
    groups: list[list[float]] = []  # places wanted of those that touch each other, lowest first
    for index in order:
        groups.append([places[index]])
        while len(groups) > 1 and _lowest(groups[-1], gap) - _lowest(groups[-2], gap) < gap * len(groups[-2]):
            groups[-2:] = [groups[-2] + groups[-1]]
    moved = [_lowest(group, gap) + gap * at for group in groups for at in range(len(group))]
    return [place for _, place in sorted(zip(order, moved, strict=True))]


def _lowest(group: Sequence[float], gap: float) -> float:
    """Return where the lowest of a group lies when all stand a gap apart around their mean, within 0 and 1."""
    length = gap * (len(group) - 1)
    return max(0.0, min(sum(group) / len(group) - length / 2, 1 - length))


def power_law(series: Sequence[Series], *, xlabel: str, ylabel: str) -> Figure:
    """Draw outcomes against settings on log-log scales, with the fitted slopes.

    A fit is drawn through the middle of its points; its band holds the lines with every slope of the interval.

    Examples
    --------
    >>> found = tuple(Estimate(v, 0.9 * v, 1.1 * v) for v in (10.0, 20.0, 200.0))
    >>> one = Series("p = 60", (5, 10, 100), found, slope=Estimate(1.0, 0.9, 1.1))
    >>> figure = power_law([one], xlabel="I", ylabel="regret")
    """
    for one in series:
        if bad := [number for number in (*one.settings, *(each.value for each in one.outcomes)) if number <= 0]:
            raise InvalidValueError(f"{one.label} has {bad[0]} but log scales show positive numbers only")
    with frame(height=3.2, labels=[_named(one) for one in series]) as (figure, axes):
        axes.set(xscale="log", yscale="log", xlabel=f"{xlabel} (log scale)", ylabel=f"{ylabel} (log scale)")
        for index, one in enumerate(series):
            mean, low, high = np.array([(each.value, each.low, each.high) for each in one.outcomes]).T
            bars = np.clip([mean - low, high - mean], 0, None)
            axes.errorbar(
                one.settings, mean, bars, label=_named(one), capsize=3, linestyle="none", **point_style(index)
            )
            if one.slope is not None:
                _fit(axes, one, one.slope, mean, line_style(index))
        axes.set_xticks(sorted({value for one in series for value in one.settings}))
        axes.xaxis.set_major_formatter(lambda value, _: short(value))
        axes.xaxis.set_minor_locator(_no_ticks())
        plain_numbers(axes.yaxis)
        legend(figure, axes)
    return figure


def bars(
    labels: Sequence[str],
    estimates: Sequence[Estimate | None],
    *,
    xlabel: str,
    marks: Mapping[str, float] | None = None,
) -> Figure:
    """Draw one bar with its interval for each label, and dashed marks to compare them with.

    Examples
    --------
    >>> figure = bars(["p = 24", "p = 600"], [Estimate(1.8, 1.6, 2.0), None], xlabel="ratio", marks={"log": 1.0})
    """
    if len(labels) != len(estimates):
        raise InvalidValueError(f"there are {len(labels)} labels but {len(estimates)} estimates")
    room = 0.34 + 0.16 * max((label.count("\n") for label in labels), default=0)
    with frame(height=1.1 + room * len(labels), labels=[]) as (figure, axes):
        for place, estimate in enumerate(estimates):
            if estimate is None:
                axes.annotate("not defined", (0, place), (4, 0), textcoords="offset points", va="center")
                continue
            error = np.clip([[estimate.value - estimate.low], [estimate.high - estimate.value]], 0, None)
            axes.barh(place, estimate.value, height=0.62, color=COLOURS[0], alpha=0.55)
            axes.errorbar(estimate.value, place, xerr=error, color=INK, capsize=3, linewidth=1.3)
        for name, value in (marks or {}).items():
            axes.axvline(value, color=INK, linestyle=(0, (4, 3)), linewidth=1.2)
            axes.annotate(
                name, (value, 1), (0, 3), xycoords=("data", "axes fraction"), textcoords="offset points", ha="center"
            )
        axes.set_yticks(range(len(labels)), labels)
        axes.set_ylim(len(labels) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(xlabel)
        axes.xaxis.set_major_formatter(lambda value, _: short(value))
    return figure


@contextmanager
def frame(*, height: float, labels: Sequence[str]) -> Iterator[tuple[Figure, Axes]]:
    """Return an empty figure, with room for a legend below."""
    from armlet.report.drawing import drawing  # heavy, and only drawing needs it

    rows = math.ceil(len(labels) / _columns(labels))
    with drawing(5, height + 0.23 * rows) as figure:
        yield figure, figure.subplots()


def legend(figure: Figure, axes: Axes) -> None:
    """Name the curves below the frame."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=_columns(labels), handlelength=2.6)


def plain_numbers(axis: Axis) -> None:
    """Write numbers in full on a log scale, and some in between if few powers of ten are in sight."""
    axis.set_major_formatter(lambda value, _: short(value))
    axis.set_minor_formatter(lambda value, _: short(value) if _leads(value, axis.get_view_interval()) else "")


def _columns(labels: Sequence[str]) -> int:
    longest = max(map(len, labels), default=0)
    return max(1, min(len(labels), 3 if longest <= 12 else 2 if longest <= 24 else 1))


def _fit(axes: Axes, one: Series, slope: Estimate, mean: Float64, style: Mapping[str, Any]) -> None:
    x = np.log(np.geomspace(min(one.settings), max(one.settings), 40))
    centre, level = np.log(one.settings).mean(), np.log(mean).mean()
    line, low, high = (np.exp(level + b * (x - centre)) for b in (slope.value, slope.low, slope.high))
    axes.plot(np.exp(x), line, linewidth=1.5, **style)
    axes.fill_between(
        np.exp(x), np.minimum(low, high), np.maximum(low, high), color=style["color"], alpha=0.2, linewidth=0
    )


def _named(one: Series) -> str:
    return one.label if one.slope is None else f"{one.label}: slope {one.slope:.2f}"


def _powers_of_ten(axis: Axis) -> None:
    from matplotlib.ticker import LogLocator

    axis.set_major_locator(LogLocator(numticks=8))
    axis.set_major_formatter(lambda value, _: "10" + str(round(math.log10(value))).translate(RAISED))
    axis.set_minor_locator(_no_ticks())


def _no_ticks() -> Any:
    from matplotlib.ticker import NullLocator

    return NullLocator()


def short(value: float) -> str:
    """Write a number as an axis shows it.

    Examples
    --------
    >>> short(0.25), short(12000), short(1e8), short(2.5e-7)
    ('0.25', '12,000', '10⁸', '2.5 × 10⁻⁷')
    """
    if value == 0 or 1e-4 <= abs(value) < 1e7:
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:g}"
    digits, power = f"{value:.6e}".split("e")
    raised = f"10{str(int(power)).translate(RAISED)}"
    return raised if float(digits) == 1 else f"{float(digits):g} × {raised}"


def _leads(value: float, limits: Sequence[float] | Float64) -> bool:
    """Return whether a minor tick should have its number: 2 and 5, and only if few tens are in sight."""
    few = math.log10(limits[1] / limits[0]) < 1.7
    return few and re.match(r"[25]", f"{value:e}") is not None


def page_picture(figure: Figure, *, key: str, alt: str, caption: str) -> Picture:
    """Return a figure that stands in a page only, so there is no PNG."""
    return Picture(svg(figure, key=key, alt=alt), b"", caption)
