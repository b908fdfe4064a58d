"""Many contestants on the very same contexts and noise, which are drawn once for all of them.

O(T (d + K)) to draw a run, and O(T K d) for each contestant, in the kernel. Memory is O(block (d + K)).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from armlet.core.kernel import AutoEvidence, AutoSchedule, Rule, Statistics, Tuned
from armlet.core.types import Float64
from armlet.environments.world import World
from armlet.policies.parts.epsilon_greedy import EpsilonGreedy
from armlet.simulation.player import InKernel, draw


class Entry(NamedTuple):
    """What takes part: a rule of the kernel, and what it knows at the start."""

    rule: Rule
    start: Statistics

    @classmethod
    def of(cls, policy: EpsilonGreedy, world: World) -> Entry:
        """Enter a policy as it is."""
        return cls(policy.rule(), policy.init(world.n_arms, world.dim))


class Run(NamedTuple):
    """One run of all contestants."""

    regret: Float64  # (n,)
    p: Float64  # (n,): the p that it ended with; NaN where it does not move
    random: float  # what playing at random loses


def play(world: World, entries: Sequence[Entry], horizon: int, seed: np.random.SeedSequence) -> Run:
    """Play one run with every entry, all with the same coins.

    Examples
    --------
    >>> from armlet import Algorithm1
    >>> from armlet.environments import FigureA
    >>> world = FigureA(theta=((1.0, 0.0), (0.0, 1.0)))
    >>> entries = [Entry.of(Algorithm1(p=p), world) for p in (4, 4, 1000)]
    >>> run = play(world, entries, 1000, np.random.SeedSequence(1))
    >>> bool(run.regret[0] == run.regret[1]), bool(run.regret[2] > run.regret[0])
    (True, True)
    """
    contexts, noise, coins = seed.spawn(3)
    shown, noisy, key = np.random.default_rng(contexts), np.random.default_rng(noise), int(coins.generate_state(1)[0])
    players = [InKernel(entry.rule, entry.start, key) for entry in entries]
    regret, random = np.zeros(len(entries)), 0.0
    for _, X, rewards, losses in draw(world, shown, noisy, horizon):
        random += float(losses.mean(axis=1).sum())
        for i, player in enumerate(players):
            regret[i] += losses[np.arange(len(X)), player.play(X, rewards)[0]].sum()
    return Run(regret, np.array([_p(e.rule, each.state) for e, each in zip(entries, players, strict=True)]), random)


def _p(rule: Rule, state: Statistics) -> float:
    return (
        state.p(rule) if isinstance(rule, (AutoSchedule, AutoEvidence)) and isinstance(state, Tuned) else float("nan")
    )


def best_in_hindsight(regret: Float64) -> Float64:
    """Give what the best p costs on each problem of a family: (problems,), from (problems, runs, grid).

    Either each problem has a p of its own, chosen by `hindsight`, or all have the same, chosen on all runs: whichever
    costs less. With few and noisy runs the second is the stronger rival, with many or very different problems the
    first.

    Examples
    --------
    >>> best_in_hindsight(np.array([[[1.0, 3.0], [1.0, 3.0]], [[4.0, 2.0], [4.0, 2.0]]]))
    array([1., 2.])
    """
    own, mean = np.array([hindsight(one) for one in regret]), regret.mean(axis=1)
    common: Float64 = mean[:, int(mean.mean(axis=0).argmin())]
    return own if own.mean() <= common.mean() else common


def hindsight(regret: Float64) -> float:
    """Give what the best p of one problem costs, from the regret of every run with every p of a grid, (runs, grid).

    The p is chosen on one half of the runs and charged on the other, and the other way round: chosen and charged on the
    same runs, the luckiest of many values would pass for the best. Regret is smooth in log p, so each p is chosen by
    the mean of itself and its neighbours.

    Examples
    --------
    >>> hindsight(np.array([[5.0, 1.0, 3.0, 9.0], [5.0, 2.0, 3.0, 9.0]]))
    1.5
    """
    halves = regret[0::2], regret[1::2]
    return float(np.mean([_charged(mine, other) for mine, other in (halves, halves[::-1])]))


def _charged(chosen_on: Float64, charged_on: Float64) -> float:
    mean = np.pad(chosen_on.mean(axis=0), 1, mode="edge")
    smooth = (mean[:-2] + mean[1:-1] + mean[2:]) / 3
    return float(charged_on.mean(axis=0)[int(smooth.argmin())])


def ratio_of_means(above: Float64, below: Float64) -> Float64:
    """Give mean over mean, problem by problem along the last axis: what a bootstrap over problems resamples.

    Examples
    --------
    >>> float(ratio_of_means(np.array([1.0, 3.0]), np.array([2.0, 6.0])))
    0.5
    """
    ratio: Float64 = above.mean(-1) / below.mean(-1)
    return ratio


def grid_of_p(n_arms: int, horizon: int, ratio: float) -> tuple[float, ...]:
    """Give values of p from the number of arms to a quarter of the horizon.

    Examples
    --------
    >>> grid_of_p(5, 200, 2.0)
    (5.0, 10.0, 20.0, 40.0)
    """
    steps = int(np.log(max(1.0, horizon / 4 / n_arms)) / np.log(ratio) + 1e-9)
    return tuple(float(n_arms * ratio**k) for k in range(steps + 1))
