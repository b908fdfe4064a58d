"""Loops with several outcomes, whatever happens to them: their rows lead to what they know, bit for bit."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armlet
from armlet.stores import Memory, Store
from armlet.stores.folds import Tally
from armlet.stores.verify import verify
from armlet.testing.stores import Place
from stores.outcomes.life import Clock, LoopLife, make, opened
from support.examples import scaled
from support.stores import rebuilt

BUDGET = armlet.Budget("cost", total=60.0, horizon=200)
HOW: list[dict[str, Any]] = [
    {"budget": BUDGET, "early_window": 60.0},
    {"window": 20.0, "default_reward": {"quality": 0.0}, "aggregation": "last"},
    {"window": 20.0, "aggregation": "sum", "budget": BUDGET},
    {"policy": armlet.Algorithm1(p=30, units="free"), "window": 20.0, "default_reward": {"quality": 0.0, "cost": 0.5}},
    {"budget": armlet.Budget("cost", total=60.0, period=50, hard=True), "policy": armlet.LinUCB()},
]


def counts(tally: Tally) -> list[Any]:
    """Return what does not depend on when calls were answered that left no row."""
    sums = tally.outcomes.state()
    traffic = tally.traffic
    return [tally.counts, sums, dict(sorted(traffic.statuses.items())), tally.open, traffic.known, traffic.expired_open]


def check(store: Store) -> None:
    """Check that rows, snapshot, log and tally of a loop agree with what it knows."""
    loop = store.loop("router")
    digest = loop.model().digest()
    assert rebuilt(store, "router").digest() == digest
    assert verify(store._ledger, "router").digest == digest
    assert armlet.audit(loop.log.replayable, loop.log.start).digest == digest
    runner = store._runners["router"]
    counted = counts(runner.tally)
    runner.let_go()
    assert loop.model().digest() == digest
    assert counts(runner.tally) == counted


@pytest.mark.parametrize("how", HOW, ids=str)
def test_rows_lead_to_what_a_loop_knows(how: dict[str, Any], place: Place) -> None:
    clock = Clock()
    with opened(place(), clock) as store:
        life = LoopLife(make(store, **how), clock)
        life.live(120)
        check(store)
        store.prune(clock.now - 300.0)
        life.live(30)
        check(store)
        digest = store.loop("router").model().digest()
    assert set(life.statuses) >= {"accepted", "duplicate", "outranked", "replaced"}
    with opened(place(), clock) as store:
        assert store.loop("router").model().digest() == digest
        check(store)


@settings(max_examples=scaled(25), deadline=None)
@given(seed=st.integers(0, 2**32), how=st.sampled_from(HOW))
def test_any_life_can_be_played_again(seed: int, how: dict[str, Any]) -> None:
    clock = Clock()
    with opened(Memory(), clock) as store:
        LoopLife(make(store, **how), clock, seed).live(40)
        check(store)
