"""What a bandit does with policies of the literature: states that are no sums, ranges of rewards."""

from __future__ import annotations

import numpy as np
import pytest

import armlet
from armlet import Bandit, Policy
from armlet_lab import literature
from armlet_lab.literature.running_minimum import RunningMinimumEpsilonGreedy


def test_policies_without_sums_say_so() -> None:
    bandit = armlet.Bandit(["a", "b"], 1, policy=literature.Exp3(horizon=10), seed=1)
    with pytest.raises(TypeError, match="Exp3 keeps no sums of rows by arm"):
        bandit.inference.intervals()


N_ARMS, DIM, SEED = 3, 2, 11


def make(policy: Policy) -> armlet.Bandit:
    return armlet.Bandit(range(N_ARMS), DIM, policy=policy, seed=SEED)


def contexts(n: int) -> np.ndarray:
    return np.random.default_rng(5).normal(size=(n, DIM))


def test_epoch_greedy_on_a_finite_class_keeps_to_its_epochs() -> None:
    """Its best policy depends on x from the start, so its choices are no ties of all arms."""
    policy = literature.EpochGreedy(oracle="finite", n_policies=5)
    bandit = make(policy)
    explored = [bandit.decide(x).explored for x in contexts(60)]
    assert explored == [policy.explores(t, n_arms=N_ARMS, dim=DIM) for t in range(1, 61)]


def test_range_must_lie_in_that_of_the_policy() -> None:
    narrow = literature.EXP4(horizon=100, reward_range=(0.0, 1.0))
    with pytest.raises(ValueError, match=r"reward_range is \(0\.0, 5\.0\), but EXP4 learns from 0\.0 to 1\.0 only"):
        Bandit(["a", "b"], 1, policy=narrow, reward_range=(0, 5))
    assert Bandit(["a", "b"], 1, policy=narrow, reward_range=(0.25, 0.5)).settings.reward_range == (0.25, 0.5)
    with pytest.raises(ValueError, match="Banditron learns from"):
        Bandit(["a", "b"], 1, policy=literature.Banditron(), reward_range=(0, 5))
    costs = literature.EXP4(horizon=100, reward_range=(-4.0, 0.0))  # it sees minus the cost
    assert Bandit(["a", "b"], 1, policy=costs, objective="min", reward_range=(0, 4)).settings.reward_range == (0.0, 4.0)
    with pytest.raises(ValueError, match="EXP4 learns from"):
        Bandit(["a", "b"], 1, policy=costs, objective="min", reward_range=(-4, 0))


def test_since_a_base_without_a_common_arm_is_all_of_it() -> None:
    """Policies with a table of contexts took the places of no arm for an index of another kind."""
    policy = literature.Exp3(gamma=0.1)
    bandit = Bandit(["new"], 2, policy=policy, seed=1)
    bandit.learn(bandit.decide([1.0, 0.0]), 1.0)
    base = Bandit(["gone"], 2, policy=policy, seed=1)
    base.add_arm("left")
    assert bandit.difference(base).digest() == bandit.digest()
    other = Bandit(["gone"], 2, policy=policy, seed=1)
    other.learn(other.decide([0.0, 1.0]), 1.0)
    assert bandit.difference(other).t == 0


def test_a_policy_without_estimates_has_no_greedy_law() -> None:
    with pytest.raises(TypeError, match="keeps no linear estimates"):
        make(literature.Exp3(horizon=10)).predict_proba(contexts(4), mode="greedy")


@pytest.mark.parametrize(
    "policy",
    [
        RunningMinimumEpsilonGreedy(start=1),
        literature.PEGE(),
        literature.EpochGreedy(),
        literature.EpochGreedy(oracle="tabular"),
    ],
    ids=repr,
)
def test_without_a_reward_every_step_explores_and_is_learned(policy: Policy) -> None:
    bandit = make(policy)
    decisions = [bandit.decide(x) for x in contexts(60)]
    assert all(decision.explored for decision in decisions)
    for decision in decisions:
        bandit.learn(decision, 1.0)
    assert bandit.digest() != make(policy).digest()


def test_copies_of_a_table_are_exact_and_go_their_own_way() -> None:
    bandit = Bandit(["a", "b"], 2, policy=literature.UCB1(), seed=5)
    for x in contexts(30):
        bandit.learn(bandit.decide(x), 0.5)
    twin = bandit.copy()
    assert repr(bandit.decide([1.0, 0.0])) == repr(twin.decide([1.0, 0.0]))
    assert twin.digest() == bandit.digest()
    twin.learn(twin.decide([1.0, 0.0]), 1.0)
    assert twin.digest() != bandit.digest()


def test_a_state_that_is_no_sum_has_no_difference() -> None:
    clicks = Bandit(["a", "b"], 1, policy=literature.Banditron(), seed=1)
    with pytest.raises(armlet.errors.MergeError, match="there is no difference"):
        clicks.copy().difference(clicks)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (literature.EpochGreedy(), literature.EpochGreedy(oracle="tabular"), "oracle is"),
        (literature.Exp3(gamma=0.1, reward_range=(-9, 9)), literature.Exp3(gamma=0.1), "reward_range"),
    ],
    ids=["oracle", "reward range"],
)
def test_a_policy_that_means_another_state_cannot_take_over(old: Policy, new: Policy, message: str) -> None:
    bandit = make(old)
    with pytest.raises(ValueError, match=message):
        bandit.replace(policy=new)
    assert bandit.policy == old
