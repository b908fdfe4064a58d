"""One shared theta on contexts lifted to e_a (x) x is a theta for every arm: the same estimates and the same widths."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from armlet.types import Float64
from armlet_lab.literature.derived import ridge_rows
from armlet_lab.literature.factors import lengths, log_det
from support.examples import scaled

Rows = list[tuple[int, Float64, float]]


def lifted(x: Float64, arm: int, n_arms: int) -> Float64:
    return np.kron(np.eye(n_arms)[arm], x)


@st.composite
def problems(draw: st.DrawFn) -> tuple[int, int, Rows, Float64, float]:
    n_arms, dim = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(0, 12))
    rows = [(int(rng.integers(n_arms)), rng.normal(size=dim), float(rng.normal())) for _ in range(n)]
    return n_arms, dim, rows, rng.normal(size=dim), draw(st.sampled_from([0.1, 1.0, 3.0]))


def sums(n_arms: int, dim: int, rows: Rows) -> tuple[Float64, Float64]:
    A, b = np.zeros((n_arms, dim, dim)), np.zeros((n_arms, dim))
    for arm, x, reward in rows:
        A[arm] += np.outer(x, x)
        b[arm] += reward * x
    return A, b


def shared(n_arms: int, dim: int, rows: Rows, ridge: float) -> tuple[Float64, Float64]:
    V, b = ridge * np.eye(n_arms * dim), np.zeros(n_arms * dim)
    for arm, x, reward in rows:
        phi = lifted(x, arm, n_arms)
        V, b = V + np.outer(phi, phi), b + reward * phi
    return V, b


@settings(max_examples=scaled(100))
@given(problems())
def test_one_ridge_on_lifted_contexts_scores_as_a_ridge_for_every_arm(
    problem: tuple[int, int, Rows, Float64, float],
) -> None:
    n_arms, dim, rows, x, ridge = problem
    V, b = shared(n_arms, dim, rows, ridge)
    y = ridge_rows(*sums(n_arms, dim, rows), ridge) @ x
    for arm in range(n_arms):
        phi = lifted(x, arm, n_arms)
        np.testing.assert_allclose(y[arm, 0], phi @ np.linalg.solve(V, b), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(lengths(y[:, 1:])[arm], np.sqrt(phi @ np.linalg.solve(V, phi)), rtol=1e-9)


@settings(max_examples=scaled(50))
@given(problems())
def test_the_determinant_of_the_lift_is_the_product_of_those_of_the_arms(
    problem: tuple[int, int, Rows, Float64, float],
) -> None:
    n_arms, dim, rows, _, ridge = problem
    V, _ = shared(n_arms, dim, rows, ridge)
    A, _ = sums(n_arms, dim, rows)
    whole = np.linalg.slogdet(V)[1] - n_arms * dim * np.log(ridge)
    np.testing.assert_allclose(log_det(A, ridge).sum(), whole, rtol=1e-9, atol=1e-9)


def test_widths_survive_what_rounding_leaves_of_rows_that_were_taken_back() -> None:
    x = np.array([1e4, 1.0, 1e-4])
    A = np.outer(x, x) - (1 + 1e-15) * np.outer(x, x)  # not quite zero, and below it
    y = ridge_rows(A, np.zeros(3), 1e-8) @ np.ones(3)
    np.testing.assert_allclose(lengths(y[1:]), np.sqrt(3 / 1e-8), rtol=1e-3)
    assert log_det(A, 1e-8) < 1e-3
