"""Start a worker, let it work, kill it; what it said before it died is what the store must keep."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from soak.oracle import Oracle

TESTS = Path(__file__).parent.parent
CHECK_EVERY = 5  # kills


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was survived."""

    kills: int
    decisions: int
    repeats: int
    rewards: int
    learned: int

    def __str__(self) -> str:
        return (
            f"{self.kills} kills: {self.decisions} decisions, {self.repeats} repeats and {self.rewards} rewards "
            f"answered; none lost or changed, {self.learned} learned once, state exact"
        )


def soak(path: Path, kills: int, seed: int = 0, *extra: str, say: Callable[[str], None] = lambda _: None) -> Report:
    """Kill so many workers; raise LostError when the store says anything else than it has answered."""
    rng, oracle, learned = random.Random(seed), Oracle(), 0
    for number in range(kills):
        _run(path, number, oracle, rng.randrange(10, 80), *extra)
        if number % CHECK_EVERY == CHECK_EVERY - 1 or number == kills - 1:
            learned = oracle.check(path)
            say(f"{number + 1} of {kills} kills, {learned} rewards learned")
    return Report(
        kills=kills,
        decisions=len(oracle.decided),
        repeats=oracle.repeats,
        rewards=sum(map(len, oracle.told.values())),
        learned=learned,
    )


def _run(path: Path, number: int, oracle: Oracle, answers: int, *extra: str) -> None:
    known = list(oracle.decided)[-20:]
    command = [sys.executable, "-m", "soak.worker", str(path), str(number), *extra]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=TESTS) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write(json.dumps(known) + "\n")
        worker.stdin.flush()
        heard = 0
        try:
            for line in worker.stdout:
                oracle.hear(*json.loads(line))
                heard += 1
                if heard == answers:
                    worker.kill()
        finally:
            worker.kill()
        if heard < answers:
            raise RuntimeError(f"worker {number} ended by itself after {heard} answers")
