"""What is old goes, and its tables with it; what decisions or names still need stays, and damage is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import armlet
from armlet.errors import StoreError, UnknownNameError
from armlet.stores import SQLite, Store
from armlet.stores.verify import verify
from armlet.testing.stores import Place
from stores.actions.action_life import Life, films, make
from support.loops import Ticks, ticking
from support.stores import rebuilt
from support.stores.files import edit


def tables(store: Store) -> set[int]:
    ledger = store._ledger
    return {row.seq for row in ledger.rows(ledger.loops()[0].id) if row.kind == "actions"}


def test_tables_go_with_the_decisions_that_name_them(place: Place) -> None:
    clock = Ticks(1e9)
    with ticking(place(), clock) as store:
        loop = make(store)
        loop.prepare("all", films(100))
        for first in range(0, 200, 50):
            events = [f"e{i}" for i in range(first, first + 50)]
            given: list[Any] = [films(3, i) for i in range(first, first + 50)]
            loop.decide_many([[0.5]] * 50, actions=given, events=events)
            loop.reward_many([(event, 0.5) for event in events])
            clock.now += 1.0
        before = loop.model().digest()
        assert len(tables(store)) == 201
        assert store.prune(clock.now - 1.0) == 150
        assert len(tables(store)) == 1 + 64  # the one with a name, and those that were used last
        assert loop.model().digest() == before == rebuilt(store, "films").digest()
        assert verify(store._ledger, "films").digest == before
        assert armlet.audit(loop.log.replayable, loop.log.start).ok
        assert len([event for event in loop.log if event["kind"] == "decide"]) == 50
        loop.decide([0.5], actions="all")
        assert loop.decide([0.5], actions=films(3, 199), event="e199").t == 200
    with ticking(place(), clock) as store:
        loop = store.loop("films")
        loop.decide([0.5], actions="all")
        verify(store._ledger, "films")


def test_a_removed_table_goes_with_its_decisions(place: Place) -> None:
    clock = Ticks(1e9)
    with ticking(place(), clock) as store:
        loop = make(store)
        loop.prepare("all", films(9))
        first = loop.decide([0.5], actions="all", event="first")
        loop.prepare("old", films(70))
        loop.remove_table("all")
        for i in range(70):
            loop.decide([0.5], actions=films(2, i))
        loop.remove_table("old")
        assert loop.reward("first", 1.0) == "accepted"
        assert loop.decide([0.5], actions="all", event="first").id == first.id
        assert [event["name"] for event in loop.log if event["kind"] == "remove_table"] == ["all", "old"]
        assert armlet.audit(loop.log, loop.log.start).ok
        armlet.evaluate(loop.log, {"itself": loop.model()})
        before, clock.now = loop.model().digest(), clock.now + 1.0
        store.prune(clock.now)
        assert {1, 3}.isdisjoint(tables(store))
        assert loop.model().digest() == before == rebuilt(store, "films").digest()
        assert armlet.audit(loop.log.replayable, loop.log.start).ok
        assert not [event for event in loop.log if event["kind"] == "remove_table"]  # of tables that are not told
    with ticking(place(), clock) as store:
        loop = store.loop("films")
        assert loop.tables() == {}
        verify(store._ledger, "films")
        with pytest.raises(UnknownNameError, match="name is 'all', which no prepared table of the loop has"):
            loop.remove_table("all")


def test_a_table_stays_for_those_that_are_changes_of_it(place: Place) -> None:
    clock = Ticks(1e9)
    with ticking(place(), clock) as store:
        loop = make(store)
        table = films(100)
        for i in range(3):
            loop.prepare("all", table)
            loop.decide([0.5], actions="all")
            others: list[Any] = [films(2, 1000 + 70 * i + j) for j in range(70)]  # the last ones that were used
            loop.decide_many([[0.5]] * len(others), actions=others)
            table = table.changed(add={f"new {i}": [0.5, 0.5]})
            clock.now += 1.0
        assert store.prune(clock.now) == 3 * 71
        assert len(tables(store)) == 3 + 64
        loop.prepare("all", table)
        assert loop.tables()["all"].hash == table.hash
        verify(store._ledger, "films")
    with ticking(place(), clock) as store:
        assert store.loop("films").tables()["all"].hash == table.hash


def test_a_life_goes_on_after_it_was_pruned(place: Place) -> None:
    clock = Ticks(1e9)
    with ticking(place(), clock) as store:
        loop = make(store, early_window=60.0)
        life = Life(loop, clock)
        for _ in range(2):
            life.live(24)
            store.prune(clock.now - 12.0)
            assert rebuilt(store, "films").digest() == loop.model().digest()
            assert verify(store._ledger, "films").digest == loop.model().digest()
            assert armlet.audit(loop.log.replayable, loop.log.start).ok


def test_a_backup_is_the_same_loop(tmp_path: Path) -> None:
    clock = Ticks(1e9)
    with ticking(SQLite(tmp_path / "films.db"), clock) as store:
        loop = make(store)
        Life(loop, clock).live(30)
        store.backup(tmp_path / "copy.db")
        digest, table = loop.model().digest(), loop.tables()["all"]
    with ticking(SQLite(tmp_path / "copy.db"), clock) as store:
        loop = store.loop("films")
        assert loop.model().digest() == digest
        assert loop.tables()["all"] == table
        loop.decide([0.5], actions="all")


def test_a_table_that_is_damaged_or_gone_is_found(tmp_path: Path) -> None:
    path = tmp_path / "films.db"
    with Store(SQLite(path)) as store:
        loop = make(store)
        loop.prepare("all", films(5))
        loop.decide([0.5], actions="all")
    whole = path.read_bytes()
    for sql in ("UPDATE event SET x = zeroblob(80) WHERE kind = 'actions'", "DELETE FROM event WHERE kind = 'actions'"):
        path.write_bytes(whole)
        edit(path, sql)
        with Store(SQLite(path)) as store:
            with pytest.raises(StoreError, match=r"damaged|missing|is not its table"):
                verify(store._ledger, "films")
            with pytest.raises(StoreError, match=r"damaged|missing"):
                store.loop("films").decide([0.5], actions="all")
