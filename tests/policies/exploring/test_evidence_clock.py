"""Evidence is the clock: newcomers, late rewards, merges and forgetting, and the exact law in live runs.

The test of propensities is that of tests/bandit/test_bandit_propensities.py: if announcements q_t are right, the sum of
e_t - q_t is a martingale with covariance sum (diag(q_t) - q_t q_t').
"""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats

import armlet
from armlet import AllDataEpsilonGreedy, Bandit, ContextualEpsilonGreedy, kernel
from armlet.policies import Algorithm1
from armlet.types import Bool, Float64, Int64
from support.in_python import EvidenceInPython

ACCEPT = 1e-3  # with fixed seeds; a p-value that small comes once in a thousand tests if all is well
REJECT = 1e-7  # what a wrong announcement must fall below, so that the test cannot pass by luck
STEPS = [9_000, pytest.param(30_000, marks=pytest.mark.long)]  # with either, the faults below are found


class Run(NamedTuple):
    """A live run: what was announced, what was played."""

    q: Float64  # (T, K): marginal probabilities, announced before the decision
    given: Float64  # (T, K): probabilities given that the step explores
    arms: Int64  # (T,)
    explored: Bool  # (T,)


def p_value(arms: Int64, q: Float64) -> float:
    """Return the probability of counts as far from sum q_t as these, or farther."""
    counts = np.bincount(arms, minlength=q.shape[1])
    D, C = counts - q.sum(axis=0), np.diag(q.sum(axis=0)) - q.T @ q
    variances, directions = np.linalg.eigh(C)
    vary = variances > 1e-9 * len(arms)
    return float(stats.chi2.sf(((directions.T @ D)[vary] ** 2 / variances[vary]).sum(), np.count_nonzero(vary)))


def p_value_by_rank(arms: Int64, q: Float64) -> float:
    """Test how often the likeliest arm of a step was played, the second, and so on: a wrong rate adds up there."""
    order = np.argsort(-q, axis=1, kind="stable")
    return p_value((order == arms[:, None]).argmax(axis=1), np.take_along_axis(q, order, axis=1))


POLICIES = {
    "plain": ContextualEpsilonGreedy(p=40),
    "floor": ContextualEpsilonGreedy(p=10, floor=0.1),
    "cap": ContextualEpsilonGreedy(p=200, cap=0.3, floor=0.02),
    "all data": AllDataEpsilonGreedy(p=25, cap=0.5, floor=0.05),
}


@cache
def run(name: str, steps: int) -> Run:
    """Play with eligible sets, nine newcomers, a retired arm and rewards of which a third never come."""
    rng, policy = np.random.default_rng(31), POLICIES[name]
    bandit, n_arms, pause = Bandit(range(4), 2, policy=policy, seed=17), 13, steps // 10
    contexts = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    clicks = rng.choice([0.2, 0.6], size=(3, n_arms))
    q, given = np.zeros((2, steps, n_arms))
    arms, explored = np.zeros(steps, dtype=np.int64), np.zeros(steps, dtype=np.bool_)
    for i in range(steps):
        if i and i % pause == 0:
            bandit.add_arm(len(bandit.arms))
        if i in (steps // 3, 2 * steps // 3):
            (bandit.retire_arm if i == steps // 3 else bandit.restore_arm)(1)
        K, kind = len(bandit.arms), int(rng.integers(3))
        eligible = np.flatnonzero((rng.random(K) < 0.7) & bandit.state.active).tolist() or [0]
        allowed = np.isin(np.arange(K), eligible)
        q[i, :K] = bandit._probabilities(contexts[[kind]], i + 1, eligible)[0]
        law = policy.exploring(bandit.state, i + 1, allowed)
        given[i, law.arms] = law.given
        decision = bandit.decide(contexts[kind], eligible=eligible)
        arm = arms[i] = int(decision.arm)
        explored[i] = decision.explored
        assert (decision.propensity, decision.exploration_propensity) == (q[i, arm], given[i, arm])
        if i % 3:
            bandit.learn(decision, float(rng.random() < clicks[kind, arm]))
    return Run(q, given, arms, explored)


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("name", POLICIES)
def test_arms_are_played_as_often_as_announced(name: str, steps: int) -> None:
    r = run(name, steps)
    np.testing.assert_allclose(r.q.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    assert p_value(r.arms, r.q) > ACCEPT
    assert p_value_by_rank(r.arms, r.q) > ACCEPT


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("name", POLICIES)
def test_explored_steps_take_arms_as_often_as_announced(name: str, steps: int) -> None:
    r = run(name, steps)
    np.testing.assert_allclose(r.given.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    assert r.explored.sum() > 300
    assert p_value(r.arms[r.explored], r.given[r.explored]) > ACCEPT


def evenly(q: Float64) -> Float64:
    marked = q > 0
    return np.asarray(marked / marked.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("name", ["plain", "cap"])
def test_uniform_announcements_of_what_exploring_takes_are_refused(name: str, steps: int) -> None:
    """The power of the test above: a law that forgot the weights would be found."""
    r = run(name, steps)
    assert p_value(r.arms[r.explored], evenly(r.given[r.explored])) < REJECT


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("name", POLICIES)
def test_announcements_that_say_too_much_exploring_are_refused(name: str, steps: int) -> None:
    """The power of the first test: a rate that is too high by 7 % of all steps would be found."""
    r = run(name, steps)
    assert p_value_by_rank(r.arms, 0.93 * r.q + 0.07 * r.given) < REJECT


@pytest.mark.parametrize("policy_type", [ContextualEpsilonGreedy, EvidenceInPython])
def test_newcomer_is_tried_ten_times_within_300_steps(policy_type: type[ContextualEpsilonGreedy]) -> None:
    """Best in half of the contexts, added at t = 90,000, where p/t is 1 in 2,000."""
    policy, rng = policy_type(p=45), np.random.default_rng(5)
    bandit = Bandit(["left", "right", "dull"], 2, policy=policy, seed=5)
    for x in rng.normal(size=(2000, 2)):
        decision = bandit.decide(x)
        bandit.learn(decision, float({"left": -x[0], "right": 0.5 * x[0], "dull": 0.0}[str(decision.arm)]))
    bandit._advance(90_000 - bandit.t)
    bandit.add_arm("new")
    tried, found = 0, 0
    for i, x in enumerate(rng.normal(size=(1300, 2))):
        decision = bandit.decide(x)
        tried += decision.arm == "new" and i < 300
        found += decision.arm == "new" and i >= 300 and x[0] > 0
        paid = {"left": -x[0], "right": 0.5 * x[0], "dull": 0.0, "new": 2.0 * x[0]}[str(decision.arm)]
        bandit.learn(decision, float(paid))
    assert tried >= 10
    assert found > 450  # of about 500 steps in which it is the best


def test_newcomer_of_the_printed_algorithm_waits() -> None:
    """What the test above is about: by the clock, 300 steps at p/t explore less than once in six."""
    bandit = Bandit(["a", "b"], 1, policy=armlet.Algorithm1(p=45), seed=5)
    for _ in range(100):
        bandit.learn(bandit.decide([1.0]), 1.0)
    bandit._advance(90_000 - bandit.t)
    bandit.add_arm("new")
    assert sum(bandit.decide([1.0]).arm == "new" for _ in range(300)) < 3


def test_closed_environment_explores_as_often_as_algorithm_1_but_for_its_start() -> None:
    """p (1 + log(T/q)) rows, which is Algorithm 1's p (1 + log(T/p)) and p log(K) more, regardless of T.

    A step explores at rate 1 until the weights of all arms, K exp(1 - n/q), sum to 1: n = q (1 + log K) rows each, at
    step p (1 + log K). From there dn/dt = exp(1 - n/q), so n = q (1 + log((t - p log K)/q)). In the time s = log t, the
    noise of n is that of a Poisson count of rate q. An arm that fell behind is brought back by its weight, one that is
    ahead is not held back, since q/t is the least: a walk of variance q s that is turned back at 0, softly, so ahead of
    the curve by at most sqrt(2 q s / pi) in the mean. Steps are discrete: less than one row an arm.
    """
    K, T, runs = 5, 20_000, 20
    for q in (4.0, 12.0):
        p, seen = q * K, []
        policy, rng = ContextualEpsilonGreedy(p=p), np.random.default_rng(8)
        X, rewards = rng.normal(size=(T, 2)), rng.normal(size=(T, K))
        for seed in range(runs):
            out = kernel.rollout(X, rewards, start=policy.init(K, 2), rule=policy.rule(), seed=seed)
            seen.append(int(out.explored.sum()))
        s = math.log(T / (p * (1 + math.log(K))))
        curve, ahead = p * (1 + math.log((T - p * math.log(K)) / q)), K * math.sqrt(2 * q * s / math.pi)
        slack = 4 * math.sqrt(K * q * s / runs) + K
        assert curve - slack <= np.mean(seen) <= curve + ahead + slack
        assert curve == pytest.approx(p * (1 + math.log(T / p)) + p * math.log(K), rel=0.01)


def test_late_rewards_keep_an_arm_explored() -> None:
    """Rows that have not come do not count; once they have, exploring ends."""
    bandit = Bandit(["a", "b"], 1, policy=ContextualEpsilonGreedy(p=10), seed=3)
    waiting = [bandit.decide([1.0]) for _ in range(500)]
    assert all(decision.explored for decision in waiting)
    for decision in waiting:
        bandit.learn(decision, 1.0)
    assert sum(bandit.decide([1.0]).explored for _ in range(500)) < 40  # 2 q / t of them: about 10 (log 2)


def rows(bandit: Bandit, arm: int, n: int) -> None:
    for _ in range(n):
        bandit.state.add(arm, np.ones(1), float(arm))


def rate(bandit: Bandit) -> float:
    policy = bandit.policy
    assert isinstance(policy, ContextualEpsilonGreedy)
    return policy.exploration_rate(bandit.t + 1, bandit.state)


def test_merging_ends_exploring_and_forgetting_begins_it_again() -> None:
    one, other = (Bandit(["a", "b"], 1, policy=ContextualEpsilonGreedy(p=4), seed=seed) for seed in (1, 2))
    learned = []
    for _ in range(6):
        learned.append(one.decide([1.0]))
        one.learn(learned[-1], 1.0)
    before = rate(one)
    rows(other, 0, 20)
    rows(other, 1, 20)
    other._advance(10_000)
    one.merge(other)
    assert rate(one) < 1e-3 < before
    mine = [decision for decision in learned if decision.explored]
    one, reference = Bandit(["a", "b"], 1, policy=ContextualEpsilonGreedy(p=4), seed=1), one
    assert rate(one) == 1.0
    for decision in mine:
        reference.forget(decision, 1.0)
    assert reference.state.n.tolist() == [20.0, 20.0]


def test_forgotten_rows_are_explored_again() -> None:
    bandit = Bandit(["a", "b"], 1, policy=ContextualEpsilonGreedy(p=4), seed=1)
    learned = []
    while bandit.state.n.sum() < 20:
        learned.append(bandit.decide([1.0]))
        bandit.learn(learned[-1], 1.0)
    low = rate(bandit)
    for decision in learned:
        if decision.explored and decision.arm == "a":
            bandit.forget(decision, 1.0)
    assert rate(bandit) == 1.0 > low
    assert bandit.decide([1.0]).arm == "a"


def test_q_is_p_over_the_arms_that_are_not_retired(tmp_path: Path) -> None:
    policy = ContextualEpsilonGreedy(p=12)
    bandit = Bandit(range(4), 1, policy=policy, seed=1)
    for arm in range(4):
        rows(bandit, arm, 30)
    bandit._advance(10**9)
    of_four = rate(bandit)
    assert of_four == pytest.approx(4 * math.exp(1 - 30 / 3))
    bandit.retire_arm(0)
    bandit.retire_arm(1)
    assert rate(bandit) == pytest.approx(2 * math.exp(1 - 30 / 6))
    bandit.save(tmp_path / "model.armlet")
    merged = Bandit(range(4), 1, policy=policy, seed=3)
    merged.merge(bandit)
    for twin in (armlet.load(tmp_path / "model.armlet"), bandit.copy(), armlet.from_bytes(bandit.to_bytes())):
        assert twin.state.n_active == 2
        assert rate(twin) == rate(bandit)
        assert twin.decide([1.0]).propensity == bandit.copy().decide([1.0]).propensity
    assert merged.state.n_active == 4  # what is known here is not retired because it is there
    bandit.restore_arm(0)
    bandit.restore_arm(1)
    assert rate(bandit) == of_four
    bandit.retire_arm(2)
    bandit.remove_arm(2)
    assert bandit.state.n_active == 3


def test_cap_shares_newcomers_traffic_with_what_is_known() -> None:
    bandit = Bandit(range(3), 1, policy=ContextualEpsilonGreedy(p=30, cap=0.2), seed=1)
    assert rate(bandit) == 0.2
    np.testing.assert_allclose(bandit.predict_proba([[1.0]])[0], 1 / 3)
    explored = sum(bandit.decide([1.0]).explored for _ in range(5000))
    assert abs(explored - 1000) < 4 * math.sqrt(5000 * 0.2 * 0.8)


def test_floor_is_the_least_propensity_for_ever() -> None:
    bandit = Bandit(range(4), 1, policy=ContextualEpsilonGreedy(p=4, floor=0.08), seed=1)
    for arm in range(4):
        rows(bandit, arm, 200)
    bandit._advance(10**12)
    chances = bandit.predict_proba([[1.0]])[0]
    assert chances.min() == pytest.approx(0.02, rel=1e-6)
    assert bandit.decide([1.0]).exploration_propensity == pytest.approx(0.25, rel=1e-6)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"p": 0}, "p is 0; give a number above 0"),
        ({"p": -1.0}, "p is -1.0"),
        ({"p": "auto"}, "p is 'auto'; give a number above 0"),
        ({"p": 5, "cap": 0.0}, "cap is 0.0"),
        ({"p": 5, "cap": 1.1}, "cap is 1.1"),
        ({"p": 5, "floor": -0.1}, "floor is -0.1"),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, object], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        ContextualEpsilonGreedy(**settings)  # type: ignore[arg-type]


def test_rate_by_evidence_needs_the_state() -> None:
    with pytest.raises(ValueError, match="state is None but ContextualEpsilonGreedy explores by evidence"):
        ContextualEpsilonGreedy(p=5).exploration_rate(10)
    assert Algorithm1(p=5, units="free").exploration_rate(10) == 0.5
