"""A fault inside a transaction looks like one: rolled back, an InternalError, logged with its places and counted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

import armlet
from armlet.errors import ArmletError, InternalError, StoreError
from armlet.inputs.feature_change import FeatureChange
from armlet.stores import Loop, Memory, Store
from armlet.stores.folds import Tally
from armlet.testing import fault_of
from support.loops import everything
from support.stores import rebuilt

MADE: dict[str, Any] = {"arms": ["a", "b"], "dim": 2, "policy": armlet.LinUCB(), "seed": 3}
X = [1.0, 0.5]

Call = Callable[[Loop], object]
CALLS: dict[str, Call] = {
    "decide": lambda loop: loop.decide(X, event="new"),
    "decide_many": lambda loop: loop.decide_many([X, X]),
    "adecide": lambda loop: asyncio.run(loop.adecide(X)),
    "adecide_many": lambda loop: asyncio.run(loop.adecide_many([X, X])),
    "reward": lambda loop: loop.reward("open", 0.5),
    "areward": lambda loop: asyncio.run(loop.areward("open", 0.5)),
    "reward_many": lambda loop: loop.reward_many([("open", 0.5)]),
    "forget": lambda loop: loop.forget("done"),
    "add_arm": lambda loop: loop.add_arm("c"),
    "change": lambda loop: loop.change(reward_range=(0.0, 1.0)),
    "freeze": lambda loop: loop.freeze(),
}


@pytest.mark.parametrize("kind", [ValueError, TypeError, KeyError, ZeroDivisionError])
@pytest.mark.parametrize("call", CALLS)
def test_fault_inside_a_transaction_is_no_refusal(
    call: str, kind: type[Exception], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    work = CALLS[call]

    def fail(*_: object, **__: object) -> None:
        raise kind("secret 31.0")

    with Store(Memory()) as store:
        loop = store.loop("homepage", **MADE)
        loop.decide(X, event="done")
        loop.reward("done", 1.0)
        loop.decide(X, event="open")
        before = everything(store, loop)
        with monkeypatch.context() as patched, caplog.at_level(logging.ERROR, "armlet.store"):
            patched.setattr(Tally, "see", fail)
            with pytest.raises(StoreError, match="nothing of this call was kept") as raised:
                work(loop)
        assert type(raised.value) is InternalError
        assert isinstance(raised.value.__cause__, kind)
        assert everything(store, loop) == before
        (line,) = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
        assert f"rolled back: {kind.__name__} at armlet.stores." in line
        assert "test_faults_inside:" in line.split(" > ")[-1]
        assert "secret" not in line
        assert "armlet_faults_total 1\n" in store.metrics()
        work(loop)
        assert rebuilt(store).digest() == loop._runner.cast.digest()


def test_fault_while_a_loop_is_opened_is_no_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ValueError("not enough values to unpack")

    with Store(Memory()) as store:
        loop = store.loop("homepage", **MADE)
        loop._runner.let_go()
        with monkeypatch.context() as patched:
            patched.setattr("armlet.stores.runner.recover", fail)
            with pytest.raises(InternalError):
                loop.decide(X)
        assert loop.decide(X).t == 1


@pytest.mark.parametrize("place", ["armlet.stores.rows.replay.checked", "armlet.model_file._restored"])
def test_fault_while_a_row_or_a_model_is_read_is_no_refusal(
    place: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Either reader has an error of Armlet's own for what it cannot read; once that was a refusal, and not logged."""

    def fail(*_: object, **__: object) -> None:
        raise ValueError("not enough values to unpack")

    with Store(Memory()) as store:
        loop = store.loop("homepage", **MADE)
        loop.add_arm("c")
        loop._runner.let_go()
        with monkeypatch.context() as patched, caplog.at_level(logging.ERROR, "armlet.store"):
            patched.setattr(place, fail)
            with pytest.raises(InternalError, match="nothing of this call was kept"):
                loop.decide(X)
        assert "rolled back: ValueError at armlet." in caplog.text
        assert "armlet_faults_total 1\n" in store.metrics()
        assert loop.decide(X).t == 1


def test_fault_at_the_end_of_a_transaction_is_no_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise KeyError("arm")

    with Store(Memory()) as store:
        loop = store.loop("homepage", **MADE)
        with monkeypatch.context() as patched:
            patched.setattr("armlet.stores.runner.LoopRunner.end", fail)
            with pytest.raises(InternalError):
                loop.decide(X)
        assert loop.decide(X).t == 1
        assert "armlet_faults_total 1\n" in store.metrics()


def test_fault_inside_a_bandit_looks_like_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise KeyError("arm")

    monkeypatch.setattr(FeatureChange, "between", fail)
    with pytest.raises(KeyError) as raised:
        armlet.Bandit(["a", "b"], features=["u", "v"]).replace(features=["u"])
    assert not isinstance(raised.value, ArmletError)


def test_decide_takes_actions_by_position() -> None:
    with Store(Memory()) as store:
        loop = store.loop("films", dim=1, action_dim=1, seed=1)
        films: dict[Any, Any] = {"Alien": [1.0], "Heat": [0.0]}
        assert loop.decide([1.0], films, event="e").id == loop.decide([1.0], actions=films, event="e").id
        assert len(loop.decide_many([[1.0], [2.0]], films)) == 2
        assert asyncio.run(loop.adecide([1.0], films)).arm in films
        with pytest.raises(ArmletError) as raised:
            store.loop("arms", **MADE).decide(X, films)
        assert fault_of(raised.value, ["actions"]) is None
