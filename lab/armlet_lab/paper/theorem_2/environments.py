"""Theorem 2, Section 4: environments, the p that the theorem asks for in each of them, and its bound.

The formulas are those of `armlet.theory`, to the letter and in the unit of the rewards. The theorem leaves its constant
C open. The proof needs p >= 128 K L^2 / (Delta_min Sigma_min)^2 among others, so C is at least 128, and 128 is what is
used here: the smallest p for which the proof could work.
O(M d^2 + d^3 + M K d) for an environment of M contexts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from armlet import theory
from armlet.environments.environment import Constants, FiniteEnvironment, noise_sigma
from armlet.environments.paper import FigureA
from armlet.parallel.seeds import Seeds
from armlet.types import Float64, Int64

C: Final = 128  # the least that the proof's own condition leaves for the theorem's constant
MOST: Final = 10**7  # the largest p that is run


@dataclass(frozen=True, slots=True)
class KnownEnvironment:
    """An environment that is a table, and what the theorem needs to know of it."""

    name: str
    table: FiniteEnvironment
    known: theory.Problem

    @classmethod
    def of(cls, name: str, table: FiniteEnvironment, theta: Float64) -> KnownEnvironment:
        """Compute the constants of a table whose means are x'theta."""
        return cls(name, table, theory.Problem.of(table, theta, sigma=noise_sigma(table)))

    @property
    def constants(self) -> Constants:
        """The constants of the environment."""
        return self.known.constants

    @property
    def n_arms(self) -> int:
        """The number of arms, K."""
        return self.known.n_arms

    @property
    def dim(self) -> int:
        """The number of features of a context, d."""
        return self.known.dim

    @property
    def p(self) -> float:
        """The printed condition on p with C = 128, primes as in the theorem."""
        return theory.theorem_p(self.constants, n_arms=self.n_arms, C=C)

    def allowed(self, p: float) -> float:
        """Give a C under which p meets the printed condition: 128, or just less than p allows if that is smaller.

        Examples
        --------
        >>> one_context().allowed(256.1), round(one_context().allowed(2), 6)
        (128, 0.999)
        """
        # a thousandth below, so that rounding cannot put the condition above p; the bound itself does not contain C
        return C if p >= self.p else 0.999 * C * p / self.p

    def bound(self, p: float, steps: Int64) -> Float64:
        """Give the printed bound on R(T), were `allowed(p)` the theorem's constant: (steps,)."""
        # The control with p = 2 and runs with a capped p are below the condition with C = 128 on purpose, and there the
        # theorem promises nothing. What is compared is then the bound of a theorem with a smaller C.
        least = self.allowed(p)
        return np.array([theory.theorem_bound(self.known, p=p, horizon=int(T), C=least).total for T in steps])


def one_context() -> KnownEnvironment:
    """Give K = 2, d = 1, x = 1, a gap of 1, and as much noise as p = 256 covers, L = 1.

    Examples
    --------
    >>> round(one_context().p), round(one_context().constants.L, 3)
    (256, 1.0)
    """
    theta = np.array([[0.0], [1.0]])
    sure, means = np.ones(1), np.array([[0.0, 1.0]])
    table = FiniteEnvironment(contexts=sure[:, None], chances=sure, means=means, noise="gaussian", scale=math.sqrt(2.0))
    return KnownEnvironment.of("one context", table, theta)


def two_contexts() -> KnownEnvironment:
    """Give K = 2, d = 2, x one of the two unit vectors, each arm better in one of them.

    Examples
    --------
    >>> round(two_contexts().p)
    1024
    """
    even, means = np.full(2, 0.5), np.eye(2)
    table = FiniteEnvironment(contexts=np.eye(2), chances=even, means=means, noise="gaussian", scale=math.sqrt(2.0))
    return KnownEnvironment.of("two contexts", table, np.eye(2))


def figure_a(rng: np.random.Generator) -> KnownEnvironment:
    """Draw an environment of Figure (a)."""
    environment = FigureA.draw(rng)
    table = environment.table()
    if table is None:
        raise ValueError("the environment of Figure (a) has no table")
    return KnownEnvironment.of("Figure (a)", table, np.array(environment.theta))


def figure_a_that_can_be_run(seeds: Seeds) -> KnownEnvironment:
    """Draw environments of Figure (a) until the theorem's p is at most 10^7: a run costs p log T, and some p are 10^11.

    Examples
    --------
    >>> figure_a_that_can_be_run(Seeds(7)).p <= MOST
    True
    """
    rng = seeds.rng("world that can be run")
    while (problem := figure_a(rng)).p > MOST:
        pass
    return problem


ENVIRONMENTS: Final[dict[str, Callable[[Seeds], KnownEnvironment]]] = {  # given seeds, if they are drawn
    "one context": lambda _: one_context(),
    "two contexts": lambda _: two_contexts(),
    "Figure (a)": figure_a_that_can_be_run,
}
