"""The interval of a value at one look. Rewards of two kinds, such as clicks, get Wilson's: its ends never coincide.

An interval V -+ t se is short where clicks are few, since its se is small just when V is too low, and is [0, 0] for
none. Wilson's asks which v would explain V: (V - v)^2 <= z^2 v (1 - v) / n, with for n as many rows of equal weight as
have the same standard error, V (1 - V) / se^2. Weights can carry V out of the range; no v explains that, and the
interval is then as wide as V -+ t se where they overlap, at least.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from armlet.inference.intervals import Interval, t_quantile
from armlet.inputs.settings import Range

NOTHING = Interval(-math.inf, math.inf)
ROUNDED = 1e-9  # of a range: an estimate that misses it by less has been rounded


class Rewards(NamedTuple):
    """What is known of the rewards of a log."""

    range: Range | None  # (0, 1) where every reward is one of these; else as declared
    binary: bool = False
    constant: float | None = None  # the reward of every row, where all are the same


def interval(value: float, se: float, ess: float, level: float, rewards: Rewards) -> tuple[Interval | None, str]:
    """Give the interval of a mean of rewards; or None, and why.

    Examples
    --------
    >>> interval(0.5, 0.1, 1e9, 0.95, Rewards((0.0, 0.6)))
    (Interval(low=0.304..., high=0.6), '')
    >>> interval(7.0, 0.0, 50.0, 0.95, Rewards(None, constant=7.0))
    (None, 'every reward is 7, so nothing tells how far others may lie; declare reward_range')
    >>> interval(1.5, 0.1, 50.0, 0.95, Rewards((0.0, 1.0)))[1]
    'the estimate, 1.5 [1.3, 1.7], lies outside the declared range of rewards, [0, 1]'
    """
    ends, constant = rewards.range, rewards.constant
    if constant is not None and ends is None:
        return None, f"every reward is {constant:g}, so nothing tells how far others may lie; declare reward_range"
    if constant is not None and ends is not None:
        return hull(wilson(value, 0.0, ess, level, ends), Interval(constant, constant), ends), ""
    if ends is not None and (rewards.binary or se == 0.0):
        return wilson(value, se, ess, level, ends), ""
    found = plain(value, se, ess, level)
    if ends is None:
        return (found, "") if found != NOTHING else (None, "too few rows tell of it for an interval")
    within = Interval(max(found.low, ends[0]), min(found.high, ends[1]))
    if within.low <= within.high:
        return within, ""
    told = f"{value:.2g} [{found.low:.2g}, {found.high:.2g}]"
    return None, f"the estimate, {told}, lies outside the declared range of rewards, [{ends[0]:g}, {ends[1]:g}]"


def in_range(value: float, ends: Range | None) -> tuple[float, str]:
    """Give the number nearest to an estimate that a mean of rewards can be, and say if that is another.

    Examples
    --------
    >>> in_range(-0.54, (0.0, 1.0))
    (0.0, 'the estimate, -0.54, is outside the range of rewards, [0, 1]: its end is given')
    >>> in_range(-0.54, None), in_range(1.0000000000000002, (0.0, 1.0))
    ((-0.54, ''), (1.0, ''))
    """
    if ends is None or not math.isfinite(value):
        return value, ""
    within = min(max(value, ends[0]), ends[1])
    if abs(value - within) <= ROUNDED * (ends[1] - ends[0]):
        return within, ""
    told = f"the estimate, {value:.4g}, is outside the range of rewards, [{ends[0]:g}, {ends[1]:g}]: its end is given"
    return within, told


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
    >>> low, high = wilson(1.02, 0.06, 100.0, 0.95, (0.0, 1.0))
    >>> round(low, 3), high
    (0.901, 1.0)
    """
    low, high = ends
    if not math.isfinite(value) or ess <= 0.0:
        return Interval(low, high)
    V = (value - low) / (high - low)
    u = min(1.0, max(0.0, V))
    spread = (se / (high - low)) ** 2 if se > 0.0 else 0.0
    n = u * (1.0 - u) / spread if spread > 0.0 and 0.0 < u < 1.0 else ess
    n = max(n, 1e-12)
    z = t_quantile(0.5 + level / 2, max(ess - 1.0, 1.0))
    middle = (u + z * z / (2 * n)) / (1 + z * z / n)
    reach = z / (1 + z * z / n) * math.sqrt(u * (1 - u) / n + z * z / (4 * n * n))
    bottom, top = max(0.0, middle - reach), min(1.0, middle + reach)
    if u == 0.0:
        bottom, top = 0.0, min(1.0, max(top, V + z * math.sqrt(spread)))
    if u == 1.0:
        bottom, top = max(0.0, min(bottom, V - z * math.sqrt(spread))), 1.0
    return Interval(low + (high - low) * bottom, low + (high - low) * top)


def hull(one: Interval, other: Interval, ends: Range) -> Interval:
    """Give the least interval that holds both, as far as rewards go.

    Examples
    --------
    >>> hull(Interval(0.2, 0.8), Interval(0.5, 1.1), (0.0, 1.0))
    Interval(low=0.2, high=1.0)
    """
    return Interval(max(ends[0], min(one.low, other.low)), min(ends[1], max(one.high, other.high)))


def between(one: tuple[float, Interval], other: tuple[float, Interval], correlation: float) -> Interval:
    """Give the interval of one - other, each a value with its own interval: their reaches, added as those of normals.

    It keeps the room that an interval leaves for clicks that were not seen, where a standard error of 0 would not.

    Examples
    --------
    >>> none, few = (0.0, Interval(0.0, 0.04)), (0.01, Interval(0.005, 0.02))
    >>> low, high = between(none, few, 0.0)
    >>> round(low, 3), round(high, 3)
    (-0.02, 0.03)
    """
    (a, (a_low, a_high)), (b, (b_low, b_high)) = one, other
    below = _reach(a - a_low, b_high - b, correlation)
    above = _reach(a_high - a, b - b_low, correlation)
    return Interval(a - b - below, a - b + above)


def _reach(one: float, other: float, correlation: float) -> float:
    one, other = max(0.0, one), max(0.0, other)
    return math.sqrt(max(0.0, one * one + other * other - 2.0 * correlation * one * other))
