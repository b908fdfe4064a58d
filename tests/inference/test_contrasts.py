"""Contrasts where nothing varies: as certain as the coefficients that they are made of."""

from __future__ import annotations

import numpy as np
import pytest

import armlet


@pytest.mark.parametrize("policy", [armlet.Algorithm1(p=30, ridge=0.2), armlet.ContextualEpsilonGreedy(p=30)])
@pytest.mark.parametrize("x", [[0.0, 0.0], [1.0, 2.0]])
def test_rewards_without_noise_give_a_contrast_without_width(policy: armlet.Policy, x: list[float]) -> None:
    bandit = armlet.Bandit(["a", "b"], 2, policy=policy, seed=1)
    contexts = np.random.default_rng(0).normal(size=(40, 2))
    bandit.partial_fit(contexts, ["a", "b"] * 20, [0.0] * 40, explored=True)
    found, row = bandit.inference.contrast("a", "b", x=x), bandit.inference.intervals()[0]
    assert (found.value, found.error, found.low, found.high) == (0.0, 0.0, 0.0, 0.0)
    assert (row.error, row.low, row.high) == (0.0, 0.0, 0.0)


def test_a_context_of_zeros_has_no_error_in_units_as_given() -> None:
    bandit = armlet.Bandit(["a", "b"], 2, policy=armlet.Algorithm1(p=30, ridge=0.2), seed=1)
    rng = np.random.default_rng(0)
    bandit.partial_fit(rng.normal(size=(40, 2)), ["a", "b"] * 20, rng.normal(size=40), explored=True)
    found = bandit.inference.contrast("a", "b", x=[0.0, 0.0])
    assert (found.value, found.low, found.high) == (0.0, 0.0, 0.0)
