"""Many calls in one transaction: the same as one by one, all or none; and the probabilities of all arms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import armlet
from armlet.errors import EventError
from armlet.stores import Loop, Store
from armlet.testing.stores import Place
from support.bandits import facts
from support.loops import assert_replays, context, everything, reward

UCB = armlet.LinUCB(units="as given")
MADE: dict[str, Any] = {"arms": ["a", "b", "c"], "dim": 2, "policy": UCB, "seed": 3}
POLICIES = [UCB, armlet.Algorithm1(p=20), armlet.ThompsonSampling(), None]


def commits(store: Store) -> int:
    return store._writer.counts.commits


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_many_are_the_same_as_one_by_one(place: Place, policy: armlet.Policy | None) -> None:
    with Store(place()) as store:
        one, many = (store.loop(name, **(MADE | {"policy": policy})) for name in ("one", "many"))
        for part in range(3):
            X = [context(i, 2) for i in range(20 * part, 20 * part + 20)]
            events = [f"e{part} {i}" for i in range(20)]
            alone = [one.decide(x, event=event) for x, event in zip(X, events, strict=True)]
            before = commits(store)
            together = many.decide_many(X, events=events)
            assert commits(store) == before + 1
            assert [facts(each) for each in alone] == [facts(each) for each in together]
            rewards = [(event, reward(i)) for i, event in enumerate(events)]
            statuses = [one.reward(*each) for each in rewards]
            before = commits(store)
            assert many.reward_many(rewards) == statuses
            assert commits(store) == before + 1
        assert one.model().to_bytes() == many.model().to_bytes()
        assert_replays(store, many)


def test_events_may_be_left_out_or_known(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **MADE)
        first = loop.decide_many([context(i, 2) for i in range(3)])
        assert [decision.t for decision in first] == [1, 2, 3]
        assert loop.reward_many([(decision.id, 0.5) for decision in first]) == ["accepted"] * 3
        named = loop.decide_many([context(5, 2), context(6, 2)], events=["x", "y"])
        again = loop.decide_many([context(6, 2), context(7, 2), context(5, 2)], events=["y", "z", "x"])
        assert [decision.t for decision in again] == [5, 6, 4]
        assert [decision.id for decision in again] == [named[1].id, again[1].id, named[0].id]


def test_an_event_that_is_given_twice_in_a_batch_is_decided_once(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **MADE)
        decisions = loop.decide_many([context(1, 2), context(2, 2), context(1, 2)], events=["x", "y", "x"])
        assert [decision.t for decision in decisions] == [1, 2, 1]
        assert loop.reward_many([("x", 0.5), ("x", 0.5), ("x", 0.25), ("y", 1.0), ("z", 1.0)]) == [
            "accepted",
            "duplicate",
            "conflict",
            "accepted",
            "unknown",
        ]
        before = everything(store, loop)
        with pytest.raises(EventError, match="event 'v' has been decided for another context"):
            loop.decide_many([context(1, 2), context(2, 2), context(3, 2)], events=["v", "w", "v"])
        assert everything(store, loop) == before
        assert loop.reward("w", 0.5) == "unknown"


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_a_batch_of_which_one_is_refused_leaves_nothing(place: Place, policy: armlet.Policy | None) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **(MADE | {"policy": policy}))
        loop.decide_many([context(i, 2) for i in range(4)], events=["a", "b", "c", "d"])
        loop.reward("a", 0.5)
        before, tally = everything(store, loop), loop._runner.tally.to_json()
        with pytest.raises(EventError):
            loop.decide_many([context(8, 2), context(9, 2)], events=["new", "b"])
        with pytest.raises(EventError, match="played is 'z'"):
            loop.reward_many([("b", 0.5), ("nobody", 0.5), {"event": "c", "value": 0.5, "played": "z"}, ("d", 0.5)])
        assert everything(store, loop) == before
        assert loop._runner.tally.to_json() == tally
        assert loop.reward_many([("b", 0.25), ("new", 0.5), ("a", 0.5)]) == ["accepted", "unknown", "duplicate"]
        assert_replays(store, loop)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda loop: loop.decide_many(np.zeros((10_001, 2))), "X has 10,001 rows; give 10,000 at most"),
        (lambda loop: loop.decide_many([[1.0, 2.0]], events=["a", "b"]), "events has 2 names for 1 contexts"),
        (lambda loop: loop.decide_many([[1.0, 2.0]], events="a"), "events"),
        (lambda loop: loop.decide_many([[1.0, 2.0]], events=[""]), "events is ''; give text"),
        (lambda loop: loop.decide_many([[1.0]]), "dim is 2"),
        (lambda loop: loop.decide_many([1.0, 2.0]), "contexts"),
        (lambda loop: loop.decide_many([[1.0, 2.0]], eligible=["z"]), "'z'"),
        (lambda loop: loop.decide_many([[1.0, 2.0]], probabilities="some"), "probabilities is 'some'; give 'all'"),
        (lambda loop: loop.decide([1.0, 2.0], probabilities=True), "probabilities is True; give 'all'"),
        (lambda loop: loop.reward_many([("e", 0.5)] * 10_001), "rewards has 10,001 items; give 10,000 at most"),
        (lambda loop: loop.reward_many([("e", "high")]), "value"),
        (lambda loop: loop.reward_many([{"event": "e"}]), "rewards has .*; give pairs of event and value"),
        (lambda loop: loop.reward_many([{"event": "e", "value": 0.5, "of": 1}]), "rewards has .*; give pairs"),
        (lambda loop: loop.reward_many(["e"]), "rewards has 'e'; give pairs"),
        (lambda loop: loop.reward_many([("e",)]), "rewards has .*; give pairs"),
        (lambda loop: loop.reward_many([("e", 0.5, "name", 0, "a", 7)]), "rewards has .*; give pairs"),
        (lambda loop: loop.reward_many([{"event": "e", "value": 0.5, "rank": -1}]), "rank is -1"),
        (lambda loop: loop.reward_many(5), "rewards is 5; give"),
    ],
)
def test_a_batch_that_cannot_be_is_refused_by_name(place: Place, call: Any, words: str) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **MADE)
        loop.decide(context(0, 2), event="e")
        before = everything(store, loop)
        with pytest.raises((ValueError, TypeError, KeyError), match=words) as raised:
            call(loop)
        assert isinstance(raised.value, armlet.errors.ArmletError), raised.value
        assert everything(store, loop) == before


def test_ten_thousand_fit_into_one_batch(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **MADE)
        X = np.array([context(i, 2) for i in range(10_000)])
        decisions = loop.decide_many(X, events=[f"e{i}" for i in range(10_000)])
        assert [decision.t for decision in decisions] == list(range(1, 10_001))
        assert set(loop.reward_many([(f"e{i}", reward(i)) for i in range(10_000)])) == {"accepted"}
        assert loop.model().state.n.sum() == 10_000
        assert_replays(store, loop)


# --- probabilities ---------------------------------------------------------------------------------------------------


def probabilities_of(decision: armlet.Decision) -> list[float]:
    assert decision.probabilities is not None
    return list(decision.probabilities)


def sums(loop: Loop, decision: armlet.Decision, eligible: set[str]) -> None:
    arms = loop.model().arms
    chances = dict(zip(arms, probabilities_of(decision), strict=True))
    assert sum(chances.values()) == pytest.approx(1.0, abs=1e-12)  # of at most 3 numbers, each rounded once
    assert {arm for arm in arms if chances[arm] > 0} <= eligible
    assert chances[decision.arm] == decision.propensity


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_the_probabilities_of_all_arms_are_told_logged_and_told_again(place: Place, policy: Any) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **(MADE | {"policy": policy}))
        for i in range(12):
            decision = loop.decide(context(i, 2), event=f"e{i}", probabilities="all")
            sums(loop, decision, {"a", "b", "c"})
            loop.reward(f"e{i}", reward(i))
        some = loop.decide(context(20, 2), event="some", eligible=["a", "c"], probabilities="all")
        sums(loop, some, {"a", "c"})
        plain = loop.decide(context(21, 2), event="plain")
        assert plain.probabilities is None
        many = loop.decide_many([context(i, 2) for i in (22, 23)], events=["m0", "m1"], probabilities="all")
        for each in many:
            sums(loop, each, {"a", "b", "c"})
        again = loop.decide(context(20, 2), event="some", eligible=["c", "a"], probabilities="all")
        assert probabilities_of(again) == probabilities_of(some)
        logged = {event["event"]: event for event in loop.log if event["kind"] == "decide"}
        assert list(logged["some"]["probabilities"]) == probabilities_of(some)
        assert logged["plain"].get("probabilities") is None
        assert_replays(store, loop)
    with Store(place()) as store:
        loop = store.loop("homepage", **(MADE | {"policy": policy}))
        again = loop.decide(context(23, 2), event="m1")
        assert probabilities_of(again) == probabilities_of(many[1])
