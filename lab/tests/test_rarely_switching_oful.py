"""RarelySwitchingOFUL: OFUL's formula where C is 0, few refreshes where it is not, and nothing moves in between."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armlet import Bandit, Uniform
from armlet.environments import FigureA
from armlet.errors import DecisionError, MergeError
from armlet.simulation.run import simulate
from armlet.types import Coins, Float64, Interaction
from armlet_lab.literature.rarely_switching_oful import FrozenSums, RarelySwitchingOFUL
from support.contract import check_settings
from support.examples import scaled

K, D = 4, 3
ALL = np.ones(K, dtype=np.bool_)
Rows = list[tuple[Float64, float]]  # of one arm


def oful(rows: Rows, x: Float64, R: float, S: float, ridge: float, delta: float) -> float:
    """One arm's bound, from its rows: the formula written out, with the determinant itself."""
    V, b = ridge * np.eye(D), np.zeros(D)
    for row, reward in rows:
        V, b = V + np.outer(row, row), b + reward * row
    beta = (
        R * math.sqrt(2 * math.log(math.sqrt(np.linalg.det(V)) * ridge ** (-D / 2) * K / delta)) + math.sqrt(ridge) * S
    )
    return float(x @ np.linalg.solve(V, b) + beta * math.sqrt(x @ np.linalg.solve(V, x)))


def unit_rows(rng: np.random.Generator, n: int) -> Float64:
    X = rng.normal(size=(n, D))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X


def learn(policy: RarelySwitchingOFUL, state: FrozenSums, arm: int, x: Float64, reward: float) -> None:
    policy.update(state, Interaction(t=1, x=x, arm=arm, reward=reward))


@pytest.mark.parametrize(
    "policy",
    [RarelySwitchingOFUL(growth=0), RarelySwitchingOFUL(growth=9.0, ridge=0.1, width_scale=0.2)],
    ids=repr,
)
def test_rarely_switching_oful_keeps_the_contract(policy: RarelySwitchingOFUL) -> None:
    check_settings(policy, n_arms=K, dim=D)


@pytest.mark.parametrize("growth", [0.0, 1e-9])
def test_without_growth_the_decisions_are_those_of_oful(growth: float) -> None:
    policy = RarelySwitchingOFUL(growth=growth, delta=0.1, noise_scale=0.3, theta_norm=2.0, ridge=0.5)
    state, rng = policy.init(K, D), np.random.default_rng(4)
    theta, rows = rng.normal(size=(K, D)), [Rows() for _ in range(K)]
    for t, x in enumerate(unit_rows(rng, 300), start=1):
        scores = [oful(rows[arm], x, R=0.3, S=2.0, ridge=0.5, delta=0.1) for arm in range(K)]
        choice = policy.decide(state, t, x, Coins(0.5, 0, t << 50, 0), ALL)
        assert scores[choice.arm] >= max(scores) - 1e-9
        reward = float(x @ theta[choice.arm] + 0.3 * rng.normal())
        rows[choice.arm].append((x, reward))
        learn(policy, state, choice.arm, x, reward)


@settings(max_examples=scaled(10))
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.1, 1.0, 5.0]), st.sampled_from([0.1, 1.0]))
def test_scores_are_those_of_oful_at_the_last_refresh(seed: int, growth: float, ridge: float) -> None:
    policy = RarelySwitchingOFUL(growth=growth, ridge=ridge, noise_scale=0.7)
    state, rng = policy.init(K, D), np.random.default_rng(seed)
    rows, frozen = [Rows() for _ in range(K)], [Rows() for _ in range(K)]
    dets = [ridge**D] * K
    for x in unit_rows(rng, 40) * rng.uniform(0.1, 1.0, size=(40, 1)):
        arm, reward = int(rng.integers(K)), float(rng.normal())
        rows[arm].append((x, reward))
        learn(policy, state, arm, x, reward)
        det = float(np.linalg.det(ridge * np.eye(D) + sum(np.outer(row, row) for row, _ in rows[arm])))
        if det > (1 + growth) * dets[arm]:
            frozen[arm], dets[arm] = list(rows[arm]), det
        x = rng.normal(size=D)
        expected = [oful(frozen[a], x, R=0.7, S=1.0, ridge=ridge, delta=0.05) for a in range(K)]
        np.testing.assert_allclose(policy._scores(state, x), expected, rtol=1e-8)


@settings(max_examples=scaled(15))
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.05, 1.0, 4.0]), st.sampled_from([0.01, 1.0]))
def test_refreshes_are_few(seed: int, growth: float, ridge: float) -> None:
    policy = RarelySwitchingOFUL(growth=growth, ridge=ridge)
    state, rng = policy.init(1, D), np.random.default_rng(seed)
    for t, x in enumerate(unit_rows(rng, 150), start=1):
        learn(policy, state, 0, x, 0.0)
        assert state["refreshes"][0] <= D * math.log(1 + t / (ridge * D)) / math.log(1 + growth)


def test_between_refreshes_nothing_that_decisions_see_moves() -> None:
    policy, rng = RarelySwitchingOFUL(growth=3.0), np.random.default_rng(1)
    state, x, still = policy.init(1, D), np.ones(D), 0
    for row in unit_rows(rng, 200):
        seen, refreshes, b = policy._scores(state, x), state["refreshes"][0], state["b"].copy()
        learn(policy, state, 0, row, 1.0)
        assert not np.array_equal(b, state["b"])  # the sums go on
        if state["refreshes"][0] == refreshes:
            assert np.array_equal(policy._scores(state, x), seen)
            still += 1
    assert still > 180


def test_a_determinant_that_has_grown_exactly_enough_is_not_refreshed_by_rounding() -> None:
    policy = RarelySwitchingOFUL(growth=1.0, ridge=1.0)
    for x in unit_rows(np.random.default_rng(2), 50):  # det (I + x x') = 2
        state = policy.init(1, D)
        learn(policy, state, 0, x, 1.0)
        assert state["refreshes"][0] == 0


def test_estimates_are_those_in_use() -> None:
    policy = RarelySwitchingOFUL(growth=1.0)
    state = policy.init(1, 1)
    for reward in (1.0, 1.0, 7.0):  # det V goes 1, 2, 3, 4: refreshed at 3, and not at 4
        learn(policy, state, 0, np.ones(1), reward)
    assert policy.estimates(state)[0, 0] == pytest.approx(2 / 3)


def test_long_runs_do_not_overflow_the_determinant() -> None:
    policy = RarelySwitchingOFUL()
    state = policy.init(1, 60)
    policy.update(state, Interaction(t=1, x=np.full(60, 1e6), arm=0, reward=1.0))
    state["A"][0] += 1e14 * np.eye(60)  # det V would be 10^840
    policy.update(state, Interaction(t=2, x=np.ones(60), arm=0, reward=1.0))
    assert np.isfinite(policy.radii(state)).all()
    assert state["refreshes"][0] == 2


def test_a_new_arm_starts_unknown_and_the_others_stay_frozen() -> None:
    policy, rng = RarelySwitchingOFUL(growth=1.0), np.random.default_rng(1)
    bandit = Bandit(range(2), D, policy=policy, seed=1)
    for x in unit_rows(rng, 50):
        bandit.learn(bandit.decide(x), float(rng.normal()))
    before = policy.estimates(bandit.state)
    bandit.add_arm(2)
    np.testing.assert_allclose(policy.estimates(bandit.state), [*before, np.zeros(D)])
    assert policy.radii(bandit.state)[2] == pytest.approx(math.sqrt(2 * math.log(3 / 0.05)) + 1)


def test_what_depends_on_the_order_of_rows_is_not_taken_back_or_merged() -> None:
    bandits = [Bandit(range(2), 1, policy=RarelySwitchingOFUL(), seed=seed) for seed in (1, 2)]
    decision = bandits[0].decide([1.0])
    bandits[0].learn(decision, 1.0)
    with pytest.raises(DecisionError, match="'RarelySwitchingOFUL' cannot take back"):
        bandits[0].forget(decision, 1.0)
    with pytest.raises(MergeError):
        bandits[0].merge(bandits[1])


def test_rarely_switching_oful_beats_uniform_play() -> None:
    environment = FigureA.draw(np.random.default_rng(3))
    regrets = [
        simulate(environment, policy, horizon=2000, runs=4, seed=1, method="python", engine="serial").at(2000).mean()
        for policy in (RarelySwitchingOFUL(), Uniform())
    ]
    assert regrets[0] < regrets[1] / 4


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"growth": -0.5}, "growth is -0.5; give a number from 0 to 1e\\+40"),
        ({"growth": math.inf}, "growth is inf; give a number from 0 to 1e\\+40"),
        ({"delta": "5%"}, "delta is '5%'; give a chance of failure between 0 and 1"),
        ({"ridge": 0}, "ridge is 0; give a positive number"),
        ({"theta_norm": 0.0}, "theta_norm is 0.0; give a positive number"),
    ],
)
def test_wrong_settings_are_named(given: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RarelySwitchingOFUL(**given)  # type: ignore[arg-type]
