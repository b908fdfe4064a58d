"""Actions on replicas: stores over one database have the same tables, one answer of an event, and one model."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import armlet
from armlet import ActionTable
from armlet.stores import Store
from armlet.stores.postgresql import PostgreSQL
from armlet.stores.verify import verify
from stores.actions.action_life import HOW, films
from support.postgresql import Server

N = 30  # decisions of each replica


@pytest.fixture
def stores(server: Server, schema: str) -> Iterator[list[Store]]:
    both = [Store(PostgreSQL(server.conninfo, schema=schema)) for _ in range(2)]
    for store in both:
        store.loop("films", **HOW)
    yield both
    for store in both:
        store.close()


def play(stores: list[Store], which: int) -> None:
    """Decide at one replica, among tables by value and by name; the other answers the same, and has the rewards."""
    here, there = (each.loop("films") for each in (stores[which], stores[1 - which]))
    table = films(40, 100 * which)
    for i in range(N):
        if i % 7 == 0:
            table = table.changed(remove=[table.labels[i % 9]])
            here.prepare(f"of {which}", table)
        event, x = f"{which} {i}", [(i * 7 + which) % 8 / 8]
        actions: Any = films(3, i % 5) if i % 3 == 0 else f"of {which}"
        how: dict[str, Any] = {"actions": actions, "defer": i % 5 == 4}
        if i % 6 == 2:
            how["baseline"] = table.labels[-1] if isinstance(actions, str) else actions.labels[0]
        decision, again = here.decide(x, event=event, **how), there.decide(x, event=event, **how)
        assert again.to_dict() == decision.to_dict()
        there.reward(event, (i % 4) / 4)
        if i % 10 == 9:
            assert there.activate(event)
            assert not here.activate(event)


def test_replicas_choose_from_the_same_tables(stores: list[Store]) -> None:
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda which: play(stores, which), range(2)))
    loops = [store.loop("films") for store in stores]
    one, other = (loop.model() for loop in loops)
    assert one.digest() == other.digest() == verify(stores[0]._ledger, "films").digest
    assert one.t == 2 * N
    assert loops[0].tables() == loops[1].tables()
    assert sorted(loops[0].tables()) == ["of 0", "of 1"]
    ours, theirs = (loop.stats() for loop in loops)
    assert (ours.arms, ours.others, ours.baseline, ours.deferred) == (
        theirs.arms,
        theirs.others,
        theirs.baseline,
        theirs.deferred,
    )
    log = loops[0].log
    assert armlet.audit(log, log.start).ok


def test_a_table_that_one_replica_prepares_is_used_by_the_other(stores: list[Store]) -> None:
    here, there = (store.loop("films") for store in stores)
    table: ActionTable = films(60)
    for i in range(20):  # changes of changes, and some of them whole again
        table = table.changed(add={f"new {i}": [0.5, i / 20]})
        (here, there)[i % 2].prepare("all", table)
        assert (there, here)[i % 2].decide([0.5], actions="all", eligible=[f"new {i}"]).arm == f"new {i}"
    assert here.tables() == there.tables() == {"all": table}


def test_what_one_replica_prunes_is_gone_for_the_other(stores: list[Store]) -> None:
    here, there = (store.loop("films") for store in stores)
    here.prepare("all", films(40))
    for i in range(10):
        (here, there)[i % 2].decide([0.5], actions=films(40).changed(remove=[f"film {i}"]), event=f"e{i}")
    assert stores[0].prune(2.0**33) == 10
    assert there.reward("e3", 1.0) == "unknown"
    for loop in (there, here):
        loop.decide([0.5], actions="all")
        loop.decide([0.5], actions=films(40).changed(remove=["film 30"]))
    assert here.model().digest() == there.model().digest() == verify(stores[1]._ledger, "films").digest
