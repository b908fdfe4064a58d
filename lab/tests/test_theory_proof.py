"""The repaired theorem, step by step as docs/explanation/theory.md derives it, and its bound against simulations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from armlet import theory
from armlet.environments.environment import FiniteEnvironment
from armlet.inputs.settings import RidgeName
from armlet.parallel import Seeds
from armlet.policies import Algorithm1
from armlet.simulation.play import play_table, table_seeds
from armlet.theory import theorem
from armlet.types import Float64
from armlet_lab.paper import proof, theorem_2

SEEDS = st.integers(0, 2**32 - 1)


def unit_rows(rng: np.random.Generator, n: int, dim: int) -> Float64:
    X = rng.normal(size=(n, dim)) * rng.uniform(0.05, 1.0, size=dim)
    return np.asarray(X / np.linalg.norm(X, axis=1, keepdims=True))


# ---- step 1: what a step can cost, and how many steps are explored


@given(seed=SEEDS)
def test_no_step_costs_more_than_delta_max_times_the_length_of_its_context(seed: int) -> None:
    rng = np.random.default_rng(seed)
    theta, x = rng.normal(size=(4, 3)), rng.normal(size=3)
    widest = np.linalg.norm(theta[:, None] - theta[None], axis=2).max()
    assert np.ptp(theta @ x) <= np.linalg.norm(x) * widest * (1 + 1e-12)


@given(p=st.integers(1, 5_000), more=st.integers(1, 5_000))
def test_explored_steps_after_the_warm_up_number_at_most_p_log_T_over_p(p: int, more: int) -> None:
    T = p + more
    explored = float((p / np.arange(p + 1, T + 1)).sum())
    assert explored <= p * math.log(T / p) <= explored + 1  # each term of the sum is within the integral's


# ---- step 2: a mistake needs one of K one-sided errors of half a gap


@given(seed=SEEDS, rounded=st.integers(0, 2))
def test_a_mistake_means_that_one_arm_is_off_by_half_the_gap_in_the_wrong_direction(seed: int, rounded: int) -> None:
    """Rounded to few digits, arms tie for best and estimates tie too."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=5).round(rounded)
    guesses = (means + rng.normal(size=5)).round(rounded)
    losses = means.max() - means
    assume((losses > 0).any())
    half, best = losses[losses > 0].min() / 2, int(means.argmax())
    chosen = np.flatnonzero(guesses == guesses.max())
    if (losses[chosen] > 0).any():  # ties may fall on a wrong arm
        too_high = (guesses - means)[losses > 0] >= half - 1e-12
        assert too_high.any() or guesses[best] - means[best] <= -half + 1e-12


def test_an_arm_that_ties_for_best_is_estimated_above_the_other_half_of_the_time() -> None:
    """So the printed union over all arms does not converge: ties must be left out of it, and cost nothing."""
    rng, n, runs = np.random.default_rng(6), 10_000, 2_000
    above = np.mean(rng.normal(size=runs) / math.sqrt(n) > rng.normal(size=runs) / math.sqrt(n))
    assert abs(above - 0.5) < 5 * 0.5 / math.sqrt(runs)


# ---- step 3: how many rows an arm has


@pytest.mark.parametrize(("p", "n_arms"), [(4, 2), (32, 2), (60, 6), (120, 3), (300, 6)])
def test_half_the_mean_count_is_reached_as_surely_as_the_repaired_lemma_says(p: int, n_arms: int) -> None:
    steps = [t for t in (p + 1, 2 * p, 3 * p, 5 * p, 10 * p, 40 * p) if t > p]
    promised = [proof.lemma2_repaired(p=p, n_arms=n_arms, t=t) for t in steps]
    exact = proof.count_chances(p=p, n_arms=n_arms, steps=steps, rows=[count.rows for count in promised])
    assert (exact <= [count.chance for count in promised]).all()


def test_up_to_e_times_p_the_warm_up_alone_is_enough() -> None:
    t = int(math.e * 300)
    rows = proof.lemma2_repaired(p=300, n_arms=6, t=t).rows
    assert proof.count_chances(p=300, n_arms=6, steps=[t], rows=[rows]) == [0.0]


@given(p=st.integers(3, 10**6), ratio=st.floats(math.e, 1e9))
def test_the_chernoff_exponent_of_the_count_is_at_least_a_quarter_of_n_c(p: int, ratio: float) -> None:
    """In units of p/K, with l = log(t/p): coins of mean at least l - 1/p must not sum to less than (l - 1)/2."""
    log = math.log(ratio)
    mean, least = log - 1 / p, (log - 1) / 2
    exponent = mean * (1 - least / mean) ** 2 / 2
    assert exponent >= (1 + log) / 8 * (1 - 1e-12)


def test_counts_follow_the_law_that_is_computed() -> None:
    """Simulated coins; five standard errors of a share over 20,000 runs."""
    rng, p, K, t = np.random.default_rng(3), 12, 3, 60
    counts = p // K + (rng.random((20_000, t - 1 - p)) < p / (K * np.arange(p + 1, t))).sum(axis=1)
    (exact,) = proof.count_chances(p=p, n_arms=K, steps=[t], rows=[10])
    assert 0.2 < exact < 0.8
    assert abs(np.mean(counts < 10) - exact) < 5 * 0.5 / math.sqrt(20_000)


# ---- step 4: how well the contexts of an arm cover their span


def poorly_observed(rng: np.random.Generator, X: Float64, sigma_min: float, rank: int, n: int, runs: int) -> float:
    draws = X[rng.integers(len(X), size=(runs, n))]
    moments = np.einsum("rnd,rne->rde", draws, draws) / n
    return float(np.mean(np.linalg.eigvalsh(moments)[:, -rank] < sigma_min / 2))


@pytest.mark.parametrize("n", [20, 50, 100])
@pytest.mark.parametrize(
    "X",
    [
        np.eye(3),
        np.array([[1.0, 0, 0], [1, 0, 0], [1, 0, 0], [0, 1, 0]]),  # rank 2 of 3
        np.array([[0.6, 0.8], [0.8, 0.6], [0.0, 0.0]]),
        2 * np.eye(2),
    ],
    ids=["unit vectors", "rank 2", "close together", "long"],
)
def test_contexts_cover_their_span_as_surely_as_matrix_chernoff_says(X: Float64, n: int) -> None:
    """2,000 draws: five standard errors of a share above the bound."""
    some = theory.finite_problem(X, np.arange(3.0)[:, None] * np.eye(3, X.shape[1]), sigma=1.0)
    sigma_min, rank = some.constants.sigma_min, some.rank
    share = poorly_observed(np.random.default_rng(n), X, sigma_min, rank, n, 2_000)
    bound = proof.eigenvalue_chance(n=n, sigma_min=sigma_min, rank=rank, radius=some.radius)
    assert share <= bound + 5 * 0.5 / math.sqrt(2_000)


def test_the_factor_r_in_front_is_needed() -> None:
    """Fifty unit vectors, 400 draws: some vector has less than half its share more often than e^(-n Sigma / 8)."""
    share = poorly_observed(np.random.default_rng(1), np.eye(50), 1 / 50, 50, 400, 200)
    assert share > 2 * math.exp(-400 / 50 / 8)
    assert share <= proof.eigenvalue_chance(n=400, sigma_min=1 / 50, rank=50)


def test_the_exponent_of_one_eighth_is_below_that_of_matrix_chernoff() -> None:
    assert -math.log(math.exp(-0.5) / math.sqrt(0.5)) >= 1 / 8


# ---- step 5: noise and bias of the estimate where contexts are well observed


def design(rng: np.random.Generator, n: int, dim: int) -> tuple[Float64, Float64, float]:
    """Return M = I / sqrt n + Sigma_hat, Sigma_hat, and the largest Sigma_min for which they are well observed."""
    X = unit_rows(rng, n, dim)
    moment = X.T @ X / n
    return np.eye(dim) / math.sqrt(n) + moment, moment, 2 * float(np.linalg.eigvalsh(moment)[0])


@given(seed=SEEDS, n=st.integers(5, 400), dim=st.integers(1, 5))
def test_the_noise_of_an_estimate_is_at_most_2_over_n_sigma_min(seed: int, n: int, dim: int) -> None:
    rng = np.random.default_rng(seed)
    M, moment, sigma_min = design(rng, n, dim)
    pulled = np.linalg.solve(M, unit_rows(rng, 1, dim)[0])
    assert pulled @ moment @ pulled <= 2 / sigma_min


def test_that_constant_is_nearly_reached() -> None:
    """A direction seen half as often as it should be, so often that the ridge is gone: a tenth is allowed for it."""
    n, sigma_min = 10**6, 0.02
    moment = np.diag([1 - sigma_min / 2, sigma_min / 2])
    pulled = np.linalg.solve(np.eye(2) / math.sqrt(n) + moment, np.array([0.0, 1.0]))
    assert 0.8 * 2 / sigma_min < pulled @ moment @ pulled <= 2 / sigma_min


@given(seed=SEEDS, n=st.integers(5, 400), dim=st.integers(1, 5))
def test_the_bias_of_an_estimate_is_at_most_2_Q_over_sqrt_n_sigma_min(seed: int, n: int, dim: int) -> None:
    rng = np.random.default_rng(seed)
    M, _, sigma_min = design(rng, n, dim)
    theta, x = rng.normal(size=dim), unit_rows(rng, 1, dim)[0]
    bias = abs(x @ np.linalg.solve(M, theta)) / math.sqrt(n)
    assert bias <= 2 * np.linalg.norm(theta) / (math.sqrt(n) * sigma_min)


@given(seed=SEEDS, n=st.integers(50, 2_000), sigma=st.floats(0.05, 5.0), delta=st.floats(0.05, 2.0))
def test_an_estimate_is_off_by_half_a_gap_as_rarely_as_claimed(seed: int, n: int, sigma: float, delta: float) -> None:
    """Gaussian noise, so the chance is exact. theta is as long as the demand on the bias allows for this n."""
    rng = np.random.default_rng(seed)
    M, moment, sigma_min = design(rng, n, 3)
    x = unit_rows(rng, 1, 3)[0]
    pulled = np.linalg.solve(M, x)
    Q = math.sqrt(n) * delta * sigma_min / 8  # n = 64 Q^2 / (Delta Sigma)^2
    bias = Q * float(np.linalg.norm(pulled)) / math.sqrt(n)  # of the worst theta of that length
    spread = sigma * math.sqrt(float(pulled @ moment @ pulled) / n)
    chance = math.erfc((delta / 2 - bias) / spread / math.sqrt(2)) / 2
    assert bias <= delta / 4 * (1 + 1e-12)
    assert chance <= math.exp(-n * delta**2 * sigma_min / (64 * sigma**2))


@given(a=st.floats(0.0, 10.0), b=st.floats(0.01, 10.0), n=st.integers(1, 10**6))
def test_a_cross_term_of_sqrt_n_costs_half_the_exponent(a: float, b: float, n: int) -> None:
    assert a * math.sqrt(n) - b * n <= a * a / (2 * b) - b * n / 2 + 1e-9 * (1 + b * n)


def test_for_the_printed_proof_that_means_a_factor_of_e_to_the_Q_squared_over_L_squared() -> None:
    Q, L, delta, sigma_min = 0.7, 0.4, 0.3, 0.2
    a, b = Q * delta * sigma_min / (4 * L**2), (delta * sigma_min) ** 2 / (32 * L**2)
    assert a * a / (2 * b) == pytest.approx(Q**2 / L**2)


# ---- step 6: adding up


@pytest.mark.parametrize("alpha", [1.5, 2.0, 4.0, 20.0])
@pytest.mark.parametrize("p", [2, 30, 1_000])
def test_chances_of_mistakes_add_up_to_the_stated_multiple_of_p(p: int, alpha: float) -> None:
    t = np.arange(p + 1, 2_000_000, dtype=np.float64)
    assert float(((math.e * t / p) ** -alpha).sum()) <= p * theorem.tail_sum(alpha)


def test_that_sum_is_nearly_reached_at_alpha_2() -> None:
    t = np.arange(1_001, 5_000_000, dtype=np.float64)
    total = float(((math.e * t / 1_000) ** -2).sum())
    assert 0.99 * math.exp(-2) * 1_000 < total <= math.exp(-2) * 1_000


@pytest.mark.parametrize("radius", [1.0, 3.0])
def test_exponents_are_those_of_the_steps_before(radius: float) -> None:
    """At t = p, where e t / p is e and n_c = p / 2K; noise as in step 5, for contexts B times as long."""
    p, sigma = 600, 0.7
    some = theory.finite_problem(radius * np.eye(2), np.eye(2), sigma=sigma)
    c, n_c = some.constants, p // (2 * some.n_arms)
    chances = {name: m * math.exp(-alpha) for name, (m, alpha) in theorem.exponents(some, p).items()}
    contexts = proof.eigenvalue_chance(n=n_c, sigma_min=c.sigma_min, rank=2, radius=radius)
    noise = math.exp(-n_c * c.delta_min**2 * c.sigma_min / (64 * (sigma * radius) ** 2))
    assert chances["counts"] == pytest.approx(proof.lemma2_repaired(p=p, n_arms=2, t=p).chance, rel=1e-9, abs=0.0)
    assert chances["contexts"] == pytest.approx(contexts, rel=1e-9, abs=0.0)
    assert chances["noise"] == pytest.approx(noise, rel=1e-9, abs=0.0)


@pytest.mark.parametrize("radius", [1.0, 3.0])
def test_each_demand_is_the_p_at_which_its_exponent_is_2_or_its_bias_a_quarter_of_the_gap(radius: float) -> None:
    some = theory.finite_problem(radius * np.eye(2), 0.3 * np.eye(2), sigma=0.7)
    c, demands = some.constants, theory.repaired_p(some).demands
    for name in ("contexts", "noise"):
        assert theorem.exponents(some, demands[name])[name][1] == pytest.approx(2.0)
    n_c = demands["bias"] / (2 * some.n_arms)
    assert 2 * radius * c.Q / (math.sqrt(n_c) * c.sigma_min) == pytest.approx(c.delta_min / 4)
    n_c = theory.repaired_p(some, ridge="1/n").demands["bias"] / (2 * some.n_arms)
    assert 2 * radius * c.Q / (n_c * c.sigma_min) == pytest.approx(c.delta_min / 4)


def test_at_the_repaired_p_each_exponent_is_at_least_2() -> None:
    for constants in ({"sigma": 3.0}, {"sigma": 0.01}, {"sigma": 0.01, "scale": 0.01}):
        theta = constants.get("scale", 1.0) * np.array([[1.0, 0.0], [0.0, 1.0]])
        some = theory.finite_problem(np.eye(2), theta, sigma=constants["sigma"])
        for alpha in (alpha for _, alpha in theorem.exponents(some, theory.repaired_p(some).whole).values()):
            assert alpha >= 2 - 1e-12


# ---- the whole: bound and simulated regret


def rank_two() -> FiniteEnvironment:
    """Contexts longer than 1 on a plane of R^3; the first two arms tie for best in the second of them."""
    X = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.2]])
    theta = np.array([[1.0, 1.0, 1.0], [-1.0, -1.0, 1.0], [0.0, 0.0, -1.0]])
    return FiniteEnvironment(contexts=X, chances=np.array([0.5, 0.5]), means=X @ theta.T, noise="gaussian", scale=1.0)


TABLES = {
    "one context": theorem_2.one_context().table,
    "two contexts": theorem_2.two_contexts().table,
    "rank two, long contexts, a tie": rank_two(),
}
STEPS = np.array([10**4, 10**5, 10**6, 10**7])


def mean_regret(table: FiniteEnvironment, p: float, ridge: RidgeName, runs: int) -> Float64:
    policy = Algorithm1(p=p, ridge=ridge)
    pairs = [table_seeds(Seeds(20), 0, run) for run in range(runs)]
    return np.asarray(np.mean([play_table(table, policy, STEPS, pair, jumps=True).regret for pair in pairs], axis=0))


@pytest.mark.parametrize("ridge", ["paper", "1/n"])
@pytest.mark.parametrize("name", TABLES)
def test_regret_stays_below_the_repaired_bound(name: str, ridge: RidgeName) -> None:
    some = theory.required_p(TABLES[name]).problem
    assert some is not None
    p = theory.repaired_p(some, ridge=ridge).whole
    assert p < STEPS[0]
    regret = mean_regret(TABLES[name], p, ridge, 5)
    bounds = [theory.repaired_bound(some, p=p, horizon=int(T), ridge=ridge).total for T in STEPS]
    assert (regret < bounds).all()
    assert (regret > np.array(bounds) / 50).all()  # same order: the comparison is about something


@pytest.mark.parametrize("name", ["one context", "two contexts"])
def test_regret_stays_below_the_printed_bound(name: str) -> None:
    required = theory.required_p(TABLES[name])
    assert required.problem is not None
    assert required.printed is not None
    p = required.printed.whole
    regret = mean_regret(TABLES[name], p, "paper", 5)
    assert (regret < [theory.printed_bound(required.problem, p=p, horizon=int(T)).total for T in STEPS]).all()


def test_a_constant_of_one_would_be_refuted() -> None:
    """The comparison can fail: were C = 1 enough for Theorem 2, p = 2 would do in the first one, and it does not."""
    some = theory.required_p(TABLES["one context"]).problem
    assert some is not None
    regret = mean_regret(TABLES["one context"], 2.0, "paper", 40)
    assert regret[-1] > theory.theorem_bound(some, p=2.0, horizon=int(STEPS[-1]), C=0.999).total
