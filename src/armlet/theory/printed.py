"""Theorem 2 as printed, with every constant in the open: Section 4, and the conditions at the end of Section 5.

The proof has gaps (`armlet.theory.gaps`, docs/explanation/theory.md), so these are the paper's numbers, not guarantees;
the statement that is proved is in `armlet.theory.repaired`. Everything is O(1).

Three readings. The theorem's C is left open; the proof's conditions give it in terms of the C of Lemma 1, which is
left open too. Rewards are divided by Q if Q > 1, as Section 3 allows, and primes cut at 1 after that: cut before,
they would depend on the unit of the rewards. L is the paper's, sigma / sqrt 2.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from armlet.environments.environment import Constants
from armlet.errors import InvalidValueError
from armlet.inputs.checks import positive, whole
from armlet.theory.assumptions import MEANINGS, AssumptionError
from armlet.theory.problem import Problem, check_length
from armlet.theory.statements import Bound, Condition, check_horizon

LEMMA_1: Final = 3 / 7
"""The C of Lemma 1 that the proof can use: P(|Sigma_hat - Sigma| > u) <= 2 d exp(-C u^2 n) for u <= 1/2 and |x| <= 1.

Matrix Bernstein has exponent n u^2 / 2 / (|Sigma| + u / 3), and |Sigma| + u / 3 <= 7 / 6. The factor d is missing
from the lemma.
"""


def theorem_p(constants: Constants, *, n_arms: int, C: float) -> float:
    """Give the right-hand side of Equation (4), C K L'^2 / (Delta'_min Sigma'_min)^2, in the units of the constants.

    Primes: Delta' = min(1, Delta_min), Sigma' = min(1, Sigma_min), L' = max(1, L). This is the formula alone: it does
    not look at contexts or Q. The proof needs C >= 128; C = 512 is enough where |x| <= 1 and Q <= 1
    (`armlet.theory.repaired`).

    Examples
    --------
    >>> theorem_p(Constants(sigma_min=0.5, delta_min=1.0, delta_max=1.5, Q=1.0, sigma=1.0), n_arms=2, C=128)
    1024.0
    """
    positive()("C", C)
    whole()("n_arms", n_arms)
    delta, sigma, L = _primes(constants)
    return float(C * n_arms * (L / (delta * sigma)) ** 2)


def theorem_bound(problem: Problem, *, p: float, horizon: float, C: float) -> Bound:
    """Give the bound of Theorem 2 to the letter, were C its constant: rewards in their own unit, e^(Q/4) as it stands.

    Examples
    --------
    >>> constants = Constants(sigma_min=1.0, delta_min=1.0, delta_max=1.0, Q=1.0, sigma=1.0)
    >>> problem = Problem(constants=constants, n_arms=2, dim=1, rank=1, radius=1.0)
    >>> bound = theorem_bound(problem, p=256, horizon=10**5, C=128)
    >>> round(bound.warm_up), round(bound.exploring), round(bound.mistakes)
    (256, 2947, 36)
    """
    check_length(problem)
    needed = theorem_p(problem.constants, n_arms=problem.n_arms, C=C)
    Condition(n_arms=problem.n_arms, demands={f"Equation (4) with C = {C:g}": needed}).check(p)
    return _bound(problem, p, horizon, problem.constants.Q)


def printed_p(problem: Problem, *, C: float = LEMMA_1) -> Condition:
    """Give the three conditions on p at the end of the proof, and which of them binds.

    Parameters
    ----------
    problem
        Contexts no longer than 1; rewards in any unit.
    C
        The constant of Lemma 1, below 1; see `LEMMA_1`.

    Examples
    --------
    >>> constants = Constants(sigma_min=0.5, delta_min=1.0, delta_max=2.0, Q=1.0, sigma=1.0)
    >>> condition = printed_p(Problem(constants=constants, n_arms=2, dim=2, rank=2, radius=1.0))
    >>> {name: round(p) for name, p in condition.demands.items()}, condition.binding
    ({'noise': 1024, 'contexts': 299, 'counts': 64}, 'noise')
    """
    positive(fix="give the constant of Lemma 1, above 0 and below 1")("C", C)
    if C >= 1:
        raise InvalidValueError(f"C is {C}; give the constant of Lemma 1, above 0 and below 1")
    check_length(problem)
    K = problem.n_arms
    delta, sigma, L = _primes(_unit(problem).constants)
    demands = {"noise": 128 * K * (L / (delta * sigma)) ** 2, "contexts": 16 * K / (C * sigma**2), "counts": 32.0 * K}
    return Condition(n_arms=K, demands=demands)


def printed_bound(problem: Problem, *, p: float, horizon: float, C: float = LEMMA_1) -> Bound:
    """Give the bound of Theorem 2, Delta_max sqrt(d) (p + p log T + 14 K e^(Q/4)), Q being at most 1 after division.

    Raises
    ------
    AssumptionError
        If p does not meet `printed_p`, or a context is longer than 1.

    Examples
    --------
    >>> constants = Constants(sigma_min=1.0, delta_min=1.0, delta_max=1.0, Q=1.0, sigma=1.0)
    >>> problem = Problem(constants=constants, n_arms=2, dim=1, rank=1, radius=1.0)
    >>> round(printed_bound(problem, p=256, horizon=10**5).total)
    3239
    >>> printed_bound(problem, p=60, horizon=10**5)
    Traceback (most recent call last):
    armlet.theory.assumptions.AssumptionError: p is 60 but the theorem asks for more (noise 256, contexts 74.6667,
    counts 64); use p >= 256
    """
    printed_p(problem, C=C).check(p)
    return _bound(problem, p, horizon, _unit(problem).constants.Q)


def _unit(problem: Problem) -> Problem:
    return problem.divided(max(1.0, problem.constants.Q))


def _primes(c: Constants) -> tuple[float, float, float]:
    if not c.delta_min > 0:
        raise AssumptionError(
            "gap",
            f"delta_min is {c.delta_min:g}; the theorem needs a gap above 0",
            plainly=f"{MEANINGS['delta_min']} is {c.delta_min:g}",
        )
    return min(1.0, c.delta_min), min(1.0, c.sigma_min), max(1.0, c.L)


def _bound(problem: Problem, p: float, horizon: float, Q: float) -> Bound:
    check_horizon(horizon)
    unit = problem.constants.delta_max * math.sqrt(problem.dim)
    with np.errstate(over="ignore"):  # a bound may be infinite
        mistakes = 14 * unit * problem.n_arms * float(np.exp(Q / 4))
    return Bound(warm_up=p * unit, exploring=p * unit * math.log(horizon), mistakes=mistakes)
