"""Policies whose features can be replaced, and bandits that learn rows whose sums are exact in any order.

Contexts are in eighths and rewards in quarters: one row that was lost, doubled or changed would show.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from armlet import Bandit, Policy
from armlet.inputs.settings import in_units
from armlet.policies import POLICIES
from armlet.types import Float64
from support.in_python import InPython

ARMS = ["a", "b", "c"]
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "Algorithm1": {"p": 60},
    "AutoAlgorithm1": {"horizon": 10_000},
    "ScheduledEpsilonGreedy": {"p": 60},
    "ContextualEpsilonGreedy": {"p": 60},
    "AllDataEpsilonGreedy": {"p": 60},
    "Oracle": {"theta": [[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]},
}
REFUSED = ("ContextualUCB", "Oracle")
"""Policies that keep rows, or a setting for every feature."""
HALF_LIFE: Mapping[str, Any] = {"half_life": 64}
FADING = ("LinUCB", "ThompsonSampling", "OccasionalOptimism", "Greedy")
"""Policies that are tried with a half-life too: what they keep of rows that fade is carried as well."""


def all_policies() -> list[Policy]:
    """Return every policy that can change features, in both units where it has both."""
    found: list[Policy] = [InPython(p=60)]
    for name, kind in POLICIES.items():
        if name in REFUSED:
            continue
        policy = kind(**SETTINGS.get(name, {}))
        has_both = "units" in {field.name for field in fields(policy)}  # type: ignore[arg-type]
        tried = [policy, kind(**HALF_LIFE)] if name in FADING else [policy]
        found += [in_units(each, units) for each in tried for units in ("free", "as given")] if has_both else tried
    return found


def is_free(policy: Policy) -> bool:
    return getattr(policy, "units", "as given") == "free"


def made(policy: Policy | None, features: list[str], **settings: Any) -> Bandit:
    return Bandit(ARMS, features=features, policy=policy, seed=3, **settings)


def eighths(rows: int, dim: int, seed: int = 5) -> Float64:
    return np.random.default_rng(seed).integers(-16, 17, size=(rows, dim)) / 8


def learn(bandit: Bandit, X: Float64, seed: int = 6) -> None:
    """Learn the same rows of the same arms for any width."""
    rng = np.random.default_rng(seed)
    arms = np.array(ARMS)[rng.integers(0, 3, size=len(X))]
    bandit.partial_fit(X, arms, rng.integers(-8, 9, size=len(X)) / 4, explored=True)
