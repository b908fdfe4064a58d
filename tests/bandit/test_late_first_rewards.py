"""Choices before the first reward has come: ties of all arms that do not depend on x, so they explore and are learned.

Where rewards are prompt the first step is learned before the second, so such runs are what they always were; their
digests are those of the code before this rule.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import armlet
from armlet.environments.environment import FiniteEnvironment
from armlet.kernel import (
    AutoSchedule,
    AutoTunedStatistics,
    Schedule,
    Simulated,
    Statistics,
    coins,
    simulate_events,
    simulate_steps,
)
from armlet.reference.choice import below
from armlet.reference.schedule import Reference
from armlet.types import Interaction, Policy

N_ARMS, DIM, SEED = 3, 2, 11

LEARN_FROM_EXPLORED: list[Policy] = [
    armlet.Algorithm1(p=3),
    armlet.Algorithm1(p=4.5, warmup="uniform"),
    armlet.AutoAlgorithm1(horizon=1000),
    armlet.ContextualUCB(history="explored", p=3),
]


def make(policy: Policy) -> armlet.Bandit:
    return armlet.Bandit(range(N_ARMS), DIM, policy=policy, seed=SEED)


def contexts(n: int) -> np.ndarray:
    return np.random.default_rng(5).normal(size=(n, DIM))


@pytest.mark.parametrize("policy", LEARN_FROM_EXPLORED, ids=repr)
def test_without_a_reward_every_step_explores_and_is_learned(policy: Policy) -> None:
    bandit, X = make(policy), contexts(60)
    decisions = [bandit.decide(x) for x in X]
    assert all(d.explored for d in decisions)
    turns = [d for d in decisions if d.propensity == 1.0]  # a warm-up by turns is as it was
    drawn = [d for d in decisions if d.propensity != 1.0]
    assert len(turns) < 0.7 * len(decisions)
    assert all(d.propensity == 1 / N_ARMS for d in drawn)
    assert [d.arm for d in drawn] == [below(coins(SEED, d.t).pick, N_ARMS) for d in drawn]
    before = {name: array.tobytes() for name, array in bandit.state.arrays().items()}
    bandit.learn(drawn[-1], 1.0)
    assert before != {name: array.tobytes() for name, array in bandit.state.arrays().items()}


@pytest.mark.parametrize("policy", LEARN_FROM_EXPLORED, ids=repr)
def test_probabilities_before_the_first_reward_are_those_of_the_draw(policy: Policy) -> None:
    bandit = make(policy)
    for x in contexts(60):
        chances = bandit.predict_proba([x], eligible=[0, 2])[0]
        decision = bandit.decide(x, eligible=[0, 2])
        assert decision.propensity == chances[decision.arm]
        assert decision.propensity == 1.0 or chances.tolist() == [0.5, 0.0, 0.5]


@pytest.mark.parametrize("policy", LEARN_FROM_EXPLORED, ids=repr)
def test_a_batch_before_the_first_reward_decides_as_one_by_one(policy: Policy) -> None:
    one, many, X = make(policy), make(policy), contexts(60)
    assert [repr(one.decide(x)) for x in X] == [repr(d) for d in many.decide_many(X)]


@pytest.mark.parametrize("policy", LEARN_FROM_EXPLORED[:3], ids=repr)
def test_the_policy_says_what_the_kernel_plays(policy: armlet.Algorithm1) -> None:
    bandit, eligible = make(policy), np.ones(N_ARMS, dtype=bool)
    first = None
    for x in contexts(60):
        t = bandit.t + 1
        said = policy.decide(bandit.state, t, x, coins(SEED, t), eligible)
        assert policy.exploration_rate(t, bandit.state) == (1.0 if t < 40 else policy.current_p(bandit.state) / t)
        assert bandit.predict_proba([x])[0].tolist() == policy.probabilities(bandit.state, t, x, eligible).tolist()
        decision = bandit.decide(x)
        assert (decision.arm, decision.propensity, decision.explored) == said[:3]
        first = first or decision
        if decision.t == 39:  # the first reward ends it
            bandit.learn(first, 1.0)


def test_a_forgotten_last_row_brings_it_back() -> None:
    bandit = make(armlet.Algorithm1(p=3))
    first, *_ = [bandit.decide([1.0, 0.0]) for _ in range(500)]
    bandit.learn(first, 1.0)
    assert not all(bandit.decide([1.0, 0.0]).explored for _ in range(50))
    bandit.forget(first, 1.0)
    assert all(bandit.decide([1.0, 0.0]).explored for _ in range(50))
    bandit.learn(first, 1.0)
    bandit.remove_arm(first.arm)  # and so does the removal of the only arm that was learned
    assert all(bandit.decide([1.0, 0.0]).explored for _ in range(50))


def test_a_policy_that_learns_from_every_step_exploits_ties_as_before() -> None:
    bandit = make(armlet.ScheduledEpsilonGreedy(p=3, units="free"))
    explored = [bandit.decide([1.0, 0.0]).explored for _ in range(200)]
    assert not all(explored)
    bandit.learn(bandit.decide([1.0, 0.0]), 1.0)
    assert bandit.state.n.sum() == 1.0


def test_reference_plays_the_same_steps_without_a_reward() -> None:
    bandit, reference = make(armlet.Algorithm1(p=3)), Reference(N_ARMS, DIM, 3, SEED)
    X, arrived = contexts(300), 100
    late = []
    for t, x in enumerate(X, start=1):
        decision, choice = bandit.decide(x), reference.decide(t, x)
        assert (decision.arm, decision.propensity, decision.explored) == choice[:3]
        late.append((x, decision, choice))
        if t > arrived:
            x, decision, choice = late.pop(0)
            bandit.learn(decision, float(t % 7))
            reference.update(x, choice, float(t % 7))
    assert np.array_equal(bandit.state.estimates(), reference.estimates())


ENVIRONMENT = FiniteEnvironment(
    contexts=np.array([[1.0, 0.0], [0.5, -1.0]]), chances=np.array([0.7, 0.3]), means=np.array([[0.1, 0.3], [0.4, 0.2]])
)


@pytest.mark.parametrize("simulate", [simulate_steps, simulate_events])
def test_a_simulation_that_starts_without_a_warm_up_learns_from_its_first_step(simulate) -> None:  # type: ignore[no-untyped-def]
    run = simulate(
        ENVIRONMENT,
        start=Statistics(2, 2),
        rule=Schedule(0.0, round_robin=False, learn_always=False),
        horizon=100,
        checkpoints=np.array([1, 100]),
        environment_seed=1,
        policy_seed=2,
    )
    assert run.explored.tolist() == [1.0, 1.0]


def digest(parts: list[object]) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def played(policy: Policy) -> str:
    bandit, rng = make(policy), np.random.default_rng(7)
    parts: list[object] = []
    for t in range(400):
        x = np.array([1.0, rng.integers(0, 3) - 1.0])
        decision = bandit.decide(x, eligible=[0, 2] if t % 5 == 4 else None)
        bandit.learn(decision, float(rng.normal() + decision.arm * x[1]))
        parts.append((decision.arm, decision.propensity.hex(), decision.explored))
    if isinstance(bandit.state, Statistics):  # what numpy's linear algebra makes of the others depends on the machine
        parts.append(bandit.state.records().tobytes())
    return digest(parts)


BEFORE = [
    "264b62b34af807e9",
    "e038bb7f67b85c48",
    "3a44bc61df8299d6",
    "d3db5d25a0aac251",
]  # in the order of the policies


@pytest.mark.parametrize(("policy", "before"), list(zip(LEARN_FROM_EXPLORED, BEFORE, strict=True)), ids=repr)
def test_runs_with_prompt_rewards_are_bit_for_bit_what_they_were(policy: Policy, before: str) -> None:
    assert played(policy) == before


def simulation(name: str) -> tuple[Callable[..., Simulated[Any]], Schedule | AutoSchedule]:
    """Return a way to simulate and its rule, made again: one that a module holds outlives the kernel at the end."""
    if name == "steps":
        return simulate_steps, Schedule(2.0, round_robin=True, learn_always=False)
    if name == "events":
        return simulate_events, Schedule(2.5, round_robin=False, learn_always=False)
    simulate = simulate_steps if name == "steps, auto" else simulate_events
    by_turns = simulate is simulate_events
    return simulate, AutoSchedule(horizon=3000.0, caution=1.0, start=2.0, most=0.25, round_robin=by_turns)


def simulated(name: str) -> str:
    simulate, rule = simulation(name)
    start = AutoTunedStatistics(2, 2) if "auto" in name else Statistics(2, 2)
    at = np.array([1, 10, 100, 3000])
    settings = {"rule": rule, "horizon": 3000, "checkpoints": at, "environment_seed": 1, "policy_seed": 2}
    run = simulate(ENVIRONMENT, start=start, **settings)
    return digest([run.regret.tobytes(), run.explored.tobytes(), run.statistics.records().tobytes()])


BEFORE_SIMULATED = {
    "steps": "1a30fd7c9eb88d6f",
    "steps, auto": "dbf2557ee0391228",
    "events": "36dc63d792f3136b",
    "events, auto": "8e86d51367cfb76b",
}


@pytest.mark.parametrize("name", BEFORE_SIMULATED)
def test_simulated_runs_are_bit_for_bit_what_they_were(name: str) -> None:
    assert simulated(name) == BEFORE_SIMULATED[name]


def test_late_rewards_reach_the_sums_of_a_whole_run() -> None:
    """Rewards that come a thousand steps late: without the rule, hardly a step of these would have been learned."""
    bandit, late = make(armlet.Algorithm1(p=3)), []
    for x in contexts(1000):
        late.append(bandit.decide(x))
    for decision in late:
        bandit.learn(decision, 1.0)
    assert bandit.state.n.sum() == 1000.0
    policy = armlet.Algorithm1(p=3)
    state = policy.init(N_ARMS, DIM)
    for d in late:
        policy.update(state, Interaction(t=d.t, x=d.x, arm=int(d.arm), reward=1.0, explored=d.explored))
    assert np.array_equal(state.estimates(), bandit.state.estimates())
