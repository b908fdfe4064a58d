"""How often intervals cover, environment by environment, with the band that is asked for."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from armlet.inference.means import Estimate
from armlet.report import plots
from armlet.report.plots import COLOURS, DASHES, INK, MARKERS, Picture, legend, picture

LABELS = ("all rows, weighted", "explored rows alone")


def percent(found: Estimate) -> str:
    """Write a share with its interval in percent.

    Examples
    --------
    >>> percent(Estimate(0.9512, 0.94, 0.96))
    '95.1 % [94.0 to 96.0]'
    """
    return f"{100 * found.value:.1f} % [{100 * found.low:.1f} to {100 * found.high:.1f}]"


def coverage(found: Mapping[str, tuple[Estimate, Estimate]], band: tuple[float, float]) -> Picture:
    """Draw the coverage of two estimators in every environment."""
    with plots.frame(height=1.2 + 0.4 * len(found), labels=LABELS) as (figure, axes):
        axes.axvspan(*band, color=COLOURS[2], alpha=0.12, linewidth=0)
        axes.axvline(0.95, color=INK, linestyle=DASHES[1], linewidth=1.2)
        for which, label in enumerate(LABELS):
            shares = [pair[which] for pair in found.values()]
            values = np.array([each.value for each in shares])
            ends = np.array([(each.value - each.low, each.high - each.value) for each in shares]).T
            places = np.arange(len(found)) + 0.14 * (2 * which - 1)
            axes.errorbar(
                values,
                places,
                xerr=np.clip(ends, 0, None),
                color=COLOURS[which],
                marker=MARKERS[which],
                linestyle="none",
                capsize=3,
                label=label,
            )
        axes.set_yticks(range(len(found)), list(found))
        axes.set_ylim(len(found) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("share of logs in which the interval covers")
        legend(figure, axes)
    told = "; ".join(f"{name} {pair[0].value:.3f} and {pair[1].value:.3f}" for name, pair in found.items())
    return picture(
        figure,
        key="coverage",
        alt=f"How often 95 % intervals cover, by all rows and by explored rows: {told}",
        caption="How often intervals of level 95 % cover, with intervals of that share; the band is what is asked.",
    )
