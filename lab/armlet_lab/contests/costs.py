"""What a step of every policy costs in time and memory, how that grows with t, d and K, and what follows.

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
from armlet.environments import Linear
from armlet.environments.environment import Environment
from armlet.environments.wrapped import OracleBit
from armlet.simulation.lab import Arrays, Lab, as_floats
from armlet.types import Float64
from armlet_lab.contests.contenders import ALL
from armlet_lab.contests.contest import Part, Task, part, table
from armlet_lab.runner.arena import brief
from armlet_lab.runner.experiment import Claim, Criterion, Outcome, Role, Statistic, certain

SIZES: Final = {"base": (6, 3), "t": (6, 3), "d": (6, 12), "K": (24, 3)}  # arms and dimensions; "t" is timed later
FACTOR: Final = 4  # by which d or K is multiplied
BLOCK, BLOCKS = 25, 8  # steps timed together, and how often
CONSTANT: Final = ("LinUCB", "OFUL", "Thompson sampling")

CLAIM: Final = Claim(
    key="leaderboard-cost",
    where="Abstract",
    says=(
        "Known algorithms compute ever more as steps go by, or regret in proportion to the number of contexts; and "
        "unlike those before, this one's memory does not grow with $T$."
    ),
    reading=(
        r"LinUCB, OFUL and Thompson sampling, with $d \times d$ sums for each arm as here, are known algorithms: time "
        "and bytes of a step must grow with $t$, by an exponent above 0.1. Control: a row for each of $2^d$ contexts "
        "must be found to grow faster than $d$."
    ),
)
WHY: Final = {
    Outcome.FAILS: (
        "It is true of epoch-greedy and of policy elimination as published, and of tables. Policies on ridge "
        "regression keep sums too, and those do not grow; their bounds do not depend on the number of contexts."
    ),
    Outcome.HOLDS: "All of them slow down or grow.",
}


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of a step and bytes of state, and the exponents of their growth."""

    seconds: float
    nbytes: int
    time_growth: Mapping[str, float]  # by "t", "d", "K"
    bytes_growth: Mapping[str, float]


def measure(task: Task) -> Arrays:
    """Play the steps before, then time blocks of steps."""
    n_arms, dim = SIZES[task.environment]
    linear = Linear.draw(task.seeds.rng("timed worlds"), n_arms=n_arms, dim=dim, law="bits")
    contender = ALL[task.player]
    met: Environment = OracleBit(environment=linear) if contender.family == "one bit" else linear
    grid = contender.grid(brief(linear, 10_000))
    bandit = Bandit(range(n_arms), dim, policy=grid[len(grid) // 2], seed=task.seeds.seed("timed coins"))
    before, steps = task.horizon, task.horizon + BLOCK * BLOCKS
    X = met.contexts(task.seeds.rng("timed contexts"), steps)
    rewards = met.rewards(task.seeds.rng("timed rewards"), X)
    _steps(bandit, X[:before], rewards[:before])
    seconds = []
    for start in range(before, steps, BLOCK):
        began = time.perf_counter()
        _steps(bandit, X[start : start + BLOCK], rewards[start : start + BLOCK])
        seconds.append((time.perf_counter() - began) / BLOCK)
    return {"seconds": np.array(seconds), "nbytes": np.array([bandit.state.nbytes])}


def _steps(bandit: Bandit, X: Float64, rewards: Float64) -> None:
    for x, row in zip(X, rewards, strict=True):
        decision = bandit.decide(x)
        bandit.learn(decision, float(row[int(decision.arm)]))


def find_costs(timed: tuple[int, int], lab: Lab) -> dict[str, Cost]:
    """Time every policy at the base size, later, with more dimensions, and with more arms."""
    early, late = timed
    tasks = [
        Task(seeds=lab.seeds, environment=kind, horizon=late if kind == "t" else early, player=name)
        for name in ALL
        for kind in SIZES
    ]
    found = lab.alone("costs", measure, tasks, "Leaderboard: time and memory of a step")
    seconds, nbytes = (
        {
            (task.player, task.environment): float(as_floats(each[what]).min())
            for task, each in zip(tasks, found, strict=True)
        }
        for what in ("seconds", "nbytes")
    )

    def growth(of: Mapping[tuple[str, str], float], name: str) -> dict[str, float]:
        factors = {"t": late / early, "d": FACTOR, "K": FACTOR}
        return {kind: math.log(of[name, kind] / of[name, "base"]) / math.log(by) for kind, by in factors.items()}

    return {
        name: Cost(seconds[name, "base"], int(nbytes[name, "base"]), growth(seconds, name), growth(nbytes, name))
        for name in ALL
    }


def judge_costs(costs: Mapping[str, Cost]) -> Part:
    """Judge whether other policies slow down or grow as steps go by."""
    grows = Criterion("above", 0.1)
    rows = certain(costs["UCB1, table"].bytes_growth["d"])
    statistics = [
        *(Statistic(f"bytes in $t$, {name}", certain(costs[name].bytes_growth["t"]), grows) for name in CONSTANT),
        *(Statistic(f"time in $t$, {name}", certain(costs[name].time_growth["t"]), grows) for name in CONSTANT),
        Statistic("bytes in $d$, UCB1 with a table", rows, Criterion("above", 1.0), Role.CONTROL),
    ]
    columns = {
        f"{what} in ${kind}$": {name: f"{getattr(cost, f'{what}_growth')[kind]:.2f}" for name, cost in costs.items()}
        for what in ("time", "bytes")
        for kind in ("t", "d", "K")
    }
    caption = "Exponents of growth between two sizes: 0 does not grow, 1 in proportion"
    return part(
        CLAIM,
        "Known algorithms slow down or grow as steps go by",
        statistics,
        table(caption, "policy", columns),
        why=WHY,
    )
