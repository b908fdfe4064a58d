"""Named points on log-log scales: what things cost against what they come to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from armlet.inference.intervals import Estimate
from armlet.report.plots import COLOURS, MARKERS, frame, legend, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Point:
    """A named thing with what it costs and what it comes to."""

    label: str
    x: float
    y: Estimate
    kind: str = ""  # points of one kind look alike


def scatter(points: Sequence[Point], *, xlabel: str, ylabel: str) -> Figure:
    """Draw named points with their intervals on log-log scales.

    Examples
    --------
    >>> figure = scatter([Point("LinUCB", 2.0, Estimate(90.0, 80.0, 100.0))], xlabel="cost", ylabel="regret")
    """
    kinds = list(dict.fromkeys(point.kind for point in points))
    with frame(height=5.4, labels=[kind for kind in kinds if kind]) as (figure, axes):
        axes.set(xscale="log", yscale="log", xlabel=f"{xlabel} (log scale)", ylabel=f"{ylabel} (log scale)")
        for index, kind in enumerate(kinds):
            mine = [point for point in points if point.kind == kind]
            x, y = [point.x for point in mine], np.array([(p.y.value, p.y.low, p.y.high) for p in mine]).T
            bars = np.clip([y[0] - y[1], y[2] - y[0]], 0, None)
            style: dict[str, Any] = {"color": COLOURS[index % 6], "marker": MARKERS[index % 6], "capsize": 2}
            axes.errorbar(x, y[0], bars, linestyle="none", label=kind or None, **style)
        for point, (side, lift) in zip(points, _sides(points), strict=True):
            style = {"textcoords": "offset points", "fontsize": 11.5, "ha": "left" if side > 0 else "right"}
            axes.annotate(point.label, (point.x, point.y.value), (5 * side, lift), **style)
        axes.xaxis.set_major_formatter(lambda value, _: short(value))
        axes.yaxis.set_major_formatter(lambda value, _: short(value))
        if any(kinds):
            legend(figure, axes)
    return figure


def _sides(points: Sequence[Point]) -> list[tuple[int, float]]:
    """Move labels apart: words to the right; numbers too, but to the left and below where neighbours are in the way."""
    placed: list[tuple[int, float]] = []
    for index, point in enumerate(points):
        around = [other for other in points if other is not point and _near(point, other)]
        before = sum(_is_number(other) and points.index(other) < index for other in around)
        in_the_way = before + any(not _is_number(other) for other in around)
        near = in_the_way if _is_number(point) else 0
        placed.append((1 if near % 2 == 0 else -1, 4.0 - 14.0 * (near // 2)))
    return placed


def _is_number(point: Point) -> bool:
    return point.label.isdecimal()


def _near(one: Point, other: Point) -> bool:
    return abs(math.log(one.x / other.x)) < 0.35 and abs(math.log(one.y.value / other.y.value)) < 0.2
