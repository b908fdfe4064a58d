"""What a bandit says about units: predictions in the user's own, and a warning where digits are lost."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import armlet
from armlet.types import Float64, Policy

POLICIES: list[Policy] = [
    armlet.LinUCB(),
    armlet.ThompsonSampling(),
    armlet.FixedEpsilon(),
    armlet.Greedy(),
    armlet.ContextualEpsilonGreedy(p=60, units="free"),
    armlet.AllDataEpsilonGreedy(p=60, units="free"),
]
THETA = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])


def rows(n: int, seed: int = 1) -> Float64:
    X: Float64 = np.random.default_rng(seed).normal(size=(n, 2))
    return X


def played(policy: Policy, X: Float64, scale: Float64, offset: Float64, level: float) -> armlet.Bandit:
    bandit = armlet.Bandit(range(3), 2, policy=policy, seed=1)
    for x in X:
        decision = bandit.decide(scale * x + offset)
        bandit.learn(decision, float(5.0 * (THETA[int(decision.arm)] @ x) + level))
    return bandit


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_predictions_are_in_the_users_units(policy: Policy) -> None:
    """A price around a million and a share of a thousandth; rewards around minus 400."""
    X, scale, offset = rows(400), np.array([100.0, 1e-4]), np.array([1e6, 1e-3])
    bandit = played(policy, X, scale, offset, -400.0)
    seen = rows(50, seed=2)
    found, truth = bandit.predict_expectations(scale * seen + offset), 5.0 * seen @ THETA.T - 400.0
    most = bandit.state[-1] if hasattr(bandit.state, "__len__") else bandit.state
    known = most.n >= 30  # a greedy policy may have left an arm alone
    assert known.any()
    assert np.abs(found - truth)[:, known].max() < 3.0
    best = bandit.predict(scale * seen + offset)
    assert best.tolist() == found.argmax(axis=1).tolist()


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_decide_many_decides_as_one_by_one(policy: Policy) -> None:
    X, offset = rows(300), np.array([3000.0, 0.0])
    one, many = (played(policy, X, np.ones(2), offset, 1e5) for _ in range(2))
    seen = rows(200, seed=3) + offset
    assert [repr(one.decide(x)) for x in seen] == [repr(d) for d in many.decide_many(seen)]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_a_batch_that_is_given_up_leaves_units_as_they_were(policy: Policy) -> None:
    bandit = played(policy, rows(60), np.ones(2), np.zeros(2), 7.0)
    before = bandit.to_bytes()
    wrong = [bandit.copy().decide([1.0, 2.0]), bandit.copy(seed=9).decide([1.0, 2.0])]
    with pytest.raises(armlet.errors.DecisionError):
        bandit.learn_many(wrong, [1.0, 1.0])
    assert bandit.to_bytes() == before


def feed(bandit: armlet.Bandit, X: Float64, rewards: Float64, way: str) -> None:
    for i in range(0, len(X), 50):
        part, paid = X[i : i + 50], rewards[i : i + 50]
        if way == "partial_fit":
            bandit.partial_fit(part, ["a", "b"] * 25, paid)
        elif way == "learn_many":
            bandit.learn_many(bandit.decide_many(part), paid)
        else:
            for x, reward in zip(part, paid, strict=True):
                bandit.learn(bandit.decide(x), float(reward))


@pytest.mark.parametrize(
    ("offset", "level", "named"),
    [(np.array([0.0, 1e8]), 0.0, "feature 1 of contexts"), (np.zeros(2), 1e9, "rewards")],
)
@pytest.mark.parametrize("way", ["learn", "learn_many", "partial_fit"])
def test_units_as_given_warn_once_where_digits_are_lost(offset: Float64, level: float, named: str, way: str) -> None:
    X = rows(300)
    bandit = armlet.Bandit(["a", "b"], 2, policy=armlet.LinUCB(units="as given"), seed=1)
    with pytest.warns(RuntimeWarning, match=f"^{named} lie so far from zero") as caught:
        feed(bandit, X + offset, X[:, 0] + level, way)
    assert len(caught) == 1


def test_nothing_is_said_where_nothing_is_lost() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="the first 100 rewards are all the same")
        played(armlet.LinUCB(units="as given"), rows(300), np.ones(2), np.array([1000.0, 7.0]), 1000.0)
        played(armlet.LinUCB(), rows(300), np.ones(2), np.array([1e8, 7.0]), 1e9)
        constant = armlet.Bandit(["a", "b"], 2, policy=armlet.LinUCB(units="as given"), seed=1)
        for x in rows(300):
            constant.learn(constant.decide([1e9, float(x[0])]), 1e9)


def test_a_warning_that_is_an_error_leaves_everything_as_it_was() -> None:
    bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.LinUCB(units="as given"), seed=1)
    for i in range(31):
        bandit.learn(bandit.decide([float(i)]), 1e9 + i)
    decision, before = bandit.decide([31.0]), bandit.to_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="rewards lie so far from zero"):
            bandit.learn(decision, 1e9 + 31)
    assert (bandit.to_bytes(), decision.learned) == (before, False)
    bandit.learn(decision, 1e9 + 31)


def test_partial_fit_takes_means_of_the_whole_log() -> None:
    X, rewards = rows(105), rows(105, seed=4)[:, 0]
    arms = np.arange(105) % 3
    fitted, learned = (armlet.Bandit(range(3), 2, policy=armlet.Greedy(), seed=1) for _ in range(2))
    fitted.fit(X, arms, rewards)
    learned.partial_fit(X, arms, rewards)
    np.testing.assert_array_equal(fitted.state.arrays()["units"], learned.state.arrays()["units"])
    np.testing.assert_allclose(fitted.state.base, rewards.mean(), rtol=1e-12)
