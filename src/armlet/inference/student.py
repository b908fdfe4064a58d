"""Student's law: tails and quantiles, for any degrees of freedom above 0, whole or not.

The tail is a regularised incomplete beta function, by its continued fraction; the quantile is the root of the tail.
From 10,000 degrees on the expansion about the normal quantile has more digits than logarithms of gamma functions leave.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Final

from armlet.errors import InvalidValueError

MANY: Final = 1e4
TINY: Final = 1e-300


def t_quantile(probability: float, freedom: float) -> float:
    """Give the value below which Student's t lies with a probability, to 10 digits.

    Examples
    --------
    >>> [round(t_quantile(0.975, freedom), 4) for freedom in (1, 2.5, 30, 1e9)]
    [12.7062, 3.5747, 2.0423, 1.96]
    """
    if not 0.0 < probability < 1.0:
        raise InvalidValueError(f"probability is {probability!r} but must lie between 0 and 1")
    if not freedom > 0.0:
        raise InvalidValueError(f"freedom is {freedom!r}; give a positive number of degrees of freedom")
    if probability < 0.5:
        return -t_quantile(1.0 - probability, freedom)
    if freedom > MANY:
        return _expanded(NormalDist().inv_cdf(probability), freedom)
    return _root(1.0 - probability, freedom)


def t_tail(t: float, freedom: float) -> float:
    """Give the probability that Student's t lies above a value, to 15 places after the point.

    Examples
    --------
    >>> round(t_tail(1.0, 1.0), 12), round(t_tail(-2.0, 10.0), 6)
    (0.25, 0.963306)
    """
    if t < 0.0:
        return 1.0 - t_tail(-t, freedom)
    if freedom > MANY:
        return _large_tail(t, freedom)
    square = t * t
    if square > freedom:
        return 0.5 * _beta_share(freedom / 2, 0.5, freedom / (freedom + square))
    return 0.5 - 0.5 * _beta_share(0.5, freedom / 2, square / (freedom + square))


def _large_tail(t: float, v: float) -> float:
    z = t  # Newton on the expansion: its slope is 1 + O(1/v)
    for _ in range(6):
        z -= _expanded(z, v) - t
    return NormalDist().cdf(-z)


def _expanded(z: float, v: float) -> float:
    """Give the quantile of t where the normal law has z: Fisher's expansion in 1/v."""
    terms = (
        z,
        (z**3 + z) / (4 * v),
        (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2),
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3),
    )
    return sum(terms)


@lru_cache(maxsize=1024)  # several estimates of one log have as many effective rows
def _root(tail: float, freedom: float) -> float:
    """Find the t with this tail, at most one half: Newton's steps within bounds that close in on it, or halves."""
    low, high = 0.0, 1.0
    while t_tail(high, freedom) > tail and high < 1e300:
        low, high = high, high * 4.0
    t = (low + high) / 2
    for _ in range(200):
        excess = t_tail(t, freedom) - tail
        low, high = (t, high) if excess > 0.0 else (low, t)
        slope = _density(t, freedom)
        step = excess / slope if slope > 0.0 else math.inf
        following = t + step if low < t + step < high else (low + high) / 2
        if abs(following - t) <= 1e-14 * t or following in (low, high):
            return following
        t = following
    return t


def _density(t: float, v: float) -> float:
    log_front = math.lgamma((v + 1) / 2) - math.lgamma(v / 2) - 0.5 * math.log(v * math.pi)
    return math.exp(log_front - (v + 1) / 2 * math.log1p(t * t / v))


def _beta_share(a: float, b: float, x: float) -> float:
    """Give the regularised incomplete beta function I_x(a, b)."""
    if x <= 0.0 or x >= 1.0:
        return min(1.0, max(0.0, x))
    if x > (a + 1) / (a + b + 2):
        return 1.0 - _beta_share(b, a, 1.0 - x)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(log_front) * _fraction(a, b, x) / a


def _fraction(a: float, b: float, x: float) -> float:
    """Give the continued fraction of I_x(a, b), from its head on (Lentz)."""
    c, d = 1.0, 1.0 / _off_zero(1.0 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        change = 1.0
        for term in (even, odd):
            d = 1.0 / _off_zero(1.0 + term * d)
            c = _off_zero(1.0 + term / c)
            change = c * d
            value *= change
        if abs(change - 1.0) < 1e-16:
            break
    return value


def _off_zero(value: float) -> float:
    return value if abs(value) > TINY else TINY
