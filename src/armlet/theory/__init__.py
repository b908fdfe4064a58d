"""The paper's theory as numbers: the constants of a problem, the p that Theorem 2 asks for, and its bound.

Arrays in, numbers out, and no number where an assumption fails. docs/explanation/theory.md derives what is repaired.
"""

from armlet.environments.environment import Constants, bernoulli_sigma, noise_sigma
from armlet.reference.statistics import smallest_eigenvalue
from armlet.theory import gaps, lemmas, section41
from armlet.theory.asked import Asked, asked_p
from armlet.theory.assumptions import AssumptionError
from armlet.theory.estimation import Estimate, estimate_constants
from armlet.theory.printed import LEMMA_1, printed_bound, printed_p, theorem_bound, theorem_p
from armlet.theory.problem import Problem, finite_problem, problem_constants
from armlet.theory.repaired import repaired_bound, repaired_p
from armlet.theory.statements import Bound, Condition

__all__ = [
    "LEMMA_1",
    "Asked",
    "AssumptionError",
    "Bound",
    "Condition",
    "Constants",
    "Estimate",
    "Problem",
    "asked_p",
    "bernoulli_sigma",
    "estimate_constants",
    "finite_problem",
    "gaps",
    "lemmas",
    "noise_sigma",
    "printed_bound",
    "printed_p",
    "problem_constants",
    "repaired_bound",
    "repaired_p",
    "section41",
    "smallest_eigenvalue",
    "theorem_bound",
    "theorem_p",
]
