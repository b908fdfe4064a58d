"""The one player of a policy in a world: steps drawn in blocks, and what plays them, in the kernel or in Python.

A world that is a table is played in the kernel alone. Memory is O(block (d + K)) whatever the horizon.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from armlet import kernel
from armlet.bandit import Bandit
from armlet.environments.finite import FiniteWorld
from armlet.environments.world import World, delay, is_still, present
from armlet.errors import InvalidValueError
from armlet.kernel import Decision
from armlet.policies.dispatch import compiled_rule
from armlet.types import Bool, Float64, Int64, Policy


def block_size(world: World) -> int:
    """Give how many steps of a world are drawn at a time.

    Examples
    --------
    >>> from armlet.environments import FigureA
    >>> block_size(FigureA(theta=((1.0, 0.0, 0.0),) * 6))
    7281
    """
    # products this small stay on one thread of BLAS, so that they round alike wherever they are computed
    return max(16, min(8192, 2**17 // (world.n_arms * world.dim)))


class Block(NamedTuple):
    """Some steps of a world, as they come."""

    start: int  # steps before it
    X: Float64  # (n, d)
    rewards: Float64  # (n, K): of every arm
    losses: Float64  # (n, K): what each arm loses against the best, in expectation; NaN for arms that are not there


def draw(
    world: World, contexts: np.random.Generator, noise: np.random.Generator, horizon: int, size: int | None = None
) -> Iterator[Block]:
    """Draw the steps of a run, block by block; the size is `block_size` if left out.

    Examples
    --------
    >>> from armlet.environments import FigureA
    >>> rngs = (np.random.default_rng(seed) for seed in (1, 2))
    >>> [len(block.X) for block in draw(FigureA(theta=((1.0, 0.0), (0.0, 1.0))), *rngs, 250, size=100)]
    [100, 100, 50]
    """
    each = block_size(world) if size is None else size
    for start in range(0, horizon, each):
        n = min(each, horizon - start)
        X = np.ascontiguousarray(world.contexts(contexts, n, start=start), dtype=np.float64)
        rewards = np.ascontiguousarray(world.rewards(noise, X, start=start), dtype=np.float64)
        mu = world.means(X, start=start)
        here = present(world, n, start=start)
        mu = mu if here is None else np.where(here, mu, np.nan)
        yield Block(start, X, rewards, np.nanmax(mu, axis=1, keepdims=True) - mu)


class Player(Protocol):
    """A policy in the middle of a run."""

    def play(self, X: Float64, rewards: Float64) -> tuple[Int64, Bool]:
        """Take the next steps; give the arms played, and which steps explored."""


class InKernel:
    """Plays a compiled rule from a state on, which itself stays as it is."""

    def __init__(self, rule: kernel.Rule, start: Any, seed: int, t: int = 0) -> None:
        self.state = start  # Statistics or LayeredStatistics, as every compiled policy's is
        self._rule, self._seed, self._t = rule, seed, t

    def play(self, X: Float64, rewards: Float64) -> tuple[Int64, Bool]:
        """Take the next steps."""
        how: Any = {"rule": self._rule, "seed": self._seed, "t": self._t, "propensities": "skipped"}
        out = kernel.rollout(X, rewards, start=self.state, **how)
        self.state, self._t = out.statistics, self._t + len(X)
        return out.arms, out.explored


class InPython:
    """Plays any policy, as a user's loop would: arms come and go, rewards come late, if the world says so."""

    def __init__(self, world: World, policy: Policy, seed: int) -> None:
        self.bandit = Bandit(_first_arms(world), world.dim, policy=policy, seed=seed)
        self._world, self._t, self._delay = world, 0, delay(world)
        self._pending: deque[tuple[Decision, float]] = deque()

    def play(self, X: Float64, rewards: Float64) -> tuple[Int64, Bool]:
        """Take the next steps."""
        arms, explored = np.empty(len(X), dtype=np.int64), np.empty(len(X), dtype=np.bool_)
        here = present(self._world, len(X), start=self._t)
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
            if late.arm in self.bandit.arms:  # nobody wants to know of an arm that is gone
                self.bandit.learn(late, reward)


def _first_arms(world: World) -> list[int]:
    here = present(world, 1)
    return list(range(world.n_arms)) if here is None else np.flatnonzero(here[0]).tolist()


def arms_at_start(world: World) -> int:
    """Count the arms that can be played at step 1.

    Examples
    --------
    >>> from armlet.environments import News
    >>> arms_at_start(News(theta=((1.0,), (2.0,)), births=(1, 3), deaths=(3, 9)))
    1
    """
    return len(_first_arms(world))


def player(world: World, policy: Policy, seed: int) -> Player:
    """Give what plays a policy: the kernel, if it knows the policy and the world is still."""
    rule = compiled_rule(policy)
    if rule is None or not is_still(world):
        return InPython(world, policy, seed)
    return InKernel(rule, policy.init(world.n_arms, world.dim), seed)


def play_table(
    table: FiniteWorld, policy: Policy, steps: Int64, seeds: tuple[int, int], *, jumps: bool, horizon: int | None = None
) -> kernel.Simulated[Any]:
    """Play one run in a world that is a table, in the kernel: every step, or in jumps between explorations.

    Parameters
    ----------
    steps
        The checkpoints; the run ends with the last of them unless there is a horizon.
    seeds
        The world's and the policy's.
    """
    rule = compiled_rule(policy)
    if rule is None:
        raise InvalidValueError(f"{type(policy).__name__} cannot run in the kernel; use method='python'")
    simulate: Any = kernel.simulate_events if jumps else kernel.simulate_steps
    run: kernel.Simulated[Any] = simulate(
        table,
        start=policy.init(table.means.shape[1], table.contexts.shape[1]),
        rule=rule,
        horizon=int(steps[-1]) if horizon is None else horizon,
        checkpoints=steps,
        world_seed=seeds[0],
        policy_seed=seeds[1],
    )
    return run
