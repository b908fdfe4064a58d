"""A problem as the advisor simulates it: a table of contexts, chances and mean rewards (Section 3).

A world with few contexts is its own table. Any other is replaced by a sample of its contexts, and noise that no table
can name by gaussian noise of the same variance; both are said aloud in the notes of the advice.
O(M K) for M contexts; where they are sampled, M is 8 d but 64 at least, and from d = 16 on 128 or 4 d.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal, Protocol

import numpy as np

from armlet.environments.finite import FiniteWorld
from armlet.environments.world import World, check_still
from armlet.errors import InvalidValueError
from armlet.parallel.seeds import Seeds
from armlet.theory import asked_p
from armlet.types import Float64

PLACE: Final = "advice"  # of the seeds of an advice
FEW: Final = 64  # distinct contexts that are kept as they are; more are sampled, because runs cost O(M) an exploration
MANY: Final = 1024  # contexts at most, unless there are more than 256 features
REPEATS: Final = 16  # rewards drawn for each sampled context and arm, to measure the noise


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledProblem:
    """One problem to run policies on."""

    table: FiniteWorld
    theta: Float64 | None = None  # (K, d): what the means follow from, if that is known
    notes: tuple[str, ...] = ()
    contexts: Literal["all", "sampled"] = "all"  # whether the table has every context that there is

    @property
    def n_arms(self) -> int:
        """The number of arms, K."""
        return int(self.table.means.shape[1])

    @property
    def dim(self) -> int:
        """The number of features of a context, d."""
        return int(self.table.contexts.shape[1])

    @property
    def noise(self) -> float:
        """The standard deviation of a reward around its mean, root mean square over contexts and arms."""
        t = self.table
        if t.noise == "gaussian":
            return t.scale
        if t.noise == "none":
            return 0.0
        variance = t.means * (1 - t.means) if t.noise == "bernoulli" else np.square(t.scale * t.means) / 3
        return math.sqrt(float(t.chances @ variance.mean(axis=1)))


class Source(Protocol):
    """Where problems come from."""

    def words(self) -> str:
        """Say what it is, for the first line of the advice."""

    def sample(self, n: int, seed: int) -> list[SampledProblem]:
        """Draw n problems; the first ones are the same whatever n."""


def draw_from(n: int, seed: int) -> list[np.random.Generator]:
    """Give what each of n problems is drawn from; the first ones are the same whatever n."""
    return [Seeds(seed, PLACE).rng("sampled problems", index) for index in range(n)]


def sample_size(dim: int) -> int:
    """Give how many contexts stand for a law that has too many of them.

    Examples
    --------
    >>> sample_size(3), sample_size(30)
    (64, 128)
    """
    return max(FEW, min(8 * dim, 128), 4 * dim)


def varied_size(n_arms: int, dim: int) -> int:
    """Give how many contexts make a policy that learns from every step see each arm at work in every direction.

    With 8 d of them in all, each of ten arms is best in fewer than d: it then meets too few directions to learn from,
    and the default appeared to lose a fifth more than it did where contexts have no end (ten arms, ten features).

    Examples
    --------
    >>> varied_size(2, 3), varied_size(10, 11)
    (64, 880)
    """
    return max(sample_size(dim), min(8 * n_arms * dim, MANY))


def condense(world: World, rng: np.random.Generator, horizon: int) -> SampledProblem:
    """Make a problem of a world.

    Examples
    --------
    >>> from armlet.environments import FigureA
    >>> rng = np.random.default_rng(0)
    >>> condense(FigureA.draw(rng), rng, horizon=1000).table.means.shape
    (8, 6)
    """
    check_still(world, "armlet.advise")
    rows = getattr(world, "theta", None)
    theta = None if rows is None else np.array(rows)
    table = world.table()
    if table is not None and len(table.chances) <= FEW:
        return SampledProblem(table=table, theta=theta)
    X = world.contexts(rng, sample_size(world.dim))
    means = world.means(X)
    if not np.array_equal(means, world.means(X, start=horizon - 1)):
        name = type(world).__name__
        raise InvalidValueError(f"source is a {name} whose arms change over time; advice holds for worlds that stay")
    return _sampled(world, rng, X, means, theta)


def _sampled(
    world: World, rng: np.random.Generator, X: Float64, means: Float64, theta: Float64 | None
) -> SampledProblem:
    rewards = np.stack([world.rewards(rng, X) for _ in range(REPEATS)])
    law = tabulate(X, np.full(len(X), 1 / len(X)), means, rewards, float(np.sqrt(np.square(rewards - means).mean())))
    notes = [f"contexts are many: every problem has a sample of {len(X)} of them, drawn for it alone"]
    if law.noise == "gaussian" and getattr(world, "noise", None) != "gaussian":
        notes.append("the noise is taken as gaussian with the variance it has on average")
    return SampledProblem(table=law, theta=theta, notes=tuple(notes), contexts="sampled")


def tabulate(X: Float64, chances: Float64, means: Float64, rewards: Float64, noise: float) -> FiniteWorld:
    """Make a table whose noise is 0/1 if all rewards are, else gaussian of a given standard deviation."""
    X, means = np.ascontiguousarray(X), np.ascontiguousarray(means)
    if np.isin(rewards, (0.0, 1.0)).all():
        return FiniteWorld(contexts=X, chances=chances, means=means.clip(0.0, 1.0), noise="bernoulli")
    if noise == 0:
        return FiniteWorld(contexts=X, chances=chances, means=means)
    return FiniteWorld(contexts=X, chances=chances, means=means, noise="gaussian", scale=noise)


def theorem_p(problem: SampledProblem) -> float:
    """Give the p that Theorem 2 asks for as printed; ValueError says why there is none."""
    if problem.contexts == "sampled":
        raise InvalidValueError(
            "it needs the smallest lead of the best arm over the next one in any context, and there are too many "
            "contexts to go through; the more there are, the smaller that lead is and the larger the p"
        )
    asked = asked_p(problem.table, theta=problem.theta)
    if asked.printed is None:
        raise InvalidValueError("; ".join(asked.plainly))
    return asked.printed.p
