"""A change and its record are one: after an interrupt at any line, and an error of any system call, both are there or
neither, flags agree, the next call works and the audit passes."""

from __future__ import annotations

import dataclasses
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

import armlet
from armlet import ActionBandit
from armlet.errors import BusyError, LostDigitsWarning
from armlet.kernel import Lines, commit
from armlet.log.writer import Flush, Journal
from support.faults.interrupted_calls import (
    ACTIONS_CALLS,
    BY_TIME_CALLS,
    COMPILED,
    COMPILED_ALONE,
    HANDLED,
    IN_PYTHON,
    LOG,
    RELEARN,
    RELEARN_ACTIONS,
    RESUME,
    RESUME_ACTIONS,
    SEVERAL_CALLS,
)
from support.faults.interrupts import ERRORS, SOURCE, Call, Harness, World, faults

# a file that is never closed warns
pytestmark = [pytest.mark.spread, pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")]

FLUSHES: tuple[Flush, ...] = ("block", "line", "disk")
KINDS = {
    "compiled": COMPILED,
    "in Python": IN_PYTHON,
    "several": SEVERAL_CALLS,
    "by time": BY_TIME_CALLS,
    "actions": ACTIONS_CALLS,
}
LOGGED = [
    pytest.param(call, flush, id=f"{kind} {name} {flush}")
    for kind, calls in KINDS.items()
    for name, call in calls.items()
    for flush in FLUSHES
    if not call.begins or flush == "line"  # a thousand lines that do not depend on it
]
PLAIN = [
    pytest.param(call, None, id=f"{kind} {name}")
    for kind, calls in {**KINDS, "alone": COMPILED_ALONE}.items()
    for name, call in calls.items()
    if name not in LOG and not call.begins and kind != "in Python"  # whose update is the user's own code
]


@pytest.fixture(autouse=True)
def _quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here outlives the process."""
    monkeypatch.setattr("os.fsync", lambda _: None)


def quick(case: Any) -> Any:
    """Leave to `make test-all` the other flush modes of calls whose lines in them are those of "compiled"."""
    call, flush = case.values
    is_long = flush in ("block", "disk") and case.id.startswith(("in Python", "several"))
    return pytest.param(call, flush, id=case.id, marks=pytest.mark.long if is_long else ())


@pytest.mark.parametrize(("call", "flush"), [*map(quick, LOGGED), *PLAIN])
def test_an_interrupt_at_any_line_tears_nothing(call: Call, flush: Flush | None) -> None:
    assert faults(call, flush) == []


@pytest.mark.parametrize("every", [17, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("call", [RESUME, RESUME_ACTIONS], ids=["arms", "actions"])
def test_a_resume_that_was_interrupted_can_be_made_again(call: Call, every: int) -> None:
    """It has thousands of lines, most of which replay events."""
    assert list(Harness(call, "line").lines(every=every)) == []


@pytest.mark.parametrize("every", [29, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("call", [RELEARN, RELEARN_ACTIONS], ids=["arms", "actions"])
def test_an_interrupt_while_a_log_is_learned_again_tears_nothing(call: Call, every: int) -> None:
    assert list(Harness(call, "line").lines(every=every)) == []


@pytest.mark.parametrize("call", [RELEARN, RELEARN_ACTIONS], ids=["arms", "actions"])
@pytest.mark.filterwarnings("ignore::armlet.errors.LostDigitsWarning")
def test_an_interrupt_leaves_no_bandit_without_warnings(call: Call) -> None:
    """Whoever has all rows takes some back without them, until he is interrupted."""
    assert list(Harness(dataclasses.replace(call, call=call.steps[0], then=call.make), None).lines()) == []
    world = World(Path(), None)
    call.make(world)
    with pytest.warns(LostDigitsWarning):
        call.call(world)


@pytest.mark.parametrize("kind", ["compiled", "in Python"])
def test_an_interrupt_in_a_finaliser_tears_nothing(kind: str) -> None:
    assert list(Harness(KINDS[kind]["replace features"], "line").lines(collects=True)) == []


@pytest.mark.parametrize(("call", "act"), [pytest.param(*pair, id=pair[0].name) for pair in HANDLED])
def test_a_signal_handler_may_use_the_bandit(call: Call, act: Any) -> None:
    assert list(Harness(call, "line").handlers(act)) == []


@pytest.mark.parametrize(("call", "flush"), LOGGED)
def test_an_error_of_any_system_call_tears_nothing(call: Call, flush: Flush) -> None:
    harness = Harness(call, flush)
    found = [harness.system_calls(make) for make in ERRORS.values()]
    assert list(chain(*found, harness.system_calls(ERRORS["full"], half=True))) == []


def test_enough_places_are_tried() -> None:
    """A harness that breaks nothing off would find nothing."""
    harness = Harness(ACTIONS_CALLS["learn"], "line")
    assert list(harness.lines()) == []
    assert harness.broken > 30


# ---- mutants: each makes two steps of one, and is found


def appended_twice(lines: Lines, events: Any, values: Any, call: Any = None, args: Any = ()) -> None:
    try:
        commit(lines, events, ())
    except BaseException:
        commit(lines, events, ())
        raise
    commit(None, [], values, call, args)


def recorded_first(lines: Lines, events: Any, values: Any, call: Any = None, args: Any = ()) -> None:
    commit(lines, events, ())
    commit(None, [], values, call, args)


def flags_last(lines: Lines, events: Any, values: Any, call: Any = None, args: Any = ()) -> None:
    commit(lines, events, (), call, args)
    for owner, name, value, *_ in values:
        setattr(owner, name, value)


def written_first(lines: Lines, events: Any, values: Any, call: Any = None, args: Any = ()) -> None:
    """Rewind after the bytes were handed to the file."""
    seq, crc, size = lines.seq, lines.crc, lines.size
    try:
        commit(lines, events, values, call, args)
        _ = seq  # here an interrupt rewinds what was written
    except BaseException:
        lines.follow(seq, crc, size)
        raise


BUSY: set[Lines] = set()


def stays_busy(lines: Lines, events: Any, values: Any, call: Any = None, args: Any = ()) -> None:
    if lines in BUSY:
        raise BusyError("busy")
    BUSY.add(lines)
    commit(lines, events, values, call, args)
    BUSY.discard(lines)


@pytest.mark.parametrize("mutant", [appended_twice, recorded_first, flags_last, written_first, stays_busy])
def test_a_change_in_two_steps_is_found(mutant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("armlet.recording.commit", mutant)
    monkeypatch.setattr("support.faults.interrupts.SOURCE", (SOURCE, __file__))  # lines of mutants are broken off too
    assert faults(ACTIONS_CALLS["learn"], "line")


def test_a_seal_in_two_steps_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def absorb(journal: Journal) -> None:
        sealer, place = journal._sealing
        lines = journal.lines.since(place)
        sealer.add(lines)
        journal.lines.drop(place, len(lines), ((journal, "_sealing", (sealer, place + len(lines))),))

    monkeypatch.setattr(Journal, "absorb", absorb)
    monkeypatch.setattr("support.faults.interrupts.SOURCE", (SOURCE, __file__))
    assert faults(COMPILED["decide and checkpoint"], "block")


def test_a_seed_that_is_not_recorded_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def reseed(bandit: ActionBandit, seed: int, _once: object) -> None:
        bandit._streams, bandit._seed = (*bandit._streams, bandit._seed), seed

    monkeypatch.setattr(ActionBandit, "_reseed", reseed)
    call = dataclasses.replace(ACTIONS_CALLS["replace seed"], call=lambda world: world.bandit.replace(seed=9))
    harness = Harness(call, "line")
    world = harness._world()
    call.call(world)
    assert list(harness._judged(world, KeyboardInterrupt()))


def test_an_action_bandit_with_a_log_refuses_a_seed(tmp_path: Path) -> None:
    with armlet.Log(tmp_path / "a.jsonl") as log:
        bandit = ActionBandit(1, 1, seed=1, log=log)
        with pytest.raises(BusyError, match="a new seed ends a log"):
            bandit.replace(seed=2)
        bandit.decide([0.5], {"tea": [1.0], "milk": [2.0]})
    assert armlet.audit(log.path, log.start_path).ok


# ---- what is done where nobody can know


class Torn(armlet.Log):
    """A recorder of a user's, interrupted after it has recorded."""

    tears = False

    def on_event(self, kind: str, fields: Any) -> None:
        super().on_event(kind, fields)
        if self.tears:
            self.tears = False
            raise KeyboardInterrupt


@pytest.mark.parametrize("kind", ["arms", "actions"])
def test_a_recorder_in_doubt_receives_the_state(tmp_path: Path, kind: str) -> None:
    log = Torn(tmp_path / "a.jsonl")
    bandit: Any
    if kind == "arms":
        bandit = armlet.Bandit(["a", "b"], 1, seed=1, log=log)
        ask = (lambda: bandit.decide([0.5]), lambda: bandit.add_arm("c"))
    else:
        bandit = ActionBandit(1, 1, seed=1, log=log)
        ask = (lambda: bandit.decide([0.5], {"tea": [1.0], "milk": [2.0]}), lambda: bandit.replace(t=50))
    decision = ask[0]()
    bandit.learn(decision, 1.0)
    log.tears = True
    with pytest.raises(KeyboardInterrupt):
        ask[1]()
    with pytest.warns(RuntimeWarning, match="a change was interrupted while it was recorded"):
        bandit.learn(ask[0](), 0.5)
    bandit.correct(decision, 1.0, 2.0)
    log.close()
    assert [event["kind"] for event in log].count("resync") == 1
    found = armlet.audit(log.path, log.start_path)
    assert (found.status, found.digest) == ("ok", bandit.digest())
    compacted = armlet.log.compact(log.path, tmp_path / "b.parquet")
    assert armlet.audit(tmp_path / "b.parquet", log.start_path).ok, compacted
    with armlet.Log(log.path) as log_again:
        assert armlet.log.resume(log_again, kind=type(bandit)).digest() == bandit.digest()
