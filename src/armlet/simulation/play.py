"""One run of a policy in a world, and the regret it paid: the R(t) of Section 3, from expected rewards.

What a run draws follows from the seed and the number of the run alone (`streams`), so policies that are run by the same
method meet the same contexts and the same noise.
Worlds are drawn block by block: memory is O(block (d + K)) whatever the horizon.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from armlet.environments.world import World
from armlet.errors import InvalidValueError
from armlet.inputs.settings import check_seed
from armlet.parallel.seeds import Seeds
from armlet.policies.dispatch import compiled_rule
from armlet.simulation import streams
from armlet.simulation.player import arms_at_start, block_size, draw, play_table, player
from armlet.types import Float64, Int64, Policy

Method: TypeAlias = Literal["auto", "steps", "events", "python"]
"""How a run is computed. Numbers differ between methods, their law does not; compare policies within one method.

- "steps": every step in the kernel, for worlds that are tables and policies that are compiled;
- "events": from exploration to exploration, exact in law, at a cost of p log T; for policies that learn from explored
  steps only;
- "python": any world and any policy; the world is drawn by numpy, and a compiled policy still runs in the kernel;
- "auto": "steps" where it can be, "events" for horizons above 10^8, else "python".
"""

METHODS = ("auto", "steps", "events", "python")
LONG = 10**8  # steps: a few seconds in the kernel
POINTS = 60

PLACE = "simulation"  # of the seeds of a job


class Curves(NamedTuple):
    """What runs did up to each checkpoint: one run, (C,), or several, (n, C)."""

    regret: Float64
    exploring: Float64  # the part of the regret that was paid on explored steps
    explored: Int64  # how many steps explored


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A policy, a world, and how often and how long to run the one in the other.

    Parameters
    ----------
    world, policy
        Any world and any policy; frozen settings both.
    horizon
        T, steps in a run.
    runs
        Independent runs, numbered from 0.
    seed
        Of all runs; run number i has the same streams whatever `runs` is.
    checkpoints
        Steps at which regret is kept; log-spaced with T/4, T/2 and T among them if left out.
    method
        How to compute; see `Method`.

    Examples
    --------
    >>> from armlet.environments import FigureA
    >>> from armlet.policies import Uniform
    >>> world = FigureA(theta=((1.0, 0.0), (0.0, 1.0)))
    >>> job = Job(world=world, policy=Uniform(), horizon=100, runs=2, seed=1, method="python")
    >>> job.checkpoints[-3:], 25 in job.checkpoints
    ((86, 92, 100), True)
    """

    world: World
    policy: Policy
    horizon: int
    runs: int
    seed: int
    checkpoints: tuple[int, ...] = ()
    method: Method = "auto"

    def __post_init__(self) -> None:
        if self.horizon < 1:
            raise InvalidValueError(f"horizon is {self.horizon}; give at least 1 step")
        if self.runs < 1:
            raise InvalidValueError(f"runs is {self.runs}; give at least 1")
        check_seed(self.seed)
        self.policy.check(arms_at_start(self.world), self.world.dim, 0)
        object.__setattr__(self, "checkpoints", _checked(self.checkpoints, self.horizon) or spaced(self.horizon))
        object.__setattr__(self, "method", _settled(self))


def spaced(horizon: int, points: int = POINTS) -> tuple[int, ...]:
    """Give checkpoints evenly spaced in log t, with T/4, T/2 and T among them.

    Examples
    --------
    >>> spaced(1000, points=4)
    (1, 10, 100, 250, 500, 1000)
    """
    steps = np.geomspace(1, horizon, points).round().astype(np.int64)
    parts = [horizon // 4, horizon // 2, horizon]
    return tuple(int(t) for t in np.union1d(steps, parts) if t > 0)


def play(job: Job, run: int) -> Curves:
    """Play one run of a job.

    Examples
    --------
    >>> from armlet.environments import FigureA
    >>> from armlet.policies import Uniform
    >>> world = FigureA(theta=((1.0, 0.0), (0.0, 1.0)))
    >>> job = Job(world=world, policy=Uniform(), horizon=100, runs=2, seed=1, method="python")
    >>> play(job, 0).explored[-1]
    np.int64(100)
    """
    return _play_blocks(job, run) if job.method == "python" else _play_compiled(job, run)


def _settled(job: Job) -> Method:
    if job.method not in METHODS:
        raise InvalidValueError(f"method is {job.method!r}; choose {', '.join(map(repr, METHODS))}")
    if job.method == "python":
        return "python"
    jumps = job.policy.learns_from == "explored steps"
    compiled = compiled_rule(job.policy) is not None and job.world.table() is not None
    if job.method == "auto":
        return "python" if not compiled else "events" if jumps and job.horizon > LONG else "steps"
    if not compiled:
        raise InvalidValueError(
            f"method is {job.method!r}, which needs a compiled policy and a world that is a table; "
            f"use method='python' for {type(job.policy).__name__} in {type(job.world).__name__}"
        )
    if job.method == "events" and not jumps:
        raise InvalidValueError(
            f"{type(job.policy).__name__} learns from every step, so it cannot jump; use method='steps'"
        )
    return job.method


def _checked(checkpoints: Sequence[int], horizon: int) -> tuple[int, ...]:
    steps = tuple(sorted({int(t) for t in checkpoints}))
    if steps and not 1 <= steps[0] <= steps[-1] <= horizon:
        raise InvalidValueError(
            f"checkpoints lie in {steps[0]}..{steps[-1]}; they must lie in 1..{horizon}, the horizon"
        )
    return steps


def _play_blocks(job: Job, run: int) -> Curves:
    """Draw the world block by block, let the policy play each, and keep running sums."""
    shown, noise, coins = streams.of_run(Seeds(job.seed, PLACE), run)
    plays = player(job.world, job.policy, coins)
    steps, sums, kept, size = np.array(job.checkpoints), np.zeros(3), [], block_size(job.world)
    end = min(job.horizon, -(-job.checkpoints[-1] // size) * size)  # no block after the last checkpoint
    for start, X, rewards, losses in draw(job.world, shown, noise, end, size):
        n = len(X)
        arms, explored = plays.play(X, rewards)
        lost = losses[np.arange(n), arms]
        totals = np.stack([lost, lost * explored, explored])  # (3, n)
        totals[:, 0] += sums  # then add up one step after the other, as a loop would
        totals = totals.cumsum(axis=1)
        sums = totals[:, -1]
        kept.append(totals[:, steps[(steps > start) & (steps <= start + n)] - start - 1])
    regret, exploring, counts = np.concatenate(kept, axis=1)
    return Curves(regret, exploring, counts.astype(np.int64))


def _play_compiled(job: Job, run: int) -> Curves:
    table = job.world.table()
    if table is None:
        raise InvalidValueError(f"{type(job.world).__name__} is no table, so it cannot run in the kernel")
    steps, jumps = np.array(job.checkpoints, dtype=np.int64), job.method == "events"
    seeds = streams.of_table(Seeds(job.seed, PLACE), run)
    found = play_table(table, job.policy, steps, seeds, jumps=jumps, horizon=job.horizon)
    return Curves(found.regret, found.exploring, np.rint(found.explored).astype(np.int64))
