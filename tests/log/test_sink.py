"""The file of a log: whole lines whatever happens."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from armlet.core.errors import LogError
from armlet.log.sink import BLOCK, Flush, Sink

FULL = """
import resource, signal, sys
from pathlib import Path
from armlet.core.errors import LogError
from armlet.log.sink import Sink
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path, flush = Path(sys.argv[1]), sys.argv[2]
sink = Sink(path, flush)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_050, resource.RLIM_INFINITY))
taken = 0
try:
    for _ in range(10_000):
        sink.put(b"x" * 99 + b"\\n")
        taken += 1
except LogError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(path.stat().st_size % 100)
sink.put(b"y" * 99 + b"\\n")
sink.close()
print(path.stat().st_size == (taken + 1) * 100)
"""


@pytest.mark.parametrize("flush", ["block", "line", "disk"])
def test_a_full_disk_refuses_whole_lines_and_goes_on_once_there_is_room(tmp_path: Path, flush: str) -> None:
    """The system stops writing in the middle of a line; what was taken before is not lost."""
    done = subprocess.run(
        [sys.executable, "-c", FULL, tmp_path / "a", flush], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["a cannot be written: File too large; nothing was logged", "0", "True"]


def test_a_second_writer_is_refused_until_the_first_lets_go(tmp_path: Path) -> None:
    first = Sink(tmp_path / "a", "line")
    code = "import sys, pathlib; from armlet.log.sink import Sink; Sink(pathlib.Path(sys.argv[1]), 'line').close()"
    other = [sys.executable, "-c", code, str(tmp_path / "a")]
    with pytest.raises(LogError, match="is being written by another bandit or process"):
        Sink(tmp_path / "a", "line")
    assert subprocess.run(other, capture_output=True, check=False).returncode == 1
    first.close()
    assert subprocess.run(other, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(("flush", "there"), [("block", 0), ("line", 3), ("disk", 3)])
def test_lines_are_with_the_system_when_they_should_be(tmp_path: Path, flush: Flush, there: int) -> None:
    sink = Sink(tmp_path / "a", flush)
    sink.put(b"ab\n")
    assert (tmp_path / "a").stat().st_size == there
    sink.put(b"x" * BLOCK + b"\n")
    sink.put(b"cd\n")  # a block is full
    assert (tmp_path / "a").stat().st_size >= BLOCK + 4
    sink.close()
    assert (tmp_path / "a").read_bytes() == b"ab\n" + b"x" * BLOCK + b"\ncd\n"
    with pytest.raises(LogError, match="is closed"):
        sink.put(b"ef\n")


def test_a_line_that_did_not_reach_the_disk_ends_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = Sink(tmp_path / "a", "disk")

    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(LogError, match="did not reach the disk: Input/output error; open it anew"):
        sink.put(b"ab\n")
    monkeypatch.undo()
    with pytest.raises(LogError, match="did not reach the disk earlier"):
        sink.put(b"cd\n")
    sink.close()


def test_a_forked_child_writes_nothing(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path\n"
        "from armlet.core.errors import LogError; from armlet.log.sink import Sink\n"
        "sink = Sink(Path(sys.argv[1]), 'block'); sink.put(b'ab\\n')\n"
        "if os.fork() == 0:\n"
        "    try: sink.put(b'cd\\n')\n"
        "    except LogError as error: sink.close(); os._exit('forked' in str(error))\n"
        "    os._exit(7)\n"
        "code = os.waitstatus_to_exitcode(os.wait()[1]); sink.put(b'ef\\n'); sink.close(); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "a"], check=False)
    assert done.returncode == 1
    assert (tmp_path / "a").read_bytes() == b"ab\nef\n"
