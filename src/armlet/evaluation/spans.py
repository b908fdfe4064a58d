"""The interval of a value at one look. Rewards of two kinds, such as clicks, get Wilson's: its ends never coincide.

An interval V -+ t se is short where clicks are few, since its se is small just when V is too low, and is [0, 0] for
none. Wilson's asks which v would explain V: (V - v)^2 <= z^2 v (1 - v) / n, with for n as many rows of equal weight as
have the same standard error, V (1 - V) / se^2.
"""

from __future__ import annotations

import math

from armlet.core.intervals import Interval
from armlet.core.rewards import Range
from armlet.core.student import t_quantile

NOTHING = Interval(-math.inf, math.inf)


def plain(value: float, se: float, ess: float, level: float) -> Interval:
    """Give V -+ t se; all numbers if there are too few rows to tell, or rewards never differed.

    Examples
    --------
    >>> plain(0.5, 0.1, 1e9, 0.95)
    Interval(low=0.304..., high=0.695...)
    """
    if not (math.isfinite(value) and se > 0.0 and ess > 1.0):
        return NOTHING
    reach = t_quantile(0.5 + level / 2, ess - 1.0) * se
    return Interval(value - reach, value + reach)


def wilson(value: float, se: float, ess: float, level: float, ends: Range) -> Interval:
    """Give Wilson's interval for a mean of rewards that are one of two numbers.

    Examples
    --------
    >>> low, high = wilson(0.0, 0.0, 100.0, 0.95, (0.0, 1.0))
    >>> low, round(high, 3)
    (0.0, 0.038)
    """
    low, high = ends
    if not math.isfinite(value) or ess <= 0.0:
        return Interval(low, high)
    u = min(1.0, max(0.0, (value - low) / (high - low)))
    spread = (se / (high - low)) ** 2 if se > 0.0 else 0.0
    n = u * (1.0 - u) / spread if spread > 0.0 and 0.0 < u < 1.0 else ess
    n = max(n, 1e-12)
    z = t_quantile(0.5 + level / 2, max(ess - 1.0, 1.0))
    middle = (u + z * z / (2 * n)) / (1 + z * z / n)
    reach = z / (1 + z * z / n) * math.sqrt(u * (1 - u) / n + z * z / (4 * n * n))
    bottom, top = max(0.0, middle - reach), min(1.0, middle + reach)
    if u == 0.0:
        bottom = 0.0
    if u == 1.0:
        top = 1.0
    return Interval(low + (high - low) * bottom, low + (high - low) * top)
