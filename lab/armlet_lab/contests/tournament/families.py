"""The kinds of problem on which a default has to do well: the leaderboard's, and what goes wrong in practice.

Rewards far from zero, features of another size, heavy tails, one arm far noisier than the others, many features of
which one is on, near-ties beside a bad arm, arms that come and go, and rewards that come late or in blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from armlet.environments import Customers, Environment, News
from armlet.environments.environment import Constants
from armlet.errors import MissingConstantError
from armlet.parallel.seeds import Seeds
from armlet.types import Float64
from armlet_lab.runner.arena import ARENAS

Law: TypeAlias = Literal["sphere", "one-hot", "constant"]
Tail: TypeAlias = Literal["normal", "t3", "clicks"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """Linear arms with noise of a size for each arm; what a user sees of it may have another zero and another size."""

    theta: Float64  # (K, d)
    law: Law = "sphere"
    tail: Tail = "normal"
    deviations: Float64 | float = 0.5  # of noise, (K,) or all alike
    level: float = 0.0  # added to rewards
    size: float = 1.0  # that contexts are multiplied by

    @property
    def n_arms(self) -> int:
        """K."""
        return len(self.theta)

    @property
    def dim(self) -> int:
        """Give d."""
        return int(self.theta.shape[1])

    def contexts(self, rng: np.random.Generator, n: int, *, start: int = 0) -> Float64:  # noqa: ARG002
        """Draw contexts, (n, d)."""
        if self.law == "one-hot":
            return np.eye(self.dim)[rng.integers(self.dim, size=n)] * self.size
        X = rng.normal(size=(n, self.dim)) if self.law == "sphere" else np.ones((n, self.dim))
        out: Float64 = self.size * X / np.linalg.norm(X, axis=1, keepdims=True)
        return out

    def means(self, X: Float64, *, start: int = 0) -> Float64:  # noqa: ARG002
        """Give expected rewards, (n, K)."""
        out: Float64 = X / self.size @ self.theta.T + self.level
        return out

    def rewards(self, rng: np.random.Generator, X: Float64, *, start: int = 0) -> Float64:  # noqa: ARG002
        """Draw what every arm would pay, (n, K)."""
        means = self.means(X)
        if self.tail == "clicks":
            out: Float64 = (rng.random(means.shape) < means).astype(np.float64)
            return out
        noise = (
            rng.standard_t(3, size=means.shape) / np.sqrt(3.0) if self.tail == "t3" else rng.normal(size=means.shape)
        )
        return means + self.deviations * noise

    def table(self) -> None:
        """Give nothing: it is played step by step."""

    def constants(self) -> Constants:
        """Refuse: regret is all that the tournament measures."""
        raise MissingConstantError("delta_min", "the environments of the tournament have no constants of the paper")

    def describe(self) -> list[str]:
        """Say what it is."""
        return [f"linear arms for the tournament: K = {self.n_arms}, d = {self.dim}, {self.law}, {self.tail} noise"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """How to draw a problem for so many steps, and when rewards come: `delay` steps late, and every `block` steps."""

    draw: Callable[[np.random.Generator, int], Environment]
    delay: int = 0
    block: int = 1

    @property
    def is_prompt(self) -> bool:
        """Whether every reward comes before the next step."""
        return self.delay == 0 and self.block == 1


def _theta(rng: np.random.Generator, n_arms: int = 10, dim: int = 10) -> Float64:
    return rng.normal(size=(n_arms, dim))


def _noisy(n_arms: int) -> Float64:
    return np.array([5.0] + [0.5] * (n_arms - 1))


def _near(rng: np.random.Generator) -> Plain:
    first = rng.normal(size=5)
    return Plain(theta=np.stack([first, first + 0.02 * rng.normal(size=5), first - 2.0]))


def _of(environment: Callable[[np.random.Generator], Environment], **when: int) -> Family:
    return Family(draw=lambda rng, _: environment(rng), **when)


FAMILIES: Final[dict[str, Family]] = {
    **{name: _of(draw) for name, draw in ARENAS.items()},
    "clicks 3 %": _of(Customers.draw),
    "level 100": _of(lambda rng: Plain(theta=_theta(rng), level=100.0)),
    "scale 0.02": _of(lambda rng: Plain(theta=_theta(rng), size=0.02)),
    "t3 noise": _of(lambda rng: Plain(theta=_theta(rng), tail="t3")),
    "one-hot 50": _of(lambda rng: Plain(theta=_theta(rng, 5, 50), law="one-hot")),
    "near-ties": _of(_near),
    "one noisy arm": _of(lambda rng: Plain(theta=_theta(rng, 5, 5), deviations=_noisy(5))),
    "news": Family(draw=lambda rng, horizon: News.draw(rng, horizon=horizon, life=horizon // 20)),
    "delay 1,000": _of(lambda rng: Plain(theta=_theta(rng)), delay=1000),
    "at once": _of(lambda _: _chapelle_li()),
    "blocks of 1,000": _of(lambda _: _chapelle_li(), block=1000),
}
"""The last two are the best arm of ten by clicks, 0.5 against 0.4, without features (Chapelle and Li 2011, Table 1)."""


def _chapelle_li() -> Plain:
    return Plain(theta=np.array([[0.5]] + [[0.4]] * 9), law="constant", tail="clicks")


def draw_problem(family: str, seeds: Seeds, index: int, horizon: int) -> Environment:
    """Draw one problem of a family, for so many steps; every index is another.

    Examples
    --------
    >>> draw_problem("one-hot 50", Seeds(1), 0, 1000).dim
    50
    """
    return FAMILIES[family].draw(seeds.rng("problems", family, index), horizon)
