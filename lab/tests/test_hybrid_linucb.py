"""HybridLinUCB against ridge regression on the stacked design, and against the recursion of the paper."""

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
from armlet_lab.literature.derived import Derived
from armlet_lab.literature.hybrid_linucb import HybridLinUCB
from support.contract import check_settings
from support.examples import scaled

Rows = list[tuple[int, Float64, float]]


def drawn(seed: int, n: int, K: int, d: int) -> Rows:
    rng = np.random.default_rng(seed)
    return [(int(rng.integers(K)), rng.normal(size=d), float(rng.normal())) for _ in range(n)]


def learned(policy: HybridLinUCB, K: int, d: int, rows: Rows) -> Derived:
    state = policy.init(K, d)
    for t, (arm, x, reward) in enumerate(rows, start=1):
        policy.update(state, Interaction(t=t, x=x, arm=arm, reward=reward))
    return state


def stacked(x: Float64, arm: int, K: int) -> Float64:
    return np.concatenate([x, np.kron(np.eye(K)[arm], x)])


class Printed:
    """Algorithm 2 line by line, with z = x."""

    def __init__(self, K: int, d: int) -> None:
        self.A0, self.b0 = np.eye(d), np.zeros(d)
        self.A, self.B, self.b = (np.array([np.eye(d)] * K), np.zeros((K, d, d)), np.zeros((K, d)))

    def score(self, a: int, x: Float64) -> tuple[float, float]:
        inv0, inv, B, z = np.linalg.inv(self.A0), np.linalg.inv(self.A[a]), self.B[a], x
        beta = inv0 @ self.b0
        theta = inv @ (self.b[a] - B @ beta)
        s = z @ inv0 @ z - 2 * z @ inv0 @ B.T @ inv @ x + x @ inv @ x + x @ inv @ B @ inv0 @ B.T @ inv @ x
        return float(z @ beta + x @ theta), float(s)

    def learn(self, a: int, x: Float64, reward: float) -> None:
        inv, z = np.linalg.inv(self.A[a]), x
        self.A0 += self.B[a].T @ inv @ self.B[a]
        self.b0 += self.B[a].T @ inv @ self.b[a]
        self.A[a] += np.outer(x, x)
        self.B[a] += np.outer(x, z)
        self.b[a] += reward * x
        inv = np.linalg.inv(self.A[a])
        self.A0 += np.outer(z, z) - self.B[a].T @ inv @ self.B[a]
        self.b0 += reward * z - self.B[a].T @ inv @ self.b[a]


@pytest.mark.parametrize("policy", [HybridLinUCB(), HybridLinUCB(alpha=0.3, ridge=0.01)])
def test_hybrid_linucb_keeps_the_contract(policy: HybridLinUCB) -> None:
    check_settings(policy, n_arms=4, dim=3)


@settings(max_examples=scaled(60))
@given(st.integers(0, 2**32 - 1), st.integers(0, 20), st.integers(1, 4), st.sampled_from([0.1, 1.0, 4.0]))
def test_it_is_ridge_regression_on_the_stacked_design(seed: int, n: int, K: int, ridge: float) -> None:
    rows, d = drawn(seed, n, K, 3), 3
    policy = HybridLinUCB(alpha=1.0, ridge=ridge)
    V, b = ridge * np.eye(d * (K + 1)), np.zeros(d * (K + 1))
    for arm, x, reward in rows:
        phi = stacked(x, arm, K)
        V, b = V + np.outer(phi, phi), b + reward * phi
    x, state = np.random.default_rng(seed).normal(size=d), learned(policy, K, d, rows)
    estimates, widths = policy.bounds(state, x)
    for arm in range(K):
        phi = stacked(x, arm, K)
        np.testing.assert_allclose(estimates[arm], phi @ np.linalg.solve(V, b), rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(widths[arm], math.sqrt(phi @ np.linalg.solve(V, phi)), rtol=1e-8)
    np.testing.assert_allclose(policy.estimates(state) @ x, estimates, rtol=1e-8, atol=1e-9)


def test_it_is_the_recursion_of_the_paper() -> None:
    K, d, policy = 4, 3, HybridLinUCB(alpha=1.0)
    printed, state = Printed(K, d), policy.init(K, d)
    for t, (arm, x, reward) in enumerate(drawn(5, 300, K, d), start=1):
        expected = np.array([printed.score(a, x) for a in range(K)])
        estimates, widths = policy.bounds(state, x)
        np.testing.assert_allclose(estimates, expected[:, 0], rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(widths**2, expected[:, 1], rtol=1e-8)
        printed.learn(arm, x, reward)
        policy.update(state, Interaction(t=t, x=x, arm=arm, reward=reward))


def test_alpha_is_the_printed_one_unless_given() -> None:
    assert HybridLinUCB(delta=0.05).width_factor() == pytest.approx(1 + math.sqrt(math.log(40) / 2))
    assert HybridLinUCB(alpha=0.25).width_factor() == 0.25


def test_an_arm_that_was_never_played_is_worth_what_arms_have_in_common() -> None:
    rng, theta = np.random.default_rng(1), np.array([1.0, -2.0])
    rows = [(arm, x, float(x @ theta)) for arm in range(9) for x in rng.normal(size=(200, 2))]
    estimate = HybridLinUCB().estimates(learned(HybridLinUCB(), 10, 2, rows))[9]
    np.testing.assert_allclose(estimate, 0.9 * theta, atol=0.01)  # beta is K / (K + 1) of it, K arms played


def test_large_sums_leave_widths_real_and_right() -> None:
    """Where the recursion would subtract numbers of 10^12, nothing is subtracted."""
    rows = [(arm, 1e6 * x, 1.0) for arm, x, _ in drawn(3, 200, 3, 3)]
    policy = HybridLinUCB(alpha=1.0)
    state, x = learned(policy, 3, 3, rows), np.ones(3)
    _, widths = policy.bounds(state, x)
    own = [math.sqrt(x @ np.linalg.solve(np.eye(3) + state.A[arm], x)) for arm in range(3)]
    np.testing.assert_allclose(widths, own, rtol=1e-6)  # so well known that sharing adds nothing


def test_a_tiny_ridge_leaves_widths_real() -> None:
    """V has eigenvalues of 10^-10 and 10^8: from an inverse, x'W x along the seen direction would be mere rounding."""
    policy, x = HybridLinUCB(alpha=1.0, ridge=1e-10), np.array([0.6, 0.8])
    state = learned(policy, 2, 2, [(0, 1e4 * x, 1.0)])
    _, widths = policy.bounds(state, x)
    assert widths[0] == pytest.approx(1e-4, rel=1e-2)
    assert widths[1] == pytest.approx(math.sqrt(1.5e10), rel=1e-2)  # 1 / ridge of its own, half of that for beta


def test_rows_can_be_taken_back_and_corrected() -> None:
    policy = HybridLinUCB()
    rows = drawn(2, 30, 3, 2)
    state = learned(policy, 3, 2, rows)
    arm, x, reward = rows[7]
    policy.update(state, Interaction(t=8, x=x, arm=arm, reward=reward, weight=-1.0))
    arm, x, old = rows[9]
    policy.update(state, Interaction(t=10, x=x, arm=arm, reward=5.0, replaces=old))
    expected = learned(policy, 3, 2, [*rows[:7], *rows[8:9], (arm, x, 5.0), *rows[10:]])
    np.testing.assert_allclose(policy.estimates(state), policy.estimates(expected), atol=1e-12)


def test_states_of_two_bandits_add_up() -> None:
    bandits = [Bandit(range(3), 2, policy=HybridLinUCB(), seed=seed) for seed in (1, 2)]
    for bandit, seed in zip(bandits, (3, 4), strict=True):
        for _, x, reward in drawn(seed, 40, 3, 2):
            bandit.learn(bandit.decide(x), reward)
    total = sum(bandit.state.A for bandit in bandits)
    bandits[0].merge(bandits[1])
    np.testing.assert_allclose(bandits[0].state.A, total)


def test_hybrid_linucb_beats_uniform_play() -> None:
    environment = FigureA.draw(np.random.default_rng(3))
    regrets = [
        simulate(environment, policy, horizon=2000, runs=4, seed=1, method="python", engine="serial").at(2000).mean()
        for policy in (HybridLinUCB(), Uniform())
    ]
    assert regrets[0] < regrets[1] / 4


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"alpha": 0}, "alpha is 0; give a positive number"),
        ({"delta": 2.0}, "delta is 2.0; give a chance of failure between 0 and 1"),
        ({"ridge": 0.0}, "ridge is 0.0; give a positive number"),
        ({"ridge": "paper"}, "ridge is 'paper'; give a positive number"),
    ],
)
def test_wrong_settings_are_named(given: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        HybridLinUCB(**given)  # type: ignore[arg-type]
