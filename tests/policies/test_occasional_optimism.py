"""Optimism from sums: it merges, forgets and corrects, goes on from a file bit for bit, and tries newcomers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import armlet
from armlet.types import Float64
from support.contract import check_settings

K, D = 4, 3


def environment(steps: int, seed: int = 5) -> tuple[Float64, Float64]:
    rng = np.random.default_rng(seed)
    X, theta = rng.normal(size=(steps, D)), rng.normal(size=(K, D))
    return X, X @ theta.T + 0.5 * rng.normal(size=(steps, K)) + 100.0


def played(
    steps: int, *, seed: int = 1, data: int = 5, policy: armlet.OccasionalOptimism | None = None
) -> armlet.Bandit:
    bandit = armlet.Bandit(range(K), D, policy=policy or armlet.OccasionalOptimism(), seed=seed)
    go_on(bandit, *environment(steps, data))
    return bandit


def go_on(bandit: armlet.Bandit, X: Float64, rewards: Float64) -> list[armlet.Decision]:
    out = []
    for x, row in zip(X, rewards, strict=True):
        decision = bandit.decide(x)
        bandit.learn(decision, float(row[int(decision.arm)]))
        out.append(decision)
    return out


@pytest.mark.parametrize(
    "policy",
    [
        armlet.OccasionalOptimism(),
        armlet.OccasionalOptimism(p=1, share=1, noise="max", floor=0.1),
        armlet.OccasionalOptimism(noise="shrunk", units="as given"),
    ],
    ids=["as it comes", "p = 1", "median"],
)
def test_it_keeps_what_every_policy_promises(policy: armlet.OccasionalOptimism) -> None:
    check_settings(policy)


@pytest.mark.parametrize("steps", [1, 7, 60, 333])
def test_a_saved_bandit_goes_on_bit_for_bit(steps: int, tmp_path: Path) -> None:
    bandit = played(steps)
    bandit.save(tmp_path / "model.armlet")
    loaded = armlet.load(tmp_path / "model.armlet")
    X, rewards = environment(300, 6)
    assert [repr(d) for d in go_on(loaded, X, rewards)] == [repr(d) for d in go_on(bandit, X, rewards)]
    assert all((loaded.state.arrays()[name] == value).all() for name, value in bandit.state.arrays().items())


def test_two_merged_are_one_that_saw_all_rows() -> None:
    one, two, policy = played(300, seed=1), played(200, seed=2, data=8), armlet.OccasionalOptimism()
    whole = policy.init(K, D)
    for data, seed, steps in ((5, 1, 300), (8, 2, 200)):
        X, rewards = environment(steps, data)
        again = armlet.Bandit(range(K), D, policy=policy, seed=seed)
        for d, x, row in zip(go_on(again, X, rewards), X, rewards, strict=True):
            whole.add(int(d.arm), x, float(row[int(d.arm)]))
    one.merge(two)
    whole.renew()
    np.testing.assert_allclose(one.state.records(), whole.records(), rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(one.state.estimates(), whole.estimates(), rtol=1e-9)
    x = np.array([0.3, -0.2, 1.0])
    np.testing.assert_allclose(policy.upper_bounds(one.state, 500, x), policy.upper_bounds(whole, 500, x), rtol=1e-9)


def test_a_forgotten_row_leaves_no_trace() -> None:
    """What is left is what the other rows alone lead to, once units are taken again; a huge row would show."""
    bandit = played(200)
    before = bandit.state.copy()
    before.renew()
    decision = bandit.decide([50.0, -50.0, 50.0])
    bandit.learn(decision, 1e4)
    bandit.forget(decision, 1e4)
    for name, value in before.arrays().items():
        np.testing.assert_allclose(bandit.state.arrays()[name], value, rtol=1e-6, atol=1e-6)


def test_a_corrected_reward_is_as_if_it_had_come_first() -> None:
    policy, (X, rewards) = armlet.OccasionalOptimism(), environment(100)
    wrong, right = policy.init(K, D), policy.init(K, D)
    for i, (x, row) in enumerate(zip(X, rewards, strict=True)):
        wrong.add(i % K, x, float(row[i % K]) + (50.0 if i == 40 else 0.0))
        right.add(i % K, x, float(row[i % K]))
    wrong.correct(40 % K, X[40], float(rewards[40, 40 % K]) + 50.0, float(rewards[40, 40 % K]))
    right.renew()
    np.testing.assert_allclose(wrong.estimates(), right.estimates(), rtol=1e-8)
    np.testing.assert_allclose(wrong.deviations("pool"), right.deviations("pool"), rtol=1e-8)


def test_arms_are_played_as_often_as_their_propensities_say() -> None:
    """One state, one context, 4,000 coins: with a floor every arm has a chance, and chi-square holds at 1 in 1,000."""
    bandit = played(150, policy=armlet.OccasionalOptimism(floor=0.3))
    x = np.array([0.5, 0.5, -0.5])
    chances, counts = bandit.predict_proba([x])[0], np.zeros(K)
    for seed in range(4000):
        coins = armlet.kernel.coins(seed, bandit.t + 1)
        every = np.ones(K, dtype=np.bool_)
        choice = bandit.policy.decide(bandit.state, bandit.t + 1, x, coins, every)
        assert choice.propensity == chances[choice.arm]
        counts[choice.arm] += 1
    assert stats.chisquare(counts, 4000 * chances).pvalue > 1e-3


def test_a_newcomer_is_tried_at_once_and_stays_if_it_is_good() -> None:
    bandit = played(500)
    bandit.add_arm("new")
    assert bandit.decide([0.0] * D).arm == "new"
    X, _ = environment(300, 9)
    taken = 0
    for x in X:
        decision = bandit.decide(x)
        taken += decision.arm == "new"
        bandit.learn(decision, 1000.0 if decision.arm == "new" else 100.0)
    assert taken > 250


def test_only_eligible_arms_are_played() -> None:
    bandit = played(100)
    for x in environment(100, 11)[0]:
        decision = bandit.decide(x, eligible=[1, 3])
        assert decision.arm in (1, 3)
        bandit.learn(decision, 100.0)


def test_feedback_in_blocks_is_learned_as_it_comes() -> None:
    """The state is a function of the rows in their order, whether or not anybody decided between them."""
    bandit, policy, (X, rewards) = played(0), armlet.OccasionalOptimism(), environment(400)
    alone = policy.init(K, D)
    for start in range(0, 400, 100):
        block = [bandit.decide(x) for x in X[start : start + 100]]
        for d, x, row in zip(block, X[start : start + 100], rewards[start : start + 100], strict=True):
            bandit.learn(d, float(row[int(d.arm)]))
            alone.add(int(d.arm), x, float(row[int(d.arm)]))
    assert all((alone.arrays()[name] == value).all() for name, value in bandit.state.arrays().items())


@pytest.mark.parametrize(
    "policy",
    [armlet.OccasionalOptimism(), armlet.LinUCB(), armlet.ThompsonSampling()],
)
def test_a_feature_that_begins_to_vary_is_seen_at_once(policy: armlet.Policy) -> None:
    """A new context half way turns the order of two arms; OFUL, with the noise known, needs 15 to 24 steps."""
    means, T = np.array([[0.5, 0.0], [0.3, 0.6]]), 4000
    for seed in range(3):
        bandit = armlet.Bandit(range(2), 2, policy=policy, seed=seed)
        noise, wrong = 0.1 * np.random.default_rng(seed).normal(size=T), []
        for t in range(T // 2 + 200):
            late = int(t >= T // 2)
            decision = bandit.decide(np.eye(2)[late])
            bandit.learn(decision, float(means[late, int(decision.arm)] + noise[t]))
            wrong.append(decision.arm == 0)
        late_wrong = wrong[T // 2 :]
        assert not all(late_wrong[:25])
        if isinstance(policy, armlet.OccasionalOptimism):
            assert sum(late_wrong) <= 24


@pytest.mark.parametrize(("dim", "n_arms"), [(32, 32), (128, 5)])
def test_memory_is_at_most_three_times_that_of_the_sums(dim: int, n_arms: int) -> None:
    bandit = armlet.Bandit(range(n_arms), dim, policy=armlet.OccasionalOptimism(), seed=1)
    rng = np.random.default_rng(1)
    for x in rng.normal(size=(3 * n_arms, dim)):
        bandit.learn(bandit.decide(x), float(rng.normal()))
    assert bandit.state.nbytes <= 3 * bandit.state.records().nbytes
