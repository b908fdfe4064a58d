"""EXP4 and EXP4.P against their papers, written the long way, and the experts that they learn from."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import armlet
from armlet.environments import FigureA
from armlet.errors import DecisionError, MergeError
from armlet.policies.uniform import Uniform
from armlet.simulation.run import simulate
from armlet.types import Bool, Coins, Float64, Interaction, Policy
from armlet_lab.literature.exp4 import EXP4
from armlet_lab.literature.exp4p import EXP4P
from armlet_lab.literature.experts import ExpertSums, LinearExperts, barred_tag, from_tag, known_eligible
from support.contract import check_settings


def some(rng: np.random.Generator, n_arms: int) -> Bool:
    """Draw a set of eligible arms."""
    eligible = rng.random(n_arms) < 0.6
    eligible[rng.integers(n_arms)] = True
    return eligible


def coins(rng: np.random.Generator) -> Coins:
    return Coins(float(rng.random()), int(rng.integers(2**63)), int(rng.integers(2**63)), 0)


@pytest.mark.parametrize(
    "policy",
    [
        EXP4(horizon=1000, n_experts=20),
        EXP4(experts="all maps", gamma=0.2, reward_range=(-1.0, 2.0)),
        EXP4P(horizon=1000, n_experts=10, reward_range=(-1.0, 2.0)),
    ],
    ids=repr,
)
def test_policy_keeps_its_promises(policy: Policy) -> None:
    check_settings(policy, n_arms=4, dim=3)


@pytest.mark.parametrize(("n_arms", "n_contexts"), [(2, 2), (3, 2), (3, 3)])
def test_all_maps_equal_every_map_written_out(n_arms: int, n_contexts: int) -> None:
    """K^M experts one by one; maps whose arm is not eligible abstain."""
    gamma, rng = 0.15, np.random.default_rng(n_arms + 10 * n_contexts)
    policy, X = EXP4(experts="all maps", gamma=gamma), np.eye(n_contexts)
    state = policy.init(n_arms, n_contexts)
    maps = np.array(list(itertools.product(range(n_arms), repeat=n_contexts)))
    log_weights = np.zeros(len(maps))
    assert len(maps) == n_arms**n_contexts
    for t in range(1, 300):
        place = int(rng.integers(n_contexts))
        eligible = some(rng, n_arms) if t % 3 == 0 else np.ones(n_arms, dtype=bool)
        choices, weights = maps[:, place], np.exp(log_weights - log_weights.max())
        shares = np.array([weights[choices == a].sum() for a in range(n_arms)]) * eligible
        p = (1 - gamma) * shares / shares.sum() + gamma * eligible / eligible.sum()
        np.testing.assert_allclose(policy.probabilities(state, t, X[place], eligible), p, rtol=0, atol=1e-12)
        choice, reward = policy.decide(state, t, X[place], coins(rng), eligible), float(rng.random())
        log_weights += gamma / n_arms * (choices == choice.arm) * reward / p[choice.arm]
        policy.update(state, Interaction(t=t, x=X[place], arm=choice.arm, reward=reward, propensity=choice.propensity))


def advise(theta: Float64, x: Float64, eligible: Bool) -> Float64:
    """Write the advice out, expert by expert: (N + K, K)."""
    n_arms, n_experts, _ = theta.shape
    rows = []
    for i in range(n_experts):
        scores = {a: float(theta[a, i] @ x) for a in range(n_arms) if eligible[a]}
        rows.append(max(scores, key=scores.__getitem__))
    for arm in range(n_arms):
        rows.append(next(a % n_arms for a in range(arm, 2 * n_arms) if eligible[a % n_arms]))
    return np.eye(n_arms)[rows]


def test_exp4_is_the_paper_s() -> None:
    gamma, n_arms, rng = 0.2, 3, np.random.default_rng(4)
    policy = EXP4(gamma=gamma, n_experts=7, seed=5)
    state = policy.init(n_arms, 2)
    assert isinstance(state, ExpertSums)
    weights = np.ones(7 + n_arms)
    for t in range(1, 200):
        x, eligible = rng.normal(size=2), some(rng, n_arms)
        advice = advise(state["theta"], x, eligible)
        p = (1 - gamma) * weights @ advice / weights.sum() + gamma * eligible / eligible.sum()
        np.testing.assert_allclose(policy.probabilities(state, t, x, eligible), p, rtol=0, atol=1e-12)
        c, reward = policy.decide(state, t, x, coins(rng), eligible), float(rng.random())
        policy.update(state, Interaction(t=t, x=x, arm=c.arm, reward=reward, propensity=c.propensity, tag=c.tag))
        weights *= np.exp(gamma / n_arms * advice[:, c.arm] * reward / p[c.arm])


def test_exp4p_is_the_paper_s() -> None:
    horizon, delta, n_arms, rng = 500, 0.1, 3, np.random.default_rng(6)
    policy = EXP4P(horizon=horizon, delta=delta, n_experts=7, seed=5)
    state = policy.init(n_arms, 2)
    n_experts = 7 + n_arms + 1
    weights, p_min = np.ones(n_experts), math.sqrt(math.log(n_experts) / (n_arms * horizon))
    for t in range(1, 200):
        x, eligible = rng.normal(size=2), some(rng, n_arms)
        n_eligible = eligible.sum()
        advice = np.vstack([advise(state["theta"], x, eligible), eligible / n_eligible])
        p = np.where(eligible, (1 - n_eligible * p_min) * weights @ advice / weights.sum() + p_min, 0.0)
        np.testing.assert_allclose(policy.probabilities(state, t, x, eligible), p, rtol=0, atol=1e-12)
        c, reward = policy.decide(state, t, x, coins(rng), eligible), float(rng.random())
        policy.update(state, Interaction(t=t, x=x, arm=c.arm, reward=reward, propensity=c.propensity, tag=c.tag))
        y_hat = advice[:, c.arm] * reward / p[c.arm]
        v_hat = np.array([sum(row[a] / p[a] for a in range(n_arms) if eligible[a]) for row in advice])
        weights *= np.exp(p_min / 2 * (y_hat + v_hat * math.sqrt(math.log(n_experts / delta) / (n_arms * horizon))))


def test_floor_of_exp4p_is_for_arms_not_for_experts() -> None:
    policy, x = EXP4P(horizon=1000, n_experts=5, p_min=0.05), np.ones(2)
    state = policy.init(3, 2)
    for t in range(400):  # arm 1 always pays, so in the end only experts that advise it are trusted
        for arm in range(3):
            policy.update(state, Interaction(t=t, x=x, arm=arm, reward=float(arm == 1), propensity=1 / 3))
    chances = policy.probabilities(state, 1, x, np.ones(3, dtype=bool))
    assert chances.min() >= 0.05
    np.testing.assert_allclose(chances, [0.05, 0.9, 0.05], atol=1e-3)
    trust = policy.trust(state)
    assert trust.min() < 1e-3
    assert trust.sum() == pytest.approx(1.0)


def test_rates_are_the_theorems() -> None:
    assert EXP4(horizon=3000, n_experts=94).rate(6) == math.sqrt(6 * math.log(100) / ((math.e - 1) * 3000))
    maps = EXP4(experts="all maps", horizon=3000, n_contexts=8).rate(6)
    assert maps == pytest.approx(math.sqrt(6 * math.log(6**8) / ((math.e - 1) * 3000)))
    assert EXP4P(horizon=3000, n_experts=93).floor(6) == math.sqrt(math.log(100) / (6 * 3000))


def test_experts_advise_eligible_arms_only_and_follow_from_their_seed() -> None:
    rng = np.random.default_rng(0)
    experts = LinearExperts.draw(n_experts=9, n_arms=4, dim=3, seed=1)
    same, other = (LinearExperts.draw(n_experts=9, n_arms=4, dim=3, seed=seed) for seed in (1, 2))
    np.testing.assert_array_equal(experts.theta, same.theta)
    assert not np.array_equal(experts.theta, other.theta)
    for _ in range(50):
        x, eligible = rng.normal(size=3), some(rng, 4)
        np.testing.assert_array_equal(experts.advice(x, eligible), advise(experts.theta, x, eligible))
        assert eligible[experts.chosen(x, eligible)].all()


def test_tag_brings_back_what_was_eligible() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        eligible = some(rng, 31)
        tag = barred_tag(eligible)
        assert 0 <= tag < 2**31
        np.testing.assert_array_equal(from_tag(tag, 31, int(np.flatnonzero(eligible)[0])), eligible)


def test_tag_of_many_arms_brings_back_what_is_known_of_them() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        eligible = some(rng, 45)
        tag = barred_tag(eligible)
        assert 0 <= tag < 2**31
        np.testing.assert_array_equal(
            from_tag(tag, 45, int(np.flatnonzero(eligible)[0])), np.append(eligible[:31], np.ones(14, dtype=bool))
        )
        np.testing.assert_array_equal(known_eligible(eligible), np.append(eligible[:31], np.ones(14, dtype=bool)))


def test_exp4_takes_rows_back_and_exp4p_refuses() -> None:
    eligible = np.ones(3, dtype=bool)
    for experts in (EXP4(gamma=0.1, n_experts=4), EXP4(gamma=0.1, experts="all maps")):
        state, x = experts.init(3, 2), np.array([1.0, -1.0])
        before = experts.probabilities(state, 1, x, eligible)
        for weight in (1.0, -1.0):
            experts.update(state, Interaction(t=1, x=x, arm=1, reward=0.5, propensity=0.25, weight=weight))
        np.testing.assert_array_equal(experts.probabilities(state, 1, x, eligible), before)
    policy = EXP4P(horizon=100, n_experts=4)
    with pytest.raises(DecisionError, match="'EXP4P' cannot take back"):
        policy.update(policy.init(3, 2), Interaction(t=1, x=np.ones(2), arm=1, reward=0.5, weight=-1.0))


def test_merging_needs_the_same_experts() -> None:
    policy = EXP4(gamma=0.1, n_experts=4)
    one, two = (armlet.Bandit(["a", "b"], 2, policy=policy, seed=seed) for seed in (1, 2))
    for arm in ("c", "d"):
        one.add_arm(arm)
    for arm in ("d", "c"):
        two.add_arm(arm)
    with pytest.raises(MergeError, match="arms were added in another order"):
        one.merge(two)


def test_wrong_settings_are_named() -> None:
    with pytest.raises(ValueError, match="experts is 'trees'; choose 'linear' or 'all maps'"):
        EXP4(experts="trees", gamma=0.1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="horizon is None and gamma is None; give the one or the other"):
        EXP4()
    with pytest.raises(ValueError, match="n_contexts is None; give a whole number of at least 1"):
        EXP4(experts="all maps", horizon=100)
    with pytest.raises(ValueError, match="n_experts is 0"):
        EXP4P(horizon=100, n_experts=0)
    with pytest.raises(ValueError, match="seed is -1"):
        EXP4(gamma=0.1, seed=-1)
    with pytest.raises(ValueError, match=r"delta is 2; give a chance of failure between 0 and 1"):
        EXP4P(horizon=100, delta=2)
    with pytest.raises(ValueError, match=r"p_min is .*, above 1/6 for 6 arms: horizon is 10; use at least 29"):
        armlet.Bandit(range(6), 2, policy=EXP4P(horizon=10))
    armlet.Bandit(range(6), 2, policy=EXP4P(horizon=29))
    for policy in (EXP4(gamma=0.1), EXP4P(horizon=100)):
        with pytest.raises(TypeError, match="keeps no linear estimates; ask predict_proba"):
            armlet.Bandit([0, 1], 2, policy=policy, seed=0).predict([[1.0, 2.0]])


def test_experts_beat_uniform_play() -> None:
    environment, r = FigureA.draw(np.random.default_rng(3)), (-6.0, 6.0)

    def regret(policy: Policy) -> float:
        result = simulate(environment, policy, horizon=2000, runs=2, seed=1, method="python", engine="serial")
        return float(result.regret[:, -1].mean())

    uniform = regret(Uniform())
    assert regret(EXP4(gamma=0.2, reward_range=r, outside="clip")) < 0.8 * uniform
    assert regret(EXP4(experts="all maps", gamma=0.4, reward_range=r, outside="clip")) < 0.9 * uniform
    assert regret(EXP4P(horizon=2000, p_min=0.05, reward_range=r, outside="clip")) < 0.9 * uniform
