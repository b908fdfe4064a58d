"""Figures of a loop: what a comparison says as decisions came in, and the shares of its arms.

Needs matplotlib, `armlet[plots]`, imported when something is drawn.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Final

from armlet.errors import require_package
from armlet.report.notebook import shorten
from armlet.report.plots import COLOURS, line_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from armlet.stores.gains import Gain
    from armlet.stores.overview import Details

LINES: Final = 8  # arms whose shares are drawn


def gain_figure(gain: Gain) -> Figure:
    """Draw the interval of the mean gain as decisions came in, next to 0."""
    require_package("matplotlib", "plots need")
    from armlet.report.drawing import drawing

    columns = gain.columns()
    with drawing(7.0, 3.0) as figure:
        axes = figure.subplots()
        axes.axhline(0.0, color="0.6", linewidth=0.8)
        axes.fill_between(columns["decisions"], columns["low"], columns["high"], color=COLOURS[0], alpha=0.3)
        if len(gain.history) == 1:  # no band yet
            axes.vlines(columns["decisions"], columns["low"], columns["high"], color=COLOURS[0])
        axes.set(xlabel="decisions", ylabel="mean gain")
        axes.set_title(f"Better than {shorten(gain.label, 60)}? {gain.answer}", fontsize=10)
    return figure


def shares_figure(details: Details) -> Figure:
    """Draw the share of each arm over the decisions so far; of many arms, those that are played most."""
    require_package("matplotlib", "plots need")
    from armlet.report.drawing import drawing

    ends = list(accumulate(span.decisions for span in details.exploring.spans))
    arms = sorted(details.by_arm, key=lambda arm: -arm.decisions)
    with drawing(7.5, 3.2) as figure:
        axes = figure.subplots()
        for place, arm in enumerate(arms[:LINES]):
            axes.plot(ends, arm.shares, label=shorten(str(arm.arm), 24), **line_style(place))
        left = f"; {len(arms) - LINES:,} arms with fewer are not drawn" if len(arms) > LINES else ""
        axes.set(xlabel=f"decisions{left}", ylabel="share of decisions", ylim=(-0.02, 1.02))
        if ends:
            figure.legend(loc="outside right upper")
    return figure
