"""The life of a bandit with several outcomes: dials, units, a budget, parts that come apart, prices that change.

What is refused is left out, and must leave no trace.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import armlet
from armlet.types import Arm, Policy
from support.lives import if_it_can

DIM = 2
WEIGHTS = {"quality": 1.0, "cost": -4.0, "delay": -0.1}
DELAY: dict[Arm, float] = {"small": 1.0, "large": 2.0, 3: 4.0, "new": 2.5}


def new_router(log: armlet.Log | None = None, policy: Policy | None = None, **more: Any) -> armlet.Bandit:
    """Make a bandit of three arms, with two outcomes that are learned and one that is known, a budget and epochs."""
    given: dict[str, Any] = {
        "budget": armlet.Budget("cost", total=40.0, horizon=100),
        "known": {"delay": DELAY},
        "reward_range": {"quality": (-2.0, 2.0)},
        "epoch": 9,
        "seed": 11,
    }
    return armlet.Bandit(["small", "large", 3], DIM, policy=policy, outcomes=WEIGHTS, log=log, **given | more)


class RouterLife:
    """Lets a bandit as `new_router` makes it live for so many decisions.

    Parameters
    ----------
    bandit
        Which is changed.
    seed
        Of contexts, outcomes and everything that happens.
    changes
        The probability with which something else happens after a decision.
    """

    def __init__(self, bandit: armlet.Bandit, seed: int = 1, *, changes: float = 0.15) -> None:
        self.bandit, self._changes = bandit, changes
        self._rng = np.random.default_rng(seed)
        self._kept: list[armlet.Decision] = []

    def live(self, decisions: int) -> None:
        """Decide so often, and do what else happens in between."""
        for _ in range(decisions):
            self._decide()
            for _ in range(int(self._rng.integers(4))):
                with if_it_can():  # the part may be there, or its arm gone
                    self._learn()
            if self._rng.random() < self._changes:
                with if_it_can():
                    self._happenings()[int(self._rng.integers(len(self._happenings())))]()

    def _decide(self) -> None:
        how: dict[str, Any] = {}
        if self._rng.random() < 0.3:
            how["weights"] = {"cost": -float(self._rng.integers(100))}
        if self._rng.random() < 0.3:
            how["unit"] = f"session {self._rng.integers(5)}"
        if self._rng.random() < 0.2:
            how["eligible"] = [arm for arm in self.bandit.arms if arm not in self.bandit.arms.retired][:2]
        self._kept.append(self.bandit.decide(self._rng.standard_normal(DIM), **how))

    def _any(self) -> armlet.Decision:
        return self._kept[int(self._rng.integers(len(self._kept)))]

    def _outcome(self, name: str) -> float:
        return float(self._rng.normal()) if name == "quality" else float(self._rng.exponential())

    def _learn(self) -> None:
        late = self._any()
        names = [["quality"], ["cost"], ["quality", "cost"], ["cost", "quality"]][int(self._rng.integers(4))]
        self.bandit.learn(late, {name: self._outcome(name) for name in names}, weight=float(self._rng.integers(1, 3)))

    def _happenings(self) -> list[Callable[[], object]]:
        return [
            self._correct,
            self._correct,
            lambda: self._forget(self._any()),
            lambda: self.bandit.expire(self._any()),
            lambda: self.bandit.replace(outcomes={"quality": float(self._rng.integers(1, 4))}),
            lambda: self.bandit.replace(known={"delay": {**DELAY, "small": float(self._rng.integers(4))}}),
            lambda: self.bandit.replace(reward_range={"quality": (-3.0, 1.0 + float(self._rng.integers(3)))}),
            lambda: self.bandit.replace(budget=armlet.Budget("cost", total=60.0 * self._rng.random(), horizon=120)),
            lambda: self.bandit.replace(t=self.bandit.t + int(self._rng.integers(3))),
            lambda: self.bandit.add_arm("new"),
            lambda: self.bandit.retire_arm("large"),
            lambda: self.bandit.restore_arm("large"),
            lambda: self.bandit.remove_arm(3),
            self._fit,
            self._batch,
            self._merge,
        ]

    def _correct(self) -> None:
        decision = self._any()
        name = str(self._rng.choice(["quality", "cost"]))
        had: Any = decision.reward
        self.bandit.correct(decision, {name: had[name]}, {name: self._outcome(name)})

    def _forget(self, decision: armlet.Decision) -> None:
        self.bandit.forget(decision, decision.reward or {})

    def _columns(self, n: int) -> dict[str, Any]:
        return {name: [self._outcome(name) for _ in range(n)] for name in ("quality", "cost")}

    def _fit(self) -> None:
        arms = [self.bandit.arms[int(self._rng.integers(len(self.bandit.arms)))] for _ in range(3)]
        X, explored = self._rng.standard_normal((3, DIM)), self._rng.random(3) < 0.5
        self.bandit.partial_fit(X, arms, self._columns(3), explored=explored, steps=int(self._rng.integers(4)))

    def _batch(self) -> None:
        units = ["session 1", None, "session 9"] if self._rng.random() < 0.5 else None
        X = self._rng.standard_normal((3, DIM))
        made = list(self.bandit.decide_many(X, weights={"quality": 2.0}, units=units))
        self._kept += made
        if self._rng.random() < 0.5:
            self.bandit.learn_many(made, self._columns(3))

    def _merge(self) -> None:
        other = self.bandit.copy(seed=int(self._rng.integers(2**32)))
        before = self.bandit.copy()
        for _ in range(4):
            decision = other.decide(self._rng.standard_normal(DIM))
            other.learn(decision, {"quality": self._outcome("quality"), "cost": 0.5})
        self.bandit.merge(other.difference(before))
