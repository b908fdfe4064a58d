"""Several outcomes: exactness, the dial, parts that come apart, known prices, and every way in which state moves."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import armlet
from armlet import Bandit
from armlet.errors import DecisionError, InvalidTypeError, InvalidValueError, MergeError
from armlet.inputs.settings import Ridge
from armlet.reference.outcomes import outcome_estimates, residual_products

ARMS = ["small", "medium", "large"]
WEIGHTS = {"quality": 1.0, "cost": -40.0, "delay": -0.1}
POLICIES = [
    armlet.OccasionalOptimism(),
    armlet.OccasionalOptimism(units="as given"),
    armlet.LinUCB(),
    armlet.LinUCB(units="as given"),
    armlet.ThompsonSampling(),
    armlet.Greedy(),
    armlet.Algorithm1(p=30),
    armlet.ContextualEpsilonGreedy(p=30),
]


def make(policy: Any = None, *, weights: Any = None, dim: int = 3, seed: int = 1, **more: Any) -> Bandit:
    return Bandit(ARMS, dim, policy=policy, outcomes=weights or WEIGHTS, seed=seed, **more)


def rows(n: int, dim: int = 3, seed: int = 0) -> tuple[Any, list[str], dict[str, Any]]:
    rng = np.random.default_rng(seed)
    X, played = rng.standard_normal((n, dim)), rng.integers(3, size=n)
    noise = rng.standard_normal(n)
    quality = X[:, 0] * played + noise
    cost = 0.01 * played + 0.002 * np.abs(noise) + 0.001 * rng.random(n)
    delay = 5000.0 + 300.0 * X[:, 1] * played + rng.standard_normal(n)
    return X, [ARMS[arm] for arm in played], {"quality": quality, "cost": cost, "delay": delay}


def learn(bandit: Bandit, n: int = 200, seed: int = 0) -> Bandit:
    X, arms, outcomes = rows(n, bandit.settings.dim, seed)
    bandit.partial_fit(X, arms, outcomes, explored=True)
    return bandit


def decisions(bandit: Bandit, n: int = 40, **how: Any) -> list[tuple[Any, float]]:
    X = np.random.default_rng(9).standard_normal((n, bandit.settings.dim))
    made = [bandit.decide(x, propensity="marginal", **how) for x in X]
    return [(one.arm, one.propensity) for one in made]


# ---- the dial


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_a_dial_turned_later_decides_as_one_that_was_there_from_the_start(policy: Any) -> None:
    fixed = armlet.OccasionalOptimism(ridge=2.0) if policy == armlet.OccasionalOptimism() else policy
    dial = {"quality": 0.5, "cost": -900.0, "delay": -0.002}
    later, always = learn(make(fixed)), learn(make(fixed, weights=dial))
    assert decisions(later, weights=dial) == decisions(always)


def test_a_dial_of_one_decision_leaves_nothing_behind() -> None:
    turned, never = learn(make()), learn(make())
    for x in np.eye(3):
        turned.decide(x, weights={"cost": -4000.0})
        never.decide(x)
    assert turned.state.under_way.sum() == never.state.under_way.sum() == 3
    ones, others = turned.state.arrays(), never.state.arrays()
    assert all(ones[name].tobytes() == others[name].tobytes() for name in ones if name != "under_way")
    assert np.array_equal(turned.predict_expectations(np.eye(3)), never.predict_expectations(np.eye(3)))


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_many_decisions_are_those_one_by_one(policy: Any) -> None:
    one, many = learn(make(policy)), learn(make(policy))
    X = np.random.default_rng(3).standard_normal((50, 3))
    singly = [one.decide(x, weights={"delay": 0.0}) for x in X]
    together = many.decide_many(X, weights={"delay": 0.0})
    assert [d.arm for d in singly] == [d.arm for d in together]
    assert [d.propensity for d in singly] == [d.propensity for d in together]
    assert together[0].weights == singly[0].weights == {"quality": 1.0, "cost": -40.0, "delay": 0.0}


def test_weights_of_one_outcome_predict_it_alone() -> None:
    bandit, (X, arms, outcomes) = learn(make(armlet.LinUCB())), rows(200)
    for name in WEIGHTS:
        alone = Bandit(ARMS, 3, policy=armlet.LinUCB(), seed=1)
        alone.partial_fit(X, arms, outcomes[name])
        only = {other: float(other == name) for other in WEIGHTS}
        found = bandit.predict_expectations(X[:20], weights=only)
        np.testing.assert_allclose(found, alone.predict_expectations(X[:20]), rtol=1e-9, atol=1e-9)


# ---- against numpy, and against one reward


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_estimates_are_those_of_the_reference(policy: Any) -> None:
    state = learn(make(policy), 300).state
    state.reweigh(np.array([*WEIGHTS.values()]))  # solved for all rows
    ridge = Ridge.parse(getattr(state, "ridge", None) or policy.ridge)
    np.testing.assert_array_equal(state.outcome_estimates(), outcome_estimates(state, ridge))


def test_residuals_of_the_weighted_sum_are_those_of_its_outcomes() -> None:
    state = learn(make(armlet.OccasionalOptimism(ridge=1.0)), 300).state
    weights = np.array([*WEIGHTS.values()])
    state.reweigh(weights)
    expected = [weights @ one @ weights for one in residual_products(state, Ridge.parse(1.0))]
    np.testing.assert_allclose(state.fits()[:, 1], expected, rtol=1e-9)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_by_the_usual_weights_it_decides_as_with_their_sum_as_reward(policy: Any) -> None:
    X, arms, outcomes = rows(300)
    several, one = make(policy), Bandit(ARMS, 3, policy=policy, seed=1)
    several.partial_fit(X, arms, outcomes, explored=True)
    one.partial_fit(X, arms, sum(WEIGHTS[name] * column for name, column in outcomes.items()), explored=True)
    np.testing.assert_allclose(several.state.records(), one.state.records(), rtol=1e-12)
    assert [arm for arm, _ in decisions(several)] == [arm for arm, _ in decisions(one)]


@pytest.mark.parametrize("dim", [3, 70])  # of many features rows wait before they are added
def test_rows_that_wait_are_the_same_rows(dim: int) -> None:
    bandit, X = make(dim=dim), rows(60, dim)[0]
    for i, x in enumerate(X):
        bandit.learn(bandit.decide(x), {"quality": float(i % 3), "cost": 0.01, "delay": 1.0})
    n, sums = bandit.state.n, bandit.state.arrays()["outcomes"][:, :3]
    assert n.sum() == 60
    np.testing.assert_allclose(sums[:, 1], 0.01 * n, rtol=1e-12)


# ---- parts


def test_a_row_is_learned_when_its_last_outcome_comes() -> None:
    whole, apart = make(), make()
    for i, x in enumerate(rows(30)[0]):
        one, other = whole.decide(x), apart.decide(x)
        whole.learn(one, {"quality": i / 3, "cost": 0.1, "delay": 2.0})
        for part in ({"delay": 2.0}, {"quality": i / 3}, {"cost": 0.1}):
            assert not other.learned
            apart.learn(other, part)
        assert other.learned
        assert one.reward == other.reward == {"quality": i / 3, "cost": 0.1, "delay": 2.0}
    assert whole.digest() == apart.digest()


def test_a_part_counts_once_and_is_changed_by_correct() -> None:
    bandit = make()
    decision = bandit.decide([1.0, 0.0, 0.0])
    bandit.learn(decision, {"cost": 0.1})
    with pytest.raises(DecisionError, match=r"has its cost already, 0\.1; change it with correct"):
        bandit.learn(decision, {"cost": 0.2, "quality": 1.0})
    assert decision.reward == {"cost": 0.1}
    bandit.correct(decision, {"cost": 0.1}, {"cost": 0.2})
    bandit.learn(decision, {"quality": 1.0, "delay": 3.0})
    bandit.correct(decision, {"quality": 1.0}, {"quality": 0.5})
    straight = make()
    straight.learn(straight.decide([1.0, 0.0, 0.0]), {"quality": 0.5, "cost": 0.2, "delay": 3.0})
    np.testing.assert_allclose(bandit.state.arrays()["outcomes"], straight.state.arrays()["outcomes"], atol=1e-15)


@pytest.mark.parametrize("policy", [POLICIES[0], POLICIES[2], POLICIES[5]], ids=str)
def test_forgetting_leaves_what_was_there(policy: Any) -> None:
    bandit, reward = learn(make(policy)), {"quality": 7.0, "cost": 3.0, "delay": 1e4}
    before = bandit.state.arrays()
    decision = bandit.decide([1.0, -2.0, 0.5])
    bandit.learn(decision, reward)
    with pytest.raises(InvalidValueError, match=r"reward is \{'quality': 7.0\} but decision .* was learned with \{'q"):
        bandit.forget(decision, {"quality": 7.0})
    bandit.forget(decision, reward)
    after = bandit.state.arrays()
    for name in ("records", "outcomes"):
        np.testing.assert_allclose(after[name], before[name], rtol=1e-9, atol=1e-6)
    assert decision.reward is None


def test_the_last_row_leaves_no_ghost() -> None:
    bandit = make()
    decision = bandit.decide([0.1, 0.2, 0.3])
    bandit.learn(decision, {"quality": 0.1, "cost": 0.7, "delay": 1e5 / 3})
    bandit.forget(decision, {"quality": 0.1, "cost": 0.7, "delay": 1e5 / 3})
    assert not bandit.state.arrays()["outcomes"].any()
    assert not bandit.state.arrays()["records"].any()


# ---- known prices


KNOWN: dict[str, dict[str | int, float]] = {"cost": {"small": 0.001, "medium": 0.01, "large": 0.03}}


def test_a_known_price_is_added_to_what_is_expected() -> None:
    X, arms, outcomes = rows(200)
    bandit = make(known=KNOWN)
    bandit.partial_fit(X, arms, {name: outcomes[name] for name in ("quality", "delay")})
    prices = np.array([*KNOWN["cost"].values()])
    free = bandit.predict_expectations(X[:9], weights={"cost": 0.0})
    for weight in (-40.0, -4000.0):
        found = bandit.predict_expectations(X[:9], weights={"cost": weight})
        np.testing.assert_allclose(found, free + weight * prices, rtol=1e-9)
    assert set(bandit.predict(X[:9], weights={"cost": -1e6})) == {"small"}
    with pytest.raises(InvalidValueError, match="has 'cost', whose price of every arm is known; leave it out"):
        bandit.learn(bandit.decide(X[0]), {"cost": 0.1})


def test_prices_change_and_arms_come_with_them() -> None:
    bandit = make(known=KNOWN)
    x = [0.5, 0.5, 0.5]
    with pytest.raises(InvalidValueError, match=r"known has no cost of arm 'tiny'; give it first: replace\(known="):
        bandit.add_arm("tiny")
    bandit.replace(known={"cost": {**KNOWN["cost"], "large": 0.3, "tiny": 0.0001}})
    bandit.add_arm("tiny")
    found = bandit.predict_expectations([x], weights={"quality": 0.0, "cost": -1.0, "delay": 0.0})[0]
    np.testing.assert_allclose(found, [-0.001, -0.01, -0.3, -0.0001])
    bandit.remove_arm("medium")
    found = bandit.predict_expectations([x], weights={"quality": 0.0, "cost": -1.0, "delay": 0.0})[0]
    np.testing.assert_allclose(found, [-0.001, -0.3, -0.0001])


def test_other_default_weights_are_those_it_could_have_started_with() -> None:
    new = {"quality": 3.0, "cost": -1.0, "delay": -1.0}
    bandit, other = learn(make(armlet.LinUCB())), learn(make(armlet.LinUCB(), weights=new))
    bandit.replace(outcomes=new)
    assert bandit.settings.outcomes == other.settings.outcomes
    other.state.renew()  # units of all rows
    X = rows(20)[0]
    np.testing.assert_allclose(bandit.predict_expectations(X), other.predict_expectations(X), rtol=1e-9)
    assert decisions(bandit) == decisions(other)


# ---- files, copies, merges


def test_decisions_of_a_file_remember_their_parts() -> None:
    bandit = make()
    decision = bandit.decide([1.0, 2.0, 3.0], weights={"delay": -5.0})
    bandit.learn(decision, {"cost": 0.5})
    for again in (pickle.loads(pickle.dumps(decision)), armlet.Decision.from_dict(decision.to_dict())):
        assert (again.reward, again.weights, again.learned) == ({"cost": 0.5}, decision.weights, False)
        twin = bandit.copy()
        twin.learn(again, {"quality": 1.0, "delay": 2.0})
        assert again.learned


@given(shift=st.floats(-1e7, 1e7), scale=st.floats(1e-3, 1e3), at=st.sampled_from(["quality", "cost", "delay"]))
def test_neither_zero_nor_size_of_an_outcome_matters(shift: float, scale: float, at: str) -> None:
    X, arms, outcomes = rows(60)
    plain, moved = (make(armlet.LinUCB(), weights=w) for w in (WEIGHTS, {**WEIGHTS, at: WEIGHTS[at] / scale}))
    plain.partial_fit(X, arms, outcomes)
    moved.partial_fit(X, arms, {**outcomes, at: shift + scale * outcomes[at]})
    ones, others = (bandit.state.outcome_estimates() for bandit in (plain, moved))
    place = list(WEIGHTS).index(at)
    np.testing.assert_allclose(others[place], scale * ones[place], rtol=1e-5, atol=1e-6 * scale)


# ---- refusals


@pytest.mark.parametrize(
    ("how", "error", "message"),
    [
        ({"outcomes": {}}, InvalidValueError, r"outcomes is \{\}; give a weight for every outcome"),
        ({"outcomes": {"a": 0.0}}, InvalidValueError, "weighs nothing"),
        ({"outcomes": {"a": float("nan")}}, InvalidValueError, r"outcomes\['a'\] is nan; give a finite number"),
        ({"outcomes": {1: 1.0}}, InvalidValueError, "outcomes has 1; outcomes have names"),
        ({"known": KNOWN}, InvalidValueError, "known is .* but there are no outcomes"),
        ({"outcomes": WEIGHTS, "known": {"cost": {"small": 1.0}}}, InvalidValueError, "no cost of arm 'medium'"),
        (
            {"outcomes": WEIGHTS, "known": {"price": KNOWN["cost"]}},
            InvalidValueError,
            "has 'price', which is no outcome",
        ),
        ({"outcomes": {"cost": -1.0}, "known": KNOWN}, InvalidValueError, "which is every outcome"),
        ({"outcomes": WEIGHTS, "objective": "min"}, InvalidValueError, "objective is 'min', but outcomes have weights"),
        ({"outcomes": WEIGHTS, "reward_range": (0, 1)}, InvalidValueError, "with outcomes give one for each by name"),
        ({"outcomes": WEIGHTS, "policy": armlet.AutoEpsilonGreedy()}, InvalidValueError, "learns from one reward"),
        (
            {"outcomes": WEIGHTS, "known": KNOWN, "policy": armlet.LinUCB(units="as given")},
            InvalidValueError,
            "sees units as given, where an arm has no constant",
        ),
    ],
)
def test_a_bandit_that_cannot_be_is_refused(how: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Bandit(ARMS, 3, **how)


@pytest.mark.parametrize(
    ("reward", "error", "message"),
    [
        (1.0, InvalidTypeError, "reward is 1.0; give numbers by outcome"),
        ({}, InvalidValueError, "reward is empty; give at least one outcome"),
        ({"speed": 1.0}, InvalidValueError, "there is no outcome 'speed'; the bandit's are"),
        ({"quality": float("inf")}, InvalidValueError, "give a finite number"),
        ({"quality": 2.0}, InvalidValueError, r"quality is 2.0 but reward_range has \(0.0, 1.0\) for it"),
        ({"cost": 0.1, "quality": "good"}, InvalidTypeError, "good"),
    ],
)
def test_a_reward_that_is_none_changes_nothing(reward: Any, error: type[Exception], message: str) -> None:
    bandit = make(reward_range={"quality": (0.0, 1.0)})
    decision, before = bandit.decide([1.0, 2.0, 3.0]), bandit.digest()
    with pytest.raises(error, match=message):
        bandit.learn(decision, reward)
    assert (bandit.digest(), decision.reward) == (before, None)


def test_dials_that_are_none_are_refused() -> None:
    bandit, x = make(), [1.0, 2.0, 3.0]
    refused: list[tuple[Any, str]] = [
        ({"speed": 1.0}, "there is no outcome 'speed'"),
        ({"cost": "dear"}, "weights has 'dear' for 'cost'; give a finite number"),
        (3.0, "weights is 3.0; give numbers by outcome"),
    ]
    for weights, message in refused:
        with pytest.raises((InvalidValueError, InvalidTypeError), match=message):
            bandit.decide(x, weights=weights)
    assert bandit.t == 0
    with pytest.raises(InvalidValueError, match="but the bandit has one reward"):
        Bandit(ARMS, 3).decide(x, weights={"cost": 1.0})


def test_only_the_same_outcomes_add_up() -> None:
    with pytest.raises(MergeError, match="outcomes is"):
        make().merge(make(weights={**WEIGHTS, "cost": -41.0}))
    with pytest.raises(MergeError, match="outcomes is"):
        make().merge(Bandit(ARMS, 3, seed=1))


def test_code_that_runs_while_numbers_are_read_changes_nothing_of_the_call() -> None:
    bandit = make(known=KNOWN)

    class Meddling(int):
        def __float__(self) -> float:
            bandit.replace(known={"cost": dict.fromkeys(ARMS, 2.0)})
            reward.clear()
            return 3.0

    reward: dict[str, Any] = {"quality": Meddling(3), "delay": Meddling(3)}
    decision = bandit.decide([1.0, 2.0, 3.0])
    bandit.learn(decision, reward)
    assert decision.reward == {"quality": 3.0, "delay": 3.0}
    reward = {"quality": Meddling(3), "cost": Meddling(3)}
    assert bandit.decide([1.0, 2.0, 3.0], weights=reward).weights == {"quality": 3.0, "cost": 3.0, "delay": -0.1}


@pytest.mark.parametrize("weight", [np.float32(0.5), np.int64(2), 3])
def test_a_weight_is_any_number(weight: Any) -> None:
    decision = make().decide([1.0, 2.0, 3.0], weights={"cost": weight})
    assert decision.weights == {**WEIGHTS, "cost": float(weight)}


def test_a_decision_with_outcomes_is_not_one_of_a_bandit_with_one_reward() -> None:
    several, one = make(), Bandit(ARMS, 3, seed=1)
    decision = several.decide([1.0, 2.0, 3.0])
    several.learn(decision, {"cost": 0.1})
    before = one.digest()
    with pytest.raises(DecisionError, match=r"has outcomes, \{'cost': 0.1\}, but the bandit has one reward"):
        one.learn(decision, 1.0)
    assert (one.digest(), decision.reward) == (before, {"cost": 0.1})
