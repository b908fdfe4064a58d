"""The life of a loop with several outcomes: dials, units, budgets, parts in any order, prices and arms that change.

What is refused is left out, and must leave no trace. All of it is a function of the seed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

import armlet
from armlet.errors import BudgetError, InvalidValueError, LoopStateError
from armlet.stores import Aggregation, Ledger, Loop, Store
from armlet.types import Arm

WEIGHTS = {"quality": 1.0, "cost": -4.0, "delay": -0.1}
DELAY: dict[Arm, float] = {"small": 1.0, "large": 2.0, 3: 4.0}
AGGREGATIONS: tuple[Aggregation, ...] = ("first", "last", "sum")
RANGES = {"quality": (-2.0, 2.0), "cost": (0.0, 4.0)}


class Clock:
    """Seconds that pass only if they are let."""

    now = 1e9

    def __call__(self) -> float:
        return self.now


def opened(ledger: Ledger, clock: Clock) -> Store:
    """Open a store by that clock."""
    return Store(ledger, wall=clock, elapsed=clock)


def make(store: Store, **more: Any) -> Loop:
    """Make a loop with two outcomes that are learned and one that is known."""
    given: dict[str, Any] = {
        "arms": ["small", "large", 3],
        "dim": 2,
        "outcomes": WEIGHTS,
        "known": {"delay": DELAY},
        "reward_range": RANGES,
        "epoch": 9,
        "seed": 11,
    }
    return store.loop("router", **given | more)


class LoopLife:
    """Lets a loop live for so many decisions.

    Parameters
    ----------
    loop
        As `make` makes it.
    clock
        That it goes by.
    seed
        Of contexts, outcomes and everything that happens.
    """

    def __init__(self, loop: Loop, clock: Clock, seed: int = 1) -> None:
        self.loop, self._clock, self._rng, self._n = loop, clock, np.random.default_rng(seed), 0
        self.statuses: list[str] = []

    def live(self, decisions: int) -> None:
        """Decide so often, and do what else happens in between."""
        for _ in range(decisions):
            self._clock.now += float(self._rng.integers(1, 8))
            with suppress(BudgetError):
                self._decide()
            for _ in range(int(self._rng.integers(4))):
                self._reward()
            if self._rng.random() < 0.2:
                with suppress(InvalidValueError, LoopStateError):
                    self._happenings()[int(self._rng.integers(len(self._happenings())))]()

    def _decide(self) -> None:
        how: dict[str, Any] = {}
        if self._rng.random() < 0.3:
            how["weights"] = {"cost": -float(self._rng.integers(100))}
        if self._rng.random() < 0.3:
            how["unit"] = f"session {self._rng.integers(5)}"
        x = self._rng.standard_normal(2)
        self._n += 1
        made = self.loop.decide(x, event=f"e{self._n}", **how)
        assert self.loop.decide(x, event=f"e{self._n}", **how).id == made.id

    def _reward(self) -> None:
        values = {"quality": float(self._rng.normal()), "cost": float(self._rng.exponential())}
        names = [["quality"], ["cost"], ["quality", "cost"], ["cost", "quality"]][int(self._rng.integers(4))]
        how: dict[str, Any] = {"rank": int(self._rng.integers(3))}
        if self._rng.random() < 0.5:
            how["name"] = f"m{self._rng.integers(9)}"
        if self._rng.random() < 0.1:
            how["played"] = ["small", "large", 3][int(self._rng.integers(3))]
        event = f"e{self._n + 2 - min(int(self._rng.exponential(6)), self._n)}"  # some come early
        self.statuses.append(self.loop.reward(event, {name: values[name] for name in names}, **how))

    def _happenings(self) -> list[Callable[[], object]]:
        loop, rng = self.loop, self._rng
        return [
            lambda: loop.forget(f"e{self._n - int(rng.integers(9))}"),
            lambda: loop.change(outcomes={"quality": float(rng.integers(1, 4))}),
            lambda: loop.change(known={"delay": {"small": float(rng.integers(4))}}),
            lambda: loop.change(reward_range={"quality": (-3.0, 1.0 + float(rng.integers(3)))}),
            lambda: loop.change(budget=armlet.Budget("cost", total=100.0 * rng.random(), horizon=120)),
            lambda: loop.change(aggregation=AGGREGATIONS[int(rng.integers(3))]),
            lambda: loop.change(window=float(rng.integers(5, 60))),
            lambda: loop.change(default_reward={"quality": 0.0}),
            lambda: loop.change(default_reward={"quality": 0.5, "cost": 1.0}),
            lambda: loop.change(window=None, default_reward=None),
            lambda: loop.add_arm(f"new {self._n}", known={"delay": 2.5}),
            lambda: loop.retire_arm("large"),
            lambda: loop.restore_arm("large"),
        ]
