"""The Figure (a) environment: exact where it can be, otherwise within five standard errors at fixed seeds.

A correct environment fails one check at five standard errors with probability 6e-7.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from armlet.environments import ENVIRONMENTS, FigureA

N = 200_000


@pytest.fixture
def environment() -> FigureA:
    return FigureA.draw(np.random.default_rng(11))


def test_the_registry_names_the_environment() -> None:
    assert ENVIRONMENTS["FigureA"] is FigureA


def test_an_environment_is_fixed_once_drawn(environment: FigureA) -> None:
    assert environment == FigureA.draw(np.random.default_rng(11))
    assert hash(environment) == hash(FigureA(theta=environment.theta))
    assert (environment.n_arms, environment.dim) == (6, 3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        environment.theta = ((1.0,),)  # type: ignore[misc]


def test_theta_is_standard_gaussian() -> None:
    theta = np.array(FigureA.draw(np.random.default_rng(1), n_arms=N // 100, dim=100).theta)
    # mean of N draws: standard error 1/sqrt(N); variance of N draws: sqrt(2/N)
    assert abs(theta.mean()) < 5 / np.sqrt(N)
    assert abs(theta.var() - 1.0) < 5 * np.sqrt(2.0 / N)


def test_each_context_of_the_support_is_as_likely_as_any_other(environment: FigureA) -> None:
    X = environment.contexts(np.random.default_rng(2), N)
    seen, counts = np.unique(X, axis=0, return_counts=True)
    assert np.array_equal(seen, np.unique(environment.support(), axis=0))
    # each count is binomial(N, 1/8): the share has standard error sqrt(1/8 * 7/8 / N)
    assert np.abs(counts / N - 1 / 8).max() < 5 * np.sqrt(7 / 64 / N)


def test_resampled_contexts_are_as_likely_as_each_other_and_never_zero() -> None:
    environment = FigureA.draw(np.random.default_rng(11), zero="resample")
    seen, counts = np.unique(environment.contexts(np.random.default_rng(2), N), axis=0, return_counts=True)
    assert np.array_equal(seen, np.unique(environment.support(), axis=0))
    np.testing.assert_allclose(np.linalg.norm(seen, axis=1), 1.0, rtol=1e-15)
    # each count is binomial(N, 1/7)
    assert np.abs(counts / N - 1 / 7).max() < 5 * np.sqrt(6 / 49 / N)


def test_the_zero_context_costs_an_eighth_of_sigma_min() -> None:
    kept, resampled = (FigureA.draw(np.random.default_rng(1), zero=zero) for zero in ("keep", "resample"))
    assert kept.constants().sigma_min == pytest.approx(3 / 16, rel=1e-12)
    assert resampled.constants().sigma_min == pytest.approx(3 / 14, rel=1e-12)
    assert kept.constants().delta_min == resampled.constants().delta_min


def test_the_noise_constant_is_that_of_the_widest_reward(environment: FigureA) -> None:
    # uniform on [-|mu|, |mu|]: sigma is |mu| / sqrt 3, below Q / sqrt 3 because contexts have length 1 at most
    constants = environment.constants()
    assert constants.sigma == pytest.approx(
        np.abs(environment.means(environment.support())).max() / np.sqrt(3), rel=1e-12
    )
    assert constants.sigma <= constants.Q / np.sqrt(3)


def test_an_environment_of_many_dimensions_is_no_table() -> None:
    environment = FigureA.draw(np.random.default_rng(1), dim=40, zero="resample")
    assert environment.table() is None
    assert environment.contexts(np.random.default_rng(2), 3).shape == (3, 40)
    with pytest.raises(ValueError, match="delta_min"):
        environment.constants()


def test_contexts_are_zero_or_of_length_one(environment: FigureA) -> None:
    norms = np.linalg.norm(environment.support(), axis=1)
    assert norms[0] == 0.0
    np.testing.assert_allclose(norms[1:], 1.0, rtol=1e-15)


def test_second_moment_of_the_contexts_has_the_eigenvalues_of_the_closed_form(environment: FigureA) -> None:
    # E xx' has equal diagonals (1 - 2^-d)/d and equal off-diagonals, and 1'E[xx']1 = E|x|_1^2/|x|_2^2 = d/2
    # so lambda_max = 1/2 and lambda_min = ((1 - 2^-d) - 1/2)/(d - 1) = 3/16 for d = 3
    X = environment.support()
    np.testing.assert_allclose(np.linalg.eigvalsh(X.T @ X / len(X)), [3 / 16, 3 / 16, 1 / 2], rtol=1e-14)


def test_means_are_the_inner_products(environment: FigureA) -> None:
    X = environment.contexts(np.random.default_rng(3), 50)
    expected = [[sum(x * t for x, t in zip(row, theta, strict=True)) for theta in environment.theta] for row in X]
    np.testing.assert_allclose(environment.means(X), expected, rtol=1e-13, atol=1e-15)


def test_rewards_lie_between_zero_and_twice_the_mean_for_either_sign(environment: FigureA) -> None:
    X = environment.contexts(np.random.default_rng(4), 1000)
    rewards, mu = environment.rewards(np.random.default_rng(5), X), environment.means(X)
    assert (mu < 0).any()
    assert (mu > 0).any()
    assert np.all(rewards * np.sign(mu) >= 0)
    assert np.all(np.abs(rewards) <= 2 * np.abs(mu))
    assert not rewards[np.all(X == 0, axis=1)].any()


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_rewards_have_the_mean_and_variance_of_the_uniform(sign: float) -> None:
    environment = FigureA(theta=((sign * 1.5,),))
    u = environment.rewards(np.random.default_rng(6), np.ones((N, 1))) / (sign * 1.5) - 1.0
    # u is uniform on [-1, 1]: E u = 0, E u^2 = 1/3, E u^4 = 1/5
    # standard errors of the first two: sqrt(1/3/N), sqrt((1/5 - 1/9)/N)
    assert abs(u.mean()) < 5 * np.sqrt(1 / 3 / N)
    assert abs(np.square(u).mean() - 1 / 3) < 5 * np.sqrt((1 / 5 - 1 / 9) / N)


def test_arms_are_paid_independently() -> None:
    environment = FigureA(theta=((1.0,), (-2.0,)))
    u, v = environment.rewards(np.random.default_rng(7), np.ones((N, 1))).T
    # the sample correlation of independent columns has standard error 1/sqrt(N)
    assert abs(np.corrcoef(u, v)[0, 1]) < 5 / np.sqrt(N)


def test_the_same_generators_give_the_same_environment_whatever_is_drawn_between(environment: FigureA) -> None:
    whole = environment.contexts(np.random.default_rng(8), 100)
    rng, noise = np.random.default_rng(8), np.random.default_rng(9)
    first = environment.contexts(rng, 40)
    environment.rewards(noise, first)
    assert np.array_equal(np.vstack([first, environment.contexts(rng, 60)]), whole)


def test_arrays_are_what_the_kernel_takes(environment: FigureA) -> None:
    X = environment.contexts(np.random.default_rng(1), 5)
    for array in (X, environment.means(X), environment.rewards(np.random.default_rng(2), X)):
        assert array.dtype == np.float64
        assert array.flags.c_contiguous


@pytest.mark.parametrize("theta", [(), ((),), ((1.0,), (1.0, 2.0)), ((float("nan"),),)])
def test_a_theta_that_is_no_finite_matrix_is_refused(theta: tuple[tuple[float, ...], ...]) -> None:
    with pytest.raises(ValueError, match="theta"):
        FigureA(theta=theta)
