"""Logs in which features, encoders, ranges and policies are replaced: replayed, audited, resumed and evaluated.

Contexts are in eighths and rewards in quarters, so that sums are exact.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armlet
from armlet import Bandit, Decision, Encoder, Log, Policy
from armlet.errors import ArgumentError
from armlet.evaluation import spooled
from armlet.evaluation.sources import open_rows
from armlet.inputs.feature_change import FeatureChange
from armlet.log import compact, replaying
from armlet.log.reader import LogFile
from armlet.log.replaying import replay
from armlet.record.events import check_event
from armlet.record.faults import InvalidEventError
from armlet.record.jsonl import encode_event
from armlet.types import Float64

CHANGES: list[dict[str, Any]] = [
    {"features": ["x", "y", "z"], "fill": {"z": 0.5}},
    {"features": ["z", "x", "y"]},
    {"reward_range": (-3.0, 3.0)},
    {"features": ["z", "y"]},
    {"features": ["y", "w", "v"], "fill": {"w": 2000.25}},
    {"encoder": Encoder(["v", "y"]).fit({"v": [1.0], "y": [2.0]})},
    {"encoder": Encoder(["y", "v", "1"]).fit({"v": [1.0], "y": [2.0]}), "fill": {"1": 1.0}},
    {"encoder": Encoder(["y", "u"]).fit({"u": [1.0], "y": [2.0]}), "fill": {"u": -0.25}},
    {"reward_range": (-8.0, 8.0)},
    {"encoder": Encoder(["u", "t", "y"]).fit({"u": [1.0], "y": [2.0], "t": [0.0]})},
]


class Life:
    """A bandit that decides, learns late, and changes."""

    def __init__(self, path: Path, policy: Policy | None = None, *, pending: int = 7) -> None:
        self.log = Log(path)
        self.bandit = Bandit(
            ["a", "b"], features=["x", "y"], policy=policy, reward_range=(-4.0, 4.0), seed=3, log=self.log
        )
        self.pending: list[Decision] = []
        self._learned: list[tuple[Decision, float]] = []
        self._most, self._rng = pending, np.random.default_rng(11)

    def step(self) -> None:
        x = self._rng.integers(-16, 17, size=self.bandit.settings.dim) / 8
        self.pending.append(self.bandit.decide(x))
        if len(self.pending) > self._most:
            reward = float(self._rng.integers(-8, 9)) / 4
            self.bandit.learn(self.pending[0], reward)
            self._learned.append((self.pending.pop(0), reward))
        if len(self._learned) > self._most and self._rng.integers(3) == 0:  # most are of other features
            decision, reward = self._learned.pop(0)
            match self._rng.integers(2):
                case 0:
                    self.bandit.correct(decision, reward, 0.25)
                case _:
                    self.bandit.forget(decision, reward)
        if len(self.pending) > 5 and self._rng.integers(10) == 0:
            self.bandit.expire(self.pending.pop(0))

    def run(self, steps: int) -> None:
        for change in CHANGES:
            for _ in range(steps):
                self.step()
            self.bandit.replace(**change)
        for _ in range(steps):
            self.step()


@pytest.mark.parametrize("pending", [0, 30, 120])
def test_decisions_of_long_ago_are_found_and_carried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pending: int
) -> None:
    monkeypatch.setattr(replaying, "RECENT", 8)
    path = tmp_path / "a.jsonl"
    life = Life(path, armlet.LinUCB(), pending=pending)
    life.run(40)
    life.log.close()
    again = armlet.load(life.log.start_path)
    replay(LogFile(path), again)
    assert again.digest() == life.bandit.digest()


def test_a_decision_that_was_found_is_carried_again_after_the_next_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replaying, "RECENT", 8)
    log = Log(tmp_path / "a.jsonl")
    bandit = Bandit(["a", "b"], features=["x", "y"], policy=armlet.LinUCB(), seed=3, log=log)
    decision = bandit.decide([1.0, 0.25])
    for _ in range(20):  # until it is of long ago
        bandit.decide([0.5, 0.5])
    bandit.learn(decision, 0.5)
    bandit.replace(features=["y", "x"])  # as wide as before: a mistake would not be refused
    bandit.correct(decision, 0.5, 0.75)
    log.close()
    assert armlet.audit(log.path, log.start_path).ok


def test_a_decision_from_before_its_log_is_recorded_as_features_are_now(tmp_path: Path) -> None:
    bandit = Bandit(["a", "b"], features=["x", "y"], policy=armlet.LinUCB(), seed=3)
    bandit.learn(bandit.decide([1.0, 0.5]), 1.0)
    decision = bandit.decide([0.25, 0.5])
    bandit.replace(features=["y", "z", "x"], fill={"z": 3.0})
    log = Log(tmp_path / "a.jsonl")
    bandit._attach_log(log)
    bandit.learn(decision, 0.5)
    log.close()
    learned = [event for event in LogFile(log.path) if event["kind"] == "learn"]
    assert learned[0]["decision"]["x"] == [0.5, 3.0, 0.25]
    assert armlet.audit(log.path, log.start_path).ok


@pytest.mark.parametrize(
    ("old", "new"), [('"fill":{"z":0.5}', '"fill":{"z":0.75}'), ('["z","x","y"]', '["z","y","x"]')]
)
def test_an_audit_finds_a_change_that_was_edited(tmp_path: Path, old: str, new: str) -> None:
    """Even where nothing is sealed, as in events of a store: the digest differs, or a decision does."""
    path = tmp_path / "a.jsonl"
    life = Life(path)
    life.run(20)
    life.log.close()
    text = path.read_text()
    assert old in text
    edited = [_edited(event, old, new) for event in LogFile(path)]
    found = armlet.audit(_Events(edited), life.log.start_path)
    assert found.status == "mismatch"
    assert armlet.audit(_Events(list(LogFile(path))), life.log.start_path).ok
    path.write_text(text.replace(old, new))
    assert armlet.audit(path, life.log.start_path).mismatch is not None


def _edited(event: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    text = json.dumps(event, separators=(",", ":"))
    edited: dict[str, Any] = json.loads(text.replace(old, new))
    return edited


class _Events:
    def __init__(self, events: list[dict[str, Any]]) -> None:
        self._events = events
        self.about = events[0]

    def __iter__(self) -> Any:
        return iter(self._events)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({}, "it has nothing; one of policy, features, reward_range, feature_range, outcomes, budget and guards"),
        ({"features": ["x"], "reward_range": [0.0, 1.0]}, "it has features and reward_range"),
        ({"reward_range": [0.0, 1.0], "fill": {}}, "it has fill without features"),
        ({"features": []}, "features has 0 names"),
        ({"features": ["x", "x"]}, "some of them alike"),
        ({"features": ["x"], "fill": {"y": 1.0}}, "fill has 'y', which is not among features"),
        ({"features": ["x"], "fill": {"x": 1}}, "fill is .*, not an object of features"),
    ],
)
def test_a_change_that_nobody_can_tell_is_no_event(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidEventError, match=why):
        check_event({"seq": 3, "kind": "replace", "at": 5, **fields}, 3, "a.jsonl")


def test_contexts_must_have_the_width_of_their_time(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    life = Life(path)
    life.step()
    life.bandit.replace(features=["x"])
    life.log.close()
    events = list(LogFile(path))
    crc, lines = 0, b""
    for event in [*events[:3], {**events[1], "seq": 3}]:  # a decision of two values again
        line, crc = encode_event(event, crc)
        lines += line
    path.write_bytes(lines)
    with pytest.raises(InvalidEventError, match="x has 2 values, but contexts have 1"):
        list(LogFile(path))


# ---- evaluation


def test_rows_from_before_are_evaluated_as_the_bandit_counts_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, size in (("BLOCK", 16), ("_PART", 8)):
        monkeypatch.setattr(spooled, name, size)
    path = tmp_path / "a.jsonl"
    life = Life(path, armlet.ContextualEpsilonGreedy(p=60))
    life.run(25)
    life.log.close()
    blocks = open_rows(path)
    assert (blocks.features, blocks.dim) == (("u", "t", "y"), 3)
    expected: list[Float64] = []
    n_changes = 0
    names: list[str] = ["x", "y"]
    for event in LogFile(path):
        if event["kind"] == "replace" and "features" in event:
            change = FeatureChange.between(names, event["features"], event["fill"])
            expected = [change.carry(x) for x in expected]
            names = event["features"]
            n_changes += 1
        elif event["kind"] == "decide":
            expected.append(np.array(event["x"]))
    assert n_changes == 8
    assert np.array_equal(np.concatenate([rows.X for rows in blocks]), np.array(expected))


def test_an_evaluation_goes_over_a_change(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    life = Life(path, armlet.ContextualEpsilonGreedy(p=60, floor=0.2))
    life.run(60)
    life.log.close()
    found = armlet.evaluate(path, {"now": life.bandit.copy()})
    assert np.isfinite(found["now"].value)


def test_the_declared_range_holds_the_rewards_of_all_times(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    life = Life(path, armlet.ContextualEpsilonGreedy(p=60))
    life.step()
    assert open_rows(life.log).reward_range == (-4.0, 4.0)
    life.bandit.replace(reward_range=(-1.0, 6.0))
    assert open_rows(life.log).reward_range == (-4.0, 6.0)
    life.log.close()
    assert open_rows(compact(path)).reward_range == (-4.0, 6.0)


def test_a_log_whose_features_change_is_not_compacted(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    life = Life(path)
    life.step()
    life.bandit.replace(features=["y"])
    life.log.close()
    with pytest.raises(ArgumentError, match=r"a\.jsonl, in which features are replaced at event 2; write .jsonl"):
        compact(path)
    assert list(tmp_path.glob("*.parquet")) == []
