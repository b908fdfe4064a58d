"""A bandit's life, with everything that a log must survive: eligible sets, late, lost and corrected rewards, new arms.

What a policy refuses is left out, and must leave no trace.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import armlet
from armlet.errors import ArmletError
from armlet.types import Float64, Policy

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
