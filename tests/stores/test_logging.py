"""What a store tells the logger "armlet.store": that something happened to a loop, never what its users did."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import armlet
from armlet.errors import StoreError
from armlet.stores import Store
from armlet.testing.stores import Place, _Failing
from support.loops import Ticks, ticking

MADE: dict[str, Any] = {
    "arms": ["arm-secret", "b"],
    "features": ["one", "feature-secret"],
    "policy": armlet.Algorithm1(p=2),
    "seed": 987654321,
}
VALUES = ("secret", "0.3125", "1234.5", "987654321")


def lines_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what was said since the last time."""
    lines = [f"{record.levelname} {record.getMessage()}" for record in caplog.records if record.name == "armlet.store"]
    caplog.clear()
    return lines


def test_a_store_tells_what_happened_to_its_loops(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="armlet.store")
    ticks = Ticks()
    with ticking(place(), ticks) as store:
        loop = store.loop("homepage", **MADE)
        assert lines_of(caplog) == ["INFO loop homepage: made"]
        for i in range(20):
            loop.decide([1.0, 1234.5], event=f"event-secret-{i}")
            loop.reward(f"event-secret-{i}", 0.3125, name="name-secret")
        assert lines_of(caplog) == []
        store.loop("homepage", **MADE)
        loop.model()
        assert lines_of(caplog) == []
        loop.change(aggregation="last", reward_range=(0.0, 0.3125))
        before: Any = {"aggregation": "first", "reward_range": (-1.0, 1.0)}
        store.loop("homepage", **MADE, **before, on_change="apply")
        assert lines_of(caplog) == ["INFO loop homepage: changed aggregation, reward_range"] * 2
        loop.add_arm("another-secret")
        loop.retire_arm("another-secret")
        assert lines_of(caplog) == ["INFO loop homepage: add_arm", "INFO loop homepage: retire_arm"]
        assert loop.forget_many(["event-secret-1", "event-secret-2", "nobody"]) == 2
        assert loop.forget("nobody") is False
        assert lines_of(caplog) == ["INFO loop homepage: 2 decisions forgotten"]
        ticks.now += 10.0
        pruned = store.prune(ticks.now - 5.0)
        assert pruned > 0
        assert lines_of(caplog) == [f"INFO loop homepage: {pruned} decisions pruned"]
        loop.change(policy=armlet.LinUCB(), how="refit")
        again = "INFO loop homepage: {} rewards learned again by another policy"
        left = sum(event["kind"] == "learn" for event in loop.log)
        assert lines_of(caplog) == [again.format(left), "INFO loop homepage: changed policy"]
        store.delete("homepage")
        store.delete("homepage")
        assert lines_of(caplog) == ["INFO loop homepage: deleted"]


def test_a_transaction_that_failed_is_told_and_what_it_did_is_not(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="armlet.store")
    failing = _Failing(place())
    with Store(failing) as store:
        loop = store.loop("homepage", **MADE)
        caplog.clear()
        failing.fails = True
        for call in (
            lambda: store.loop("another", **MADE),
            lambda: loop.decide([1.0, 1234.5], event="event-secret"),
            lambda: loop.change(aggregation="last"),
            lambda: store.delete("homepage"),
        ):
            with pytest.raises(StoreError):
                call()
            assert lines_of(caplog) == ["WARNING a transaction failed: OSError: no space left"]
        failing.fails = False


def test_nothing_that_a_caller_gave_but_names_of_loops_is_ever_told(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    failing = _Failing(place())
    with Store(failing, memory=1) as store:
        loop = store.loop("homepage", **MADE, early_window=9.0)
        other = store.loop("other", **MADE)
        for i in range(30):
            loop.decide([1.0, 1234.5], event=f"event-secret-{i}")
            loop.reward(f"event-secret-{i}", 0.3125, name="name-secret", played="arm-secret")
            other.reward("early-secret", 0.3125)
        for call in (
            lambda: loop.decide([1.0, 0.5], event="event-secret-1"),
            lambda: loop.reward("event-secret-1", 0.3125, played="nobody-secret"),
            lambda: loop.decide([1.0, 1234.5], eligible=["nobody-secret"]),
            lambda: loop.add_arm("arm-secret"),
        ):
            with pytest.raises((ValueError, KeyError, armlet.errors.ArmletError)):
                call()
        failing.fails = True
        with pytest.raises(StoreError):
            loop.decide([1.0, 1234.5], event="event-secret")
        failing.fails = False
        loop.change(policy=armlet.Algorithm1(p=1234.5))
        loop.change(features=["one", "more-secret"], arms=["b", "c-secret"])
        loop.forget("event-secret-3")
        store.prune(0.0)
    text = "\n".join(caplog.messages)
    assert text.count("homepage") >= 5
    assert [value for value in VALUES if value in text] == []


def test_a_program_that_does_not_listen_hears_nothing(tmp_path: Path) -> None:
    program = """
import armlet
from armlet.stores import Memory, Store
from armlet.testing.stores import _Failing
failing = _Failing(Memory())
store = Store(failing)
loop = store.loop("homepage", arms=["a"], dim=1, policy=armlet.LinUCB(), seed=1)
failing.fails = True
try:
    loop.decide([1.0])
except armlet.errors.StoreError:
    failing.fails = False
store.close()
"""
    ended = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (ended.stdout, ended.stderr) == ("", "")
