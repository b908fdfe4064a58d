"""Two bandits that should be the same: what both learn, and how they are compared."""

from __future__ import annotations

import numpy as np

import armlet
from armlet.types import Float64, Policy

N_ARMS, DIM, STEPS = 4, 3, 24


def contexts(n: int, seed: int = 1) -> Float64:
    return np.random.default_rng(seed).integers(-1, 2, size=(n, DIM)).astype(np.float64) + 0.25


def fair(policy: Policy, step: int) -> float:
    """Return a reward that the policy takes."""
    if policy.rewards == "binary":
        return float(step % 3 == 0)
    low, high = getattr(policy, "reward_range", (-1.0, 2.0))
    return float(low + (high - low) * (step % 5) / 5)


def assert_alike(one: armlet.Bandit, two: armlet.Bandit, call: str = "") -> None:
    facts = [(b.t, b.arms, b.arms.retired, b.state.nbytes, list(b.state.arrays())) for b in (one, two)]
    assert facts[0] == facts[1], call
    first, second = one.state.arrays(), two.state.arrays()
    for name in first:
        np.testing.assert_array_equal(first[name], second[name], err_msg=f"{name} after {call}")


def assert_same(one: armlet.Bandit, two: armlet.Bandit) -> None:
    assert_alike(one, two)
    for step, x in enumerate(contexts(6, seed=2)):
        decisions = [bandit.decide(x) for bandit in (one, two)]
        assert repr(decisions[0]) == repr(decisions[1])
        for bandit, decision in zip((one, two), decisions, strict=True):
            bandit.learn(decision, fair(bandit.policy, step))
