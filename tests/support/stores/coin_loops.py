"""Simulated loops whose gains are watched after every decision: many at once, by numpy, with the sums of a tally.

A decision has one of two kinds of context and one of three arms; a reward is a click. The live policy is greedy on the
mean of each kind and arm. Click rates of loops lie between 1 and 30 %, evenly on a logarithmic scale.

- "uniform": with probability c a step explores, all arms alike. The best arm of each kind earns 1 + lift times what
  uniform play does, the two others earn less.
- "control": with probability c the first arm is played, which earns the rate of the loop in both kinds; the best arm of
  each kind earns 1 + lift times that, and the last one as much as the first. The live policy explores 5 % of its steps.

Without a lift all arms are alike, so that every "yes" and every "no" is wrong. The truth is known at every decision:
the weighted mean of expected gains so far. A statement is wrong if its interval ever fails to cover that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np

from armlet.inference.gains import BOUND, GOAL, GUESS
from armlet.inference.sequences import mixed_margin
from armlet.stores.folds.comparisons import LEAST
from armlet.types import Bool, Float64, Int64

ARMS: Final = 3
BLOCK: Final = 100  # decisions for which random numbers are drawn at once
OWN: Final = 0.05  # of its steps, which the live policy explores next to a control
GRID: Final = np.concatenate([[0.0], np.geomspace(1e-9, 1e7, 8000)])
MARGINS: Final = BOUND * mixed_margin(GRID / BOUND**2, GOAL)
"""The margin is concave, so it lies above its chords: intervals here are narrower, by a millionth."""
Z: Final = 1.959963984540054

Against = Literal["uniform", "control"]
Rate = Callable[[int], float]


@dataclass(frozen=True, slots=True)
class Setting:
    """Which loops to simulate."""

    against: Against
    lift: float
    coin: float | None = 0.1  # None: an exploration rate of min(0.9, 20 / t)

    def rate(self, t: int) -> float:
        """Return the probability of the comparison at step t."""
        return min(0.9, 20.0 / t) if self.coin is None else self.coin


class Step(NamedTuple):
    """One decision of every loop."""

    arm: Int64
    live: Int64  # the live policy's choice; if the step explores, what it would have been
    e: Bool  # the coin fell on the comparison
    u: Float64
    gap: Float64  # what the live policy's choice earns more than the comparison, in expectation


class Environment:
    """The click rates of loops, and their live policies."""

    def __init__(self, setting: Setting, loops: int, seed: int) -> None:
        self.setting, self.loops = setting, loops
        self.rng = np.random.default_rng(seed)
        self.rates = np.exp(self.rng.uniform(np.log(0.01), np.log(0.3), loops))
        self.P = self._click_rates()  # (loops, kinds, arms)
        self.n = np.zeros((loops, 2, ARMS))
        self.s = np.zeros((loops, 2, ARMS))

    def _click_rates(self) -> Float64:
        up, down = 1.0 + self.setting.lift, 1.0 - self.setting.lift / 2.0
        if self.setting.against == "uniform":
            shape = np.array([[up, down, down], [down, up, down]])
        else:
            shape = np.array([[1.0, up, 1.0], [1.0, 1.0, up]])
        return np.asarray(self.rates[:, None, None] * shape)

    def steps(self, decisions: int) -> Iterator[Step]:
        """Play so many decisions of every loop."""
        for t in range(1, decisions + 1):
            if (t - 1) % BLOCK == 0:
                U = self.rng.random((BLOCK, 5, self.loops))
            yield self._step(U[(t - 1) % BLOCK], self.setting.rate(t))

    def _step(self, U: Float64, c: float) -> Step:
        at = np.arange(self.loops)
        kind = (U[0] < 0.5).astype(np.int64)
        n, s, P = self.n[at, kind], self.s[at, kind], self.P[at, kind]
        live = ((s + 1.0) / (n + 2.0)).argmax(axis=1)
        e, drawn = U[1] < c, (U[2] * ARMS).astype(np.int64)
        if self.setting.against == "uniform":
            arm, base = np.where(e, drawn, live), P.mean(axis=1)
        else:
            live = np.where(U[3] < OWN, drawn, live)
            arm, base = np.where(e, 0, live), P[:, 0]
        u = (U[4] < P[at, arm]).astype(np.float64)
        self.n[at, kind, arm] += 1.0
        self.s[at, kind, arm] += u
        return Step(arm, live, e, u, P[at, live] - base)


class Watched:
    """The sums of every loop, which are those of `armlet.stores.folds.comparisons`, and what was ever said by them."""

    def __init__(self, setting: Setting, loops: int) -> None:
        self.setting, self.t, self.rows = setting, 0, 0
        self.S, self.V, self.total, self.squares, self.truth = (np.zeros(loops) for _ in range(5))
        self.W = 0.0
        self.wrong = np.zeros(loops, dtype=np.bool_)
        self.yes, self.no, self.z_yes, self.z_no = (np.zeros(loops, dtype=np.int64) for _ in range(4))  # 0 for never

    def add(self, step: Step, every: int = 50) -> None:
        """Add a decision, and look; z-intervals look every so many."""
        self.t += 1
        c = self.setting.rate(self.t)
        if c < LEAST:
            return
        weight = c * (1.0 - c)
        above = step.u - (self.total + 0.5) / (self.rows + 1.0)
        D = self._factor(step, c, weight) * above
        guess = np.clip(self.S / self.rows, -GUESS, GUESS) if self.rows else 0.0
        self.S = self.S + D
        self.V = self.V + (D - guess) * (D - guess)
        self.W += weight
        self.total += step.u
        self.squares += D * D
        self.truth += weight * step.gap
        self.rows += 1
        self._look()
        if self.t % every == 0:
            error = Z * np.sqrt(self.squares)
            _note(self.z_yes, self.S - error > 0.0, self.t)
            _note(self.z_no, self.S + error < 0.0, self.t)

    def _factor(self, step: Step, c: float, weight: float) -> Float64:
        if self.setting.against == "control":
            return np.asarray(np.where(step.live != 0, c - step.e, 0.0))
        pi, q = (step.arm == step.live).astype(np.float64), 1.0 / ARMS
        return np.asarray(weight * (pi - q) / (c * q + (1.0 - c) * pi))

    def _look(self) -> None:
        margin = np.interp(self.V, GRID, MARGINS)
        self.wrong |= np.abs(self.S - self.truth) > margin
        _note(self.yes, self.S - margin > 0.0, self.t)
        _note(self.no, self.S + margin < 0.0, self.t)


def _note(first: Int64, said: Bool, t: int) -> None:
    """Note the first decision at which something was said."""
    first[said & (first == 0)] = t


def watch(setting: Setting, loops: int, decisions: int, seed: int) -> tuple[Watched, Float64]:
    """Watch loops at every decision; return what was said, and their click rates."""
    environment, watched = Environment(setting, loops, seed), Watched(setting, loops)
    for step in environment.steps(decisions):
        watched.add(step)
    return watched, environment.rates
