"""The rows that a model finds without scoring all of them exactly are those that scoring all of them finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armlet import _kernel, kernel
from armlet.reference.elementary import logs
from armlet.reference.pair_model import best
from armlet.types import Bool, Float64
from support.actions.pairs import all_products
from support.examples import scaled


def catalogue(seed: int, n: int, dx: int, dz: int, rows: int) -> tuple[kernel.PairModel, kernel.ActionRows, Float64]:
    """Return a model that learned of some of n actions, the actions and a context."""
    rng = np.random.default_rng(seed)
    Z, keys = rng.normal(size=(n, dz)), rng.integers(0, 2**63, size=n, dtype=np.uint64)
    Z = Z * rng.choice([1e-8, 1.0, 1e6], size=dz) + rng.choice([0.0, 1.0, 1e9], size=dz)
    slopes = rng.normal(size=dz) / (Z.std(axis=0) + 1e-300)
    model = kernel.PairModel(dx, dz, all_products(dx, dz), intercepts=bool(rng.random() < 0.7))
    for _ in range(rows):
        a, x = int(rng.integers(n)), rng.normal(size=dx)
        reward = float((Z[a] - Z.mean(axis=0)) @ slopes * (1.0 + x.sum()) + rng.normal())
        model.add(int(keys[a]), x, Z[a], reward, 1.0)
    return model, kernel.ActionRows(Z, keys), rng.normal(size=dx)


def bounds(model: kernel.PairModel, rows: kernel.ActionRows, x: Float64, t: int, allowed: Bool | None) -> Float64:
    """Return every row's estimate plus its bonus, by brute force."""
    w = model.widths(x, rows, allowed)
    bonus = (0.85 * model.sigma) * (w * np.sqrt(2.0 * logs(1.0 + t * (w * w) / float(model.n_terms))))
    return model.estimates(x, rows) + bonus


def masks(rng: np.random.Generator, n: int) -> list[Bool | None]:
    """Return no mask, one of half of the rows, and one of a single row."""
    single = np.zeros(n, dtype=np.bool_)
    single[int(rng.integers(n))] = True
    return [None, rng.random(n) < 0.5, single]


@given(seed=st.integers(0, 2**32), n=st.sampled_from([1, 63, 64, 65, 700]), rows=st.sampled_from([0, 1, 5, 60]))
@settings(max_examples=scaled(30))
def test_float32_finds_what_float64_finds(seed: int, n: int, rows: int) -> None:
    model, table, x = catalogue(seed, n, 2, 4, rows)
    for allowed in masks(np.random.default_rng(seed), n):
        if allowed is not None and not allowed.any():
            continue
        estimates = model.estimates(x, table)
        found = model.greedy(x, table, allowed)
        # estimates have the origin of rewards added, which may make more of them equal
        assert set(found.tolist()) <= set(best(estimates, allowed).tolist())
        found = model.optimistic(x, table, rows + 1, allowed)
        values = bounds(model, table, x, rows + 1, allowed)
        among = values if allowed is None else values[allowed]
        np.testing.assert_allclose(values[found], among.max(), rtol=1e-12, atol=1e-12)
        assert model.last_exact_widths <= n


def test_rows_that_float32_cannot_tell_apart_are_told_apart() -> None:
    """Scores that differ by one unit in the last place of float64, all within a float32 of each other."""
    n = 500
    Z = np.ones((n, 1)) + np.arange(n)[:, None] * 2.0**-52
    Z[0], Z[1] = -1.0, 3.0
    model = kernel.PairModel(0, 1, all_products(0, 1), intercepts=False)
    for key in range(2):
        for _ in range(50):
            model.add(key, np.zeros(0), Z[key], 4.0 - float((Z[key, 0] - 1.0) ** 2), 1.0)
    model.add(2, np.zeros(0), Z[2] + 0.5, 4.0, 1.0)
    table = kernel.ActionRows(Z, np.arange(n, dtype=np.uint64))
    estimates = model.estimates(np.zeros(0), table)
    assert len(np.unique(estimates.astype(np.float32))) < 5
    assert set(model.greedy(np.zeros(0), table, None)) <= set(best(estimates, None))


def test_equal_rows_tie_and_rows_that_may_not_be_played_do_not_matter() -> None:
    model, table, x = catalogue(3, 300, 2, 3, 80)
    Z, keys = table.Z, table.keys
    twice = kernel.ActionRows(np.concatenate([Z, Z]), np.concatenate([keys, keys + np.uint64(1)]))
    model = model.copy()
    allowed = np.arange(600) < 300
    for t in (1, 1000):
        np.testing.assert_array_equal(model.greedy(x, twice, allowed), model.greedy(x, table, None))
        np.testing.assert_array_equal(model.optimistic(x, twice, t, allowed), model.optimistic(x, table, t, None))
        drawn = model.draws(x, twice, t, 5, 8, 1.0, allowed), model.draws(x, table, t, 5, 8, 1.0, None)
        for mine, other in zip(*drawn, strict=True):
            np.testing.assert_array_equal(mine, other)
    plain = kernel.PairModel(2, 3, all_products(2, 3), intercepts=False)
    plain.merge(plain.copy())
    assert plain.greedy(x, twice, None).tolist() == list(range(600))
    assert plain.greedy(x, twice, np.zeros(600, dtype=np.bool_)).tolist() == []
    assert plain.optimistic(x, twice, 1, np.zeros(600, dtype=np.bool_)).tolist() == []


def test_few_widths_are_computed_once_there_are_rows() -> None:
    rng = np.random.default_rng(1)
    n, dx, dz = 5000, 3, 8
    Z, keys = rng.normal(size=(n, dz)), np.arange(n, dtype=np.uint64)
    model, table = kernel.PairModel(dx, dz, all_products(dx, dz), intercepts=True), kernel.ActionRows(Z, keys)
    slopes = rng.normal(size=(dx + 1, dz)) / 3.0
    counts = []
    for t in range(1, 2001):
        x = rng.normal(size=dx)
        v = np.concatenate([[1.0], x]) @ slopes
        if t % 5 == 0:
            a = int(model.optimistic(x, table, t, None)[0])
            counts.append(model.last_exact_widths)
        else:
            a = int(model.greedy(x, table, None)[0])
        model.add(a, x, Z[a], float(Z[a] @ v + rng.normal()), 1.0)
    assert np.median(counts[200:]) < 100


@pytest.mark.parametrize("intercepts", [False, True])
def test_draws_win_as_often_as_the_posterior_says(intercepts: bool) -> None:
    """Two actions: the difference of their values is normal, so each wins with a probability that is known."""
    rng = np.random.default_rng(2)
    model = kernel.PairModel(0, 1, all_products(0, 1), intercepts=intercepts)
    Z = np.array([[0.0], [1.0]])
    for i in range(40):
        model.add(i % 2, np.zeros(0), Z[i % 2], float(0.15 * (i % 2) + rng.normal()), 1.0)
    table = kernel.ActionRows(Z, np.array([0, 1], dtype=np.uint64))
    n, x = 4000, np.zeros(0)
    won = sum(int(rows[0] == 1) for t in range(n // 20) for rows in model.draws(x, table, t, 3, 20, 1.0, None))
    # the variance of the difference, by draws of two models of the same sums
    joint = difference_deviation(model, intercepts)
    gap = float(np.diff(model.estimates(x, table))[0]) / joint
    p = float(0.5 * (1.0 + np.tanh(0.8 * gap)))  # the normal's distribution function, within 0.02 for |gap| < 1
    assert abs(won / n - p) < 0.02 + 4.0 * np.sqrt(p * (1.0 - p) / n)


def difference_deviation(model: kernel.PairModel, intercepts: bool) -> float:
    """Return the posterior deviation of the difference of two actions with z = 0 and 1 and 20 rows each."""
    ridge, kappa = float(model.ridges[1]), model.kappa
    columns = [np.array([1.0, -1.0, 1.0, 0.0]), np.array([1.0, 1.0, 0.0, 1.0])]  # constant, z, two intercepts
    V = np.diag([0.0, ridge, kappa, kappa]) + sum(20.0 * np.outer(f, f) for f in columns)
    if not intercepts:
        V, columns = V[:2, :2], [f[:2] for f in columns]
    f = columns[1] - columns[0]
    return model.sigma * float(np.sqrt(f @ np.linalg.solve(V, f)))


def test_every_processor_finds_the_same() -> None:
    model, table, x = catalogue(12, 700, 2, 5, 60)
    answers = []
    for level in (0, 1, 2):
        _kernel._use_level(level)
        try:
            drawn = model.draws(x, table, 4, 11, 12, 1.0, None)
            found = [model.greedy(x, table, None), model.optimistic(x, table, 60, None), *drawn]
            answers.append([rows.tolist() for rows in found])
        finally:
            _kernel._use_level(2)
    assert answers[0] == answers[1] == answers[2]


def test_draws_are_functions_of_the_seed_and_the_step() -> None:
    model, table, x = catalogue(9, 400, 2, 3, 50)
    first = [rows.tolist() for rows in model.draws(x, table, 4, 11, 12, 1.0, None)]
    assert first == [rows.tolist() for rows in model.copy().draws(x, table, 4, 11, 12, 1.0, None)]
    assert first[:5] == [rows.tolist() for rows in model.draws(x, table, 4, 11, 5, 1.0, None)]
    others = [[rows.tolist() for rows in model.draws(x, table, t, s, 12, 1.0, None)] for t, s in ((5, 11), (4, 12))]
    assert first not in others
