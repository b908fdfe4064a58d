"""Outcomes on replicas: stores over one database keep one price, one answer of an event, and the same parts."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from armlet import Budget
from armlet.errors import StoreError
from armlet.policies import OccasionalOptimism
from armlet.stores import Store
from armlet.stores.postgresql import PostgreSQL
from armlet.stores.postgresql import session as sessions
from armlet.stores.postgresql.schema import VERSION
from armlet.stores.verify import verify
from support.postgresql import Server

N = 60  # decisions of each replica
HOW: dict[str, Any] = {
    "arms": ["a", "b", "c"],
    "dim": 2,
    "policy": OccasionalOptimism(floor=0.3),
    "outcomes": {"quality": 1.0, "cost": -1.0, "delay": -0.25},
    "known": {"delay": {"a": 0.0, "b": 1.0, "c": 2.0}},
    "budget": Budget("cost", total=30.0, horizon=3 * N),
    "epoch": 40,
    "seed": 5,
}


def opened(server: Server, schema: str) -> Store:
    store = Store(PostgreSQL(server.conninfo, schema=schema))
    store.loop("router", **HOW, on_change="apply")
    return store


@pytest.fixture
def stores(server: Server, schema: str) -> Iterator[list[Store]]:
    both = [opened(server, schema) for _ in range(2)]
    yield both
    for store in both:
        store.close()


def play(stores: list[Store], which: int) -> None:
    """Decide at one replica, with dials and units; costs are reported there, qualities and their truth at the other."""
    here, there = (each.loop("router") for each in (stores[which], stores[1 - which]))
    for i in range(N):
        event, x = f"{which} {i}", [1.0, (i * 7 + which) % 8 / 8]
        how: dict[str, Any] = {"weights": {"cost": -float(i % 4)}} if i % 3 else {"unit": f"unit {i % 5}"}
        decision, again = here.decide(x, event=event, **how), there.decide(x, event=event, **how)
        assert (again.t, again.arm, again.weights, again.unit) == (
            decision.t,
            decision.arm,
            decision.weights,
            decision.unit,
        )
        assert here.reward(event, {"cost": i % 3 / 4}, name="bill") == "accepted"
        assert there.reward(event, {"quality": i % 5 / 4}) == "accepted"
        assert there.reward(event, {"cost": i % 3 / 4, "quality": i % 5 / 4}, name="bill") == "duplicate"
        if i % 4 == 0:
            assert here.reward(event, {"quality": 0.5, "cost": 0.25}, rank=1) == "replaced"
        if i == N // 2:
            there.change(outcomes={"quality": 1.0 + which})


def test_replicas_keep_one_price_and_one_state(server: Server, schema: str, stores: list[Store]) -> None:
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda which: play(stores, which), (0, 1)))
    with Store(PostgreSQL(server.conninfo, schema=schema)) as late:
        loops = [store.loop("router") for store in (*stores, late)]
        assert len({loop.model().to_bytes() for loop in loops}) == 1
        told = [(loop.stats().budget, loop.stats().outcomes, loop.stats().units) for loop in loops]
        assert told[0] == told[1] == told[2]
        budget = told[0][0]
        assert budget is not None
        assert budget.waiting == 0
        assert budget.spent == 2 * sum(0.25 if i % 4 == 0 else i % 3 / 4 for i in range(N))  # of quarters: exact
        assert verify(late._ledger, "router").digest == loops[0].model().digest()


# ---- versions


def test_tables_of_version_1_are_brought_up_to_date(server: Server, schema: str) -> None:
    with Store(PostgreSQL(server.conninfo, schema=schema)) as store:
        loop = store.loop("homepage", arms=["a", "b"], dim=1, seed=5)
        loop.decide([1.0], event="e")
        loop.reward("e", 0.5)
        loop.decide([1.0], event="waits")
        digest = loop.model().digest()
    server.run(f"ALTER TABLE {schema}.outcome DROP COLUMN parts")  # which is all that version 2 has more
    server.run(f"UPDATE {schema}.version SET number = 1")
    with opened(server, schema) as store:
        assert server.run(f"SELECT number FROM {schema}.version") == [(VERSION,)]
        loop = store.loop("homepage")
        assert loop.model().digest() == digest
        assert [loop.reward("e", 0.5), loop.reward("waits", 0.25)] == ["duplicate", "accepted"]
        assert server.run(f"SELECT count(*) FROM {schema}.outcome WHERE parts IS NOT NULL") == [(0,)]
        play([store, store], 0)
        assert server.run(f"SELECT count(*) FROM {schema}.outcome WHERE parts IS NOT NULL") == [(N,)]


def test_a_replica_of_version_1_stops_at_once(server: Server, schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(server, schema) as store:
        loop = store.loop("router")
        monkeypatch.setattr(sessions, "VERSION", 1)
        with pytest.raises(StoreError, match=f"is a store of version {VERSION}; this Armlet reads 1 only"):
            loop.decide([1.0, 0.5], event="e")
        monkeypatch.undo()
        assert loop.decide([1.0, 0.5], event="e").t == 1
