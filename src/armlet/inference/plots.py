"""Coefficients as a figure: a panel a feature, a line an arm. Needs matplotlib, `armlet[plots]`."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from armlet.inference.coefficients import Coefficient, Coefficients


def forest(rows: Coefficients) -> Figure:
    """Draw every coefficient with its interval; those without one are empty circles."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ModuleNotFoundError("plots need matplotlib; pip install 'armlet[plots]'", name="matplotlib")
    from matplotlib.figure import Figure

    features = list(dict.fromkeys(row.feature for row in rows))
    arms = list(dict.fromkeys(str(row.arm) for row in rows))
    figure = Figure(figsize=(2.4 * len(features) + 1.2, 0.35 * len(arms) + 1.2), layout="constrained")
    panels = figure.subplots(1, len(features), squeeze=False, sharey=True)[0]
    for axes, feature in zip(panels, features, strict=True):
        _panel(axes, [row for row in rows if row.feature == feature])
        axes.set_title(feature, fontsize=9)
    panels[0].set_yticks(range(len(arms)), arms)
    panels[0].invert_yaxis()
    return figure


def _panel(axes: Axes, rows: list[Coefficient]) -> None:
    axes.axvline(0.0, color="0.6", linewidth=0.8)
    axes.margins(y=0.3)
    for place, row in enumerate(rows):
        if row.value is None:
            axes.plot([], [])
        elif row.low is None or row.high is None:
            axes.plot(row.value, place, "o", color="0.4", markerfacecolor="none", markersize=5)
        else:
            axes.plot([row.low, row.high], [place, place], "-", color="#1f7fc4", linewidth=1.6)
            axes.plot(row.value, place, "o", color="#1f7fc4", markersize=5)
    axes.tick_params(labelsize=8)
