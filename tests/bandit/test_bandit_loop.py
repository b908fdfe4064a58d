"""The loop that users live in: decide, play, learn; late, out of order, or never."""

from __future__ import annotations

import copy
import json
import math
import pickle
import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armlet import Algorithm1, AllDataEpsilonGreedy, ArmletError, Bandit, Decision, Policy, Uniform, kernel
from armlet.errors import DecisionError
from armlet.policies import Oracle, ScheduledEpsilonGreedy
from armlet.types import Arm
from support.bandits import facts, make, play, sizes_of_sums, snapshot
from support.examples import scaled
from support.in_python import InPython
from support.streams import Stream, make_stream, streams

seeds = st.integers(0, 2**128 - 1)


# ---- the clock and the order of rewards


def test_only_decisions_and_rows_of_a_log_advance_the_clock() -> None:
    bandit, X = make(3, 2, p=10), [[0.5, 1.0], [1.0, -1.0]]
    first, second = bandit.decide(X[0]), bandit.decide(X[1])
    calls: list[Callable[[], object]] = [
        lambda: bandit.learn(first, 1.0),
        lambda: bandit.learn_many([second], [0.5]),
        lambda: bandit.correct(first, 1.0, 2.0),
        lambda: bandit.forget(first, 2.0),
        lambda: bandit.partial_fit(X, [0, 1], [1.0, 2.0], explored=True, steps=0),
        lambda: bandit.fit(X, [0, 1], [1.0, 2.0], explored=True, steps=0),
        lambda: bandit.predict(X),
        lambda: bandit.predict_expectations(X),
        lambda: bandit.predict_proba(X),
        lambda: bandit.state.estimates(),
        lambda: bandit.add_arm(3),
        lambda: bandit.retire_arm(3),
        lambda: bandit.restore_arm(3),
        lambda: bandit.remove_arm(3),
        lambda: repr(bandit),
    ]
    for call in calls:
        call()
        assert bandit.t == 2
    assert bandit.decide(X[0]).t == bandit.t == 3
    assert bandit.decide_many(X).t.tolist() == [4, 5]
    assert bandit.t == 5


@settings(max_examples=scaled(40))
@given(stream=streams(max_dim=6, max_arms=5, work=3000), seed=seeds, data=st.data())
def test_sums_do_not_depend_on_the_order_in_which_rewards_arrive(
    stream: Stream, seed: int, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(stream.contexts))))
    come = [row for row in order if data.draw(st.integers(0, 3)) > 0]  # the others never do
    policy = ScheduledEpsilonGreedy(p=stream.n_arms)
    records, played = [], []
    for arrivals in (sorted(come), come):
        bandit = Bandit(range(stream.n_arms), stream.dim, policy=policy, seed=seed)
        decisions = [bandit.decide(x) for x in stream.contexts]
        played = [(d.x, int(d.arm), float(stream.rewards[row, int(d.arm)]), 1.0) for row, d in enumerate(decisions)]
        for row in arrivals:
            bandit.learn(decisions[row], played[row][2])
        assert bandit.t == len(stream.contexts)
        assert bandit.state.n.sum() == len(come)
        assert [decision.learned for decision in decisions] == [row in come for row in range(bandit.t)]
        records.append(bandit.state.records())
    # two orders of a sum of N <= 300 terms differ by at most 2 (N - 1) 2^-53 of the sum of their sizes, below 1e-12
    scale = sizes_of_sums(policy, stream.n_arms, stream.dim, [played[row] for row in come])
    assert (np.abs(records[0] - records[1]) <= 1e-12 * scale).all()


def test_late_reward_counts_with_the_context_and_coin_of_its_own_step() -> None:
    bandit = make(2, 1, p=2)
    early = bandit.decide([3.0])
    for _ in range(50):
        bandit.decide([100.0])
    bandit.learn(early, 2.0)
    arm = int(early.arm)
    assert bandit.state.n.tolist() == [float(arm == 0), float(arm == 1)]
    assert (bandit.state.b[arm, 0], bandit.state.A[arm, 0, 0]) == (6.0, 9.0)


# ---- once and only once


def test_learning_twice_is_refused_and_changes_nothing() -> None:
    bandit = make(2, 2)
    decision = bandit.decide([1.0, 0.5])
    bandit.learn(decision, 0.25, weight=2.0)
    before = snapshot(bandit), facts(decision)
    calls: list[Callable[[], None]] = [
        lambda: bandit.learn(decision, 0.25),
        lambda: bandit.learn(decision, 3.0, weight=5.0),
        lambda: bandit.learn_many([bandit.decide([1.0, 1.0]), decision], [1.0, 1.0]),
        lambda: bandit.learn_many([fresh := bandit.decide([1.0, 1.0]), fresh], [1.0, 1.0]),
    ]
    for call in calls[:2]:
        with pytest.raises(DecisionError, match=r"learned already, with reward 0\.25; change it with correct"):
            call()
        assert (snapshot(bandit), facts(decision)) == before
    records = bandit.state.records()
    with pytest.raises(DecisionError, match=f"decision {decision.id} in row 1 was learned already"):
        calls[2]()
    with pytest.raises(DecisionError, match="more than once"):
        calls[3]()
    np.testing.assert_array_equal(bandit.state.records(), records)


def test_correct_is_the_way_to_change_a_learned_reward() -> None:
    bandit, other = make(2, 2), make(2, 2)
    decision, same = bandit.decide([1.0, 0.5]), other.decide([1.0, 0.5])
    bandit.learn(decision, 0.25, weight=2.0)
    bandit.correct(decision, 0.25, -4.0)
    other.learn(same, -4.0, weight=2.0)
    assert (decision.reward, decision.weight) == (-4.0, 2.0)
    np.testing.assert_array_equal(bandit.state.records(), other.state.records())  # powers of 2: no rounding
    with pytest.raises(DecisionError, match="correct"):
        bandit.learn(decision, -4.0)


# ---- rewards: weights, costs, sizes


@settings(max_examples=scaled(40))
@given(stream=streams(max_dim=6, max_arms=4, work=1500), data=st.data())
def test_weight_w_equals_the_row_learned_w_times(stream: Stream, data: st.DataObject) -> None:
    policy = ScheduledEpsilonGreedy(p=stream.n_arms)
    weighted = Bandit(range(stream.n_arms), stream.dim, policy=policy, seed=3)
    repeated = Bandit(range(stream.n_arms), stream.dim, policy=policy, seed=3)
    played = []
    for x, rewards in zip(stream.contexts, stream.rewards, strict=True):
        weight, decision = data.draw(st.integers(1, 5)), weighted.decide(x)
        reward = float(rewards[int(decision.arm)])
        weighted.learn(decision, reward, weight=weight)
        repeated.partial_fit([x] * weight, [decision.arm] * weight, [reward] * weight)
        played.append((x, int(decision.arm), reward, float(weight)))
    # up to 5 N <= 1500 additions here, N there: 1500 * 2^-53 < 1e-12 of the sum of their sizes
    difference = np.abs(weighted.state.records() - repeated.state.records())
    assert (difference <= 1e-12 * sizes_of_sums(policy, stream.n_arms, stream.dim, played)).all()


@settings(max_examples=scaled(40))
@given(
    stream=streams(max_dim=6, max_arms=6, work=3000),
    seed=seeds,
    spare=st.floats(0, 10),
    policy_type=st.sampled_from([Algorithm1, AllDataEpsilonGreedy, InPython]),
)
def test_costs_mirror_negated_rewards(
    stream: Stream, seed: int, spare: float, policy_type: type[Algorithm1] | type[AllDataEpsilonGreedy]
) -> None:
    policy = policy_type(p=stream.n_arms + spare)
    arms = range(stream.n_arms)
    low = Bandit(arms, stream.dim, policy=policy, objective="min", seed=seed)
    high = Bandit(arms, stream.dim, policy=policy, objective="max", seed=seed)
    for x, costs in zip(stream.contexts[:80], stream.rewards, strict=False):
        cheap, good = low.decide(x), high.decide(x)
        assert facts(cheap) == facts(good)
        low.learn(cheap, float(costs[int(cheap.arm)]))
        high.learn(good, -float(costs[int(good.arm)]))
        assert cheap.reward == costs[int(cheap.arm)]  # in the units of the user
    np.testing.assert_array_equal(low.state.records(), high.state.records())
    np.testing.assert_array_equal(low.predict(stream.contexts), high.predict(stream.contexts))
    np.testing.assert_array_equal(
        low.predict_expectations(stream.contexts), -high.predict_expectations(stream.contexts)
    )
    np.testing.assert_array_equal(low.predict_proba(stream.contexts), high.predict_proba(stream.contexts))


def test_lowest_cost_is_chosen_and_predicted_in_the_units_of_the_user() -> None:
    bandit = Bandit(["dear", "cheap"], 1, policy=Algorithm1(p=2), objective="min", seed=1)
    bandit.partial_fit([[1.0]] * 200, ["dear", "cheap"] * 100, [9.0, 4.0] * 100, explored=True)
    assert bandit.predict([[1.0]]).tolist() == ["cheap"]
    # theta = n r / (sqrt(n) + n) with n = 100
    np.testing.assert_allclose(bandit.predict_expectations([[1.0]]), [[900 / 110, 400 / 110]], rtol=1e-12)


@pytest.mark.parametrize("reward", [-1e40, -1e20, -7.0, -0.0, 1e-300, 0.3, 1e6, 1e40, 3, True, np.float32(2.5)])
def test_no_range_is_imposed_on_rewards(reward: float) -> None:
    bandit = make(1, 1, p=1)
    decision = bandit.decide([1.0])
    bandit.learn(decision, reward)
    assert bandit.state.sum_r.tolist() == [float(reward)]
    assert decision.reward == float(reward)
    np.testing.assert_allclose(bandit.predict_expectations([[1.0]]), [[float(reward) / 2]], rtol=1e-12)


# ---- many at once


def batches(data: st.DataObject, n: int) -> list[slice]:
    cuts = data.draw(st.lists(st.integers(0, n), max_size=3).map(sorted))
    return [slice(start, stop) for start, stop in pairwise([0, *cuts, n])]


def policies_for(n_arms: int, dim: int, p: float) -> list[Policy]:
    theta = np.random.default_rng(n_arms).integers(-1, 2, size=(n_arms, dim)).tolist()
    return [
        Algorithm1(p=p),
        Algorithm1(p=p, warmup="uniform", ridge="1/n"),
        AllDataEpsilonGreedy(p=p, ridge=0.5),
        Uniform(),
        InPython(p=p),
        Oracle(theta=theta),
    ]


@settings(max_examples=scaled(250))
@given(
    stream=streams(max_dim=20, max_arms=70, work=10_000),
    spare=st.floats(0, 30),
    seed=seeds,
    kind=st.integers(0, 5),
    data=st.data(),
)
def test_decide_many_equals_as_many_single_decisions(
    stream: Stream, spare: float, seed: int, kind: int, data: st.DataObject
) -> None:
    """In warm-up and after, with any eligible arms, learning between batches through learn_many or learn."""
    n_arms, policy = stream.n_arms, policies_for(stream.n_arms, stream.dim, stream.n_arms + spare)[kind]
    one, many = (Bandit(range(n_arms), stream.dim, policy=policy, seed=seed) for _ in range(2))
    some_arms = st.none() | st.lists(st.integers(0, n_arms - 1), min_size=1, max_size=40, unique=True)
    for part in batches(data, len(stream.contexts)):
        X, eligible = stream.contexts[part], data.draw(some_arms)
        singles = [one.decide(x, eligible=eligible) for x in X]
        together = many.decide_many(X, eligible=eligible)
        assert [facts(d) for d in singles] == [facts(together[row]) for row in range(len(together))]
        assert together.arms == [d.arm for d in singles]
        assert together.indices.tolist() == [d.arm for d in singles]
        assert together.t.tolist() == [d.t for d in singles]
        assert together.propensities.tolist() == [d.propensity for d in singles]
        assert together.explored.tolist() == [d.explored for d in singles]
        rewards = [float(r[int(d.arm)]) for r, d in zip(stream.rewards[part], singles, strict=True)]
        for decision, reward in zip(singles, rewards, strict=True):
            one.learn(decision, reward)
        if data.draw(st.booleans()):
            many.learn_many(together, rewards)
        else:
            for row, reward in enumerate(rewards):
                many.learn(together[row], reward)
        assert snapshot(one) == snapshot(many)


@pytest.mark.parametrize("n_arms", [2, 7, 32, 33, 80, 1030])
@pytest.mark.parametrize("dim", [1, 8, 9, 40])
def test_batch_settles_exact_and_last_bit_ties_as_single_decisions_do(n_arms: int, dim: int) -> None:
    """Estimates that are equal, or differ in the last bit only, where float32 sees a tie in every row."""
    rng = np.random.default_rng(n_arms * 100 + dim)
    policy = Algorithm1(p=n_arms)
    one, many = (Bandit(range(n_arms), dim, policy=policy, seed=5) for _ in range(2))
    state = policy.init(1, dim)
    for x in rng.normal(size=(10, dim)):
        state.add(0, x, float(rng.normal()))
    records = np.repeat(state.records(), n_arms, axis=0)
    records[::3, 3 : 3 + dim] *= 1 + 2.0**-52
    X = np.concatenate([rng.normal(size=(150, dim)), np.zeros((5, dim)), rng.normal(size=(5, dim)) * 1e-9])
    for bandit in (one, many):
        bandit.decide_many(np.ones((10 * n_arms, dim)))  # past the warm-up
        bandit.state.restore(records)
    together, singles = many.decide_many(X), [one.decide(x) for x in X]
    assert [facts(d) for d in singles] == [facts(together[row]) for row in range(len(X))]
    exploits = {d.propensity for d in singles if not d.explored}
    assert any(propensity < 0.6 for propensity in exploits), "no tie in this test, so it shows nothing"


@pytest.mark.parametrize("gap", [1e-9, 1e-8, 1e-7, 1e-6])
@pytest.mark.parametrize("dim", [3, 9, 40])
def test_batch_sees_differences_that_float32_would_not(dim: int, gap: float) -> None:
    """Estimates a hair apart, where rounding to float32 would often put the wrong arm first."""
    rng, policy = np.random.default_rng(dim), Algorithm1(p=40)
    one, many = (Bandit(range(40), dim, policy=policy, seed=5) for _ in range(2))
    records = np.zeros((40, 3 + dim + dim * (dim + 1) // 2))
    records[:, 0] = 1.0  # a single row x = 0, as it were: A = 0, so theta = b
    records[:, 3 : 3 + dim] = rng.normal(size=dim) * (1 + gap * rng.normal(size=(40, dim)))
    for bandit in (one, many):
        bandit.decide_many(np.ones((10_000, dim)))  # past the warm-up, so that most exploit
        bandit.state.restore(records)
    X = rng.normal(size=(2000, dim))
    together, singles = many.decide_many(X), [one.decide(x) for x in X]
    assert together.arms == [decision.arm for decision in singles]
    assert together.propensities.tolist() == [decision.propensity for decision in singles]


def test_arms_left_out_of_the_table_of_a_batch_stay_out() -> None:
    """Only the eligible arms compete in a batch, however good the others look."""
    bandit = make(40, 3, p=40)
    stream = make_stream(400, 3, 40, seed=1)
    play(bandit, stream)
    best = [int(arm) for arm in bandit.predict(stream.contexts)]
    others = sorted(set(range(40)) - set(best[:200]))
    assert set(bandit.decide_many(stream.contexts[:200], eligible=others).arms) <= set(others)


def test_empty_batch_is_no_decision() -> None:
    bandit = make(3, 2)
    nothing = bandit.decide_many(np.empty((0, 2)))
    bandit.learn_many(nothing, [])
    assert (len(nothing), nothing.arms, bandit.t) == (0, [], 0)


def test_each_row_of_a_batch_is_one_decision_that_remembers() -> None:
    bandit = make(3, 2, p=10)
    together = bandit.decide_many([[1.0, 2.0], [3.0, 4.0]])
    assert together[0] is together[0]
    assert together[-1] is together[1]
    bandit.learn(together[1], 1.0)
    with pytest.raises(DecisionError, match="in row 1 was learned already"):
        bandit.learn_many(together, [1.0, 1.0])
    assert bandit.state.n.sum() == 1
    for row in (2, -3):
        with pytest.raises(IndexError, match="of 2 decisions"):
            together[row]


def test_whole_numbers_too_large_for_float64_are_refused_one_by_one_as_in_a_batch() -> None:
    bandit = make(2, 1)
    with pytest.raises(ValueError, match=r"beyond 2\*\*53"):
        bandit.decide_many([[2**53 + 1]])
    with pytest.raises(ValueError, match=r"beyond 2\*\*53"):
        bandit.decide([2**53 + 1])
    assert bandit.t == 0


# ---- what is learned


def test_exploitation_leaves_the_statistics_unchanged() -> None:
    bandit, stream = make(4, 3, p=6), make_stream(500, 3, 4, seed=2)
    exploited = 0
    for x in stream.contexts:
        before, decision = bandit.state.records(), bandit.decide(x)
        bandit.learn(decision, 1.0)
        assert decision.learned
        assert decision.explored == (bandit.state.records().tobytes() != before.tobytes())
        exploited += not decision.explored
    assert exploited > 400
    assert bandit.state.n.sum() == 500 - exploited


def test_all_data_epsilon_greedy_learns_from_every_step() -> None:
    stream = make_stream(500, 3, 4, seed=2)
    bandit = Bandit(range(4), 3, policy=ScheduledEpsilonGreedy(p=6), seed=7)
    decisions = play(bandit, stream)
    assert sum(decision.explored for decision in decisions) < 100
    assert bandit.state.n.sum() == 500
    for arm in range(4):
        rows = [row for row, decision in enumerate(decisions) if decision.arm == arm]
        X, r = stream.contexts[rows], stream.rewards[rows, arm]
        np.testing.assert_allclose(bandit.state.A[arm], X.T @ X, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(bandit.state.b[arm], X.T @ r, rtol=1e-10, atol=1e-10)


# ---- the warm-up

JUST_ABOVE_3 = math.nextafter(3, 4)  # ceil is 4, yet 3 + 1 and this + 1 are the same float


@pytest.mark.parametrize(("n_arms", "p"), [(1, 1), (3, 3), (3, 7), (4, 4.5), (3, 10.01), (2, 2.999), (3, JUST_ABOVE_3)])
@pytest.mark.parametrize("policy_type", [Algorithm1, InPython])
def test_first_ceil_p_steps_play_arm_t_mod_k(n_arms: int, p: float, policy_type: type[Algorithm1]) -> None:
    stream = make_stream(40, 2, n_arms, seed=1)
    decisions = play(Bandit(range(n_arms), 2, policy=policy_type(p=p), seed=3), stream)
    steps = math.ceil(p)
    assert [d.arm for d in decisions[:steps]] == [t % n_arms for t in range(1, steps + 1)]
    assert all(d.propensity == 1.0 and d.explored for d in decisions[:steps])
    # afterwards an arm that is not the best has p / t / K, and any other 1 - p / t more
    for d in decisions[steps:]:
        rate = p / d.t
        assert d.propensity in (rate / n_arms, rate / n_arms + (1 - rate))


def test_round_robin_takes_turns_among_the_eligible_arms() -> None:
    bandit = make(4, 1, p=12)
    arms = [bandit.decide([1.0], eligible=[0, 2, 3]).arm for _ in range(12)]
    assert arms == [[0, 2, 3][t % 3] for t in range(1, 13)]


def test_uniform_warmup_draws_every_arm_with_probability_one_in_k() -> None:
    policy = Algorithm1(p=2000.5, warmup="uniform")
    bandit = Bandit(range(5), 1, policy=policy, seed=3)
    decisions = bandit.decide_many(np.ones((2001, 1)))
    assert set(decisions.propensities.tolist()) == {1 / 5}
    assert decisions.explored.all()
    # a binomial count of 2001 draws with probability 1/5 has deviation 17.9; 90 is 5 of them
    assert np.abs(np.bincount(decisions.indices, minlength=5) - 400.2).max() < 90
    assert bandit.decide([1.0]).propensity > 1 / 5 * 0.999  # all tie, so 1/K again up to rounding


@pytest.mark.parametrize("p", [1, 3, 3.999])
def test_p_below_the_number_of_arms_is_refused_with_the_fix(p: float) -> None:
    with pytest.raises(ValueError, match=f"p is {p} but there are 4 arms.*use p >= 4"):
        Bandit(["a", "b", "c", "d"], 2, policy=Algorithm1(p=p))


def test_arm_beyond_p_is_refused_during_the_warmup_only() -> None:
    bandit = make(3, 1, p=3.5)
    for _ in range(3):
        bandit.decide([1.0])
        with pytest.raises(ValueError, match="use p >= 4"):
            bandit.add_arm(3)
        assert bandit.arms == [0, 1, 2]
    bandit.decide([1.0])
    bandit.add_arm(3)
    assert bandit.arms == [0, 1, 2, 3]


@pytest.mark.parametrize("p", [0, 0.5, -1, math.nan, math.inf, True, "4", None])
def test_p_that_is_no_number_of_at_least_one_is_refused(p: Any) -> None:
    with pytest.raises(ValueError, match="p is"):
        Algorithm1(p=p)


# ---- coins


@pytest.mark.parametrize("policy", [Algorithm1(p=10), AllDataEpsilonGreedy(p=10), Uniform(), InPython(p=10)])
def test_seed_repeats_the_run_and_another_seed_does_not(policy: Policy) -> None:
    stream = make_stream(300, 3, 4, seed=9)
    runs = [
        [facts(decision) for decision in play(Bandit(range(4), 3, policy=policy, seed=seed), stream)]
        for seed in (5, 5, 6, 5 + 2**64)
    ]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]
    assert runs[0] != runs[3]  # all 128 bits count


def test_bandits_without_a_seed_differ() -> None:
    bandits = [make(2, 1, seed=None) for _ in range(2)]  # type: ignore[arg-type]
    assert bandits[0].seed != bandits[1].seed
    assert bandits[0].decide([1.0]).id != bandits[1].decide([1.0]).id


@pytest.mark.parametrize("seed", [-1, 2**128, 1.0, True, "7"])
def test_seed_that_is_no_128_bit_number_is_refused(seed: Any) -> None:
    with pytest.raises(ValueError, match=r"seed is .*0 to 2\^128 - 1"):
        make(2, 1, seed=seed)


def test_coins_do_not_depend_on_the_environment() -> None:
    """Neither contexts nor rewards nor anybody's random state decide when to explore and what to pick then."""
    plays = []
    for environment in (1, 2):
        np.random.seed(environment)  # noqa: NPY002 - just to show that nobody looks
        random.seed(environment)
        stream = make_stream(2000, 3, 4, seed=environment)
        plays.append(play(make(4, 3, p=100), stream))
    for one, other in zip(*plays, strict=True):
        assert one.explored == other.explored
        assert one.arm == other.arm or not one.explored
        assert one.id == other.id
    assert any(one.arm != other.arm for one, other in zip(*plays, strict=True))


def test_bandit_leaves_the_random_state_of_others_alone() -> None:
    before = random.getstate(), np.random.get_state()[1].tobytes()  # type: ignore[index]  # noqa: NPY002
    play(make(4, 3), make_stream(50, 3, 4, seed=1))
    assert (random.getstate(), np.random.get_state()[1].tobytes()) == before  # type: ignore[index]  # noqa: NPY002


def test_coins_are_not_those_of_an_environment_with_the_same_seed() -> None:
    n = 20_000
    environment = np.random.default_rng(7).random(n)
    coins = np.array([kernel.coins(7, t).coin for t in range(1, n + 1)])
    for lag in (-1, 0, 1):
        # a correlation of independent draws has deviation 1 / sqrt(n)
        assert abs(np.corrcoef(np.roll(environment, lag), coins)[0, 1]) < 4.5 / math.sqrt(n)


# ---- decisions themselves


def test_decision_is_read_only() -> None:
    decision = make(2, 2).decide([1.0, 2.0])
    for name in ("id", "t", "arm", "propensity", "explored", "learned", "reward", "weight", "x"):
        with pytest.raises(AttributeError):
            setattr(decision, name, getattr(decision, name))
    with pytest.raises(AttributeError):
        decision.note = "mine"  # type: ignore[attr-defined]
    decision.x[0] = 99.0  # a copy, so this is lost
    assert decision.x.tolist() == [1.0, 2.0]


def test_decision_keeps_its_context_when_the_caller_reuses_the_array() -> None:
    bandit, x = make(2, 2), np.array([1.0, 2.0])
    decision, together = bandit.decide(x), bandit.decide_many(X := x.reshape(1, 2).copy())
    x[:] = X[:] = 50.0
    assert decision.x.tolist() == together[0].x.tolist() == [1.0, 2.0]


def test_decision_says_what_it_is() -> None:
    decision = Bandit(["no'rth"], 1, policy=Algorithm1(p=1), seed=7).decide([1.0])
    assert repr(decision) == f"Decision(id='{decision.id}', arm=\"no'rth\", propensity=1.0, explored=True)"
    assert repr(make(2, 1).decide_many([[1.0], [2.0]])) == "<2 decisions, steps 1 to 2, 2 explored; 1: 1, 0: 1>"


COPIES: dict[str, Callable[[Decision], Decision]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda decision: pickle.loads(pickle.dumps(decision)),
    "restore": lambda d: Decision.restore(
        d.id,
        d.arm,
        d.propensity,
        d.explored,
        d.x,
        d.reward,
        d.weight,
        d.tag,
        d.exploration_propensity,
        d.exploration_rate,
        d.min_exploration_probability,
        d.greedy,
        d.eligible,
        d.probabilities,
        optimistic=d.optimistic,
        marginal=d.marginal,
    ),
    "to_dict and from_dict": lambda d: Decision.from_dict(d.to_dict()),
    "JSON": lambda d: Decision.from_dict(json.loads(json.dumps(d.to_dict()))),
    "restore from a list": lambda d: Decision.restore(
        id=d.id,
        arm=d.arm,
        propensity=d.propensity,
        explored=d.explored,
        x=d.x.tolist(),
        reward=d.reward,
        weight=d.weight,
        exploration_propensity=d.exploration_propensity,
        exploration_rate=d.exploration_rate,
        min_exploration_probability=d.min_exploration_probability,
        greedy=d.greedy,
    ),
}


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("label", ["north", 3])
def test_decision_survives_the_trip_and_can_be_learned(way: str, label: Arm) -> None:
    bandits = [Bandit([label], 2, policy=Algorithm1(p=1), seed=7) for _ in range(2)]
    original, other = (bandit.decide([0.1, 0.2]) for bandit in bandits)
    pending = COPIES[way](original)
    assert facts(pending) == facts(original)
    bandits[0].learn(pending, 0.5, weight=3.0)
    bandits[1].learn(other, 0.5, weight=3.0)
    assert snapshot(bandits[0]) == snapshot(bandits[1])
    done = COPIES[way](pending)
    assert facts(done) == facts(pending)
    with pytest.raises(DecisionError, match=r"learned already, with reward 0\.5"):
        bandits[0].learn(done, 0.5)
    bandits[0].forget(done, 0.5)
    assert bandits[0].state.n.tolist() == [0.0]


GOOD: dict[str, Any] = {
    "id": "12-00ff00ff00ff00ff",
    "arm": 0,
    "propensity": 0.5,
    "explored": True,
    "x": [1.0],
    "reward": 1.0,
    "weight": 2.0,
    "exploration_propensity": 0.25,
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[
            ("id", text)
            for text in ("", "12", "0-00ff00ff00ff00ff", "12-ff", "-1-00ff00ff00ff00ff", "12-00FF00FF00FF00FF")
        ],
        *[("propensity", chance) for chance in (0.0, -0.1, 1.1, math.nan)],
        *[("exploration_propensity", chance) for chance in (0.0, -0.1, 1.1, math.nan)],
        *[("exploration_rate", chance) for chance in (-0.1, 1.1, math.nan)],
        *[("min_exploration_probability", chance) for chance in (-0.1, 1.1, math.nan)],
        *[("probabilities", row) for row in ([], [1.1], [-0.1, 1.1], [math.nan])],
        *[("x", row) for row in ([math.nan], [math.inf], [1e101])],
        *[("reward", number) for number in (math.nan, math.inf, 1e101)],
        *[("weight", number) for number in (math.nan, math.inf, 0.0, -1.0)],
    ],
)
def test_decision_that_cannot_be_is_not_restored(name: str, value: object) -> None:
    assert Decision.restore(**GOOD).weight == 2.0
    with pytest.raises(ValueError, match=name):
        Decision.restore(**{**GOOD, name: value})


def test_ids_are_unique_within_and_across_bandits() -> None:
    ids: list[str] = []
    for seed in range(20):
        bandit = make(3, 1, seed=seed)
        ids += [bandit.decide([1.0]).id for _ in range(500)]
        together = bandit.decide_many(np.ones((500, 1)))
        ids += [together[row].id for row in range(500)]
    assert len(set(ids)) == len(ids) == 20_000
    assert all(int(text.split("-")[0]) == row % 1000 + 1 for row, text in enumerate(ids))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda bandit, _: bandit.decide([1.0, 2.0], elligible=["a"]),
            r"decide\(\) got an unexpected keyword 'elligible', which is \['a'\]; did you mean 'eligible'\?$",
        ),
        (lambda bandit, _: bandit.decide(context=[1.0, 2.0]), r"'context', which is \[1.0, 2.0\]; call decide\(x, "),
        (lambda bandit, _: bandit.decide([1.0, 2.0], t=9, probability="all"), "did you mean 'probabilities'"),
        (
            lambda bandit, d: bandit.learn(d, 1.0, wieght=2.0),
            r"learn\(\) got .* 'wieght', which is 2.0; did you mean 'weight'\?$",
        ),
        (lambda bandit, d: bandit.learn(d, rewards=1.0), "did you mean 'reward'"),
        (lambda bandit, d: bandit.learn(d), r"learn\(\) is missing 'reward'; call learn\("),
        (lambda bandit, d: bandit.learn(d, 1.0, reward=1.0), r"learn\(\) got 'reward' twice; call learn"),
        (lambda bandit, d: bandit.learn(d, 1.0, 2.0), r"learn\(\) takes 2 by position but got 3; call learn"),
        (lambda bandit, d: bandit.correct(d, 1.0, newreward=2.0), "did you mean 'new_reward'"),
        (
            lambda bandit, _: bandit.decide([1.0, 2.0], **{"\ud800": 1}),
            r"unexpected keyword '\\ud800', which is 1; call",
        ),
    ],
)
def test_a_wrong_argument_is_named_with_the_closest_right_one(call: Any, message: str) -> None:
    bandit = Bandit(["a", "b"], 2, policy=Algorithm1(p=4), seed=1)
    decision = bandit.decide([1.0, 0.5])
    with pytest.raises(TypeError, match=message) as refused:
        call(bandit, decision)
    assert isinstance(refused.value, ArmletError)
    assert (bandit.t, decision.learned) == (1, False)
