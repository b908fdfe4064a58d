"""Policies for finitely many contexts against their papers, written the long way: EpsilonNGreedy, UCB1 and Exp3."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import armlet
from armlet.environments import FigureA
from armlet.policies.uniform import Uniform
from armlet.simulation.run import simulate
from armlet.testing.policies import check_memory
from armlet.types import Coins, Float64, Interaction, Policy
from armlet_lab.literature.table import ContextUse
from armlet_lab.literature.tabular import UCB1, EpsilonNGreedy, Exp3, Means
from support.contract import check_settings

ALL = np.array([True, True, True])
ONE, TWO = np.array([1.0, 0.0]), np.array([0.0, 1.0])
MODES: tuple[ContextUse, ...] = ("ignored", "table")


def row(x: Float64, arm: int, reward: float, propensity: float = 1.0, weight: float = 1.0) -> Interaction:
    return Interaction(t=1, x=x, arm=arm, reward=reward, propensity=propensity, weight=weight)


@pytest.mark.parametrize(
    "policy",
    [
        EpsilonNGreedy(gap=0.5, c=0.5, contexts="ignored"),
        EpsilonNGreedy(gap=0.3, c=0.05, contexts="table"),
        UCB1(contexts="ignored"),
        UCB1(contexts="table", reward_range=(-2.0, 3.0), width_scale=0.3),
        Exp3(horizon=1000, contexts="ignored"),
        Exp3(gamma=0.3, contexts="table", reward_range=(-2.0, 3.0)),
    ],
    ids=repr,
)
def test_policy_keeps_its_promises(policy: Policy) -> None:
    check_settings(policy, n_arms=4, dim=3)


@pytest.mark.parametrize("contexts", MODES)
def test_epsilon_n_greedy_is_the_paper_s(contexts: ContextUse) -> None:
    policy, rng = EpsilonNGreedy(gap=0.5, c=0.4, contexts=contexts), np.random.default_rng(0)
    state, history = policy.init(3, 2), list[tuple[int, int, float]]()
    for t in range(1, 200):
        place = int(rng.integers(2))
        mine = [(arm, r) for where, arm, r in history if contexts == "ignored" or where == place]
        rate = min(1.0, 0.4 * 3 / (0.5**2 * (len(mine) + 1)))
        means = [
            np.mean([r for arm, r in mine if arm == a]) if any(arm == a for arm, _ in mine) else 9 for a in (0, 1, 2)
        ]
        best = [a for a in (0, 1, 2) if means[a] == max(means)]
        expected = [rate / 3 + (1 - rate) * (a in best) / len(best) for a in (0, 1, 2)]
        x = (ONE, TWO)[place]
        np.testing.assert_allclose(policy.probabilities(state, t, x, ALL), expected, rtol=1e-12)
        arm, reward = int(rng.integers(3)), float(rng.normal())
        policy.update(state, row(x, arm, reward))
        history.append((place, arm, reward))


def test_clock_of_a_context_counts_the_rows_learned_there() -> None:
    policy = EpsilonNGreedy(gap=1.0, c=1.0, contexts="table")
    state, coins = policy.init(3, 2), Coins(0.999999, 0, 0, 0)
    for _ in range(5):
        policy.update(state, row(ONE, 0, 1.0))
    # six rows in clock: rate 3 / 6 at ONE; at TWO the clock is still 1, so every step explores
    assert policy.probabilities(state, 999, ONE, ALL)[0] == pytest.approx(0.5 / 3)
    assert policy.decide(state, 999, TWO, coins, ALL).explored
    assert not policy.decide(state, 999, ONE, coins, ALL).explored


@pytest.mark.parametrize("contexts", MODES)
def test_ucb1_is_the_paper_s(contexts: ContextUse) -> None:
    policy, rng = UCB1(contexts=contexts, reward_range=(-1.0, 3.0)), np.random.default_rng(1)
    state = policy.init(3, 2)
    counts, sums = np.zeros((2, 3)), np.zeros((2, 3))
    for t in range(1, 300):
        place = int(rng.integers(2))
        n, total = (counts[place], sums[place]) if contexts == "table" else (counts.sum(axis=0), sums.sum(axis=0))
        if n.min() == 0:
            best = {a for a in range(3) if n[a] == 0}
        else:
            bounds = [total[a] / n[a] + math.sqrt(2 * math.log(n.sum()) / n[a]) for a in range(3)]
            best = {a for a in range(3) if bounds[a] > max(bounds) - 1e-12}
        x = (ONE, TWO)[place]
        assert set(np.flatnonzero(policy.probabilities(state, t, x, ALL))) <= best
        arm = policy.decide(state, t, x, Coins(0.0, 0, int(rng.integers(2**63)), 0), ALL).arm
        reward = float(rng.uniform(-1, 3))
        policy.update(state, row(x, arm, reward))
        counts[place, arm] += 1
        sums[place, arm] += (reward + 1) / 4


def test_ucb1_plays_each_arm_once_first_and_the_same_whatever_the_unit_of_rewards() -> None:
    played = []
    for scale in (1.0, 1024.0):  # a power of two, so that nothing rounds
        policy = UCB1(reward_range=(0.0, scale))
        state, rng, arms = policy.init(3, 2), np.random.default_rng(2), []
        for t in range(1, 100):
            choice = policy.decide(state, t, ONE, Coins(0.0, 0, int(rng.integers(2**63)), 0), ALL)
            arms.append(choice.arm)
            policy.update(state, row(ONE, choice.arm, scale * rng.random()))
        assert sorted(arms[:3]) == [0, 1, 2]
        played.append(arms)
    assert played[0] == played[1]


@pytest.mark.parametrize("contexts", MODES)
def test_exp3_is_the_paper_s(contexts: ContextUse) -> None:
    gamma, policy, rng = 0.2, Exp3(gamma=0.2, contexts=contexts), np.random.default_rng(3)
    state, weights = policy.init(3, 2), np.ones((2, 3))
    for t in range(1, 200):
        place = int(rng.integers(2)) if contexts == "table" else 0
        x, w = (ONE, TWO)[place], weights[place]
        p = (1 - gamma) * w / w.sum() + gamma / 3
        np.testing.assert_allclose(policy.probabilities(state, t, x, ALL), p, rtol=1e-11)
        arm, reward = int(rng.integers(3)), float(rng.random())
        policy.update(state, row(x, arm, reward, propensity=p[arm]))
        w[arm] *= math.exp(gamma * (reward / p[arm]) / 3)


def test_exp3_rate_is_the_theorem_s() -> None:
    assert Exp3(horizon=5000).rate(6) == math.sqrt(6 * math.log(6) / ((math.e - 1) * 5000))
    assert Exp3(horizon=1).rate(6) == 1.0


def test_exp3_weights_do_not_overflow() -> None:
    policy = Exp3(gamma=1e-3)
    state = policy.init(3, 2)
    for _ in range(3000):  # a log-weight of 10^6 in the end
        policy.update(state, row(ONE, 1, 1.0, propensity=1e-6))
    np.testing.assert_allclose(policy.probabilities(state, 1, ONE, ALL), [1e-3 / 3, 1 - 2e-3 / 3, 1e-3 / 3], rtol=1e-9)


@pytest.mark.parametrize("policy", [EpsilonNGreedy(gap=0.5), UCB1(), Exp3(gamma=0.1)], ids=repr)
def test_rows_are_taken_back_and_corrected_exactly(policy: EpsilonNGreedy | UCB1 | Exp3) -> None:
    kept, touched = policy.init(3, 2), policy.init(3, 2)
    for state in (kept, touched):
        policy.update(state, row(ONE, 0, 0.25, propensity=0.5))  # type: ignore[arg-type]  # its own
    policy.update(touched, row(TWO, 1, 0.5, propensity=0.25))  # type: ignore[arg-type]
    wrong = Interaction(t=1, x=TWO, arm=1, reward=0.75, propensity=0.25, replaces=0.5)
    policy.update(touched, wrong)  # type: ignore[arg-type]
    policy.update(touched, row(TWO, 1, 0.75, propensity=0.25, weight=-1.0))  # type: ignore[arg-type]
    for name, array in kept.arrays().items():
        np.testing.assert_array_equal(touched.arrays()[name], array)


def test_new_arm_starts_level_with_the_others() -> None:
    policy = Exp3(gamma=0.2)
    state = policy.init(2, 2)
    for arm in (0, 1):
        policy.update(state, row(ONE, arm, 1.0, propensity=0.001))
    state.add_arm()
    np.testing.assert_allclose(policy.probabilities(state, 1, ONE, ALL), [1 / 3] * 3)


def test_wrong_settings_are_named() -> None:
    for wrong in (0, -1.0, math.nan, math.inf, "1", True, None):
        with pytest.raises(ValueError, match="gap is"):
            EpsilonNGreedy(gap=wrong)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="width_scale is"):
            UCB1(width_scale=wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="contexts is 'all'; choose 'ignored' or 'table'"):
        UCB1(contexts="all")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"horizon is 10 and gamma is 0\.5; give the one or the other"):
        Exp3(horizon=10, gamma=0.5)
    with pytest.raises(ValueError, match=r"gamma is 1\.5; give a positive number of at most 1"):
        Exp3(gamma=1.5)
    with pytest.raises(ValueError, match=r"horizon is 2.5; give a whole number"):
        Exp3(horizon=2.5)  # type: ignore[arg-type]
    for ends in ((1.0, 0.0), (0.0,), 5, "ab"):
        with pytest.raises(ValueError, match=r"reward_range is .*; give \(lowest, highest\)"):
            UCB1(reward_range=ends)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="UCB1 keeps no linear estimates; ask predict_proba"):
        armlet.Bandit([0, 1], 2, policy=UCB1(), seed=0).predict([ONE])


def test_lists_from_files_are_settings_too() -> None:
    assert UCB1(reward_range=[0, 2]) == UCB1(reward_range=(0.0, 2.0))  # type: ignore[arg-type]
    assert hash(Exp3(gamma=0.1, reward_range=[0, 2])) == hash(Exp3(gamma=0.1, reward_range=(0.0, 2.0)))  # type: ignore[arg-type]


def test_reward_outside_of_its_range_changes_nothing() -> None:
    for policy in (UCB1(), Exp3(gamma=0.1)):
        state = policy.init(3, 2)
        with pytest.raises(ValueError, match=r"reward is 1.5 but reward_range is \(0.0, 1.0\)"):
            policy.update(state, row(ONE, 0, 1.5))  # type: ignore[arg-type]  # its own
        assert state.n_contexts == 0


def test_tables_beat_uniform_play_and_ignoring_contexts_is_a_floor() -> None:
    environment, r = FigureA.draw(np.random.default_rng(3)), (-6.0, 6.0)

    def regret(policy: Policy) -> float:
        result = simulate(environment, policy, horizon=2000, runs=4, seed=1, method="python", engine="serial")
        return float(result.regret[:, -1].mean())

    uniform = regret(Uniform())
    greedy = {mode: regret(EpsilonNGreedy(gap=0.5, c=0.1, contexts=mode)) for mode in MODES}
    assert greedy["table"] < greedy["ignored"] < uniform
    assert regret(UCB1(contexts="table", width_scale=0.2, reward_range=r, outside="clip")) < 0.5 * uniform
    assert regret(Exp3(contexts="table", gamma=0.4, reward_range=r, outside="clip")) < 0.9 * uniform


def test_ignoring_contexts_has_linear_regret_where_the_best_arm_depends_on_them() -> None:
    # arm 0 is right for one context and arm 1 for the other, so that either is right half of the time
    environment = FigureA(theta=((1.0, -1.0), (-1.0, 1.0)), zero="resample")
    regrets = {}
    for mode in MODES:
        policy = EpsilonNGreedy(gap=0.5, c=0.1, contexts=mode)
        result = simulate(
            environment,
            policy,
            horizon=2000,
            runs=2,
            seed=1,
            method="python",
            engine="serial",
            checkpoints=[1000, 2000],
        )
        regrets[mode] = result.regret.mean(axis=0)
    assert regrets["ignored"][1] > 1.8 * regrets["ignored"][0]
    assert regrets["table"][1] < 0.1 * regrets["ignored"][1]


class RemembersEveryStep(EpsilonNGreedy):
    """Says that its memory grows with contexts, and writes a row for each step."""

    def update(self, state: Means, interaction: Interaction) -> None:
        EpsilonNGreedy.update(self, state, replace(interaction, x=interaction.x + interaction.t))


def test_contract_refuses_a_table_that_grows_with_time() -> None:
    check_memory(EpsilonNGreedy(gap=0.5, contexts="table"), 4, 3)
    with pytest.raises(AssertionError, match=r"the state took .* bytes, but 27 contexts take"):
        check_memory(RemembersEveryStep(gap=0.5, contexts="table"), 4, 3)
