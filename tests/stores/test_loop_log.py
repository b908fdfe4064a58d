"""The log of a loop is one of Armlet's logs: read, played again, compacted."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

import armlet
from armlet.log import replay
from armlet.log.exporting import write
from armlet.log.reader import read
from armlet.record.events import check_start
from armlet.record.kinds import DECIDE
from armlet.record.values import Event
from armlet.stores import Loop, Store
from armlet.stores.rows.log import LoopLog
from support.loops import Ticks

pytestmark = pytest.mark.spread


def play(loop: Loop, ticks: Ticks) -> None:
    """Decide and reward, in time, late, twice and never, with arms that come and go."""
    for i in range(60):
        eligible = ["a", "c"] if i % 7 == 3 else None
        loop.decide([1.0, (i % 5) / 4], event=f"e{i}", eligible=eligible)
        ticks.now += 10
        if i % 3:
            loop.reward(f"e{i - i % 2}", (i % 4) / 4)
        if i % 20 == 10:
            loop.retire_arm("b")
        if i % 20 == 15:
            loop.restore_arm("b")
        if i == 30:
            loop.add_arm("d")


def replayed(events: LoopLog) -> armlet.Bandit:
    """Audit a log, which compares every decision, and play it again."""
    found = armlet.audit(events, events.start)
    assert found.ok, str(found)
    bandit = armlet.from_bytes(events.start)
    replay(events, bandit)
    assert found.digest == bandit.digest()
    return bandit


def some_loop(store: Store, ticks: Ticks) -> Loop:
    loop = store.loop("homepage", arms=["a", "b", "c"], features=["one", "x"], policy=armlet.Algorithm1(p=30), seed=3)
    play(loop, ticks)
    return loop


def test_events_are_those_of_a_log(tmp_path: Path) -> None:
    ticks = Ticks(1e9)
    with armlet.open_store(tmp_path / "shop.db", wall=ticks, elapsed=ticks) as store:
        loop = some_loop(store, ticks)
        events = list(loop.log)
        check_start(events[0], "shop.db")
        assert loop.log.about["arms"] == ["a", "b", "c"]
        assert [event["seq"] for event in events] == list(range(len(events)))
        decide = next(event for event in events if event["kind"] == "decide")
        assert [name for name in decide if name in DECIDE] == [name for name in DECIDE if name in decide]
        assert set(DECIDE) - set(decide) == {"probabilities", "weights", "unit", "epoch"}
        assert loop.log.find(decide["id"]) == decide
        assert loop.log.find("1-0000000000000000") is None
        at = [event["at"] for event in events[1:]]
        assert at == sorted(at)


def test_the_log_does_not_tell_the_seed(tmp_path: Path) -> None:
    seed = 123_456_789_012_345_678
    with armlet.open_store(tmp_path / "shop.db") as store:
        loop = store.loop("homepage", arms=["a"], dim=1, policy=armlet.LinUCB(), seed=seed)
        loop.decide([1.0])
        text = str(list(loop.log))
    assert str(seed) not in text
    assert base64.b64encode(seed.to_bytes(16, "little")).decode() not in text


def test_a_loop_is_written_as_a_log_and_compacted(tmp_path: Path) -> None:
    ticks = Ticks(1e9)
    with armlet.open_store(tmp_path / "shop.db", wall=ticks, elapsed=ticks) as store:
        loop = some_loop(store, ticks)
        events = list(loop.log)
        write(loop.log, tmp_path / "loop.jsonl")
        write(loop.log, tmp_path / "loop.parquet")
    assert list(read(tmp_path / "loop.jsonl")) == events
    decided = [event for event in events if event["kind"] == "decide"]
    assert [event for event in read(tmp_path / "loop.parquet") if event["kind"] == "decide"] == decided


def test_what_is_left_after_pruning_is_played_again_from_its_own_start(tmp_path: Path) -> None:
    ticks = Ticks(1e9)
    with armlet.open_store(tmp_path / "shop.db", wall=ticks, elapsed=ticks) as store:
        loop = some_loop(store, ticks)
        store.prune(ticks.now - 100)
        assert loop.log.about["digest"] is None  # nobody can play all of it again
        for i in range(60, 80):
            loop.decide([1.0, 0.5], event=f"e{i}")
            loop.reward(f"e{i}", 0.5)
        assert loop.reward("e59", 0.5) == "accepted"  # of a decision that was made before
        assert loop.reward("e58", 0.75, rank=1) == "replaced"  # of what was learned before
        log = loop.log.replayable
        assert log.about["digest"] == armlet.from_bytes(log.start).digest()
        assert replayed(log).to_bytes() == loop.model().to_bytes()
        assert sum(event["kind"] == "decide" for event in loop.log) > 20  # what explored is there to be evaluated


def test_a_digit_that_was_changed_in_a_row_is_found(tmp_path: Path) -> None:
    ticks = Ticks(1e9)
    with armlet.open_store(tmp_path / "shop.db", wall=ticks, elapsed=ticks) as store:
        log = some_loop(store, ticks).log
        ledger = log._ledger
        rows = list(ledger.rows(1))
        seq = next(row.seq for row in rows if row.kind == "decide" and row.t == 9)

        class Tampered(LoopLog):
            def __iter__(self) -> Iterator[Event]:
                for event in super().__iter__():
                    yield {**event, "propensity": event["propensity"] - 0.125} if event["seq"] == seq else event

        found = armlet.audit(Tampered(ledger, log._record, None), log.start)
        assert found.mismatch is not None
        assert (found.mismatch.seq, found.mismatch.kind) == (seq, "decide")
        assert "propensity" in found.mismatch.what


def test_a_log_begins_with_the_arms_that_there_were_before_a_forget(tmp_path: Path) -> None:
    """What a loop goes on from then knows later arms; a row from before could not have played them."""
    with armlet.open_store(tmp_path / "shop.db") as store:
        loop = store.loop("homepage", arms=["a", "b", "d"], dim=1, policy=armlet.Algorithm1(p=30), seed=3)
        loop.retire_arm("d")
        loop.decide_many([[1.0]] * 100, events=[f"e{i}" for i in range(100)])
        loop.reward_many([(f"e{i}", (i % 4) / 4) for i in range(100)])
        loop.change(arms=["b", "c", "d"])
        loop.decide_many([[1.0]] * 100, events=[f"f{i}" for i in range(100)])
        loop.reward_many([(f"f{i}", (i % 4) / 4) for i in range(100)])
        before = loop.log.about
        loop.forget("e3")
        about = loop.log.about
        assert (about["arms"], about["retired"]) == (before["arms"], before["retired"]) == (["a", "b", "d"], [])
        later = loop.log.replayable.about
        assert (later["arms"], later["retired"]) == (["a", "b", "d", "c"], ["a"])
        assert [event["kind"] for event in loop.log if "arm" in event["kind"]] == [
            "retire_arm",
            "add_arm",
            "restore_arm",
            "retire_arm",
        ]
        assert armlet.evaluate(loop.log, {"uniform": "uniform"}).rewarded == 199
