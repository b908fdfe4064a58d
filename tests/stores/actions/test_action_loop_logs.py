"""The log of a loop with actions: any reader reads it, an audit decides all of it again, and evaluation values it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import armlet
from armlet.log.reader import read
from armlet.stores import Memory, SQLite, Store
from armlet.stores.rows.log import LoopLog
from armlet.testing.stores import Place
from stores.actions.action_life import Life, films, make
from support.loops import Ticks, ticking


def audited(log: LoopLog) -> Any:
    """Audit a log, which compares every decision."""
    found = armlet.audit(log, log.start)
    assert found.ok, str(found)
    return found


def test_a_log_goes_on_from_a_later_model_with_tables_of_before(place: Place) -> None:
    with Store(place()) as store:
        loop = make(store)
        loop.prepare("all", films(50))
        for i in range(10):
            loop.prepare("all", films(50).changed(add={f"new {i}": [0.5, 0.5]}))
            loop.decide([i / 10], actions="all", event=f"e{i}")
            loop.reward(f"e{i}", 0.5)
        loop.forget("e3")  # the rows from here on go on from another model
        for i in range(10, 20):
            loop.decide([i / 10], actions="all", event=f"e{i}", baseline="new 9" if i % 3 else None)
            loop.reward(f"e{i}", 0.5)
        audited(loop.log.replayable)
        tables = [event for event in loop.log.replayable if event["kind"] == "actions"]
        assert len(tables) == 1
        assert loop.log.find(loop.decide([0.7], actions="all", event="e7").id) is not None


def test_a_log_is_written_to_a_file_and_read_again(tmp_path: Path) -> None:
    clock = Ticks(1e9)
    with ticking(SQLite(tmp_path / "films.db"), clock) as store:
        loop = make(store, early_window=60.0)
        Life(loop, clock).live(40)
        path = tmp_path / "films.jsonl"
        armlet.log.exporting.write(loop.log, path)
        assert list(read(path)) == list(loop.log)


def test_an_event_says_what_the_policy_would_have_played() -> None:
    with Store(Memory()) as store:
        loop = make(store)
        decision = loop.decide([0.5], actions=films(5), event="e", baseline="film 3")
        event = next(event for event in loop.log if event["kind"] == "decide")
        assert (event["arm"], event["propensity"], event["support"]) == ("film 3", 1.0, [["film 3", 1.0]])
        assert event["shadow"]["arm"] in films(5)
        assert event["z"] == decision.z.tolist()
        assert event["x"] == [0.5]
        assert {"dim", "table", "prepared"}.isdisjoint(event)


def test_what_is_activated_is_a_note() -> None:
    with Store(Memory()) as store:
        loop = make(store)
        decision = loop.decide([0.5], actions=films(5), event="e", defer=True)
        loop.reward("e", 0.5)
        loop.activate("e")
        notes = [event for event in loop.log if event["kind"] == "note"]
        assert [(event["id"], event.get("reward"), event.get("activated")) for event in notes] == [
            (decision.id, 0.5, None),
            (decision.id, None, True),
        ]
        audited(loop.log)


@pytest.mark.parametrize("policy", [armlet.SharedThompson(draws=20), armlet.SharedOptimism()])
def test_other_policies_are_judged_by_the_log(policy: Any) -> None:
    with Store(Memory()) as store:
        loop = make(store, policy=policy)
        for i in range(60):
            decision = loop.decide([(i % 7) / 7], actions=films(6), event=f"e{i}")
            loop.reward(f"e{i}", float(decision.arm == "film 2"))
        found = armlet.evaluate(loop.log, {"itself": loop.model()})
        assert "itself" in str(found)
