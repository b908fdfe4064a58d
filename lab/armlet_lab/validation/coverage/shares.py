"""Numbers about many logs: how often intervals hold the truth, biases, ratios of errors; in words, and as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from armlet.inference.intervals import bootstrap
from armlet.report import plots
from armlet.report.plots import COLOURS, DASHES, INK, MARKERS, Picture, legend, picture
from armlet.types import Estimate, Float64

Columns: TypeAlias = Mapping[str, Float64]
"""By name, a number for each log."""
LABELS = ("all rows, weighted", "explored rows alone")


def share(hits: Float64) -> Estimate:
    """Return the share of logs, with Wilson's 95 % interval.

    Examples
    --------
    >>> print(f"{share(np.array([1.0] * 95 + [0.0] * 5)):.3f}")
    0.950 [0.888 to 0.978]
    """
    n, p, z = len(hits), float(hits.mean()), 1.959964
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    reach = z / (1 + z * z / n) * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return Estimate(p, max(0.0, min(p, middle - float(reach))), min(1.0, max(p, middle + float(reach))))


def covers(columns: Columns, word: str) -> Float64:
    """Return for every log whether the interval of an estimator holds the truth."""
    return ((columns[f"{word} low"] <= columns["truth"]) & (columns["truth"] <= columns[f"{word} high"])).astype(float)


def mean_share(hits: Mapping[str, Float64]) -> Estimate:
    """Return the mean over environments of the share of logs; logs are drawn within each environment."""
    mean = float(np.mean([each.mean() for each in hits.values()]))
    spread = float(np.sqrt(sum(float(each.var()) / len(each) for each in hits.values()))) / len(hits)
    return Estimate(mean, mean - 1.959964 * spread, mean + 1.959964 * spread)


def error(columns: Columns, word: str) -> Float64:
    """Return how far each value is from the truth."""
    return columns[f"{word} value"] - columns["truth"]


def bias(columns: Columns, word: str) -> float:
    """Return the mean error in standard errors."""
    errors = error(columns, word)
    return float(errors.mean() / errors.std() * np.sqrt(len(errors)))


def larger(ratios: Mapping[str, Estimate]) -> float:
    """Count the ratios that are above 1 by more than two standard errors."""
    return sum(ratio.value > 1 and ratio.value - 1 > (ratio.high - ratio.low) / 1.96 for ratio in ratios.values())


def rmse_ratio(columns: Columns, rng: np.random.Generator, other: str) -> Estimate:
    """Return the root mean squared error of all rows, weighed, over that of another way."""
    ours, theirs = (error(columns, word) ** 2 for word in ("weighted", other))
    return bootstrap(lambda a, b: np.sqrt(a.mean(-1) / b.mean(-1)), ours, theirs, rng=rng)


def percent(found: Estimate) -> str:
    """Write a share with its interval in percent.

    Examples
    --------
    >>> percent(Estimate(0.9512, 0.94, 0.96))
    '95.1 % [94.0 to 96.0]'
    """
    return f"{100 * found.value:.1f} % [{100 * found.low:.1f} to {100 * found.high:.1f}]"


def picture_of(found: Mapping[str, tuple[Estimate, Estimate]], band: tuple[float, float]) -> Picture:
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
    figures = "; ".join(f"{name} {pair[0].value:.3f} and {pair[1].value:.3f}" for name, pair in found.items())
    return picture(
        figure,
        key="coverage",
        alt=f"How often 95 % intervals cover, by all rows and by explored rows: {figures}",
        caption="How often intervals of level 95 % cover, with intervals of that share; the band is what is asked.",
    )
