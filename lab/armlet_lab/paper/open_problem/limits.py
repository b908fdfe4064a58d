"""Means and shares with one-sided limits of 99.9 %, one on each side."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from armlet.inference.intervals import t_quantile
from armlet.types import Estimate, Float64

LIMIT: Final = 0.999


def mean_with_limits(column: Float64, unit: float = 1.0) -> Estimate:
    """Return the mean over runs in some unit, with limits of 99.9 % on each side by Student's t.

    Examples
    --------
    >>> print(f"{mean_with_limits(np.array([1.0, 2.0, 3.0, 2.0] * 10)):.2f}")
    2.00 [1.62 to 2.38]
    """
    mean, spread = float(column.mean()), float(column.std(ddof=1)) / math.sqrt(len(column))
    reach = t_quantile(LIMIT, len(column) - 1) * spread
    return Estimate(mean / unit, (mean - reach) / unit, (mean + reach) / unit)


def share_with_limits(cases: int, n: int) -> Estimate:
    """Return the share of cases among n, with limits of 99.9 % on each side by the binomial law (Clopper, Pearson).

    Examples
    --------
    >>> print(f"{share_with_limits(0, 135):.4f}", f"{share_with_limits(50, 100):.3f}")
    0.0000 [0.0000 to 0.0499] 0.500 [0.345 to 0.655]
    """
    low = 0.0 if cases == 0 else _root(lambda p: 1.0 - _at_most(cases - 1, n, p) < 1.0 - LIMIT)
    high = 1.0 if cases == n else _root(lambda p: _at_most(cases, n, p) > 1.0 - LIMIT)
    return Estimate(cases / n, low, high)


def _at_most(cases: int, n: int, p: float) -> float:
    k = np.arange(cases + 1)
    chosen = np.array([math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in k])
    return float(np.exp(chosen + k * math.log(p) + (n - k) * math.log1p(-p)).sum())


def _root(is_below: Callable[[float], bool]) -> float:
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return (low + high) / 2
