"""Maintain a store while threads decide: no decision fails, and none waits long.

Quiet rounds, in which threads only decide and reward, take turns with others, in which somebody forgets, prunes, lets
all windows run out at once and changes arms. How long decisions take is compared between the two, in the same run.
"""

from __future__ import annotations

import random
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import armlet
from armlet.stores import Loop, Moment, SQLite, Store
from armlet.stores.runner import LoopRunner
from armlet.stores.transaction import Draft, Recent
from armlet.stores.writer import Upkeep
from soak.environment import ARMS, DIM, context, reward
from soak.oracle import LostError
from support.stores import rebuilt

THREADS = 8
WINDOW = 60.0  # seconds, of a clock that is set forward
LOOP = 0.3  # seconds after which decisions are pruned
RATIO = 5.0  # of the time that 99 % of decisions take, to that in quiet rounds
WORST = 0.020  # CPU seconds in front of a decision


class SlowError(AssertionError):
    """Those who decide wait too long for maintenance."""


@dataclass(slots=True)
class Report:
    """What was done, and how long decisions took, in seconds."""

    quiet: list[float] = field(default_factory=list)
    maintained: list[float] = field(default_factory=list)
    slices: list[float] = field(default_factory=list)  # CPU
    forgotten: int = 0
    pruned: int = 0
    windows: int = 0
    changes: int = 0

    @property
    def ratio(self) -> float:
        """How many times longer 99 % of decisions take where there is maintenance."""
        return float(np.quantile(self.maintained, 0.99) / np.quantile(self.quiet, 0.99))

    def check(self) -> None:
        """Refuse a store that lets those who decide wait."""
        if self.ratio > RATIO or max(self.slices) > WORST:
            raise SlowError(str(self))

    def __str__(self) -> str:
        quiet, maintained = (1e3 * np.quantile(each, 0.99) for each in (self.quiet, self.maintained))
        return (
            f"{len(self.quiet) + len(self.maintained)} decisions of {THREADS} threads, none failed, while "
            f"{self.forgotten} were forgotten, {self.pruned} pruned, {self.windows} windows closed and {self.changes} "
            f"arms changed; 99 % of decisions took up to {quiet:.1f} ms in quiet rounds and {maintained:.1f} ms in "
            f"others ({self.ratio:.2f} times); the longest of {len(self.slices)} slices took "
            f"{1e3 * max(self.slices):.1f} ms of CPU; state exact"
        )


class _Clock:
    """A steady clock that can be set forward."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead


def soak(path: Path, rounds: int, seconds: float, seed: int = 0) -> Report:
    """Play quiet rounds and others in turn; raise what a decision raises, or LostError if the state is not exact."""
    report, clock = Report(), _Clock()
    with _watched(report), Store(SQLite(path), elapsed=clock) as store:
        made = {"arms": ARMS, "dim": DIM, "policy": armlet.Algorithm1(p=10), "reward_range": (0, 1), "seed": 11}
        loops = [store.loop("plain", **made), store.loop("late", **made, window=WINDOW, default_reward=0.0)]  # type: ignore[arg-type]
        names: list[str] = []
        gone: set[str] = set()
        for number in range(rounds):
            with _traffic(loops, f"{seed} {number} quiet", names, report.quiet):
                time.sleep(seconds)
            with _traffic(loops, f"{seed} {number} busy", names, report.maintained):
                end = time.monotonic() + seconds
                _maintain(store, loops, clock, random.Random(f"{seed} {number}"), names, gone, report, end)
        _check(store, loops, gone)
    # rows that SQLite moved between pages may have left a copy in the unused part of one
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("VACUUM")
    left = path.read_bytes()
    for name in gone:
        if f'"{name}"'.encode() in left:
            raise LostError(f"{name} was forgotten, and is in the file")
    return report


@contextmanager
def _watched(report: Report) -> Iterator[None]:
    """Count windows as they close, and take the time of slices."""
    run, close = Upkeep.run, LoopRunner._close

    def timed(upkeep: Upkeep) -> None:
        is_busy, started = upkeep.pause is not None, time.thread_time()
        run(upkeep)
        if is_busy:
            report.slices.append(time.thread_time() - started)

    def counted(runner: LoopRunner, draft: Draft, now: Moment, known: Recent) -> None:
        report.windows += 1
        close(runner, draft, now, known)

    Upkeep.run, LoopRunner._close = timed, counted  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        Upkeep.run, LoopRunner._close = run, close  # type: ignore[method-assign]


@contextmanager
def _traffic(loops: list[Loop], mark: str, names: list[str], took: list[float]) -> Iterator[None]:
    """Decide and reward in threads; raise what was raised there."""
    is_over, raised = threading.Event(), []

    def run(thread: int) -> None:
        rng = random.Random(f"{mark} {thread}")
        try:
            for i in range(10**9):
                if is_over.is_set():
                    return
                event, loop = f"{mark} {thread} {i}", loops[i % 2]
                started = time.perf_counter()
                loop.decide(context(event), event=event)
                took.append(time.perf_counter() - started)
                if rng.random() < 0.7:
                    loop.reward(event, reward(event))
                names.append(event)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(thread,)) for thread in range(THREADS)]
    for each in threads:
        each.start()
    try:
        yield
    finally:
        is_over.set()
        for each in threads:
            each.join()
    if raised:
        raise raised[0]


def _maintain(
    store: Store,
    loops: list[Loop],
    clock: _Clock,
    rng: random.Random,
    names: list[str],
    gone: set[str],
    report: Report,
    end: float,
) -> None:
    """Forget, prune, let windows run out and change arms, until it is time."""
    clock.ahead += WINDOW  # all windows are over at once
    while time.monotonic() < end:
        some = rng.sample(names, min(len(names), 20))
        for loop in loops:
            report.forgotten += loop.forget(some[0]) + loop.forget_many(some[1:])
        gone.update(some)
        report.pruned += store.prune(time.time() - LOOP)
        rng.choice(loops).retire_arm("c")
        for loop in loops:
            loop.restore_arm("c")
        report.changes += 3
    store.settle()


def _check(store: Store, loops: list[Loop], gone: set[str]) -> None:
    for loop in loops:
        if loop.model().to_bytes() != rebuilt(store, loop.name).to_bytes():
            raise LostError(f"the state of {loop.name} is not what the rows say")
        if not armlet.audit(loop.log.replayable, loop.log.start).ok:
            raise LostError(f"{loop.name} cannot be audited")
        known = [name for name in gone if loop.reward(name, 0.0) != "unknown"]
        if known:
            raise LostError(f"{known[0]} was forgotten, and is known")
