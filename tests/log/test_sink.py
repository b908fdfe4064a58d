"""The file of a log: whole lines whatever happens."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from armlet.errors import LogError
from armlet.log.writer import Sink


def test_a_second_writer_is_refused_until_the_first_lets_go(tmp_path: Path) -> None:
    first = Sink(tmp_path / "a", "line")
    code = "import sys, pathlib; from armlet.log.writer import Sink; Sink(pathlib.Path(sys.argv[1]), 'line').close()"
    other = [sys.executable, "-c", code, str(tmp_path / "a")]
    with pytest.raises(LogError, match="is being written by another bandit or process"):
        Sink(tmp_path / "a", "line")
    assert subprocess.run(other, capture_output=True, check=False).returncode == 1
    first.close()
    assert subprocess.run(other, capture_output=True, check=False).returncode == 0


def test_a_line_that_did_not_reach_the_disk_ends_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = Sink(tmp_path / "a", "disk")

    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(LogError, match="did not reach the disk: Input/output error; open it again"):
        sink.put(b"ab\n")
    monkeypatch.undo()
    with pytest.raises(LogError, match="did not reach the disk earlier"):
        sink.put(b"cd\n")
    sink.close()
