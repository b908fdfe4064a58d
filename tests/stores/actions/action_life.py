"""The life of a loop whose actions come with each decision: tables that change, baselines, decisions that wait.

It is the same each time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from armlet import ActionTable
from armlet.stores import Loop, Store
from support.loops import Ticks

HOW: dict[str, Any] = {"features": ["age"], "action_features": ["genre", "year"], "seed": 5}


def make(store: Store, **more: Any) -> Loop:
    """Make a loop of films."""
    return store.loop("films", **HOW | more)


def films(n: int, first: int = 0) -> ActionTable:
    """Return so many films, by number."""
    Z = [[(7 * i) % 5 / 4, (3 * i) % 11 / 10] for i in range(first, first + n)]
    return ActionTable([f"film {i}" for i in range(first, first + n)], Z, names=["genre", "year"])


class Life:
    """Lets a loop live for so many decisions."""

    def __init__(self, loop: Loop, clock: Ticks, *, forgets: bool = True) -> None:
        self.loop, self._clock, self._rng = loop, clock, np.random.default_rng(0)
        self._forgets = forgets
        self.table = films(40)
        self.events: list[str] = []

    def live(self, decisions: int) -> None:
        """Decide, reward, correct, forget and change tables."""
        self.loop.prepare("all", self.table)
        for _ in range(decisions):
            self._step(len(self.events))
            self._clock.now += 1.0

    def _step(self, i: int) -> None:
        loop, rng = self.loop, self._rng
        if i % 9 == 4:  # one comes, one goes
            self.table = self.table.changed(add=films(1, 100 + i), remove=[self.table.labels[i % len(self.table)]])
            loop.prepare("all", self.table)
        event, x = f"e{i}", {"age": float(rng.normal())}
        how: dict[str, Any] = {"actions": "all"}
        if i % 4 == 1:
            how["actions"] = films(3 + i % 5, i)
        if i % 5 == 2:
            how["eligible"] = [*self.table.labels[:7]] if how["actions"] == "all" else [f"film {i}", f"film {i + 1}"]
        if i % 6 == 3:
            how["baseline"] = (how.get("eligible") or getattr(how["actions"], "labels", None) or self.table.labels)[-1]
        if i % 7 == 5:
            how["defer"] = True
        if i % 11 == 8:
            loop.reward(event, float(rng.uniform()))  # before its decision
        loop.decide(x, event=event, **how)
        self.events.append(event)
        self._answer(i)

    def _answer(self, i: int) -> None:
        loop, rng = self.loop, self._rng
        for event in self.events[-6::2]:
            loop.reward(event, float(rng.uniform()), rank=int(rng.integers(3)))
        if i % 14 == 13:
            loop.activate(self.events[-8])
        if i % 17 == 16 and self._forgets:
            loop.forget(self.events[-10])
