"""Runs of Algorithm 1 on many problems, for one p after another, with the same seeds for all.

Every run is exact in law and costs O(p log(T / p)) explorations (`core.kernel.simulate_events`), whatever T.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple, TypeAlias

import numpy as np

from armlet.advice.problem import Problem
from armlet.advice.spread import Sample
from armlet.core.finite import FiniteWorld
from armlet.core.kernel import simulate_events
from armlet.core.types import Float64, Int64
from armlet.policies.epsilon_greedy import ContextualEpsilonGreedy

Progress: TypeAlias = Callable[[int, int], None]
"""Told how much is done of how much."""


class Task(NamedTuple):
    """Some runs of one p on one problem."""

    table: FiniteWorld
    p: float
    steps: Int64
    seeds: Sequence[tuple[int, int]]


def play(task: Task) -> Float64:
    """Run a task: regret, the part of it paid exploring, and explored steps, by run and checkpoint, (R, 3, C)."""
    policy = ContextualEpsilonGreedy(p=task.p)
    K, d = task.table.means.shape[1], task.table.contexts.shape[1]
    horizon = int(task.steps[-1])
    runs = []
    for world_seed, policy_seed in task.seeds:
        start, schedule = policy.init(K, d), policy.schedule()
        run = simulate_events(
            task.table,
            start=start,
            schedule=schedule,
            horizon=horizon,
            checkpoints=task.steps,
            world_seed=world_seed,
            policy_seed=policy_seed,
        )
        runs.append(np.stack([run.regret, run.exploring, run.explored]))
    return np.stack(runs)


def explorations(p: float, horizon: int) -> float:
    """Give the expected number of explored steps: all of the first ceil(p), then p/t.

    Examples
    --------
    >>> round(explorations(2, 4), 6)  # 2 + 2/3 + 2/4
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


Pair: TypeAlias = tuple[int, int]
"""A problem and a run on it, by their numbers."""


def pairs(problems: int, runs: int) -> list[Pair]:
    """List every run on every problem."""
    return [(i, r) for i in range(problems) for r in range(runs)]


@dataclass(slots=True)
class Bench:
    """The problems, and what was run on them so far."""

    problems: list[Problem]
    steps: Int64  # (C,): checkpoints, the last of them the horizon
    seed: int
    executor: Executor
    results: dict[float, dict[Pair, Float64]] = field(default_factory=dict)  # by p and pair: (3, C)

    def run(self, ps: Iterable[float], wanted: Sequence[Pair], told: Callable[[float], None] = lambda _: None) -> None:
        """Have these runs for each p; `told` hears which share of them is done."""
        tasks: list[Task] = []
        places: list[tuple[float, list[Pair]]] = []
        for p in ps:
            known = self.results.setdefault(p, {})
            for i, group in groupby((pair for pair in wanted if pair not in known), key=itemgetter(0)):
                missing = list(group)
                tasks.append(Task(self.problems[i].table, p, self.steps, [self.seeds(*pair) for pair in missing]))
                places.append((p, missing))
        for done, curves in enumerate(self.executor.map(play, tasks), start=1):
            p, missing = places[done - 1]
            self.results[p].update(zip(missing, curves, strict=True))
            told(done / len(tasks))

    def seeds(self, problem: int, run: int) -> tuple[int, int]:
        """Give the seeds of a run: the same for every p and policy."""
        words = np.random.SeedSequence(self.seed, spawn_key=(2, problem, run)).generate_state(2, np.uint64)
        return int(words[0]), int(words[1])

    def sample(self, p: float) -> Sample:
        """Give the regret at the horizon of all runs of p."""
        found = self.results[p]
        return Sample(np.array([curve[0, -1] for curve in found.values()]), np.array([i for i, _ in found]))

    def mean(self, p: float, among: Iterable[Pair] | None = None) -> float:
        """Give the mean regret of p, over all its runs or some of them."""
        found = self.results[p]
        return float(np.mean([found[pair][0, -1] for pair in (found if among is None else among)]))

    def curves(self, p: float, problems: int, runs: int) -> Float64:
        """Give the first runs on the first problems: (problems, runs, 3, C)."""
        found = self.results[p]
        return np.stack([np.stack([found[i, r] for r in range(runs)]) for i in range(problems)])

    def has(self, p: float, wanted: Iterable[Pair]) -> bool:
        """Tell whether all these runs of p were made."""
        found = self.results.get(p, {})
        return all(pair in found for pair in wanted)


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
