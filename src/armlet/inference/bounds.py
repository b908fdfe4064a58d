"""How far an estimate may be from the truth: three laws, for three ways in which rows came about.

- `fixed`: Student's t, at one look that was chosen beforehand, for rows that were explored whatever rewards had been.
- `anytime`: a t that holds at all looks at once (Lindon, Ham, Tingley and Bojinov 2022), for the same rows and normal
  noise; what decides how many rows there are, and when somebody looks, does not matter.
- `ellipsoid`: the self-normalised bound (Abbasi-Yadkori, Pal and Szepesvari 2011), at all looks, whoever chose the rows
  and by whatever, for noise whose sub-Gaussian scale R is known. Nothing is asked of the size of coefficients: it
  bounds least squares, not ridge regression.

The last two compare what rows tell with a scale fixed beforehand. So that units do not matter there is one scale for
every power of ten, each with its own share of the chance to be wrong; which one is used may then depend on rows.
"""

from __future__ import annotations

import math
from typing import Final, Literal, TypeAlias

import numpy as np

from armlet.inference.regression import Direction, Regression
from armlet.inference.student import t_quantile
from armlet.kernel import Statistics

Looks: TypeAlias = Literal["fixed", "anytime"]

PHI: Final = 4.0
"""The rows (of a feature with deviation 1) that an anytime t is sharpest about, and more."""


def share(power: int) -> float:
    """Give the share of the chance that a power of ten has; all of them add up to 1.

    Examples
    --------
    >>> round(sum(share(power) for power in range(-10_000, 10_001)), 3)
    1.0
    """
    return 0.5 if power == 0 else 0.25 / (power * power) / (math.pi**2 / 6)


def power_of(deviation: float) -> int:
    """Give the nearest power of ten.

    Examples
    --------
    >>> power_of(0.9), power_of(2e5)
    (0, 5)
    """
    return round(math.log10(deviation))


def fixed(found: Regression, direction: Direction, chance: float) -> float:
    """Give the half width of an interval at one look."""
    return t_quantile(1 - chance / 2, found.freedom) * error(found, direction)


def error(found: Regression, direction: Direction) -> float:
    """Give the standard error of a linear function."""
    return found.deviation * math.sqrt(found.spread(direction))


def anytime(found: Regression, direction: Direction, chance: float) -> float:
    """Give the half width of an interval at all looks; infinite while there are too few rows for one."""
    spread = found.spread(direction)
    power = power_of(1.0 / math.sqrt(found.rows * spread))  # of a slope: what its feature varies beside the others
    reach = anytime_t(found.freedom, spread * 10.0 ** (2 * power), chance * share(power))
    return reach * error(found, direction)


def anytime_t(freedom: float, spread: float, chance: float) -> float:
    """Give how large t may be at all looks, for an estimate whose variance is `spread` times that of the noise.

    Examples
    --------
    >>> round(anytime_t(50, 1 / 60, 0.05), 3), anytime_t(2, 1.0, 0.001)
    (3.182, inf)
    """
    g = PHI / (PHI + 1.0 / spread)
    c = (chance * chance * g) ** (-1.0 / (freedom + 1.0))
    return math.inf if c * g >= 1.0 else math.sqrt(freedom * (c - 1.0) / (1.0 - c * g))


def ellipsoid(state: Statistics, arm: int, found: Regression, direction: Direction, chance: float, R: float) -> float:
    """Give the half width of an interval at all looks, for rows chosen by anything, for all directions at once."""
    powers = [power_of(scale / math.sqrt(found.rows)) if scale > 0 else 0 for scale in found.scales.tolist()]
    scales = 10.0 ** np.array(powers, dtype=np.float64)
    for power in powers:
        chance *= share(power)
    own, slopes = found.weights(direction)
    A = state.A[arm]
    u = slopes
    if found.has_constant:  # back from the middle to sums about the origin
        shift = A[0, 1:] / found.rows
        u, scales = np.concatenate([[own - float(shift @ slopes)], slopes]), np.concatenate([[1.0], scales])
    grown = np.eye(len(A)) + A / np.outer(scales, scales)
    volume = float(np.linalg.slogdet(grown)[1])
    width = found.spread(direction) + float(((u * scales) ** 2).sum())
    return R * math.sqrt(width * (volume - 2.0 * math.log(chance)))
