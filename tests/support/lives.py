"""A bandit's life, with everything that a log must survive: eligible sets, late, lost and corrected rewards, new arms;
and, of one with several outcomes, dials, units, a budget, parts that come apart and prices that change.

What a policy refuses is left out, and must leave no trace.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import armlet
from armlet.errors import ArmletError
from armlet.types import Arm, Float64, Policy

DIM = 3


def new_bandit(policy: Policy, path: Path, *, seed: int = 11) -> tuple[armlet.Bandit, armlet.Log]:
    """Make a bandit of four arms, and the log that it writes to a path."""
    log = armlet.Log(path)
    return armlet.Bandit([f"arm {i}" for i in range(4)], DIM, policy=policy, seed=seed, log=log), log


def fair(policy: Policy, rng: np.random.Generator) -> float:
    """Draw a reward that a policy takes."""
    if policy.rewards == "binary":
        return float(rng.integers(2))
    low, high = getattr(policy, "reward_range", None) or (-1.0, 2.0)
    return float(rng.uniform(low, high))


@contextlib.contextmanager
def if_it_can() -> Iterator[None]:
    with contextlib.suppress(ArmletError, ValueError, TypeError, KeyError, IndexError, NotImplementedError):
        yield


class Life:
    """Lets a bandit live for so many decisions.

    Parameters
    ----------
    bandit
        Of arms "arm 0" to "arm 3", which is changed.
    seed
        Of contexts, rewards and everything that happens.
    """

    def __init__(self, bandit: armlet.Bandit, seed: int = 1) -> None:
        self.bandit = bandit
        self._rng = np.random.default_rng(seed)
        self._pending: list[armlet.Decision] = []
        self._learned: list[tuple[armlet.Decision, float]] = []

    def live(self, decisions: int) -> None:
        """Decide so often, and do what else happens in between."""
        for x in self._contexts(decisions):
            self._decide(x)
            while self._pending and self._rng.random() < 0.5:
                self._learn()
            if self._rng.random() < 0.02:
                with if_it_can():
                    self._changes()[int(self._rng.integers(len(self._changes())))]()

    def _contexts(self, n: int) -> Float64:
        return self._rng.integers(-1, 2, size=(n, DIM)) + 0.25 * self._rng.integers(0, 2, size=(n, DIM))

    def _decide(self, x: Float64) -> None:
        eligible = None
        if self._rng.random() < 0.3:
            active = [arm for arm in self.bandit.arms if arm not in self.bandit.arms.retired]
            some = [arm for arm in active if self._rng.random() < 0.6]
            eligible = some or active[:1]
        self._pending.append(self.bandit.decide(x, eligible=eligible))
        if self._rng.random() < 0.1:
            lost = self._pending.pop(int(self._rng.integers(len(self._pending))))  # its reward never comes
            if self._rng.random() < 0.5:
                self.bandit.expire(lost)

    def _learn(self) -> None:
        late = self._pending.pop(int(self._rng.integers(len(self._pending))) if self._rng.random() < 0.5 else -1)
        reward = fair(self.bandit.policy, self._rng)
        with if_it_can():  # its arm may be gone
            self.bandit.learn(late, reward, weight=float(self._rng.choice([1.0, 1.0, 2.0])))
            self._learned.append((late, reward))

    def _changes(self) -> list[Callable[[], None]]:
        return [self._correct, self._correct, self._forget, self._add, self._retire, self._restore, self._remove]

    def _correct(self) -> None:
        decision, old = self._learned.pop(int(self._rng.integers(len(self._learned))))
        self.bandit.correct(decision, old, fair(self.bandit.policy, self._rng))

    def _forget(self) -> None:
        self.bandit.forget(*self._learned.pop(int(self._rng.integers(len(self._learned)))))

    def _add(self) -> None:
        if len(self.bandit.arms) < 6:
            self.bandit.add_arm(f"arm {int(self._rng.integers(100))}")

    def _retire(self) -> None:
        if len(self.bandit.arms) - len(self.bandit.arms.retired) > 2:
            self.bandit.retire_arm(self.bandit.arms[0])

    def _restore(self) -> None:
        self.bandit.restore_arm(self.bandit.arms.retired[0])

    def _remove(self) -> None:
        if len(self.bandit.arms) - len(self.bandit.arms.retired) > 3:
            self.bandit.remove_arm(self.bandit.arms[1])


# ---- with several outcomes

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
            with if_it_can():  # a hard budget may be spent
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
        self._kept.append(self.bandit.decide(self._context(), **how))

    def _context(self) -> Float64:
        return self._rng.standard_normal(self.bandit.settings.dim)

    def _any(self) -> armlet.Decision:
        return self._kept[int(self._rng.integers(len(self._kept)))]

    def _outcome(self, name: str) -> float:
        return float(self._rng.normal()) if name == "quality" else float(self._rng.exponential())

    def _learn(self) -> None:
        late = self._any()
        names = [["quality"], ["cost"], ["quality", "cost"], ["cost", "quality"]][int(self._rng.integers(4))]
        first = {} if isinstance(late.reward, dict) else {"weight": float(self._rng.integers(1, 3))}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a cost outside of its range is spent all the same
            self.bandit.learn(late, {name: self._outcome(name) for name in names}, **first)

    def _happenings(self) -> list[Callable[[], object]]:
        return [
            *[self._correct] * 5,
            *[self._forget] * 2,
            lambda: self.bandit.expire(self._any()),
            self._bill,
            lambda: self.bandit.replace(budget=None),
            lambda: self.bandit.replace(outcomes={"quality": float(self._rng.integers(1, 4))}),
            lambda: self.bandit.replace(known={"delay": {**DELAY, "small": float(self._rng.integers(4))}}),
            lambda: self.bandit.replace(reward_range={"quality": (-3.0, 1.0 + float(self._rng.integers(3)))}),
            lambda: self.bandit.replace(budget=armlet.Budget("cost", total=60.0 * self._rng.random(), horizon=120)),
            lambda: self.bandit.replace(t=self.bandit.t + int(self._rng.integers(3))),
            lambda: self.bandit.add_arm("new"),
            lambda: self.bandit.retire_arm("large"),
            lambda: self.bandit.restore_arm("large"),
            lambda: self.bandit.remove_arm(3),
            self._replace_features,
            self._fit,
            self._fit_table,
            self._batch,
            self._merge,
        ]

    def _rewarded(self) -> tuple[armlet.Decision, dict[str, float]]:
        some = [one for one in self._kept if isinstance(one.reward, dict)]
        decision = some[int(self._rng.integers(len(some)))]
        return decision, dict(decision.reward or {})

    def _correct(self) -> None:
        decision, had = self._rewarded()
        name = str(self._rng.choice(list(had)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            self.bandit.correct(decision, {name: had[name]}, {name: self._outcome(name)})

    def _bill(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            self.bandit.bill(self._any(), self._outcome("cost"))

    def _forget(self) -> None:
        self.bandit.forget(*self._rewarded())

    def _replace_features(self) -> None:
        """Where features have names: add one, or drop one."""
        now = list(self.bandit.settings.features or ())
        if now:
            more = [name for name in ("code", "more") if name not in now]
            self.bandit.replace(features=now + more if more else now[:-1], fill=dict.fromkeys(more, 0.5))

    def _columns(self, n: int) -> dict[str, Any]:
        return {name: [self._outcome(name) for _ in range(n)] for name in ("quality", "cost")}

    def _fit(self) -> None:
        arms = [self.bandit.arms[int(self._rng.integers(len(self.bandit.arms)))] for _ in range(3)]
        X, explored = self._rng.standard_normal((3, self.bandit.settings.dim)), self._rng.random(3) < 0.5
        self.bandit.partial_fit(X, arms, self._columns(3), explored=explored, steps=int(self._rng.integers(4)))

    def _fit_table(self) -> None:
        arm, step = self.bandit.arms[0], self.bandit.t + 1
        first, then = self._columns(1), self._columns(1)
        nothing = {name: [None] for name in first}
        row = {
            "t": [step],
            "x": [[0.5] * self.bandit.settings.dim],
            "arm": [arm],
            "propensity": [0.5],
            "explored": [True],
        }
        self.bandit.partial_fit({**row, "reward": first, "replaces": nothing})
        self.bandit.partial_fit({**row, "reward": then, "replaces": first})

    def _batch(self) -> None:
        units = ["session 1", None, "session 9"] if self._rng.random() < 0.5 else None
        X = self._rng.standard_normal((3, self.bandit.settings.dim))
        made = list(self.bandit.decide_many(X, weights={"quality": 2.0}, units=units))
        self._kept += made
        if self._rng.random() < 0.5:
            self.bandit.learn_many(made, self._columns(3))

    def _merge(self) -> None:
        other = self.bandit.copy(seed=int(self._rng.integers(2**32)))
        before = self.bandit.copy()
        for _ in range(4):
            decision = other.decide(self._context())
            other.learn(decision, {"quality": self._outcome("quality"), "cost": 0.5})
        self.bandit.merge(other.difference(before))
