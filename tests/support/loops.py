"""Loops that the tests share: a clock that is moved by hand, what is known of a loop, and sums to compare it with.

Contexts are in eighths and rewards in quarters, so that sums are exact in any order.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

import armlet
from armlet.bandit import Bandit
from armlet.stores import Ledger, Loop, Store
from armlet.types import Arm, Float64
from support.stores import rebuilt


class Ticks:
    """A clock that stands still unless it is moved."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def ticking(ledger: Ledger, ticks: Ticks) -> Store:
    """Open a store whose clocks are moved by hand."""
    return Store(ledger, wall=ticks, elapsed=ticks)


def context(i: int, dim: int) -> list[float]:
    """Return the i-th context: in eighths, the first value 1."""
    return [1.0, *(((i * (3 + 2 * j) + j) % 17 - 8) / 8 for j in range(dim - 1))]


def reward(i: int) -> float:
    """Return the i-th reward: in quarters, from -1 to 1."""
    return ((i * 5) % 9 - 4) / 4


def decide(loop: Loop, first: int, n: int, dim: int = 2) -> dict[int, Arm]:
    """Decide n times; return the arms."""
    return {i: loop.decide(context(i, dim), event=f"e{i}").arm for i in range(first, first + n)}


def play(loop: Loop, first: int, n: int, dim: int = 2) -> dict[int, Arm]:
    """Decide n times and reward at once."""
    arms: dict[int, Arm] = {}
    for i in range(first, first + n):
        arms |= decide(loop, i, 1, dim)
        assert loop.reward(f"e{i}", reward(i)) == "accepted"
    return arms


@contextmanager
def traffic(loop: Loop, dim: int = 2) -> Iterator[None]:
    """Let three threads decide and reward meanwhile; none of their calls may fail."""
    stop, failed = threading.Event(), list[Exception]()

    def run(first: int) -> None:
        i = first
        while not stop.is_set():
            try:
                loop.decide(context(i, dim), event=f"e{i}")
                loop.reward(f"e{i}", reward(i))
            except Exception as error:
                failed.append(error)
            i += 1

    threads = [threading.Thread(target=run, args=(10_000 * k,)) for k in (1, 2, 3)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failed == []


def assert_replays(store: Store, loop: Loop) -> None:
    """Hold the living bandit against its rows, and against its log, bit for bit."""
    living = loop.model()
    assert rebuilt(store, loop.name).to_bytes() == living.to_bytes()
    audit = armlet.audit(loop.log.replayable, loop.log.start)
    assert audit.ok, audit
    assert audit.digest == living.digest()


def everything(store: Store, loop: Loop) -> tuple[object, ...]:
    """Return all that a refused call must leave as it was."""
    runner = loop._runner
    rows = list(store._ledger.rows(runner.id))
    records = [each for each in store._ledger.loops() if each.name == loop.name]
    model = loop.model()
    return model.to_bytes(), runner.terms, runner.rules, runner.reader, runner.policy, rows, records


class Learned(NamedTuple):
    """A row that was learned: its context, as features are now, the arm and the reward."""

    x: Sequence[float]
    arm: Arm
    reward: float


def assert_learned(bandit: Bandit, rows: Iterable[Learned]) -> None:
    """Hold the sums of a policy with units as given against those of rows; exact, since all are in eighths."""
    state, known = bandit.state, list(rows)
    for place, arm in enumerate(bandit.arms):
        mine = [row for row in known if row.arm == arm]
        X: Float64 = np.array([row.x for row in mine], dtype=np.float64).reshape(len(mine), bandit.settings.dim)
        r: Float64 = np.array([row.reward for row in mine], dtype=np.float64)
        assert state.n[place] == len(mine), arm
        np.testing.assert_array_equal(state.b[place], r @ X, err_msg=f"b of {arm}")
        np.testing.assert_array_equal(state.A[place], X.T @ X, err_msg=f"A of {arm}")
