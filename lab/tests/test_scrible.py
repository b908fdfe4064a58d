"""SCRiBLe: its ellipsoid, its estimates by enumeration, and its leader against a general optimiser."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize

import armlet
from armlet.environments import FigureA
from armlet.errors import DecisionError
from armlet.policies.uniform import Uniform
from armlet.simulation.run import simulate
from armlet.types import Coins, Float64, Interaction, Policy
from armlet_lab.literature.scrible import Axes, SCRiBLe, axis, barrier_leader, end_losses, end_point
from support.contract import check_settings

AXES: tuple[Axes, ...] = ("eigenvectors", "reflection")
X = np.ones(2)


def points() -> list[Float64]:
    """Draw distributions, some of them close to the edge of the simplex."""
    rng = np.random.default_rng(0)
    return [rng.dirichlet(np.full(k, alpha)) + 1e-9 for k in (2, 3, 6) for alpha in (0.2, 1.0, 9.0) for _ in range(4)]


def distributions() -> list[Float64]:
    return [p / p.sum() for p in points()] + [np.full(4, 0.25)]


@pytest.mark.parametrize(
    "policy",
    [
        SCRiBLe(horizon=1000, axes="eigenvectors"),
        SCRiBLe(eta=0.1, contexts="table", axes="reflection", reward_range=(-1.0, 2.0)),
    ],
    ids=repr,
)
def test_policy_keeps_its_promises(policy: Policy) -> None:
    check_settings(policy, n_arms=4, dim=3)


@pytest.mark.parametrize("axes", AXES)
def test_half_axes_are_orthonormal_in_the_norm_of_the_hessian(axes: Axes) -> None:
    for p in distributions():
        halves = np.array([p * axis(p, i, axes) for i in range(len(p) - 1)])
        hessian = np.diag(1 / p**2)
        np.testing.assert_allclose(halves @ hessian @ halves.T, np.eye(len(p) - 1), atol=1e-6)
        np.testing.assert_allclose(halves.sum(axis=1), 0.0, atol=1e-8)


def test_printed_axes_are_eigenvectors_of_the_hessian_along_the_simplex() -> None:
    p = np.array([0.5, 0.3, 0.15, 0.05])
    flat = np.eye(4) - 0.25  # projects on directions that keep the sum
    hessian = flat @ np.diag(1 / p**2) @ flat
    for i in range(3):
        half = p * axis(p, i, "eigenvectors")
        value = 1 / (half @ half)
        np.testing.assert_allclose(hessian @ half, value * half, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("axes", AXES)
def test_ends_of_axes_are_distributions_that_average_to_the_centre(axes: Axes) -> None:
    for p in distributions():
        ends = []
        for end in range(2 * (len(p) - 1)):
            half = axis(p, end // 2, axes)
            raw = p * (1 + (1 if end % 2 else -1) * half)  # before anything is clipped or divided
            assert raw.min() >= -1e-12
            assert raw.sum() == pytest.approx(1.0, abs=1e-8)
            ends.append(end_point(p, half, end))
            assert ends[-1].min() >= 0
        np.testing.assert_allclose(np.mean(ends, axis=0), p, atol=1e-8)


@pytest.mark.parametrize("axes", AXES)
def test_estimates_are_unbiased(axes: Axes) -> None:
    """Over every axis, end and arm, weighted by their probabilities, they sum up to the losses, but for a constant."""
    rng = np.random.default_rng(1)
    for p in (np.array([0.5, 0.3, 0.15, 0.05]), np.full(3, 1 / 3), np.array([0.9, 0.1])):
        losses, total = rng.uniform(-1, 1, len(p)), np.zeros(len(p))
        n_ends = 2 * (len(p) - 1)
        for end in range(n_ends):
            half = axis(p, end // 2, axes)
            for arm, chance in enumerate(end_point(p, half, end)):
                total += chance / n_ends * end_losses(p, half, end, float(losses[arm]))
        np.testing.assert_allclose(total - total.mean(), losses - losses.mean(), atol=1e-10)


def test_leader_is_the_minimiser() -> None:
    rng = np.random.default_rng(2)
    for _ in range(5):
        losses = rng.normal(scale=5, size=4)

        def objective(z: Float64, losses: Float64 = losses) -> float:
            p = np.exp(z) / np.exp(z).sum()
            return float(losses @ p - np.log(p).sum())

        found = minimize(objective, np.zeros(4), tol=1e-12).x
        np.testing.assert_allclose(barrier_leader(losses), np.exp(found) / np.exp(found).sum(), atol=1e-4)
    for scale in (1e-9, 1.0, 1e6, 1e12):
        p = barrier_leader(scale * rng.normal(size=50))
        assert p.min() > 0
        assert p.sum() == pytest.approx(1.0, abs=1e-12)


def learn(policy: SCRiBLe, steps: int) -> object:
    state, rng = policy.init(4, 2), np.random.default_rng(3)
    for t in range(1, steps + 1):
        coins = Coins(float(rng.random()), int(rng.integers(2**63)) * 2, 0, 0)
        c = policy.decide(state, t, X, coins, np.ones(4, dtype=bool))
        reward = float(rng.random() < (0.2, 0.4, 0.6, 0.8)[c.arm])
        policy.update(state, Interaction(t=t, x=X, arm=c.arm, reward=reward, propensity=c.propensity, tag=c.tag))
    return state


def test_update_uses_the_axis_that_was_played() -> None:
    policy, everyone = SCRiBLe(eta=0.1), np.ones(4, dtype=bool)
    state = policy.init(4, 2)
    for t in range(1, 50):
        coins = Coins((t * 0.37) % 1.0, (t * 2**60) % 2**64, 0, 0)
        p, before = policy.probabilities(state, t, X, everyone), state.read("loss", X).copy()
        c = policy.decide(state, t, X, coins, everyone)
        end = (coins.pick * 6) >> 64
        expected = end_losses(p, axis(p, end // 2, "eigenvectors"), end, 1 - 2 * 0.3)
        policy.update(state, Interaction(t=t, x=X, arm=c.arm, reward=0.3, propensity=c.propensity, tag=c.tag))
        np.testing.assert_allclose(state.read("loss", X) - before, expected - expected.mean(), rtol=1e-9, atol=1e-9)


def test_late_and_restricted_rows_are_importance_weighted() -> None:
    policy, everyone = SCRiBLe(eta=0.1), np.ones(4, dtype=bool)
    state = policy.init(4, 2)
    coins = Coins(0.4, 2**62, 0, 0)
    late = policy.decide(state, 1, X, coins, everyone)
    policy.update(state, Interaction(t=2, x=X, arm=0, reward=1.0, propensity=0.25))
    expected = np.array([-1.0, 0, 0, 0]) / 0.25
    np.testing.assert_allclose(state.read("loss", X), expected - expected.mean())
    before = state.read("loss", X).copy()
    policy.update(state, Interaction(t=1, x=X, arm=late.arm, reward=0.0, propensity=late.propensity, tag=late.tag))
    expected = np.eye(4)[late.arm] / late.propensity
    np.testing.assert_allclose(state.read("loss", X) - before, expected - expected.mean())
    few = policy.decide(state, 3, X, coins, np.array([True, True, False, False]))
    before = state.read("loss", X).copy()
    policy.update(state, Interaction(t=3, x=X, arm=few.arm, reward=0.25, propensity=few.propensity, tag=few.tag))
    expected = np.array([0.0, 0.0, 0.5, 0.5])  # those that could not play are charged what was paid
    expected[few.arm] = 0.5 / few.propensity
    np.testing.assert_allclose(state.read("loss", X) - before, expected - expected.mean())


def test_probability_moves_to_the_best_arm() -> None:
    policy = SCRiBLe(eta=0.05, axes="reflection")
    p = policy.probabilities(learn(policy, 3000), 1, X, np.ones(4, dtype=bool))  # type: ignore[arg-type]
    assert p.argmax() == 3
    assert p[3] > 0.6


def test_rate_is_the_theorem_s_and_is_bounded() -> None:
    assert SCRiBLe(horizon=5000).rate(6) == pytest.approx(math.sqrt(6 * math.log(5000)) / (4 * 5 * math.sqrt(5000)))
    assert SCRiBLe(horizon=2).rate(100) <= 1 / 99
    with pytest.raises(ValueError, match=r"eta is 0\.5 but there are 4 arms; use at most 1/3"):
        armlet.Bandit(range(4), 2, policy=SCRiBLe(eta=0.5))


def test_single_arm_is_played() -> None:
    bandit = armlet.Bandit(["only"], 2, policy=SCRiBLe(horizon=100), seed=0)
    decision = bandit.decide(X)
    bandit.learn(decision, 0.5)
    assert (decision.arm, decision.propensity) == ("only", 1.0)


def test_wrong_settings_are_named() -> None:
    with pytest.raises(ValueError, match="axes is 'random'; choose 'eigenvectors' or 'reflection'"):
        SCRiBLe(eta=0.1, axes="random")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="horizon is None and eta is None; give the one or the other"):
        SCRiBLe()
    with pytest.raises(ValueError, match="eta is 0; give a positive number"):
        SCRiBLe(eta=0)
    policy = SCRiBLe(eta=0.1)
    with pytest.raises(DecisionError, match="'SCRiBLe' cannot take back"):
        policy.update(policy.init(3, 2), Interaction(t=1, x=X, arm=1, reward=0.5, weight=-1.0))


def test_table_beats_uniform_play() -> None:
    environment = FigureA.draw(np.random.default_rng(3))
    regrets = []
    for policy in (Uniform(), SCRiBLe(eta=0.1, contexts="table", reward_range=(-6.0, 6.0), outside="clip")):
        result = simulate(environment, policy, horizon=2000, runs=4, seed=1, method="python", engine="serial")
        regrets.append(float(result.regret[:, -1].mean()))
    assert regrets[1] < 0.9 * regrets[0]
