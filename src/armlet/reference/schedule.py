"""Mirrors kernel/rules/schedule.cpp: Algorithm 1 in plain numpy, line by line as in the paper, on visible state.

Every sum is written in the order in which the kernel makes it, so both agree to the last bit, ties and all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from armlet.inputs.settings import Ridge, Units
from armlet.reference.choice import below, best_arms, coins, draw, force
from armlet.reference.evidence import WeightedLaw, by_evidence
from armlet.reference.linear import BEYOND_ANY, log_determinant, solve, width
from armlet.reference.lost_digits import Taken, constants, lost_arms
from armlet.reference.units import FreeUnits
from armlet.types import Bool, Choice, Float64


@dataclass(slots=True)
class Reference:
    """Algorithm 1 with all its state in the open."""

    n_arms: int
    dim: int
    p: float
    seed: int
    ridge: Ridge = field(default_factory=lambda: Ridge("paper"))
    warmup: Literal["round-robin", "uniform"] = "round-robin"
    learns_from: Literal["explored steps", "every step"] = "explored steps"
    clock: Literal["evidence", "steps"] = "steps"
    cap: float = 1.0  # of exploring by evidence
    floor: float = 0.0
    active: Bool = field(init=False)  # (K,): which arms are not retired
    units: Units = "as given"
    free: FreeUnits | None = field(init=False)
    n: Float64 = field(init=False)  # (K,)
    A: Float64 = field(init=False)  # (K, d, d): sum of x x', or (K, D, D) of y y'
    b: Float64 = field(init=False)  # (K, d): sum of r x, or (K, D) of r y
    sum_r: Float64 = field(init=False)  # (K,)
    sum_rr: Float64 = field(init=False)  # (K,)

    def __post_init__(self) -> None:
        self.free = FreeUnits(self.dim) if self.units == "free" else None
        K, d = self.n_arms, self.size
        self.n, self.A, self.b = np.zeros(K), np.zeros((K, d, d)), np.zeros((K, d))
        self.sum_r, self.sum_rr = np.zeros(K), np.zeros(K)
        self.active = np.ones(K, dtype=np.bool_)

    @property
    def size(self) -> int:
        """How many values a context has where it is looked at."""
        return self.dim if self.free is None else self.dim + 1

    def view(self, x: Float64) -> Float64:
        """Return the context as it is looked at: x, or z."""
        return x if self.free is None else self.free.view(x)

    def estimate(self, arm: int) -> Float64:
        """Solve (lambda_n I + A / n) theta = b / n, multiplied by n; theta = 0 before the first row."""
        theta = self._solve(arm) if self.n[arm] > 0 else None
        return np.zeros(self.size) if theta is None else theta

    def _solve(self, arm: int) -> Float64 | None:
        with np.errstate(over="ignore", invalid="ignore"):
            theta = solve(*self._system(arm))
        # sums that have lost all their digits, of huge rows that were taken back, say nothing
        return theta if (np.abs(theta) <= BEYOND_ANY).all() else None

    def _penalty(self, arm: int) -> Float64:
        n = float(self.n[arm])
        if self.free is None:
            return self.ridge.shift(n) * np.eye(self.size)
        # one row at the mean of all rewards for the constant, whatever the ridge of the slopes
        shift = self.ridge.shift(max(n, 1.0))
        penalty = shift * np.eye(self.size)
        penalty[0, 0] = (1.0 - shift) + shift  # as the kernel adds it
        return penalty

    def _system(self, arm: int) -> tuple[Float64, Float64]:
        """Return V and the right side of V theta = b."""
        if self.free is None:
            return self.A[arm] + self._penalty(arm), self.b[arm]
        A, b = self.free.system(self.A[arm], self.b[arm])
        shift = self.ridge.shift(max(float(self.n[arm]), 1.0))
        A[0, 0] += 1.0 - shift
        return A + shift * np.eye(self.size), b

    def estimates(self) -> Float64:
        """Return theta_hat of every arm, (K, d), or of z, (K, D)."""
        return np.array([self.estimate(arm) for arm in range(self.n_arms)])

    def scores(self, x: Float64) -> Float64:
        """Return x' theta_hat, or z' theta_hat, of every arm, summed in the order of the features."""
        theta, scores, z = self.estimates(), np.zeros(self.n_arms), self.view(x)
        for j in range(self.size):
            scores += z[j] * theta[:, j]
        return scores

    def precision(self, arm: int) -> Float64:
        """Return V = ridge I + A, what the widths of LinUCB and its kin are made of."""
        V: Float64 = self._penalty(arm) if self._solve(arm) is None else self._system(arm)[0]
        return V

    def widths(self, x: Float64) -> Float64:
        """Return sqrt(x' V^-1 x) of every arm."""
        return np.array([width(self.precision(arm), self.view(x)) for arm in range(self.n_arms)])

    def log_determinants(self) -> Float64:
        """Return log det V of every arm."""
        return np.array([log_determinant(self.precision(arm)) for arm in range(self.n_arms)])

    def decide(self, t: int, x: Float64, eligible: Bool | None = None) -> Choice:
        """Play step t, with the eligible arms, or else those that are not retired."""
        playable = self.active if eligible is None else eligible & self.active
        if self.clock == "evidence":
            law = self.exploring(t, playable)
            return law.decide(self.n_arms, lambda arms: best_arms(self.scores(x), arms), coins(self.seed, t))
        arms, tossed = np.flatnonzero(playable), coins(self.seed, t)
        m = len(arms)
        if t <= math.ceil(self.p):  # for t = 1 to p
            if self.warmup == "round-robin":
                return force(int(arms[t % m]), playable)
            return draw(playable, tossed)
        # before the first row all arms tie regardless of x: the step explores, by name too
        blank = self.learns_from == "explored steps" and not self.n.any()
        rate = 1.0 if blank else self.p / t
        best = best_arms(self.scores(x), arms)
        explored = tossed.coin < rate  # e ~ Bernoulli(p / t)
        arm = int(arms[below(tossed.pick, m)] if explored else best[below(tossed.tie, len(best))])
        chance = rate / m + ((1 - rate) / len(best) if arm in best else 0.0)
        greedy = arm in best if rate < 1.0 else None  # a step that is sure to explore does not look
        return Choice(arm, chance, explored, 0, 1.0 / m, rate, 1.0 / m, greedy)

    @property
    def rows(self) -> Float64:
        """(K,): what exploring counts."""
        return self.n

    def exploring(self, t: int, playable: Bool) -> WeightedLaw:
        """Return whether step t explores by evidence, and with which of these arms."""
        q = self.p / int(self.active.sum())
        return by_evidence(self.rows, playable, t, q=q, cap=self.cap, floor=self.floor)

    def update(self, x: Float64, choice: Choice, reward: float) -> None:
        """Learn from step t if it explored."""
        if choice.explored or self.learns_from == "every step":
            self.add(choice.arm, x, reward)

    def add(self, arm: int, x: Float64, reward: float, weight: float = 1.0) -> None:
        """Record a row: n += 1, b += r x, A += x x', with a weight."""
        if self.free is not None:
            if weight > 0 and not (self.n > 0).any():
                self.free.set_origin(x, reward)
            x, reward = self.free.row(x), reward - float(self.free.origin[0])
        self.n[arm] += weight
        self.sum_r[arm] += weight * reward
        self.sum_rr[arm] += weight * reward * reward
        self.b[arm] += weight * reward * x
        self._add_outer(arm, x, weight)
        if weight < 0 and self.n[arm] <= -1e-12 * weight:  # the last row was taken back: no ghost of it stays
            self._empty(arm)
        if weight < 0:
            self._empty_lost(Taken(arm, x[-self.dim :].tolist(), reward, -weight))
        if self.free is not None:
            self.free.left -= max(weight, 0.0)
            if weight < 0 or self.free.left <= 0 or (weight > 0 and self.free.leaves(x, weight, sum(self.n.tolist()))):
                self.renew()

    def _add_outer(self, arm: int, x: Float64, weight: float) -> None:
        self.A[arm] += weight * np.outer(x, x)

    def _empty(self, arm: int) -> None:
        for sums in (self.n, self.A, self.b, self.sum_r, self.sum_rr):
            sums[arm] = 0.0

    def _empty_lost(self, taken: Taken) -> None:
        """Empty the arms that have lost their digits with a row that was taken back."""
        squares = np.diagonal(self.A, axis1=1, axis2=2)[:, -self.dim :]
        means = (self.sum_r, self.A[:, 0, 1:]) if self.free is not None else (0.0 * self.sum_r, 0.0 * squares)
        sums = (means[0], self.sum_rr, means[1], squares)
        lost = lost_arms(taken, self.n, sums, self.free, self._squared_weights().get(taken.arm))
        for arm in lost:
            self._empty(arm)
        if self.free is not None and not lost:  # else its rounding is gone
            squares = np.diagonal(self.A, axis1=1, axis2=2)[:, 1:]
            self._set_multiples(constants(taken, self.n, self.A[:, 0, 1:], squares))

    def _set_multiples(self, constants: Mapping[int, float]) -> None:
        """Let features be multiples of the constant, as they are in all rows that remain."""
        set_multiples(self.A, constants)
        for j, value in constants.items():
            self.b[:, 1 + j] = value * self.b[:, 0]

    def _squared_weights(self) -> Mapping[int, float]:
        """Return the sum of squared weights of every arm, where it is kept."""
        return {}

    def renew(self) -> None:
        """In free units: take the means and deviations of all rows again."""
        if self.free is not None:
            self.free.renew(self.A, self.b, self.sum_rr)

    def run(self, contexts: Float64, rewards: Float64) -> list[Choice]:
        """Play all steps: contexts (T, d), rewards of every arm (T, K)."""
        choices = []
        for t, (x, r) in enumerate(zip(contexts, rewards, strict=True), start=1):
            choice = self.decide(t, x)
            self.update(x, choice, float(r[choice.arm]))
            choices.append(choice)
        return choices


def set_multiples(A: Float64, constants: Mapping[int, float]) -> None:
    """Let columns of the matrices of all arms, (K, 1 + d, 1 + d), be multiples of the first one."""
    for j, value in constants.items():
        A[:, 0, 1 + j] = A[:, 1 + j, 0] = value * A[:, 0, 0]
    for j, value in constants.items():
        column = value * A[:, 0, 1:]
        A[:, 1 + j, 1:], A[:, 1:, 1 + j] = column, column
