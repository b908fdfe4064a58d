"""Which p the theorem asks for in an environment that is a table, or why there is none: Theorem 2 and Section 4.2.

Neither p is a default anywhere: on problems like Figure (a) both exceed the horizon by far
(docs/explanation/theory.md). O(M d^2 + d^3 + M K d) for M contexts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armlet.environments.environment import FiniteEnvironment, noise_sigma
from armlet.theory.assumptions import AssumptionError
from armlet.theory.printed import printed_p
from armlet.theory.problem import Problem
from armlet.theory.repaired import repaired_p
from armlet.theory.statements import Condition
from armlet.types import Float64


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The p of the printed and of the repaired theorem; None where an assumption fails, which `reasons` then tell."""

    problem: Problem | None
    printed: Condition | None
    repaired: Condition | None
    reasons: tuple[str, ...]
    plainly: tuple[str, ...]  # the reasons without symbols


def asked_p(table: FiniteEnvironment, *, theta: Float64 | None = None, sigma: float | None = None) -> Asked:
    """Give the p that each theorem asks for, or the reasons why there is none. Does not raise for a failed assumption.

    Parameters
    ----------
    table
        Contexts, chances and mean rewards.
    theta
        The parameters of the arms, (K, d). If not given they are read off the table, the shortest ones that explain
        it, or found not to exist.
    sigma
        The standard sub-gaussian constant of the noise; that of the table's noise unless given.

    Examples
    --------
    >>> table = FiniteEnvironment(contexts=np.eye(2), chances=np.full(2, 0.5), means=np.eye(2), noise="gaussian")
    >>> asked = asked_p(table)
    >>> asked.printed.whole, asked.repaired.whole, asked.repaired.binding
    (1024, 1024, 'noise')
    >>> asked_p(FiniteEnvironment(contexts=np.eye(2), chances=np.full(2, 0.5), means=np.ones((2, 3)))).reasons
    ('delta_min does not exist: every arm is best in every context',)
    """
    try:
        arms = linear_arms(table) if theta is None else theta
        problem = Problem.of(table, arms, sigma=noise_sigma(table) if sigma is None else sigma)
    except AssumptionError as error:
        return Asked(problem=None, printed=None, repaired=None, reasons=(str(error),), plainly=(error.plainly,))
    repaired = repaired_p(problem)
    try:
        return Asked(problem=problem, printed=printed_p(problem), repaired=repaired, reasons=(), plainly=())
    except AssumptionError as error:
        return Asked(problem=problem, printed=None, repaired=repaired, reasons=(str(error),), plainly=(error.plainly,))


def linear_arms(table: FiniteEnvironment) -> Float64:
    """Give the shortest theta with means x'theta in every context that occurs, (K, d).

    Examples
    --------
    >>> means = np.array([[1.0, 0.0], [0.0, 1.0], [5.0, 0.0]])
    >>> table = FiniteEnvironment(contexts=np.array([[1.0, 0], [0, 1], [1, 1]]), chances=np.full(3, 1 / 3), means=means)
    >>> linear_arms(table)
    Traceback (most recent call last):
    armlet.theory.assumptions.AssumptionError: expected rewards are not linear in the context: x'theta misses one by
    1.33333; add features that explain them
    """
    occurs = table.chances > 0
    X, means = table.contexts[occurs], table.means[occurs]
    theta = np.asarray(np.linalg.lstsq(X, means)[0].T, dtype=np.float64)
    miss = float(np.abs(X @ theta.T - means).max())
    if miss > 1e-9 * float(np.abs(means).max()):  # rounding is some orders below, a wrong model some above
        raise AssumptionError(
            "linear",
            f"expected rewards are not linear in the context: x'theta misses one by {miss:g}; add features that "
            f"explain them",
            plainly=f"expected rewards are not linear in the context: x'theta misses one by {miss:g}",
        )
    return theta
