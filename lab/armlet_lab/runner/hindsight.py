"""What the best p costs on problems that were played: a rival that nobody could know, and that nothing may flatter."""

from __future__ import annotations

import numpy as np

from armlet.types import Float64


def best(regret: Float64) -> Float64:
    """Return what the best p costs on each problem of a family: (problems,), from (problems, runs, grid).

    Either each problem has a p of its own, chosen by `of_problem`, or all have the same, chosen on all runs: whichever
    costs less. With few and noisy runs the second is the stronger rival, with many or very different problems the
    first.

    Examples
    --------
    >>> best(np.array([[[1.0, 3.0], [1.0, 3.0]], [[4.0, 2.0], [4.0, 2.0]]]))
    array([1., 2.])
    """
    own, mean = np.array([of_problem(one) for one in regret]), regret.mean(axis=1)
    common: Float64 = mean[:, int(mean.mean(axis=0).argmin())]
    return own if own.mean() <= common.mean() else common


def of_problem(regret: Float64) -> float:
    """Return what the best p of one problem costs, from the regret of every run with every p of a grid, (runs, grid).

    The p is chosen on one half of the runs and charged on the other, and the other way round: chosen and charged on the
    same runs, the luckiest of many values would pass for the best. Regret is smooth in log p, so each p is chosen by
    the mean of itself and its neighbours.

    Examples
    --------
    >>> of_problem(np.array([[5.0, 1.0, 3.0, 9.0], [5.0, 2.0, 3.0, 9.0]]))
    1.5
    """
    halves = regret[0::2], regret[1::2]
    return float(np.mean([_charged(mine, other) for mine, other in (halves, halves[::-1])]))


def _charged(chosen_on: Float64, charged_on: Float64) -> float:
    mean = np.pad(chosen_on.mean(axis=0), 1, mode="edge")
    smooth = (mean[:-2] + mean[1:-1] + mean[2:]) / 3
    return float(charged_on.mean(axis=0)[int(smooth.argmin())])


def ratio_of_means(above: Float64, below: Float64) -> Float64:
    """Return mean over mean, problem by problem along the last axis: what a bootstrap over problems resamples.

    Examples
    --------
    >>> float(ratio_of_means(np.array([1.0, 3.0]), np.array([2.0, 6.0])))
    0.5
    """
    ratio: Float64 = above.mean(-1) / below.mean(-1)
    return ratio


def grid_of_p(n_arms: int, horizon: int, ratio: float) -> tuple[float, ...]:
    """Return values of p from the number of arms to a quarter of the horizon.

    Examples
    --------
    >>> grid_of_p(5, 200, 2.0)
    (5.0, 10.0, 20.0, 40.0)
    """
    steps = int(np.log(max(1.0, horizon / 4 / n_arms)) / np.log(ratio) + 1e-9)
    return tuple(float(n_arms * ratio**k) for k in range(steps + 1))
