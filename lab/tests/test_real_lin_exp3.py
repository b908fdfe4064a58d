"""RealLinExp3 against its paper, written the long way, and what its estimates promise."""

from __future__ import annotations

import math

import numpy as np
import pytest

import armlet
from armlet.environments import FigureA
from armlet.errors import DecisionError
from armlet.policies.uniform import Uniform
from armlet.simulation.run import simulate
from armlet.types import Coins, Float64, Interaction, Policy
from armlet_lab.literature.real_lin_exp3 import RealLinExp3
from support.contract import check_settings

ALL = np.ones(3, dtype=bool)


def chances(theta: Float64, x: Float64, eta: float, gamma: float) -> Float64:
    weights = [math.exp(eta * float(x @ row)) for row in theta]
    return np.array([(1 - gamma) * w / sum(weights) + gamma / len(weights) for w in weights])


@pytest.mark.parametrize(
    "policy",
    [
        RealLinExp3(horizon=2000),
        RealLinExp3(horizon=2000, eta=0.05, gamma=0.2, ridge=0.01, window=16, reward_scale=3.0),
    ],
    ids=repr,
)
def test_policy_keeps_its_promises(policy: Policy) -> None:
    check_settings(policy, n_arms=4, dim=3)


def test_steps_are_the_paper_s_with_the_last_contexts_for_their_law() -> None:
    eta, gamma, ridge, window = 0.02, 0.1, 0.05, 8
    policy = RealLinExp3(horizon=100, eta=eta, gamma=gamma, ridge=ridge, window=window, reward_scale=2.0)
    state, rng, theta, seen = policy.init(3, 2), np.random.default_rng(0), np.zeros((3, 2)), list[Float64]()
    for t in range(1, 100):
        x = rng.normal(size=2) / 3
        p = chances(theta, x, eta, gamma)
        np.testing.assert_allclose(policy.probabilities(state, t, x, ALL), p, rtol=1e-10)
        c = policy.decide(state, t, x, Coins(float(rng.random()), 0, 0, 0), ALL)
        reward = float(rng.uniform(-2, 2))
        policy.update(state, Interaction(t=t, x=x, arm=c.arm, reward=reward, propensity=c.propensity))
        seen.append(x)
        recent = seen[-window:]
        sigma = sum(chances(theta, z, eta, gamma)[c.arm] * np.outer(z, z) for z in recent) / len(recent)
        theta[c.arm] += np.linalg.inv(sigma + ridge * np.eye(2)) @ x * reward / 2.0
        np.testing.assert_allclose(state["theta"], theta, rtol=1e-8, atol=1e-8)


def test_estimates_are_unbiased_but_for_the_ridge() -> None:
    """Over all contexts of a full window and all arms, theta_hat averages to theta."""
    rng, theta = np.random.default_rng(1), np.array([[0.5, -0.2], [0.1, 0.7], [-0.3, 0.3]])
    X = rng.normal(size=(16, 2)) / 3
    policy = RealLinExp3(horizon=1000, eta=0.01, gamma=0.3, ridge=1e-9, window=16)
    start = policy.init(3, 2)
    start["theta"][:] = rng.normal(size=(3, 2)) * 50  # a policy that prefers some arms
    total = np.zeros((3, 2))
    for first in range(16):
        ready = start.copy()
        for x in np.roll(X, first, axis=0):  # so that the oldest, which the row replaces, is the row's own
            ready.keep(x)
        x = np.roll(X, first, axis=0)[0]
        p = policy.probabilities(ready, 1, x, ALL)
        for arm in range(3):
            state = ready.copy()
            policy.update(state, Interaction(t=1, x=x, arm=arm, reward=float(x @ theta[arm]), propensity=p[arm]))
            total += p[arm] / 16 * (state["theta"] - ready["theta"])
    np.testing.assert_allclose(total, theta, atol=1e-5)


def test_late_rows_are_reweighted_to_the_present_policy() -> None:
    policy = RealLinExp3(horizon=100, eta=0.01, gamma=0.2, ridge=0.1)
    states, x = [policy.init(3, 2) for _ in range(2)], np.array([0.5, 0.2])
    for state, propensity in zip(states, (1 / 3, 1 / 6), strict=True):
        policy.update(state, Interaction(t=1, x=x, arm=1, reward=0.5, propensity=propensity))
    np.testing.assert_allclose(states[1]["theta"], 2 * states[0]["theta"])


def test_no_row_moves_a_log_weight_by_more_than_one() -> None:
    policy, rng = RealLinExp3(horizon=1000), np.random.default_rng(2)
    eta, _ = policy.rates(3, 2)
    state = policy.init(3, 2)
    for t in range(1, 300):
        x, before = rng.normal(size=2) * 10, state["theta"].copy()
        policy.update(state, Interaction(t=t, x=x, arm=int(rng.integers(3)), reward=1e6, propensity=1e-3))
        assert np.abs(eta * (state["theta"] - before) @ x).max() <= 1 + 1e-9
        p = policy.probabilities(state, t, x, ALL)
        assert np.isfinite(p).all()
        assert p.sum() == pytest.approx(1.0, abs=1e-12)


def test_rates_are_the_theorem_s() -> None:
    log_t = math.log(5000)
    assert RealLinExp3(horizon=5000).rates(6, 3) == (
        math.sqrt(math.log(6) / (3 * 6 * 5000 * log_t)),
        math.sqrt(log_t / 5000),
    )
    assert RealLinExp3(horizon=1, gamma=0.5, eta=0.25).rates(6, 3) == (0.25, 0.5)


def test_new_arm_starts_level_with_the_others() -> None:
    policy = RealLinExp3(horizon=100)
    state = policy.init(2, 2)
    state["theta"][:] = 100.0
    state.add_arm()
    np.testing.assert_allclose(policy.probabilities(state, 1, np.ones(2), ALL), [1 / 3] * 3)


def test_wrong_settings_are_named() -> None:
    for name in ("eta", "gamma", "ridge", "reward_scale"):
        with pytest.raises(ValueError, match=f"{name} is -1; give a positive number"):
            RealLinExp3(horizon=100, **{name: -1})
    for name in ("horizon", "window"):
        with pytest.raises(ValueError, match=f"{name} is 0; give a whole number of at least 1"):
            RealLinExp3(**{"horizon": 100, name: 0})
    policy = RealLinExp3(horizon=100)
    with pytest.raises(DecisionError, match="'RealLinExp3' cannot take back"):
        policy.update(policy.init(3, 2), Interaction(t=1, x=np.ones(2), arm=1, reward=0.5, weight=-1.0))


def test_estimates_average_to_theta() -> None:
    environment = FigureA.draw(np.random.default_rng(3))
    bandit = armlet.Bandit(range(6), 3, policy=RealLinExp3(horizon=3000, gamma=1.0, ridge=1e-3, window=200), seed=1)
    X = environment.contexts(np.random.default_rng(4), 3000)
    for x, means in zip(X, environment.means(X), strict=True):
        decision = bandit.decide(x)
        bandit.learn(decision, float(means[int(decision.arm)]))
    error = bandit.policy.estimates(bandit.state) - np.array(environment.theta)
    # one number has variance K E(x'theta)^2 E[xx']^-1 / T, about 6 * 1 * 4 / 3000 = 0.09^2; twice that is far out
    # for the root mean square of 18 of them
    assert np.sqrt((error**2).mean()) < 0.18


def test_it_beats_uniform_play() -> None:
    environment = FigureA.draw(np.random.default_rng(3))
    regrets = []
    for policy in (Uniform(), RealLinExp3(horizon=2000, eta=0.02, reward_scale=2.0)):
        result = simulate(environment, policy, horizon=2000, runs=4, seed=1, method="python", engine="serial")
        regrets.append(float(result.regret[:, -1].mean()))
    assert regrets[1] < 0.4 * regrets[0]
