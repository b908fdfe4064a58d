"""`armlet audit`: what was found is the exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import armlet
from armlet import cli


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with armlet.Log(tmp_path / "a.jsonl") as log:
        bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.ContextualEpsilonGreedy(p=4), seed=1, log=log)
        for _ in range(5):
            bandit.learn(bandit.decide([1.0]), 0.5)
    return log.path


def audit(path: Path, *more: str) -> int:
    try:
        return cli.main(["audit", str(path), *more])
    except SystemExit as ended:
        return int(ended.code or 0)


def without_checkpoint(path: Path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def in_half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def changed(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"reward":0.5', b'"reward":0.6', 1))


def other(path: Path) -> None:
    path.write_text('{"a": 1}\n')


def without_model(path: Path) -> None:
    path.with_name("a.start.armlet").unlink()


@pytest.mark.parametrize(
    ("spoil", "code", "message"),
    [
        (Path.exists, 0, "12 events, 5 decisions, 1 checkpoints as written"),
        (without_checkpoint, 3, "incomplete: 11 events after the last checkpoint are not sealed"),
        (in_half, 3, "incomplete: 11 events after the last checkpoint are not sealed"),
        (changed, 1, "event 2 (learn): its check value differs"),
        (other, 2, "a.jsonl is not an Armlet log: its first line is not an event"),
        (without_model, 2, "a.start.armlet, the model that the log starts from, is missing; name it by --start"),
        (Path.unlink, 2, "which does not exist"),
    ],
)
def test_exit_code_says_what_was_found(
    path: Path, spoil: Callable[[Path], object], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(path)
    assert audit(path) == code
    said = capsys.readouterr()
    assert message in said.out + said.err
    assert said.err.count("\n") <= 1
    if code != 2:
        assert audit(path, "--json") == code
        found = json.loads(capsys.readouterr().out)
        assert (found["ok"], found["status"]) == (code == 0, {0: "ok", 1: "mismatch", 3: "incomplete"}[code])


def test_digest_noted_elsewhere_is_compared(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    digest = armlet.audit(path, path.with_name("a.start.armlet")).digest
    assert audit(path, "--digest", digest) == 0
    assert audit(path, "--digest", "0" * 64) == 1
    assert "it does not lead to state 000" in capsys.readouterr().out
