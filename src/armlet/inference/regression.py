"""Ordinary least squares of one arm, from its sums, and how far an estimate may be from the truth.

No ridge, which would bias; in the user's own units. Sums in free units are of y = (1, x - o) and r - l: there is a
constant, and features are looked at about their mean. Sums in units as given are of x and r, without a constant. Either
way a linear function of the coefficients has a value, and an error that is its `spread` times the deviation of the
noise; or the rows do not tell it. O(d^3) an arm.

Three half widths, for three ways in which rows came about:

- `fixed_half_width`: Student's t, at one look that was chosen beforehand, for rows explored independently of rewards.
- `anytime_half_width`: an anytime-valid t (Lindon, Ham, Tingley and Bojinov 2022), for the same rows and normal noise;
  what decides how many rows there are, and when somebody looks, does not matter.
- `ellipsoid_half_width`: the self-normalised bound (Abbasi-Yadkori, Pal and Szepesvari 2011), anytime-valid for rows
  chosen in any way, for noise whose sub-Gaussian scale R is known. Nothing is assumed about the size of coefficients:
  it bounds least squares, not ridge regression.

The last two compare what rows tell with a scale fixed beforehand. So that units do not matter there is one scale for
every power of ten, each with its own share of the chance to be wrong; which one is used may then depend on rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from armlet.inference.intervals import t_quantile
from armlet.kernel import Statistics
from armlet.reference.units import LEAST_SQUARE, ROUNDING, FreeUnits
from armlet.types import Float64

ALIKE: Final = 1e-10
"""An eigenvalue of correlations below this share of features is none: a feature that others make up to five digits."""


@dataclass(frozen=True, slots=True)
class Direction:
    """A linear function of an arm's coefficients: c0 times the constant and c' times the slopes."""

    constant: float
    slopes: Float64  # (d,)

    @staticmethod
    def of_feature(j: int, dim: int) -> Direction:
        """Return the slope of feature j alone."""
        return Direction(0.0, np.eye(dim)[j])

    @staticmethod
    def at(x: Float64) -> Direction:
        """Return the expected reward at x."""
        return Direction(1.0, x)


@dataclass(frozen=True, slots=True)
class Regression:
    """The regression of one arm's rewards on its contexts, in the user's units."""

    rows: float
    has_constant: bool
    middle: Float64  # (d,): the mean of features; zeros without a constant
    level: float  # the mean of rewards; 0 without a constant
    slopes: Float64  # (d,): of a shortest solution, where rows leave a choice
    scales: Float64  # (d,): roots of the centred sums of squares; 0 for a feature that does not vary
    inverse: Float64  # (d, d): of correlations, where they have one
    blind: Float64  # (m, d): what rows do not tell, in units of scales
    rank: int  # coefficients that rows tell apart, the constant among them
    squares: float  # of residuals

    @property
    def size(self) -> int:
        """How many coefficients there are, the constant among them."""
        return len(self.slopes) + self.has_constant

    @property
    def freedom(self) -> float:
        """Rows less coefficients."""
        return self.rows - self.rank

    @property
    def is_enough(self) -> bool:
        """Whether there are enough rows to estimate the noise: at least three more than coefficients."""
        return self.rows > self.size + 2

    @property
    def deviation(self) -> float:
        """Of rewards about the regression."""
        return math.sqrt(self.squares / self.freedom)

    def centred(self, direction: Direction) -> Float64:
        """Return the slopes' part of a direction about the mean context: c - c0 middle."""
        return direction.slopes - direction.constant * self.middle

    def value(self, direction: Direction) -> float:
        """Return the estimate of a linear function."""
        return direction.constant * self.level + float(self.centred(direction) @ self.slopes)

    def tells(self, direction: Direction) -> bool:
        """Return whether rows determine a linear function."""
        if self.rows <= 0 or self.meets_flat(direction):
            return False
        scaled = self._scaled(self.centred(direction))
        return not (np.abs(self.blind @ scaled) > 1e-6 * math.sqrt(float(scaled @ scaled))).any()

    def meets_flat(self, direction: Direction) -> bool:
        """Return whether a linear function needs the slope of a feature that does not vary."""
        room = 1e-9 * (np.abs(direction.slopes) + np.abs(direction.constant * self.middle))
        return bool((np.abs(self.centred(direction)) > room)[self.scales == 0].any())

    def spread(self, direction: Direction) -> float:
        """Return the variance of the estimate in units of that of the noise."""
        scaled = self._scaled(self.centred(direction))
        own = direction.constant**2 / self.rows if self.has_constant else 0.0
        return own + float(scaled @ self.inverse @ scaled)

    def error(self, direction: Direction) -> float:
        """Return the standard error of the estimate of a linear function."""
        return self.deviation * math.sqrt(self.spread(direction))

    def weights(self, direction: Direction) -> tuple[float, Float64]:
        """Return A^-1 c, in coordinates about the middle: that of the constant, those of slopes."""
        own = direction.constant / self.rows if self.has_constant else 0.0
        return own, self._scaled(self.inverse @ self._scaled(self.centred(direction)))

    def _scaled(self, g: Float64) -> Float64:
        return np.divide(g, self.scales, out=np.zeros_like(g), where=self.scales > 0)


def regress(state: Statistics, arm: int, sign: float) -> Regression:
    """Return the regression of one arm; sign -1 turns sums of minus the costs into costs.

    Examples
    --------
    >>> state = Statistics(1, 1, units="free")
    >>> for x, r in ((0.0, 1.0), (1.0, 3.0), (2.0, 5.0), (3.0, 7.0)):
    ...     state.add(0, np.array([x]), r, 1.0)
    >>> found = regress(state, 0, 1.0)
    >>> found.slopes.round(9).tolist(), round(found.value(Direction(1.0, np.zeros(1))), 9), found.freedom
    ([2.0], 1.0, 2.0)
    """
    n, A, b = float(state.n[arm]), state.A[arm], sign * state.b[arm]
    sum_r, sum_rr = sign * float(state.sum_r[arm]), float(state.sum_rr[arm])
    if state.units == "as given":
        return _solved(n, A, b, sum_rr, np.diag(A), np.zeros(len(b)), None)
    origin = origin_of(state)
    if n <= 0:
        return _solved(0.0, A[1:, 1:], b[1:], 0.0, np.zeros(len(b) - 1), origin[1:], 0.0)
    mean, reward = A[0, 1:] / n, sum_r / n
    C = A[1:, 1:] - n * np.outer(mean, mean)
    squares = max(0.0, sum_rr - n * reward * reward)
    raw = np.maximum(np.diag(A)[1:], n * (mean + origin[1:]) ** 2)  # rounding of x itself is not variation either
    return _solved(n, C, b[1:] - sum_r * mean, squares, raw, origin[1:] + mean, sign * float(origin[0]) + reward)


def origin_of(state: Statistics) -> Float64:
    """Return the origin of sums in free units, (D,): that of rewards, those of features."""
    return FreeUnits.of(np.asarray(state.arrays()["units"], dtype=np.float64)).origin


def _solved(
    n: float, C: Float64, moment: Float64, squares: float, raw: Float64, middle: Float64, level: float | None
) -> Regression:
    """Solve C slopes = moment where C has an inverse; raw are squares about zero, which say what rounding leaves."""
    own = np.diag(C)
    varies = (own > ROUNDING * raw) & (own > LEAST_SQUARE * max(n, 1.0))
    scales = np.sqrt(np.where(varies, own, 0.0))
    there = np.flatnonzero(varies)  # among features that do not vary, eigenvectors of 0 would mix with theirs
    values, within = np.linalg.eigh(C[np.ix_(there, there)] / np.outer(scales[there], scales[there]))
    vectors = np.zeros((len(own), len(there)))
    vectors[there] = within
    worst = float(np.max(np.divide(raw, own, out=np.zeros_like(own), where=varies), initial=1.0))
    kept = values > max(ALIKE, 4 * ROUNDING * worst) * max(1, len(own))
    inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
    scaled = np.divide(moment, scales, out=np.zeros_like(moment), where=varies)
    solved = inverse @ scaled
    squares = max(squares, 0.0)  # rows that were taken back may leave less than none
    left = max(squares - float(scaled @ solved), ROUNDING * squares)  # sums do not tell less noise than that
    return Regression(
        rows=n,
        has_constant=level is not None,
        middle=middle if level is not None else np.zeros(len(own)),
        level=level or 0.0,
        slopes=np.divide(solved, scales, out=np.zeros_like(solved), where=varies),
        scales=scales,
        inverse=inverse,
        blind=vectors[:, ~kept].T,
        rank=int(kept.sum()) + (level is not None),
        squares=left,
    )


Looks: TypeAlias = Literal["fixed", "anytime"]

PHI: Final = 4.0
"""The rows (of a feature with deviation 1) that an anytime t is sharpest about, and more."""


def share(power: int) -> float:
    """Return the share of the chance that a power of ten has; all of them add up to 1.

    Examples
    --------
    >>> round(sum(share(power) for power in range(-10_000, 10_001)), 3)
    1.0
    """
    return 0.5 if power == 0 else 0.25 / (power * power) / (math.pi**2 / 6)


def power_of(deviation: float) -> int:
    """Return the nearest power of ten."""
    return round(math.log10(deviation))


def fixed_half_width(regression: Regression, direction: Direction, chance: float) -> float:
    """Return the half width of an interval at one look: Student's t."""
    return t_quantile(1 - chance / 2, regression.freedom) * regression.error(direction)


def anytime_half_width(regression: Regression, direction: Direction, chance: float) -> float:
    """Return the half width of an anytime-valid interval; infinite while there are too few rows for one."""
    spread = regression.spread(direction)
    power = power_of(
        1.0 / math.sqrt(regression.rows * spread)
    )  # of a slope: what its feature varies next to the others
    reach = anytime_t(regression.freedom, spread * 10.0 ** (2 * power), chance * share(power))
    return reach * regression.error(direction)


def anytime_t(freedom: float, spread: float, chance: float) -> float:
    """Return the anytime-valid quantile of t, for an estimate whose variance is `spread` times that of the noise.

    Examples
    --------
    >>> round(anytime_t(50, 1 / 60, 0.05), 3), anytime_t(2, 1.0, 0.001)
    (3.182, inf)
    """
    g = PHI / (PHI + 1.0 / spread)
    c = (chance * chance * g) ** (-1.0 / (freedom + 1.0))
    return math.inf if c * g >= 1.0 else math.sqrt(freedom * (c - 1.0) / (1.0 - c * g))


def ellipsoid_half_width(
    state: Statistics, arm: int, regression: Regression, direction: Direction, chance: float, R: float
) -> float:
    """Return the anytime-valid half width for rows chosen in any way, for all directions at once."""
    powers = [power_of(scale / math.sqrt(regression.rows)) if scale > 0 else 0 for scale in regression.scales.tolist()]
    scales = 10.0 ** np.array(powers, dtype=np.float64)
    for power in powers:
        chance *= share(power)
    own, slopes = regression.weights(direction)
    A = state.A[arm]
    u = slopes
    if regression.has_constant:  # back from the middle to sums about the origin
        shift = A[0, 1:] / regression.rows
        u, scales = np.concatenate([[own - float(shift @ slopes)], slopes]), np.concatenate([[1.0], scales])
    grown = np.eye(len(A)) + A / np.outer(scales, scales)
    volume = float(np.linalg.slogdet(grown)[1])
    width = regression.spread(direction) + float(((u * scales) ** 2).sum())
    square = width * (volume - 2.0 * math.log(chance))
    return R * math.sqrt(square) if square >= 0 else math.inf  # below 0 where rounding has eaten the sums
