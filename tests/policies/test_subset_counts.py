"""Searching by counts: as good as brute force for two contexts, and no more work however often contexts were met."""

from __future__ import annotations

import numpy as np
import pytest

from armlet.policies.subset_search import ArmPast, counts, relaxed, value
from armlet.types import Float64


def brute_force(x: Float64, X: Float64, times: tuple[int, int]) -> float:
    """The minimum of f over all counts of two contexts, in numpy."""
    W = np.array([(v, w) for v in range(times[0] + 1) for w in range(times[1] + 1)][1:], dtype=np.float64)
    A = np.einsum("wi,ij,ik->wjk", W, X, X) / np.sqrt(W.sum(axis=1))[:, None, None]
    y = np.linalg.solve(np.eye(len(x)) + A, np.broadcast_to(x, (len(W), len(x)))[..., None])
    return float((y**2).sum(axis=(1, 2)).min())


def draw(rng: np.random.Generator, rows: int, length: float = 1.0) -> tuple[Float64, Float64]:
    X = rng.normal(size=(rows, int(rng.integers(2, 7))))
    X *= length * rng.uniform(0.3, 1.0, size=(rows, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
    x: Float64 = rng.normal(size=(X.shape[1],))
    return (x if rng.random() < 0.5 else np.add(X[0], 0.1 * x)), X


@pytest.mark.parametrize("length", [0.3, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("times", [(300, 20), (20, 300), (70, 70), (40, 30)])
def test_two_contexts_are_searched_as_well_as_by_brute_force(length: float, times: tuple[int, int]) -> None:
    rng = np.random.default_rng(int(10 * length) + times[0])
    for _ in range(6):
        x, X = draw(rng, 2, length)
        found = counts(x, ArmPast.of(X, counts=times))
        assert found.value == pytest.approx(brute_force(x, X, times), rel=1e-6)
        assert found.exact == ((times[0] + 1) * (times[1] + 1) <= 4096)


def test_contexts_of_one_direction_and_none_are_no_trouble() -> None:
    x = np.array([1.0, 0.5])
    for X in ([[1.0, 0.0], [-2.0, 0.0]], [[0.0, 0.0], [1.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]):
        rows = np.array(X)
        found = counts(x, ArmPast.of(rows, counts=[90, 80]))
        assert found.value == pytest.approx(brute_force(x, rows, (90, 80)), rel=1e-9)
        assert found.value == pytest.approx(value(x, ArmPast.of(rows), found.weights), rel=1e-9)


@pytest.mark.parametrize("contexts", [2, 3, 8, 16, 24])
def test_the_work_does_not_grow_with_how_often_contexts_were_met(contexts: int) -> None:
    """Two contexts: on each of 2 edges a grid of 34, 24 cuts of 2, both ends, 16 lengths of 2.

    More: 6 starts with 16 looks a context; 3 of them go on for at most 24 sweeps of 6 looks a context, and are rounded
    in 2 sweeps of 2; and one look for each start and each rounding.
    """
    most = 2 * (34 + 48 + 2 + 32) if contexts == 2 else 6 + 3 + contexts * (6 * 16 + 3 * (24 * 6 + 4))
    rng = np.random.default_rng(contexts)
    tried = []
    for total in (1e4, 1e6, 1e8, 1e10):
        for _ in range(5):
            x, X = draw(rng, contexts)
            times = np.maximum(1.0, np.floor(total * rng.dirichlet(np.ones(contexts))))
            found = counts(x, ArmPast.of(X, counts=times))
            tried.append(found.tried)
            assert ((found.weights >= 0) & (found.weights <= times) & (found.weights % 1 == 0)).all()
    assert 0 < max(tried) <= most


def test_many_counts_are_searched_about_as_well_as_by_the_relaxed_search() -> None:
    rng = np.random.default_rng(6)
    ratios = []
    for contexts in (3, 5, 8):
        for _ in range(12):
            x, X = draw(rng, contexts)
            past = ArmPast.of(X, counts=np.ceil(1e4 * rng.dirichlet(np.full(contexts, 0.3))))
            ratios.append(counts(x, past).value / relaxed(x, past).value)
    assert np.mean(ratios) < 1.005
    assert max(ratios) < 1.05


def test_the_same_history_gives_the_same_subset() -> None:
    rng = np.random.default_rng(7)
    x, X = draw(rng, 9)
    past = ArmPast.of(X, counts=rng.integers(1, 10**6, size=9))
    assert np.array_equal(counts(x, past).weights, counts(x, past).weights)
