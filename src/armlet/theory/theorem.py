"""Theorem 2 as numbers: how large p must be, and the bound on regret that then holds. Section 4, end of Section 5.

Printed and repaired. The printed proof has gaps (docs/explanation/theory.md), so those are the paper's numbers, not
guarantees. Three readings: the theorem's C is left open, and the proof's conditions give it in terms of the C of
Lemma 1, which is left open too; rewards are divided by Q if Q > 1, as Section 3 allows, and primes cut at 1 after
that, else they would depend on the unit of the rewards; L is the paper's, sigma / sqrt 2.

Repaired: for contexts of length at most B that span r dimensions, p a multiple of K, Algorithm 1 with its own ridge,

    p >= K max{256 B^2 sigma^2 / (Delta^2 Sigma), 32 B^2 / Sigma, 128 B^2 Q^2 / (Delta^2 Sigma^2)}    implies
    R(T) <= B Delta_max [p + p log(T / p) + K p (s(alpha_counts) + r s(alpha_contexts) + s(alpha_noise))],

with s(alpha) = e^-alpha / (alpha - 1), and exponents alpha >= 2 that grow with p. This is our derivation and has had
no referee. sigma is the standard sub-gaussian constant, not the paper's L. Neither p is a default anywhere: on
problems like Figure (a) both exceed the horizon by far. O(1); `required_p` O(M d^2 + d^3 + M K d) for M contexts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from armlet.environments.environment import Constants, FiniteEnvironment, noise_sigma
from armlet.errors import InvalidValueError
from armlet.inputs.settings import RidgeName, one_of, positive, whole
from armlet.theory.problem import MEANINGS, AssumptionError, Problem, check_length
from armlet.types import Float64

LEMMA_1: Final = 3 / 7
"""The C of Lemma 1 that the proof can use: P(|Sigma_hat - Sigma| > u) <= 2 d exp(-C u^2 n) for u <= 1/2 and |x| <= 1.

Matrix Bernstein has exponent n u^2 / 2 / (|Sigma| + u / 3), and |Sigma| + u / 3 <= 7 / 6. The factor d is missing
from the lemma.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """How large p must be: the largest of several demands, each with a name.

    Examples
    --------
    >>> condition = Condition(n_arms=6, demands={"noise": 500.5, "counts": 192.0})
    >>> condition.p, condition.binding, condition.whole
    (500.5, 'noise', 504)
    """

    n_arms: int
    demands: Mapping[str, float]

    @property
    def p(self) -> float:
        """The smallest p that meets every demand."""
        return max(self.demands.values())

    @property
    def binding(self) -> str:
        """The demand that decides; the first of them if several are equal."""
        return max(self.demands, key=lambda name: self.demands[name])

    @property
    def whole(self) -> int:
        """The smallest multiple of the number of arms that is at least p: the warm-up then serves all alike."""
        return next_multiple(self.p, self.n_arms)

    def check(self, p: float) -> None:
        """Raise an AssumptionError that says what is missing, unless p is large enough."""
        if not p >= self.p:
            missing = ", ".join(f"{name} {value:,.6g}" for name, value in self.demands.items() if not p >= value)
            message = f"p is {p:g} but the theorem asks for more ({missing}); use p >= {self.whole:,}"
            raise AssumptionError("p", message, needed=self.p)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What R(T) is at most, by what it is paid for, in units of reward."""

    warm_up: float  # the first p steps
    exploring: float  # explored steps after them
    mistakes: float  # wrong arms on steps that exploit

    @property
    def total(self) -> float:
        """The sum of the parts."""
        return self.warm_up + self.exploring + self.mistakes


def next_multiple(p: float, n_arms: int) -> int:
    """Return the smallest multiple of the number of arms that is at least p, without rounding however large p is.

    Examples
    --------
    >>> next_multiple(500.5, 6), next_multiple(9.9931130859375e16, 19) >= 9.9931130859375e16
    (504, True)
    """
    return -(-math.ceil(p) // n_arms) * n_arms


def _check_horizon(horizon: float) -> None:
    if not 1 <= horizon < math.inf:
        raise InvalidValueError(f"horizon is {horizon!r}; give the number of steps T, at least 1")


def theorem_p(constants: Constants, *, n_arms: int, C: float) -> float:
    """Return the right-hand side of Equation (4), C K L'^2 / (Delta'_min Sigma'_min)^2, in the units of the constants.

    Primes: Delta' = min(1, Delta_min), Sigma' = min(1, Sigma_min), L' = max(1, L). This is the formula alone: it does
    not look at contexts or Q. The proof needs C >= 128; C = 512 is enough where |x| <= 1 and
    Q <= 1, by `repaired_p`.

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
    """Return the bound of Theorem 2 to the letter with C as its constant: rewards in their own unit, e^(Q/4) as it is.

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
    """Return the three conditions on p at the end of the proof, and which of them binds.

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
    """Return the bound of Theorem 2, Delta_max sqrt(d) (p + p log T + 14 K e^(Q/4)), Q being at most 1 after division.

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
    armlet.theory.problem.AssumptionError: p is 60 but the theorem asks for more (noise 256, contexts 74.6667,
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
    _check_horizon(horizon)
    unit = problem.constants.delta_max * math.sqrt(problem.dim)
    with np.errstate(over="ignore"):  # a bound may be infinite
        mistakes = 14 * unit * problem.n_arms * float(np.exp(Q / 4))
    return Bound(warm_up=p * unit, exploring=p * unit * math.log(horizon), mistakes=mistakes)


def repaired_p(problem: Problem, *, ridge: RidgeName = "paper") -> Condition:
    """Return the demands on p, and which of them binds.

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
    """Return the repaired bound on R(T).

    Raises
    ------
    AssumptionError
        If p does not meet `repaired_p`, or is no multiple of the number of arms.

    Examples
    --------
    >>> constants = Constants(sigma_min=1.0, delta_min=1.0, delta_max=1.0, Q=1.0, sigma=1.0)
    >>> bound = repaired_bound(Problem(constants=constants, n_arms=2, dim=1, rank=1, radius=1.0), p=512, horizon=10**5)
    >>> round(bound.warm_up), round(bound.exploring), round(bound.mistakes)
    (512, 2701, 139)
    """
    _check_horizon(horizon)
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
    """Return each way to a mistake as (m, alpha): at step t > p its chance for one arm is at most m (e t / p)^-alpha.

    Examples
    --------
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredP:
    """The p of the printed and of the repaired theorem; None where an assumption fails, which `reasons` then tell."""

    problem: Problem | None
    printed: Condition | None
    repaired: Condition | None
    reasons: tuple[str, ...]
    plainly: tuple[str, ...]  # the reasons without symbols


def required_p(table: FiniteEnvironment, *, theta: Float64 | None = None, sigma: float | None = None) -> RequiredP:
    """Return the p that each theorem asks for, or the reasons why there is none; a failed assumption does not raise.

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
    >>> required = required_p(table)
    >>> required.printed.whole, required.repaired.whole, required.repaired.binding
    (1024, 1024, 'noise')
    >>> required_p(FiniteEnvironment(contexts=np.eye(2), chances=np.full(2, 0.5), means=np.ones((2, 3)))).reasons
    ('delta_min does not exist: every arm is best in every context',)
    """
    try:
        arms = linear_arms(table) if theta is None else theta
        problem = Problem.of(table, arms, sigma=noise_sigma(table) if sigma is None else sigma)
    except AssumptionError as error:
        return RequiredP(problem=None, printed=None, repaired=None, reasons=(str(error),), plainly=(error.plainly,))
    repaired = repaired_p(problem)
    try:
        return RequiredP(problem=problem, printed=printed_p(problem), repaired=repaired, reasons=(), plainly=())
    except AssumptionError as error:
        return RequiredP(
            problem=problem, printed=None, repaired=repaired, reasons=(str(error),), plainly=(error.plainly,)
        )


def linear_arms(table: FiniteEnvironment) -> Float64:
    """Return the shortest theta with means x'theta in every context that occurs, (K, d).

    Examples
    --------
    >>> means = np.array([[1.0, 0.0], [0.0, 1.0], [5.0, 0.0]])
    >>> table = FiniteEnvironment(contexts=np.array([[1.0, 0], [0, 1], [1, 1]]), chances=np.full(3, 1 / 3), means=means)
    >>> linear_arms(table)
    Traceback (most recent call last):
    armlet.theory.problem.AssumptionError: expected rewards are not linear in the context: x'theta misses one by
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
