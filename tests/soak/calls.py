"""Kill workers in the midst of a list of calls; each goes on where the one before was killed.

A worker makes the calls of a list, one after the other, and says before and after each which it is. The next one begins
with the call that was asked and not answered.
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
MOST: Final = 60  # answers of a worker
TALLIES: Final = 5  # rows between two of them

Call = tuple[str, str, Any, dict[str, Any]]
"""What to do, the event or the name that it is about, a value, and how."""


class Compare(Protocol):
    """Refuses an answer that is not the one that was expected."""

    def __call__(self, call: Call, answer: Any, expected: Any, *, is_again: bool) -> None:
        """Compare; a call that is made again may have been kept before."""


def run(
    command: Sequence[object], todo: Sequence[Call], expected: Sequence[Any], answers: int, compare: Compare
) -> tuple[int, bool]:
    """Let a worker make so many calls, and kill it; return which is next, and whether it was asked.

    Parameters
    ----------
    command
        The module, a path, the number of its first call, and what else it is to be told.
    todo, expected
        The calls from the first one on, and their answers.
    answers
        How many it may give.
    compare
        Compares them.
    """
    at = int(str(command[2]))
    words = [sys.executable, "-m", *map(str, command)]
    asked = done = at - 1
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=TESTS) as worker:
        if worker.stdout is None or worker.stderr is None:
            raise AssertionError("a worker has no pipes")
        try:
            for line in worker.stdout:
                kind, i, answer = json.loads(line)
                if kind == "ask":
                    asked = i
                    if i - at >= answers:
                        worker.kill()  # in the midst of it, or nearly
                else:
                    done = i
                    compare(todo[i - at], answer, expected[i - at], is_again=i == at)
        finally:
            worker.kill()
        why = worker.stderr.read()
    if worker.returncode != -signal.SIGKILL:
        raise LostError(f"a worker ended by itself: {why}")
    return done + 1, asked > done


def begun(argv: Sequence[str]) -> tuple[str, int, int]:
    """Begin as a worker: keep snapshots often, break what is to be broken; return a path and two numbers."""
    runner.SPACING, runner.COUNTED = SPACING, TALLIES  # type: ignore[misc]
    for name in argv[4:]:
        SABOTAGES[name]()
    return argv[1], int(argv[2]), int(argv[3])


def work_on(calls: Iterable[Call], at: int, make: Callable[[Call], Any]) -> None:
    """Make calls from one on, until killed."""
    for i, call in enumerate(calls):
        if i >= at:
            tell("ask", i, None)
            tell("answer", i, make(call))
    sys.stdin.read()
