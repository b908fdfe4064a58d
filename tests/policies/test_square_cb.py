"""SquareCB: inverse gap weighting."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from armlet import Bandit
from armlet.environments import FigureA
from armlet.policies import Uniform
from armlet.policies.square_cb import GROWTH, SquareCB, inverse_gap_chances, theory_gamma
from armlet.simulation.run import simulate
from armlet.types import Policy
from support.contract import check_settings

SETTINGS = [
    SquareCB(),
    SquareCB(gamma_scale=10.0, ridge="paper", units="as given"),
    SquareCB(gamma=5.0),
    SquareCB(gamma=0.0),
    SquareCB(units="as given"),
]


@pytest.mark.parametrize("policy", SETTINGS, ids=repr)
def test_policy_keeps_its_promises(policy: Policy) -> None:
    check_settings(policy, n_arms=4, dim=3)


def paper_chances(scores: list[float], gamma: float, best: int) -> list[float]:
    """Weigh every arm but one against it, and give that one the rest."""
    out = [1 / (len(scores) + gamma * (scores[best] - score)) for score in scores]
    out[best] = 1 - sum(chance for arm, chance in enumerate(out) if arm != best)
    return out


def test_chances_are_the_papers() -> None:
    scores = [0.3, -1.0, 0.9, 0.2]
    found = inverse_gap_chances(np.array(scores), np.ones(4, dtype=np.bool_), 7.0)
    np.testing.assert_allclose(found, paper_chances(scores, 7.0, best=2), rtol=1e-14)


def test_tied_arms_share_what_a_drawn_one_of_them_would_get() -> None:
    scores = [1.0, 0.5, 1.0, 1.0]
    drawn = [paper_chances(scores, 4.0, best) for best in (0, 2, 3)]
    found = inverse_gap_chances(np.array(scores), np.ones(4, dtype=np.bool_), 4.0)
    np.testing.assert_allclose(found, np.mean(drawn, axis=0), rtol=1e-14)


def test_only_eligible_arms_count() -> None:
    found = inverse_gap_chances(np.array([9.0, 1.0, 0.0]), np.array([False, True, True]), 2.0)
    np.testing.assert_allclose(found, [0.0, 0.75, 0.25], rtol=1e-14)


@given(
    arrays(np.float64, st.integers(1, 8), elements=st.floats(-1e3, 1e3)),
    st.sampled_from([0.0, 1e-3, 1.0, 50.0, 1e9]),
)
def test_better_arms_are_likelier_and_none_is_impossible(scores: np.ndarray, gamma: float) -> None:
    chances = inverse_gap_chances(scores, np.ones(len(scores), dtype=np.bool_), gamma)
    assert abs(chances.sum() - 1) < 1e-12
    assert (chances > 0).all()
    order = np.argsort(scores, kind="stable")
    assert (np.diff(chances[order]) >= -1e-12).all()
    assert chances[order[-1]] >= 1 / len(scores) - 1e-12


def test_gamma_0_is_uniform_and_a_large_gamma_is_greedy() -> None:
    scores, everyone = np.array([0.0, 1.0, 0.5]), np.ones(3, dtype=np.bool_)
    np.testing.assert_allclose(inverse_gap_chances(scores, everyone, 0.0), [1 / 3] * 3)
    np.testing.assert_allclose(inverse_gap_chances(scores, everyone, 1e12), [0, 1, 0], atol=1e-11)


def test_exploration_costs_at_most_k_over_gamma_a_step() -> None:
    """The step of the proof that needs no environment: sum p_a gap_a <= (K - 1) / gamma for estimated gaps."""
    rng = np.random.default_rng(2)
    for gamma in (1.0, 10.0, 100.0):
        scores = rng.normal(size=6)
        chances = inverse_gap_chances(scores, np.ones(6, dtype=np.bool_), gamma)
        assert chances @ (scores.max() - scores) <= 5 / gamma


def test_gamma_is_constant_or_grows_with_the_root_of_t() -> None:
    assert [SquareCB(gamma=3.0).gamma_at(t) for t in (1, 100)] == [3.0, 3.0]
    assert [SquareCB(gamma_scale=2.0).gamma_at(t) for t in (1, 100)] == [2.0, 20.0]
    assert [SquareCB(units="as given").gamma_at(t) for t in (1, 100)] == [1.0, 10.0]
    assert [SquareCB().gamma_at(t) for t in (1, 100)] == [GROWTH, 10.0 * GROWTH]


def test_free_gaps_are_counted_in_deviations_of_the_noise() -> None:
    rng, policy = np.random.default_rng(4), SquareCB(gamma=3.0)
    state, everyone, x = policy.init(3, 2), np.ones(3, dtype=np.bool_), np.array([0.3, -1.0])
    for row in rng.normal(size=(90, 2)):
        arm = int(rng.integers(3))
        state.add(arm, row, 1000.0 + arm * row[0] + 20.0 * rng.normal())
    found = policy.probabilities(state, 91, x, everyone)
    assert state.typical_noise() == pytest.approx(20.0, rel=0.3)  # 90 rows tell a deviation to about 8 %
    np.testing.assert_allclose(found, inverse_gap_chances(state.scores(x), everyone, 3.0 / state.typical_noise()))


def test_without_noise_the_best_arm_plays() -> None:
    policy, everyone = SquareCB(), np.ones(2, dtype=np.bool_)
    state = policy.init(2, 1)
    for _ in range(5):
        state.add(0, np.array([1.0]), 7.0)
    assert state.typical_noise() == 0.0
    np.testing.assert_array_equal(policy.probabilities(state, 6, np.array([1.0]), everyone), [0.5, 0.5])
    np.testing.assert_array_equal(SquareCB(gamma=0.0).probabilities(state, 6, np.array([1.0]), everyone), [0.5, 0.5])


def test_theory_gamma_is_the_papers() -> None:
    regression = 6 * 3 * math.log(1 + 10**5 / 3)
    expected = 0.5 * math.sqrt(6 * 10**5 / (regression + math.log(2 / 0.1)))
    assert theory_gamma(n_arms=6, dim=3, horizon=10**5, delta=0.1) == pytest.approx(expected)


def test_scores_are_ridge_estimates_of_every_row() -> None:
    rng = np.random.default_rng(9)
    policy, x = SquareCB(gamma=3.0, ridge=0.5, units="as given"), np.array([1.0, -0.5])
    bandit = Bandit(range(2), 2, policy=policy, seed=1)
    rows: list[list[tuple[list[float], float]]] = [[], []]
    for row in rng.normal(size=(50, 2)):
        decision = bandit.decide(row)
        reward = float(rng.normal() + int(decision.arm))
        bandit.learn(decision, reward)
        rows[int(decision.arm)].append((row.tolist(), reward))
    scores = []
    for own in rows:
        X, r = np.array([row for row, _ in own]), np.array([reward for _, reward in own])
        scores.append(float(x @ np.linalg.solve(X.T @ X + 0.5 * np.eye(2), X.T @ r)))
    expected = paper_chances(scores, 3.0, best=int(np.argmax(scores)))
    np.testing.assert_allclose(bandit.predict_proba([x])[0], expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gamma": -1.0}, "gamma is -1.0; give a number from 0 to 1e\\+40, or None"),
        ({"gamma_scale": math.inf}, "gamma_scale is inf; give a number from 0 to 1e\\+40, or None"),
        ({"units": "metric"}, "units is 'metric'"),
        ({"ridge": "paper"}, "ridge is 'paper', but noise is estimated with a constant one; give a number, or units="),
        ({"ridge": "none"}, "ridge is 'none'"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SquareCB(**settings)  # type: ignore[arg-type]


def test_beats_uniform_play() -> None:
    environment, theory = FigureA.draw(np.random.default_rng(3)), theory_gamma(n_arms=6, dim=3, horizon=2000)
    practical, by_theory, uniform = (
        float(simulate(environment, p, horizon=2000, runs=4, seed=1, method="python", engine="serial").at(2000).mean())
        for p in (SquareCB(gamma_scale=10.0, units="as given"), SquareCB(gamma=theory, units="as given"), Uniform())
    )
    assert practical < 0.1 * uniform
    assert by_theory < 0.5 * uniform  # its gamma of 5 explores for the whole horizon, but not blindly
