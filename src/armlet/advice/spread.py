"""Regrets of runs on several problems: runs on one problem are alike, so the problems are what is counted."""

from __future__ import annotations

from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np

from armlet.inference.intervals import Estimate, Interval, resampled, rough_t_quantile, spread
from armlet.types import Float64, Int64

FEW_PROBLEMS: Final = 100  # below, the outer quantiles rest on a problem or two
RESAMPLES: Final = 1000


class Sample(NamedTuple):
    """Regrets of runs, and the problem that each was on: runs on one problem are alike."""

    values: Float64  # (n,)
    problems: Int64  # (n,)

    def independent(self) -> Float64:
        """Give the means of the problems, or the runs if there is one problem."""
        counts = np.bincount(self.problems)
        if np.count_nonzero(counts) == 1:
            return self.values
        means: Float64 = np.bincount(self.problems, self.values)[counts > 0] / counts[counts > 0]
        return means


def mean_interval(sample: Sample) -> Interval:
    """Give the 95 % interval of the mean regret; no regret is negative, so neither end is."""
    units, mean = sample.independent(), float(sample.values.mean())
    half = rough_t_quantile(len(units) - 1) * float(units.std(ddof=1)) / len(units) ** 0.5 if len(units) > 1 else np.inf
    return Interval(max(0.0, mean - half), mean + half)


def difference(first: Float64, second: Float64, together: int) -> Estimate:
    """Give the mean of first - second, runs on the same environments with the same seeds, (environments, runs).

    So many such intervals hold together with probability 95 %, whichever of them is looked at.

    Examples
    --------
    >>> print(f"{difference(np.array([[5.0], [9.0], [7.0]]), np.array([[4.0], [8.0], [6.0]]), 10):.1f}")
    1.0 [1.0 to 1.0]
    """
    each = first - second
    n, runs = each.shape
    units = Sample(each.ravel(), np.repeat(np.arange(n), runs)).independent()
    mean, z = float(each.mean()), NormalDist().inv_cdf(1 - 0.025 / together)
    half = (
        rough_t_quantile(len(units) - 1, z) * float(units.std(ddof=1)) / len(units) ** 0.5 if len(units) > 1 else np.inf
    )
    return Estimate(mean, mean - half, mean + half)


def predictive(sample: Sample, most: float) -> Interval:
    """Give the 95 % interval of one more run on one more problem.

    The quantiles of the runs; with few problems behind them these are too narrow, so then the prediction interval of a
    lognormal law, with as many degrees of freedom as there are problems, counts where it is wider, up to the most that
    random play may regret.
    """
    low, high = spread(sample.values, 0.95)
    n = len(np.unique(sample.problems))
    if not 1 < n < FEW_PROBLEMS or sample.values.min() <= 0:
        return Interval(low, high)
    logs = np.log(sample.values)
    half = rough_t_quantile(n - 1) * float(logs.std(ddof=1)) * (1 + 1 / n) ** 0.5
    down, up = float(np.exp(logs.mean() - half)), float(np.exp(logs.mean() + half))
    return Interval(min(low, down), max(high, min(most, up)))


def chance_within(rows: Float64, chosen: int, factor: float, rng: np.random.Generator) -> float:
    """Give the bootstrap probability that a row's mean is within a factor of the least one; rows (grid, units)."""
    counts = resampled(rows.shape[1], rng, RESAMPLES)
    sums = rows @ counts.T  # (grid, resamples)
    return float((sums[chosen] <= factor * sums.min(axis=0)).mean())
