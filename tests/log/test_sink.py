"""The file of a log: whole lines whatever happens."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import armlet
from armlet.errors import LogError
from armlet.log.writer import Journal
from support.lives import new_bandit


def test_a_second_writer_is_refused_until_the_first_lets_go(tmp_path: Path) -> None:
    first = Journal(tmp_path / "a", "line")
    code = (
        "import sys, pathlib; from armlet.log.writer import Journal; Journal(pathlib.Path(sys.argv[1]), 'line').close()"
    )
    other = [sys.executable, "-c", code, str(tmp_path / "a")]
    with pytest.raises(LogError, match="is being written by another bandit or process"):
        Journal(tmp_path / "a", "line")
    assert subprocess.run(other, capture_output=True, check=False).returncode == 1
    first.close()
    assert subprocess.run(other, capture_output=True, check=False).returncode == 0


def test_a_line_that_did_not_reach_the_disk_ends_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line is in the file, so what it records is done; nothing more is taken."""
    log = armlet.Log(tmp_path / "a.jsonl", flush="disk")
    bandit = armlet.Bandit(["a", "b"], 1, seed=1, log=log)
    decision = bandit.decide([1.0])

    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(LogError, match="did not reach the disk: Input/output error; open it again"):
        bandit.learn(decision, 1.0)
    monkeypatch.undo()
    assert decision.learned
    with pytest.raises(LogError, match="did not reach the disk earlier"):
        bandit.decide([1.0])
    log.close()
    found = armlet.audit(log.path, log.start_path)
    assert (found.status, found.digest) == ("incomplete", bandit.digest())
    with armlet.Log(log.path) as log:
        assert armlet.log.resume(log).digest() == bandit.digest()


def test_bytes_that_could_not_be_cut_off_are_cut_before_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line is written in half, and the system refuses to cut that off, once."""
    bandit, log = new_bandit(armlet.ContextualEpsilonGreedy(p=20), tmp_path / "a.jsonl")
    bandit.decide([1.0, 0.0, 0.0])
    write, halves = os.write, [True, False]

    def half(fd: int, data: memoryview) -> int:
        if halves.pop(0):
            return write(fd, data[: len(data) // 2])
        raise OSError(28, os.strerror(28))

    def refuse(_: int, size: int) -> None:
        raise OSError(5, f"not {size}")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", half)
        patch.setattr(os, "ftruncate", refuse)
        with pytest.raises(LogError, match=r"a\.jsonl cannot be written: No space left on device; nothing was logged"):
            log.flush()
    assert not (tmp_path / "a.jsonl").read_bytes().endswith(b"\n")
    bandit.decide([1.0, 0.0, 0.0])
    log.close()
    assert armlet.audit(log.path, log.start_path).ok


def test_resume_takes_a_path(tmp_path: Path) -> None:
    bandit, log = new_bandit(armlet.ContextualEpsilonGreedy(p=20), tmp_path / "a.jsonl")
    bandit.decide([1.0, 0.0, 0.0])
    log.close()
    assert armlet.log.resume(str(log.path)).digest() == bandit.digest()
    with pytest.raises(LogError, match=r"log is .*b\.jsonl, which does not exist"):
        armlet.log.resume(str(tmp_path / "b.jsonl"))
