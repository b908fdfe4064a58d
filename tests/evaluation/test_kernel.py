"""The compiled pass against its reference in numpy: equal to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armlet.core import kernel
from armlet.core.types import Float64
from armlet.evaluation import reference
from armlet.evaluation.reference import FEATURES, Parts


def same(one: Float64, other: Float64) -> bool:
    """Say whether two arrays hold the same bits."""
    return one.shape == other.shape and one.tobytes() == other.tobytes()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 40), st.integers(1, 7), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_the_kernel_predicts_what_the_reference_predicts(n: int, dim: int, n_arms: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, theta = rng.normal(size=(n, dim)), rng.normal(size=(n_arms, dim + 1))
    inverse = rng.normal(size=(n_arms, dim + 1, dim + 1)) / 10
    arms, rewards, learned = rng.integers(n_arms, size=n), rng.normal(size=n), rng.random(n) < 0.5
    mine = kernel.predict_played(theta, inverse, X, arms, rewards, learned)
    assert same(mine, reference.predict_played(theta, inverse, X, arms, rewards, learned))
    assert same(kernel.predict_target(theta, inverse, X, arms), reference.predict_target(theta, X, arms))
    law = rng.dirichlet(np.ones(n_arms), size=n)
    law[rng.random((n, n_arms)) < 0.3] = 0.0
    law = np.ascontiguousarray(law)
    assert np.array_equal(kernel.predict_target(theta, inverse, X, law), reference.predict_target(theta, X, law))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 300), st.integers(0, 2**32 - 1))
def test_the_kernel_sums_what_the_reference_sums(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    explored = (rng.random(n) < 0.5).astype(np.float64)
    pi, chance, given_exploring = rng.random(n), rng.uniform(0.01, 1, n), rng.uniform(0.1, 1, n)
    direct, rewards, model, h = rng.normal(size=(4, n))
    parts = Parts(pi, direct, rewards, chance, given_exploring, explored, model, h)
    F = kernel.row_features(*parts, 5.0, 2.0)
    assert same(F, reference.row_features(parts, 5.0, 2.0))
    assert F.shape == (n, len(FEATURES))
    assert same(kernel.gram(F, F), reference.gram(F, F))
    other = np.ascontiguousarray(F[::-1])
    assert same(kernel.gram(F, other), reference.gram(F, other))


def test_what_is_no_arm_is_refused() -> None:
    theta, inverse, X = np.zeros((2, 2)), np.zeros((2, 2, 2)), np.zeros((1, 1))
    with pytest.raises(ValueError, match="target holds a number that is none of an arm"):
        kernel.predict_target(theta, inverse, X, np.array([2]))
    with pytest.raises(TypeError, match="rewards must be"):
        kernel.predict_played(theta, inverse, X, np.array([0]), np.array([1]), np.array([True]))
