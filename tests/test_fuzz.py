"""The fuzzer of `make sanitize` in small: a seeded slice of it finds nothing, and what is planted it finds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

import armlet
from armlet import ActionBandit, Bandit, model_file
from armlet.errors import InvalidTypeError, InvalidValueError
from fuzz import files, logs, policies, runner, threads
from fuzz.faults import Fault
from support.policies import REGISTRY

HERE = Path(__file__).parent


def fuzz(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command, in a process that may crash."""
    command = [sys.executable, "-m", "fuzz", *arguments]
    return subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("kind", "size"),
    [
        ("calls", "--calls=10000"),
        ("actions", "--calls=40000"),
        ("pieces", "--calls=20000"),
        ("files", "--files=1500"),
        ("stores", "--files=150"),
    ],
)
def test_slice_of_the_fuzzer_finds_no_fault(kind: str, size: str) -> None:
    done = fuzz(kind, size, "--seed", "1000")
    assert (done.returncode, "no fault" in done.stdout) == (0, True), done.stdout + done.stderr


def test_threads_keep_the_books_while_arms_come_and_go() -> None:
    done = fuzz("threads", "--seconds", "3")
    assert (done.returncode, done.stdout.count("8 threads on")) == (0, len(threads.POLICIES)), done.stdout + done.stderr


def test_case_that_crashes_is_named_and_left_behind(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that dies before its first case is one fault a case, until there are enough of them."""
    monkeypatch.setattr(runner, "MOST", 2)
    tally = runner.Tally("no such kind", 10)
    runner.follow(tally, 0, 1)
    assert sorted(tally.faults) == [0, 1]
    assert "FAULT  python -m fuzz no such kind --case 0" in capfd.readouterr().out


def finds(play: str, cases: range, what: str) -> bool:
    """Play cases until one has this fault."""
    for case in cases:
        try:
            runner.KINDS[play](case)
        except Fault as fault:
            if what in str(fault):
                return True
    return False


def test_fuzzer_finds_a_refusal_that_changes_something(monkeypatch: pytest.MonkeyPatch) -> None:
    retire = Bandit.retire_arm

    def late(self: Bandit, arm: str | int) -> None:
        retire(self, arm)
        raise InvalidValueError("arm: after the deed")

    monkeypatch.setattr(Bandit, "retire_arm", late)
    assert finds(
        "calls",
        range(8, 100),
        "retire_arm was refused (InvalidValueError('arm: after the deed')), but changed: retired",
    )


def test_fuzzer_finds_an_error_that_nobody_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Bandit, "predict_expectations", broken)
    assert finds("calls", range(8, 100), "predict_expectations is refused, but ZeroDivisionError is not an ArmletError")


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (TypeError("arm is None; give a label"), "TypeError is not an ArmletError"),
        (InvalidTypeError("arm: 'int' object is not iterable"), "'object is not' is not a text of Armlet's"),
        (InvalidValueError("it is gone; add it first"), "the text names none of"),
    ],
)
@pytest.mark.parametrize(("kind", "of", "name"), [("calls", Bandit, "retire_arm"), ("actions", ActionBandit, "expire")])
def test_fuzzer_finds_a_refusal_in_words_of_others(
    error: Exception, why: str, kind: str, of: type, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr(of, name, refuse)
    assert finds(kind, range(8, 100), f"{name} is refused, but {why}")


def test_fuzzer_finds_a_loader_that_lets_another_error_out(monkeypatch: pytest.MonkeyPatch) -> None:
    restore = model_file.restore

    def careless(*given: Any) -> model_file.BanditModel:
        found = restore(*given)
        if found.t > 10**6:
            raise OverflowError("too late")
        return found

    monkeypatch.setattr(model_file, "restore", careless)
    assert finds("files", range(8, 300), "load raised OverflowError('too late')")


@pytest.mark.parametrize("kind", ["logs", "compacted"])
def test_slice_of_the_fuzzer_of_logs_finds_no_fault(kind: str) -> None:
    assert sum(runner.KINDS[kind](case) for case in (1000, 1001)) == 2 * logs.LENGTH


def test_fuzzer_finds_a_reader_of_logs_that_trusts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("armlet.record.jsonl.check_event", lambda *_: None)
    assert finds("logs", range(40), "raised ")


def test_fuzzer_finds_an_audit_that_lets_a_log_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("armlet.log.auditing._Auditor.incomplete", lambda _: None)
    assert finds("logs", range(40), "the audit finds nothing wrong")


def test_fuzzer_finds_a_store_that_decides_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was when nobody looked whether a file holds together."""
    for check in ("check_ours", "check_counts"):
        monkeypatch.setattr(f"armlet.stores.sqlite.ledger.{check}", lambda *_: None)
    assert finds("stores", range(3), "was decided again")


def test_fuzzer_finds_a_store_that_lets_another_error_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for reader in ("rows.decisions", "rows.log", "rows.replay", "runner"):
        monkeypatch.setattr(f"armlet.stores.{reader}.checked", lambda row, *_: row)
    assert finds("stores", range(32, 34), "raised KeyError")


def test_fuzzer_finds_a_descriptor_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("armlet.stores.sqlite.ledger._Lock.close", lambda _: None)
    assert finds("stores", range(3), "descriptors are left open")


def test_books_that_do_not_balance_are_told() -> None:
    arena = threads.Arena(armlet.LinUCB(), 0.0, 1)
    worker = threads.Worker(arena, 0, 1)
    while not arena.count:
        worker.decide()
        worker.learn()
    assert threads.balance(arena) == []
    arena.total["arm 0"] += 1
    assert len(threads.balance(arena)) == 1


def test_every_policy_has_its_turn() -> None:
    drawn = {policies.name_of(policies.draw(Random(case), case)) for case in range(0, 8 * len(REGISTRY), 8)}
    assert drawn == set(REGISTRY)


def test_edits_of_one_header_do_not_reach_the_next() -> None:
    """Values to be put into headers stay as they are: a second edit of the same header goes into a copy."""
    before, rng = repr(files.ODD), Random(1)
    for _ in range(3000):
        header: dict[str, Any] = {"a": {"b": [1, 2, 3], "c": 0.5}, "d": [[1]], "e": "text"}
        for _edit in range(3):
            if header:
                files.replace(rng, header, {"a": 1})
    assert repr(files.ODD) == before
