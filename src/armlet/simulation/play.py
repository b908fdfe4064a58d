"""One run of a policy in an environment, and the regret it paid: the R(t) of Section 3, from expected rewards.

What a run draws follows from the seed and the number of the run alone (`run_streams`, `table_seeds`), so policies that
are run by the same method meet the same contexts and the same noise. An environment that is a table is played in the
kernel alone; others are drawn block by block: memory is O(block (d + K)) for any horizon.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np

from armlet import kernel
from armlet.bandit import Bandit
from armlet.disk import Json
from armlet.environments.environment import Environment, FiniteEnvironment, delay, is_still, present
from armlet.errors import InvalidTypeError, InvalidValueError
from armlet.inputs.settings import check_seed
from armlet.kernel import Decision
from armlet.parallel import Seeds
from armlet.policies.base import compiled_rule
from armlet.types import Bool, Float64, Int64, Policy


class Generators(NamedTuple):
    """What a run draws from where the environment is drawn by numpy."""

    contexts: np.random.Generator
    noise: np.random.Generator
    coins: int  # the policy's seed


def run_streams(seeds: Seeds, *run: int | str) -> Generators:
    """Return the streams of a run by its number, or by what tells it from the others of its place.

    Examples
    --------
    >>> len({run_streams(Seeds(1), run).coins for run in (0, 0, 1)})
    2
    """
    return Generators(seeds.rng("contexts", *run), seeds.rng("noise", *run), _coins(seeds, run))


def table_seeds(seeds: Seeds, *run: int | str) -> tuple[int, int]:
    """Return the seeds of the environment and of the policy where the kernel draws an environment that is a table.

    Examples
    --------
    >>> table_seeds(Seeds(1), 0)[1] == run_streams(Seeds(1), 0).coins
    True
    """
    return seeds.seed("table", *run), _coins(seeds, run)


def _coins(seeds: Seeds, run: tuple[int | str, ...]) -> int:
    return seeds.seed("coins", *run)


def block_size(environment: Environment) -> int:
    """Return how many steps of an environment are drawn at a time.

    Examples
    --------
    >>> from armlet.environments import FigureA
    >>> block_size(FigureA(theta=((1.0, 0.0, 0.0),) * 6))
    7281
    """
    # products this small stay on one thread of BLAS, so that they round alike wherever they are computed
    return max(16, min(8192, 2**17 // (environment.n_arms * environment.dim)))


class StepBlock(NamedTuple):
    """Some steps of an environment, as they come."""

    start: int  # steps before it
    X: Float64  # (n, d)
    rewards: Float64  # (n, K): of every arm
    losses: Float64  # (n, K): what each arm loses against the best, in expectation; NaN for arms that are not there


def draw(
    environment: Environment,
    contexts: np.random.Generator,
    noise: np.random.Generator,
    horizon: int,
    size: int | None = None,
) -> Iterator[StepBlock]:
    """Draw the steps of a run, block by block; the size is `block_size` if left out.

    Examples
    --------
    >>> from armlet.environments import FigureA
    >>> rngs = (np.random.default_rng(seed) for seed in (1, 2))
    >>> [len(block.X) for block in draw(FigureA(theta=((1.0, 0.0), (0.0, 1.0))), *rngs, 250, size=100)]
    [100, 100, 50]
    """
    each = block_size(environment) if size is None else size
    for start in range(0, horizon, each):
        n = min(each, horizon - start)
        X = np.ascontiguousarray(environment.contexts(contexts, n, start=start), dtype=np.float64)
        rewards = np.ascontiguousarray(environment.rewards(noise, X, start=start), dtype=np.float64)
        mu = environment.means(X, start=start)
        here = present(environment, n, start=start)
        mu = mu if here is None else np.where(here, mu, np.nan)
        yield StepBlock(start, X, rewards, np.nanmax(mu, axis=1, keepdims=True) - mu)


class Player(Protocol):
    """A policy in the middle of a run."""

    def play(self, X: Float64, rewards: Float64) -> tuple[Int64, Bool]:
        """Take the next steps; give the arms played, and which steps explored."""


class InKernel:
    """Plays a compiled rule from a state on, which itself stays as it is."""

    def __init__(self, rule: kernel.Rule, start: kernel.Statistics, seed: int, t: int = 0) -> None:
        self.state = start  # sums, as every compiled policy's is
        self._rule, self._seed, self._t = rule, seed, t

    def play(self, X: Float64, rewards: Float64) -> tuple[Int64, Bool]:
        """Take the next steps."""
        out = kernel.rollout(
            X, rewards, start=self.state, rule=self._rule, seed=self._seed, t=self._t, propensities="skipped"
        )
        self.state, self._t = out.statistics, self._t + len(X)
        return out.arms, out.explored


class InPython:
    """Plays any policy, as a user's loop would: arms come and go, rewards come late, if the environment says so."""

    def __init__(self, environment: Environment, policy: Policy, seed: int) -> None:
        self.bandit = Bandit(_first_arms(environment), environment.dim, policy=policy, seed=seed)
        self._environment, self._t, self._delay = environment, 0, delay(environment)
        self._pending: deque[tuple[Decision, float]] = deque()

    def play(self, X: Float64, rewards: Float64) -> tuple[Int64, Bool]:
        """Take the next steps."""
        arms, explored = np.empty(len(X), dtype=np.int64), np.empty(len(X), dtype=np.bool_)
        here = present(self._environment, len(X), start=self._t)
        for i, (x, row) in enumerate(zip(X, rewards, strict=True)):
            if here is not None and (i == 0 or (here[i] != here[i - 1]).any()):
                self._change(set(np.flatnonzero(here[i]).tolist()))
            decision = self.bandit.decide(x)
            arms[i], explored[i] = decision.arm, decision.explored
            self._learn(decision, float(row[arms[i]]))
        self._t += len(X)
        return arms, explored

    def _change(self, here: set[int]) -> None:
        known = {int(arm) for arm in self.bandit.arms}
        for arm in sorted(here - known):
            self.bandit.add_arm(arm)
        for arm in sorted(known - here):
            self.bandit.remove_arm(arm)

    def _learn(self, decision: Decision, reward: float) -> None:
        if not self._delay:
            self.bandit.learn(decision, reward)
            return
        self._pending.append((decision, reward))
        if len(self._pending) > self._delay:
            late, reward = self._pending.popleft()
            if late.arm in self.bandit.arms:  # an arm that is gone learns nothing
                self.bandit.learn(late, reward)


def _first_arms(environment: Environment) -> list[int]:
    here = present(environment, 1)
    return list(range(environment.n_arms)) if here is None else np.flatnonzero(here[0]).tolist()


def arms_at_start(environment: Environment) -> int:
    """Count the arms that can be played at step 1.

    Examples
    --------
    >>> from armlet.environments import News
    >>> arms_at_start(News(theta=((1.0,), (2.0,)), births=(1, 3), deaths=(3, 9)))
    1
    """
    return len(_first_arms(environment))


def player(environment: Environment, policy: Policy, seed: int) -> Player:
    """Return what plays a policy: the kernel, if it knows the policy and the environment is still."""
    rule = compiled_rule(policy)
    if rule is None or not is_still(environment):
        return InPython(environment, policy, seed)
    return InKernel(rule, policy.init(environment.n_arms, environment.dim), seed)


def play_table(
    table: FiniteEnvironment,
    policy: Policy,
    steps: Int64,
    seeds: tuple[int, int],
    *,
    jumps: bool,
    horizon: int | None = None,
) -> kernel.Simulated[kernel.Statistics]:
    """Play one run in an environment that is a table, in the kernel: every step, or in jumps between explorations.

    Parameters
    ----------
    steps
        The checkpoints; the run ends with the last of them unless there is a horizon.
    seeds
        The environment's and the policy's.
    """
    rule = compiled_rule(policy)
    if rule is None:
        raise InvalidValueError(f"{type(policy).__name__} cannot run in the kernel; use method='python'")
    simulate: Any = kernel.simulate_events if jumps else kernel.simulate_steps
    run: kernel.Simulated[kernel.Statistics] = simulate(
        table,
        start=policy.init(table.means.shape[1], table.contexts.shape[1]),
        rule=rule,
        horizon=int(steps[-1]) if horizon is None else horizon,
        checkpoints=steps,
        environment_seed=seeds[0],
        policy_seed=seeds[1],
    )
    return run


Method: TypeAlias = Literal["auto", "steps", "events", "python"]
"""How a run is computed. Numbers differ between methods, their law does not; compare policies within one method.

- "steps": every step in the kernel, for environments that are tables and policies that are compiled;
- "events": from exploration to exploration, exact in law, at a cost of p log T; for policies that learn from explored
  steps only;
- "python": any environment and any policy; the environment is drawn by numpy, and a compiled policy still runs in the
kernel;
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
    """A policy, an environment, and how often and how long to run the one in the other.

    Parameters
    ----------
    environment, policy
        Any environment and any policy; frozen settings both.
    horizon
        T, steps in a run.
    runs
        Independent runs, numbered from 0.
    seed
        Of all runs; run number i has the same streams for any `runs`.
    checkpoints
        Steps at which regret is kept; log-spaced with T/4, T/2 and T among them if left out.
    method
        How to compute; see `Method`.

    Examples
    --------
    >>> from armlet.environments import FigureA
    >>> from armlet.policies import Uniform
    >>> environment = FigureA(theta=((1.0, 0.0), (0.0, 1.0)))
    >>> job = Job(environment=environment, policy=Uniform(), horizon=100, runs=2, seed=1, method="python")
    >>> job.checkpoints[-3:], 25 in job.checkpoints
    ((86, 92, 100), True)
    """

    environment: Environment
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
        self.policy.check(arms_at_start(self.environment), self.environment.dim, 0)
        object.__setattr__(self, "checkpoints", _checked(self.checkpoints, self.horizon) or spaced(self.horizon))
        object.__setattr__(self, "method", _settled(self))


def spaced(horizon: int, points: int = POINTS) -> tuple[int, ...]:
    """Return checkpoints evenly spaced in log t, with T/4, T/2 and T among them.

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
    >>> environment = FigureA(theta=((1.0, 0.0), (0.0, 1.0)))
    >>> job = Job(environment=environment, policy=Uniform(), horizon=100, runs=2, seed=1, method="python")
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
    compiled = compiled_rule(job.policy) is not None and job.environment.table() is not None
    if job.method == "auto":
        return "python" if not compiled else "events" if jumps and job.horizon > LONG else "steps"
    if not compiled:
        raise InvalidValueError(
            f"method is {job.method!r}, which needs a compiled policy and an environment that is a table; "
            f"use method='python' for {type(job.policy).__name__} in {type(job.environment).__name__}"
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
    """Draw the environment block by block, let the policy play each, and keep running sums."""
    shown, noise, coins = run_streams(Seeds(job.seed, PLACE), run)
    plays = player(job.environment, job.policy, coins)
    steps, sums, parts, size = np.array(job.checkpoints), np.zeros(3), [], block_size(job.environment)
    end = min(job.horizon, -(-job.checkpoints[-1] // size) * size)  # no block after the last checkpoint
    for start, X, rewards, losses in draw(job.environment, shown, noise, end, size):
        n = len(X)
        arms, explored = plays.play(X, rewards)
        lost = losses[np.arange(n), arms]
        totals = np.stack([lost, lost * explored, explored])  # (3, n)
        totals[:, 0] += sums  # then add up one step after the other, as a loop would
        totals = totals.cumsum(axis=1)
        sums = totals[:, -1]
        parts.append(totals[:, steps[(steps > start) & (steps <= start + n)] - start - 1])
    regret, exploring, counts = np.concatenate(parts, axis=1)
    return Curves(regret, exploring, counts.astype(np.int64))


def _play_compiled(job: Job, run: int) -> Curves:
    table = job.environment.table()
    if table is None:
        raise InvalidValueError(f"{type(job.environment).__name__} is no table, so it cannot run in the kernel")
    steps, jumps = np.array(job.checkpoints, dtype=np.int64), job.method == "events"
    seeds = table_seeds(Seeds(job.seed, PLACE), run)
    play = play_table(table, job.policy, steps, seeds, jumps=jumps, horizon=job.horizon)
    return Curves(play.regret, play.exploring, np.rint(play.explored).astype(np.int64))


Settings: TypeAlias = dict[str, Json]


def settings_of(job: Job) -> Settings:
    """Describe a job as plain data.

    Examples
    --------
    >>> from armlet.environments import FigureA
    >>> from armlet.policies import Uniform
    >>> environment = FigureA(theta=((1.0, 0.0), (0.0, 1.0)))
    >>> job = Job(environment=environment, policy=Uniform(), horizon=4, runs=2, seed=1, method="python")
    >>> settings_of(job)["policy"]
    {'name': 'Uniform', 'settings': {'ridge': 'paper'}}
    """
    return {
        "environment": _described(job.environment),
        "policy": _described(job.policy),
        "horizon": job.horizon,
        "runs": job.runs,
        "seed": job.seed,
        "checkpoints": list(job.checkpoints),
        "method": job.method,
    }


def _described(thing: object) -> Json:
    """Return the name and settings; settings are None if they are not plain data."""
    name, settings = type(thing).__name__, None
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        with contextlib.suppress(TypeError):
            values = {field.name: getattr(thing, field.name) for field in dataclasses.fields(thing)}
            # a setting may be an environment itself, whose name tells as much as its settings
            settings = {n: _described(v) if dataclasses.is_dataclass(v) else plain(v) for n, v in values.items()}
    return {"name": name, "settings": settings}


def plain(value: object) -> Json:
    """Return a setting as plain data, or raise TypeError.

    Examples
    --------
    >>> plain((1, np.float64(0.5), float("inf")))
    [1, 0.5, 'inf']
    """
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no infinity
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Job):
        return settings_of(value)
    if isinstance(value, Seeds):
        return {"root": value.root, "place": value.place}
    raise InvalidTypeError(f"{value!r} is not plain data")
