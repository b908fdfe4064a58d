"""The constants of a problem from a sample of contexts, arms and rewards: Section 4.2, with its limits.

What is estimated is plugged into formulas that need the truth, so the p that comes out is a guess, not a guarantee:
sigma_min can only be too large while a direction has not been seen; delta_min is a minimum over noisy differences;
a standard deviation is a lower bound of the sub-gaussian constant, which is what the theorems need.
O(n d^2 + K d^3 + M K d^2) for n rows with M distinct contexts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from armlet.environments.environment import Constants, FiniteEnvironment
from armlet.errors import InvalidValueError
from armlet.inputs.settings import Ridge, RidgeLike, number, whole
from armlet.theory.problem import Problem
from armlet.types import Float64, Int64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EstimatedConstants:
    """Estimated constants, and what they were estimated from."""

    problem: Problem  # its constants hold `bounded` as sigma if there is one, else `spread`
    theta_hat: Float64  # (K, d)
    rows: Int64  # (K,)
    spread: float  # the largest standard deviation of an arm's residuals: a lower bound of sigma
    bounded: float | None  # half the range of rewards: sigma is at most this; None if no range was given

    @property
    def constants(self) -> Constants:
        """The constants of the problem."""
        return self.problem.constants


def estimate_constants(
    X: Float64,
    arms: Int64,
    rewards: Float64,
    *,
    n_arms: int,
    ridge: RidgeLike | None = None,
    reward_range: tuple[float, float] | None = None,
    ties: float = 0.0,
) -> EstimatedConstants:
    """Estimate the constants from rows whose arms did not depend on the rewards to come.

    Parameters
    ----------
    X
        Contexts, (n, d); they should be drawn as the contexts of the problem are, such as those of explored steps.
    arms
        The arm played in each, (n,), from 0 to n_arms - 1.
    rewards
        Its rewards, (n,).
    n_arms
        K.
    ridge
        None for least squares, or a ridge as policies take it; theta_hat, Q, delta_max and delta_min follow from it.
    reward_range
        The lowest and the highest reward that can occur. If given, sigma is half their distance, which is safe (a
        variable in an interval of length c has constant c / 2); if not, sigma is the spread of the residuals, which
        is at most the sub-gaussian constant.
    ties
        Losses within this many standard errors of 0 count as ties. With 0, two arms that are equal in some context
        give a delta_min that is noise and goes to 0 as the sample grows.

    Raises
    ------
    AssumptionError
        If all contexts are zero or no arm loses to another: sigma_min or delta_min does not exist.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> X, arms = np.eye(2)[rng.integers(2, size=4000)], rng.integers(2, size=4000)
    >>> rewards = (rng.random(4000) < np.array([[0.9, 0.2], [0.4, 0.6]])[arms, X.argmax(axis=1)]).astype(float)
    >>> found = estimate_constants(X, arms, rewards, n_arms=2, reward_range=(0, 1))
    >>> c = found.constants
    >>> round(c.sigma_min, 2), round(c.delta_min, 2), round(c.Q, 2), c.sigma, round(found.spread, 2)
    (0.5, 0.4, 0.92, 0.5, 0.49)
    """
    _check(X, arms, rewards, n_arms)
    number(0)("ties", ties)
    gram = np.array([X[arms == arm].T @ X[arms == arm] for arm in range(n_arms)])
    theta_hat = np.array([_fit(X[arms == arm], rewards[arms == arm], ridge) for arm in range(n_arms)])
    rows = np.bincount(arms, minlength=n_arms)
    spread = _spread(rewards - (X * theta_hat[arms]).sum(axis=1), arms, rows, gram)
    bounded = None if reward_range is None else bounded_sigma(reward_range)
    kinds, counts = np.unique(X, axis=0, return_counts=True)
    means = _with_ties(kinds, theta_hat, ties * spread * _errors(kinds, gram))
    table = FiniteEnvironment(contexts=kinds, chances=counts / len(X), means=means)
    problem = Problem.of(table, theta_hat, sigma=spread if bounded is None else bounded)
    return EstimatedConstants(problem=problem, theta_hat=theta_hat, rows=rows, spread=spread, bounded=bounded)


def _fit(X: Float64, rewards: Float64, ridge: RidgeLike | None) -> Float64:
    if ridge is None:
        return np.asarray(np.linalg.lstsq(X, rewards)[0], dtype=np.float64)
    shift = Ridge.parse(ridge).shift(float(len(X)))
    return np.asarray(np.linalg.solve(X.T @ X + shift * np.eye(X.shape[1]), X.T @ rewards), dtype=np.float64)


def _spread(residuals: Float64, arms: Int64, rows: Int64, gram: Float64) -> float:
    free = rows - np.linalg.matrix_rank(gram)  # a fit of r numbers leaves n - r to the noise
    if not (free > 0).all():
        arm = int(np.argmin(free))
        raise InvalidValueError(
            f"arm {arm} has {rows[arm]} rows, too few to tell noise from theta; give it at least d + 1"
        )
    squares = np.bincount(arms, weights=residuals**2, minlength=len(rows))
    return math.sqrt(float((squares / free).max()))


def _errors(X: Float64, gram: Float64) -> Float64:
    """Return sqrt(x' A^-1 x), the standard error of x'theta_hat by least squares in units of sigma: (M, K)."""
    widths: Float64 = np.sqrt(np.einsum("md,kde,me->mk", X, np.linalg.pinv(gram, hermitian=True), X).clip(min=0.0))
    return widths


def _with_ties(X: Float64, theta: Float64, errors: Float64) -> Float64:
    """Raise the means that cannot be distinguished from the best one to it: (M, K)."""
    means: Float64 = X @ theta.T
    best, at = means.max(axis=1, keepdims=True), means.argmax(axis=1)[:, None]
    within = np.hypot(errors, np.take_along_axis(errors, at, axis=1))
    return np.where(best - means <= within, best, means)


def bounded_sigma(reward_range: tuple[float, float]) -> float:
    """Return the sub-gaussian constant that holds for any noise of rewards within a range: half its length.

    Examples
    --------
    >>> bounded_sigma((0.0, 1.0))
    0.5
    """
    low, high = reward_range
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidValueError(f"reward_range is {reward_range!r}; give (lowest, highest), two numbers that differ")
    return (high - low) / 2


def _check(X: Float64, arms: Int64, rewards: Float64, n_arms: int) -> None:
    whole()("n_arms", n_arms)
    if X.ndim != 2 or len(X) == 0 or arms.shape != (len(X),) or rewards.shape != (len(X),):
        raise InvalidValueError(
            f"X, arms and rewards have shapes {X.shape}, {arms.shape} and {rewards.shape}; give (n, d), (n,) and (n,)"
        )
    if not (np.isfinite(X).all() and np.isfinite(rewards).all()):
        raise InvalidValueError("X or rewards hold nan or infinity; leave those rows out")
    missing = sorted({*range(n_arms)} - {*np.unique(arms).tolist()})
    if missing or arms.min() < 0 or arms.max() >= n_arms:
        raise InvalidValueError(f"arms must be all of 0 to {n_arms - 1}; got {np.unique(arms).tolist()}")
