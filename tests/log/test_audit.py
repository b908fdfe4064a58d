"""Replay and audit are exact for every policy, from JSON lines and from Parquet; whatever is changed is found."""

from __future__ import annotations

from pathlib import Path

import pytest

import armlet
from armlet.log import replaying
from armlet.log.exporting import compact
from armlet.log.reader import read
from armlet.record.values import Event
from armlet.types import Policy
from support.lives import Life, new_bandit
from support.policies import every_policy

pytestmark = pytest.mark.spread

COMPILED, OTHERS = 400, 60  # decisions; benchmarks/logged.py plays 20,000 and 500


@pytest.mark.parametrize("policy", every_policy(), ids=repr)
def test_every_policy_is_replayed_bit_for_bit(policy: Policy, tmp_path: Path) -> None:
    bandit, log = new_bandit(policy, tmp_path / "a.jsonl")
    Life(bandit).live(COMPILED if policy.rule() is not None else OTHERS)
    log.close()
    start = tmp_path / "a.start.armlet"
    for path in (tmp_path / "a.jsonl", compact(tmp_path / "a.jsonl")):
        found = armlet.audit(path, start)
        assert found.mismatch is None
        assert found.digest == bandit.digest()
        assert found.unsealed == 0
        again = armlet.load(start)
        armlet.log.replay(read(path), again)
        assert again.to_bytes() == bandit.to_bytes()


@pytest.mark.parametrize("policy", every_policy(), ids=repr)
def test_changes_of_arms_that_a_policy_refuses_leave_no_event(policy: Policy, tmp_path: Path) -> None:
    bandit, log = new_bandit(policy, tmp_path / "a.jsonl")
    for kind, change, label in (
        ("add_arm", bandit.add_arm, "arm 9"),
        ("remove_arm", bandit.remove_arm, "arm 1"),
    ):
        try:
            change(label)
        except ValueError:
            assert kind not in {event["kind"] for event in log}
        else:
            assert kind in {event["kind"] for event in log}
    bandit.decide([1.0, 0.5, 0.25])
    log.close()
    assert armlet.audit(tmp_path / "a.jsonl", tmp_path / "a.start.armlet").mismatch is None


def test_everything_else_that_changes_a_bandit_is_replayed_too(tmp_path: Path) -> None:
    policy = armlet.AutoEpsilonGreedy(horizon=1000)
    bandit, log = new_bandit(policy, tmp_path / "a.jsonl")
    life = Life(bandit)
    life.live(50)
    other = armlet.Bandit([f"arm {i}" for i in range(4)], 3, policy=policy, seed=3)
    other.learn(other.decide([1.0, 0.5, 0.25]), 0.5)
    bandit.merge(other)
    bandit.partial_fit([[1.0, 0.0, 0.5]], ["arm 2"], [0.25], explored=True, weights=[2.0], steps=5)
    bandit.replace(t=bandit.t + 100)
    batch = bandit.decide_many([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], eligible=["arm 2", "arm 3"])
    bandit.learn_many(batch, [0.5, 1.0])
    bandit.learn(armlet.Decision.from_dict(bandit.decide([0.0, 0.0, 1.0]).to_dict()), 1.0)
    row = bandit.decide([0.5, 0.0, 1.0]).to_dict() | {"reward": 0.75}
    bandit.partial_fit({name: [row[name]] for name in ("t", "x", "arm", "reward", "propensity", "explored", "tag")})
    life.live(50)
    log.close()
    kinds = {event["kind"] for event in log}
    assert {"merge", "partial_fit", "advance", "learn", "learn_logged"} <= kinds
    for path in (tmp_path / "a.jsonl", compact(tmp_path / "a.jsonl")):
        found = armlet.audit(path, tmp_path / "a.start.armlet")
        assert (found.mismatch, found.digest) == (None, bandit.digest())


@pytest.mark.parametrize("ending", [".jsonl", ".parquet"])
def test_decisions_of_long_ago_are_found_in_the_log(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With hardly anything kept in memory, weights and corrections included."""
    bandit, log = new_bandit(armlet.LinUCB(), tmp_path / "a.jsonl")
    Life(bandit).live(400)
    log.close()
    monkeypatch.setattr(replaying, "RECENT", 2)
    path = compact(tmp_path / "a.jsonl") if ending == ".parquet" else tmp_path / "a.jsonl"
    found = armlet.audit(path, tmp_path / "a.start.armlet")
    assert (found.mismatch, found.digest) == (None, bandit.digest())


def test_what_cannot_be_played_is_a_mismatch_and_ends_a_replay(tmp_path: Path) -> None:
    bandit, log = new_bandit(armlet.LinUCB(), tmp_path / "a.jsonl")
    Life(bandit).live(5)
    log.close()
    events = list(log)
    start = armlet.load(log.start_path)
    cases: list[tuple[Event, str]] = [
        ({"kind": "dance"}, "event 7 is of kind 'dance', which this version cannot play"),
        ({"kind": "retire_arm"}, "event 7 cannot be played: 'arm' is missing"),
        ({"kind": "learn", "id": "9-00ff00ff00ff00ff", "reward": 1.0, "weight": 1.0}, "which is not in the log"),
    ]
    for strange, what in cases:
        with pytest.raises(armlet.errors.LogError, match=what):
            armlet.log.replay([{"seq": 7, "at": 0, **strange}], start.copy())
    assert armlet.log.replay(events, start) == len(events)
    assert start.digest() == bandit.digest()
