"""Mirrors kernel/rules/auto/auto_schedule.cpp and forecast.cpp: how a p that sets itself forecasts regret.

Section 4.2 estimates sigma_min, delta_min and L while the algorithm runs, and puts them into the theorem's formula,
whose p is far beyond any horizon. Here the same three enter a forecast of regret instead:

- the noise (its L) from the residuals of explored rows;
- the gaps (its delta_min) from the current estimates on a bounded sample of contexts, all of them, not the smallest
  that was ever seen;
- how well each estimate is known in each context, x' V_a^-1 x, which is where sigma_min comes in.

In one context let the arm that looks best lead its most dangerous rival by g, with standard error s. The true lead is
about normal, N(g, s^2), so exploiting now loses E max(0, -lead) = s psi(g / s) a step, psi(z) = phi(z) - z Phi(-z).
With m times the rows the estimate will have moved by a normal of variance s^2 (1 - 1/m) and the choice with it: then
s psi(g / s) - s' psi(g / s') is left, s' = s sqrt(1 - 1/m). The forecast adds that up over the rest of the horizon for
each candidate p, adds what exploring costs, and the cheapest p wins.

The kernel does the same in C++; tests hold the two together. O(m K d^2 + K d^3) for m contexts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, cast

import numpy as np

from armlet.inputs.settings import Ridge
from armlet.reference.elementary import erfc, exp, log
from armlet.reference.linear import smallest_eigenvalue
from armlet.types import Float64

MULTIPLE: Final = 1.5
"""Of rows, between two forecasts."""
MULTIPLES: Final = 11
"""Up to 57 times the rows; beyond that losses fall as their inverse."""
FINER: Final = 1.25
"""Between two candidates for p."""
NODES: Final = 24
"""Of the integral over what is left of the horizon."""


def regret(lead: float, deviation: float) -> float:
    """Return E max(0, deviation z - lead) for a standard normal z: what playing the leader loses on average.

    Examples
    --------
    >>> round(regret(0.0, 1.0), 4), regret(50.0, 1.0)
    (0.3989, 0.0)
    """
    if not deviation > 0:
        return 0.0
    z = lead / deviation
    density = exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    return max(0.0, deviation * (density - z * 0.5 * erfc(z / math.sqrt(2.0))))


def loss(lead: float, deviation: float, times: float) -> float:
    """Return what exploiting still loses when there are so many times as many rows."""
    later = regret(lead, deviation * math.sqrt(1.0 - 1.0 / times))
    return max(0.0, regret(lead, deviation) - later)


def interpolate(losses: Float64, times: float) -> float:
    """Read losses with 1, 1.5, 1.5^2, ... times the rows off at any number of times."""
    place, last = log(times) / log(MULTIPLE), MULTIPLES - 1
    if place >= last:
        return float(losses[-1]) * math.pow(MULTIPLE, last) / times
    k = int(max(0.0, place))
    return float(losses[k] + (place - k) * (losses[k + 1] - losses[k]))


def candidates(n_arms: int, most: float) -> list[float]:
    """List values of p from the number of arms on.

    Examples
    --------
    >>> candidates(4, 7.0)
    [4.0, 5.0, 6.25]
    """
    out, p = [], float(n_arms)
    while p <= most:
        out.append(p)
        p *= FINER
    return out


@dataclass(frozen=True, slots=True, kw_only=True)
class ExploredSums:
    """Sums over explored rows."""

    n: Float64  # (K,)
    A: Float64  # (K, d, d)
    b: Float64  # (K, d)
    sum_r: Float64  # (K,)
    sum_rr: Float64  # (K,)
    ridge: Ridge


@dataclass(frozen=True, slots=True, kw_only=True)
class Prospect:
    """What explored rows say about exploring."""

    noise: float  # standard deviation of a reward around its mean
    sigma_min: float  # smallest non-zero eigenvalue of the mean of x x'
    delta: float  # the median lead of the best arm over its most dangerous rival
    gap: float  # what a random arm loses a step
    losses: Float64  # what exploiting loses a step with 1, 1.5, 1.5^2, ... times as many rows
    p: float  # the best for the rest of the horizon; 0 if there is nothing to say


def look(rows: ExploredSums, sample: Float64, *, t: float, horizon: float, caution: float, most: float) -> Prospect:
    """Forecast regret and choose p.

    Parameters
    ----------
    rows
        The sums of explored rows.
    sample
        (m, d): some contexts.
    t
        The step.
    horizon
        How many steps there are going to be.
    caution
        What predicted losses are multiplied by.
    most
        The largest p, as a share of the horizon.

    Examples
    --------
    Two arms in one context, a clear lead: little is left to learn.

    >>> one, ten = np.ones((2, 1)), np.full(2, 100.0)
    >>> sums = {"n": ten, "A": ten[:, None, None] * 1.0, "b": np.array([[0.0], [100.0]])}
    >>> sums |= {"sum_r": np.array([0.0, 100.0]), "sum_rr": np.array([1.0, 101.0])}
    >>> rows = ExploredSums(**sums, ridge=Ridge.parse("1/n"))
    >>> seen = look(rows, one, t=500, horizon=1000, caution=1.0, most=0.25)
    >>> round(seen.delta, 2), round(seen.noise, 2), seen.p
    (0.99, 0.1, 2.0)
    """
    n, K = float(rows.n.sum()), len(rows.n)
    t = max(float(t), n)
    nothing = Prospect(noise=0.0, sigma_min=0.0, delta=0.0, gap=0.0, losses=np.zeros(MULTIPLES), p=0.0)
    if len(sample) == 0 or K < 2 or n <= 0 or t >= horizon:
        return nothing
    r, rr = float(rows.sum_r.sum()), float(rows.sum_rr.sum())
    if n * rr - r * r <= 1e-12 * n * rr:  # all rewards are alike: nothing tells the arms apart, nothing is lost yet
        return Prospect(noise=0.0, sigma_min=0.0, delta=0.0, gap=0.0, losses=np.zeros(MULTIPLES), p=most * horizon)
    means, variances, noise = _known(rows, sample)
    lead, deviation = _duels(means, noise**2 * variances)
    times = MULTIPLE ** np.arange(MULTIPLES)
    losses = np.array([_losses(lead, deviation, m).mean() for m in times])
    gap = float((means.max(axis=1) - means.mean(axis=1)).mean() + losses[0])
    listed = candidates(K, most * horizon)
    costs = [_future(gap, caution * losses, p, t, n, horizon) for p in listed]
    return Prospect(
        noise=noise,
        sigma_min=smallest_eigenvalue(rows.A.sum(axis=0) / n),
        delta=float(np.median(lead)),
        gap=gap,
        losses=caution * losses,
        p=listed[int(np.argmin(costs))] if listed else 0.0,
    )


def _known(rows: ExploredSums, sample: Float64) -> tuple[Float64, Float64, float]:
    """Return x'theta_hat and x'V^-1 x, (m, K) both, and the noise."""
    K, d = rows.b.shape
    # an arm without rows is known no better than after one
    shifts = np.array([rows.ridge.shift(n) if n > 0 else 1.0 for n in rows.n])
    V = rows.A + shifts[:, None, None] * np.eye(d)
    theta = _solve(V, rows.b[:, :, None])[:, :, 0]
    residual = rows.sum_rr - (theta * (rows.b + shifts[:, None] * theta)).sum(axis=1)
    n = rows.n.sum()
    noise = math.sqrt(residual.clip(0.0).sum() / max(n - K * d, n / 4))  # a ridge takes less than K d
    spread = _solve(V, np.broadcast_to(sample.T, (K, d, len(sample))))  # (K, d, m)
    return sample @ theta.T, np.einsum("md,kdm->mk", sample, spread).clip(0.0), noise


def _solve(V: Float64, B: Float64) -> Float64:
    try:
        return cast(Float64, np.linalg.solve(V, B))
    except np.linalg.LinAlgError:  # next to huge contexts rounding has eaten the ridge
        return np.linalg.pinv(V, hermitian=True) @ B


def _duels(means: Float64, variances: Float64) -> tuple[Float64, Float64]:
    """Give, for every context, the lead over the rival whose being better would cost most, and its standard error."""
    each = np.arange(len(means))
    best = means.argmax(axis=1)
    lead = means[each, best][:, None] - means
    deviation = np.sqrt(variances + variances[each, best][:, None])
    cost = _expected_excess(lead, deviation)
    cost[each, best] = -1.0
    rival = cost.argmax(axis=1)
    return lead[each, rival], deviation[each, rival]


def _expected_excess(lead: Float64, deviation: Float64) -> Float64:
    """Return E max(0, deviation z - lead) for a standard normal z."""
    z = np.divide(lead, deviation, out=np.full_like(lead, np.inf), where=deviation > 0)
    tail = np.array([0.5 * erfc(value / math.sqrt(2.0)) for value in z.ravel()]).reshape(z.shape)
    near = np.minimum(z, 40.0)  # the density is 0 beyond, where z z could overflow
    density = np.exp(-0.5 * near * near) / math.sqrt(2.0 * math.pi)
    finite = np.where(np.isfinite(z), z, 0.0)
    excess: Float64 = np.maximum(0.0, deviation * (density - finite * tail))
    return excess


def _losses(lead: Float64, deviation: Float64, times: float) -> Float64:
    later = _expected_excess(lead, deviation * math.sqrt(1.0 - 1.0 / times))
    return np.maximum(0.0, _expected_excess(lead, deviation) - later)


def _future(gap: float, losses: Float64, p: float, t: float, n: float, T: float) -> float:
    """Forecast regret from step t to T with a given p, after n rows; rows come at the rate min(1, p / s)."""
    cost, rows = 0.0, n
    if p > t:
        end = min(p, T)
        cost, rows, t = gap * (end - t), n + end - t, end
    if t >= T:
        return cost
    span = math.log(T / t)
    u = np.linspace(0.0, span, NODES)  # log(s / t)
    exploiting = np.maximum(0.0, t * np.exp(u) - p)  # per unit of u
    area = np.trapezoid(_interpolate(losses, (rows + p * u) / n) * exploiting, u)
    return cost + gap * p * span + float(area)


def _interpolate(losses: Float64, times: Float64) -> Float64:
    place, last = np.log(times) / math.log(MULTIPLE), MULTIPLES - 1
    inside = np.interp(place, np.arange(MULTIPLES), losses)
    return np.where(place >= last, losses[-1] * MULTIPLE**last / times, inside)
