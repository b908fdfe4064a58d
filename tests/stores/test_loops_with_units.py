"""Loops whose units keep their arm: over restarts, snapshots and replays, by decisions or by the clock of the wall."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import armlet
from armlet.cast.control import Control
from armlet.errors import EventError, LoopStateError
from armlet.stores import Loop, Memory, Store
from armlet.stores.folds import Tally, UnitCounts
from armlet.stores.folds.decisions import UNITS, Switches
from armlet.stores.runner import SPACING
from support.loops import Ticks, context, reward, ticking
from support.stores import rebuilt

POLICY = armlet.OccasionalOptimism(floor=0.3)


def made(store: Store, *, epoch: Any = 10_000, policy: Any = POLICY, **others: Any) -> Loop:
    return store.loop("homepage", arms=["a", "b", "c"], dim=2, policy=policy, epoch=epoch, seed=3, **others)


def ask(loop: Loop, first: int, n: int, arms: dict[Any, Any]) -> None:
    """Decide for eight units, each with a context of its own, and reward every third decision; none may switch."""
    for i in range(first, first + n):
        decision = loop.decide(context(i % 8, 2), event=f"e{i}", unit=f"u{i % 8}")
        assert arms.setdefault((decision.unit, decision.epoch), decision.arm) == decision.arm
        if i % 3 == 0:
            assert loop.reward(f"e{i}", reward(i)) == "accepted"


def test_a_snapshot_has_the_epoch(tmp_path: Path) -> None:
    arms: dict[Any, Any] = {}
    with armlet.open_store(tmp_path / "shop.db") as store:
        loop = made(store)
        ask(loop, 0, 50, arms)
        X, units = [context(i % 8, 2) for i in range(SPACING)], [f"u{i % 8}" for i in range(SPACING)]
        for decision in loop.decide_many(X, units=units):  # so that there is a snapshot
            assert arms[decision.unit, decision.epoch] == decision.arm
        digest = loop.model().digest()
    with armlet.open_store(tmp_path / "shop.db") as store:
        loop = store.loop("homepage")
        assert loop.model().digest() == digest
        ask(loop, SPACING, 50, arms)
        assert rebuilt(store).to_bytes() == loop.model().to_bytes()


def test_epochs_by_the_wall_clock_never_go_back() -> None:
    ticks = Ticks()
    with ticking(Memory(), ticks) as store:
        loop = made(store, epoch=timedelta(minutes=1))
        assert loop.decide([1.0, 0.0], unit="u").epoch == 1000 // 60
        ticks.now += 60
        assert loop.decide([1.0, 0.0], unit="u").epoch == 1060 // 60
        ticks.now -= 120
        assert loop.decide([1.0, 0.0], unit="u").epoch == 1060 // 60


def test_switches_are_counted() -> None:
    with Store(Memory()) as store:
        loop = made(store, policy=armlet.Greedy())
        for _ in range(5):
            first = loop.decide([1.0, 0.0], unit="u").arm
        assert loop.stats().units == UnitCounts(5, 4, 0)
        others = [arm for arm in ("a", "b", "c") if arm != first]
        loop.decide([1.0, 0.0], unit="u", eligible=others)
        loop.decide([1.0, 0.0], unit="v", eligible=others)
        loop.decide([1.0, 0.0])
        assert loop.stats().units == UnitCounts(7, 5, 1)
        assert loop.stats().to_dict()["units"] == {"decisions": 7, "repeats": 5, "switches": 1}
        assert "5 of a unit that came again within an epoch, 1 of these with another arm" in str(loop.stats())
        assert 'armlet_unit_switches_total{loop="homepage"} 1\n' in store.metrics()
        loop.retire_arm(first)
        loop.decide([1.0, 0.0], unit="w")
        assert loop.stats().units == UnitCounts(8, 5, 1)


def test_counts_of_units_survive_and_are_those_of_a_replay(tmp_path: Path) -> None:
    arms: dict[Any, Any] = {}
    for first in range(0, 120, 40):
        with armlet.open_store(tmp_path / "shop.db") as store:
            loop = made(store, epoch=70)
            ask(loop, first, 40, arms)
            others = {"a", "b", "c"} - {loop.decide(context(1, 2), unit="u1").arm}
            loop.decide(context(1, 2), unit="u1", eligible=sorted(others))
            units = loop.stats().units
            events = list(loop.log)
    last: dict[Any, Any] = {}
    counts = [0, 0, 0]
    for event in events:
        if event["kind"] == "decide":
            key = (event["unit"], event["epoch"])
            is_switch = last.get(key, event["arm"]) != event["arm"]
            counts = [n + more for n, more in zip(counts, (1, key in last, is_switch), strict=True)]
            last[key] = event["arm"]
    assert units == UnitCounts(*counts)
    assert counts[2] >= 3


def test_switches_remember_so_many_units_and_no_names() -> None:
    tally = Switches()
    for i in range(UNITS + 10):
        tally.decided(f"session {i}", 0, 0)
    tally.decided("session 5", 0, 1)  # too long ago
    tally.decided(f"session {UNITS}", 0, 1)
    assert tally.counts == UnitCounts(UNITS + 12, 1, 1)
    again = Switches.restore(tally.state())
    assert again.state() == tally.state()
    assert "session" not in str(tally.state())
    for wrong in ([1, 2, 0, 0, []], [1, 1, 2, 0, []], [1, 0, 0, 0, [5]], [1, 0, 0, "0", []]):
        with pytest.raises((ValueError, TypeError)):
            Switches.restore(wrong)


def test_a_tally_without_units_says_nothing_of_them() -> None:
    with Store(Memory()) as store:
        loop = made(store, epoch=None)
        loop.decide([1.0, 0.0])
        assert loop.stats().units is None
        assert "units" not in Tally().to_json()
        assert "unit_" not in store.metrics()


def test_an_event_has_one_unit() -> None:
    with Store(Memory()) as store:
        loop = made(store)
        first = loop.decide([1.0, 0.0], event="order-1", unit="u")
        again = loop.decide([1.0, 0.0], event="order-1", unit="u")
        assert (again.id, again.unit, again.epoch) == (first.id, "u", 0)
        with pytest.raises(EventError, match="another context, unit, weights or other eligible arms"):
            loop.decide([1.0, 0.0], event="order-1", unit="v")
        with pytest.raises(EventError, match="another context, unit"):
            loop.decide([1.0, 0.0], event="order-1")


def test_refusals() -> None:
    with Store(Memory()) as store:
        with pytest.raises(ValueError, match="unit is 'u', but loop 'homepage' has no epochs; make it with epoch=1000"):
            made(store, epoch=None).decide([1.0, 0.0], unit="u")
        with pytest.raises(ValueError, match="unit is ''; give text of 1 to 256 characters"):
            store.loop("homepage").decide([1.0, 0.0], unit="")
        with pytest.raises(LoopStateError, match="epoch is 5, but loop 'homepage' was made with None"):
            made(store, epoch=5)
        with pytest.raises(ValueError, match="epoch is 0; give a number of decisions"):
            made(store, epoch=0)
        with pytest.raises(ValueError, match="units has 1 names for 2 contexts"):
            store.loop("homepage").decide_many([[1.0, 0.0]] * 2, units=["u"])
        assert store.loop("homepage").stats().decisions == 0


@pytest.mark.parametrize("control", [Control(arm="a", share=0.4), Control(policy=armlet.Uniform(), share=0.4)], ids=str)
def test_a_unit_is_the_controls_or_is_not_for_a_whole_epoch(control: Control, tmp_path: Path) -> None:
    arms: dict[Any, Any] = {}
    for first in (0, 100):
        with armlet.open_store(tmp_path / "shop.db") as store:
            loop = made(store, epoch=90, control=control)
            ask(loop, first, 100, arms)
            assert rebuilt(store).to_bytes() == loop._runner.cast.to_bytes()
            events = [event for event in loop.log if event["kind"] == "decide"]
    played = {(event["unit"], event["epoch"], event["control"]["played"]) for event in events}
    assert len(played) == len(arms)
    assert {is_played for *_, is_played in played} == {False, True}


@pytest.mark.parametrize("shadow", [armlet.LinUCB(), armlet.Uniform()], ids=str)
def test_a_shadow_that_comes_within_an_epoch_is_followed(shadow: Any, tmp_path: Path) -> None:
    arms: dict[Any, Any] = {}
    with armlet.open_store(tmp_path / "shop.db") as store:
        loop = made(store)
        ask(loop, 0, 30, arms)
        loop.change(shadow=shadow, how="refit")
        ask(loop, 30, 30, arms)
        assert rebuilt(store).to_bytes() == loop._runner.cast.to_bytes()


def test_a_loop_that_learns_again_goes_on_with_its_epochs(tmp_path: Path) -> None:
    arms: dict[Any, Any] = {}
    with armlet.open_store(tmp_path / "shop.db") as store:
        loop = made(store, epoch=50)
        ask(loop, 0, 120, arms)
        loop.change(policy=armlet.LinUCB(), how="refit")
        ask(loop, 200, 20, {})
        assert loop.model().settings.epoch == 50
        assert rebuilt(store).to_bytes() == loop.model().to_bytes()
