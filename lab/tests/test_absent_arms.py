"""Arms that are retired or never eligible: what policies that count or compare all of their arms do about them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import armlet
from armlet.errors import PolicyError
from armlet.testing.policies import check_absent_arms, check_many_arms
from armlet.types import Bool, Choice, Coins, Float64, Interaction, Policy
from armlet_lab import literature
from armlet_lab.literature.epoch_greedy import EpochGreedy
from armlet_lab.literature.experts import ExpertSums, LinearExperts
from armlet_lab.literature.greedy_first import NEVER, GreedyFirst
from armlet_lab.literature.real_lin_exp3 import RealLinExp3
from armlet_lab.literature.running_minimum import RunningMinimumEpsilonGreedy
from armlet_lab.literature.scrible import SCRiBLe
from armlet_lab.literature.tabular import UCB1, Means, Tabular

COINS = Coins(0.5, 2**62, 2**61, 0)


def play(bandit: armlet.Bandit, pays: list[float], steps: int, dim: int = 2) -> list[str | int]:
    """Play arms that pay the same in every context; give what was played."""
    rng, played = np.random.default_rng(3), []
    for _ in range(steps):
        decision = bandit.decide(rng.normal(size=dim))
        bandit.learn(decision, pays[int(decision.arm)])
        played.append(decision.arm)
    return played


@pytest.mark.parametrize("contexts", ["ignored", "table"])
def test_scrible_goes_on_learning_below_the_middle_once_an_arm_is_retired(contexts: str) -> None:
    bandit = armlet.Bandit(range(3), 1, policy=SCRiBLe(eta=0.2, contexts=contexts), seed=1)  # type: ignore[arg-type]
    bandit.retire_arm(0)
    shares = []
    for _ in range(6000):
        decision = bandit.decide([1.0])
        bandit.learn(decision, 0.2 if decision.arm == 2 else 0.1)
        shares.append(bandit.predict_proba([[1.0]])[0][2])
    # 0.8 against 0.9 in losses: a retired arm that counts as the middle of the range pins the share at 0.9 / 1.7
    assert np.mean(shares[-1000:]) > 0.75


def test_scrible_does_not_prefer_an_arm_for_having_been_away() -> None:
    bandit = armlet.Bandit(range(3), 1, policy=SCRiBLe(eta=0.2), seed=1)
    bandit.retire_arm(0)
    for _ in range(2000):
        bandit.learn(bandit.decide([1.0]), 0.2)
    bandit.restore_arm(0)
    # all three pay the same, and the losses of those that played are noise around what the one that was away is charged
    assert bandit.predict_proba([[1.0]])[0][0] < 0.5


def diverse(policy: Policy, retire: int | None, eligible: list[int] | None) -> armlet.Bandit:
    """Play three arms, each best in its own direction of contexts that explore by themselves."""
    bandit, rng = armlet.Bandit(range(3), 2, policy=policy, seed=2), np.random.default_rng(5)
    theta = np.array([[1.0, 0.0], [-0.5, 0.9], [-0.5, -0.9]])
    for step in range(900):
        if step == 300 and retire is not None:
            bandit.retire_arm(retire)
        x = rng.normal(size=2)
        decision = bandit.decide(x, eligible=eligible)
        bandit.learn(decision, float(theta[int(decision.arm)] @ x))
    return bandit


@pytest.mark.parametrize(("retire", "eligible"), [(None, None), (0, None), (None, [1, 2])])
def test_greedy_first_stays_greedy_whatever_an_arm_that_cannot_play_has_seen(
    retire: int | None, eligible: list[int] | None
) -> None:
    assert diverse(GreedyFirst(lambda0=0.3, t0=60), retire, eligible).state.switched == NEVER


def test_greedy_first_switches_for_the_weakest_arm_that_could_play() -> None:
    policy, eligible = GreedyFirst(lambda0=0.5, t0=1), np.array([True, True, False, True])
    state, x = policy.init(4, 1), np.array([1.0])
    for arm, rows in enumerate((9, 2, 0, 1)):
        for _ in range(rows):
            state.everything.add(arm, x, 1.0)
    choice = policy.decide(state, 13, x, COINS, eligible)
    assert choice.tag == 1 + (1 if choice.arm == 3 else 3)  # of those that may play, next to the one that is played
    row = Interaction(t=13, x=x, arm=choice.arm, reward=1.0, explored=choice.explored, tag=choice.tag)
    # 13 rows by then: the threshold is 1.625, which the arm with one row is below and the one with two is not
    policy.update(state, row)
    assert state.switched == 13
    alone = policy.decide(policy.init(4, 1), 1, x, COINS, np.array([False, False, True, False]))
    assert (alone.arm, alone.tag) == (2, 3)
    assert policy.decide(policy.init(4, 1), 1, x, COINS, np.ones(4, dtype=bool)).tag == 0


@pytest.mark.parametrize(
    "policy",
    [literature.EXP4(gamma=0.2, n_experts=10), literature.EXP4P(horizon=4000, n_experts=10, p_min=0.01)],
    ids=["EXP4", "EXP4P"],
)
def test_experts_decide_and_learn_once_a_late_arm_is_retired(policy: Policy) -> None:
    pays = [0.1] * 40
    pays[35], pays[7] = 1.0, 0.9
    bandit = armlet.Bandit(range(40), 2, policy=policy, seed=4)
    bandit.retire_arm(35)
    played = play(bandit, pays, 3000)
    assert 35 not in played
    assert np.mean([arm == 7 for arm in played[-500:]]) > 0.3  # 1/39 by chance


def test_an_expert_that_prefers_a_late_arm_abstains() -> None:
    policy, x, eligible = literature.EXP4(gamma=0.1, n_experts=50), np.array([1.0, -0.5]), np.arange(33) != 32
    state = policy.init(33, 2)
    assert isinstance(state, ExpertSums)
    state["gain"][:] = np.arange(50.0) * 20
    chosen = LinearExperts(state["theta"]).chosen(x)
    trust = np.exp(0.1 / 33 * np.append(np.arange(50.0) * 20, np.zeros(33)))
    heard = np.array([trust[(chosen == arm)].sum() if arm != 32 else 0.0 for arm in range(33)])
    expected = 0.9 * heard / heard.sum() + 0.1 * eligible / 32
    np.testing.assert_allclose(policy.probabilities(state, 1, x, eligible), expected, rtol=1e-12)


def test_exact_weights_of_real_lin_exp3_are_those_of_the_arms_that_played() -> None:
    policy = RealLinExp3(horizon=1000, eta=0.3, gamma=0.02)
    one, other, x = policy.init(3, 1), policy.init(2, 1), np.array([1.0])
    one["theta"][0] = 100.0  # the retired arm looked best by far
    for t in range(1, 50):
        arm = t % 2
        row = Interaction(t=t, x=x, arm=arm + 1, reward=float(arm), propensity=0.5, tag=1)
        policy.update(one, row)
        policy.update(other, Interaction(t=t, x=x, arm=arm, reward=float(arm), propensity=0.5))
    np.testing.assert_allclose(one["theta"][1:], other["theta"], rtol=1e-12)


def test_policies_of_a_finite_class_are_credited_for_what_they_would_have_played() -> None:
    policy, x = EpochGreedy(oracle="finite", n_policies=30), np.array([1.0, 0.3])
    eligible = np.array([False, True, True])
    state = policy.init(3, 2)
    choice = policy.decide(state, 1, x, COINS, eligible)
    policy.update(state, Interaction(t=1, x=x, arm=choice.arm, reward=-1.0, propensity=0.5, tag=choice.tag))
    theta = state.policies.theta  # type: ignore[attr-defined]  # (K, N, d)
    would = np.array([1, 2])[(theta[1:] @ x).argmax(axis=0)]
    np.testing.assert_array_equal(state["value"] == -2.0, would == choice.arm)  # type: ignore[index]


def test_the_smallest_difference_is_that_of_arms_that_could_play() -> None:
    policy, eligible = RunningMinimumEpsilonGreedy(start=1.0), np.array([True, True, False])
    state, x = policy.init(3, 1), np.array([1.0])
    for arm, reward in ((0, 1.0), (1, 3.0), (2, 3.0)):
        state.explored.add(arm, x, reward)
    choice = policy.decide(state, 9, x, COINS, eligible)
    policy.update(state, Interaction(t=9, x=x, arm=choice.arm, reward=1.0, explored=False, tag=choice.tag))
    assert state.delta_min == pytest.approx(1.0)  # theta_hat is 1/2 and 3/2; with the third arm it would be a tie


# ---- the contract's power to refuse


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitsForAllArms(UCB1):
    """Plays by turns until every arm was tried, which one that cannot play never is."""

    def scores(self, state: Means, x: Float64) -> Float64:
        return UCB1.scores(self, state, x) if state.read("n", x).all() else np.zeros(state.n_arms)


@dataclass(frozen=True, slots=True, kw_only=True)
class RanksDeadArms(Tabular):
    """Plays uniformly unless the arm with the best mean may play: a retired one blocks it."""

    rewards = "any"

    def init(self, n_arms: int, dim: int) -> Means:
        return Means(n_arms, dim, self.contexts)

    def probabilities(self, state: Means, t: int, x: Float64, eligible: Bool) -> Float64:  # noqa: ARG002
        best = int(state.means(x).argmax())
        return np.eye(state.n_arms)[best] if eligible[best] else eligible / np.count_nonzero(eligible)

    def decide(self, state: Means, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        chances = self.probabilities(state, t, x, eligible)
        arms = np.flatnonzero(chances)
        arm = int(arms[(coins.pick * len(arms)) >> 64])
        return Choice(arm, float(chances[arm]), True)

    def update(self, state: Means, interaction: Interaction) -> None:
        state.add(interaction, interaction.reward, None)


@pytest.mark.parametrize("faulty", [WaitsForAllArms(), RanksDeadArms()], ids=["waits", "ranks"])
def test_contract_refuses_policies_that_absent_arms_lead_astray(faulty: Policy) -> None:
    with pytest.raises(AssertionError, match="the best of the others has a share of"):
        check_absent_arms(faulty, 4, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class CountsInBits(UCB1):
    """Takes the numbers of arms for bits of a word."""

    def decide(self, state: Means, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        choice = UCB1.decide(self, state, t, x, coins, eligible)
        return choice._replace(tag=sum(1 << int(arm) for arm in np.flatnonzero(~eligible)))


def test_contract_refuses_a_policy_that_is_for_fewer_arms_than_it_says() -> None:
    with pytest.raises(PolicyError, match="whole number of 32 bits"):
        check_many_arms(CountsInBits(), 4, 3)
