"""Named points on log-log scales: what things cost against what they come to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from armlet.experiments.plots import COLOURS, MARKERS, frame, legend, short
from armlet.experiments.rates import Estimate

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
        for point, (dx, dy) in zip(points, _offsets(points), strict=True):
            axes.annotate(point.label, (point.x, point.y.value), (dx, dy), textcoords="offset points", fontsize=11.5)
        axes.xaxis.set_major_formatter(lambda value, _: short(value))
        axes.yaxis.set_major_formatter(lambda value, _: short(value))
        if any(kinds):
            legend(figure, axes)
    return figure


def _offsets(points: Sequence[Point]) -> list[tuple[float, float]]:
    """Move the labels of neighbours apart: those close in both directions take turns above and below."""
    placed: list[tuple[float, float]] = []
    for index, point in enumerate(points):
        near = sum(
            abs(math.log(point.x / other.x)) < 0.35 and abs(math.log(point.y.value / other.y.value)) < 0.2
            for other in points[:index]
        )
        placed.append((4.0, 4.0 + 11.0 * ((near + 1) // 2) * (1 if near % 2 == 0 else -1)))
    return placed
