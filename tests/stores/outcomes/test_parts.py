"""Parts of rewards in loops: what becomes of each, when the row is learned, and proxies that the truth replaces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armlet
from armlet.errors import InvalidTypeError, InvalidValueError
from armlet.stores import Loop, Memory, Store
from armlet.stores.rewards import MOST_NAMES
from armlet.testing.stores import Place
from support.examples import scaled
from support.loops import Ticks, ticking

OUTCOMES = {"quality": 1.0, "cost": -4.0}


def make(store: Store, **how: Any) -> Loop:
    given: dict[str, Any] = {"arms": ["a", "b"], "dim": 1, "policy": armlet.LinUCB(), "outcomes": OUTCOMES, "seed": 5}
    return store.loop("router", **given | how)


def learned(loop: Loop) -> int:
    return int(loop.model().state.n.sum())


# ---- with the bandit


def test_a_loop_learns_what_a_bandit_learns(place: Place) -> None:
    """Bit for bit: dials, parts in any order, known prices, corrections, a budget and its price."""
    prices: dict[str | int, float] = {"a": 0.5, "b": 1.0}
    weights, budget = {**OUTCOMES, "delay": -0.1}, armlet.Budget("cost", total=30.0, horizon=100)
    how: dict[str, Any] = {"known": {"delay": prices}, "budget": budget, "outcomes": weights, "seed": 5}
    ranges = {"quality": (-1.0, 1.0), "cost": (-1.0, 1.0)}
    bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.LinUCB(), reward_range=ranges, **how)
    rng = np.random.default_rng(3)
    with Store(place()) as store:
        loop = make(store, **how)
        for i in range(60):
            x, dial = [float(rng.normal())], {"cost": -float(i % 9)} if i % 3 else None
            one = bandit.decide(x, weights=dial, propensity="marginal")
            other = loop.decide(x, event=f"e{i}", weights=dial)
            assert (one.arm, one.propensity, one.weights) == (other.arm, other.propensity, other.weights)
            parts = [("quality", float(rng.uniform())), ("cost", float(rng.uniform()))]
            for name, value in parts if i % 2 else reversed(parts):
                bandit.learn(one, {name: value})
                assert loop.reward(f"e{i}", {name: value}) == "accepted"
            if i % 5 == 0:
                bandit.correct(one, {"cost": parts[1][1]}, {"cost": 0.25})
                assert loop.reward(f"e{i}", {"cost": 0.25}, rank=1) == "replaced"
        assert loop.model().digest() == bandit.digest()
        stats, spending = loop.stats().budget, bandit.budget
        assert stats is not None
        assert spending is not None
        assert (stats.price, stats.spent, stats.left) == (spending.price, spending.spent, spending.left)


# ---- what becomes of a part


@pytest.mark.parametrize(("aggregation", "again", "total"), [("first", "conflict", 0.5), ("last", "replaced", 0.25)])
def test_each_part_is_a_reward_of_its_own(aggregation: Any, again: str, total: float, place: Place) -> None:
    with Store(place()) as store:
        loop = make(store, aggregation=aggregation, policy=armlet.LinUCB(units="as given"), arms=["a"])
        loop.decide([1.0], event="e")
        assert loop.reward("e", {"cost": 0.5}, name="m1", rank=1) == "accepted"
        assert loop.reward("e", {"cost": 0.75}) == "outranked"
        assert loop.reward("e", {"cost": 0.5}, name="m1", rank=1) == "duplicate"
        assert loop.reward("e", {"cost": 0.25}, rank=1) == again
        assert learned(loop) == 0
        assert loop.reward("e", {"quality": 1.0}, name="m1") == "accepted"  # the name of another part
        assert learned(loop) == 1
        assert loop.model().state.b[0, 0] == 1.0 - 4.0 * total


def test_a_sum_adds_up_by_part(place: Place) -> None:
    with Store(place()) as store:
        loop = make(store, aggregation="sum", policy=armlet.LinUCB(units="as given"), arms=["a"])
        loop.decide([1.0], event="e")
        rewards = [{"cost": 0.25}, {"quality": 0.5, "cost": 0.25}, {"quality": 0.25}]
        assert [loop.reward("e", parts) for parts in rewards] == ["accepted"] * 3
        assert loop.reward("e", {"quality": 0.5}) == "out_of_range"
        assert loop.model().state.b[0, 0] == 0.75 - 4.0 * 0.5
        assert [(one.outcome, one.values, one.mean) for one in loop.stats().outcomes if one.arm is None] == [
            ("cost", 1, 0.5),
            ("quality", 1, 0.75),
        ]


def test_several_parts_have_one_answer(place: Place) -> None:
    with Store(place()) as store:
        loop = make(store)
        loop.decide([1.0], event="e")
        assert loop.reward("e", {"cost": 0.5}) == "accepted"
        assert loop.reward("e", {"cost": 0.5, "quality": 3.0}) == "out_of_range"
        assert learned(loop) == 0
        assert loop.reward("e", {"cost": 0.5, "quality": 0.5}) == "accepted"  # one is a duplicate
        assert loop.reward("e", {"cost": 0.5, "quality": 0.25}) == "conflict"
        assert loop.reward("e", {"cost": 0.5, "quality": 0.5}) == "duplicate"
        assert loop.reward("e", {"cost": 0.25, "quality": 0.5}, rank=1) == "replaced"
        assert loop.stats().statuses == {
            "accepted": 2,
            "out_of_range": 1,
            "conflict": 1,
            "duplicate": 1,
            "replaced": 1,
        }


def test_many_rewards_may_have_parts(place: Place) -> None:
    with Store(place()) as store:
        loop = make(store)
        loop.decide_many([[1.0], [0.5]], events=["e1", "e2"], weights={"cost": -9.0})
        rewards: list[Any] = [("e1", {"cost": 0.5}), {"event": "e2", "value": {"cost": 0.5, "quality": 0.5}, "rank": 1}]
        assert loop.reward_many(rewards) == ["accepted", "accepted"]
        with pytest.raises(InvalidTypeError, match="has outcomes"):
            loop.reward_many([("e1", {"quality": 0.5}), ("e2", 0.5)])
        assert learned(loop) == 1


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (
            1.0,
            InvalidTypeError,
            r"value is 1.0, but loop 'router' has outcomes; give them by name",
        ),
        ({}, InvalidValueError, r"value is \{\}; give at least one outcome"),
        ({"speed": 1.0}, InvalidValueError, r"value has 'speed', which is no outcome of loop 'router'"),
        ({"delay": 1.0}, InvalidValueError, "value has 'delay', whose price of every arm is known; leave it out"),
        ({"quality": float("nan")}, InvalidValueError, r"value\['quality'\] is nan"),
        ({"quality": "good"}, InvalidTypeError, r"value\['quality'\] is 'good'"),
    ],
)
@pytest.mark.parametrize("event", ["e", "nobody"])
def test_a_reward_that_is_none_is_refused(value: Any, error: Any, words: str, event: str, place: Place) -> None:
    with Store(place()) as store:
        loop = make(store, outcomes={**OUTCOMES, "delay": 1.0}, known={"delay": {"a": 1.0, "b": 2.0}}, early_window=9.0)
        loop.decide([1.0], event="e")
        before = loop.version()
        with pytest.raises(error, match=words):
            loop.reward(event, value)
        assert loop.version() == before


def test_one_reward_has_no_parts(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", arms=["a"], dim=1)
        loop.decide([1.0], event="e")
        with pytest.raises(InvalidTypeError, match=r"value is \{'quality': 1.0\}, but loop 'homepage' has one reward"):
            loop.reward("e", {"quality": 1.0})
        with pytest.raises(InvalidValueError, match="but the bandit has one reward"):
            loop.decide([1.0], weights={"quality": 1.0})


def test_a_part_remembers_so_many_names(place: Place) -> None:
    with Store(place()) as store:
        loop = make(store, aggregation="sum", reward_range={"cost": (0, 1e9)})
        loop.decide([1.0], event="e")
        loop.reward_many([{"event": "e", "value": {"cost": 1.0}, "name": f"m{i}"} for i in range(MOST_NAMES)])
        with pytest.raises(InvalidValueError, match="the most; add up first"):
            loop.reward("e", {"quality": 0.5, "cost": 1.0}, name="more")
        assert learned(loop) == 0
        assert loop.reward("e", {"quality": 0.5}, name="more") == "accepted"


# ---- windows


def test_missing_parts_have_their_default_when_the_window_closes(place: Place) -> None:
    clock = Ticks(1e9)
    with ticking(place(), clock) as store:
        how: dict[str, Any] = {"policy": armlet.LinUCB(units="as given"), "arms": ["a"], "window": 60.0}
        loop = make(store, default_reward={"quality": 0.0}, **how)
        for event in ("whole", "half", "none"):
            loop.decide([1.0], event=event)
        assert loop.reward("whole", {"quality": 0.5, "cost": 0.25}) == "accepted"
        assert loop.reward("half", {"cost": 0.5}) == "accepted"
        assert loop.reward("half", {"cost": 0.25}, rank=1) == "replaced"
        assert learned(loop) == 0
        clock.now += 61.0
        assert learned(loop) == 2  # nobody knows the cost of the last one
        assert loop.model().state.b[0, 0] == 0.5 - 4.0 * (0.25 + 0.25)
        assert loop.stats().open == 0
        assert loop.reward("half", {"quality": 0.25}) == "late"
        assert loop.reward("none", {"quality": 0.25}) == "accepted"
        assert learned(loop) == 2
        assert loop.reward("none", {"cost": 0.0}) == "accepted"
        assert learned(loop) == 3
        assert loop.model().state.b[0, 0] == 1.0 - 4.0 * 0.5


def test_a_cost_with_a_budget_counts_before_the_window_closes(place: Place) -> None:
    clock = Ticks(1e9)
    with ticking(place(), clock) as store:
        budget = armlet.Budget("cost", total=10.0, horizon=100)
        loop = make(store, window=60.0, budget=budget, default_reward={"quality": 0.0})
        loop.decide([1.0], event="e")
        assert loop.reward("e", {"cost": 0.5, "quality": 0.5}) == "accepted"
        stats = loop.stats().budget
        assert stats is not None
        assert (stats.spent, stats.waiting, learned(loop)) == (0.5, 0, 0)
        assert loop.reward("e", {"cost": 0.25}, rank=1) == "replaced"
        stats = loop.stats().budget
        assert stats is not None
        assert stats.spent == 0.25
        clock.now += 61.0
        assert learned(loop) == 1
        stats = loop.stats().budget
        assert stats is not None
        assert stats.spent == 0.25


def test_a_window_needs_a_default_of_no_outcome(place: Place) -> None:
    with Store(place()) as store:
        loop = make(store, window=60.0)
        loop.change(default_reward={"cost": 0.5})
        loop.change(window=None, default_reward=None)
        loop.change(window=9.0)
        loop.change(window=None)
        for default, words in (
            (0.5, r"default_reward is 0.5, but the loop has outcomes"),
            ({"speed": 1.0}, "default_reward has 'speed', which is not learned"),
            ({"cost": 5.0}, r"default_reward\['cost'\] is 5.0, but rewards are from -1.0 to 1.0"),
        ):
            with pytest.raises((InvalidTypeError, InvalidValueError), match=words):
                loop.change(window=9.0, default_reward=default)
            with pytest.raises((InvalidTypeError, InvalidValueError), match=words):
                make(store, window=9.0, default_reward=default, on_change="apply")


def test_a_part_out_of_a_range_that_has_changed_counts_as_not_reported(place: Place) -> None:
    clock = Ticks(1e9)
    with ticking(place(), clock) as store:
        how: dict[str, Any] = {"policy": armlet.LinUCB(units="as given"), "arms": ["a"], "window": 60.0}
        loop = make(store, reward_range={"quality": (0.0, 9.0)}, **how)
        for event in ("open", "over"):
            loop.decide([1.0], event=event)
            loop.reward(event, {"quality": 5.0})
            clock.now += 61.0 * (event == "open")  # the first one closes without its cost
        loop.change(reward_range={"quality": (0.0, 1.0)}, default_reward={"quality": 0.25})
        assert loop.reward("open", {"cost": 0.5}) == "accepted"
        assert learned(loop) == 0
        assert loop.reward("open", {"quality": 0.5}) == "accepted"
        assert loop.reward("over", {"cost": 0.5}) == "accepted"
        clock.now += 61.0
        assert learned(loop) == 2
        assert loop.model().state.b[0, 0] == 0.5 + 0.25 - 4.0 * (0.5 + 0.5)


def test_a_budget_on_the_only_outcome_that_is_learned_learns_at_once(place: Place) -> None:
    clock = Ticks(1e9)
    with ticking(place(), clock) as store:
        known: Any = {"quality": {"a": 0.5, "b": 1.0}}
        loop = make(store, window=60.0, known=known, budget=armlet.Budget("cost", total=10.0, horizon=100))
        loop.decide([1.0], event="e")
        loop.decide([1.0], event="never")
        assert loop.reward("e", {"cost": 0.5}) == "accepted"
        assert learned(loop) == 1
        clock.now += 61.0
        assert learned(loop) == 1
        stats = loop.stats()
        assert stats.budget is not None
        assert (stats.open, stats.budget.waiting, stats.budget.spent) == (0, 0, 0.5)


# ---- another arm was played


def test_parts_of_another_arm_are_learned_as_that_arms(place: Place) -> None:
    clock = Ticks(1e9)
    with ticking(place(), clock) as store:
        loop = make(store, policy=armlet.LinUCB(units="as given"))
        arm = loop.decide([1.0], event="e").arm
        other = {"a": "b", "b": "a"}[str(arm)]
        assert loop.reward("e", {"cost": 0.25}, played=other) == "accepted"
        assert loop.reward("e", {"quality": 0.5}, played=arm) == "conflict"
        assert loop.reward("e", {"quality": 0.5}) == "accepted"
        state, labels = loop.model().state, list(loop.model().arms)
        assert state.n[labels.index(other)] == 1.0
        assert state.b[labels.index(other), 0] == -0.5
        assert state.under_way.sum() == 0


def test_defaults_go_to_the_arm_that_was_played(place: Place) -> None:
    clock = Ticks(1e9)
    with ticking(place(), clock) as store:
        how: dict[str, Any] = {"window": 60.0, "default_reward": {"quality": 0.25, "cost": 0.5}}
        loop = make(store, policy=armlet.LinUCB(units="as given"), **how)
        arms = [str(loop.decide([1.0], event=event).arm) for event in ("moved", "late")]
        clock.now += 61.0
        assert learned(loop) == 2
        other = {"a": "b", "b": "a"}[arms[0]]
        assert loop.reward("moved", {"cost": 0.25}, played=other) == "late"
        assert loop.reward("late", {"cost": 0.25}) == "late"
        assert loop.reward("late", {"quality": 0.5}, played={"a": "b", "b": "a"}[arms[1]]) == "conflict"
        assert loop.reward("late", {"quality": 0.5}) == "late"
        model = loop.model()
        worths = dict.fromkeys("ab", 0.0)
        worths[other] += 0.25 - 4.0 * 0.25
        worths[arms[1]] += 0.5 - 4.0 * 0.25
        assert [float(b) for b in model.state.b[:, 0]] == [worths[str(arm)] for arm in model.arms]


def test_parts_of_another_arm_can_be_forgotten_and_pruned(place: Place) -> None:
    clock = Ticks(1e9)
    with ticking(place(), clock) as store:
        loop = make(store, budget=armlet.Budget("cost", total=10.0, horizon=100))
        for event in ("forgotten", "pruned", "kept"):
            arm = str(loop.decide([1.0], event=event).arm)
            assert loop.reward(event, {"cost": 0.25}, played={"a": "b", "b": "a"}[arm]) == "accepted"
            clock.now += 60.0
        assert loop.stats().open == 0
        assert loop.forget("forgotten")
        assert store.prune(clock.now - 100.0) == 1
        assert loop.stats().open == 0
        assert loop.reward("pruned", {"quality": 0.5}) == "unknown"
        assert loop.reward("kept", {"quality": 0.5}) == "accepted"
        assert learned(loop) == 1
        assert loop.model().state.under_way.sum() == 0


def test_a_policy_that_learns_from_its_own_coins_counts_them(place: Place) -> None:
    with Store(place()) as store:
        loop = make(store, policy=armlet.Algorithm1(p=30))
        arm = loop.decide([1.0], event="e").arm
        other = {"a": "b", "b": "a"}[str(arm)]
        assert loop.reward("e", {"cost": 0.25}, played=other) == "counted"
        assert loop.reward("e", {"quality": 0.25}) == "counted"
        assert loop.reward("e", {"quality": 0.25}) == "duplicate"
        assert learned(loop) == 0


# ---- proxy now, truth later


def play(loop: Loop, seed: int, *, proxies: bool, exact: bool) -> None:
    """Decide, with a proxy of quality at once, or without; the truth comes later, the cost in between or at last."""
    rng = np.random.default_rng(seed)
    late: list[tuple[str, float]] = []
    for i in range(60):
        x, truth, cost = [float(rng.integers(-4, 5)) / 4], float(rng.integers(5)) / 4, float(rng.integers(5)) / 8
        proxy = truth / 2 if exact else float(rng.uniform())
        loop.decide(x, event=f"e{i}")
        if proxies:
            assert loop.reward(f"e{i}", {"quality": proxy}, name="proxy") == "accepted"
        loop.reward(f"e{i}", {"cost": cost})
        late.append((f"e{i}", truth))
    for event, truth in late:
        assert loop.reward(event, {"quality": truth}, name="judge", rank=1) in ("accepted", "replaced")


SUMS = ("records", "outcomes")


def test_the_truth_leaves_nothing_of_the_proxy() -> None:
    """Bit for bit, as sums of eighths are exact; decisions are forced, so that both learn the same rows."""
    with Store(Memory()) as store, Store(Memory()) as other:
        policy = armlet.LinUCB(units="as given")
        loops = [make(one, policy=policy, arms=["a"], reward_range={"quality": (0, 1)}) for one in (store, other)]
        play(loops[0], 7, proxies=True, exact=True)
        play(loops[1], 7, proxies=False, exact=True)
        ones, others = (loop.model().state.arrays() for loop in loops)
        for name in SUMS:
            assert ones[name].tobytes() == others[name].tobytes()


@settings(max_examples=scaled(10), deadline=None)
@given(seed=st.integers(0, 2**32))
def test_the_truth_leaves_nothing_of_any_proxy_but_rounding(seed: int) -> None:
    with Store(Memory()) as store, Store(Memory()) as other:
        policy = armlet.LinUCB(units="as given")
        loops = [make(one, policy=policy, arms=["a"], reward_range={"quality": (0, 1)}) for one in (store, other)]
        play(loops[0], seed, proxies=True, exact=False)
        play(loops[1], seed, proxies=False, exact=False)
        ones, others = (loop.model().state.arrays() for loop in loops)
        for name in SUMS:
            np.testing.assert_allclose(ones[name], others[name], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("window", [None, 60.0])
def test_a_proxy_that_is_replaced_before_the_row_is_learned_was_never_there(window: float | None) -> None:
    """Bit for bit for any values: the sums never saw it."""
    digests = []
    for proxies in (True, False):
        clock, rng = Ticks(1e9), np.random.default_rng(1)
        with ticking(Memory(), clock) as store:
            loop = make(store, window=window)
            for i in range(40):
                loop.decide([float(rng.normal())], event=f"e{i}")
                proxy, truth, cost = rng.uniform(size=3)
                if proxies:
                    assert loop.reward(f"e{i}", {"quality": proxy}) == "accepted"
                status = loop.reward(f"e{i}", {"quality": truth}, rank=1)
                assert status == ("replaced" if proxies else "accepted")
                assert loop.reward(f"e{i}", {"cost": cost}) == "accepted"
                clock.now += 61.0
            digests.append(loop.model().digest())
    assert digests[0] == digests[1]
