"""Loops whose actions come with each decision: what they learn, what an event is answered, and what is refused."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

import armlet
from armlet import ActionBandit, ActionTable
from armlet.errors import (
    EventError,
    InvalidTypeError,
    InvalidValueError,
    LoopStateError,
    StoreError,
    UnknownNameError,
)
from armlet.stores import Control, Memory, Store
from armlet.testing.stores import Place
from stores.actions.action_life import HOW, films, make

# ---- an event has one answer


def test_a_decision_survives_a_change_of_its_table(place: Place) -> None:
    with Store(place()) as store:
        loop = make(store)
        loop.prepare("all", films(50))
        first = loop.decide([0.5], actions="all", event="e")
        loop.prepare("all", films(50).changed(remove=[first.arm]))
        again = loop.decide([0.5], actions="all", event="e")
        assert (again.id, again.arm, again.to_dict()) == (first.id, first.arm, first.to_dict())
        assert loop.decide([0.5], actions=films(50), event="e").id == first.id
    with Store(place()) as store:
        loop = store.loop("films")
        assert loop.decide([0.5], actions="all", event="e").to_dict() == first.to_dict()
        assert first.arm not in loop.tables()["all"]
        assert loop.reward("e", 1.0) == "accepted"
        assert loop.model().state.n == 1
        assert loop.model().t == 1


@pytest.mark.parametrize(
    "other",
    [
        {"x": [0.25]},
        {"actions": films(4)},
        {"eligible": ["film 1"]},
        {"baseline": "film 1"},
        {"defer": True},
    ],
    ids=lambda other: next(iter(other)),
)
def test_an_event_that_is_asked_in_another_way_is_refused(other: dict[str, Any]) -> None:
    with Store(Memory()) as store:
        loop = make(store)
        asked: dict[str, Any] = {"x": [0.5], "actions": films(5), "event": "e"}
        loop.decide(**asked)
        with pytest.raises(EventError, match="has been decided for another context, other actions"):
            loop.decide(**asked | other)
        assert loop.decide(**asked).t == loop.model().t == 1


def test_eligible_actions_may_be_named_in_any_order() -> None:
    with Store(Memory()) as store:
        loop = make(store)
        some = ["film 3", "film 1"]
        first = loop.decide([0.5], actions=films(5), eligible=some, event="e")
        again = loop.decide([0.5], actions=films(5), eligible=some[::-1], event="e")
        assert first.arm in some
        assert again.id == first.id


# ---- tables


def kinds(store: Store) -> list[str]:
    ledger = store._ledger
    return [row.kind for row in ledger.rows(ledger.loops()[0].id)]


def test_a_table_is_written_once(place: Place) -> None:
    for _ in range(2):
        with Store(place()) as store:
            loop = make(store)
            for _ in range(3):
                loop.decide([0.5], actions=films(5))
                loop.decide(
                    [0.5], actions=ActionTable(films(5).labels[::-1], films(5).features[::-1], names=films(5).names)
                )
    with Store(place()) as store:
        assert kinds(store).count("actions") == 1


def test_of_a_large_table_its_changes_are_written(place: Place) -> None:
    table = films(200)
    with Store(place()) as store:
        loop = make(store)
        for i in range(40):
            new = {f"new {i}": [0.5, i / 40], table.labels[9]: [1.0, i / 40]}
            table = table.changed(add=new, remove=[table.labels[0]])
            loop.prepare("all", table)
        rows = [row for row in store._ledger.rows(store._ledger.loops()[0].id) if row.kind == "actions"]
        assert len(rows) == 40
        assert sum(len(row.fields["labels"]) == len(table) for row in rows) == 3  # of each 17
    with Store(place()) as store:
        loop = store.loop("films")
        assert loop.tables()["all"].hash == table.hash
        decision: Any = loop.decide([0.5], actions="all", eligible=["new 7"])
        assert decision.z.tolist() == [0.5, 7 / 40]


def test_many_decisions_have_one_table_or_one_each() -> None:
    with Store(Memory()) as store:
        loop = make(store)
        loop.prepare("all", films(9))
        together = loop.decide_many([[0.5], [0.25]], actions="all", events=["a", "b"])
        apart: Any = loop.decide_many([[0.5], [0.25]], actions=["all", films(3)], events=["a", "c"])
        assert [each.t for each in (*together, *apart)] == [1, 2, 1, 3]
        assert apart[1].n_actions == 3
        with pytest.raises(InvalidValueError, match="actions has 1 tables for 2 contexts"):
            loop.decide_many([[0.5], [0.25]], actions=["all"])


def test_a_coroutine_decides_and_activates() -> None:
    async def play(loop: armlet.stores.Loop) -> list[Any]:
        decision = await loop.adecide([0.5], actions=films(5), event="e", defer=True)
        many = await loop.adecide_many([[0.5]], actions=films(5))
        return [decision.t, many[0].t, await loop.areward("e", 1.0), await loop.aactivate("e")]

    with Store(Memory()) as store:
        loop = make(store)
        assert asyncio.run(play(loop)) == [1, 2, "accepted", True]
        assert loop.model().state.n == 1


def test_a_loop_may_have_no_contexts() -> None:
    with Store(Memory()) as store:
        loop = store.loop("films", action_dim=2, seed=5)
        assert loop.decide(None, actions={"a": [1.0, 2.0], "b": [0.0, 1.0]}, event="e").x.tolist() == []
        assert loop.reward("e", 0.5) == "accepted"


# ---- baselines


def test_a_baseline_is_played_and_learned_and_compared(place: Place) -> None:
    with Store(place()) as store:
        loop = make(store)
        for i in range(30):
            arm = ("film 2", "film 4")[i % 2]
            decision: Any = loop.decide([0.5], actions=films(6), event=f"e{i}", baseline=arm)
            assert (decision.arm, decision.propensity, decision.support) == (arm, 1.0, {arm: 1.0})
            assert decision.z.tolist() == films(6)[arm].tolist()
            loop.reward(f"e{i}", float(arm == "film 2"))
        events = [event for event in loop.log if event["kind"] == "decide"]
        agreed = sum(event["shadow"]["arm"] == event["arm"] for event in events)
        found = loop.stats().baseline
        assert found is not None
        assert (found.decisions, found.agreed) == (30, agreed)
        assert loop.model().state.n == 30
        assert "played in 30 decisions" in str(loop.stats())
        model: Any = loop.model()
        expected = model.predict_expectations([0.5], films(6))
        assert expected[2] > expected[4]
    with Store(place()) as store:
        assert store.loop("films").stats().baseline == found


def test_a_baseline_that_cannot_be_played_is_refused() -> None:
    with Store(Memory()) as store:
        loop = make(store)
        for how in ({"baseline": "film 9"}, {"baseline": "film 2", "eligible": ["film 1"]}):
            with pytest.raises(UnknownNameError, match="which is not an action that could be played"):
                loop.decide([0.5], actions=films(5), **how)
        assert kinds(store) == []
        assert loop.decide([0.5], actions=films(5)).t == 1


# ---- what is refused


def test_what_is_for_loops_with_arms_is_refused() -> None:
    with Store(Memory()) as store:
        loop = make(store)
        refused: list[Any] = [
            lambda: loop.add_arm("a"),
            lambda: loop.retire_arm("a"),
            lambda: loop.change(control=Control(arm="a")),
            lambda: loop.change(shadow=armlet.LinUCB()),
            lambda: loop.change(features=["age", "visits"]),
            lambda: loop.change(arms=["a"]),
            lambda: loop.change(outcomes={"quality": 1.0}),
            loop.freeze,
            loop.promote,
        ]
        for call in refused:
            with pytest.raises(LoopStateError, match="is for loops with arms"):
                call()
        assert kinds(store) == []


@pytest.mark.parametrize(
    "how",
    [
        {"arms": ["a"]},
        {"control": Control(arm="a")},
        {"outcomes": {"quality": 1.0}},
        {"epoch": 10},
        {"normalize": "l2"},
    ],
    ids=lambda how: next(iter(how)),
)
def test_a_loop_of_actions_has_no_such_thing(how: dict[str, Any]) -> None:
    with Store(Memory()) as store, pytest.raises(InvalidValueError, match=r"cannot have|are given"):
        make(store, **how)


def test_the_two_kinds_of_loops_are_told_apart() -> None:
    with Store(Memory()) as store:
        loop: Any = make(store)
        other: Any = store.loop("home", arms=["a", "b"], dim=1, seed=5)
        with pytest.raises(InvalidTypeError, match="actions are missing"):
            loop.decide([0.5])
        with pytest.raises(InvalidTypeError, match="has arms"):
            other.decide([0.5], actions=films(3))
        with pytest.raises(InvalidTypeError, match="has arms"):
            other.prepare("all", films(3))
        with pytest.raises(InvalidValueError, match="there are no actions"):
            other.decide([0.5], defer=True)
        with pytest.raises(InvalidValueError, match="decisions among actions have none"):
            loop.decide([0.5], actions=films(3), unit="u")
        with pytest.raises(LoopStateError, match="was made with actions with features, not with arms"):
            store.loop("films", arms=["a"], dim=1)
        with pytest.raises(LoopStateError, match="was made with arms, not with actions"):
            store.loop("home", dim=1, action_dim=1)
        with pytest.raises(InvalidTypeError, match="SharedOptimism"):
            store.loop("new", dim=1, action_dim=1, policy=armlet.LinUCB())
        with pytest.raises(StoreError, match="give arms, or features of actions"):
            store.loop("new")


def test_features_of_actions_stay_what_they_are() -> None:
    with Store(Memory()) as store:
        make(store)
        for how in ({"action_features": ["genre"]}, {"features": ["height"]}, {"objective": "min"}):
            with pytest.raises(LoopStateError, match="was made with"):
                make(store, **how, on_change="apply")
        assert make(store).decide([0.5], actions=films(3)).t == 1


def test_another_arm_that_was_played_is_refused() -> None:
    with Store(Memory()) as store:
        loop = make(store)
        loop.decide([0.5], actions=films(3), event="e")
        with pytest.raises(EventError, match="with baseline"):
            loop.reward("e", 1.0, played="film 1")


def test_a_table_that_cannot_be_used_leaves_nothing() -> None:
    with Store(Memory()) as store:
        loop = make(store)
        bad: list[Any] = [{"a": [1.0]}, {"a": [1.0, float("nan")]}, {}, ActionTable(["a"], [[1.0]])]
        for table in bad:
            with pytest.raises((InvalidValueError, InvalidTypeError)):
                loop.decide([0.5], actions=table)
        with pytest.raises(UnknownNameError, match="prepare it first"):
            loop.decide([0.5], actions="all")
        with pytest.raises(InvalidTypeError, match="the name of a table"):
            loop.prepare("all", "other")
        with pytest.raises((UnknownNameError, InvalidValueError)):
            loop.decide([0.5], actions=films(3), eligible=["nobody"])
        assert kinds(store) == []


# ---- changes


def test_a_loop_goes_on_from_a_model() -> None:
    bandit = ActionBandit(**HOW)
    for i in range(20):
        bandit.learn(bandit.decide([i / 20], films(8)), (i % 3) / 2)
    with Store(Memory()) as store:
        loop = store.loop("films", model=bandit)
        assert loop.model().state.n == 20
        assert loop.decide([0.5], actions=films(8)).t == 21
        with pytest.raises(InvalidValueError, match="action_dim is given, but the model has its own"):
            store.loop("other", model=bandit, action_dim=2)


def test_a_loop_in_words() -> None:
    with Store(Memory()) as store:
        loop = make(store)
        loop.decide([0.5], actions=films(3))
        assert repr(loop) == "Loop('films', action_dim=2, t=1)"
        assert "films" in store._repr_html_()
        assert "film" in loop._repr_html_()


@pytest.mark.parametrize("policy", [armlet.SharedOptimism(), armlet.SharedThompson(draws=20)], ids=repr)
def test_a_loop_gives_probabilities_of_all_actions(policy: Any) -> None:
    with Store(Memory()) as store:
        loop: Any = make(store, policy=policy)
        table = films(5)
        loop.prepare("all", table)
        for i in range(30):
            expected = loop.model().predict_proba([i / 30], table)
            how: dict[str, Any] = {"actions": "all", "event": f"e{i}"}
            decision = loop.decide([i / 30], **how, probabilities="all")
            np.testing.assert_array_equal(decision.probabilities, expected)
            loop.reward(f"e{i}", (i % 5) / 5)
        loop.prepare("all", films(3))
        again = loop.decide([29 / 30], **how, probabilities="all")
        np.testing.assert_array_equal(again.probabilities, expected)  # of the table that it was decided among
        some = loop.decide_many([[0.5]], actions=table, eligible=["film 1", "film 3"], probabilities="all")[0]
        assert some.probabilities is not None
        assert some.probabilities[[0, 2, 4]].tolist() == [0.0] * 3
        assert loop.decide([0.5], actions=table, baseline="film 2", probabilities="all").probabilities.tolist() == [
            *(0.0, 0.0, 1.0, 0.0, 0.0)
        ]
        with pytest.raises(InvalidValueError, match="probabilities is 'some'; give 'all'"):
            loop.decide([0.5], actions=table, probabilities="some")
