"""Bandits that the tests share: how to make one, let it play a stream, and tell two of them apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from armlet import Algorithm1, Bandit, Decision, Policy
from armlet.kernel import Statistics
from armlet.types import Float64
from support.streams import Stream


def facts(decision: Decision) -> tuple[object, ...]:
    """Everything that a decision says, to be compared bit for bit."""
    remembered = decision.learned, decision.reward, decision.weight
    return (
        decision.id,
        decision.t,
        decision.arm,
        (decision.propensity, decision.marginal),
        decision.exploration_propensity,
        (decision.exploration_rate, decision.min_exploration_probability, decision.greedy, decision.design),
        (decision.explored, decision.optimistic),
        decision.x.tolist(),
        remembered,
    )


def snapshot(bandit: Bandit) -> tuple[object, ...]:
    return bandit.t, bandit.arms, bandit.arms.retired, bandit.state.records().tobytes()


def make(n_arms: int, dim: int, *, p: float | None = None, seed: int = 7, **settings: Any) -> Bandit:
    return Bandit(range(n_arms), dim, policy=Algorithm1(p=p or n_arms), seed=seed, **settings)


def play(bandit: Bandit, stream: Stream) -> list[Decision]:
    """Decide and learn at once, step after step."""
    decisions = []
    for x, rewards in zip(stream.contexts, stream.rewards, strict=True):
        decisions.append(bandit.decide(x))
        bandit.learn(decisions[-1], float(rewards[bandit.arms.index(decisions[-1].arm)]))
    return decisions


def sizes_of_sums(policy: Policy, n_arms: int, dim: int, rows: Sequence[tuple[Float64, int, float, float]]) -> Float64:
    """Return the same sums over absolute values: what rounding errors of a sum are relative to."""
    state = policy.init(n_arms, dim)
    assert isinstance(state, Statistics)
    for x, arm, reward, weight in rows:
        state.add(arm, np.abs(x), abs(reward), weight)
    return state.records()
