"""Small logs as rows, for what reads rows: played by a bandit, or put together column by column."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from armlet.evaluation.rows import Rows
from armlet.testing.logs import play
from armlet.types import Policy


def played(policy: Policy, n: int, *, n_arms: int = 3, seed: int = 1) -> Rows:
    """Let a policy decide n times where arms pay 0 or 1 by contexts of three values."""
    rng = np.random.default_rng([seed, n])
    X = rng.standard_normal((n, 3))
    slopes = np.random.default_rng(7).standard_normal((n_arms, 3))
    chances = 1 / (1 + np.exp(-X @ slopes.T))
    return play(policy, X, (rng.random((n, n_arms)) < chances).astype(float), seed)[0]


def imported(n: int, *, n_arms: int = 3, seed: int = 1, **columns: Any) -> Rows:
    """Return rows of another system, which logs arm and propensity alone: uniform, unless columns say otherwise."""
    rng = np.random.default_rng([seed, n])
    unknown = np.full(n, np.nan)
    rows = Rows(
        t=np.arange(1, n + 1),
        X=rng.standard_normal((n, 3)),
        arm=rng.integers(n_arms, size=n),
        reward=rng.random(n),
        propensity=np.full(n, 1 / n_arms),
        explored=np.full(n, -1, dtype=np.int8),
        exploration_rate=unknown,
        exploration_propensity=unknown,
        min_exploration_probability=unknown,
        greedy=np.full(n, -1, dtype=np.int8),
        turn=np.zeros(n, dtype=np.bool_),
        eligible=np.ones((n, n_arms), dtype=np.bool_),
        weight=np.ones(n),
        probabilities=None,
    )
    return replace(rows, **columns)
