"""Kill workers in the midst of a list of calls; each goes on where the one before was killed.

A worker makes the calls of a list, one after the other, and says before and after each which it is. It is killed in
the last one, which it never answers, and the next worker begins with that call. So a kill leaves one of two states,
that before the call or that after it, however busy the machine is.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from armlet.stores import runner
from soak.oracle import LostError
from soak.sabotage import SABOTAGES
from soak.worker import SPACING, tell

TESTS: Final = Path(__file__).parent.parent
MOST: Final = 60  # calls of a worker
TALLIES: Final = 5  # rows between two of them

Call = tuple[str, str, Any, dict[str, Any]]
"""What to do, the event or the name that it is about, a value, and how."""


class Compare(Protocol):
    """Refuses an answer that is not the one that was expected."""

    def __call__(self, call: Call, answer: Any, expected: Any, *, is_again: bool) -> None:
        """Compare; a call that is made again may have been kept before."""


def run(command: Sequence[object], todo: Sequence[Call], expected: Sequence[Any], compare: Compare) -> None:
    """Let a worker make calls, and kill it in the last of them.

    Parameters
    ----------
    command
        The module, a path, how many decisions there are, the numbers of its first and its last call, and what else it
        is to be told.
    todo, expected
        All calls, and their answers.
    compare
        Compares them.
    """
    words = [sys.executable, "-m", *map(str, command)]
    first, last = map(int, words[5:7])
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=TESTS) as worker:
        if worker.stdout is None or worker.stderr is None:
            raise AssertionError("a worker has no pipes")
        try:
            for line in worker.stdout:
                kind, i, answer = json.loads(line)
                if kind == "answer":
                    compare(todo[i], answer, expected[i], is_again=i == first)
                elif i == last:
                    worker.kill()  # in the midst of it, or nearly
        finally:
            worker.kill()
        why = worker.stderr.read()
    if worker.returncode != -signal.SIGKILL:
        raise LostError(f"a worker ended by itself: {why}")


def begun(argv: Sequence[str]) -> tuple[str, int, int, int]:
    """Begin as a worker: keep snapshots often, break what is to be broken; return a path and three numbers."""
    runner.SPACING, runner.COUNTED = SPACING, TALLIES  # type: ignore[misc]
    for name in argv[5:]:
        SABOTAGES[name]()
    return argv[1], int(argv[2]), int(argv[3]), int(argv[4])


def work_on(calls: Iterable[Call], first: int, last: int, make: Callable[[Call], Any]) -> None:
    """Make calls from one to another, until killed in the last one or after it."""
    for i, call in enumerate(calls):
        if i >= first:
            tell("ask", i, None)
            answer = make(call)
            if i == last:
                sys.stdin.read()
            tell("answer", i, answer)
