"""Charts of the page, drawn on the server as SVG: bands over time, shares over time, intervals, bars.

Nothing here has a colour or a font of its own: classes do, so that one picture serves light, dark and print, and the
page's policy can forbid inline styles. Sizes are attributes. O(points).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

from armlet.service.page import words

Point: TypeAlias = tuple[float, float, float]
"""How many decisions, and the two ends of the band then."""

RECENT: Final = 0.6  # of the history, by its logarithm, sets the scale; bands from before may leave the picture
LOG_FROM: Final = 8.0  # times the first number of decisions: shorter histories have a plain scale
APART: Final = 1.06  # of a lettering's height: two labels do not touch
THOUSANDS: Final = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


class Band(NamedTuple):
    """The band of one comparison."""

    tone: str  # a class of the style sheet
    title: str
    short: str  # the title where there is no room
    note: str
    points: Sequence[Point]


class Frame(NamedTuple):
    """The size of a chart: the whole, the margins, and how many lines a label at the end of a band has."""

    name: str  # a class of the style sheet, which shows the frame that fits the screen
    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int
    lines: int


WIDE: Final = Frame("wide", 960, 300, left=64, right=176, top=14, bottom=46, lines=2)
NARROW: Final = Frame("narrow", 336, 240, left=46, right=86, top=10, bottom=44, lines=1)
LETTERS: Final = 16  # height of a line of a label


class Scale(NamedTuple):
    """A line of numbers on the screen."""

    start: float
    end: float
    place: Callable[[float], float]
    ticks: Sequence[float]
    note: str  # what kind it is, if that needs to be said


def bands(series: Sequence[Band], alt: str) -> str:
    """Return bands over time, once for wide screens and once for narrow ones; the style sheet shows one of them.

    Parameters
    ----------
    series
        Bands, each with a point at least.
    alt
        What the picture shows, in words.
    """
    return "".join(_bands(series, alt, frame) for frame in (WIDE, NARROW))


def _bands(series: Sequence[Band], alt: str, frame: Frame) -> str:
    xs, ys = _decisions(series, frame), _gains(series, frame)
    inner_width, inner_height = frame.width - frame.left - frame.right, frame.height - frame.top - frame.bottom
    box = f"{frame.left} {frame.top} {inner_width} {inner_height}"
    shapes = "".join(_band(band, xs, ys) for band in series)
    zero = f'<line class="zero" x1="{frame.left}" x2="{frame.width - frame.right}" {_same("y", ys.place(0.0))}/>'
    x, y, width, height = box.split()
    return (
        f'<svg class="chart {frame.name}" viewBox="0 0 {frame.width} {frame.height}" role="img" '
        f'aria-label="{escape(alt)}">'
        + _grid(ys, frame)
        + _steps(xs, frame)
        # a picture inside a picture cuts off what leaves it, without a name that must be unique
        + f'<svg x="{x}" y="{y}" width="{width}" height="{height}" viewBox="{box}">{shapes}{zero}</svg>'
        + _ends(series, ys, frame)
        + "</svg>"
    )


def _decisions(series: Sequence[Band], frame: Frame) -> Scale:
    numbers = [n for band in series for n, _, _ in band.points]
    first, last = max(min(numbers), 1.0), max(max(numbers), 2.0)
    left, right = frame.left, frame.width - frame.right
    if last < LOG_FROM * first:
        return _linear(min(first, last - 1.0), last, left, right, 4)
    low, high = math.log(first), math.log(last)

    def place(n: float) -> float:
        return left + (right - left) * (math.log(max(n, 1.0)) - low) / (high - low)

    return Scale(first, last, place, _thinned(_decades(first, last), place, 44.0), ", on a log scale")


def _gains(series: Sequence[Band], frame: Frame) -> Scale:
    """Return the scale of gains: bands of late are seen whole, and so is zero."""
    numbers = [max(n, 1.0) for band in series for n, _, _ in band.points]
    start = min(numbers) ** RECENT * max(numbers) ** (1.0 - RECENT) * (1.0 - 1e-9)
    recent = [end for band in series for n, low, high in band.points if n >= start for end in (low, high)]
    low, high = min(0.0, *recent), max(0.0, *recent)
    room = 0.08 * (high - low or 1.0)
    return _linear(low - room, high + room, frame.height - frame.bottom, frame.top, 5)


def _linear(start: float, end: float, first: float, last: float, most: int) -> Scale:
    def place(value: float) -> float:
        return first + (last - first) * (value - start) / (end - start)

    return Scale(start, end, place, _round_numbers(start, end, most), "")


def _round_numbers(start: float, end: float, most: int) -> list[float]:
    """Return round numbers between two, so many at most.

    Examples
    --------
    >>> [round(n, 6) for n in _round_numbers(-0.31, 0.42, 5)]
    [-0.2, 0.0, 0.2, 0.4]
    """
    rough = (end - start) / most
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(times * unit for times in (1, 2, 5, 10) if times * unit >= rough * (1 - 1e-9))
    first, last = math.ceil(start / step - 1e-9), math.floor(end / step + 1e-9)
    return [n * step for n in range(first, last + 1)]


def _decades(first: float, last: float) -> list[float]:
    powers = range(math.floor(math.log10(first)), math.ceil(math.log10(last)) + 1)
    return [n for power in powers for times in (1, 3) if first <= (n := times * 10.0**power) <= last]


def _thinned(ticks: list[float], place: Callable[[float], float], apart: float) -> list[float]:
    """Return ticks that have room next to each other; powers of ten if the others have none."""
    gaps = [place(b) - place(a) for a, b in pairwise(ticks)]
    return ticks if min(gaps, default=apart) >= apart else [n for n in ticks if f"{n:.0f}".strip("0") == "1"]


def _band(band: Band, xs: Scale, ys: Scale) -> str:
    upper = [(xs.place(n), ys.place(high)) for n, _, high in band.points]
    lower = [(xs.place(n), ys.place(low)) for n, low, _ in band.points]
    if len(upper) == 1:  # one look so far: a post rather than an area
        (x, top), (_, bottom) = upper[0], lower[0]
        return f'<rect class="band {band.tone}" x="{x - 3:.1f}" y="{top:.1f}" width="3" height="{bottom - top:.1f}"/>'
    return (
        f'<path class="band {band.tone}" d="M{_path([*upper, *reversed(lower)])}Z"/>'
        f'<path class="edge {band.tone}" d="M{_path(upper)}M{_path(lower)}"/>'
    )


def _path(points: Iterable[tuple[float, float]]) -> str:
    return "L".join(f"{x:.1f} {_held(y):.1f}" for x, y in points)


def _held(y: float) -> float:
    """Keep what is far outside of a picture within numbers that every renderer can handle."""
    return min(max(y, -1e4), 1e4)


def _grid(ys: Scale, frame: Frame) -> str:
    decimals = words.decimals_of(10.0 * abs(ys.ticks[-1] - ys.ticks[0]) / max(len(ys.ticks) - 1, 1))
    decimals = max(decimals, _decimals_of_ticks(ys.ticks))
    lines = (
        f'<line class="grid" x1="{frame.left}" x2="{frame.width - frame.right}" {_same("y", ys.place(gain))}/>'
        f'<text class="axis" x="{frame.left - 8}" y="{ys.place(gain) + 4:.1f}" text-anchor="end">'
        f"{words.signed(gain, decimals)}</text>"
        for gain in ys.ticks
    )
    return "".join(lines)


def _decimals_of_ticks(ticks: Sequence[float]) -> int:
    """Return the decimals that tell ticks apart.

    Examples
    --------
    >>> _decimals_of_ticks([-0.2, 0.0, 0.2]), _decimals_of_ticks([0.0, 50.0])
    (1, 0)
    """
    step = min((b - a for a, b in pairwise(ticks)), default=1.0)
    return min(max(0, -math.floor(math.log10(step) + 1e-9)), words.MOST_DECIMALS)


def _same(axis: str, value: float) -> str:
    return f'{axis}1="{value:.1f}" {axis}2="{value:.1f}"'


def _steps(xs: Scale, frame: Frame) -> str:
    y = frame.height - frame.bottom + 18
    ticks = "".join(
        f'<text class="axis" x="{xs.place(n):.1f}" y="{y}" text-anchor="middle">{_short(n)}</text>' for n in xs.ticks
    )
    middle = (frame.left + frame.width - frame.right) / 2
    return f'{ticks}<text class="axis" x="{middle:.1f}" y="{y + 18}" text-anchor="middle">decisions{xs.note}</text>'


def _short(n: float) -> str:
    """Return a large number in few letters.

    Examples
    --------
    >>> _short(300), _short(3000), _short(1_000_000), _short(12_500)
    ('300', '3k', '1M', '12.5k')
    """
    for size, unit in THOUSANDS:
        if n >= size:
            return f"{n / size:.4g}{unit}"
    return f"{n:.0f}"


def _ends(series: Sequence[Band], ys: Scale, frame: Frame) -> str:
    """Return labels next to where bands end, moved apart where they would overlap."""
    height = frame.lines * LETTERS
    middles = [(ys.place(band.points[-1][1]) + ys.place(band.points[-1][2])) / 2 for band in series]
    x = frame.width - frame.right + 10
    labels = []
    for band, y in zip(series, _spread(middles, height * APART, frame.top, frame.height - frame.bottom), strict=True):
        title = band.title if frame.lines > 1 else band.short
        first = y + 4 - (frame.lines - 1) * LETTERS / 2
        labels.append(f'<text class="end {band.tone}" x="{x}" y="{first:.1f}">{escape(title)}</text>')
        if frame.lines > 1:
            labels.append(f'<text class="axis" x="{x}" y="{first + LETTERS:.1f}">{escape(band.note)}</text>')
    return "".join(labels)


def _spread(places: Sequence[float], apart: float, first: float, last: float) -> list[float]:
    """Return places that are so far apart, in the same order, close to those given.

    Examples
    --------
    >>> _spread([50.0, 52.0], 20.0, 0.0, 200.0), _spread([195.0, 50.0], 20.0, 0.0, 200.0)
    ([41.0, 61.0], [190.0, 50.0])
    """
    order = sorted(range(len(places)), key=places.__getitem__)
    moved = [min(max(place, first + apart / 2), last - apart / 2) for place in places]
    for _ in range(8 * len(places)):
        for above, below in pairwise(order):
            if (short := apart - (moved[below] - moved[above])) > 0:
                moved[above] -= short / 2
                moved[below] += short / 2
        moved = [min(max(place, first + apart / 2), last - apart / 2) for place in moved]
    return moved


# ---- in a line of text


def gain_bar(low: float, high: float, tone: str) -> str:
    """Return an interval around zero; the words next to it say the numbers."""
    reach = 1.08 * max(abs(low), abs(high)) or 1.0
    start, end = (120.0 * (1.0 + value / reach) for value in (low, high))
    return (
        '<svg class="gain" viewBox="0 0 240 20" preserveAspectRatio="none" aria-hidden="true" focusable="false">'
        '<line class="grid" x1="0" x2="240" y1="10" y2="10"/>'
        f'<rect class="interval {tone}" x="{start:.1f}" y="5" width="{max(end - start, 2.0):.1f}" height="10"/>'
        '<line class="zero" x1="120" x2="120" y1="0" y2="20"/></svg>'
    )


def value_bar(ends: tuple[float, float], scale: tuple[float, float], tone: str) -> str:
    """Return an interval on a scale that all rows of a table share."""
    start, width = scale[0], scale[1] - scale[0] or 1.0
    low, high = (160.0 * min(max((end - start) / width, 0.0), 1.0) for end in ends)
    return (
        '<svg class="value" viewBox="0 0 160 14" preserveAspectRatio="none" aria-hidden="true" focusable="false">'
        '<line class="grid" x1="0" x2="160" y1="7" y2="7"/>'
        f'<rect class="interval {tone}" x="{low:.1f}" y="3" width="{max(high - low, 2.0):.1f}" height="8"/></svg>'
    )


def share_bar(share: float, tone: str) -> str:
    """Return a share as the filled part of a bar."""
    return (
        '<svg class="share" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true" focusable="false">'
        '<rect class="track" width="100" height="6"/>'
        f'<rect class="fill {tone}" width="{100.0 * min(max(share, 0.0), 1.0):.1f}" height="6"/></svg>'
    )


def spent_bar(spent: float, planned: float) -> str:
    """Return how much of a budget is spent, and a line where the plan is, both as shares of the total."""
    reach = max(1.0, spent)  # what is beyond the total is seen too
    end, line = 240.0 * max(spent, 0.0) / reach, 240.0 * planned / reach
    return (
        '<svg class="gain" viewBox="0 0 240 20" preserveAspectRatio="none" aria-hidden="true" focusable="false">'
        f'<rect class="track" y="3" width="{240.0 / reach:.1f}" height="14"/>'
        f'<rect class="interval arm" y="3" width="{end:.1f}" height="14"/>'
        f'<line class="zero" x1="{line:.1f}" x2="{line:.1f}" y1="0" y2="20"/></svg>'
    )


def shares(values: Sequence[float], tone: str) -> str:
    """Return a share over time, from none at the bottom to all at the top."""
    if not values:
        return ""
    held = [*values, values[-1]] if len(values) == 1 else values
    points = [(150.0 * at / (len(held) - 1), 29.0 - 28.0 * min(max(share, 0.0), 1.0)) for at, share in enumerate(held)]
    return (
        '<svg class="spark" viewBox="0 0 150 30" preserveAspectRatio="none" aria-hidden="true" focusable="false">'
        '<line class="grid" x1="0" x2="150" y1="29" y2="29"/>'
        f'<path class="fill {tone}" d="M0 29L{_path(points)}L150 29Z"/>'
        f'<path class="edge {tone}" d="M{_path(points)}"/></svg>'
    )
