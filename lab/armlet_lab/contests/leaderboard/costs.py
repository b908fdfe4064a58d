"""What a step of every policy costs in time and memory, and how that grows with t, d and K.

Live calls of decide and learn, one policy at a time while nothing else runs, in an environment of few contexts so that
policies with a table find their rows. Times are the quickest of several blocks of steps.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from armlet.bandit import Bandit
from armlet.environments import Linear, LinearArms
from armlet.environments.environment import Environment
from armlet.environments.wrapped import OracleBit
from armlet.parallel.seeds import Seeds
from armlet.simulation.lab import Arrays, Lab, as_floats
from armlet.types import Float64
from armlet_lab.contests.leaderboard.contenders import CONTENDERS, ONE_BIT
from armlet_lab.runner.arena import brief

ARMS, DIM, FACTOR = 6, 3, 4  # the base, and by how much d or K is multiplied
BLOCK, BLOCKS = 25, 8  # steps timed together, and how often


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Time one policy at one size."""

    contender: str
    n_arms: int
    dim: int
    before: int  # steps played first
    seeds: Seeds


@dataclass(frozen=True, slots=True)
class Cost:
    """Microseconds of a step and bytes of state, and the exponents of their growth."""

    seconds: float
    nbytes: int
    time_growth: Mapping[str, float]  # by "t", "d", "K"
    bytes_growth: Mapping[str, float]


def measure(task: Task) -> Arrays:
    """Play the steps before, then time blocks of steps."""
    policies = {**CONTENDERS, **ONE_BIT}
    environment = _environment(task)
    told = brief(environment, 10_000)
    contender = policies[task.contender]
    met: Environment = OracleBit(environment=environment) if contender.family == "one bit" else environment
    grid = contender.grid(told)
    bandit = Bandit(range(task.n_arms), task.dim, policy=grid[len(grid) // 2], seed=task.seeds.seed("timed coins"))
    steps = task.before + BLOCK * BLOCKS
    X = met.contexts(task.seeds.rng("timed contexts"), steps)
    rewards = met.rewards(task.seeds.rng("timed rewards"), X)
    _steps(bandit, X[: task.before], rewards[: task.before])
    seconds = []
    for start in range(task.before, steps, BLOCK):
        began = time.perf_counter()
        _steps(bandit, X[start : start + BLOCK], rewards[start : start + BLOCK])
        seconds.append((time.perf_counter() - began) / BLOCK)
    return {"seconds": np.array(seconds), "nbytes": np.array([bandit.nbytes])}


def _environment(task: Task) -> LinearArms:
    return Linear.draw(task.seeds.rng("timed worlds"), n_arms=task.n_arms, dim=task.dim, law="bits")


def _steps(bandit: Bandit, X: Float64, rewards: Float64) -> None:
    for x, row in zip(X, rewards, strict=True):
        decision = bandit.decide(x)
        bandit.learn(decision, float(row[int(decision.arm)]))


def find_costs(timed: tuple[int, int], lab: Lab) -> dict[str, Cost]:
    """Time every policy at the base size, later, with more dimensions, and with more arms."""
    early, late = timed
    sizes: Final = {
        "base": (ARMS, DIM, early),
        "t": (ARMS, DIM, late),
        "d": (ARMS, DIM * FACTOR, early),
        "K": (ARMS * FACTOR, DIM, early),
    }
    names = [*CONTENDERS, *ONE_BIT]
    tasks = [
        Task(contender=name, n_arms=K, dim=d, before=before, seeds=lab.seeds)
        for name in names
        for K, d, before in sizes.values()
    ]
    found = lab.alone("costs", measure, tasks, "Leaderboard: time and memory of a step")
    kinds, out = list(sizes), {}
    for place, name in enumerate(names):
        mine = dict(zip(kinds, found[place * len(kinds) : (place + 1) * len(kinds)], strict=True))
        out[name] = _cost(mine, late / early)
    return out


def _cost(found: Mapping[str, Arrays], later: float) -> Cost:
    seconds = {kind: float(as_floats(arrays["seconds"]).min()) for kind, arrays in found.items()}
    nbytes = {kind: float(as_floats(arrays["nbytes"])[0]) for kind, arrays in found.items()}
    factors = {"t": later, "d": FACTOR, "K": FACTOR}

    def growth(of: Mapping[str, float]) -> dict[str, float]:
        return {kind: math.log(of[kind] / of["base"]) / math.log(factor) for kind, factor in factors.items()}

    return Cost(seconds["base"], int(nbytes["base"]), growth(seconds), growth(nbytes))
