"""The paper's theory as numbers: the constants of a problem, the p that Theorem 2 asks for, and its bound.

`mostly_greedy` is about the paper's open problem, contexts that an adversary chooses.

Arrays in, numbers out, and no number where an assumption fails. docs/explanation/theory.md derives what is repaired.
"""

from armlet.environments.environment import Constants, bernoulli_sigma, noise_sigma
from armlet.reference.linear import smallest_eigenvalue
from armlet.theory import mostly_greedy as mostly_greedy
from armlet.theory.estimation import EstimatedConstants, bounded_sigma, estimate_constants
from armlet.theory.problem import AssumptionError, Problem, finite_problem, problem_constants
from armlet.theory.theorem import (
    LEMMA_1,
    Bound,
    Condition,
    RequiredP,
    printed_bound,
    printed_p,
    repaired_bound,
    repaired_p,
    required_p,
    theorem_bound,
    theorem_p,
)

__all__ = [
    "LEMMA_1",
    "AssumptionError",
    "Bound",
    "Condition",
    "Constants",
    "EstimatedConstants",
    "Problem",
    "RequiredP",
    "bernoulli_sigma",
    "bounded_sigma",
    "estimate_constants",
    "finite_problem",
    "noise_sigma",
    "printed_bound",
    "printed_p",
    "problem_constants",
    "repaired_bound",
    "repaired_p",
    "required_p",
    "smallest_eigenvalue",
    "theorem_bound",
    "theorem_p",
]
