"""What needs no library: the empty loop, and Algorithm 1 in numpy, as printed and with cached estimates.

Both numpy versions play the same arms; they differ in which arms they solve for before an exploit step: all of
them, as the paper prints it (in one batched call, which is the faster way), or only those that were explored
since the last time.
"""

import random
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from adapters.base import Policy
from stream import Contexts, Rewards

Decide = Callable[[NDArray[np.float64]], tuple[int, bool]]


class _Constant:
    """A decision that is always the same arm."""

    arm = 0


class _LoopFloor(Policy):
    """The loop around Armlet with a policy that does nothing: what the harness costs."""

    decision = _Constant()

    def decide(self, x: NDArray[np.float64]) -> _Constant:  # noqa: ARG002 - the cost of passing it counts
        return self.decision

    def learn(self, decision: _Constant, reward: float) -> None:
        pass

    def play(self, contexts: Contexts, rewards: Rewards) -> None:
        decide, learn = self.decide, self.learn
        for x, reward in zip(contexts, rewards, strict=True):
            decision = decide(x)
            learn(decision, reward[decision.arm])

    def state_bytes(self) -> int:
        return 0


class _Cached(Policy):
    """Algorithm 1 in numpy; an explored arm is solved again before the next exploit step."""

    def __init__(self, dim: int, n_arms: int) -> None:
        self.n_arms, self.p, self.t = n_arms, 32 * n_arms, 0
        self.n = np.zeros(n_arms)
        self.A = np.zeros((n_arms, dim, dim))
        self.b = np.zeros((n_arms, dim))
        self.theta: NDArray[np.floating] = np.zeros((n_arms, dim))
        self.eye = np.eye(dim)
        self.stale: set[int] = set()
        self.coin = random.Random(1).random

    def estimate(self) -> None:
        for arm in self.stale:
            self.theta[arm] = np.linalg.solve(self.A[arm] + np.sqrt(self.n[arm]) * self.eye, self.b[arm])
        self.stale.clear()

    def decide(self, x: NDArray[np.float64]) -> tuple[int, bool]:
        self.t = t = self.t + 1
        if t <= self.p:
            return t % self.n_arms, True
        if self.coin() < self.p / t:
            return int(self.coin() * self.n_arms), True
        if self.stale:
            self.estimate()
        return int(self.theta.dot(x).argmax()), False

    def learn(self, x: NDArray[np.float64], arm: int, explored: bool, reward: float) -> None:
        if explored:
            self.n[arm] += 1
            self.A[arm] += x[:, None] * x
            self.b[arm] += reward * x
            self.stale.add(arm)

    def play(self, contexts: Contexts, rewards: Rewards) -> None:
        self.loop(self.decide, contexts, rewards)

    def loop(self, decide: Decide, contexts: Contexts, rewards: Rewards) -> None:
        learn = self.learn
        for x, reward in zip(contexts, rewards, strict=True):
            arm, explored = decide(x)
            learn(x, arm, explored, reward[arm])

    def state_bytes(self) -> int:
        return self.n.nbytes + self.A.nbytes + self.b.nbytes + self.theta.nbytes


class _AsPrinted(_Cached):
    """Algorithm 1 in numpy; every exploit step solves for all arms.

    The sums do not depend on when the estimates are solved for, so the cached version does the warming up.
    """

    def decide_as_printed(self, x: NDArray[np.float64]) -> tuple[int, bool]:
        self.t = t = self.t + 1
        if t <= self.p:
            return t % self.n_arms, True
        if self.coin() < self.p / t:
            return int(self.coin() * self.n_arms), True
        ridge = np.sqrt(self.n)[:, None, None] * self.eye
        self.theta = np.linalg.solve(self.A + ridge, self.b[:, :, None])[:, :, 0]
        return int(self.theta.dot(x).argmax()), False

    def play(self, contexts: Contexts, rewards: Rewards) -> None:
        self.loop(self.decide_as_printed, contexts, rewards)

    def warm(self, contexts: Contexts, rewards: Rewards) -> None:
        self.loop(self.decide, contexts, rewards)


def make(variant: str, dim: int, n_arms: int) -> Policy:
    if variant == "floor":
        return _LoopFloor()
    return {"cached": _Cached, "printed": _AsPrinted}[variant](dim, n_arms)
