"""Mostly greedy play against adversaries, many runs at once: docs/explanation/open-problem.md has the lemmas."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from armlet.types import Bool, Float64, Int64

Adversary = Literal["random", "widest", "informed", "late", "sees the coin"]
ADVERSARIES: tuple[Adversary, ...] = ("random", "widest", "informed", "late")
N_ARMS, DIM, NOISE, NORM, SHARE = 2, 2, 0.3, 1.0, 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """How to play."""

    adversary: Adversary = "random"
    runs: int = 500
    steps: int = 200
    ridge: float = 1.0
    scale: float = 1.0  # what the radius is multiplied by
    delta: float | None = None  # the level of all steps; 1 / (t (t + 1)) unless given
    delay: int = 0
    solve: Literal["always", "leverage", "rows"] = "always"
    gain: float = 0.0  # g: how much leverage, or which share of rows, an arm gains before it is solved again
    seed: int = 61_000

    def radius(self, log_det: Float64, t: int) -> Float64:
        """Return the radius of all arms at a step."""
        level = 1 / (t * (t + 1)) if self.delta is None else self.delta
        beta: Float64 = NOISE * np.sqrt(log_det + 2 * np.log(N_ARMS / level)) + np.sqrt(self.ridge) * NORM
        return self.scale * beta


class Step(NamedTuple):
    """What happened at a step of every run, (runs,) each; stacked over steps, (steps, runs)."""

    coin: Bool
    width: Float64  # of the arm that was played
    u: Float64  # beta w of the greedy arm
    v: Float64  # beta w of the optimistic arm
    greedy_regret: Float64
    optimistic_regret: Float64
    good: Bool  # all bounds hold at the context that was shown
    outside: Float64  # the largest distance of theta_hat from theta in the norm of V, over the radius
    staleness: Float64  # the largest width^2 as last solved, over the true one


class Arms:
    """The sums of all arms in all runs, and what was last solved from them."""

    def __init__(self, setup: Setup) -> None:
        shape = (setup.runs, N_ARMS, DIM)
        self.setup = setup
        self.V = np.broadcast_to(np.eye(DIM) * setup.ridge, (*shape, DIM)).copy()
        self.inverse = np.broadcast_to(np.eye(DIM) / setup.ridge, (*shape, DIM)).copy()
        self.b, self.log_det = np.zeros(shape), np.zeros(shape[:2])
        self.gained, self.rows, self.solves = np.zeros(shape[:2]), np.zeros(shape[:2]), np.zeros(shape[:2])
        self.solved = tuple(sums.copy() for sums in self._sums())

    def _sums(self) -> tuple[Float64, ...]:
        return self.inverse, self.b, self.log_det, self.V, self.rows

    def learn(self, x: Float64, arm: Int64, reward: Float64) -> None:
        """Add a row to one arm of every run, and solve what is due."""
        at, setup = (np.arange(len(x)), arm), self.setup
        towards = np.einsum("rij,rj->ri", self.inverse[at], x)
        grown = 1 + (x * towards).sum(axis=1)
        self.inverse[at] -= towards[:, :, None] * towards[:, None, :] / grown[:, None, None]
        self.V[at] += x[:, :, None] * x[:, None, :]
        self.b[at] += reward[:, None] * x
        self.log_det[at] += np.log(grown)
        self.rows[at] += 1
        self.gained[at] += squares(x, self.solved[0][at][:, None])[:, 0] if setup.solve == "leverage" else 1.0
        due = self.gained[at] > setup.gain * (self.solved[4][at] if setup.solve == "rows" else 1.0)
        which = at[0][due], arm[due]
        for kept, now in zip(self.solved, self._sums(), strict=True):
            kept[which] = now[which]
        self.gained[which] = 0.0
        self.solves[which] += 1


def play(setup: Setup) -> tuple[Step, Arms]:
    """Play all runs; thetas and contexts are drawn from balls of radius 1, each run's contexts from six of its own."""
    rng, each = np.random.default_rng([setup.seed, setup.runs, setup.steps]), np.arange(setup.runs)
    theta, pool = _in_ball(rng, (setup.runs, N_ARMS)), _in_ball(rng, (setup.runs, 6))
    means = np.einsum("rmi,rki->rmk", pool, theta)
    regrets = means.max(axis=2, keepdims=True) - means
    arms, under_way, steps = Arms(setup), deque[tuple[Float64, Int64, Float64]](), list[Step]()
    for t in range(1, setup.steps + 1):
        inverse, b, log_det, V, _ = arms.solved
        theta_hat, beta, coin = (
            np.einsum("rkij,rkj->rki", inverse, b),
            setup.radius(log_det, t),
            rng.random(setup.runs) < SHARE,
        )
        shown = _choose(setup, t, coin, pool, regrets, theta_hat, inverse, beta, rng)
        x, rho = pool[each, shown], regrets[each, shown]
        square, estimates = squares(x, inverse), np.einsum("ri,rki->rk", x, theta_hat)
        bonus = beta * np.sqrt(square)
        c, o = estimates.argmax(axis=1), (estimates + bonus).argmax(axis=1)
        arm, away = np.where(coin, o, c), theta_hat - theta
        far = np.einsum("rki,rkij,rkj->rk", away, V, away)
        steps.append(
            Step(
                coin=coin,
                width=np.sqrt(square[each, arm]),
                u=bonus[each, c],
                v=bonus[each, o],
                greedy_regret=rho[each, c],
                optimistic_regret=rho[each, o],
                good=(np.abs(estimates - means[each, shown]) <= bonus).all(axis=1),
                outside=(np.sqrt(far) / beta).max(axis=1),
                staleness=(square / squares(x, arms.inverse)).max(axis=1),
            )
        )
        under_way.append((x, arm, means[each, shown, arm] + NOISE * rng.standard_normal(setup.runs)))
        if len(under_way) > setup.delay:
            arms.learn(*under_way.popleft())
    return Step(*(np.array(column) for column in zip(*steps, strict=True))), arms


def squares(x: Float64, inverse: Float64) -> Float64:
    """Return x' V^-1 x of all arms, (runs, K)."""
    out: Float64 = (np.einsum("rkij,rj->rki", inverse, x) * x[:, None]).sum(axis=2)
    return out


def _in_ball(rng: np.random.Generator, shape: tuple[int, ...]) -> Float64:
    towards = rng.standard_normal((*shape, DIM))
    out: Float64 = towards / np.linalg.norm(towards, axis=-1, keepdims=True) * rng.uniform(0.3, 1.0, (*shape, 1))
    return out


def _choose(
    setup: Setup,
    t: int,
    coin: Bool,
    pool: Float64,
    regrets: Float64,
    theta_hat: Float64,
    inverse: Float64,
    beta: Float64,
    rng: np.random.Generator,
) -> Int64:
    """Return the context that the adversary shows in every run."""
    if setup.adversary == "random":
        return rng.integers(pool.shape[1], size=setup.runs)
    if setup.adversary == "late":
        return np.full(setup.runs, int(t > setup.steps // 2))
    estimates = np.einsum("rmi,rki->rmk", pool, theta_hat)
    if setup.adversary == "informed":  # of theta: what the greedy arm loses most by
        lost: Float64 = np.take_along_axis(regrets, estimates.argmax(axis=2)[:, :, None], axis=2)[:, :, 0]
        return _most(lost)
    half = np.einsum("rkij,rmj->rmki", inverse, pool)
    widths = np.sqrt((half * pool[:, :, None]).sum(axis=3))
    if setup.adversary == "widest":
        return _most(widths.max(axis=2))
    bonus = beta[:, None] * widths  # the optimistic arm is wide where the coin is greedy, and narrow where it is not
    v = np.take_along_axis(bonus, (estimates + bonus).argmax(axis=2)[:, :, None], axis=2)[:, :, 0]
    return np.where(coin, _most(-v), _most(v))


def _most(of: Float64) -> Int64:
    return np.asarray(of.argmax(axis=1), dtype=np.int64)
