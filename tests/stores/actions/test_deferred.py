"""Decisions that wait to be activated: no window runs and no reward counts until then, and never without it."""

from __future__ import annotations

from typing import Any

import pytest

from armlet.errors import EventError
from armlet.stores import Memory, Store
from armlet.stores.verify import verify
from armlet.testing.stores import Place
from stores.actions.action_life import films, make
from support.loops import Ticks, ticking
from support.stores import rebuilt


def learned(loop: Any) -> float:
    return float(loop.model().state.n)


def test_nothing_is_learned_before_it_is_activated(place: Place) -> None:
    with Store(place()) as store:
        loop = make(store)
        loop.decide([0.5], actions=films(5), event="e", defer=True)
        assert loop.reward("e", 0.5) == "accepted"
        assert loop.reward("e", 0.5) == "duplicate"
        assert loop.reward("e", 0.25) == "conflict"
        assert learned(loop) == 0
        assert (loop.stats().open, loop.stats().deferred) == (0, 1)
        assert verify(store._ledger, "films").outcomes == 1
    with Store(place()) as store:
        loop = store.loop("films")
        assert learned(loop) == 0
        assert loop.activate("e")
        assert not loop.activate("e")
        assert learned(loop) == 1
        assert (loop.stats().open, loop.stats().deferred, loop.stats().learned) == (0, 0, 1)
        assert loop.reward("e", 0.5) == "duplicate"
        assert rebuilt(store, "films").digest() == loop.model().digest() == verify(store._ledger, "films").digest


def test_what_is_activated_waits_for_its_reward(place: Place) -> None:
    with Store(place()) as store:
        loop = make(store)
        loop.decide([0.5], actions=films(5), event="e", defer=True)
        assert loop.activate("e")
        assert (loop.stats().open, learned(loop)) == (1, 0)
        verify(store._ledger, "films")
    with Store(place()) as store:
        loop = store.loop("films")
        assert loop.reward("e", 0.5) == "accepted"
        assert learned(loop) == 1
        verify(store._ledger, "films")


@pytest.mark.parametrize("reward", [None, 0.5])
def test_the_window_begins_when_it_is_activated(place: Place, reward: float | None) -> None:
    clock = Ticks(1e9)
    how = {"window": 60.0, "default_reward": 0.25}
    with ticking(place(), clock) as store:
        loop = make(store, **how)
        loop.decide([0.5], actions=films(5), event="e", defer=True)
        if reward is not None:
            assert loop.reward("e", reward) == "accepted"
        clock.now += 1000.0
        assert learned(loop) == 0
        assert loop.activate("e")
        clock.now += 59.0
        assert learned(loop) == 0
    with ticking(place(), clock) as store:
        loop = store.loop("films")
        clock.now += 2.0
        assert learned(loop) == 1
        assert loop.stats().defaults == (reward is None)
        assert loop.reward("e", 1.0, rank=1) == ("late" if reward is None else "replaced")
        assert rebuilt(store, "films").digest() == loop.model().digest() == verify(store._ledger, "films").digest


def test_what_is_never_activated_is_never_learned(place: Place) -> None:
    clock = Ticks(1e9)
    with ticking(place(), clock) as store:
        loop = make(store, window=60.0, default_reward=0.0)
        for i in range(5):
            loop.decide([0.5], actions=films(5), event=f"e{i}", defer=True)
            loop.reward(f"e{i}", 1.0)
        clock.now += 1e6
        store.settle()
        assert learned(loop) == 0
        assert store.prune(clock.now) == 5
        assert loop.reward("e0", 1.0) == "unknown"
        with pytest.raises(EventError, match="there is no decision"):
            loop.activate("e0")
        verify(store._ledger, "films")


def test_rewards_that_came_before_wait_as_well(place: Place) -> None:
    with Store(place()) as store:
        loop = make(store, early_window=60.0, aggregation="sum")
        assert loop.reward("e", 0.25) == "early"
        loop.decide([0.5], actions=films(5), event="e", defer=True)
        assert loop.reward("e", 0.5) == "accepted"
        assert learned(loop) == 0
        assert loop.activate("e")
        model: Any = loop.model()
        assert model.state.n == 1
        assert loop.stats().arms[0].mean == 0.75


def test_a_deferred_decision_can_be_forgotten(place: Place) -> None:
    with Store(place()) as store:
        loop = make(store)
        for i in range(3):
            loop.decide([0.5], actions=films(5), event=f"e{i}", defer=True)
            loop.reward(f"e{i}", 0.5)
        assert loop.forget("e0")
        assert loop.activate("e1")
        assert loop.forget("e1")
        assert learned(loop) == 0
        assert (loop.stats().open, loop.stats().deferred) == (0, 1)
        assert verify(store._ledger, "films").outcomes == 1


def test_a_decision_that_was_not_deferred_is_active() -> None:
    with Store(Memory()) as store:
        loop = make(store)
        loop.decide([0.5], actions=films(5), event="e")
        assert not loop.activate("e")
        with pytest.raises(EventError, match="there is no decision"):
            loop.activate("other")
        assert [row.kind for row in store._ledger.rows(1)] == ["actions", "decide"]
