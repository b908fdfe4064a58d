"""Start a worker, let it work, kill it; what it said before it died is what the store must keep."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import armlet
from armlet.stores import Store
from soak.environment import LOOPS, loop_of, make_loops, named_context, reward
from soak.inspection import inspect, wait_for_windows
from soak.oracle import LostError, Oracle
from soak.worker import FRESH, Client

TESTS: Final = Path(__file__).parent.parent
CHECK_EVERY: Final = 5  # kills
FILLED: Final = 9000  # decisions before the first kill
BATCH: Final = 500
SLOW: Final = ("forget", "prune", "change")  # calls that are worth to be killed in

Say = Callable[[str], None]


def say_nothing(_: str) -> None:
    """Keep quiet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was survived."""

    kills: int
    decisions: int
    repeats: int
    rewards: int
    forgotten: int
    pruned: int
    changes: int
    learned: int
    rows: int

    @staticmethod
    def of(oracle: Oracle, kills: int, learned: int, rows: int) -> Report:
        """Return what an oracle has heard."""
        counts = oracle.counts
        return Report(
            kills=kills,
            decisions=len(oracle.decided),
            repeats=counts["repeats"],
            rewards=counts["reward"],
            forgotten=counts["forget"],
            pruned=counts["prune"],
            changes=counts["change"],
            learned=learned,
            rows=rows,
        )

    def __str__(self) -> str:
        return (
            f"{self.kills} kills: {self.decisions} decisions, {self.repeats} repeats, {self.rewards} rewards, "
            f"{self.forgotten} forgets, {self.pruned} prunes and {self.changes} changes answered, {self.rows} rows "
            f"written; none lost or changed, {self.learned} learned once, state exact"
        )


def soak(
    path: Path, kills: int, seed: int = 0, *, filled: int = FILLED, sabotage: str | None = None, say: Say = say_nothing
) -> Report:
    """Kill so many workers; raise LostError when the store says anything else than it has answered."""
    rng, oracle, found = random.Random(seed), Oracle(), (0, 0)
    with armlet.open_store(path) as store:
        make_loops(store)
        fill(store, oracle, filled)
    for number in range(kills):
        _run(path, number, oracle, rng, *([sabotage] if sabotage else []))
        if number % CHECK_EVERY == CHECK_EVERY - 1 or number == kills - 1:
            found = _check(path, oracle)
            say(f"{number + 1} of {kills} kills, {len(oracle.decided)} decisions, {found[0]} rewards learned")
    return Report.of(oracle, kills, *found)


def fill(store: Store, oracle: Oracle, decisions: int) -> None:
    """Decide and reward so often before anything fails, many at once."""
    loops = {name: store.loop(name) for name in LOOPS}
    for first in range(0, decisions, BATCH):
        for name, loop in loops.items():
            events = [event for i in range(first, first + BATCH) if loop_of(event := f"fill-{i}") == name]
            X = [list(named_context(event, 0).values()) for event in events]
            asked = time.time()  # before any row is written: what may be pruned is what was asked before a moment
            for event, each in zip(events, loop.decide_many(X, events=events), strict=True):
                oracle.ask("fill", asked, ["decide", event])
                about = [each.id, each.t, each.arm, each.propensity, each.explored, each.x.tolist()]
                oracle.answer("fill", about, 0, 0)
            told = [(event, reward(event)) for event in events[::2]]
            for (event, value), status in zip(told, loop.reward_many(told), strict=True):
                oracle.ask("fill", time.time(), ["reward", event, value, 0])
                oracle.answer("fill", status, 0, 0)
    wait_for_windows(store)


def task(oracle: Oracle, slot: int, number: int) -> str:
    """Return what a worker is told first: what to repeat, and what it may ask about."""
    changes = max((call[2] for call in oracle.open.values() if call[0] == "change"), default=0)
    told: dict[str, Any] = {
        "number": number,
        "open": oracle.left(f"{slot}."),
        "known": oracle.fresh(time.time() - FRESH),
        "changes": max([changes, *oracle.changes.values()]),
    }
    return json.dumps(told) + "\n"


def start(place: str, slot: int, *sabotage: str) -> subprocess.Popen[str]:
    """Start a worker."""
    command = [sys.executable, "-m", "soak.worker", place, str(slot), *sabotage]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, bufsize=1, cwd=TESTS)


def stream(pipe: IO[str] | None) -> IO[str]:
    """Return a pipe of a worker."""
    if pipe is None:
        raise AssertionError("a worker has no pipes")
    return pipe


def _run(path: Path, number: int, oracle: Oracle, rng: random.Random, *sabotage: str) -> None:
    """Let a worker work until it has given so many answers, or asks for something slow, and kill it."""
    answers, is_slow = rng.randrange(10, 400), rng.random() < 0.4
    heard = 0
    with start(str(path), 0, *sabotage) as worker:
        stream(worker.stdin).write(task(oracle, 0, number))
        try:
            for line in stream(worker.stdout):
                kind, *words = json.loads(line)
                getattr(oracle, kind)(*words)
                heard += kind == "answer"
                if heard == answers or (is_slow and kind == "ask" and words[2][0] in SLOW):
                    worker.kill()
        finally:
            worker.kill()
        why = stream(worker.stderr).read()
    if worker.returncode != -signal.SIGKILL:
        raise LostError(f"worker {number} ended by itself: {why}")


def _check(path: Path, oracle: Oracle) -> tuple[int, int]:
    """Repeat what is left to repeat, and compare everything."""
    client = Client(str(path))
    with client.store as store:
        for key, call in oracle.left(""):
            oracle.answer(key, client.answer(call), 0, 0)
        return inspect(store, oracle)
