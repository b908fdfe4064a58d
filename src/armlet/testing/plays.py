"""Worlds and plays that the checks of policies share: fixed seeds, rewards of the kind that a policy takes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from armlet.bandit import Bandit
from armlet.kernel import Decision
from armlet.types import Float64, Interaction, Policy, State

STEPS = 240
SEED = 5


def new_bandit(policy: Policy, n_arms: int, dim: int, seed: int = SEED) -> Bandit:
    """Make a bandit whose labels are the numbers of its arms."""
    return Bandit(range(n_arms), dim, policy=policy, seed=seed)


def world(policy: Policy, n_arms: int, dim: int, steps: int = STEPS) -> tuple[Float64, Float64]:
    """Contexts with zeros and repeats among them, so that ties happen, and rewards of the kind that it takes."""
    rng = np.random.default_rng(17)
    X = rng.integers(-1, 2, size=(steps, dim)).astype(np.float64)
    theta = rng.normal(size=(n_arms, dim))
    rewards = X @ theta.T + rng.normal(size=(steps, n_arms))
    if policy.rewards == "binary":
        rewards = (rewards > 0).astype(np.float64)
    elif policy.rewards == "bounded":
        low, high = policy.reward_range  # type: ignore[attr-defined]  # only those have it
        rewards = low + (high - low) / (1 + np.exp(-rewards))
    return X, rewards


def same(one: State, other: State) -> bool:
    """Tell whether two states are equal to the last bit."""
    first, second = one.arrays(), other.arrays()
    return set(first) == set(second) and all(np.array_equal(first[name], second[name]) for name in first)


def play(bandit: Bandit, X: Float64, rewards: Float64) -> Iterator[tuple[Decision, float]]:
    """Decide and learn, step by step."""
    for x, row in zip(X, rewards, strict=True):
        decision = bandit.decide(x)
        reward = float(row[int(decision.arm)])
        bandit.learn(decision, reward)
        yield decision, reward


def interaction(d: Decision, reward: float) -> Interaction:
    """Give what is learned from a decision whose label is the number of its arm."""
    return Interaction(
        t=d.t, x=d.x, arm=int(d.arm), reward=reward, propensity=d.propensity, explored=d.explored, tag=d.tag
    )


def require(holds: bool, promise: str) -> None:
    """Raise AssertionError if a promise is broken."""
    if not holds:
        raise AssertionError(promise)
