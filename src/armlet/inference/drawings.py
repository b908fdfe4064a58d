"""Figures of what a model knows: coefficients with intervals, the parts of an estimate, a contrast.

None is wider than a notebook: a figure that would be leaves out what tells least, and says how much that is.
Needs matplotlib, `armlet[plots]`, imported when something is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from armlet.errors import require_package
from armlet.report.notebook import shorten
from armlet.report.plots import COLOURS
from armlet.types import Arm, Float64

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from armlet.inference.model import Contrast
    from armlet.inference.summary import Coefficient, Explanation

PANELS: Final = 20  # features of a figure
ACROSS: Final = 4  # panels next to each other
ARMS: Final = 12  # of a panel
STEPS: Final = 12  # features of a waterfall
SMALL, LARGE = 10, 11  # letters; on a page, which is narrower than a notebook, they are smaller
BLUE, ORANGE = COLOURS[:2]
GREY, FAINT = "0.45", "0.6"


def forest(rows: Sequence[Coefficient]) -> Figure:
    """Draw every coefficient with its interval, a panel a feature; those without an interval are empty circles."""
    require_package("matplotlib", "plots need")
    from armlet.report.drawing import drawing

    features, arms = _telling(rows), _most_rows(rows)
    across = min(ACROSS, max(len(features), 1))
    down = math.ceil(len(features) / across)
    left = _left_out(rows, features, arms)
    with drawing(2.2 * across + 0.8, down * (0.27 * len(arms) + 0.8) + (0.3 if left else 0.0) + 0.1) as figure:
        panels = figure.subplots(down, across, squeeze=False, sharey=True).ravel()
        for axes, feature in zip(panels, features, strict=False):
            _panel(axes, [row for row in rows if row.feature == feature and row.arm in arms])
            axes.set_title(shorten(feature, 22), fontsize=LARGE)
        for axes in panels[len(features) :]:
            axes.set_axis_off()
        panels[0].set_yticks(range(len(arms)), [shorten(str(arm), 16) for arm in arms])
        panels[0].set_ylim(len(arms) - 0.5, -0.5)
        if left:
            figure.supxlabel(left, fontsize=SMALL)
    return figure


def _telling(rows: Sequence[Coefficient]) -> list[str]:
    """Return the features to draw: all that fit, else those whose coefficients are largest next to their intervals.

    Their order stays; a coefficient is as large as its unit is small, so its size alone says nothing.
    """
    features = list(dict.fromkeys(row.feature for row in rows))
    if len(features) <= PANELS:
        return features
    sizes = dict.fromkeys(features, 0.0)
    for row in rows:
        if row.value is not None and row.low is not None and row.high is not None:
            sizes[row.feature] = max(sizes[row.feature], abs(row.value) / max((row.high - row.low) / 2, 1e-300))
    largest = set(sorted(features, key=lambda feature: -sizes[feature])[:PANELS])
    return [feature for feature in features if feature in largest]


def _most_rows(rows: Sequence[Coefficient]) -> list[Arm]:
    """Return the arms to draw, in their order: all that fit, else those with the most rows."""
    counts = {row.arm: row.rows for row in rows}
    largest = set(sorted(counts, key=lambda arm: -counts[arm])[:ARMS])
    return [arm for arm in counts if arm in largest]


def _left_out(rows: Sequence[Coefficient], features: Sequence[str], arms: Sequence[Arm]) -> str:
    others = [len({row.feature for row in rows}) - len(features), len({row.arm for row in rows}) - len(arms)]
    why = ("features with smaller coefficients next to their intervals", "arms with fewer rows")
    counts = [f"{n:,} {what}" for n, what in zip(others, why, strict=True) if n]
    return f"not drawn: {' and '.join(counts)}; to_pandas() has all" if counts else ""


def _panel(axes: Axes, rows: Sequence[Coefficient]) -> None:
    axes.axvline(0.0, color=FAINT, linewidth=0.8)
    for place, row in enumerate(rows):
        if row.value is not None:
            _point(axes, place, row.value, row.low, row.high)
    axes.tick_params(labelsize=SMALL)
    axes.locator_params(axis="x", nbins=4)


def _point(axes: Axes, place: float, value: float, low: float | None, high: float | None) -> None:
    if low is None or high is None:
        axes.plot(value, place, "o", color=GREY, markerfacecolor="none", markersize=5)
    else:
        axes.plot([low, high], [place, place], "-", color=BLUE, linewidth=1.6)
        axes.plot(value, place, "o", color=BLUE, markersize=5)


def waterfall(explanation: Explanation) -> Figure:
    """Draw how base and features add up to the estimate of the best arm, and of the next, on one scale."""
    require_package("matplotlib", "plots need")
    from armlet.report.drawing import drawing

    arms = (explanation.ranked or explanation.arms)[:2]
    names, steps = _steps(explanation, [explanation.arms.index(arm) for arm in arms])
    ends = np.cumsum(steps, axis=1)
    low, high = min(float(ends.min()), 0.0), max(float(ends.max()), 0.0)
    room = high - low or 1.0
    with drawing(4.2 * len(arms) + 1.0, 0.32 * (len(names) + 1) + 0.9) as figure:
        panels = figure.subplots(1, len(arms), squeeze=False, sharex=True, sharey=True)[0]
        for axes, arm, row, which in zip(panels, arms, steps, ("best", "next"), strict=False):
            _falls(axes, row.tolist())
            axes.set_title(f"{shorten(str(arm), 24)} ({which}): {row.sum():.4g}", fontsize=LARGE)
        panels[0].set_xlim(low - 0.05 * room, high + 0.2 * room)  # on the right, for the numbers at the bars
        panels[0].set_yticks(range(len(names) + 1), [*names, "estimate"])
        panels[0].set_ylim(len(names) + 0.5, -0.5)
    return figure


def _steps(explanation: Explanation, rows: Sequence[int]) -> tuple[list[str], Float64]:
    """Return what adds up, and how much each adds for every row: base, the largest features, the others together."""
    parts = explanation.contributions[rows]  # (rows, d)
    order = np.argsort(-np.abs(parts).max(axis=0), kind="stable")
    shown, rest = order[:STEPS], order[STEPS:]
    names = ["base", *(shorten(explanation.features[j], 28) for j in shown)]
    steps = np.column_stack([explanation.base[rows], parts[:, shown]])
    if len(rest):
        return [*names, f"{len(rest):,} other features"], np.column_stack([steps, parts[:, rest].sum(axis=1)])
    return names, steps


def _falls(axes: Axes, steps: Sequence[float]) -> None:
    """Draw each step from where the last one ended, and the sum of all from 0."""
    ends = np.cumsum(steps).tolist()
    axes.axvline(0.0, color=FAINT, linewidth=0.8)
    for place, (step, end) in enumerate(zip(steps, ends, strict=True)):
        if place:
            axes.plot([end - step] * 2, [place - 1, place], color=FAINT, linewidth=0.8)
        colour = GREY if place == 0 else BLUE if step >= 0 else ORANGE
        axes.barh(place, step, left=end - step, height=0.6, color=colour)
        axes.annotate(
            f"{step:+.3g}",
            (max(end, end - step), place),
            (3, 0),
            textcoords="offset points",
            fontsize=SMALL,
            va="center",
        )
    axes.barh(len(steps), ends[-1], height=0.6, color=GREY)
    axes.annotate(
        f"{ends[-1]:.4g}",
        (max(ends[-1], 0.0), len(steps)),
        (3, 0),
        textcoords="offset points",
        fontsize=SMALL,
        va="center",
    )
    axes.tick_params(labelsize=SMALL)


def contrast_figure(contrast: Contrast) -> Figure:
    """Draw a difference with its interval next to 0."""
    require_package("matplotlib", "plots need")
    from armlet.report.drawing import drawing

    with drawing(6.0, 1.3) as figure:
        axes = figure.subplots()
        axes.axvline(0.0, color=FAINT, linewidth=0.8)
        if contrast.value is not None:
            _point(axes, 0, contrast.value, contrast.low, contrast.high)
        axes.set_yticks([0], [f"{shorten(str(contrast.first), 20)} - {shorten(str(contrast.second), 20)}"])
        axes.set_ylim(0.6, -0.6)
        axes.set_title(contrast.where, fontsize=LARGE)
        axes.tick_params(labelsize=SMALL)
    return figure
