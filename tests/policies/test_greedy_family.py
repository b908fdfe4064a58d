"""Policies that mostly play what looks best: Greedy and FixedEpsilon."""

from __future__ import annotations

import numpy as np
import pytest

from armlet import Bandit
from armlet.environments import FigureA
from armlet.policies import Uniform
from armlet.policies.fixed_epsilon import FixedEpsilon
from armlet.policies.greedy import Greedy
from armlet.simulation.run import simulate
from armlet.types import Float64, Policy
from support.contract import check_settings

CONTRACT = [
    Greedy(),
    Greedy(ridge="paper"),
    Greedy(units="as given"),
    FixedEpsilon(units="as given"),
    FixedEpsilon(),
    FixedEpsilon(epsilon=0.0, ridge="1/n"),
    FixedEpsilon(epsilon=1.0),
]


@pytest.mark.parametrize("policy", CONTRACT, ids=repr)
def test_policy_keeps_its_promises(policy: Policy) -> None:
    check_settings(policy, n_arms=4, dim=3)


def best_of(scores: Float64, among: list[int]) -> list[float]:
    """Share 1 among the highest scores, the long way."""
    top = max(scores[arm] for arm in among)
    winners = [arm for arm in among if scores[arm] == top]
    return [1 / len(winners) if arm in winners else 0.0 for arm in range(len(scores))]


def solved(rows: list[tuple[Float64, float]], dim: int, ridge: float) -> Float64:
    """Ridge regression from the rows themselves."""
    X, r = np.array([x for x, _ in rows]).reshape(len(rows), dim), np.array([reward for _, reward in rows])
    return np.asarray(np.linalg.solve(ridge * np.eye(dim) + X.T @ X, X.T @ r), dtype=np.float64)


# ---- greedy


def test_greedy_plays_the_best_ridge_estimate_of_all_rows() -> None:
    rng = np.random.default_rng(3)
    bandit, rows = Bandit(range(3), 2, policy=Greedy(ridge=0.7, units="as given"), seed=1), [[], [], []]  # type: ignore[var-annotated]
    theta = rng.normal(size=(3, 2))
    for _ in range(100):
        x = rng.normal(size=2)
        scores = np.array([x @ solved(own, 2, 0.7) for own in rows])
        assert bandit.predict_proba([x])[0].tolist() == best_of(scores, [0, 1, 2])
        decision = bandit.decide(x)
        reward = float(theta[int(decision.arm)] @ x + rng.normal())
        bandit.learn(decision, reward)
        rows[int(decision.arm)].append((x, reward))


def test_greedy_locks_in_on_the_first_arm_that_pays() -> None:
    """Arm 1 pays ten times as much, but arm 0 looks better than what was never tried: 0."""
    policy = Greedy(units="as given")
    seeds = [seed for seed in range(20) if Bandit(range(2), 1, policy=policy, seed=seed).decide([1.0]).arm == 0]
    assert 4 <= len(seeds) <= 16  # the first step is a drawn tie: both happen
    bandit = Bandit(range(2), 1, policy=policy, seed=seeds[0])
    for _ in range(500):
        decision = bandit.decide([1.0])
        bandit.learn(decision, [0.1, 1.0][int(decision.arm)])
        assert decision.arm == 0


# ---- the forced schedule


# ---- greedy first


# ---- fixed epsilon


def test_fixed_epsilon_mixes_uniform_play_with_the_best_arm() -> None:
    policy = FixedEpsilon(epsilon=0.2)
    state = policy.init(3, 1)
    state.add(2, np.array([1.0]), 1.0)
    state.add(0, np.array([1.0]), 0.5)
    chances = policy.probabilities(state, 5, np.array([1.0]), np.array([True, False, True]))
    np.testing.assert_allclose(chances, [0.1, 0.0, 0.9], rtol=1e-15)


def test_fixed_epsilon_explores_as_often_at_any_step() -> None:
    bandit = Bandit(range(3), 1, policy=FixedEpsilon(epsilon=0.1), seed=6)
    explored = [bandit.decide([1.0]).explored for _ in range(6000)]
    for half in (explored[:3000], explored[3000:]):  # mean 300, standard deviation 16.4: six of them
        assert abs(sum(half) - 300) < 99


def test_fixed_epsilon_frees_itself_where_greedy_locks_in() -> None:
    bandit = Bandit(range(2), 1, policy=FixedEpsilon(epsilon=0.1), seed=1)
    for _ in range(300):
        decision = bandit.decide([1.0])
        bandit.learn(decision, [0.1, 1.0][int(decision.arm)])
    np.testing.assert_allclose(bandit.predict_proba([[1.0]]), [[0.05, 0.95]])


# ---- all of them


@pytest.mark.parametrize(
    ("policy", "settings", "message"),
    [
        (Greedy, {"ridge": 0.0}, "ridge is 0.0"),
        (FixedEpsilon, {"epsilon": 1.5}, "epsilon is 1.5; give a probability from 0 to 1"),
    ],
)
def test_bad_settings_are_refused(policy: type, settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        policy(**settings)


def regrets(policy: Policy, seed: int, runs: int = 4) -> Float64:
    environment = FigureA.draw(np.random.default_rng(seed))
    result = simulate(environment, policy, horizon=2000, runs=runs, seed=1, method="python", engine="serial")
    return np.asarray(result.at(2000), dtype=np.float64)


@pytest.mark.parametrize("policy", [Greedy(), FixedEpsilon(epsilon=0.05)], ids=repr)
def test_beats_uniform_play(policy: Policy) -> None:
    assert regrets(policy, 3).mean() < 0.2 * regrets(Uniform(), 3).mean()
