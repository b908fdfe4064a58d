"""Logs of action bandits: replayed bit for bit, audited, continued, compacted; whatever is changed is found."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armlet
from armlet import ActionBandit, ActionTable
from armlet.errors import DecisionError, InvalidValueError, LogError, UnknownNameError
from armlet.log import action_tables, replaying
from armlet.log import log as logs
from armlet.log.exporting import compact
from armlet.log.reader import LogFile, read
from armlet.policies.shared import PairPolicy
from armlet.record.jsonl import encode_event
from armlet.record.values import Event
from support.actions.lives import ACTION_DIM, DIM, ActionLife, drawn_table, new_action_bandit, next_table


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.jsonl"


def start_of(path: Path) -> Path:
    return path.with_name("a.start.armlet")


def lived(path: Path, decisions: int, policy: PairPolicy | None = None, seed: int = 1) -> ActionBandit:
    with armlet.Log(path) as log:
        bandit = new_action_bandit(log, policy)
        ActionLife(bandit, seed).live(decisions)
    return bandit


def test_memory_does_not_grow_with_the_log(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With few tables kept, and few decisions, those of long ago are told again or found again."""
    monkeypatch.setattr(action_tables, "KEPT", 2)
    monkeypatch.setattr(replaying, "RECENT", 16)
    monkeypatch.setattr("armlet.record.block.MOST", 8)
    bandit = lived(path, 200)
    hashes = [event["hash"] for event in LogFile(path) if event["kind"] == "actions"]
    assert len(hashes) > len(set(hashes))  # some came back after they were dropped
    assert armlet.audit(path, start_of(path)).digest == bandit.digest()


def test_a_removed_table_is_dropped_by_readers(path: Path) -> None:
    with armlet.Log(path) as log:
        bandit = ActionBandit(1, 1, seed=3, log=log)
        pending = bandit.decide([0.5], bandit.prepare("drinks", {"tea": [1.0], "milk": [2.0]}))
        with pytest.raises(UnknownNameError, match=r"name is 'drink', .* did you mean 'drinks'"):
            bandit.remove_table("drink")
        bandit.remove_table("drinks")
        assert bandit.tables == {}
        with pytest.raises(UnknownNameError, match="'drinks'"):
            bandit.decide([0.5], "drinks")
        bandit.learn(pending, 1.0)
        bandit.decide([0.5], {"tea": [1.0], "milk": [2.0]})  # readers still keep it
    for each in (path, compact(path)):
        assert armlet.audit(each, start_of(path)).digest == bandit.digest()
        assert [event["kind"] for event in read(each)][1:6] == ["actions", "decide", "remove_table", "learn", "decide"]
        assert len([*armlet.log.with_tables(each)]) == 2
        again = armlet.load(start_of(path), kind=ActionBandit)
        armlet.log.replay(read(each), again)
        assert (again.tables, again.digest()) == ({}, bandit.digest())
    armlet.evaluate(path, {"itself": bandit})


def test_a_call_that_cannot_be_logged_leaves_no_table_behind_in_memory(path: Path) -> None:
    """A table that was not written is told again before the next decision."""
    log = armlet.Log(path, flush="line")
    bandit = new_action_bandit(log)
    table = drawn_table(np.random.default_rng(1))
    journal = log._journal
    assert journal is not None
    journal.lines.refusal = "the disk is full"
    with pytest.raises(LogError, match="the disk is full"):
        bandit.decide([1.0, 0.0], table)
    journal.lines.refusal = None
    bandit.decide([1.0, 0.0], table)
    log.close()
    assert [event["kind"] for event in log] == ["start", "actions", "decide", "checkpoint"]
    assert armlet.audit(path, start_of(path)).ok


def test_features_with_names_and_no_contexts(path: Path) -> None:
    with armlet.Log(path) as log:
        bandit = ActionBandit(0, action_features=["price", "sweet"], seed=1, log=log, objective="min")
        for step in range(20):
            some: dict[Any, Any] = {"tea": {"price": 2.0, "sweet": 0}, "cocoa": [3.0, step / 9], 5: [1.0, 1.0]}
            bandit.learn(bandit.decide(None, some), step / 3)
    assert (log.about["schema"], log.about["action_features"]) == (4, ["price", "sweet"])
    for each in (path, compact(path), compact(path, path.with_name("b.parquet"), contexts="columns")):
        assert armlet.audit(each, start_of(path)).ok


def test_what_was_learned_is_learned_again_from_a_compacted_log(path: Path) -> None:
    """From the table that a log becomes, in the order of learning, bit for bit."""
    import pyarrow.compute as pc  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    rng = np.random.default_rng(3)
    table = ActionTable(["a", "b", "c"], rng.normal(size=(3, ACTION_DIM)))
    with armlet.Log(path) as log:
        bandit = new_action_bandit(log)
        for _ in range(50):
            table = next_table(rng, table)
            bandit.learn(bandit.decide(rng.normal(size=DIM), table), float(rng.normal()))
        bandit.decide(rng.normal(size=DIM), table)  # without a reward
    rows = pq.read_table(compact(path))
    other = new_action_bandit()
    other.partial_fit(rows.filter(pc.is_valid(rows["reward"])))
    other.replace(t=bandit.t)
    bandit._state.solve()  # what partial_fit ends with
    assert other.digest() == bandit.digest()


def test_decisions_come_with_their_tables(path: Path) -> None:
    lived(path, 60)
    for each in (path, compact(path)):
        for event, table in armlet.log.with_tables(each):
            assert (event["actions"], event["n_actions"]) == (table.hash, len(table))
            assert event["z"] == table[event["arm"]].tolist()


def test_labels_that_no_log_can_hold_are_refused(path: Path) -> None:
    with armlet.Log(path) as log:
        bandit = new_action_bandit(log)
        with pytest.raises(InvalidValueError, match="text that can be written as UTF-8"):
            bandit.decide([1.0, 0.0], {"\ud800": [1.0, 2.0, 3.0]})
        assert (bandit.decide([1.0, 0.0], {2**70: [1.0, 2.0, 3.0]}).arm, bandit.t) == (2**70, 1)
    for each in (path, compact(path)):
        assert armlet.audit(each, start_of(path)).ok


# ---- tampering


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of a log with a checkpoint after every 50 events."""
    path = tmp_path_factory.mktemp("logs") / "a.jsonl"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logs, "CHECKPOINT", 50)
        lived(path, 60)
    return path


def forged(honest: Path, tmp_path: Path, events: list[Event]) -> armlet.log.Audit:
    """Audit events whose numbers and check values a forger has put right."""
    crc, lines = 0, []
    for seq, event in enumerate(events):
        line, crc = encode_event({**event, "seq": seq}, crc)
        lines.append(line)
    (tmp_path / "a.jsonl").write_bytes(b"".join(lines))
    shutil.copy(start_of(honest), tmp_path)
    return armlet.audit(tmp_path / "a.jsonl", tmp_path / "a.start.armlet")


def test_a_changed_digit_anywhere_is_found_at_its_event(honest: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    data = honest.read_bytes()
    shutil.copy(start_of(honest), tmp_path)
    digits = [place for place, byte in enumerate(data) if 48 <= byte < 58]
    for place in rng.choice(digits, size=12, replace=False):
        (tmp_path / "a.jsonl").write_bytes(data[:place] + b"%d" % ((data[place] - 47) % 10) + data[place + 1 :])
        found = armlet.audit(tmp_path / "a.jsonl", tmp_path / "a.start.armlet")
        assert found.mismatch is not None
        assert found.mismatch.seq == data.count(b"\n", 0, int(place))


def _nudged(values: list[float]) -> list[float]:
    return [float(np.nextafter(values[0], np.inf)), *values[1:]]


def forgeries(event: Event) -> dict[str, Event]:
    """Return what a forger may make of an event, each of which is a valid event."""
    if event["kind"] == "actions" and "Z" in event:
        Z = [_nudged(event["Z"][0]), *event["Z"][1:]]
        fewer = {"labels": event["labels"][1:], "Z": event["Z"][1:]}
        return {"a feature": {"Z": Z}, "an action less": fewer, "its hash": {"hash": "0" * 64}}
    if event["kind"] == "actions":
        other = {"add": {**event["add"], "Z": [_nudged(row) for row in event["add"]["Z"]]}}
        return {"nothing removed": {"remove": []}, "another base": {"from": event["hash"]}, "a feature": other}
    first, *rest = event["support"]
    most = {"propensity": 1.0, "support": [[event["arm"], 1.0]]}
    swapped = {"support": [first, ["nobody", rest[0][1]], *rest[1:]]} if rest and event["eligible"] is None else most
    return {
        "z": {"z": _nudged(event["z"])},
        "propensity": most,
        "support": swapped,
        "all alike": {"support": None},
        "table": {"actions": "0" * 64},
        "size": {"n_actions": event["n_actions"] + 1},
        "optimistic": {"optimistic": not event["optimistic"]},
        "x": {"x": _nudged(event["x"])},
    }


@pytest.mark.parametrize("kind", ["whole", "changed", "decide"])
def test_a_forger_who_mends_the_check_values_is_found(honest: Path, tmp_path: Path, kind: str) -> None:
    events = list(LogFile(honest))
    rng = np.random.default_rng(4)
    some = {
        "whole": [e for e in events if e["kind"] == "actions" and "Z" in e],
        "changed": [e for e in events if e["kind"] == "actions" and e.get("remove") and e["add"]["Z"]],
        "decide": [e for e in events if e["kind"] == "decide" and len(e["support"] or ()) > 1 and e["seq"] > 30],
    }[kind]
    event = some[int(rng.integers(len(some)))]
    seq = event["seq"]
    for what, change in forgeries(event).items():
        found = forged(honest, tmp_path, [*events[:seq], {**event, **change}, *events[seq + 1 :]])
        assert found.mismatch is not None, what
        if what != "x":  # of a context that nothing depends on, the seal tells
            assert found.mismatch.seq == seq, (what, str(found))


def test_a_table_that_is_missing_or_comes_late_is_found(honest: Path, tmp_path: Path) -> None:
    events = list(LogFile(honest))
    seq = next(e["seq"] for e in events if e["kind"] == "actions" and "name" not in e and e["seq"] > 20)
    dropped = forged(honest, tmp_path, events[:seq] + events[seq + 1 :])
    assert "which is not told before it" in str(dropped.mismatch)
    late = [*events[:seq], events[seq + 1], events[seq], *events[seq + 2 :]]
    assert "which is not told before it" in str(forged(honest, tmp_path, late).mismatch)


def test_events_of_arms_in_a_log_of_actions_are_found(honest: Path, tmp_path: Path) -> None:
    events = list(LogFile(honest))
    found = forged(honest, tmp_path, [*events[:9], {"seq": 9, "kind": "add_arm", "at": 5, "arm": "a"}, *events[9:]])
    assert "it is about arms, but the log has actions with features" in str(found.mismatch)


def test_the_start_cannot_say_that_it_has_arms(honest: Path, tmp_path: Path) -> None:
    events = list(LogFile(honest))
    about = {name: value for name, value in events[0].items() if not name.startswith("action_")}
    found = forged(honest, tmp_path, [{**about, "schema": 3, "arms": ["a"]}, *events[1:]])
    assert "it is about actions with features, but the log has arms" in str(found.mismatch)


def test_a_log_can_be_shown(honest: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from armlet.cli import main

    assert main(["log", "show", str(honest)]) == 0
    text = capsys.readouterr().out
    assert "SharedOptimism()" in text
    assert "action_dim   3" in text
    assert main(["log", "tail", str(honest), "-n", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "checkpoint"
    assert main(["audit", str(honest)]) == 0
    assert "tables of 3 without names" in armlet.Log(honest)._repr_html_()


def test_pending_decisions_of_a_merged_bandit_are_refused(tmp_path: Path) -> None:
    """A log holds no seeds, so that no replay could learn them."""
    with armlet.Log(tmp_path / "log.jsonl") as log:
        bandit = ActionBandit(1, 1, seed=1, log=log)
        start, worker = bandit.copy(), bandit.copy(seed=2)
        pending = worker.decide([1.0], {"tea": [1.0], "milk": [2.0]})
        bandit.merge(worker.difference(start))
        with pytest.raises(DecisionError, match="was made by another bandit"):
            bandit.learn(pending, 0.5)
    assert armlet.audit(tmp_path / "log.jsonl", start).ok
    start.merge(worker)
    start.learn(pending, 0.5)
