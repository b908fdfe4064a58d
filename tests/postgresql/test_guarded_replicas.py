"""Guards of a loop with two replicas: each follows what the other changes, and both stay bit-equal."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

import armlet
from armlet.stores import Control, Loop, Store
from armlet.stores.postgresql import PostgreSQL
from support.loops import context, reward
from support.postgresql import Server
from support.stores.guards import SEED, assert_guarded, relearned, rows_of, second

ARMS = ["old", "new", "third"]
EPSILON = armlet.FixedEpsilon(epsilon=0.3)
UCB = armlet.LinUCB(units="as given")


@pytest.fixture
def loops(server: Server, schema: str) -> Iterator[list[tuple[Store, Loop]]]:
    """Two replicas of one loop."""
    with ExitStack() as stack:
        opened = [stack.enter_context(Store(PostgreSQL(server.conninfo, schema=schema))) for _ in range(2)]
        made: dict[str, Any] = {
            "arms": ARMS,
            "features": ["one", "u"],
            "policy": EPSILON,
            "seed": SEED,
            "aggregation": "last",
        }
        yield [(store, store.loop("homepage", **made)) for store in opened]


def traffic(loops: list[tuple[Store, Loop]], first: int, n: int) -> None:
    """Decide at one replica and reward at the other, in turns."""
    for i in range(first, first + n):
        here, there = (loops[k][1] for k in (i % 2, 1 - i % 2))
        here.decide(context(i, 2), event=f"e{i}")
        if i % 4:
            there.reward(f"e{i}", reward(i))


def assert_equal(loops: list[tuple[Store, Loop]]) -> None:
    for _, loop in loops:
        loop.model()
    assert len({loop._runner.cast.to_bytes() for _, loop in loops}) == 1
    for store, loop in loops:
        assert_guarded(store, loop)


def test_a_replica_follows_the_guards_that_another_one_changes(loops: list[tuple[Store, Loop]]) -> None:
    one, other = (loop for _, loop in loops)
    traffic(loops, 0, 10)
    one.change(control=Control(arm="old", share=0.25))
    traffic(loops, 10, 10)
    other.change(shadow=UCB, how="refit")
    traffic(loops, 20, 10)
    assert_equal(loops)
    one.forget("e5")
    one.change(features=["u", "one"])
    one.decide({"one": 1.0, "u": 0.5})
    other.decide({"one": 1.0, "u": 0.25})
    other.change(features=["one", "u"])
    traffic(loops, 30, 10)
    assert_equal(loops)
    assert one.promote(gate="off", control=0.4).promoted
    traffic(loops, 40, 10)
    assert other.model().policy == UCB
    assert_equal(loops)
    other.change(control=None)
    one.freeze()
    traffic(loops, 50, 10)
    other.forget_many(["e7", "e51"])
    assert_equal(loops)
    other.thaw()
    traffic(loops, 60, 10)
    assert_equal(loops)
    told = [sorted(set(row.fields) & {"control", "shadow"}) for row in rows_of(one, "decide")]
    assert [told.count(each) for each in ([], ["control"], ["control", "shadow"])] == [30, 20, 22]


def test_two_replicas_with_a_control_and_a_shadow_decide_as_one(loops: list[tuple[Store, Loop]]) -> None:
    loops[0][1].change(shadow=UCB, how="refit", control=Control(arm="old", share=0.25))

    def play(which: int) -> None:
        loop = loops[which][1]
        for i in range(30):
            loop.decide(context(i, 2), event=f"{which} {i}")
            loop.reward(f"{which} {i}", reward(i))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(play, (0, 1)))
    assert_equal(loops)
    assert loops[0][1].model().digest() == relearned(loops[1][1], EPSILON).digest()
    assert second(loops[1][1]).digest() == relearned(loops[0][1], UCB).digest()
