"""A batch of corrections that empties arms is refused as a whole, or warns as single corrections do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import armlet
from armlet.errors import ArmletError, LostDigitsWarning

POLICIES: dict[str, Any] = {
    "default": armlet.OccasionalOptimism(),
    "LinUCB": armlet.LinUCB(),
    "ThompsonSampling": armlet.ThompsonSampling(),
    "units as given": armlet.LinUCB(units="as given"),
}


def taught(policy: Any) -> tuple[armlet.Bandit, dict[str, list[Any]]]:
    """Return a bandit whose first reward is nonsense, and a table that corrects it."""
    bandit, rng = armlet.Bandit(["a", "b", "c"], 2, policy=policy, seed=1), np.random.default_rng(1)
    first = bandit.decide(rng.normal(size=2))
    bandit.learn(first, 1e15)
    for _ in range(40):
        bandit.learn(bandit.decide(rng.normal(size=2)), float(rng.normal()))
    row = first.to_dict()
    table = {name: [row[name]] for name in ("t", "x", "arm", "propensity", "explored")}
    return bandit, {**table, "reward": [1.0], "replaces": [1e15]}


@pytest.mark.parametrize("policy", POLICIES)
def test_refused_batch_restores_arms_it_emptied(policy: str) -> None:
    bandit, table = taught(POLICIES[policy])
    bandit.predict_expectations(np.ones((1, 2)))
    before, digest = bandit.state.arrays(), bandit.digest()
    refused = {name: [values[0], values[0]] for name, values in table.items()} | {"weight": [1.0, 1e6]}
    with pytest.raises(ArmletError, match="correct"):
        bandit.partial_fit(refused)
    assert bandit.digest() == digest
    assert {name: values.tolist() for name, values in bandit.state.arrays().items()} == {
        name: values.tolist() for name, values in before.items()
    }
    assert not bandit.state.digits_lost.any()


@pytest.mark.parametrize("policy", POLICIES)
def test_batch_warns_of_arms_it_empties(policy: str) -> None:
    bandit, table = taught(POLICIES[policy])
    with pytest.warns(LostDigitsWarning, match="of rewards, so that it was emptied"):
        bandit.partial_fit(table)


def test_batch_of_actions_warns_of_lost_digits() -> None:
    bandit = armlet.ActionBandit(1, 1, seed=1)
    rows: dict[str, list[Any]] = {
        "x": [[0.5], [0.1], [0.7]],
        "z": [[1.0], [2.0], [1.0]],
        "arm": ["milk", "tea", "milk"],
    }
    bandit.partial_fit({**rows, "reward": [1e15, 1.0, 2.0]})
    first = {name: values[:1] for name, values in rows.items()}
    with pytest.warns(LostDigitsWarning, match="of rewards"):
        bandit.partial_fit({**first, "reward": [1.0], "replaces": [1e15]})
