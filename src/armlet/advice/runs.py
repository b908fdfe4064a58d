"""Runs of ContextualEpsilonGreedy on many problems, for one p after another, with the same seeds for all.

Every run is exact in law. On long horizons it goes in jumps from one exploration to the next, O(p log(T / p)) of them
whatever T (`core.kernel.simulate_events`); on short ones, where few contexts come twice between two explorations, step
by step (`core.kernel.simulate_steps`), which is quicker and lets every p meet the same contexts, rewards and coins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from armlet.advice.problem import SampledProblem
from armlet.environments.finite import FiniteWorld
from armlet.parallel.seeds import Seeds
from armlet.policies.contextual_epsilon_greedy import ContextualEpsilonGreedy
from armlet.simulation import streams
from armlet.simulation.player import play_table
from armlet.types import Float64, Int64

SHORT: Final = 1000  # steps for each context of a table
CHUNK: Final = 16  # runs in a task, so that several workers can share the runs on one problem

Progress: TypeAlias = Callable[[int, int], None]
"""Told how much is done of how much."""


class Task(NamedTuple):
    """Some runs of one p on one problem."""

    table: FiniteWorld
    p: float
    steps: Int64
    seeds: Sequence[tuple[int, int]]


def by_steps(n_contexts: int, horizon: int) -> bool:
    """Tell whether a run is quicker step by step than in jumps, which draw how often each context comes in each."""
    return horizon <= SHORT * n_contexts


def play(task: Task) -> Float64:
    """Run a task: regret, the part of it paid exploring, and explored steps, by run and checkpoint, (R, 3, C)."""
    policy = ContextualEpsilonGreedy(p=task.p)
    jumps = not by_steps(len(task.table.chances), int(task.steps[-1]))
    runs = [play_table(task.table, policy, task.steps, seeds, jumps=jumps) for seeds in task.seeds]
    return np.stack([np.stack([run.regret, run.exploring, run.explored]) for run in runs])


def explorations(p: float, n_arms: int, horizon: int) -> float:
    """Give about how many steps explore by evidence, where arms neither come nor go and rewards are prompt.

    All of the first p (1 + log K), by when every arm weighs 1 / K; from then on n rows make a step explore with
    probability exp(1 + log K - n / p), so that n grows with the logarithm of t.

    Examples
    --------
    >>> round(explorations(60, 6, 100)), round(explorations(60, 6, 100_000))
    (100, 613)
    """
    full = p * (1.0 + math.log(n_arms))
    return float(horizon) if horizon <= full else full + p * math.log1p((horizon - full) / p)


def explorations_as_printed(p: float, horizon: int) -> float:
    """Give the expected number of explored steps of Algorithm 1: all of the first ceil(p), then p/t.

    Examples
    --------
    >>> round(explorations_as_printed(2, 4), 6)  # 2 + 2/3 + 2/4
    3.166667
    """
    warm = math.ceil(p)
    if horizon <= warm:
        return float(horizon)
    return warm + p * (_harmonic(horizon) - _harmonic(warm))


def _harmonic(n: int) -> float:
    if n < 100:
        return sum(1 / i for i in range(1, n + 1))
    return math.log(n) + 0.5772156649015329 + 1 / (2 * n) - 1 / (12 * n * n)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The problems to run on, and how."""

    problems: list[SampledProblem]
    steps: Int64  # (C,): checkpoints, the last of them the horizon
    seeds: Seeds
    executor: Executor

    @property
    def horizon(self) -> int:
        """The number of steps of a run, T."""
        return int(self.steps[-1])

    def run(
        self, ps: Sequence[float], problems: int, runs: int, told: Callable[[float], None] = lambda _: None
    ) -> Float64:
        """Play the first problems so often with each p, all with the same seeds: (p, problems, runs, 3, C).

        `told` hears which share is done.
        """
        seeds = [[self.pair(i, r) for r in range(runs)] for i in range(problems)]
        tasks = [
            Task(self.problems[i].table, p, self.steps, seeds[i][r : r + CHUNK])
            for p in ps
            for i in range(problems)
            for r in range(0, runs, CHUNK)
        ]
        curves = []
        for done, found in enumerate(self.executor.map(play, tasks), start=1):
            curves.append(found)
            told(done / len(tasks))
        shape = (len(ps), problems, runs, 3, len(self.steps))
        return np.concatenate(curves).reshape(shape) if curves else np.empty(shape)

    def pair(self, problem: int, run: int) -> tuple[int, int]:
        """Give the seeds of a run: the same for every p and policy."""
        return streams.of_table(self.seeds, problem, run)


def checkpoints(horizon: int) -> Int64:
    """Give steps that grow by half each, up to the horizon.

    Examples
    --------
    >>> checkpoints(10).tolist()
    [1, 2, 3, 5, 7, 10]
    """
    n = 1 + math.ceil(math.log(horizon) / math.log(1.5)) if horizon > 1 else 1
    steps: Int64 = np.unique(np.geomspace(1, horizon, n).round().astype(np.int64))
    steps[-1] = horizon
    return steps
