"""Theorem 2 with its proof repaired: a p that is enough, and a bound that then holds.

Derived in docs/explanation/theory.md.

For contexts of length at most B that span r dimensions, p a multiple of K, and Algorithm 1 with its own ridge:

    p >= K max{256 B^2 sigma^2 / (Delta^2 Sigma), 32 B^2 / Sigma, 128 B^2 Q^2 / (Delta^2 Sigma^2)}    implies
    R(T) <= B Delta_max [p + p log(T / p) + K p (s(alpha_counts) + r s(alpha_contexts) + s(alpha_noise))],

with s(alpha) = e^-alpha / (alpha - 1), and exponents alpha >= 2 that grow with p. This is our derivation and has had
no referee. sigma is the standard sub-gaussian constant, not the paper's L. Everything is O(1).
"""

from __future__ import annotations

import math

from armlet.inputs.checks import one_of
from armlet.reference.ridge import RidgeName
from armlet.theory.assumptions import AssumptionError
from armlet.theory.problem import Problem
from armlet.theory.statements import Bound, Condition, check_horizon, next_multiple


def repaired_p(problem: Problem, *, ridge: RidgeName = "paper") -> Condition:
    """Give the demands on p, and which of them binds.

    "noise" keeps a reward's noise below a quarter of the gap, "contexts" keeps every direction well observed, "bias"
    keeps what the ridge pulls the estimate away below a quarter of the gap.

    Parameters
    ----------
    problem
        Contexts of any length, rewards in any unit: p does not depend on the latter.
    ridge
        "paper" is lambda_n = 1 / sqrt n; "1/n" asks for a bias of 16 K B Q / (Delta Sigma) only.

    Examples
    --------
    >>> from armlet.environments.environment import Constants
    >>> constants = Constants(sigma_min=0.5, delta_min=1.0, delta_max=2.0, Q=1.0, sigma=1.0)
    >>> condition = repaired_p(Problem(constants=constants, n_arms=2, dim=2, rank=2, radius=1.0))
    >>> condition.demands
    {'noise': 1024.0, 'contexts': 128.0, 'bias': 1024.0}
    """
    one_of("paper", "1/n")("ridge", ridge)
    c, K, B = problem.constants, problem.n_arms, problem.radius
    bias = B * c.Q / (c.delta_min * c.sigma_min)
    demands = {
        "noise": 256 * K * (B * c.sigma / c.delta_min) ** 2 / c.sigma_min,
        "contexts": 32 * K * B**2 / c.sigma_min,
        "bias": 128 * K * bias**2 if ridge == "paper" else 16 * K * bias,
    }
    return Condition(n_arms=K, demands=demands)


def repaired_bound(problem: Problem, *, p: float, horizon: float, ridge: RidgeName = "paper") -> Bound:
    """Give the repaired bound on R(T).

    Raises
    ------
    AssumptionError
        If p does not meet `repaired_p`, or is no multiple of the number of arms.

    Examples
    --------
    >>> from armlet.environments.environment import Constants
    >>> constants = Constants(sigma_min=1.0, delta_min=1.0, delta_max=1.0, Q=1.0, sigma=1.0)
    >>> bound = repaired_bound(Problem(constants=constants, n_arms=2, dim=1, rank=1, radius=1.0), p=512, horizon=10**5)
    >>> round(bound.warm_up), round(bound.exploring), round(bound.mistakes)
    (512, 2701, 139)
    """
    check_horizon(horizon)
    repaired_p(problem, ridge=ridge).check(p)
    K = problem.n_arms
    if p % K:
        raise AssumptionError(
            "multiple",
            f"p is {p:g} but the warm-up must serve all {K} arms alike; use p = {next_multiple(p, K):,}",
            needed=float(next_multiple(p, K)),
        )
    unit = problem.radius * problem.constants.delta_max
    if horizon <= p:
        return Bound(warm_up=unit * horizon, exploring=0.0, mistakes=0.0)
    mistakes = K * p * sum(multiple * tail_sum(alpha) for multiple, alpha in exponents(problem, p).values())
    return Bound(warm_up=unit * p, exploring=unit * p * math.log(horizon / p), mistakes=unit * mistakes)


def exponents(problem: Problem, p: float) -> dict[str, tuple[int, float]]:
    """Give each way to a mistake as (m, alpha): at step t > p and for one arm its chance is at most m (e t / p)^-alpha.

    Examples
    --------
    >>> from armlet.environments.environment import Constants
    >>> constants = Constants(sigma_min=0.5, delta_min=1.0, delta_max=2.0, Q=1.0, sigma=1.0)
    >>> exponents(Problem(constants=constants, n_arms=2, dim=2, rank=2, radius=1.0), 1024)
    {'counts': (1, 64.0), 'contexts': (2, 16.0), 'noise': (1, 2.0)}
    """
    c, share, B = problem.constants, p / problem.n_arms, problem.radius
    spread = 128 * (B * c.sigma / c.delta_min) ** 2
    return {
        "counts": (1, share / 8),
        "contexts": (problem.rank, share * c.sigma_min / (16 * B**2)),
        "noise": (1, share * c.sigma_min / spread if spread > 0 else math.inf),
    }


def tail_sum(alpha: float) -> float:
    """Bound the sum over t > p of (e t / p)^-alpha, divided by p: e^-alpha / (alpha - 1), its integral from p on.

    Examples
    --------
    >>> round(tail_sum(2.0), 4), tail_sum(math.inf)
    (0.1353, 0.0)
    """
    return math.exp(-alpha) / (alpha - 1)
