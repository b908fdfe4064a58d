"""The theorems as numbers: conditions on p, bounds, and that nothing is returned where an assumption fails."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armlet import theory
from armlet.environments import FigureA
from armlet.environments.environment import Constants, FiniteEnvironment, noise_sigma
from armlet.errors import ArmletError
from armlet.theory import LEMMA_1, AssumptionError, Problem
from armlet.theory.problem import MEANINGS
from armlet.types import Float64


def problem(
    *,
    sigma_min: float = 0.5,
    delta_min: float = 1.0,
    Q: float = 1.0,
    sigma: float = 1.0,
    n_arms: int = 2,
    radius: float = 1.0,
) -> Problem:
    constants = Constants(sigma_min=sigma_min, delta_min=delta_min, delta_max=1.5 * Q, Q=Q, sigma=sigma)
    return Problem(constants=constants, n_arms=n_arms, dim=2, rank=2, radius=radius)


problems = st.builds(
    lambda share, Q, **rest: problem(delta_min=1.5 * share * Q, Q=Q, **rest),
    share=st.floats(1e-3, 1.0),
    Q=st.floats(0.5, 50.0),
    sigma_min=st.floats(1e-3, 0.5),
    sigma=st.floats(0.0, 10.0),
    n_arms=st.integers(2, 20),
)


# ---- constants from arrays


def test_constants_from_arrays_are_those_of_the_table() -> None:
    environment = FigureA.draw(np.random.default_rng(3))
    table = environment.table()
    assert table is not None
    sigma, theta = noise_sigma(table), np.array(environment.theta)
    assert (
        theory.problem_constants(table.contexts, theta, sigma=sigma, chances=table.chances) == environment.constants()
    )


def test_sigma_and_the_papers_constant_are_kept_apart() -> None:
    constants = theory.problem_constants(np.eye(2), np.eye(2), sigma=3.0)
    assert constants.sigma == 3.0
    assert pytest.approx(3.0 / math.sqrt(2.0)) == constants.L


def test_rank_counts_the_directions_that_contexts_take() -> None:
    X = np.array([[1.0, 1.0, 1.0], [1.0, 0.0, 1.0]])
    found = theory.finite_problem(X, np.eye(3), sigma=1.0, chances=np.array([0.1, 0.9]))
    assert (found.dim, found.rank) == (3, 2)
    assert found.radius == pytest.approx(math.sqrt(3.0))


def test_a_direction_taken_only_by_contexts_that_never_occur_does_not_count() -> None:
    found = theory.finite_problem(np.eye(3), np.eye(3), sigma=1.0, chances=np.array([0.5, 0.5, 0.0]))
    assert (found.rank, found.constants.sigma_min) == (2, 0.5)


# ---- the condition on p


def test_the_three_printed_conditions_have_the_printed_constants() -> None:
    some = problem(sigma_min=0.25, delta_min=0.5, sigma=2.0, n_arms=3)  # L = sqrt 2
    demands = theory.printed_p(some, C=0.5).demands
    assert demands["noise"] == pytest.approx(128 * 3 * 2 / (0.5 * 0.25) ** 2)
    assert demands["contexts"] == pytest.approx(16 * 3 / (0.5 * 0.25**2))
    assert demands["counts"] == 32 * 3


def test_primes_cut_at_one() -> None:
    """A gap above 1 and noise below 1 count as 1, as the theorem has it; sigma_min is at most 1 anyway."""
    easy, cut = problem(delta_min=1.5, sigma=0.1), problem(delta_min=1.0, sigma=math.sqrt(2.0))
    assert theory.printed_p(easy).p == theory.printed_p(cut).p


@pytest.mark.parametrize(
    ("some", "binding"),
    [
        (problem(sigma=5.0), "noise"),
        (problem(sigma=0.01, delta_min=0.1), "bias"),
        (problem(sigma=0.01, delta_min=1.5), "contexts"),
    ],
)
def test_the_binding_demand_is_named(some: Problem, binding: str) -> None:
    condition = theory.repaired_p(some, ridge="1/n")
    assert condition.binding == binding
    assert condition.p == condition.demands[binding]


def test_a_small_constant_of_lemma_1_makes_the_contexts_bind() -> None:
    condition = theory.printed_p(problem(), C=0.01)
    assert condition.binding == "contexts"
    assert condition.p == condition.demands["contexts"]


@given(some=problems, by=st.floats(0.02, 50.0))
def test_printed_p_knows_no_unit_of_reward_once_Q_is_above_one(some: Problem, by: float) -> None:
    other = some.divided(by)
    if min(some.constants.Q, other.constants.Q) >= 1:
        assert theory.printed_p(other).p == pytest.approx(theory.printed_p(some).p, rel=1e-9)


@given(some=problems, by=st.floats(0.02, 50.0))
def test_repaired_p_knows_no_unit_of_reward(some: Problem, by: float) -> None:
    assert theory.repaired_p(some.divided(by)).p == pytest.approx(theory.repaired_p(some).p, rel=1e-9)


@given(some=problems)
def test_where_contexts_are_short_the_bias_of_the_papers_ridge_asks_for_more_than_they_do(some: Problem) -> None:
    """Delta_min <= 2 Q and Sigma_min <= 1, so 128 Q^2 / (Delta Sigma)^2 >= 32 / Sigma."""
    demands = theory.repaired_p(some).demands
    assert demands["bias"] >= demands["contexts"] * (1 - 1e-12)


@given(some=problems)
def test_the_form_of_equation_4_survives_with_C_of_512(some: Problem) -> None:
    """For |x| <= 1 and Q <= 1: 512 L'^2 / (Delta' Sigma')^2 covers each demand of the repaired theorem."""
    unit = some.divided(max(1.0, some.constants.Q))
    least = theory.theorem_p(unit.constants, n_arms=unit.n_arms, C=512)
    assert least >= theory.repaired_p(unit).p * (1 - 1e-12)


def test_printed_and_repaired_p_agree_on_figure_a() -> None:
    """There L < Q, so L' = 1 after division: 128 K / (Delta/Q Sigma)^2 is the demand of the ridge's bias too."""
    table = FigureA.draw(np.random.default_rng(5)).table()
    assert table is not None
    required = theory.required_p(table)
    assert required.printed is not None
    assert required.repaired is not None
    assert required.repaired.binding == "bias"
    assert required.repaired.p == pytest.approx(required.printed.p, rel=1e-9)
    assert required.printed.p > 10**5  # more than the horizon of the figure


def test_whole_p_is_a_multiple_of_the_arms_that_is_just_enough() -> None:
    condition = theory.repaired_p(problem(n_arms=7, delta_min=0.3))
    assert condition.whole % 7 == 0
    assert condition.p <= condition.whole < condition.p + 7


def test_the_ridge_of_1_over_n_needs_less_p_for_its_bias() -> None:
    paper, fast = (theory.repaired_p(problem(delta_min=0.01), ridge=ridge) for ridge in ("paper", "1/n"))
    assert fast.demands["bias"] == pytest.approx(16 * 2 * 1 / (0.01 * 0.5))
    assert {**fast.demands, "bias": 0.0} == {**paper.demands, "bias": 0.0}
    assert fast.demands["bias"] < paper.demands["bias"]


# ---- bounds


def test_the_printed_bound_has_the_printed_terms() -> None:
    some, T = problem(Q=1.0), 10**6
    bound = theory.printed_bound(some, p=2000, horizon=T)
    unit = some.constants.delta_max * math.sqrt(2)
    assert bound.warm_up == pytest.approx(2000 * unit)
    assert bound.exploring == pytest.approx(2000 * unit * math.log(T))
    assert bound.mistakes == pytest.approx(14 * 2 * unit * math.exp(1 / 4))
    assert bound.total == bound.warm_up + bound.exploring + bound.mistakes


def test_dividing_by_Q_changes_only_the_exponential_of_Q() -> None:
    some = problem(Q=8.0, sigma=8.0)
    p = theory.printed_p(some).p
    divided = theory.printed_bound(some, p=p, horizon=1000)
    literal = theory.theorem_bound(some, p=p, horizon=1000, C=1)
    assert divided.exploring == literal.exploring
    assert literal.mistakes / divided.mistakes == pytest.approx(math.exp((8 - 1) / 4))


def test_a_longer_horizon_costs_p_times_its_logarithm() -> None:
    some = problem()
    p = theory.repaired_p(some).whole
    near, far = (theory.repaired_bound(some, p=p, horizon=T) for T in (10**5, 10**7))
    assert (near.warm_up, near.mistakes) == (far.warm_up, far.mistakes)
    assert far.exploring - near.exploring == pytest.approx(p * some.constants.delta_max * math.log(100))


def test_within_the_warm_up_the_repaired_bound_is_the_steps_taken() -> None:
    some = problem()
    p = theory.repaired_p(some).whole
    assert theory.repaired_bound(some, p=p, horizon=10).total == pytest.approx(10 * some.constants.delta_max)


@given(some=problems)
def test_at_its_p_the_repaired_mistakes_are_within_the_short_formula(some: Problem) -> None:
    """All exponents are at least 2 there, those of the counts 4: K p ((r + 1) e^-2 + e^-4 / 3) Delta_max."""
    p = theory.repaired_p(some).whole
    bound = theory.repaired_bound(some, p=p, horizon=100 * p)
    K, unit = some.n_arms, some.constants.delta_max
    short = unit * K * p * ((some.rank + 1) * math.exp(-2) + math.exp(-4) / 3)
    assert bound.mistakes <= short * (1 + 1e-9)


# ---- no number where an assumption fails


def test_too_small_a_p_is_refused_with_the_p_that_is_needed() -> None:
    some = problem()
    for condition, bound in (
        (theory.printed_p(some), theory.printed_bound),
        (theory.repaired_p(some), theory.repaired_bound),
    ):
        with pytest.raises(AssumptionError, match="noise") as caught:
            bound(some, p=condition.p - 2, horizon=10**5)
        assert (caught.value.assumption, caught.value.needed) == ("p", condition.p)
        assert isinstance(caught.value, ValueError)
        assert isinstance(caught.value, ArmletError)
        assert bound(some, p=condition.whole, horizon=10**5).total > 0


def test_the_error_names_only_the_conditions_that_fail() -> None:
    some = problem()  # noise 1024, contexts 299, counts 64
    with pytest.raises(AssumptionError) as caught:
        theory.printed_bound(some, p=500, horizon=10**5)
    assert "noise" in str(caught.value)
    assert "contexts" not in str(caught.value)


@pytest.mark.parametrize("p", [math.nan, -1.0, 0.0])
def test_a_p_that_is_no_number_of_steps_is_refused(p: float) -> None:
    for bound in (theory.printed_bound, theory.repaired_bound):
        with pytest.raises(AssumptionError):
            bound(problem(), p=p, horizon=10**5)


def test_p_that_serves_arms_unevenly_is_refused_by_the_repaired_bound() -> None:
    some = problem(n_arms=3)
    p = theory.repaired_p(some).whole + 1
    with pytest.raises(AssumptionError, match="all 3 arms alike") as caught:
        theory.repaired_bound(some, p=p, horizon=10**5)
    assert caught.value.needed == p + 2


def test_long_contexts_are_refused_by_the_printed_theorem_and_priced_by_the_repaired_one() -> None:
    long, short = problem(radius=2.0), problem(radius=1.0)
    for call in (theory.printed_p, lambda each: theory.printed_bound(each, p=10**9, horizon=10**10)):
        with pytest.raises(AssumptionError, match="length 2") as caught:
            call(long)
        assert caught.value.assumption == "contexts"
    with pytest.raises(AssumptionError, match="length 2"):
        theory.theorem_bound(long, p=10**9, horizon=10**10, C=128)
    assert theory.repaired_p(long).p == pytest.approx(4 * theory.repaired_p(short).p)


def test_contexts_scaled_to_length_one_up_to_rounding_are_accepted() -> None:
    assert theory.printed_p(problem(radius=1 + 1e-15)).p > 0


def test_without_a_gap_there_are_no_constants() -> None:
    with pytest.raises(AssumptionError, match="delta_min does not exist") as caught:
        theory.problem_constants(np.eye(2), np.ones((3, 2)), sigma=1.0)
    assert caught.value.assumption == "gap"
    with pytest.raises(AssumptionError, match="delta_min is 0"):
        problem(delta_min=0.0)
    with pytest.raises(AssumptionError, match="delta_min is 0"):
        theory.theorem_p(Constants(sigma_min=1, delta_min=0, delta_max=0, Q=0, sigma=1), n_arms=2, C=128)


def test_contexts_that_are_all_zero_are_refused() -> None:
    with pytest.raises(AssumptionError, match="every context is zero") as caught:
        theory.problem_constants(np.zeros((2, 2)), np.eye(2), sigma=1.0)
    assert caught.value.assumption == "contexts"


def test_an_impossible_eigenvalue_is_refused() -> None:
    """The eigenvalues of E xx' sum to E |x|^2 <= 1, so two of them cannot both be 0.6."""
    with pytest.raises(AssumptionError, match="radius\\^2 / rank"):
        problem(sigma_min=0.6)


def test_a_gap_that_no_arms_could_have_is_refused() -> None:
    with pytest.raises(ValueError, match="no arm can lose more"):
        problem(delta_min=1.6, Q=1.0)


@pytest.mark.parametrize("horizon", [0, -5, math.inf, math.nan])
def test_a_horizon_without_steps_is_refused(horizon: float) -> None:
    for bound in (theory.printed_bound, theory.repaired_bound):
        with pytest.raises(ValueError, match="horizon"):
            bound(problem(), p=10**6, horizon=horizon)


def test_a_constant_of_lemma_1_that_is_not_below_one_is_refused() -> None:
    for C in (1.0, 0.0, -1.0):
        with pytest.raises(ValueError, match="Lemma 1"):
            theory.printed_p(problem(), C=C)
    assert LEMMA_1 < 1


# ---- what an advisor asks


def test_asking_a_table_gives_the_p_of_its_problem() -> None:
    even, scale = np.full(2, 0.5), math.sqrt(2.0)
    table = FiniteEnvironment(contexts=np.eye(2), chances=even, means=np.eye(2), noise="gaussian", scale=scale)
    required = theory.required_p(table)
    assert required.reasons == ()
    assert required.problem == Problem.of(table, np.eye(2), sigma=noise_sigma(table))
    assert required.printed is not None
    assert required.printed.p == pytest.approx(1024)


def test_theta_is_read_off_the_table_within_the_span_of_its_contexts() -> None:
    X, theta = np.array([[0.6, 0.0, 0.8], [0.0, 1.0, 0.0]]), np.array([[1.0, 2.0, 3.0], [0.0, 1.0, 5.0]])
    table = FiniteEnvironment(contexts=X, chances=np.full(2, 0.5), means=X @ theta.T)
    required = theory.required_p(table)
    assert required.problem is not None
    projector = X.T @ X  # its rows are orthonormal
    longest = np.linalg.norm(theta @ projector, axis=1).max()
    assert pytest.approx(longest) == required.problem.constants.Q
    assert longest < np.linalg.norm(theta, axis=1).max()


def test_asking_tells_why_there_is_no_p() -> None:
    even = np.full(3, 1 / 3)
    X = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    bent = theory.required_p(FiniteEnvironment(contexts=X, chances=even, means=np.array([[1.0, 0], [0, 1], [9, 9]])))
    assert bent.repaired is None
    assert "not linear" in bent.reasons[0]
    long = theory.required_p(FiniteEnvironment(contexts=2 * X, chances=even, means=2 * X))
    assert long.printed is None
    assert long.repaired is not None
    assert "|x| <= 1" in long.reasons[0]


def test_problems_keep_their_size_when_rewards_are_divided() -> None:
    some = replace(problem(), rank=1)
    assert replace(some.divided(3.0), constants=some.constants) == some


@pytest.mark.parametrize(
    ("contexts", "means", "plainly"),
    [
        (
            2 * np.eye(2),
            np.eye(2),
            "the longest context has length 2 but the printed theorem needs contexts no longer than 1",
        ),
        (np.eye(2), np.ones((2, 2)), f"{MEANINGS['delta_min']} does not exist: every arm is best in every context"),
        (np.zeros((2, 2)), np.zeros((2, 2)), f"{MEANINGS['sigma_min']} does not exist: every context is zero"),
        (np.ones((2, 1)), np.eye(2), "expected rewards are not linear in the context: x'theta misses one by 0.5"),
    ],
)
def test_a_failed_assumption_is_told_plainly_too(contexts: Float64, means: Float64, plainly: str) -> None:
    table = FiniteEnvironment(contexts=contexts, chances=np.full(2, 0.5), means=means, noise="gaussian", scale=1.0)
    required = theory.required_p(table)
    assert required.printed is None
    assert required.plainly == (plainly,)


def test_contexts_and_theta_of_other_sizes_are_refused() -> None:
    with pytest.raises(ArmletError, match=r"shapes \(2, 2\) and \(1, 3\); give \(M, d\) and \(K, d\)"):
        theory.problem_constants(np.eye(2), np.array([[3.0, 0.0, 1.0]]), sigma=1.0)
