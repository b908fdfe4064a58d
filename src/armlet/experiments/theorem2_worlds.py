"""Theorem 2, Section 4: worlds, the p that the theorem asks for in each of them, and its bound.

The theorem leaves its constant C open. The proof needs p >= 128 K L^2 / (Delta_min Sigma_min)^2 among others, so C
is at least 128, and 128 is what is used here: the smallest p for which the proof could work.
O(M d^2 + d^3 + M K d) for a world of M contexts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from armlet.core.constants import Constants, noise_sigma
from armlet.core.finite import FiniteWorld
from armlet.core.types import Float64, Int64
from armlet.environments.figure_a import FigureA

C: Final = 128  # the least that the proof's own condition leaves for the theorem's constant
MOST: Final = 10**7  # the largest p that is run


@dataclass(frozen=True, slots=True)
class Problem:
    """A world that is a table, and its constants."""

    name: str
    table: FiniteWorld
    constants: Constants

    @classmethod
    def of(cls, name: str, table: FiniteWorld, theta: Float64) -> Problem:
        """Compute the constants of a table whose means are x'theta."""
        return cls(name, table, Constants.of(table, theta, noise_sigma(table)))

    @property
    def n_arms(self) -> int:
        """K."""
        return len(self.table.means[0])

    @property
    def dim(self) -> int:
        """D."""
        return len(self.table.contexts[0])

    @property
    def p(self) -> float:
        """The printed condition on p with C = 128, primes as in the theorem."""
        c = self.constants
        delta, sigma, L = min(1.0, c.delta_min), min(1.0, c.sigma_min), max(1.0, c.L)
        return C * self.n_arms * (L / (delta * sigma)) ** 2

    def bound(self, p: float, steps: Int64) -> Float64:
        """Give the printed bound on R(T): (steps,)."""
        c = self.constants
        unit = c.delta_max * math.sqrt(self.dim)
        bound: Float64 = unit * (p + 14 * self.n_arms * math.exp(c.Q / 4) + p * np.log(steps))
        return bound


def one_context() -> Problem:
    """Give K = 2, d = 1, x = 1, a gap of 1, and as much noise as p = 256 covers, L = 1.

    Examples
    --------
    >>> round(one_context().p), round(one_context().constants.L, 3)
    (256, 1.0)
    """
    theta = np.array([[0.0], [1.0]])
    sure, means = np.ones(1), np.array([[0.0, 1.0]])
    table = FiniteWorld(contexts=sure[:, None], chances=sure, means=means, noise="gaussian", scale=math.sqrt(2.0))
    return Problem.of("one context", table, theta)


def two_contexts() -> Problem:
    """Give K = 2, d = 2, x one of the two unit vectors, each arm better in one of them.

    Examples
    --------
    >>> round(two_contexts().p)
    1024
    """
    even, means = np.full(2, 0.5), np.eye(2)
    table = FiniteWorld(contexts=np.eye(2), chances=even, means=means, noise="gaussian", scale=math.sqrt(2.0))
    return Problem.of("two contexts", table, np.eye(2))


def figure_a(rng: np.random.Generator) -> Problem:
    """Draw a world of Figure (a)."""
    world = FigureA.draw(rng)
    table = world.table()
    if table is None:
        raise ValueError("the world of Figure (a) has no table")
    return Problem.of("Figure (a)", table, np.array(world.theta))


def figure_a_that_can_be_run(seed: int) -> Problem:
    """Draw worlds of Figure (a) until the theorem's p is at most 10^7: a run costs p log T, and some p are 10^11.

    Examples
    --------
    >>> figure_a_that_can_be_run(7).p <= MOST
    True
    """
    rng = np.random.default_rng(seed)
    while (problem := figure_a(rng)).p > MOST:
        pass
    return problem


WORLDS: Final[dict[str, Callable[[int], Problem]]] = {  # given the seed, if they are drawn
    "one context": lambda _: one_context(),
    "two contexts": lambda _: two_contexts(),
    "Figure (a)": figure_a_that_can_be_run,
}
