"""The families of problems that the tournament plays: the leaderboard's environments, and what goes wrong in practice.

Rewards far from zero, features of another size or law, heavy tails, one arm far noisier than the others, many features
of which one is on or none says anything, a class or a context that is rare, near-ties next to a bad arm, arms that come
and go, rewards that come late, in blocks or never. Most families are one line; a run draws its problem by its number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, Self, TypeAlias

import numpy as np

from armlet.bandit import Bandit
from armlet.environments import Customers, Delayed, Environment, LinearArms, News
from armlet.environments.environment import as_rows
from armlet.kernel import Decision
from armlet.parallel import Seeds
from armlet.simulation.play import Player, player
from armlet.types import Bool, Float64, Int64, Policy
from armlet_lab.runner.arena import ARENAS

Maker: TypeAlias = Callable[[np.random.Generator], Environment]
FREEDOM: Final = {"t3": 3.0, "t1.5": 1.5}  # degrees of


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain(LinearArms):
    """Arms with noise of a size for each arm; what a user sees of it may have another zero and another size."""

    law: Literal["sphere", "gaussian", "lognormal", "one-hot", "constant"] = "sphere"
    tail: Literal["normal", "t3", "t1.5", "clicks"] = "normal"
    deviations: tuple[float, ...] | float = 0.5  # of noise, one for each arm or all alike
    level: float = 0.0  # added to rewards
    size: float = 1.0  # that contexts are multiplied by
    curve: float = 0.0  # arms pay z + curve z^2, z = x'theta
    chances: tuple[float, ...] = ()  # of one-hot contexts; all alike if left out
    late: int = 0  # steps before the second half of the one-hot contexts is seen

    @classmethod
    def draw(cls, rng: np.random.Generator, n_arms: int = 10, dim: int = 10, **settings: Any) -> Self:
        """Draw theta."""
        return cls(theta=as_rows(rng.normal(size=(n_arms, dim))), **settings)

    @classmethod
    def affine(cls, levels: Float64, slopes: Float64, **settings: Any) -> Self:
        """Return arms with a level each, (K,), and slopes on gaussian features, (K, d - 1)."""
        return cls(theta=as_rows(np.hstack([levels[:, None], slopes])), law="gaussian", **settings)

    def contexts(self, rng: np.random.Generator, n: int, *, start: int = 0) -> Float64:
        """Draw contexts, (n, d); those that are gaussian or lognormal begin with a constant."""
        if self.law == "one-hot":
            return np.eye(self.dim)[self._which(rng, n, start)] * self.size
        X = np.ones((n, self.dim)) if self.law == "constant" else rng.normal(size=(n, self.dim))
        if self.law in ("gaussian", "lognormal"):
            X = np.exp(X) if self.law == "lognormal" else X
            X[:, 0] = 1.0
        else:
            X /= np.linalg.norm(X, axis=1, keepdims=True)
        out: Float64 = self.size * X
        return out

    def _which(self, rng: np.random.Generator, n: int, start: int) -> Int64:
        edges = np.cumsum(self.chances or (1.0 / self.dim,) * self.dim)
        early = np.arange(start, start + n) < self.late
        u = rng.random(n) * np.where(early, edges[self.dim // 2 - 1], 1.0)
        return np.minimum(np.searchsorted(edges, u, side="right"), self.dim - 1).astype(np.int64)

    def means(self, X: Float64, *, start: int = 0) -> Float64:  # noqa: ARG002
        """Return expected rewards, (n, K)."""
        z = X / self.size @ np.array(self.theta).T
        out: Float64 = z + self.curve * z * z + self.level
        return np.clip(out, 0.0, 1.0) if self.tail == "clicks" else out

    def rewards(self, rng: np.random.Generator, X: Float64, *, start: int = 0) -> Float64:  # noqa: ARG002
        """Draw what every arm would pay, (n, K)."""
        means = self.means(X)
        if self.tail == "clicks":
            return (rng.random(means.shape) < means).astype(np.float64)
        if self.tail == "normal":
            noise = rng.normal(size=means.shape)
        else:  # of variance 1 with three degrees of freedom, infinite with 1.5
            noise = rng.standard_t(FREEDOM[self.tail], size=means.shape) / np.sqrt(3.0)
        return means + np.array(self.deviations) * noise

    def describe(self) -> list[str]:
        """Describe it in one line."""
        return [f"linear arms for the tournament: K = {self.n_arms}, d = {self.dim}, {self.law}, {self.tail} noise"]


def _near(rng: np.random.Generator) -> Plain:
    first = rng.normal(size=5)
    return Plain(theta=as_rows(np.stack([first, first + 0.02 * rng.normal(size=5), first - 2.0])))


def _chapelle_li(_: np.random.Generator) -> Plain:
    return Plain(theta=((0.5,), *((0.4,),) * 9), law="constant", tail="clicks")


def _rare_class(rng: np.random.Generator) -> Plain:
    return Plain.affine(np.array([0.95, 0.03, 0.02]), 0.005 * rng.normal(size=(3, 20)), tail="clicks")


def _embeddings(rng: np.random.Generator) -> Plain:
    slopes = rng.normal(size=(3, 127))
    slopes *= 0.03 / np.linalg.norm(slopes, axis=1, keepdims=True)
    return Plain.affine(np.array([0.91, 0.84, 0.59]), slopes, deviations=0.2)


def bad_arm(rng: np.random.Generator) -> tuple[Float64, Float64]:
    """Return levels and slopes of six arms, the first of which is worse than the others nearly everywhere."""
    levels, slopes = rng.normal(size=6), 0.5 * rng.normal(size=(6, 4))
    levels[0], slopes[0] = -2.0, 0.0
    return levels, slopes


def _newcomers(rng: np.random.Generator, horizon: int) -> Delayed:
    each = max(1, horizon // 10)
    births = (1, 1, *range(each, horizon, each))
    theta, deaths = as_rows(rng.normal(size=(len(births), 5))), (horizon + 1,) * len(births)
    return Delayed(environment=News(theta=theta, births=births, deaths=deaths), delay=1000)


FAMILIES: Final[dict[str, Maker]] = {
    **ARENAS,
    "clicks 3 %": Customers.draw,
    "level 100": lambda rng: Plain.draw(rng, level=100.0),
    "scale 0.02": lambda rng: Plain.draw(rng, size=0.02),
    "t3 noise": lambda rng: Plain.draw(rng, tail="t3"),
    "t1.5 noise": lambda rng: Plain.draw(rng, tail="t1.5"),
    "one-hot 50": lambda rng: Plain.draw(rng, 5, 50, law="one-hot"),
    "100 arms": lambda rng: Plain.draw(rng, 100, 5),
    "non-linear": lambda rng: Plain.draw(rng, curve=0.5),
    "lognormal features": lambda rng: Plain.draw(rng, 5, 6, law="lognormal"),
    "near-ties": _near,
    "one noisy arm": lambda rng: Plain.draw(rng, 5, 5, deviations=(5.0, 0.5, 0.5, 0.5, 0.5)),
    "rare context": lambda rng: Plain.draw(
        rng, 5, 5, law="one-hot", deviations=1.0, chances=(0.8, 0.1, 0.06, 0.03, 0.01)
    ),
    "delay 1,000": lambda rng: Delayed(environment=Plain.draw(rng), delay=1000),
    "at once": _chapelle_li,
    "blocks of 1,000": _chapelle_li,
    "linear, blocks of 1,000": Plain.draw,
    "rare class": _rare_class,
    "noise features": lambda rng: Plain.affine(0.5 * rng.normal(size=5), np.zeros((5, 30))),
    "embeddings": _embeddings,
    "silent arm": lambda rng: Plain.affine(*bad_arm(rng)),
}
"""At once, and its blocks: the best arm of ten by clicks, 0.5 or 0.4, no features (Chapelle and Li 2011, Table 1)."""

WITH_HORIZON: Final[dict[str, Callable[[np.random.Generator, int], Environment]]] = {
    "news": lambda rng, horizon: News.draw(rng, horizon=horizon, life=max(1, horizon // 20)),
    "newcomers, late rewards": _newcomers,
    "late context": lambda rng, horizon: Plain.draw(rng, 5, 4, law="one-hot", deviations=1.0, late=horizon // 2),
}
"""Those that depend on the horizon."""

MADE: Final = ("rare class", "noise features", "embeddings", "silent arm", "newcomers, late rewards")
"""Made to show a fault: features that say nothing, and arms of which nothing comes back yet or ever."""


def draw_problem(family: str, seeds: Seeds, index: int, horizon: int) -> Environment:
    """Draw one problem of a family, for so many steps; every index is another.

    Examples
    --------
    >>> draw_problem("one-hot 50", Seeds(1), 0, 1000).dim
    50
    """
    rng = seeds.rng("problems", family, index)
    return WITH_HORIZON[family](rng, horizon) if family in WITH_HORIZON else FAMILIES[family](rng)


class ProblemLoop:
    """Plays as a user's loop would whose rewards come every so many steps, those of one arm perhaps never."""

    def __init__(
        self, environment: Environment, policy: Policy, seed: int, *, every: int = 1, silent: int | None = None
    ) -> None:
        self.bandit = Bandit(range(environment.n_arms), environment.dim, policy=policy, seed=seed)
        self._every, self._silent = every, silent
        self._waiting: list[tuple[Decision, float]] = []

    def play(self, X: Float64, rewards: Float64) -> tuple[Int64, Bool]:
        """Take the next steps; return the arms played, and which steps explored."""
        arms, explored = np.empty(len(X), dtype=np.int64), np.empty(len(X), dtype=np.bool_)
        for i, (x, row) in enumerate(zip(X, rewards, strict=True)):
            decision = self.bandit.decide(x)
            arms[i], explored[i] = decision.arm, decision.explored
            if arms[i] != self._silent:
                self._waiting.append((decision, float(row[arms[i]])))
            if self.bandit.t % self._every == 0:
                for each in self._waiting:
                    self.bandit.learn(*each)
                self._waiting.clear()
        return arms, explored


def make_player(family: str, environment: Environment, policy: Policy, seed: int) -> Player:
    """Return what plays a policy, rewards coming as the family says."""
    if "blocks" in family:
        return ProblemLoop(environment, policy, seed, every=1000)
    if family == "silent arm":
        return ProblemLoop(environment, policy, seed, silent=0)
    return player(environment, policy, seed)
