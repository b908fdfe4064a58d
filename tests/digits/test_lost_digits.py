"""Sums that lose digits with a row that is taken back: the kernel is its numpy oracle to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from armlet import kernel
from armlet.inputs.settings import Units
from armlet.reference import pair_model as reference
from armlet.reference.schedule import Reference

BAD = [1e3, 1e8, 1.8e18]
WHERE = ["x", "reward", "weight"]


def is_lost(bad: float, where: str) -> bool:
    return bad > 1e8 or (bad == 1e8 and where != "weight")


def rows(seed: int, bad: float, where: str, at: int) -> list[tuple[int, Any, float, float]]:
    rng, out = np.random.default_rng(seed), []
    for i in range(12):
        x, reward, weight = rng.normal(size=2), float(rng.normal()), 1.0
        if i == at:
            x[1], reward, weight = (bad if where == "x" else x[1]), (bad if where == "reward" else reward), weight
            weight = bad if where == "weight" else weight
        out.append((int(rng.integers(3)), x, reward, weight))
    return out


@pytest.mark.parametrize("units", ["free", "as given"])
@pytest.mark.parametrize("at", [0, 7])
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("bad", BAD)
def test_kernel_empties_the_arms_of_the_oracle(bad: float, where: str, at: int, units: Units) -> None:
    plain, state = Reference(3, 2, p=2.0, seed=1, units=units), kernel.Statistics(3, 2, units=units)
    learned = rows(5, bad, where, at)
    for arm, x, reward, weight in [*learned, (*learned[at][:3], -learned[at][3]), *rows(6, 1.0, "x", 0)]:
        plain.add(arm, x, reward, weight)
        state.add(arm, x, reward, weight)
    for name in ("n", "A", "b", "sum_r", "sum_rr"):
        assert getattr(state, name).tolist() == getattr(plain, name).tolist(), name
    assert state.scores(learned[1][1]).tolist() == plain.scores(learned[1][1]).tolist()
    assert state.digits_lost.any() == is_lost(bad, where)


@pytest.mark.parametrize("at", [0, 7])
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("bad", BAD)
def test_model_of_pairs_drops_sums_as_its_oracle(bad: float, where: str, at: int) -> None:
    products = np.array([[1, 1], [2, 1]])
    models = [module.PairModel(2, 1, products, intercepts=True) for module in (kernel, reference)]
    learned = rows(5, bad, where, at)
    for model in models:
        for key, x, reward, weight in learned:
            model.add(key, x, np.array([float(key)]), reward, weight)
        key, x, reward, weight = learned[at]
        model.remove(key, x, np.array([float(key)]), reward, weight)
        for key, x, reward, weight in rows(6, 1.0, "x", 0):
            model.add(key, x, np.array([float(key)]), reward, weight)
    mine, plain = models
    assert (mine.n, mine.n_rows, mine.sigma, mine.kappa) == (plain.n, plain.n_rows, plain.sigma, plain.kappa)
    assert mine.ridges.tolist() == plain.ridges.tolist()
    assert mine.n_rows == (12 if is_lost(bad, where) else 23)


def test_rows_far_from_zero_lose_nothing() -> None:
    state, rng = kernel.Statistics(2, 1, units="free"), np.random.default_rng(1)
    learned = [(int(rng.integers(2)), 1e8 + rng.normal(size=1), float(rng.normal())) for _ in range(40)]
    for arm, x, reward in learned:
        state.add(arm, x, reward)
    for arm, x, reward in learned[:30]:
        state.add(arm, x, reward, -1.0)
    assert state.n.sum() == 10
    assert not state.digits_lost.any()


def test_many_rows_survive_one_that_leaves_four_digits() -> None:
    state, rng = kernel.Statistics(1, 1, units="free"), np.random.default_rng(1)
    for _ in range(2000):
        state.add(0, rng.normal(size=1), float(rng.normal()))
    state.add(0, np.array([3e7]), 0.0)
    state.add(0, np.array([3e7]), 0.0, -1.0)
    assert state.n.tolist() == [2000.0]
    assert 10 < state.digits_lost[0, 2] < 13


def test_reward_corrected_from_nonsense_empties_its_arm() -> None:
    state, rng = kernel.Statistics(2, 1, units="free"), np.random.default_rng(1)
    for i in range(40):
        state.add(i % 2, rng.normal(size=1), float(rng.normal()))
    state.add(0, np.array([0.5]), 1e20)
    state.correct(0, np.array([0.5]), 1e20, 1.0)
    assert state.n.tolist() == [0.0, 20.0]
    assert (state.digits_lost > 0).tolist() == [[False, True, False], [False, False, False]]
