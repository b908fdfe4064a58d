"""Wealth against a guess: lower bounds on a mean that hold at every look at once.

Scores X_1, X_2, ... >= 0 have mean mu in [0, 1] given what came before. Who bets that the mean is above nu, at fair
odds, cannot expect to gain if it is not (mu <= nu), so wealth that reaches 1/chance refutes nu: it ever does so
wrongly with at most that chance (Ville). The lower bound is the largest nu that is refuted. Nothing is asked of how
large a score may be.

- `GammaExponential`: bets of all sizes at once, mixed by a gamma law (Howard et al. 2021; Waudby-Smith et al. 2024,
  where it bounds the value of a policy; the `cs` of vw-estimators). O(1) state, many means at once.
- `Betting`: one bet a row, sized by what the rows before it show, against every nu of a grid (Waudby-Smith and Ramdas
  2024). Narrower for few rows. O(grid) a row.
- `Hedge`: half of the money on each, the bettor stopping after 500 rows. The mean of two wealths is a wealth, so
  nothing is chosen by looking; it costs log 2.

If the mean given the past moves, `GammaExponential` bounds the running mean of these means; the others are for a mean
that stays.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from armlet.types import Float64

RHO: Final = 1.0
"""The gamma law of the sizes of bets: mass near 1 / sqrt(variance seen) when that is small."""
SWITCH: Final = 500
"""The bettor of a hedge bets on so many rows."""
GRID: Final[Float64] = np.sin(np.linspace(0.0, np.pi / 2, 258)[1:-1]) ** 2  # (256,): finest where means are near 0 or 1
BLOCK: Final = 256  # rows of a table of bets
DROP: Final = 36.0  # parts of an integral below exp(-36) of its peak are left out
NODES, WEIGHTS = np.polynomial.legendre.leggauss(96)


@dataclass(slots=True)
class Sums:
    """What rows leave behind: how many, their total, and their squares about a guess made before each."""

    rows: int = 0
    total: Float64 = field(default_factory=lambda: np.zeros(()))
    squares: Float64 = field(default_factory=lambda: np.zeros(()))

    def add(self, X: Float64) -> Float64:
        """Add rows, (n, ...); return the squares before each of them."""
        totals, before = _running(self.total, X), np.arange(self.rows, self.rows + len(X))
        # a guess above 1 would break the inequality: X - guess must not fall below -1
        guesses = np.minimum((totals[:-1] + 0.5) / (before + 1.0).reshape(-1, *[1] * (X.ndim - 1)), 1.0)
        squares = _running(self.squares, (X - guesses) ** 2)
        self.rows, self.total, self.squares = self.rows + len(X), totals[-1], squares[-1]
        return squares[:-1]


def _running(start: Float64, steps: Float64) -> Float64:
    """Return start, start + step 1, ..., added one by one: the same bits however rows are cut into blocks."""
    first = np.broadcast_to(start, steps.shape[1:])[np.newaxis]
    return np.asarray(np.cumsum(np.concatenate([first, steps]), axis=0))


@dataclass(slots=True)
class GammaExponential:
    """Lower bounds on one mean, or on J of them at once.

    Examples
    --------
    >>> bets = GammaExponential(0.025)
    >>> bets.add(np.tile([0.0, 1.0], 500))
    >>> round(float(bets.bound()), 3)
    0.44
    """

    chance: float
    sums: Sums = field(default_factory=Sums)

    def add(self, X: Float64) -> None:
        """Add rows: (n,), or (n, J) for J means."""
        self.sums.add(X)

    def log_wealth(self, nu: npt.ArrayLike) -> Float64:
        """Return the log of the wealth against nu."""
        excess = self.sums.total - self.sums.rows * np.asarray(nu, dtype=np.float64)
        return mixed_wealth(excess, self.sums.squares)

    def bound(self) -> Float64:
        """Return the lower bound of each mean."""
        return self.bound_at(-math.log(self.chance))

    def bound_at(self, log_wealth: float) -> Float64:
        """Return the nu against which the log of the wealth is so large."""
        if self.sums.rows == 0:
            return np.zeros_like(self.sums.total)
        margin = mixed_margin(self.sums.squares, log_wealth)
        return np.clip((self.sums.total - margin) / self.sums.rows, 0.0, 1.0)


def mixed_wealth(excess: npt.ArrayLike, squares: npt.ArrayLike) -> Float64:
    """Return the log of the integral of exp(l s - (-log(1 - l) - l) v) over l in [0, 1), by the gamma law.

    With a = v + rho and x = s + a that is a lower incomplete gamma function of (a, x) times simple terms; here in the
    logarithm of its variable, about the peak, where Gauss's rule has 11 digits for any a.

    Examples
    --------
    >>> round(float(mixed_wealth(20.0, 50.0)), 6)
    1.534304
    """
    return _mixed(np.asarray(excess, dtype=np.float64), np.asarray(squares, dtype=np.float64))[0]


def _mixed(s: Float64, v: Float64) -> tuple[Float64, Float64]:
    """Return the log of the mixed wealth, and its slope in s; far below s = 0 there is next to none, here none."""
    a = v + RHO
    inside = s > -np.minimum(0.9 * a, 8 * np.sqrt(a))
    s = np.where(inside, s, 0.0)
    last, q = np.log1p(s / a), np.sqrt(2 * DROP / a)
    right = np.minimum(q, last)
    left = np.minimum(right, 0.0) - (q + q * q / 2)  # all of it lies left of the peak if s < 0
    half = (right - left) / 2
    z = (left + right)[..., np.newaxis] / 2 + half[..., np.newaxis] * NODES
    area = half * (np.exp(a[..., np.newaxis] * (z - np.expm1(z))) @ WEIGHTS)
    log_wealth = CONSTANT + (s - a * last) + np.log(area)
    slope = s / (a + s) + np.exp(a * (last - np.expm1(last))) / (area * (a + s))
    return np.where(inside, log_wealth, -np.inf), slope


CONSTANT: Final = RHO * math.log(RHO) - math.log(-math.expm1(-RHO)) - RHO  # of the gamma law cut at 1, for rho = 1


def mixed_margin(squares: npt.ArrayLike, log_wealth: npt.ArrayLike) -> Float64:
    """Return the excess at which the mixed wealth is so large, to rounding, on the safe side.

    Examples
    --------
    >>> margin = mixed_margin(50.0, math.log(40))
    >>> round(float(margin), 3), round(math.exp(mixed_wealth(margin, 50.0)), 6)
    (26.841, 40.0)
    """
    v, goal = np.broadcast_arrays(np.asarray(squares, dtype=np.float64), np.asarray(log_wealth, dtype=np.float64))
    reach = goal + 2.0 + np.log1p(v)
    s = np.sqrt(2 * (v + RHO) * reach) + reach  # right of the root; the log of the wealth is convex in s, so Newton
    for _ in range(30):  # comes down to it without passing
        found, slope = _mixed(s, v)
        step = (found - goal) / slope
        s = s - step
        if bool(np.all(np.abs(step) <= 1e-12 * (1.0 + np.abs(s)))):
            break
    return np.asarray(s)


@dataclass(slots=True)
class Betting:
    """A lower bound from bets against every nu of a grid: the last of them that is refuted, for the next is not.

    Wealth falls as nu grows, row by row, so those refuted come first.

    Examples
    --------
    >>> bets = Betting(0.025)
    >>> bets.add(np.tile([0.0, 1.0], 50))
    >>> round(bets.bound(), 3)
    0.335
    """

    chance: float
    sums: Sums = field(default_factory=Sums)
    log_wealth: Float64 = field(default_factory=lambda: np.zeros(len(GRID)))

    def add(self, X: Float64) -> None:
        """Add rows, (n,)."""
        for start in range(0, len(X), BLOCK):
            self._add(X[start : start + BLOCK])

    def _add(self, X: Float64) -> None:
        t = np.arange(self.sums.rows + 1, self.sums.rows + len(X) + 1)
        variance = (0.25 + self.sums.add(X)) / t
        sizes = np.sqrt(-2 * math.log(self.chance) / (variance * t * np.log1p(t)))
        bets = np.minimum(sizes[:, np.newaxis], 0.5 / GRID)  # at most half of the wealth can be lost in a row
        self.log_wealth = _running(self.log_wealth, np.log1p(bets * (X[:, np.newaxis] - GRID)))[-1]

    def bound(self) -> float:
        """Return the last nu that is refuted, 0 if none is."""
        refuted = np.flatnonzero(self.log_wealth >= -math.log(self.chance))
        return float(GRID[refuted[-1]]) if refuted.size else 0.0


@dataclass(slots=True)
class Hedge:
    """A lower bound from half of the money on each of the two, chosen before any row.

    Examples
    --------
    >>> few, many = Hedge(0.025), Hedge(0.025)
    >>> few.add(np.tile([0.0, 1.0], 50))
    >>> many.add(np.tile([0.0, 1.0], 500))
    >>> round(few.bound(), 3), round(many.bound(), 3)
    (0.324, 0.437)
    """

    chance: float
    mixture: GammaExponential = field(init=False)
    bettor: Betting = field(init=False)

    def __post_init__(self) -> None:
        self.mixture, self.bettor = GammaExponential(self.chance), Betting(self.chance)

    def add(self, X: Float64) -> None:
        """Add rows, (n,)."""
        left = max(0, SWITCH - self.bettor.sums.rows)
        self.bettor.add(X[:left])  # after that its wealth is kept, which is a bet of 0
        self.mixture.add(X)

    def bound(self) -> float:
        """Return the largest nu that is refuted."""
        kept, goal = self._refuted(), math.log(2 / self.chance)  # nu of the grid that are refuted come first
        low = float(GRID[kept - 1]) if kept else 0.0
        if kept == len(GRID):
            return low
        # up to the next nu the bettor has at least what it has there; what is missing, the mixture must have
        missing = goal + math.log1p(-math.exp(float(self.bettor.log_wealth[kept]) - goal))
        return max(low, float(self.mixture.bound_at(missing)))

    def _refuted(self) -> int:
        """Count the nu of the grid that are refuted, by halving: wealth falls as nu grows."""
        goal = math.log(2 / self.chance)

        def is_kept(place: int) -> bool:
            both = np.logaddexp(self.bettor.log_wealth[place], self.mixture.log_wealth(GRID[place]))
            return bool(both < goal)

        return bisect_left(range(len(GRID)), True, key=is_kept)
