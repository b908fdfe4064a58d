"""Constants estimated from data come near the true ones, and err on the sides that the docs name."""

from __future__ import annotations

import math

import numpy as np
import pytest

from armlet import theory
from armlet.environments import FigureA
from armlet.theory import AssumptionError, estimate_constants
from armlet.types import Float64, Int64

Rows = tuple[Float64, Int64, Float64]
THETA = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.5))


def explored(n: int, *, seed: int = 1) -> Rows:
    """Draw rows of Figure (a)'s kind with arms played uniformly."""
    rng, environment = np.random.default_rng(seed), FigureA(theta=THETA)
    X = environment.contexts(rng, n)
    arms = rng.integers(len(THETA), size=n)
    return X, arms, environment.rewards(rng, X)[np.arange(n), arms]


def test_estimates_approach_the_true_constants() -> None:
    """Errors fall as 1 / sqrt n; at n = 200,000 a standard error of x'theta_hat is below 0.01."""
    found = estimate_constants(*explored(200_000), n_arms=3, ties=4.0).constants
    true = FigureA(theta=THETA).constants()
    for name in ("sigma_min", "delta_min", "delta_max", "Q"):
        assert getattr(found, name) == pytest.approx(getattr(true, name), abs=0.04), name


def test_the_spread_is_no_more_than_the_constant_that_the_theorem_needs() -> None:
    """Noise that grows with the mean: its mean spread over contexts lies well below its largest."""
    found = estimate_constants(*explored(50_000), n_arms=3, ties=4.0)
    true = FigureA(theta=THETA).constants()
    assert found.constants.sigma == found.spread < 0.9 * true.sigma
    assert found.bounded is None


def test_a_range_of_rewards_gives_a_safe_sigma() -> None:
    X, arms, rewards = explored(2_000)
    found = estimate_constants(X, arms, rewards, n_arms=3, reward_range=(-3.0, 3.0), ties=4.0)
    assert found.constants.sigma == found.bounded == 3.0
    assert pytest.approx(3.0 / math.sqrt(2.0)) == found.constants.L
    assert found.spread < 3.0


def test_rare_clicks_show_why_a_spread_is_not_enough() -> None:
    """0/1 rewards of mean 0.01: spread 0.0995, sub-gaussian constant 0.3265. Five standard errors of the former."""
    rng = np.random.default_rng(2)
    X, arms = np.ones((40_000, 1)), np.arange(40_000) % 2
    rewards = (rng.random(40_000) < np.where(arms == 0, 0.01, 0.005)).astype(float)
    found = estimate_constants(X, arms, rewards, n_arms=2, reward_range=(0.0, 1.0))
    true = float(theory.bernoulli_sigma(np.array([0.01]))[0])
    assert found.spread == pytest.approx(math.sqrt(0.01 * 0.99), abs=5 * 0.5 / math.sqrt(20_000))
    assert found.spread < true / 2 < true < 0.5 == found.constants.sigma


def test_arms_that_tie_do_not_become_a_gap_of_noise() -> None:
    rng = np.random.default_rng(3)
    X, arms = np.eye(2)[rng.integers(2, size=6_000)], rng.integers(3, size=6_000)
    means = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])  # arms 0 and 1 are the same
    rewards = means[X.argmax(axis=1), arms] + rng.normal(size=6_000)
    naive, careful = (estimate_constants(X, arms, rewards, n_arms=3, ties=ties).constants for ties in (0.0, 4.0))
    assert naive.delta_min < 0.2
    assert careful.delta_min == pytest.approx(1.0, abs=0.2)  # a difference has standard error 0.045


def test_when_every_difference_may_be_noise_there_is_no_gap() -> None:
    rng = np.random.default_rng(4)
    X, arms = np.ones((100, 1)), np.arange(100) % 2
    with pytest.raises(AssumptionError, match="delta_min does not exist"):
        estimate_constants(X, arms, rng.normal(size=100), n_arms=2, ties=5.0)


def test_the_ridge_of_the_policy_gives_the_estimates_of_the_policy() -> None:
    X, arms, rewards = explored(300)
    found = estimate_constants(X, arms, rewards, n_arms=3, ridge="paper")
    for arm in range(3):
        rows, own = X[arms == arm], rewards[arms == arm]
        n = len(rows)
        printed = np.linalg.solve(np.eye(2) / math.sqrt(n) + rows.T @ rows / n, rows.T @ own / n)
        np.testing.assert_allclose(found.theta_hat[arm], printed, rtol=1e-10)
    assert found.constants.Q < estimate_constants(X, arms, rewards, n_arms=3).constants.Q


def test_a_direction_not_seen_yet_makes_sigma_min_too_large() -> None:
    X, arms, rewards = explored(600)
    flat = X * [1.0, 0.0]
    found = estimate_constants(flat, arms, rewards, n_arms=3)
    assert (found.problem.dim, found.problem.rank) == (2, 1)
    assert found.constants.sigma_min > FigureA(theta=THETA).constants().sigma_min


def test_estimates_lead_to_a_p_near_that_of_the_truth() -> None:
    found = estimate_constants(*explored(200_000), n_arms=3, ties=4.0)
    table = FigureA(theta=THETA).table()
    assert table is not None
    truth = theory.required_p(table).printed
    assert truth is not None
    assert theory.printed_p(found.problem).p == pytest.approx(truth.p, rel=0.25)


def test_bad_rows_are_refused_with_the_fix() -> None:
    X, arms, rewards = explored(60)
    with pytest.raises(ValueError, match="give \\(n, d\\)"):
        estimate_constants(X, arms[1:], rewards, n_arms=3)
    with pytest.raises(ValueError, match="all of 0 to 3"):
        estimate_constants(X, arms, rewards, n_arms=4)
    with pytest.raises(ValueError, match="all of 0 to 1"):
        estimate_constants(X, arms, rewards, n_arms=2)
    with pytest.raises(ValueError, match="nan"):
        estimate_constants(X, arms, np.where(arms == 0, np.nan, rewards), n_arms=3)
    with pytest.raises(ValueError, match="reward_range"):
        estimate_constants(X, arms, rewards, n_arms=3, reward_range=(1.0, 1.0))
    with pytest.raises(ValueError, match="too few"):
        estimate_constants(np.eye(2)[[0, 1, 0, 1]], np.array([0, 0, 1, 1]), np.ones(4), n_arms=2)
