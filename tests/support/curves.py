"""Curves of known growth, with and without noise, and how often an interval should cover."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import stats

from armlet.types import Estimate, Float64

HORIZON = 40_000
STEPS = np.union1d(np.geomspace(1, HORIZON, 60).round(), [HORIZON // 4, HORIZON // 2])
RUNS, TRIALS = 40, 500


def logarithmic(t: Float64) -> Float64:
    return np.log(t)


def square_root(t: Float64) -> Float64:
    return np.sqrt(t)


def linear(t: Float64) -> Float64:
    return t.copy()


def fourth_root(t: Float64) -> Float64:
    return t**0.25


GROWTH = {"logarithmic": logarithmic, "square-root": square_root, "linear": linear}


def noisy(mean: Callable[[Float64], Float64], rng: np.random.Generator, runs: int) -> Float64:
    """Return curves of the stated mean whose increments are never negative and depend on those before.

    An increment is its mean times exp(s z - s^2 / 2), of mean 1; z is gaussian with correlation 0.8 from one
    checkpoint to the next, so that a run that pays much goes on paying much.
    """
    z = np.empty((runs, len(STEPS)))
    z[:, 0] = rng.standard_normal(runs)
    for k in range(1, len(STEPS)):
        z[:, k] = 0.8 * z[:, k - 1] + 0.6 * rng.standard_normal(runs)
    increments = np.diff(mean(STEPS), prepend=0.0)
    curves: Float64 = (increments * np.exp(0.4 * z - 0.08)).cumsum(axis=1)
    return curves


def allowed(runs: int) -> tuple[float, float]:
    """Return the share of trials whose interval should hold the truth, as a range.

    A percentile interval of a mean is about mean +- 1.96 s sqrt((n - 1) / n) / sqrt(n), s the sample's
    deviation, which holds the truth when a Student variable of n - 1 degrees of freedom is below
    1.96 sqrt((n - 1) / n). The share seen in TRIALS trials has a binomial error: four of them, and 1 % for
    the skewness that this leaves out (its effect is of order skewness^2 / n, with skewness near 1 and n = 40).
    """
    share = 1 - 2 * stats.t.sf(1.96 * math.sqrt((runs - 1) / runs), runs - 1)
    error = 4 * math.sqrt(share * (1 - share) / TRIALS) + 0.01
    return share - error, share + error


def covered(found: list[Estimate | None], truth: float) -> float:
    return float(np.mean([e is not None and e.low <= truth <= e.high for e in found]))
