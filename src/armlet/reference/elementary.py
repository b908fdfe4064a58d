"""Mirrors kernel/linear/elementary.cpp: exp, log and erfc by fixed sequences of IEEE operations.

No two libraries agree to the last bit; these always do.
What a decision or a propensity depends on is computed with these, in the kernel and here alike, so that a run has the
same bits on every system. Some 1 to 10 microseconds a number; `exps` and `logs` take whole arrays.
"""

from __future__ import annotations

import math
from typing import Final, TypeVar

import numpy as np

from armlet.types import Float64

LN2: Final = (6.93147180369123816490e-01, 1.90821492927058770002e-10)
"""log 2 in two parts; the first has so many zeros at its end that a small whole number times it is exact."""
LOG2_E: Final = 1.4426950408889634
ROOT_HALF: Final = 0.70710678118654757
TWO_OVER_ROOT_PI: Final = 1.1283791670955126

EXP: Final = tuple(1.0 / math.factorial(i) for i in range(14))
"""Taylor's series: r^14 / 14! is below 2^-56 for |r| <= log(2) / 2."""
LOG: Final = tuple(1.0 / (2.0 * i + 1.0) for i in range(12))
"""The series of artanh(s) / s in s^2: s^24 / 25 is below 2^-65 for |s| <= 0.1716."""
ERF: Final = tuple(1.0 / (math.factorial(k) * (2.0 * k + 1.0)) for k in range(13))
"""The series of erf(x) / x in -x^2: x^26 / (13! 27) is below 2^-60 for |x| <= 1/2."""
TAIL: Final = (
    1.2375126308378275,
    -0.14024059858554683,
    0.0035854154854635515,
    0.08227673849012578,
    -0.10880393014172078,
    0.09230432116116839,
    -0.058693398589643606,
    0.02836227740440179,
    -0.009746579566909011,
    0.001755625998727877,
    0.000293713800919683,
    -0.0002901549536790636,
    5.164813067515518e-05,
    2.2387507201076533e-05,
    -1.1440162458655546e-05,
    -9.812937689690547e-07,
    1.7416677137597937e-06,
    -4.5907516137617107e-08,
    -2.435690505898307e-07,
    1.3777614753573438e-08,
    2.5728635360083206e-08,
)
"""(1 + 2 x) exp(x^2) erfc(x) for 0.5 <= x <= 26.6 as a polynomial in (x - 3.75) / (x + 3.75), to 2e-17: the interpolant
at Chebyshev's nodes, worked out with 60 digits."""

Number = TypeVar("Number", float, Float64)


def exp(u: float) -> float:
    """Return exp(u) within 2 units of the last place; 0 below -700, infinite above 709.78.

    Examples
    --------
    >>> exp(0.0), round(exp(1.0), 12), exp(-1000.0)
    (1.0, 2.718281828459, 0.0)
    """
    if u < -700.0:
        return 0.0
    if not u <= 709.78:
        return u + math.inf  # or NaN
    k = float(round(u * LOG2_E))
    return math.ldexp(_series(EXP, (u - k * LN2[0]) - k * LN2[1]), int(k))


def exps(u: Float64) -> Float64:
    """Return exp(u) for an array of u <= 0, with the bits of `exp`.

    Examples
    --------
    >>> exps(np.array([0.0, -1.0, -1000.0])).round(6).tolist()
    [1.0, 0.367879, 0.0]
    """
    bounded = np.maximum(u, -700.0)
    k = np.rint(bounded * LOG2_E)
    total = _series(EXP, (bounded - k * LN2[0]) - k * LN2[1])
    out: Float64 = np.where(u >= -700.0, np.ldexp(total, k.astype(np.int64)), 0.0)
    return out


def log(v: float) -> float:
    """Return log(v) within 4 units of the last place.

    With v = 2^e m it is e log 2 + 2 (s + s^3 / 3 + s^5 / 5 + ...), s = (m - 1) / (m + 1).

    Examples
    --------
    >>> log(1.0), round(log(10.0), 12), log(0.0)
    (0.0, 2.302585092994, -inf)
    """
    if not v > 0.0:
        return -math.inf if v == 0.0 else math.nan
    if v == math.inf:
        return v
    m, e = math.frexp(v)
    return _log(m * 2.0, e - 1.0) if m < ROOT_HALF else _log(m, float(e))


def logs(v: Float64) -> Float64:
    """Return log(v) for an array of v > 0, with the bits of `log`.

    Examples
    --------
    >>> logs(np.array([1.0, 2.718281828459045, 1e100])).round(6).tolist()
    [0.0, 1.0, 230.258509]
    """
    m, e = np.frexp(v)
    is_low = m < ROOT_HALF
    return _log(np.where(is_low, m * 2.0, m), e - is_low.astype(np.float64))


def erfc(x: float) -> float:
    """Return 1 - erf(x) within 6 units of the last place; 0 above 26.4.

    Examples
    --------
    >>> erfc(0.0), round(erfc(1.0), 12), erfc(-30.0), erfc(30.0)
    (1.0, 0.15729920705, 2.0, 0.0)
    """
    if abs(x) < 0.5:
        return 1.0 - x * (TWO_OVER_ROOT_PI * _series(ERF, -(x * x)))
    return 2.0 - _tail(-x) if x < 0.0 else _tail(x)


def _series(coefficients: tuple[float, ...], r: Number) -> Number:
    """Add c0 + c1 r + c2 r^2 + ..., from the last."""
    total = r * 0.0
    for one in reversed(coefficients):
        total = total * r + one
    return total


def _log(m: Number, k: Number) -> Number:
    s = (m - 1.0) / (m + 1.0)
    return k * LN2[0] + (k * LN2[1] + 2.0 * s * _series(LOG, s * s))


def _tail(x: float) -> float:
    if not x <= 26.4:
        return 0.0 if x > 0.0 else x  # or NaN
    return _falling_square(x) * _series(TAIL, (x - 3.75) / (x + 3.75)) / (1.0 + 2.0 * x)


def _falling_square(x: float) -> float:
    """Return exp(-x^2): of x = h + l only h has a square without rounding."""
    c = x * 134217729.0
    h = c - (c - x)
    return exp(-(h * h)) * exp(-((x - h) * (x + h)))
