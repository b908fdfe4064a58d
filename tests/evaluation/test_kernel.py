"""The compiled pass against its reference in numpy: equal to the last bit."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armlet import _kernel, kernel
from armlet.evaluation.model import combine
from armlet.reference import evaluate as reference
from armlet.reference.evaluate import AS_LOGGED, FEATURES, Parts
from armlet.types import Float64
from support.examples import scaled


def same(one: Float64, other: Float64) -> bool:
    """Return whether two arrays hold the same bits."""
    return one.shape == other.shape and one.tobytes() == other.tobytes()


@settings(max_examples=scaled(60))
@given(st.integers(0, 40), st.integers(1, 7), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_the_kernel_predicts_what_the_reference_predicts(n: int, dim: int, n_arms: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, theta = rng.normal(size=(n, dim)), rng.normal(size=(n_arms, dim + 1))
    inverse = rng.normal(size=(n_arms, dim + 1, dim + 1)) / 10
    arms, rewards, learned = rng.integers(n_arms, size=n), rng.normal(size=n), rng.random(n) < 0.5
    mine = kernel.predict_played(theta, inverse, X, arms, rewards, learned)
    assert same(mine, reference.predict_played(theta, inverse, X, arms, rewards, learned))
    chosen = rng.integers(n_arms, size=n)
    predicted = kernel.predict_target(theta, inverse, X, chosen, arms, mine)
    assert same(predicted, reference.predict_target(theta, X, chosen, arms, mine))
    assert (predicted[chosen == arms] == mine[chosen == arms]).all()
    law = rng.dirichlet(np.ones(n_arms), size=n)
    law[rng.random((n, n_arms)) < 0.3] = 0.0
    law = np.ascontiguousarray(law)
    predicted = kernel.predict_target(theta, inverse, X, law, arms, mine)
    assert np.array_equal(predicted, reference.predict_target(theta, X, law, arms, mine))


@settings(max_examples=scaled(60))
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


@pytest.fixture(params=[0, 1, 2])
def level(request: pytest.FixtureRequest) -> Iterator[int]:
    yield _kernel._use_level(request.param)
    _kernel._use_level(2)


@pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 300])
@pytest.mark.parametrize("explores", [0.0, 0.01, 0.5])
def test_features_that_are_never_written_down_have_the_same_sums(n: int, explores: float, level: int) -> None:
    rng = np.random.default_rng(n)
    pi = np.where(rng.random(n) < 0.5, 0.0, rng.random(n))
    chance, given_exploring = rng.uniform(0.01, 1, n), rng.uniform(0.1, 1, n)
    direct, rewards, model, h = rng.normal(size=(4, n))
    explored = (rng.random(n) < explores).astype(np.float64)
    parts = Parts(pi, direct, rewards, chance, given_exploring, explored, model, h * (rng.random(n) < explores))
    sums, largest = kernel.sum_features(*parts, 5.0, 2.0)
    expected, most = reference.sum_features(parts, 5.0, 2.0)
    assert same(sums, expected), level
    assert largest == most


def test_features_of_the_log_itself_are_columns_of_those_of_any_other() -> None:
    n, rng = 50, np.random.default_rng(1)
    r, chance, ones = rng.normal(size=n), rng.uniform(0.1, 1, n), np.ones(n)
    B = reference.row_features(Parts(chance, r, r, chance, chance, ones, r, ones), 10.0, 1.0)
    F = np.column_stack([np.ones(n), np.zeros((n, 6)), r, np.zeros((n, 8))])
    assert np.array_equal(F[:, AS_LOGGED], B)


@settings(max_examples=scaled(60))
@given(st.integers(0, 90), st.integers(1, 9), st.integers(1, 9), st.integers(0, 2**32 - 1), st.integers(0, 2))
def test_the_kernel_values_a_greedy_policy_as_the_reference_does(
    n: int, dim: int, n_arms: int, seed: int, wanted: int
) -> None:
    rng = np.random.default_rng(seed)
    X, theta, estimates = rng.normal(size=(n, dim)), rng.normal(size=(n_arms, dim + 1)), rng.normal(size=(n_arms, dim))
    inverse = rng.normal(size=(n_arms, dim + 1, dim + 1)) / 10
    eligible = rng.random(n_arms) < 0.7
    eligible[rng.integers(n_arms)] = True
    logged = rng.integers(n_arms, size=n), rng.normal(size=n), rng.random(n) < 0.5
    if n:
        X[0] = 0.0  # all arms tie
    _kernel._use_level(wanted)
    try:
        best, direct, played = kernel.value_greedy(estimates, eligible, theta, inverse, X, *logged)
    finally:
        _kernel._use_level(2)
    clear = best >= 0
    assert clear[1:].all()
    assert clear[:1].any() == (n > 0 and eligible.sum() == 1)
    expected = reference.value_greedy(estimates, eligible, theta, inverse, X, *logged)
    for mine, theirs in zip((best, direct, played), expected, strict=True):
        assert mine[clear].tolist() == theirs[clear].tolist()


@settings(max_examples=scaled(60))
@given(st.integers(1, 12), st.integers(0, 2**32 - 1), st.sampled_from([0, 3, 30, 300]), st.booleans())
def test_blocks_are_added_as_fsum_adds_them(n: int, seed: int, powers: int, coarse: bool) -> None:
    rng = np.random.default_rng(seed)
    parts = list(rng.normal(size=(n, 4, 5)) * 10.0 ** rng.integers(-powers, powers + 1, size=(n, 4, 5)))
    if coarse:  # so that sums lie half way between two numbers
        parts = [np.round(part * 64) / 64 for part in parts]
    parts += [-part for part in parts[:2]]
    expected = [[math.fsum(float(part[i, j]) for part in parts) for j in range(5)] for i in range(4)]
    assert combine(parts).tolist() == expected


@pytest.mark.parametrize(("n", "dim"), [(0, 1), (1, 3), (70, 1), (70, 20), (9, 33)])
def test_moments_are_summed_in_the_order_of_rows(n: int, dim: int, level: int) -> None:
    rng = np.random.default_rng(dim)
    X, origin = rng.normal(size=(n, dim)), rng.normal(size=dim)
    assert same(kernel.sum_moments(X, origin), reference.sum_moments(X, origin)), level


def test_sums_of_fresh_rows_are_those_of_add_rows_and_refuse_what_it_refuses() -> None:
    rng = np.random.default_rng(2)
    X, arms, rewards = rng.normal(size=(500, 3)), rng.integers(-1, 4, size=500), rng.normal(size=500)
    records = np.zeros((4, 3 + 4 + 10))
    kernel.add_rows(records, X, arms, rewards, None, np.zeros(4))
    assert same(kernel.sum_rows(X, arms, rewards, 4), records)
    for row, value in ((0, np.nan), (7, np.inf), (9, 1e41)):
        wrong = X.copy()
        wrong[row, 1] = value
        with pytest.raises(ValueError, match="X holds a value"):
            kernel.sum_rows(wrong, np.abs(arms), rewards, 4)
    wrong = rewards.copy()
    wrong[3] = np.nan
    with pytest.raises(ValueError, match="rewards holds a value"):
        kernel.sum_rows(X, np.abs(arms), wrong, 4)
    with pytest.raises(ValueError, match="arms holds a number beyond"):
        kernel.sum_rows(X, arms, rewards, 3)


def test_what_is_no_arm_is_refused() -> None:
    theta, inverse, X = np.zeros((2, 2)), np.zeros((2, 2, 2)), np.zeros((1, 1))
    with pytest.raises(ValueError, match="target holds a number that is none of an arm"):
        kernel.predict_target(theta, inverse, X, np.array([2]), np.array([0]), np.zeros(1))
    with pytest.raises(ValueError, match="arms holds a number that is none of an arm"):
        kernel.predict_target(theta, inverse, X, np.array([0]), np.array([2]), np.zeros(1))
    with pytest.raises(TypeError, match="rewards must be"):
        kernel.predict_played(theta, inverse, X, np.array([0]), np.array([1]), np.array([True]))
