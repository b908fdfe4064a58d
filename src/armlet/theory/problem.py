"""What the theorems need to know of a problem: Section 3, from arrays; and the error where an assumption fails.

A bound is a statement with conditions, and nothing here returns one where its conditions do not hold. Contexts are
finitely many, so the constants are exact up to rounding; `armlet.theory.estimation` estimates them from data.
O(M d^2 + d^3 + M K d) for M contexts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final, Literal, Self, TypeAlias

import numpy as np

from armlet.environments.environment import Constants, FiniteEnvironment
from armlet.errors import ArmletError, InvalidValueError, MissingConstantError
from armlet.reference.linear import smallest_eigenvalue
from armlet.types import Float64

Assumption: TypeAlias = Literal["gap", "contexts", "linear", "p", "multiple", "radius", "floor", "coin", "refresh"]

MEANINGS: Final = {
    "delta_min": "the smallest lead of the best arm over the next one",
    "sigma_min": "the smallest variance of the contexts in any direction",
}
"""What the constants that may fail are called where nobody has read the paper."""
# a context scaled to length 1 is so only up to rounding; no bound is that sharp
LONGEST = 1.0 + 1e-9


class AssumptionError(ArmletError, ValueError):
    """A bound or a p was asked for where an assumption of its theorem does not hold.

    Attributes
    ----------
    assumption
        "gap": some arm loses, and by at least delta_min > 0 wherever it does. "contexts": they are not all zero, and no
        longer than the statement allows. "linear": expected rewards are. "p": it is as large as the statement asks for.
        "multiple": p is one of K, so that the warm-up serves all arms alike. "radius", "floor", "coin", "refresh": what
        `armlet.theory.mostly_greedy` asks of a policy.
    needed
        If p is too small: the p that would do.
    plainly
        What fails, without symbols and without advice on how to call the theory; the message itself where it has none.

    Examples
    --------
    >>> try:
    ...     raise AssumptionError("p", "p is 3; use p >= 32", needed=32.0)
    ... except ValueError as error:
    ...     print(error, error.assumption, error.needed, sep=" | ")
    p is 3; use p >= 32 | p | 32.0
    """

    def __init__(
        self, assumption: Assumption, message: str, *, needed: float | None = None, plainly: str | None = None
    ) -> None:
        super().__init__(message)
        self.assumption = assumption
        self.needed = needed
        self.plainly = message if plainly is None else plainly


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The constants of a problem and its size.

    Examples
    --------
    >>> constants = Constants(sigma_min=0.5, delta_min=1.0, delta_max=2.0, Q=1.0, sigma=1.0)
    >>> Problem(constants=constants, n_arms=2, dim=2, rank=2, radius=1.0).divided(2.0).constants.delta_min
    0.5
    >>> Problem(constants=constants, n_arms=2, dim=3, rank=3, radius=1.0)
    Traceback (most recent call last):
    armlet.theory.problem.AssumptionError: sigma_min is 0.5 with rank 3 and contexts no longer than 1; it must be
    above 0 and at most radius^2 / rank
    """

    constants: Constants
    n_arms: int  # K
    dim: int  # d
    rank: int  # r, the dimension of the space that contexts span
    radius: float  # B, the length of the longest context

    def __post_init__(self) -> None:
        if not 1 <= self.rank <= self.dim or self.n_arms < 1:
            raise InvalidValueError(
                f"n_arms, dim and rank are {self.n_arms}, {self.dim} and {self.rank}; give n_arms >= 1 and "
                f"1 <= rank <= dim"
            )
        _check_constants(self.constants, self.rank, self.radius)

    @classmethod
    def of(cls, table: FiniteEnvironment, theta: Float64, *, sigma: float) -> Self:
        """Compute constants and size of a table; `sigma` is the standard sub-gaussian constant of its noise.

        Examples
        --------
        >>> table = FiniteEnvironment(contexts=2 * np.eye(3)[:2], chances=np.full(2, 0.5), means=2 * np.eye(2))
        >>> problem = Problem.of(table, np.eye(3)[:2], sigma=1.0)
        >>> problem.dim, problem.rank, problem.radius, problem.constants.sigma_min
        (3, 2, 2.0, 2.0)
        """
        occurs = table.chances > 0
        X, chances = table.contexts[occurs], table.chances[occurs]
        return cls(
            constants=_constants(table, theta, sigma),
            n_arms=len(theta),
            dim=X.shape[1],
            rank=context_rank((X.T * chances) @ X),
            radius=float(np.linalg.norm(X, axis=1).max()),
        )

    def divided(self, by: float) -> Self:
        """Return the same problem with all rewards divided by a number; Algorithm 1 plays it no differently."""
        scaled = {name: getattr(self.constants, name) / by for name in ("delta_min", "delta_max", "Q", "sigma")}
        return replace(self, constants=replace(self.constants, **scaled))


def problem_constants(X: Float64, theta: Float64, *, sigma: float, chances: Float64 | None = None) -> Constants:
    """Return the exact constants of finitely many contexts and linear arms.

    Parameters
    ----------
    X
        The contexts that occur, (M, d).
    theta
        The parameters of the arms, (K, d).
    sigma
        The standard sub-gaussian constant of the noise, E exp(g Z) <= exp(g^2 sigma^2 / 2); the paper's L is
        sigma / sqrt 2, and `Constants` has both.
    chances
        How likely each context is, (M,); all alike unless given.

    Raises
    ------
    AssumptionError
        If all contexts are zero, or no arm is ever worse than another: sigma_min or delta_min does not exist.

    Examples
    --------
    >>> constants = problem_constants(np.eye(2), np.array([[3.0, 0.0], [0.0, 4.0]]), sigma=1.0)
    >>> constants.sigma_min, constants.delta_min, constants.delta_max, constants.Q
    (0.5, 3.0, 5.0, 4.0)
    """
    return _constants(as_table(X, theta, chances), theta, sigma)


def finite_problem(X: Float64, theta: Float64, *, sigma: float, chances: Float64 | None = None) -> Problem:
    """Return the constants of `problem_constants` together with K, d, the rank and the longest context.

    Examples
    --------
    >>> finite_problem(np.eye(2), np.array([[3.0, 0.0], [0.0, 4.0]]), sigma=1.0).radius
    1.0
    """
    return Problem.of(as_table(X, theta, chances), theta, sigma=sigma)


def as_table(X: Float64, theta: Float64, chances: Float64 | None) -> FiniteEnvironment:
    """Put contexts and linear arms into a table."""
    if X.ndim != 2 or theta.ndim != 2 or X.shape[1] != theta.shape[1] or 0 in (*X.shape, *theta.shape):
        raise InvalidValueError(f"X and theta have shapes {X.shape} and {theta.shape}; give (M, d) and (K, d)")
    even = np.full(len(X), 1 / len(X))
    return FiniteEnvironment(contexts=X, chances=even if chances is None else chances, means=X @ theta.T)


def context_rank(second_moment: Float64) -> int:
    """Count the eigenvalues of E xx' that are not zero, by the rule of `smallest_eigenvalue`.

    Examples
    --------
    >>> context_rank(np.diag([0.5, 0.25, 0.0]))
    2
    """
    least = smallest_eigenvalue(second_moment)
    return int(np.count_nonzero(np.linalg.eigvalsh(second_moment) >= least))


def check_length(problem: Problem) -> None:
    """Require contexts of at most length 1, as the paper does."""
    if problem.radius > LONGEST:
        raise AssumptionError(
            "contexts",
            f"the longest context has length {problem.radius:g} but the printed theorem needs |x| <= 1; divide all "
            f"contexts by {problem.radius:g} and learn from those (a ridge of another weight, so another run), "
            f"or use repaired_p, which takes any length",
            plainly=f"the longest context has length {problem.radius:g} but the printed theorem needs contexts no "
            f"longer than 1",
        )


def _constants(table: FiniteEnvironment, theta: Float64, sigma: float) -> Constants:
    try:
        return Constants.of(table, theta, sigma)
    except MissingConstantError as error:
        failed: Assumption = "gap" if error.constant == "delta_min" else "contexts"
        plainly = f"{MEANINGS[error.constant]} does not exist: {error.why}"
        raise AssumptionError(failed, str(error), plainly=plainly) from None


def _check_constants(c: Constants, rank: int, radius: float) -> None:
    if not (0 < c.delta_min < math.inf):
        raise AssumptionError(
            "gap",
            f"delta_min is {c.delta_min:g}; the theorems need a gap above 0",
            plainly=f"{MEANINGS['delta_min']} is {c.delta_min:g}",
        )
    # E xx' has trace E |x|^2 <= B^2, spread over r eigenvalues that are at least sigma_min
    if not (0 < rank * c.sigma_min <= radius**2 * LONGEST):
        raise AssumptionError(
            "contexts",
            f"sigma_min is {c.sigma_min:g} with rank {rank} and contexts no longer than {radius:g}; it must be above 0 "
            f"and at most radius^2 / rank",
            plainly=f"{MEANINGS['sigma_min']} is {c.sigma_min:g} with rank {rank} and contexts no longer than "
            f"{radius:g}",
        )
    if not (0 <= c.sigma < math.inf and 0 <= c.Q < math.inf and 0 <= c.delta_max <= 2 * c.Q * LONGEST):
        raise InvalidValueError(
            f"sigma, Q and delta_max are {c.sigma:g}, {c.Q:g} and {c.delta_max:g}; give numbers from 0 up, and "
            f"delta_max at most 2 Q"
        )
    if c.delta_min > radius * c.delta_max * LONGEST:
        raise InvalidValueError(
            f"delta_min is {c.delta_min:g} but no arm can lose more than radius delta_max = {radius * c.delta_max:g}"
        )
