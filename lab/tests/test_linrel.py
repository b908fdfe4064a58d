"""LinRel against Auer's own words: the eigenvectors, the weights of single rewards, the two parts of the width."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armlet import Bandit, Uniform
from armlet.environments import FigureA
from armlet.simulation.run import simulate
from armlet.types import Float64, Interaction
from armlet_lab.literature.linrel import LinRel
from support.contract import check_settings
from support.examples import scaled


def learned(policy: LinRel, n_arms: int, X: Float64, arms: list[int], rewards: Float64) -> object:
    state = policy.init(n_arms, X.shape[1])
    for t, (x, arm, reward) in enumerate(zip(X, arms, rewards, strict=True), start=1):
        policy.update(state, Interaction(t=t, x=x, arm=arm, reward=float(reward)))
    return state


def written_out(Z: Float64, rewards: Float64, z: Float64, T: int, K: int, delta: float) -> tuple[float, float]:
    """Estimate and width as printed: Z has a column for every kept row, and a weighs their rewards."""
    values, vectors = np.linalg.eig(Z @ Z.T)
    weights, known = np.zeros(Z.shape[1]), np.zeros(len(z))
    for value, vector in zip(values.real, vectors.real.T, strict=True):
        if value >= 1:
            along = float(vector @ z)
            weights += along / value * (vector @ Z)
            known += along * vector
    width = np.linalg.norm(weights) * math.sqrt(math.log(2 * T * K / delta)) + np.linalg.norm(z - known)
    return float(weights @ rewards), float(width)


@pytest.mark.parametrize(
    "policy",
    [LinRel(horizon=1000), LinRel(horizon=1, delta=0.5, noise_scale=0.1, width_scale=0.3)],
    ids=repr,
)
def test_linrel_keeps_the_contract(policy: LinRel) -> None:
    check_settings(policy, n_arms=4, dim=3)


@settings(max_examples=scaled(60))
@given(st.integers(0, 2**32 - 1), st.integers(0, 25))
def test_sums_give_what_the_rows_themselves_give(seed: int, n: int) -> None:
    rng, T, K, d, delta = np.random.default_rng(seed), 500, 3, 3, 0.1
    X = rng.normal(size=(n, d)) * rng.choice([0.2, 1.0])  # few directions are known, or most
    arms, rewards = rng.integers(K, size=n).tolist(), rng.normal(size=n)
    policy, x = LinRel(horizon=T, delta=delta, noise_scale=math.sqrt(0.5)), rng.normal(size=d)
    state = learned(policy, K, X, arms, rewards)
    estimates, widths = policy.bounds(state, x)  # type: ignore[arg-type]
    for arm in range(K):
        mine = np.array(arms, dtype=int) == arm
        expected = written_out(X[mine].T, rewards[mine], x, T, K, delta)
        np.testing.assert_allclose((estimates[arm], widths[arm]), expected, rtol=1e-7, atol=1e-9)


def test_the_settings_scale_the_parts_of_the_width() -> None:
    X, x = np.array([[2.0, 0.0]]), np.array([1.0, 3.0])
    policy = LinRel(horizon=100, delta=0.1, noise_scale=0.4, theta_norm=5.0, width_scale=0.5)
    state = learned(policy, 1, X, [0], np.array([1.0]))
    noise = 0.4 * math.sqrt(2 * math.log(2 * 100 * 1 / 0.1)) * (1 / 2)  # |a| = |x_1| / sqrt(4)
    _, widths = policy.bounds(state, x)  # type: ignore[arg-type]
    np.testing.assert_allclose(widths, [0.5 * (noise + 5.0 * 3.0)])


def test_an_eigenvalue_of_one_counts_whatever_rounding_makes_of_it() -> None:
    policy = LinRel(horizon=100)
    for angle in np.linspace(0, math.pi, 50):
        x = np.array([math.cos(angle), math.sin(angle)])
        state = learned(policy, 1, x[None], [0], np.array([0.7]))
        np.testing.assert_allclose(policy.estimates(state)[0], 0.7 * x, atol=1e-12)  # type: ignore[arg-type]


def test_the_threshold_depends_on_the_scale_of_contexts() -> None:
    """A thousand short contexts teach it nothing: the reason to normalise them."""
    policy, X = LinRel(horizon=1000), np.full((1000, 1), 0.03)
    short, long = (learned(policy, 1, scale * X, [0] * 1000, np.ones(1000)) for scale in (1, 2))
    assert policy.estimates(short)[0, 0] == 0.0  # type: ignore[arg-type]
    assert policy.estimates(long)[0, 0] == pytest.approx(1 / 0.06)  # type: ignore[arg-type]


def test_a_row_that_was_taken_back_leaves_its_direction_unknown() -> None:
    policy = LinRel(horizon=100)
    bandit = Bandit(range(2), 2, policy=policy, seed=1)
    decision = bandit.decide([0.6, 0.8])
    bandit.learn(decision, 1.0)
    assert policy.estimates(bandit.state).any()
    bandit.forget(decision, 1.0)
    assert not policy.estimates(bandit.state).any()


def test_linrel_beats_uniform_play() -> None:
    environment = FigureA.draw(np.random.default_rng(3))
    regrets = [
        simulate(environment, policy, horizon=2000, runs=4, seed=1, method="python", engine="serial").at(2000).mean()
        for policy in (LinRel(horizon=2000, width_scale=0.5), Uniform())
    ]
    assert regrets[0] < regrets[1] / 4


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"horizon": 0}, "horizon is 0; give a whole number of at least 1"),
        ({"horizon": 2.5}, "horizon is 2.5; give a whole number"),
        ({"delta": 0.0}, "delta is 0.0; give a chance of failure between 0 and 1"),
        ({"delta": 1}, "delta is 1; give a chance"),
        ({"noise_scale": -1.0}, "noise_scale is -1.0; give a positive number"),
        ({"theta_norm": float("nan")}, "theta_norm is nan; give a positive number"),
        ({"width_scale": "wide"}, "width_scale is 'wide'; give a positive number"),
    ],
)
def test_wrong_settings_are_named(given: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LinRel(**{"horizon": 10, **given})  # type: ignore[arg-type]
