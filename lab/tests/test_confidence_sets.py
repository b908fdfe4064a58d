"""Policies that play the most hopeful parameter of a set: ConfidenceBall2, ConfidenceBall1, UncertaintyEllipsoid."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.linalg import sqrtm

from armlet import Bandit
from armlet.environments import FigureA
from armlet.inputs.settings import Ridge
from armlet.kernel import coins
from armlet.policies import Uniform
from armlet.policies.base import sums
from armlet.simulation.run import simulate
from armlet.types import Float64, Policy
from armlet_lab.literature.confidence_ball import ConfidenceBall1, ConfidenceBall2, theory_beta
from armlet_lab.literature.derived import Derived
from armlet_lab.literature.uncertainty_ellipsoid import UncertaintyEllipsoid, theory_alpha
from support.contract import check_settings

N_ARMS, DIM = 4, 3
CONTRACT = [
    ConfidenceBall2(),
    ConfidenceBall2(beta_scale=1e-4, delta=0.1, ridge=0.5),
    ConfidenceBall1(beta_scale=1e-4),
    UncertaintyEllipsoid(),
    UncertaintyEllipsoid(alpha=0.1, n_contexts=27, patience=2),
]


@pytest.mark.parametrize("policy", CONTRACT, ids=repr)
def test_policy_keeps_its_promises(policy: Policy) -> None:
    check_settings(policy, n_arms=N_ARMS, dim=DIM)


class Lifted:
    """The paper's problem: one parameter of D = K d values, arm a in context x as the vector with x in block a."""

    def __init__(self, rows: int, *, spread: float = 1.0) -> None:
        rng = np.random.default_rng(4)
        self.X, self.arms = spread * rng.normal(size=(rows, DIM)), rng.integers(N_ARMS, size=rows)
        self.rewards = rng.normal(size=rows)
        self.x = rng.normal(size=DIM)

    def vector(self, x: Float64, arm: int) -> Float64:
        phi = np.zeros(N_ARMS * DIM)
        phi[arm * DIM : (arm + 1) * DIM] = x
        return phi

    @property
    def decisions(self) -> list[Float64]:
        return [self.vector(self.x, arm) for arm in range(N_ARMS)]

    @property
    def design(self) -> Float64:
        return np.array([self.vector(x, arm) for x, arm in zip(self.X, self.arms, strict=True)])

    def fill(self, state: Derived) -> Derived:
        for x, arm, reward in zip(self.X, self.arms, self.rewards, strict=True):
            state.add(int(arm), x, float(reward))
        return state


def paper_beta(t: int, size: int, delta: float) -> float:
    return float(max(128 * size * np.log(t) * np.log(t**2 / delta), (8 / 3 * np.log(t**2 / delta)) ** 2))


def test_confidence_ball_2_is_the_ellipsoid_of_the_lifted_problem() -> None:
    problem, policy, t = Lifted(40), ConfidenceBall2(delta=0.1), 41
    A = np.eye(N_ARMS * DIM) + problem.design.T @ problem.design
    centre = np.linalg.solve(A, problem.design.T @ problem.rewards)
    beta = paper_beta(t, N_ARMS * DIM, 0.1)
    expected = [phi @ centre + math.sqrt(beta * phi @ np.linalg.solve(A, phi)) for phi in problem.decisions]
    found = policy.upper_bounds(problem.fill(policy.init(N_ARMS, DIM)), t, problem.x)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_confidence_ball_2_bounds_every_parameter_in_the_set_and_is_reached() -> None:
    problem, policy, t = Lifted(40), ConfidenceBall2(beta_scale=0.01), 41
    A = np.eye(N_ARMS * DIM) + problem.design.T @ problem.design
    centre = np.linalg.solve(A, problem.design.T @ problem.rewards)
    radius = math.sqrt(0.01 * paper_beta(t, N_ARMS * DIM, 0.05))
    bounds = policy.upper_bounds(problem.fill(policy.init(N_ARMS, DIM)), t, problem.x)
    directions = np.random.default_rng(1).normal(size=(500, N_ARMS * DIM))
    for phi, bound in zip(problem.decisions, bounds, strict=True):
        offsets = directions / np.sqrt(np.einsum("ni,ij,nj->n", directions, A, directions))[:, None]
        assert ((centre + radius * offsets) @ phi <= bound + 1e-9).all()
        best = np.linalg.solve(A, phi)  # the direction in which the ellipsoid reaches furthest along phi
        assert phi @ (centre + radius * best / math.sqrt(best @ A @ best)) == pytest.approx(bound)


def test_confidence_ball_1_is_the_best_corner_of_the_cross_polytope() -> None:
    problem, policy, t = Lifted(40), ConfidenceBall1(delta=0.1), 41
    size = N_ARMS * DIM
    A = np.eye(size) + problem.design.T @ problem.design
    centre = np.linalg.solve(A, problem.design.T @ problem.rewards)
    steps = math.sqrt(size * paper_beta(t, size, 0.1)) * np.linalg.inv(np.real(sqrtm(A)))
    corners = [centre + sign * steps[:, i] for i in range(size) for sign in (-1, 1)]
    expected = [max(float(phi @ corner) for corner in corners) for phi in problem.decisions]
    found = policy.upper_bounds(problem.fill(policy.init(N_ARMS, DIM)), t, problem.x)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_the_cross_polytope_holds_the_ellipsoid() -> None:
    problem = Lifted(60)
    ball, polytope = ConfidenceBall2(beta_scale=0.01), ConfidenceBall1(beta_scale=0.01)
    inner = ball.upper_bounds(problem.fill(ball.init(N_ARMS, DIM)), 61, problem.x)
    outer = polytope.upper_bounds(problem.fill(polytope.init(N_ARMS, DIM)), 61, problem.x)
    assert (outer >= inner).all()


@pytest.mark.parametrize("t", [1, 2, 10, 10**5])
def test_beta_is_the_papers(t: int) -> None:
    assert theory_beta(t, 18, 0.05) == pytest.approx(paper_beta(t, 18, 0.05))


def test_beta_is_positive_at_the_first_step_where_log_t_is_0() -> None:
    assert theory_beta(1, 18, 0.05) == pytest.approx((8 / 3 * math.log(20)) ** 2)


def test_uncertainty_ellipsoid_is_least_squares_on_the_lifted_problem() -> None:
    problem, t = Lifted(60), 61
    policy = UncertaintyEllipsoid(noise_scale=0.5, length=2.0, lambda0=0.3, n_contexts=8)
    theta = np.linalg.lstsq(problem.design, problem.rewards)[0]
    C = np.linalg.inv(problem.design.T @ problem.design)
    kappa = 2 * math.sqrt(1 + math.log(1 + 36 * 2.0**2 / 0.3))
    r, decisions = N_ARMS * DIM, N_ARMS * 8
    radius = 4 * 0.5 * kappa**2 * math.sqrt(math.log(t)) * math.sqrt(min(r * math.log(t), decisions))
    expected = [phi @ theta + radius * math.sqrt(phi @ C @ phi) for phi in problem.decisions]
    state = problem.fill(policy.init(N_ARMS, DIM))
    np.testing.assert_allclose(policy.upper_bounds(state, t, problem.x), expected, rtol=1e-9)
    np.testing.assert_allclose(policy.estimates(state).ravel(), theta, rtol=1e-9, atol=1e-12)


def test_uncertainty_ellipsoid_takes_the_smaller_of_the_two_dimensions() -> None:
    many, few = UncertaintyEllipsoid(alpha=1.0), UncertaintyEllipsoid(alpha=1.0, n_contexts=1)
    log = math.log(1000)
    assert many.radius(1000, 12, 4) == pytest.approx(math.sqrt(12) * log)
    assert few.radius(1000, 12, 4) == pytest.approx(math.sqrt(4 * log))


def test_uncertainty_ellipsoid_plays_by_turns_until_every_arm_has_independent_contexts() -> None:
    policy = UncertaintyEllipsoid(alpha=0.1)
    bandit, rng = Bandit(range(N_ARMS), DIM, policy=policy, seed=1), np.random.default_rng(2)
    played = []
    for _ in range(3 * N_ARMS * DIM):
        decision = bandit.decide(rng.normal(size=DIM))
        played.append((int(decision.arm), decision.explored))
        bandit.learn(decision, float(rng.normal()))
    turns = [(t % N_ARMS, True) for t in range(1, N_ARMS * DIM + 1)]  # gaussian contexts: d turns of each arm suffice
    assert played[: len(turns)] == turns
    assert not any(explored for _, explored in played[len(turns) :])


def test_uncertainty_ellipsoid_gives_up_on_contexts_that_never_span() -> None:
    policy = UncertaintyEllipsoid(alpha=0.1, patience=2)
    bandit, rng = Bandit(range(2), 3, policy=policy, seed=1), np.random.default_rng(2)
    explored = []
    for _ in range(60):
        x = np.append(rng.normal(size=2), 0.0)  # the third direction is never seen
        decision = bandit.decide(x)
        explored.append(decision.explored)
        bandit.learn(decision, float(x[0] * int(decision.arm)))
    assert explored == [True] * 12 + [False] * 48  # 2 K d = 12
    bounds = policy.upper_bounds(bandit.state, 61, np.array([1.0, 1.0, 0.0]))
    assert np.isfinite(bounds).all()
    np.testing.assert_allclose(policy.estimates(bandit.state), [[0, 0, 0], [1, 0, 0]], atol=1e-9)


def test_uncertainty_ellipsoid_plays_an_arm_in_a_direction_that_it_has_not_seen() -> None:
    policy, state = UncertaintyEllipsoid(alpha=0.1), UncertaintyEllipsoid().init(2, 2)
    for x in np.eye(2):
        state.add(0, x, 100.0)
    state.add(1, np.array([1.0, 0.0]), 0.0)
    late, both = 1000, np.array([True, True])
    assert policy.decide(state, late, np.array([1.0, 0.0]), coins(1, 1), both).arm == 0
    assert policy.decide(state, late, np.array([0.0, 1.0]), coins(1, 1), both).arm == 1
    assert policy.probabilities(state, late, np.zeros(2), both).tolist() == [0.5, 0.5]  # a zero context spans nothing


def test_what_is_derived_stays_that_of_the_sums() -> None:
    """Kept values are a function of A alone, after adding, taking back, merging, and arms that come and go."""
    rng, state = np.random.default_rng(5), ConfidenceBall2().init(N_ARMS, DIM)
    for _ in range(3000):
        state.add(int(rng.integers(N_ARMS)), rng.normal(size=DIM), 1.0)
        state.derived()
    x = rng.normal(size=DIM)
    state.add(0, x, 1.0)
    state.add(0, x, 1.0, -1.0)
    state.merge(state.copy(), list(range(N_ARMS)))
    state.remove_arm(1)
    state.add_arm()
    np.testing.assert_allclose(state.derived(), np.linalg.inv(state.A + np.eye(DIM)), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(state.derived(), state.copy().derived())


@pytest.mark.parametrize("policy", [ConfidenceBall2(), ConfidenceBall1(ridge=1e-40)], ids=repr)
def test_long_contexts_do_not_make_a_ball_singular(policy: ConfidenceBall2 | ConfidenceBall1) -> None:
    state, x = policy.init(2, 2), np.array([1e9, 1e9])  # 1e18 + 1 is 1e18
    state.add(0, x, 1.0)
    assert np.isfinite(policy.upper_bounds(state, 2, x)).all()


def test_derived_counts_what_it_keeps() -> None:
    state = Derived(N_ARMS, DIM, Ridge.parse(1.0), lambda A, _: A[:, 0])
    assert state.nbytes == sums(Ridge.parse(1.0), N_ARMS, DIM).nbytes + 8 * N_ARMS * (DIM + 1)


@pytest.mark.parametrize(
    ("policy", "settings", "message"),
    [
        (ConfidenceBall2, {"beta_scale": -1.0}, "beta_scale is -1.0; give 1 for the theory's widths"),
        (ConfidenceBall1, {"delta": 0.0}, "delta is 0.0; give a chance of failure between 0 and 1"),
        (ConfidenceBall2, {"ridge": 0.0}, "ridge is 0.0; give a positive number"),
        (ConfidenceBall2, {"ridge": True}, "ridge is True; give a positive number"),
        (UncertaintyEllipsoid, {"noise_scale": 0.0}, "noise_scale is 0.0; give a positive number"),
        (UncertaintyEllipsoid, {"alpha": float("nan")}, "alpha is nan; give a number from 0 to 1e\\+40"),
        (UncertaintyEllipsoid, {"n_contexts": 0}, "n_contexts is 0; give a whole number of at least 1, or None"),
        (UncertaintyEllipsoid, {"patience": 1.5}, "patience is 1.5; give a whole number of at least 1"),
    ],
)
def test_bad_settings_are_refused(policy: type, settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        policy(**settings)


@pytest.fixture(scope="module")
def uniform() -> float:
    return regret(Uniform())


def regret(policy: Policy) -> float:
    environment = FigureA.draw(np.random.default_rng(3))
    result = simulate(environment, policy, horizon=2000, runs=2, seed=1, method="python", engine="serial")
    return float(result.at(2000).mean())


@pytest.mark.parametrize("policy", [ConfidenceBall2(), ConfidenceBall1(), UncertaintyEllipsoid(n_contexts=8)], ids=repr)
def test_theory_widths_explore_for_ever(policy: Policy, uniform: float) -> None:
    """Widths of some hundreds against rewards of about 1: at T = 2000 the estimates have had no say yet."""
    assert regret(policy) > 0.9 * uniform


@pytest.mark.parametrize(
    "policy",
    [ConfidenceBall2(beta_scale=1e-4), ConfidenceBall1(beta_scale=1e-5), UncertaintyEllipsoid(alpha=0.1)],
    ids=repr,
)
def test_practical_widths_beat_uniform_play(policy: Policy, uniform: float) -> None:
    assert regret(policy) < 0.2 * uniform


def test_theory_alpha_is_the_papers() -> None:
    kappa = 2 * math.sqrt(1 + math.log(1 + 36 * 4.0 / 0.5))
    assert theory_alpha(0.7, 2.0, 0.5) == pytest.approx(4 * 0.7 * kappa**2)
