"""Features in which the rows that remain no longer vary: what was taken back leaves rounding, which is no deviation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import armlet
from armlet import kernel
from armlet.inputs.settings import Ridge
from armlet.loading import from_bytes
from armlet.reference import pair_model as reference
from armlet.reference.discount import FadingReference
from armlet.reference.schedule import Reference
from armlet.types import Float64

ARMS = ["a", "b", "c"]
POLICIES: dict[str, Any] = {
    "default": armlet.OccasionalOptimism(),
    "LinUCB": armlet.LinUCB(),
    "ThompsonSampling": armlet.ThompsonSampling(),
}
SEEDS = range(12)


def weighted_rows(seed: int, n: int) -> list[tuple[int, Float64, float, float]]:
    """Arms, a flag of four categories next to a small number, rewards, and weights that are no binary fractions."""
    rng, rows = np.random.default_rng(seed), []
    for _ in range(n):
        x = np.concatenate([np.eye(4)[rng.integers(4)], [0.01 * rng.normal()]])
        rows.append((int(rng.integers(3)), x, float(rng.normal()), float(rng.uniform(0.2, 4.0))))
    return rows


def is_taken(x: Float64) -> bool:
    return bool(x[0] + x[1] > 0.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_kernel_settles_the_columns_of_the_oracle(seed: int) -> None:
    state, plain = kernel.Statistics(3, 5, units="free"), Reference(3, 5, p=2.0, seed=1, units="free")
    rows = weighted_rows(seed, 30)
    taken = [(arm, x, reward, -weight) for arm, x, reward, weight in rows if is_taken(x)]
    for row in [*rows, *taken, *weighted_rows(seed + 100, 5)]:
        state.add(*row)
        plain.add(*row)
        for name in ("n", "A", "b", "sum_r", "sum_rr"):
            assert getattr(state, name).tolist() == getattr(plain, name).tolist(), name
    assert state.scores(rows[0][1]).tolist() == plain.scores(rows[0][1]).tolist()


@pytest.mark.parametrize("seed", SEEDS)
def test_kernel_settles_discounted_columns_of_the_oracle(seed: int) -> None:
    state = kernel.Statistics(3, 5, ridge="constant", value=0.7, units="free", half_life=50.0, weighted_widths=True)
    plain = FadingReference(3, 5, p=0.0, seed=1, ridge=Ridge.parse(0.7), units="free", half_life=50.0)
    rows = weighted_rows(seed, 30)
    for one in (state, plain):
        for t, row in enumerate(rows):
            one.add(*row, t=t)
        for t, (arm, x, reward, weight) in enumerate(rows):
            if is_taken(x):
                one.add(arm, x, reward, -weight, t=t)
        one.as_of(40)
    np.testing.assert_array_equal(state.records()[:, 0], plain.n)
    np.testing.assert_array_equal(state.widths(rows[0][1]), plain.widths(rows[0][1]))


@pytest.mark.parametrize("seed", SEEDS)
def test_model_of_pairs_settles_the_columns_of_its_oracle(seed: int) -> None:
    products = np.array([[1, 1], [5, 1]])
    models = [module.PairModel(5, 1, products, intercepts=True) for module in (kernel, reference)]
    rows = weighted_rows(seed, 30)
    for model in models:
        for key, x, reward, weight in rows:
            model.add(key, x, np.array([float(key)]), reward, weight)
        for key, x, reward, weight in rows:
            if is_taken(x):
                model.remove(key, x, np.array([float(key)]), reward, weight)
    mine, plain = models
    assert (mine.n, mine.sigma, mine.kappa) == (plain.n, plain.sigma, plain.kappa)
    assert mine.ridges.tolist() == plain.ridges.tolist()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("policy", POLICIES)
def test_forgotten_categories_leave_the_estimates_of_others(policy: str, seed: int) -> None:
    """Before, rounding of some 1e-17 was a deviation, and estimates for the category were off by a multiple."""
    bandit, rest = (armlet.Bandit(ARMS, 5, policy=POLICIES[policy], seed=1) for _ in range(2))
    rows = weighted_rows(seed, 40)
    decisions = [bandit.decide(x, eligible=[ARMS[arm]]) for arm, x, _, _ in rows]
    for decision, (_, _, reward, weight) in zip(decisions, rows, strict=True):
        bandit.learn(decision, reward, weight=weight)
    for decision, (_, x, reward, _) in zip(decisions, rows, strict=True):
        if is_taken(x):
            bandit.forget(decision, reward)
    seen, left = np.stack([row[1] for row in rows]), [row for row in rows if not is_taken(row[1])]
    later = [row for row in weighted_rows(seed + 100, 9) if not is_taken(row[1])]
    for new in (left, later):
        arms, X, rewards, weights = zip(*new, strict=True)
        for each in (rest,) if new is left else (rest, bandit):
            each.partial_fit(np.stack(X), [ARMS[arm] for arm in arms], rewards, weights=weights)
        expected = rest.predict_expectations(seen)
        np.testing.assert_allclose(bandit.predict_expectations(seen), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_forgotten_categories_leave_the_estimates_of_actions(seed: int) -> None:
    bandit, rest = (armlet.ActionBandit(5, 1, policy=armlet.SharedOptimism(), seed=1) for _ in range(2))
    rows, table = weighted_rows(seed, 40), armlet.ActionTable(ARMS, np.array([[0.0], [1.0], [3.0]]))
    decisions = [bandit.decide(x, table, eligible=[ARMS[arm]]) for arm, x, _, _ in rows]
    for decision, (_, _, reward, weight) in zip(decisions, rows, strict=True):
        bandit.learn(decision, reward, weight=weight)
    for decision, (_, x, reward, _) in zip(decisions, rows, strict=True):
        if is_taken(x):
            bandit.forget(decision, reward)
    arms, X, rewards, weights = zip(*(row for row in rows if not is_taken(row[1])), strict=True)
    z = [[[0.0], [1.0], [3.0]][arm] for arm in arms]
    rest.partial_fit({"x": X, "z": z, "arm": [ARMS[arm] for arm in arms], "reward": rewards, "weight": weights})
    for _, x, _, _ in rows:
        expected = rest.predict_expectations(x, table)
        np.testing.assert_allclose(bandit.predict_expectations(x, table), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_last_row_has_no_deviation(seed: int) -> None:
    rng = np.random.default_rng(seed)
    state, rest = (kernel.Statistics(2, 4, units="free") for _ in range(2))
    rows = [(i % 2, rng.normal(size=4) * [1.0, 1.0, 1e-3, 1.0], float(rng.normal())) for i in range(20)]
    for row in rows:
        state.add(*row)
    for row in rows[:-1]:
        state.add(*row, -1.0)
    rest.add(*rows[-1])
    np.testing.assert_allclose(state.scores(rows[0][1]), rest.scores(rows[0][1]), rtol=1e-9)


def test_an_emptied_arm_leaves_features_of_others() -> None:
    """The rounding of a huge row is gone with its arm: sums of other arms never met it."""
    state, rng = kernel.Statistics(2, 1, units="free"), np.random.default_rng(1)
    for i in range(40):
        state.add(i % 2, rng.normal(size=1), float(rng.normal()))
    before = state.A[1].tolist()
    for weight in (1.0, -1.0):
        state.add(0, np.array([1e8]), 0.0, weight)
    assert state.n.tolist() == [0.0, 20.0]
    assert state.A[1].tolist() == before


@pytest.mark.parametrize("seed", [60, 154])
def test_a_first_row_of_any_weight_can_be_saved(seed: int) -> None:
    """Squares of one reward about their mean are no less than nothing, whatever its weight leaves of rounding."""
    rng = np.random.default_rng(seed)
    for _ in range(200):
        bandit = armlet.Bandit(ARMS, 3, seed=1)
        bandit.partial_fit([rng.normal(size=3)], ["a"], [float(rng.normal())], weights=[float(rng.uniform(0.2, 4.0))])
        assert from_bytes(bandit.to_bytes()).digest() == bandit.digest()
        bandit.merge(armlet.Bandit(ARMS, 3, seed=2))


def test_an_empty_merge_weighs_the_rows_of_actions_again() -> None:
    """As it does those of arms: estimates are functions of the sums afterwards."""
    rng, Z = np.random.default_rng(3), np.array([[0.0], [1.0], [3.0]])
    bandit, whole = (armlet.ActionBandit(2, 1, policy=armlet.SharedOptimism(), seed=1) for _ in range(2))
    table, rows = armlet.ActionTable(ARMS, Z), []
    for _ in range(29):
        decision = bandit.decide(rng.normal(size=2), table)
        bandit.learn(decision, float(rng.normal()))
        rows.append((decision.x, Z[ARMS.index(str(decision.arm))], decision.arm, decision.reward))
    x, z, arms, rewards = zip(*rows, strict=True)
    whole.partial_fit({"x": x, "z": z, "arm": arms, "reward": rewards})
    bandit.merge(armlet.ActionBandit(2, 1, policy=armlet.SharedOptimism(), seed=2))
    expected = whole.predict_expectations([0.5, 1.0], table)
    np.testing.assert_allclose(bandit.predict_expectations([0.5, 1.0], table), expected, rtol=1e-9)
