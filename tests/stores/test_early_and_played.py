"""Rewards before their decision, and rewards of another arm than the one that was decided."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

import armlet
from armlet.errors import EventError
from armlet.stores import Loop, Memory, Store
from armlet.testing.stores import Place
from armlet.types import Arm
from support.logs import write_events
from support.loops import Learned, Ticks, assert_learned, assert_replays, context, reward, ticking

UCB = armlet.LinUCB(units="as given")
MADE: dict[str, Any] = {"arms": ["a", "b"], "features": ["one", "u"], "policy": UCB, "seed": 3}
EARLY: dict[str, Any] = MADE | {"early_window": 60.0}


def waiting(loop: Loop) -> int:
    """Return how many rewards wait for their decision."""
    head = loop._ledger.head(loop._runner.id)
    return -1 if head is None else head.early


def other(arm: Arm) -> Arm:
    return "b" if arm == "a" else "a"


# --- early -----------------------------------------------------------------------------------------------------------


def test_a_reward_before_its_decision_counts_as_soon_as_there_is_one(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **EARLY)
        assert loop.reward("e", 0.5) == "early"
        assert waiting(loop) == 1
        decision = loop.decide(context(1, 2), event="e")
        assert waiting(loop) == 0
        assert_learned(loop.model(), [Learned(context(1, 2), decision.arm, 0.5)])
        assert [loop.reward("e", 0.5), loop.reward("e", 0.25)] == ["duplicate", "conflict"]
        assert [event["kind"] for event in loop.log] == ["start", "decide", "learn"]
        assert_replays(store, loop)


@pytest.mark.parametrize(("aggregation", "value"), [("first", 0.25), ("last", 0.75), ("sum", 0.5)])
def test_several_early_rewards_count_by_the_aggregation(place: Place, aggregation: Any, value: float) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **EARLY, aggregation=aggregation)
        assert [loop.reward("e", each) for each in (0.25, -0.5, 0.75)] == ["early"] * 3
        decision = loop.decide(context(1, 2), event="e")
        assert_learned(loop.model(), [Learned(context(1, 2), decision.arm, value)])
        assert_replays(store, loop)


def test_names_and_ranks_of_early_rewards_are_remembered(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **EARLY, aggregation="sum")
        for value, name, rank in ((0.25, "click", 0), (0.25, "click", 0), (0.5, "paid", 1), (1.0, "seen", 0)):
            assert loop.reward("e", value, name=name, rank=rank) == "early"
        decision = loop.decide(context(1, 2), event="e")
        assert_learned(loop.model(), [Learned(context(1, 2), decision.arm, 0.5)])
        assert loop.reward("e", 0.25, name="click") == "duplicate"
        assert loop.reward("e", 0.25, name="scroll") == "outranked"
        assert loop.reward("e", 0.25, name="tip", rank=1) == "accepted"
        assert_replays(store, loop)


def test_an_early_reward_waits_for_its_window_and_no_longer(place: Place) -> None:
    ticks = Ticks()
    with ticking(place(), ticks) as store:
        loop = store.loop("homepage", **EARLY)
        loop.reward("in time", 0.5)
        loop.reward("too late", 0.5)
        ticks.now += 59.9
        arm = loop.decide(context(1, 2), event="in time").arm
        ticks.now += 0.2
        loop.decide(context(2, 2), event="too late")
        assert_learned(loop.model(), [Learned(context(1, 2), arm, 0.5)])
        assert waiting(loop) == 0
        assert loop.reward("too late", 0.25) == "accepted"


def test_early_rewards_whose_decision_never_came_are_dropped(place: Place) -> None:
    ticks = Ticks()
    with ticking(place(), ticks) as store:
        loop = store.loop("homepage", **EARLY)
        for i in range(30):
            loop.reward(f"nobody {i}", 0.5)
        ticks.now += 30.0
        loop.reward("somebody", 0.5)
        ticks.now += 31.0
        store.settle()
        assert waiting(loop) == 1
        arm = loop.decide(context(1, 2), event="somebody").arm
        assert_learned(loop.model(), [Learned(context(1, 2), arm, 0.5)])


def test_early_rewards_are_dropped_in_traffic_though_nobody_settles(place: Place) -> None:
    ticks = Ticks()
    with ticking(place(), ticks) as store:
        loop = store.loop("homepage", **EARLY)
        most = 0
        for i in range(400):
            loop.reward(f"nobody {i}", 0.5)
            ticks.now += 3.0
            most = max(most, waiting(loop))
        assert most <= 3 * 60 / 3


def test_an_early_reward_counts_after_a_restart(place: Place) -> None:
    ticks = Ticks()
    with ticking(place(), ticks) as store:
        store.loop("homepage", **EARLY).reward("e", 0.5)
    with ticking(place(), ticks) as store:
        loop = store.loop("homepage")
        ticks.now += 30.0
        arm = loop.decide(context(1, 2), event="e").arm
        assert_learned(loop.model(), [Learned(context(1, 2), arm, 0.5)])
        assert_replays(store, loop)


def test_an_early_reward_is_held_while_the_window_of_its_decision_is_open(place: Place) -> None:
    ticks = Ticks()
    with ticking(place(), ticks) as store:
        loop = store.loop("homepage", **EARLY, window=10.0, default_reward=0.0)
        loop.reward("e", 0.5)
        arm = loop.decide(context(1, 2), event="e").arm
        assert_learned(loop.model(), [])
        ticks.now += 11.0
        assert_learned(loop.model(), [Learned(context(1, 2), arm, 0.5)])
        assert_replays(store, loop)


def test_forgetting_an_event_forgets_what_came_early_for_it(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **EARLY)
        loop.reward("gone", 0.5)
        loop.reward("stays", 0.5)
        assert loop.forget("gone") is False
        assert waiting(loop) == 1
        arms = [loop.decide(context(i, 2), event=event).arm for i, event in enumerate(("gone", "stays"))]
        assert_learned(loop.model(), [Learned(context(1, 2), arms[1], 0.5)])


def test_an_early_reward_of_no_arm_is_refused_and_its_decision_is_not(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **EARLY)
        with pytest.raises(EventError, match="played is 'nobody', which is not an arm of loop 'homepage'"):
            loop.reward("e", 0.5, played="nobody")
        assert waiting(loop) == 0
        assert loop.decide(context(1, 2), event="e").t == 1


def test_early_rewards_that_cannot_count_do_not_stop_their_decision(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **EARLY, aggregation="sum", reward_range=(0.0, 2000.0))
        rewards = [{"event": "e", "value": 1.0, "name": f"n{i}"} for i in range(1005)]
        assert set(loop.reward_many(rewards)) == {"early"}
        assert loop.reward("e", 9999.0) == "early"
        arm = loop.decide(context(1, 2), event="e").arm
        assert_learned(loop.model(), [Learned(context(1, 2), arm, 1000.0)])


def test_an_early_reward_of_another_arm_is_learned_for_that_one(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **EARLY)
        loop.reward("e", 0.5, played="a")
        loop.reward("f", 0.25, played="b")
        decisions = {event: loop.decide(context(i, 2), event=event) for i, event in enumerate(("e", "f"))}
        assert len(decisions) == 2
        assert_learned(loop.model(), [Learned(context(0, 2), "a", 0.5), Learned(context(1, 2), "b", 0.25)])
        assert_replays(store, loop)


# --- played ----------------------------------------------------------------------------------------------------------


def test_a_reward_of_another_arm_is_learned_corrected_and_forgotten_there(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **MADE, aggregation="last")
        x = [context(i, 2) for i in range(4)]
        arms = [loop.decide(x[i], event=f"e{i}").arm for i in range(4)]
        shown = [other(arm) for arm in arms]
        assert [loop.reward(f"e{i}", 0.5, played=shown[i]) for i in range(3)] == ["accepted"] * 3
        assert loop.reward("e3", 0.75, played=arms[3]) == "accepted"  # which is the one that was decided
        assert loop.reward("e0", 0.25) == "replaced"
        assert loop.reward("e1", -0.25, played=shown[1]) == "replaced"
        assert loop.reward("e2", 1.0, played=arms[2]) == "conflict"
        assert loop.reward("e3", 1.0, played=shown[3]) == "conflict"
        rows = [Learned(x[i], shown[i], value) for i, value in enumerate((0.25, -0.25, 0.5))]
        rows.append(Learned(x[3], arms[3], 0.75))
        assert_learned(loop.model(), rows)
        assert_replays(store, loop)
        assert loop.forget("e1")
        assert_learned(loop.model(), [rows[i] for i in (0, 2, 3)])
    with Store(place()) as store:
        loop = store.loop("homepage")
        assert loop.reward("e0", 0.75) == "replaced"
        assert_learned(loop.model(), [rows[0]._replace(reward=0.75), rows[2], rows[3]])
        assert_replays(store, loop)
        assert [loop.forget(f"e{i}") for i in (0, 2, 3)] == [True] * 3
        assert_learned(loop.model(), [])


@pytest.mark.parametrize("aggregation", ["first", "last", "sum"])
def test_a_policy_that_learns_from_its_own_coins_counts_it_and_does_not_learn(place: Place, aggregation: Any) -> None:
    with Store(place()) as store:
        made = MADE | {"policy": armlet.Algorithm1(p=100)}
        loop = store.loop("homepage", **made, aggregation=aggregation)
        arms = [loop.decide(context(i, 2), event=f"e{i}").arm for i in range(3)]
        assert loop.reward("e0", 0.5, played=other(arms[0])) == "counted"
        again = {"first": "conflict", "last": "counted", "sum": "counted"}
        assert loop.reward("e0", 0.25, played=other(arms[0])) == again[aggregation]
        assert loop.reward("e0", 0.75, played=arms[0]) == "conflict"
        assert loop.reward("e1", 0.5) == "accepted"
        assert_learned(loop.model(), [Learned(context(1, 2), arms[1], 0.5)])
        assert_replays(store, loop)
        assert loop.forget("e0")
        assert_learned(loop.model(), [Learned(context(1, 2), arms[1], 0.5)])
    with Store(place()) as store:
        assert_replays(store, store.loop("homepage"))


@pytest.mark.parametrize("policy", [UCB, armlet.Algorithm1(p=100), armlet.ThompsonSampling(), None], ids=str)
def test_nothing_is_under_way_once_another_arm_was_rewarded(place: Place, policy: armlet.Policy | None) -> None:
    with Store(place()) as store:
        made = {name: value for name, value in MADE.items() if name != "policy"}
        loop = store.loop("homepage", **made, policy=policy)
        for i in range(6):
            arm = loop.decide(context(i, 2), event=f"e{i}").arm
            loop.reward(f"e{i}", reward(i), played=other(arm))
        assert_replays(store, loop)
        state: Any = loop.model().state
        if hasattr(state, "under_way"):
            assert state.under_way.sum() == 0
        assert loop._runner.tally.open == 0


def test_an_arm_that_there_is_not_is_refused(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **MADE)
        loop.decide(context(1, 2), event="e")
        with pytest.raises(EventError, match="played is 'c', which is not an arm of loop 'homepage'; give the arm"):
            loop.reward("e", 0.5, played="c")
        loop.add_arm("c")
        loop.retire_arm("c")
        assert loop.reward("e", 0.5, played="c") == "accepted"
        assert_learned(loop.model(), [Learned(context(1, 2), "c", 0.5)])


def test_a_window_closes_with_the_reward_of_the_arm_that_was_played(place: Place) -> None:
    ticks = Ticks()
    with ticking(place(), ticks) as store:
        loop = store.loop("homepage", **MADE, window=10.0, default_reward=0.0)
        arms = [loop.decide(context(i, 2), event=f"e{i}").arm for i in range(2)]
        assert loop.reward("e0", 0.5, played=other(arms[0])) == "accepted"
        assert_learned(loop.model(), [])
        ticks.now += 11.0
        rows = [Learned(context(0, 2), other(arms[0]), 0.5), Learned(context(1, 2), arms[1], 0.0)]
        assert_learned(loop.model(), rows)
        assert_replays(store, loop)


@pytest.mark.parametrize("restarts", [False, True])
def test_a_late_reward_of_another_arm_takes_the_default_back(place: Place, restarts: bool) -> None:
    ticks = Ticks()
    with ticking(place(), ticks) as store:
        loop = store.loop("homepage", **MADE, window=10.0, default_reward=-1.0, aggregation="last")
        arms = [loop.decide(context(i, 2), event=f"e{i}").arm for i in range(2)]
        ticks.now += 11.0
        assert_learned(loop.model(), [Learned(context(i, 2), arms[i], -1.0) for i in range(2)])
        if restarts:
            loop._runner.stale()
        assert loop.reward("e0", 0.5, played=other(arms[0])) == "late"
        rows = [Learned(context(0, 2), other(arms[0]), 0.5), Learned(context(1, 2), arms[1], -1.0)]
        assert_learned(loop.model(), rows)
        assert_replays(store, loop)
        assert loop.reward("e0", 0.25) == "replaced"
        assert loop.reward("e0", 7.0, played=other(arms[0])) == "out_of_range"
        assert loop.reward("e1", 7.0, played=other(arms[1])) == "out_of_range"
        assert_learned(loop.model(), [rows[0]._replace(reward=0.25), rows[1]])
        assert_replays(store, loop)
        assert loop._runner.tally.open == 0
        assert loop.forget("e0")
        assert_learned(loop.model(), rows[1:])


def test_a_default_is_taken_back_though_the_policy_cannot_learn_the_reward(place: Place) -> None:
    ticks = Ticks()
    with ticking(place(), ticks) as store:
        loop = store.loop("homepage", **(MADE | {"policy": armlet.Algorithm1(p=99)}), window=10.0, default_reward=0.0)
        arm = loop.decide(context(0, 2), event="e").arm
        ticks.now += 11.0
        assert_learned(loop.model(), [Learned(context(0, 2), arm, 0.0)])
        assert loop.reward("e", 0.5, played=other(arm)) == "counted"
        assert_learned(loop.model(), [])
        assert_replays(store, loop)
        assert loop._runner.tally.open == 0


def test_a_refit_learns_rewards_of_the_arms_that_were_played(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **MADE)
        arms = [loop.decide(context(i, 2), event=f"e{i}").arm for i in range(6)]
        played = [other(arm) if i % 2 else arm for i, arm in enumerate(arms)]
        for i in range(6):
            loop.reward(f"e{i}", reward(i), played=played[i])
        loop.change(policy=armlet.OFUL(), how="refit")
        assert_learned(loop.model(), [Learned(context(i, 2), played[i], reward(i)) for i in range(6)])
        loop.change(features=["u", "one"])
        loop.change(policy=UCB, how="refit")
        assert_learned(loop.model(), [Learned(context(i, 2)[::-1], played[i], reward(i)) for i in range(6)])
        assert_replays(store, loop)


# --- evaluation ------------------------------------------------------------------------------------------------------


def swapped(store: Store, n: int = 400) -> Loop:
    """Return a loop whose arm b pays 1 and a pays 0, and where every third time b was shown instead of a."""
    loop = store.loop("homepage", arms=["a", "b"], dim=1, policy=armlet.Uniform(), reward_range=(0.0, 1.0), seed=5)
    for i in range(n):
        arm = loop.decide([1.0], event=f"e{i}").arm
        if arm == "a" and i % 3 == 0:
            assert loop.reward(f"e{i}", 1.0, played="b") == "accepted"
        else:
            loop.reward(f"e{i}", float(arm == "b"))
    return loop


def test_an_evaluation_never_takes_the_reward_for_that_of_the_arm_that_was_not_played(place: Place) -> None:
    with Store(place()) as store:
        loop = swapped(store)
        found = armlet.evaluate(loop.log, targets=["a", "b"], estimator="snips", checks="none")
        assert (found["a"].value, found["b"].value) == (0.0, 1.0)
        shown = sum("played" in event for event in loop.log)
        assert (found.rows, found.rewarded, found.missing) == (400, 400 - shown, {"a": shown})


def test_a_log_on_disk_says_which_rewards_are_of_another_arm(tmp_path: Path) -> None:
    with Store(Memory()) as store:
        loop = swapped(store, 60)
        path = write_events(tmp_path / "log.jsonl", loop.log)
        events = [event for event in loop.log if "played" in event]
        assert {event["played"] for event in events} == {"b"}
        assert {event["decision"]["arm"] for event in events} == {"b"}
    table = tmp_path / "log.parquet"
    armlet.log.compact(path, table)
    rows = pq.read_table(table).to_pylist()
    lost = [row for row in rows if row["arm"] == "a" and row["reward"] == 1.0]
    assert lost == []
    assert sum(row["reward"] is None for row in rows) == len(events)


def test_a_log_is_evaluated_with_the_features_of_now_after_a_change_and_a_forget(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", arms=["a", "b"], features=["one", "u"], policy=armlet.Uniform(), seed=5)
        for i in range(200):
            loop.decide(context(i, 2), event=f"e{i}")
            loop.reward(f"e{i}", reward(i))
            if i == 80:
                loop.change(features=["u", "v", "one"])
                break
        for i in range(81, 200):
            loop.decide([context(i, 2)[1], 0.5, 1.0], event=f"e{i}")
            loop.reward(f"e{i}", reward(i))
        whole = armlet.evaluate(loop.log, targets=["a"], checks="none")
        loop.forget("e40")
        loop.forget("e150")
        found = armlet.evaluate(loop.log, targets=["a"], checks="none")
        assert (whole.rewarded, found.rewarded) == (200, 198)
