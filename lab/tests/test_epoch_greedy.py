"""Epoch-greedy: its epochs, its three oracles, and what it learns from."""

from __future__ import annotations

import math
from itertools import count, product

import numpy as np
import pytest

from armlet import Bandit
from armlet.environments import FigureA
from armlet.errors import MergeError
from armlet.policies import Uniform
from armlet.simulation.run import simulate
from armlet.types import Float64, Policy
from armlet_lab.literature.epoch_greedy import EpochGreedy, Lengths, opens_epoch
from support.contract import check_settings

SETTINGS = [
    EpochGreedy(),
    EpochGreedy(gap=0.5, c=1.0, cap=50),
    EpochGreedy(oracle="tabular"),
    EpochGreedy(oracle="finite"),
    EpochGreedy(oracle="finite", n_policies=20, seed=3, log_class=1.0),
]


@pytest.mark.parametrize("policy", SETTINGS, ids=repr)
def test_policy_keeps_its_promises(policy: Policy) -> None:
    check_settings(policy, n_arms=4, dim=3)


# ---- epochs


def walk(policy: EpochGreedy, n_arms: int, log_class: float, steps: int) -> list[bool]:
    """Write the epochs down one by one, from the formulas."""
    out: list[bool] = []
    for epoch in count(1):
        if policy.gap is None:
            s = math.floor(policy.c * math.sqrt(epoch / (n_arms * log_class)))
        else:
            s = math.floor(math.exp(min(policy.c * epoch * policy.gap**2 / n_arms, 30.0)))
        out += [True] + [False] * min(policy.cap, max(1, s))
        if len(out) >= steps:
            break
    return out[:steps]


@pytest.mark.parametrize(
    ("policy", "log_class"),
    [
        (EpochGreedy(), 12.0),
        (EpochGreedy(c=1.0), 12.0),
        (EpochGreedy(c=3.3, log_class=2.5), 2.5),
        (EpochGreedy(c=100.0, cap=40), 12.0),
        (EpochGreedy(cap=1), 12.0),
        (EpochGreedy(oracle="finite", n_policies=50), math.log(50)),
        (EpochGreedy(gap=0.3, c=1.0), 0.0),
        (EpochGreedy(gap=0.3, c=2.0, cap=25), 0.0),
        (EpochGreedy(gap=5.0, c=1.0), 0.0),
    ],
    ids=repr,
)
def test_epochs_are_those_of_walking_there(policy: EpochGreedy, log_class: float) -> None:
    steps = 4000
    found = [policy.explores(t, n_arms=4, dim=3) for t in range(1, steps + 1)]
    assert found == walk(policy, 4, log_class, steps)


@pytest.mark.parametrize("policy", [EpochGreedy(), EpochGreedy(gap=0.1, c=1.0)], ids=repr)
def test_epochs_far_away_are_those_of_adding_up(policy: EpochGreedy) -> None:
    epochs = np.arange(1, 300_000)
    if policy.gap is None:
        sizes = np.floor(policy.c * np.sqrt(epochs / (6 * 18)))
    else:
        sizes = np.floor(np.exp(np.minimum(policy.c * epochs * policy.gap**2 / 6, math.log(policy.cap))).round(6))
    opened = 1 + np.cumsum(1 + np.clip(sizes, 1, policy.cap)).astype(np.int64)
    lengths, last = policy.lengths(6, 3), opened[opened < 10**8][-50:].tolist()
    assert last[-1] > 9 * 10**7
    assert all(opens_epoch(t, lengths) for t in last)
    assert not any(opens_epoch(t - 1, lengths) or opens_epoch(t + 1, lengths) for t in last)


def test_epochs_without_a_gap_explore_of_order_t_to_two_thirds() -> None:
    lengths = EpochGreedy(c=30.0).lengths(6, 3)
    few, many = (sum(opens_epoch(t, lengths) for t in range(1, T + 1)) for T in (8000, 64000))
    assert many / few == pytest.approx(8 ** (2 / 3), rel=0.1)


def test_epochs_with_a_gap_explore_of_order_log_t() -> None:
    lengths = Lengths("exponential", 1.0, 2.0, 10**9)
    explored = [sum(opens_epoch(t, lengths) for t in range(1, T + 1)) for T in (1000, 10**4, 10**5)]
    steps = np.diff(explored)  # ten times longer epochs take 2 log(10) = 4.6 of them
    assert ((steps >= 4) & (steps <= 5)).all()


# ---- oracles


def played(
    policy: EpochGreedy, X: Float64, n_arms: int, rng: np.random.Generator
) -> tuple[Bandit, list[tuple[int, int, float]]]:
    """Play and keep (row of X, arm, reward) of the explored steps."""
    bandit, log = Bandit(range(n_arms), X.shape[1], policy=policy, seed=3), []
    for _ in range(150):
        row = int(rng.integers(len(X)))
        decision = bandit.decide(X[row])
        reward = float(rng.random() * (1 + (int(decision.arm) + row) % n_arms))
        bandit.learn(decision, reward)
        if decision.explored:
            assert decision.propensity == 1 / n_arms
            log.append((row, int(decision.arm), reward))
    return bandit, log


def greedy_chances(bandit: Bandit, x: Float64) -> Float64:
    policy = bandit.policy
    assert isinstance(policy, EpochGreedy)
    arms = len(bandit.arms)
    t = next(t for t in count(1) if not policy.explores(t, n_arms=arms, dim=bandit.settings.dim))
    return np.asarray(policy.probabilities(bandit.state, t, x, np.ones(arms, dtype=np.bool_)), dtype=np.float64)


def test_tabular_is_the_best_of_all_maps() -> None:
    X, n_arms = np.array([[0.0], [1.0], [2.0], [3.0]]), 3
    bandit, log = played(EpochGreedy(oracle="tabular"), X, n_arms, np.random.default_rng(1))
    value = {
        chosen: sum(n_arms * reward for row, arm, reward in log if chosen[row] == arm)
        for chosen in product(range(n_arms), repeat=len(X))
    }
    best = max(value, key=lambda chosen: value[chosen])
    assert [int(greedy_chances(bandit, x).argmax()) for x in X] == list(best)
    assert greedy_chances(bandit, np.array([9.0])).tolist() == [1 / 3] * 3  # a context never met: any arm


def test_finite_is_the_best_of_its_policies() -> None:
    X, n_arms = np.random.default_rng(5).normal(size=(30, 2)), 3
    policy = EpochGreedy(oracle="finite", n_policies=40, seed=7)
    bandit, log = played(policy, X, n_arms, np.random.default_rng(1))
    policies = np.stack([np.random.default_rng([7, arm]).standard_normal((40, 2)) for arm in range(n_arms)], axis=1)
    values = [sum(n_arms * r for row, arm, r in log if int(np.argmax(own @ X[row])) == arm) for own in policies]
    np.testing.assert_allclose(bandit.state["value"], values, rtol=1e-12)
    best = policies[int(np.argmax(values))]
    for x in X:
        assert greedy_chances(bandit, x)[int(np.argmax(best @ x))] == 1.0


def test_ridge_is_the_regression_of_explored_steps() -> None:
    X, n_arms = np.random.default_rng(5).normal(size=(30, 2)), 3
    bandit, log = played(EpochGreedy(ridge=0.5), X, n_arms, np.random.default_rng(1))
    for arm in range(n_arms):
        rows = np.array([X[row] for row, a, _ in log if a == arm])
        rewards = np.array([reward for _, a, reward in log if a == arm])
        theta = np.linalg.solve(rows.T @ rows + 0.5 * np.eye(2), rows.T @ rewards)
        np.testing.assert_allclose(bandit.policy.estimates(bandit.state)[arm], theta, rtol=1e-9)


@pytest.mark.parametrize("oracle", ["ridge", "tabular", "finite"])
def test_greedy_steps_leave_the_state_unchanged(oracle: str) -> None:
    bandit = Bandit(range(2), 1, policy=EpochGreedy(oracle=oracle), seed=1)  # type: ignore[arg-type]
    for _ in range(60):
        decision = bandit.decide([1.0])
        before = bandit.state.arrays()
        bandit.learn(decision, 1.0)
        if not decision.explored:
            after = bandit.state.arrays()
            assert all(np.array_equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("oracle", ["tabular", "finite"])
def test_a_corrected_reward_is_as_if_it_had_been_right(oracle: str) -> None:
    one, other = (Bandit(range(2), 1, policy=EpochGreedy(oracle=oracle), seed=1) for _ in range(2))  # type: ignore[arg-type]
    wrong, right = one.decide([1.0]), other.decide([1.0])
    one.learn(wrong, 5.0)
    one.correct(wrong, 5.0, 2.0)
    other.learn(right, 2.0)
    np.testing.assert_allclose(one.state.arrays()["value"], other.state.arrays()["value"], rtol=1e-15)


def test_rarely_eligible_arms_are_not_held_against_a_policy() -> None:
    """A step among two arms counts half of one among four: r / propensity, not K r."""
    policy, x = EpochGreedy(oracle="tabular", cap=1), [1.0]
    bandit = Bandit(range(4), 1, policy=policy, seed=1)
    first = bandit.decide(x)
    bandit.learn(first, 1.0)
    bandit.decide(x)
    second = bandit.decide(x, eligible=[0, 1])
    bandit.learn(second, 1.0)
    values = np.zeros(4)
    values[int(first.arm)] += 4.0
    values[int(second.arm)] += 2.0
    assert bandit.state.read("value", np.array(x)).tolist() == values.tolist()


def test_a_finite_class_is_for_a_fixed_set_of_arms() -> None:
    bandit = Bandit(range(3), 1, policy=EpochGreedy(oracle="finite"), seed=1)
    with pytest.raises(ValueError, match="policies are for a fixed set of arms; start with all of them"):
        bandit.add_arm(3)
    with pytest.raises(ValueError, match="policies are for a fixed set of arms; retire arm 1 instead"):
        bandit.remove_arm(1)
    bandit.retire_arm(1)
    assert {int(bandit.decide([1.0]).arm) for _ in range(50)} == {0, 2}


def test_finite_classes_merge_only_if_their_arms_are_in_the_same_order() -> None:
    one, other = (Bandit(arms, 1, policy=EpochGreedy(oracle="finite"), seed=1) for arms in ([0, 1], [1, 0]))
    with pytest.raises(MergeError, match="the arms are in another order there"):
        one.merge(other)


@pytest.mark.parametrize("oracle", ["tabular", "finite"])
def test_oracles_without_estimates_say_so(oracle: str) -> None:
    bandit = Bandit(range(3), 1, policy=EpochGreedy(oracle=oracle), seed=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="keeps no linear estimates; ask predict_proba"):
        bandit.predict([[1.0]])


# ---- settings and regret


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"oracle": "magic"}, "oracle is 'magic'; choose 'ridge', 'tabular' or 'finite'"),
        ({"c": 0.0}, "c is 0.0; give a number from 0.001 to 1e"),
        ({"c": None}, "c is None; give a number from 0.001 to 1e"),
        ({"gap": -0.1}, "gap is -0.1; give a number from 0.001 to 1e"),
        ({"log_class": 0.0}, "log_class is 0.0; give a number"),
        ({"cap": 0}, "cap is 0; give a whole number of at least 1"),
        ({"n_policies": 1}, "n_policies is 1; give a whole number of at least 2"),
        ({"seed": -1}, "seed is -1; give a whole number of at least 0"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EpochGreedy(**settings)  # type: ignore[arg-type]


def regret(policy: Policy) -> float:
    environment = FigureA.draw(np.random.default_rng(3))
    result = simulate(environment, policy, horizon=2000, runs=4, seed=1, method="python", engine="serial")
    return float(result.at(2000).mean())


@pytest.fixture(scope="module")
def uniform() -> float:
    return regret(Uniform())


@pytest.mark.parametrize(
    ("policy", "share"),
    [
        (EpochGreedy(), 0.25),
        (EpochGreedy(c=1.0), 0.6),  # explores every other step for 864 steps
        (EpochGreedy(oracle="tabular"), 0.5),
        (EpochGreedy(oracle="finite", n_policies=500), 0.6),
    ],
    ids=repr,
)
def test_beats_uniform_play(policy: Policy, share: float, uniform: float) -> None:
    assert regret(policy) < share * uniform
