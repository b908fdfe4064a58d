"""Means with their intervals, quantiles of single runs, and the bootstrap over problems."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

import numpy as np

from armlet.core.types import Float64, Int64

Interval: TypeAlias = tuple[float, float]

FEW_PROBLEMS: Final = 100  # below, the outer quantiles rest on a problem or two
RESAMPLES: Final = 1000
Z: Final = 1.959963984540054  # 97.5 % of a normal lie below


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


def t_quantile(freedom: int) -> float:
    """Give the 97.5 % quantile of Student's t, by its expansion in 1/freedom: right to 1 % from 3 degrees on.

    Examples
    --------
    >>> round(t_quantile(4), 2), round(t_quantile(1000), 2)
    (2.77, 1.96)
    """
    v = max(3, freedom)
    terms = (
        Z,
        (Z**3 + Z) / (4 * v),
        (5 * Z**5 + 16 * Z**3 + 3 * Z) / (96 * v**2),
        (3 * Z**7 + 19 * Z**5 + 17 * Z**3 - 15 * Z) / (384 * v**3),
    )
    return sum(terms)


def mean_interval(sample: Sample) -> Interval:
    """Give the 95 % interval of the mean regret; no regret is negative, so neither end is."""
    units, mean = sample.independent(), float(sample.values.mean())
    half = t_quantile(len(units) - 1) * float(units.std(ddof=1)) / len(units) ** 0.5 if len(units) > 1 else np.inf
    return max(0.0, mean - half), mean + half


def spread(values: Float64, share: float) -> Interval:
    """Give the interval that holds a share of single runs, as many below it as above.

    Examples
    --------
    >>> spread(np.arange(1.0, 8.0), 0.5)
    (2.0, 6.0)
    """
    n = values.size
    # the next run is as likely to fall into any of the n + 1 gaps between these
    ranks = np.clip(np.array([(1 - share) / 2, (1 + share) / 2]) * (n + 1) - 1, 0, n - 1) / max(1, n - 1)
    low, high = np.quantile(values, ranks)
    return float(low), float(high)


def predictive(sample: Sample, random: float) -> Interval:
    """Give the 95 % interval of one more run on one more problem.

    The quantiles of the runs; with few problems behind them these are too narrow, so then the prediction interval of a
    lognormal law, with as many degrees of freedom as there are problems, counts where it is wider, up to what random
    play regrets.
    """
    low, high = spread(sample.values, 0.95)
    n = len(np.unique(sample.problems))
    if not 1 < n < FEW_PROBLEMS or sample.values.min() <= 0:
        return low, high
    logs = np.log(sample.values)
    half = t_quantile(n - 1) * float(logs.std(ddof=1)) * (1 + 1 / n) ** 0.5
    return min(low, float(np.exp(logs.mean() - half))), max(high, min(random, float(np.exp(logs.mean() + half))))


def chance_within(rows: Float64, chosen: int, factor: float, seed: int) -> float:
    """Give the bootstrap probability that a row's mean is within a factor of the least one; rows (grid, units)."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(3,)))
    n = rows.shape[1]
    counts = rng.multinomial(n, np.full(n, 1 / n), size=RESAMPLES)
    sums = rows @ counts.T  # (grid, resamples)
    return float((sums[chosen] <= factor * sums.min(axis=0)).mean())
