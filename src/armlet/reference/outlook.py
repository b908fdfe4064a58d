"""Mirrors kernel/rules/auto/outlook.cpp: how a p that sets itself forecasts regret in free units, arm by arm.

As in `tuning`, the lead of the arm that looks best over a rival is about normal, N(g, s^2): exploiting
loses E max(0, -lead) a step, and less of it with more rows. What is different here:

- s^2 is noise^2 z'(A_z + I)^-1 z in standard units, and no more than the variance of rewards: neither the size of
  contexts nor the ridge of the estimates has a say in how well an arm is known. Both are the arm's own, with `PRIOR`
  rows of all arms: one noisy arm takes many rows to know, and that is no reason to explore the others.
- Exploring is shared out by what is in doubt. h_a adds up E max(0, -lead) over the duels that arm a has with the best
  arm of a context, and for the best arm over all of its duels. Arm a gets the share (1 - even) sqrt(h_a) / sum sqrt(h)
  + even / K of p, regardless of x.
- The evidence clock plays it, arm a with q_a = p share_a. With n rows that are shared out alike, it explores with
  probability min(1, K exp(1 - n / p)): at every step up to n = p (1 + log K), then n grows by p log(tau / c), where tau
  counts steps from c = p / rate on. The forecast follows that curve.
- Without a horizon there are ten times as many steps as were, at every look; and never more than an arm lives, where
  arms come and go: what is known of an arm is of no use after it.

The kernel does the same in C++: to the last bit in the p and the shares, which are rounded so that no platform's
logarithm decides. O(m K D^2 + K D^3) for m contexts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from armlet.reference.auto_schedule import (
    MULTIPLE,
    MULTIPLES,
    NODES,
    ExploredSums,
    Prospect,
    candidates,
    interpolate,
    loss,
    regret,
)
from armlet.reference.elementary import exp, log
from armlet.reference.linear import BEYOND_ANY, smallest_eigenvalue, solve, width
from armlet.reference.under_way import silent
from armlet.reference.units import ROUNDING, FreeUnits
from armlet.types import Bool, Float64, Int64

GROWTH: Final = 1.1
"""Rows at a look over rows at the one before."""
LONGER: Final = 10.0
"""Without a horizon: steps that there are going to be, over those that were."""
FINEST: Final = 2.0**20
"""Shares are whole multiples of its inverse."""
COARSE: Final = 2.0**10
"""Also what p may be until the next look."""
PRIOR: Final = 4.0
"""Rows that the noise of all arms counts for in an arm's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeRows(ExploredSums):
    """Sums over explored rows, about an origin: of y = (1, x - o) and of r - l, so that d is D = d + 1."""

    active: Bool  # (K,): which arms may be played
    under_way: Float64  # (K,): m, decisions whose rewards have not come back
    units: FreeUnits
    turnover: Float64  # (2,): arms that came after the first row, and arms that were removed

    @property
    def known(self) -> Int64:
        """The arms that a look is about: one of which nothing has come back would be explored until something has."""
        return np.flatnonzero(self.active & ~silent(self.n, self.under_way))

    def life(self, t: float) -> float:
        """Return K t over the arms that came and went, those that rest among these: steps that an arm is there."""
        came, left = self.turnover.tolist()
        K = int(self.active.sum())
        turns = min(came, left + (len(self.active) - K))
        return K * t / turns if turns > 0 else math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook(Prospect):
    """What explored rows say about exploring: in standard units z, and `gap` is what an explored step loses."""

    shares: Float64  # (K,): of p, whatever they add up to; empty if there is nothing to say


@dataclass(frozen=True, slots=True)
class _Known:
    arms: list[int]
    counts: list[float]  # (K,)
    means: Float64  # (m, K): z'theta_hat
    variances: Float64  # (m, K)
    n: float
    noise: float
    is_blank: bool  # all rewards are the same so far


@dataclass(frozen=True, slots=True)
class _Match:
    """The best arm of a context against the rival whose being better would cost most."""

    best: int
    rival: int
    lead: float
    deviation: float


@dataclass(frozen=True, slots=True)
class _Stand:
    """Where exploring stands."""

    t: float
    n: float
    n_arms: float
    horizon: float
    speed: float  # how many times faster than all rows those grow that decide


def look(
    rows: FreeRows, sample: Float64, *, t: float, horizon: float | None, caution: float, most: float, even: float
) -> Outlook:
    """Forecast regret; choose p, and each arm's share of it.

    Parameters
    ----------
    rows
        The sums of explored rows.
    sample
        (m, d): some contexts.
    t
        The step.
    horizon
        How many steps there are going to be; None: ten times as many as were.
    caution
        What predicted losses are multiplied by.
    most
        The largest p, as a share of the horizon.
    even
        The part of p that all arms share alike.
    """
    losses = np.zeros(MULTIPLES)
    seen = {"noise": 0.0, "sigma_min": 0.0, "delta": 0.0, "gap": 0.0}
    nothing = Outlook(**seen, losses=losses, shares=np.zeros(0), p=0.0)
    if len(sample) == 0 or len(rows.known) < 2 or not rows.n[rows.known].sum() > 0:
        return nothing
    known = _know(rows, sample)
    t = max(float(t), known.n)
    steps = min(LONGER * t if horizon is None else float(horizon), t + rows.life(t))
    if t >= steps:
        return nothing
    # an arm that rests has a share of middle size, for when it comes back
    shares = np.full(len(rows.n), 1.0 / len(known.arms))
    if known.is_blank:
        return Outlook(**seen, losses=losses, shares=shares, p=most * steps)
    matches, gaps, doubts = _weigh(known)
    own, m = _shares(doubts, even), len(matches)
    gap, times = 0.0, [MULTIPLE**k for k in range(MULTIPLES)]
    for match in matches:
        gap += loss(match.lead, match.deviation, 1.0) / m
        losses += [caution * loss(match.lead, match.deviation, each) / m for each in times]
    for a, share in enumerate(own):
        gap += share * gaps[a]
        shares[known.arms[a]] = share
    now = _Stand(t, known.n, float(len(own)), steps, _speed(matches, known, own))
    listed = candidates(len(own), most * steps)
    costs = [_future(gap, losses, now, p) for p in listed]
    return Outlook(
        noise=known.noise,
        sigma_min=smallest_eigenvalue(_second_moments(rows) / known.n),
        delta=float(np.median([match.lead for match in matches])),
        gap=gap,
        losses=losses,
        shares=shares,
        p=listed[int(np.argmin(costs))] if listed else 0.0,
    )


def soon(wanted: float, rows: float, n_arms: int, t: float) -> float:
    """Return the most that p may be, for the evidence clock to explore no more often than p/t with the p wanted.

    At so many rows: half of the way to the next look. It would make up at once for all that it has not explored so far,
    and the next look may think better of it.

    Examples
    --------
    >>> soon(wanted=100.0, rows=50.0, n_arms=1, t=100.0), soon(wanted=100.0, rows=50.0, n_arms=1, t=100.0 * math.e)
    (50.0, 25.0)
    """
    late = max(0.0, log(t / wanted)) if wanted > 0 else 0.0
    return math.floor(COARSE * (rows / (1.0 + log(n_arms) + late))) / COARSE


def _know(rows: FreeRows, sample: Float64) -> _Known:
    units, arms = rows.units, rows.known.tolist()
    views = np.array([units.view(x) for x in sample])  # (m, D)
    means, variances = np.zeros((len(sample), len(arms))), np.zeros((len(sample), len(arms)))
    fits: list[tuple[float, float]] = []  # residuals and squares of every arm
    raw = n = 0.0
    for a, arm in enumerate(arms):
        A, b = units.system(rows.A[arm], rows.b[arm])
        theta, residual = _estimate(rows, arm, A, b)
        centred = units.centred_squares(float(rows.n[arm]), float(rows.sum_r[arm]), float(rows.sum_rr[arm]))
        fits.append((residual, centred))
        raw, n = raw + float(rows.sum_rr[arm]), n + float(rows.n[arm])
        for j, value in enumerate(theta):
            means[:, a] += views[:, j] * value
        # not the ridge that estimates: sqrt(n) of Algorithm 1 is far more than is known
        V = A + np.eye(len(A))
        variances[:, a] = [each * each for each in (width(V, z) for z in views)]
    left = squares = 0.0
    for residual, centred in fits:
        left, squares = left + residual, squares + centred
    noise = math.sqrt(left / max(n - len(arms) * units.rank, 0.25 * n))  # at most so many degrees of freedom are lost
    spread = max(squares, 0.0) / n
    counts = [float(rows.n[arm]) for arm in arms]
    for a, (count, (residual, centred)) in enumerate(zip(counts, fits, strict=True)):
        freedom = max(count - min(float(units.rank), count), 0.25 * count)
        own = (residual + PRIOR * (noise * noise)) / (freedom + PRIOR)
        # a direction of which nothing was seen is as uncertain as rewards are, not more
        variances[:, a] = np.minimum(own * variances[:, a], (max(centred, 0.0) + PRIOR * spread) / (count + PRIOR))
    return _Known(arms, counts, means, variances, n, noise, not squares > ROUNDING * raw)


def _estimate(rows: FreeRows, arm: int, A: Float64, b: Float64) -> tuple[Float64, float]:
    """Return theta_hat of z, and the residual sum of squares."""
    n = float(rows.n[arm])
    shift = rows.ridge.shift(max(n, 1.0))
    V = A.copy()
    V[0, 0] += 1.0 - shift
    with np.errstate(over="ignore", invalid="ignore"):
        theta = solve(V + shift * np.eye(len(V)), b) if n > 0 else np.zeros(len(b))
    if not (np.abs(theta) <= BEYOND_ANY).all():
        theta = np.zeros(len(b))
    left = rows.units.centred_squares(n, float(rows.sum_r[arm]), float(rows.sum_rr[arm]))
    for j, value in enumerate(theta.tolist()):
        left -= value * (float(b[j]) + (shift if j else 1.0) * value)
    return theta, max(left, 0.0)


def _weigh(known: _Known) -> tuple[list[_Match], list[float], list[float]]:
    """Return the match of every context, what each arm loses on average, and what is in doubt about it."""
    m, K = known.means.shape
    matches, gaps, doubts = [], [0.0] * K, [0.0] * K
    for means, variances in zip(known.means.tolist(), known.variances.tolist(), strict=True):
        best, most, match = means.index(max(means)), -1.0, _Match(0, 0, 0.0, 0.0)
        for a in range(K):
            if a == best:
                continue
            lead, deviation = means[best] - means[a], math.sqrt(variances[a] + variances[best])
            risk = regret(lead, deviation)
            gaps[a] += lead / m
            doubts[a] += risk
            doubts[best] += risk
            if risk > most:
                most, match = risk, _Match(best, a, lead, deviation)
        matches.append(match)
    return matches, gaps, doubts


def _shares(doubts: list[float], even: float) -> list[float]:
    K, total = len(doubts), 0.0
    for doubt in doubts:
        total += math.sqrt(doubt)
    own = [math.sqrt(doubt) / total if total > 0 else 1.0 / K for doubt in doubts]
    return [_rounded(FINEST * ((1.0 - even) * share + even / K)) / FINEST for share in own]


def _rounded(value: float) -> float:
    return math.floor(value + 0.5)


def _speed(matches: list[_Match], known: _Known, shares: list[float]) -> float:
    growth = [share * known.n / max(count, 1.0) for share, count in zip(shares, known.counts, strict=True)]
    now = faster = 0.0
    for match in matches:
        lost = loss(match.lead, match.deviation, 1.0)
        now += lost
        faster += lost * (0.5 * (growth[match.best] + growth[match.rival]))
    return faster / now if now > 0 else 1.0


def _future(gap: float, losses: Float64, now: _Stand, p: float) -> float:
    """Forecast regret from now to the horizon: exploring costs the gap, exploiting what the rows of its time leave."""
    cost, t, rows, rate = 0.0, now.t, now.n, 1.0
    full = p * (1.0 + log(now.n_arms)) - now.n  # rows that every step explores for
    if full > 0:
        end = min(t + full, now.horizon)
        cost, rows, t = gap * (end - t), rows + (end - t), end
    else:
        rate = min(1.0, max(p / t, now.n_arms * exp(1.0 - now.n / p)))
    if t >= now.horizon:
        return cost
    first = min(t, p / rate)
    span = log((first + (now.horizon - t)) / first)
    step, area = span / (NODES - 1), 0.0
    for k in range(NODES):  # over log tau
        exploiting = max(0.0, first * exp(k * step) - p)
        times = 1.0 + now.speed * ((rows + p * k * step) - now.n) / now.n
        lost = interpolate(losses, times) * exploiting
        area += 0.5 * lost if k in (0, NODES - 1) else lost
    return cost + gap * p * span + area * step


def _second_moments(rows: FreeRows) -> Float64:
    total: Float64 = sum(
        (rows.units.system(rows.A[arm], rows.b[arm])[0] for arm in rows.known),
        np.zeros(rows.A.shape[1:]),
    )
    return total
