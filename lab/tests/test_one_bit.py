"""Banditron, Newtron and Confidit: what the papers define, the long way; and the environment with one bit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy import optimize

from armlet.bandit import Bandit
from armlet.environments import Drifting, FigureA
from armlet.environments.wrapped import OracleBit
from armlet.kernel import coins
from armlet.policies import Uniform
from armlet.simulation.run import simulate
from armlet.testing.environments import (
    check_arrays,
    check_description,
    check_means,
    check_seeds_repeat_environments,
    check_start,
    check_streams_stay_apart,
)
from armlet.types import Bool, Float64, Interaction, Policy
from armlet_lab.literature.banditron import Banditron
from armlet_lab.literature.confidit import Confidit
from armlet_lab.literature.newtron import Hessian, Newtron, in_ball
from support.contract import check_settings

K, D = 3, 2
ALL = np.ones(K, dtype=np.bool_)
POLICIES: list[Policy] = [
    Banditron(),
    Banditron(gamma=1.0),
    Newtron(),
    Newtron(gamma=0.2, alpha=2.0, beta=0.5, radius=5.0),
    Newtron(hessian="full", gamma=0.2, beta=0.5, radius=5.0),
    Confidit(),
    Confidit(eta=0.1, alpha=0.3),
    Confidit(eta=None),
]


def stream(policy: Any, steps: int, seed: int = 0, eligible: Bool = ALL) -> Iterator[tuple[Any, Interaction]]:
    """Play noisy labels of 3 classes; give each row with the state before it, then learn it."""
    rng, state = np.random.default_rng(seed), policy.init(K, D)
    theta = rng.standard_normal((K, D))
    for t in range(1, steps + 1):
        x = rng.standard_normal(D)
        x /= np.linalg.norm(x)
        label = int(np.argmax(theta @ x + 0.3 * rng.standard_normal(K)))
        c = policy.decide(state, t, x, coins(seed, t), eligible)
        row = Interaction(
            t=t, x=x, arm=c.arm, reward=float(c.arm == label), propensity=c.propensity, explored=c.explored, tag=c.tag
        )
        yield state, row
        policy.update(state, row)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_promises_are_kept(policy: Policy) -> None:
    check_settings(policy, n_arms=4, dim=3)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_reward_that_is_no_bit_is_refused_and_changes_nothing(policy: Policy) -> None:
    bandit = Bandit(range(K), D, policy=policy, seed=1)
    decision, before = bandit.decide([1.0, 0.0]), bandit.state.arrays()
    with pytest.raises(ValueError, match=r"reward is 0\.5; this policy learns from 0 and 1 only"):
        bandit.learn(decision, 0.5)
    assert all(np.array_equal(before[name], bandit.state.arrays()[name]) for name in before)


# ---- Banditron


def test_banditron_follows_its_definition() -> None:
    policy, gamma = Banditron(gamma=0.3), 0.3
    W = [[0.0] * D for _ in range(K)]
    for state, row in stream(policy, 200):
        scores = [sum(w * v for w, v in zip(W[a], row.x, strict=True)) for a in range(K)]
        best = [a for a in range(K) if abs(scores[a] - max(scores)) < 1e-12]
        chance = {a: gamma / K + (1 - gamma) * (a in best) / len(best) for a in range(K)}
        predicted = row.tag - 1
        assert predicted in best
        assert row.propensity == pytest.approx(chance[row.arm], rel=1e-12)
        for j in range(D):
            W[predicted][j] -= row.x[j]
            W[row.arm][j] += row.reward * row.x[j] / chance[row.arm]
        policy.update(later := state.copy(), row)
        assert np.allclose(later["W"], W, rtol=1e-9, atol=1e-9)


def test_banditron_steps_as_the_perceptron_does_on_average() -> None:
    policy, x, label = Banditron(gamma=0.3), np.array([0.6, 0.8]), 2
    state = policy.init(K, D)
    state["W"][:] = [[1.0, 0.0], [0.0, 0.5], [-1.0, 0.0]]
    step, chances = np.zeros((K, D)), policy.probabilities(state, 1, x, ALL)
    for arm, chance in enumerate(chances):
        row = Interaction(t=1, x=x, arm=arm, reward=float(arm == label), propensity=float(chance), tag=1)  # y_hat is 0
        policy.update(later := state.copy(), row)
        step += chance * (later["W"] - state["W"])
    assert np.allclose(step, [-x, np.zeros(D), x])


def test_banditron_changes_the_arm_that_was_predicted_however_late() -> None:
    policy = Banditron()
    state = policy.init(K, D)
    late = Interaction(t=1, x=np.ones(D), arm=0, reward=0.0, propensity=0.5, tag=2)
    state["W"][2] = 9.0  # by now another arm is predicted
    policy.update(state, late)
    assert state["W"].tolist() == [[0.0, 0.0], [-1.0, -1.0], [9.0, 9.0]]
    policy.update(state, Interaction(t=2, x=np.ones(D), arm=0, reward=0.0))  # a log has no tags: predicted now
    assert state["W"].tolist() == [[0.0, 0.0], [-1.0, -1.0], [8.0, 8.0]]


# ---- Newtron


def softmax(z: Float64) -> Float64:
    odds = np.exp(z - z.max())
    shares: Float64 = odds / odds.sum()
    return shares


def test_newtron_estimates_the_gradient_of_the_logistic_loss_without_bias() -> None:
    policy, x, label = Newtron(gamma=0.2, alpha=3.0), np.array([0.6, 0.8]), 1
    state = policy.init(K, D)
    state["W"][:] = [[0.3, 0.0], [0.0, -0.2], [0.1, 0.4]]
    chances, mean = policy.probabilities(state, 1, x, ALL), np.zeros((K, D))
    for arm, chance in enumerate(chances):
        row = Interaction(t=1, x=x, arm=arm, reward=float(arm == label), propensity=float(chance), tag=K)
        mean += chance * policy.gradient(K, row)[0]

    def loss(W: Float64) -> float:
        return -math.log(softmax(3.0 * W.reshape(K, D) @ x)[label]) / 3.0

    found = optimize.approx_fprime(state["W"].ravel(), loss, 1e-7)
    assert np.allclose(mean.ravel(), found, atol=1e-5)


@pytest.mark.parametrize("hessian", ["diagonal", "full"])
@pytest.mark.parametrize(("radius", "binds"), [(0.5, True), (50.0, False)])
def test_newtron_minimises_its_objective(hessian: Hessian, radius: float, binds: bool) -> None:
    policy = Newtron(gamma=0.3, alpha=2.0, beta=0.4, radius=radius, hessian=hessian)
    terms: list[tuple[Float64, float, Float64]] = []
    for state, row in stream(policy, 25):
        W = state["W"].copy()
        p = softmax(2.0 * W @ row.x)
        drawn = 0.7 * p + 0.3 / K
        assert row.propensity == pytest.approx(drawn[row.arm], rel=1e-9)
        e = np.eye(K)[row.arm]
        if row.reward:
            G, kappa = (1 - p[row.arm]) / drawn[row.arm] * np.outer(1 / K - e, row.x), drawn[row.arm]
        else:
            G, kappa = p[row.arm] / drawn[row.arm] * np.outer(e - 1 / K, row.x), 1.0
        terms.append((G.ravel(), kappa, W.ravel()))
        policy.update(last := state.copy(), row)

    def objective(w: Float64) -> float:
        total = w @ w / (2 * radius)
        for G, kappa, W in terms:
            move = G * (w - W)
            square = move.sum() ** 2 if hessian == "full" else (move**2).sum()
            total += move.sum() + kappa * 0.4 * square / 2
        return float(total)

    ball: Any = {"type": "ineq", "fun": lambda w: radius**2 - w @ w}
    best = optimize.minimize(objective, np.zeros(K * D), method="SLSQP", constraints=[ball], options={"ftol": 1e-14})
    found = last["W"].ravel()
    assert np.allclose(found, best.x, atol=2e-5)
    assert objective(found) <= best.fun + 1e-9
    assert (np.linalg.norm(found) > radius * (1 - 1e-9)) == binds
    assert np.linalg.norm(found) <= radius * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_minimiser_in_the_ball_is_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    h, b = np.exp(rng.normal(scale=4, size=6)), rng.normal(size=6) * 10 ** rng.uniform(-3, 6)
    w = in_ball(h, b, 1.0)
    m = -(b + h * w) @ w / (w @ w)  # the multiplier of the constraint
    assert np.linalg.norm(w) <= 1 + 1e-12
    assert np.allclose((h + m) * w, -b, rtol=1e-9)
    assert m >= -1e-9 * h.max()
    assert m * (1 - np.linalg.norm(w)) <= 1e-9 * (1 + m)


def test_newtron_draws_from_eligible_arms_only_and_keeps_how_many() -> None:
    policy, some = Newtron(gamma=0.3, alpha=2.0), np.array([True, False, True])
    for state, row in stream(policy, 30, eligible=some):
        p = softmax(2.0 * state["W"][some] @ row.x)
        assert policy.probabilities(state, row.t, row.x, some)[some] == pytest.approx(0.7 * p + 0.15)
        assert (row.tag, row.arm == 1) == (2, False)
        size = p[row.arm // 2] if not row.reward else 1 - p[row.arm // 2]
        G, _ = policy.gradient(K, row)
        assert np.abs(G[row.arm]).max() == pytest.approx(size / row.propensity * 2 / 3 * np.abs(row.x).max())


@pytest.mark.parametrize("hessian", ["diagonal", "full"])
def test_newtron_gives_a_new_arm_only_the_regulariser(hessian: Hessian) -> None:
    policy = Newtron(hessian=hessian, radius=2.0)
    for state, row in stream(policy, 20):
        policy.update(last := state.copy(), row)
    before = last.arrays()
    last.add_arm()
    H = last["H"].reshape((K + 1) * D, -1) if hessian == "full" else np.diag(last["H"].ravel())
    assert np.allclose(H[K * D :, K * D :], 0.5 * np.eye(D))
    assert not H[: K * D, K * D :].any()
    last.remove_arm(K)
    assert all(np.array_equal(before[name], last.arrays()[name]) for name in before)


# ---- Confidit


def project(w: Float64, A: Float64, x: Float64, alpha: float) -> Float64:
    """Minimise (v - w)'A(v - w) subject to -alpha <= v'x <= 1, by a solver that knows nothing of the closed form."""
    bounds: Any = [{"type": "ineq", "fun": lambda v: 1.0 - v @ x}, {"type": "ineq", "fun": lambda v: v @ x + alpha}]

    def distance(v: Float64) -> float:
        return float((v - w) @ A @ (v - w))

    found = optimize.minimize(distance, w.tolist(), method="SLSQP", constraints=bounds, options={"ftol": 1e-15})
    return np.asarray(found.x, dtype=np.float64)


@pytest.mark.parametrize("alpha", [1.0, 0.2])
def test_confidit_follows_its_definition(alpha: float) -> None:
    policy, projected = Confidit(eta=0.5, alpha=alpha), 0
    A = [(1 + alpha) ** 2 * np.eye(D) for _ in range(K)]
    w: list[Float64] = [np.zeros(D) for _ in range(K)]
    for state, row in stream(policy, 150):
        inside = [min(max(float(w[a] @ row.x), -alpha), 1.0) for a in range(K)]
        bound = [inside[a] + math.sqrt(0.5 * row.x @ np.linalg.solve(A[a], row.x)) for a in range(K)]
        assert bound[row.arm] >= max(bound) - 1e-6
        a, s = row.arm, 1.0 if row.reward == 1.0 else -alpha
        if inside[a] != float(w[a] @ row.x):
            w[a], projected = project(w[a], A[a], row.x, alpha), projected + 1
        old = A[a]
        A[a] = old + np.outer(row.x, row.x)
        w[a] = np.asarray(np.linalg.solve(A[a], old @ w[a] + s * row.x), dtype=np.float64)
        policy.update(later := state.copy(), row)
        assert np.allclose(later["w"], w, atol=1e-5)
        assert np.allclose(later["A"], A, rtol=1e-12)
    assert projected > 0 or alpha == 1.0


def test_projection_is_exact() -> None:
    policy, x = Confidit(), np.array([0.6, 0.8])
    state = policy.init(1, D)
    state["A"][0], state["w"][0] = [[3.0, 1.0], [1.0, 2.0]], [4.0, 1.0]
    state["inverse"][0] = np.array([[2.0, -1.0], [-1.0, 3.0]]) / 5.0
    assert policy.scores(state, 1, x)[0] == pytest.approx(1.0 + math.sqrt(x @ state["inverse"][0] @ x))
    target = project(np.array([4.0, 1.0]), state["A"][0].copy(), x, 1.0)
    policy.update(state, Interaction(t=1, x=x, arm=0, reward=1.0))  # s = 1 is where it was projected to: no other step
    assert np.allclose(state["w"][0], target, atol=1e-5)


def test_confidit_on_binary_rewards_is_projected_linucb() -> None:
    # LinUCB with ridge (1 + alpha)^2 on s = (1 + alpha) r - alpha, scores clipped; where no w was ever projected
    # they are the same sums
    rng, policy = np.random.default_rng(3), Confidit(eta=0.3)
    theta, state = np.array([[0.2, 0.1], [0.5, -0.3], [-0.1, 0.4]]), policy.init(K, D)
    A, b = np.tile(4.0 * np.eye(D), (K, 1, 1)), np.zeros((K, D))
    for t in range(1, 1001):
        x = rng.standard_normal(D)
        x /= np.linalg.norm(x)
        theta_hat = np.linalg.solve(A, b[:, :, None])[:, :, 0]
        assert np.abs(theta_hat @ x).max() < 1
        linucb = theta_hat @ x + np.sqrt(0.3 * np.array([x @ np.linalg.solve(V, x) for V in A]))
        assert np.allclose(policy.scores(state, t, x), linucb, rtol=1e-9)
        arm = policy.decide(state, t, x, coins(1, t), ALL).arm
        reward = float(rng.random() < (1 + theta[arm] @ x) / 2)
        A[arm] += np.outer(x, x)
        b[arm] += (2 * reward - 1) * x
        policy.update(state, Interaction(t=t, x=x, arm=arm, reward=reward))
    assert np.abs(policy.estimates(state) - theta)[0].max() < 0.35  # and they estimate u, of which arms pay the mean


def test_width_of_the_theory_counts_what_an_arm_has_seen() -> None:
    policy, spent = Confidit(eta=None, alpha=0.5, delta=0.1, norm=2.0), [0.0] * K
    for state, row in stream(policy, 60):
        eta = [1.5**2 * (4.0 + 18 * math.log((row.t + 4) / 0.1) + spent[a]) for a in range(K)]
        wide = [math.sqrt(eta[a] * row.x @ np.linalg.solve(state["A"][a], row.x)) for a in range(K)]
        margins = np.clip(state["w"] @ row.x, -0.5, 1.0)
        assert np.allclose(policy.scores(state, row.t, row.x), margins + wide)
        spent[row.arm] += float(row.x @ np.linalg.solve(state["A"][row.arm] + np.outer(row.x, row.x), row.x))


def test_confidit_gives_a_new_arm_the_ridge() -> None:
    state = Confidit(alpha=0.5).init(1, D)
    state.add_arm()
    assert np.array_equal(state["A"][1], 2.25 * np.eye(D))
    assert np.allclose(state["inverse"][1] @ state["A"][1], np.eye(D))


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (Banditron, {"gamma": 0.0}, "gamma is 0.0; give a number above 0 and up to 1"),
        (Banditron, {"gamma": 1.1}, "gamma is 1.1"),
        (Newtron, {"gamma": 1.0}, "gamma is 1.0; give a number between 0 and 1"),
        (Newtron, {"alpha": 0.0}, "alpha is 0.0; give a positive number"),
        (Newtron, {"beta": -1.0}, "beta is -1.0"),
        (Newtron, {"radius": math.inf}, "radius is inf"),
        (Newtron, {"hessian": "sparse"}, "hessian is 'sparse'; choose 'diagonal' or 'full'"),
        (Confidit, {"eta": -1.0}, "eta is -1.0; give a number from 0 to 1e\\+40, or None"),
        (Confidit, {"alpha": 0.0}, "alpha is 0.0"),
        (Confidit, {"delta": 0.0}, "delta is 0.0"),
        (Confidit, {"norm": 0.0}, "norm is 0.0"),
    ],
)
def test_wrong_settings_are_named(kind: Any, settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kind(**settings)


# ---- the environment


def test_oracle_bit_keeps_every_promise_but_one() -> None:
    environment = OracleBit(environment=FigureA.draw(np.random.default_rng(3)))
    for check in (
        check_arrays,
        check_seeds_repeat_environments,
        check_streams_stay_apart,
        check_start,
        check_description,
    ):
        check(environment)
    with pytest.raises(AssertionError):
        check_means(environment)
    assert environment.table() is None
    assert environment.constants() == environment.environment.constants()


def test_oracle_bit_is_one_for_the_best_arms_of_the_inner_environment() -> None:
    inner = FigureA.draw(np.random.default_rng(3))
    environment = OracleBit(environment=inner)
    X = environment.contexts(np.random.default_rng(1), 200)
    assert np.array_equal(X, inner.contexts(np.random.default_rng(1), 200))
    assert np.array_equal(environment.means(X), inner.means(X))
    for mu, bits in zip(inner.means(X), environment.rewards(np.random.default_rng(2), X), strict=True):
        assert bits.tolist() == [float(m == max(mu)) for m in mu]


def test_oracle_bit_follows_an_environment_that_changes() -> None:
    inner = Drifting.draw(np.random.default_rng(3))
    environment, start = OracleBit(environment=inner), 10**6
    X = environment.contexts(np.random.default_rng(1), 200, start=start)
    bits = environment.rewards(np.random.default_rng(2), X, start=start)
    assert np.array_equal(bits.argmax(axis=1), inner.means(X, start=start).argmax(axis=1))


@pytest.mark.parametrize("policy", [Banditron(), Newtron(), Newtron(hessian="full"), Confidit()], ids=repr)
def test_regret_is_below_that_of_uniform_play(policy: Policy) -> None:
    environment = OracleBit(environment=FigureA.draw(np.random.default_rng(3)))
    settings: dict[str, Any] = {"horizon": 2000, "runs": 4, "seed": 1, "method": "python", "engine": "serial"}
    found, floor = (simulate(environment, p, **settings).at(2000) for p in (policy, Uniform()))
    assert found.max() < 0.5 * floor.min()
