"""A store with a past, the same one in every version: two loops with windows, names, ranks, and arms that come and go.

Run by an earlier Armlet it leaves a file of that version, and what was decided and learned, for the tests of this one:

    cd tests && python -m support.stores.lived stores/data/version_7

All that it asks for is a function of the step, by clocks of its own, with contexts in eighths and rewards in quarters.
"""

from __future__ import annotations

import json
import lzma
import sys
import tempfile
from pathlib import Path
from typing import Any

import armlet
from armlet.stores import Loop, SQLite, Store

LOOPS = ("plain", "late")
START, PART = 1e9, 24  # seconds since 1970; decisions of a part
WINDOW = 60.0


class Ticks:
    """A clock that stands still unless it is moved."""

    now = START

    def __call__(self) -> float:
        return self.now


def opened(path: Path, ticks: Ticks) -> Store:
    """Open the store at a moment of its own."""
    return Store(SQLite(path, synchronous="NORMAL"), wall=ticks, elapsed=ticks)


def make(store: Store, name: str) -> Loop:
    """Make one of the loops."""
    rules: dict[str, Any] = {"plain": {"aggregation": "last"}, "late": {"window": WINDOW, "default_reward": 0.25}}
    policy = {"plain": armlet.Algorithm1(p=4), "late": armlet.LinUCB()}[name]
    return store.loop(name, arms=["a", "b"], dim=2, policy=policy, reward_range=(0, 1), seed=7, **rules[name])


def context(i: int) -> list[float]:
    """Return the context of a decision."""
    return [1.0, (i * 5 % 9) / 8]


def play(loop: Loop, ticks: Ticks, start: int, n: int = PART) -> dict[str, list[Any]]:
    """Decide and reward, once, twice, by name, by rank, late and never; return what was answered, by event."""
    answers: dict[str, list[Any]] = {}
    for i in range(start, start + n):
        ticks.now += 2.0
        decision = loop.decide(context(i), event=f"e{i}")
        answers[f"e{i}"] = [decision.id, decision.arm, decision.propensity, decision.explored]
        if i % 4 != 3:
            loop.reward(f"e{i}", (i % 5) / 4, name=f"m{i}")
        if i % 4 == 1 and i > 8:
            loop.reward(f"e{i - 8}", 0.75, name="paid", rank=1)
        if i % PART == 10:
            loop.add_arm(f"new {i}")
        if i % PART == 20:
            loop.retire_arm("b" if i < PART else "new 10")
        if i == PART + 22:
            loop.restore_arm("b")
    return answers


def live(path: Path, ticks: Ticks) -> dict[str, Any]:
    """Let a store live, and end like a process that is killed, after its snapshots; return what it has answered."""
    answers: dict[str, dict[str, list[Any]]] = {}
    with opened(path, ticks) as store:
        loop = make(store, "plain")
        answers["plain"] = play(loop, ticks, 0)
        gone = {"e5"} if loop.forget("e5") else set()
        store.prune(START + 30.0)
        gone |= {event for event in answers["plain"] if loop.reward(event, 1.0, name=f"m{event[1:]}") == "unknown"}
        answers["plain"] |= play(loop, ticks, PART)
        answers["late"] = play(make(store, "late"), ticks, 0)
    for event in gone:
        del answers["plain"][event]
    store = opened(path, ticks)
    answers["plain"] |= play(store.loop("plain"), ticks, 2 * PART, 6)
    answers["late"] |= play(store.loop("late"), ticks, PART)
    told = {name: tell(store.loop(name), answers[name]) for name in LOOPS}
    store._runners.clear()  # so that it keeps no snapshots
    store.close()
    return {"now": ticks.now, "loops": told}


def tell(loop: Loop, answers: dict[str, list[Any]]) -> dict[str, Any]:
    """Return what a loop knows."""
    model = loop.model()
    statistics = {"n": model.state.n.tolist(), "b": model.state.b.tolist(), "A": model.state.A.tolist()}
    return {"t": model.t, "digest": model.digest(), "state": statistics, "answers": answers}


def main(target: Path) -> None:
    """Write a compressed file, and what it holds next to it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shop.db"
        told = live(path, Ticks())
        target.with_suffix(".db.xz").write_bytes(lzma.compress(path.read_bytes(), preset=9))
    target.with_suffix(".json").write_text(json.dumps(told) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
