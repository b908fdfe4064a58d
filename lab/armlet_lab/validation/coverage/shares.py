"""Numbers about many logs: how often intervals hold the truth, biases, and ratios of errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from armlet.inference.means import Estimate, bootstrap
from armlet.types import Float64

Columns: TypeAlias = Mapping[str, Float64]
"""By name, a number for each log."""


def share(hits: Float64) -> Estimate:
    """Give the share of logs, with Wilson's 95 % interval.

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
    """Say of every log whether the interval of an estimator holds the truth."""
    return ((columns[f"{word} low"] <= columns["truth"]) & (columns["truth"] <= columns[f"{word} high"])).astype(float)


def mean_share(hits: Mapping[str, Float64]) -> Estimate:
    """Give the mean over environments of the share of logs; logs are drawn within each environment."""
    mean = float(np.mean([each.mean() for each in hits.values()]))
    spread = float(np.sqrt(sum(float(each.var()) / len(each) for each in hits.values()))) / len(hits)
    return Estimate(mean, mean - 1.959964 * spread, mean + 1.959964 * spread)


def error(columns: Columns, word: str) -> Float64:
    """Give how far each value is from the truth."""
    return columns[f"{word} value"] - columns["truth"]


def bias(columns: Columns, word: str) -> float:
    """Give the mean error in standard errors."""
    errors = error(columns, word)
    return float(errors.mean() / errors.std() * np.sqrt(len(errors)))


def larger(ratios: Mapping[str, Estimate]) -> float:
    """Count the ratios that are above 1 by more than two standard errors."""
    return sum(ratio.value > 1 and ratio.value - 1 > (ratio.high - ratio.low) / 1.96 for ratio in ratios.values())


def rmse_ratio(columns: Columns, rng: np.random.Generator, other: str) -> Estimate:
    """Give the root mean squared error of all rows, weighed, over that of another way."""
    ours, theirs = (error(columns, word) ** 2 for word in ("weighted", other))
    return bootstrap(lambda a, b: np.sqrt(a.mean(-1) / b.mean(-1)), ours, theirs, rng=rng)


def exact(value: float) -> Estimate:
    """Give a number that is no estimate: a count, say."""
    return Estimate(value, value, value)
