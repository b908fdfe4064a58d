"""The compiled log bonus is its numpy oracle to the last bit, and its best arm is that of the plain loop."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from scipy import stats

import armlet
from armlet import _kernel
from armlet.core import kernel
from armlet.core.choosing import best_arms
from armlet.core.optimism import Noise, PacedReference, deviations, is_optimistic
from armlet.core.ridge import Ridge
from armlet.core.types import Float64
from armlet.core.units import Units

NOISES: tuple[Noise, ...] = get_args(Noise)


def world(n_arms: int, dim: int, steps: int, seed: int = 3) -> tuple[Float64, Float64]:
    """Features of different size, zero and kinship: nothing is isotropic."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(steps, dim)) * np.geomspace(0.1, 10, dim) + rng.normal(size=dim)
    X[:, -1] += X[:, 0]
    theta = rng.normal(size=(n_arms, dim)) / np.geomspace(0.1, 10, dim)
    return X, X @ theta.T + rng.normal(size=(steps, n_arms))


def reference(
    n_arms: int, dim: int, *, units: Units, noise: Noise, floor: float = 0.0, share: float = 0.2
) -> PacedReference:
    return PacedReference(
        n_arms=n_arms,
        dim=dim,
        p=0.1 * n_arms,
        seed=7,
        ridge=Ridge("constant", 1.0),
        units=units,
        clock="evidence",
        learns_from="every step",
        noise=noise,
        floor=floor,
        share=share,
    )


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(("units", "share"), [("free", 1.0), ("free", 0.2), ("as given", 0.5)])
@pytest.mark.parametrize(("n_arms", "dim"), [(4, 3), (1, 1), (12, 9)])
def test_kernel_plays_the_same_steps_as_the_reference(
    n_arms: int, dim: int, units: Units, share: float, noise: Noise
) -> None:
    X, rewards = world(n_arms, dim, 120)
    policy = armlet.OccasionalOptimism(p=0.1 * n_arms, units=units, noise=noise, floor=0.1, share=share)
    played = kernel.rollout(X, rewards, start=policy.init(n_arms, dim), rule=policy.rule(), seed=7)
    plain = reference(n_arms, dim, units=units, noise=noise, floor=0.1, share=share)
    choices = plain.run(X, rewards)
    assert played.arms.tolist() == [choice.arm for choice in choices]
    assert played.propensities.tolist() == [choice.propensity for choice in choices]
    assert played.explored.tolist() == [choice.explored for choice in choices]
    state = played.statistics
    assert state.deviations(noise).tolist() == plain.deviations().tolist()
    assert state.widths(X[0]).tolist() == plain.widths(X[0]).tolist()
    assert state.scores(X[0]).tolist() == plain.scores(X[0]).tolist()


def test_an_arm_is_solved_for_the_rows_that_it_had_when_it_was_due() -> None:
    X, rewards = world(3, 3, 405)
    policy, plain = armlet.OccasionalOptimism(p=0.3), reference(3, 3, units="free", noise="pool")
    looked, blind, lags = policy.init(3, 3), policy.init(3, 3), []
    for i, (x, row) in enumerate(zip(X, rewards, strict=True)):
        for state in (looked, blind):
            state.add(i % 2, x, float(row[i % 2]))
        plain.add(i % 2, x, float(row[i % 2]))
        lags.append(looked.n[0] - looked.fits()[0, 0])  # a question, which changes nothing
    assert looked.fits()[:, 0].tolist() == blind.fits()[:, 0].tolist() == plain.solved_n.tolist()
    assert max(lags) == 3  # of some 200 rows: at 4 it is solved
    assert not any(lags[:50])  # one row is a fiftieth of fewer than fifty
    np.testing.assert_array_equal(looked.arrays()["solved"], blind.arrays()["solved"])


@pytest.mark.parametrize(("n_arms", "dim"), [(5, 2), (30, 12), (20, 40), (6, 64), (7, 66)])
def test_the_best_arm_is_that_of_the_plain_loop(n_arms: int, dim: int) -> None:
    X, rewards = world(n_arms, dim, 1500, seed=n_arms)
    policy = armlet.OccasionalOptimism(share=1.0)
    state, rule, rng = policy.init(n_arms, dim), policy.rule(), np.random.default_rng(1)
    for start in range(0, 1500, 300):
        state = kernel.rollout(
            X[start : start + 300], rewards[start : start + 300], start=state, rule=rule, seed=1, t=start
        ).statistics
        for x in rng.normal(size=(40, dim)) * np.geomspace(0.1, 10, dim):
            bounds = policy.upper_bounds(state, start + 300, x)
            every = np.ones(n_arms, dtype=np.bool_)
            law = policy.exploring(state, start + 300, every)
            chances = policy.probabilities(state, start + 300, x, every)
            best = best_arms(bounds, law.arms)
            expected = law.with_best(n_arms, lambda _: best)  # noqa: B023
            assert chances.tolist() == expected.tolist()
            one = kernel.rollout(x[None], np.zeros((1, n_arms)), start=state, rule=rule, seed=start + 5, t=start + 299)
            assert one.propensities[0] == expected[one.arms[0]]


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("units", ["free", "as given"])
@pytest.mark.parametrize("dim", [64, 66, 71])
def test_bounds_on_widths_are_above_them_and_close(dim: int, units: Units, level: int) -> None:
    """With features that go together, arms of few rows and of many, after rows were taken back, and long contexts."""
    rng, state = np.random.default_rng(dim), armlet.OccasionalOptimism(units=units).init(4, dim)
    X = rng.normal(size=(300, dim)) + rng.normal(size=(300, 1))
    for i, x in enumerate(X):
        state.add(i % 2 if i < 290 else 2, x, float(rng.normal()))
    state.add(0, X[0], 0.5, -1.0)
    _kernel._use_level(level)
    try:
        for scale in (1e-3, 1.0, 1e3):
            x = scale * rng.normal(size=dim)
            widths, bounds = state.widths(x), state.width_bounds(x)
            assert (widths <= bounds).all()
            assert (bounds <= 1.05 * widths).all()
        assert np.isinf(state.width_bounds(np.full(dim, 1e30))).all()  # beyond float32
    finally:
        _kernel._use_level(2)


def test_bounds_of_others_are_not_trusted() -> None:
    policy, x = armlet.OccasionalOptimism(), np.linspace(-1, 1, 64)
    state, loaded = policy.init(2, 64), policy.init(2, 64)
    for reward in (0.0, 1.0, 2.0):
        state.add(0, (1 + reward) * x, reward)
    assert np.isfinite(state.width_bounds(x)).all()
    loaded.restore_arrays(state.arrays())
    assert np.isinf(loaded.width_bounds(x)).all()
    assert loaded.widths(x).tolist() == state.widths(x).tolist()


def test_optimistic_steps_are_a_share_and_as_irregular_as_coins() -> None:
    """Of 20,000 steps, and of those with any remainder by 2 to 12: chi-square at 1 in 1,000."""
    t = np.arange(1, 20_001)
    found = np.array([is_optimistic(int(step), 0.2) for step in t])
    assert stats.binomtest(int(found.sum()), len(t), 0.2).pvalue > 1e-3
    for period in range(2, 13):
        counts = np.array([[found[t % period == r].sum(), (~found[t % period == r]).sum()] for r in range(period)])
        assert stats.chi2_contingency(counts).pvalue > 1e-3
    assert all(is_optimistic(int(step), 1.0) for step in t)


def test_one_noisy_arm_does_not_make_the_others_noisy_by_the_median() -> None:
    residuals, free = np.array([100.0, 100.0, 100.0, 1e4]), np.full(4, 100.0)
    assert deviations(residuals, free, "median")[:3].tolist() == [1.0, 1.0, 1.0]
    assert (deviations(residuals, free, "max")[:3] > 5).all()
    for noise in NOISES:
        assert deviations(np.zeros(2), np.zeros(2), noise).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"p": -1.0}, "p is -1.0; it must be a number of at least 0"),
        ({"width_scale": np.nan}, "width_scale is nan"),
        ({"noise": "loud"}, "noise is 'loud'; choose 'pool', 'max' or 'median'"),
        ({"floor": 2.0}, "floor is 2.0; it must lie in"),
        ({"share": 0.0}, "share is 0.0; it must lie in"),
    ],
)
def test_a_rule_refuses_what_makes_no_sense(change: dict[str, object], message: str) -> None:
    given = {"p": 1.0, "share": 0.5, "width_scale": 1.0, "noise": "max", "floor": 0.0, **change}
    with pytest.raises(ValueError, match=message):
        kernel.LogBonus(**given)  # type: ignore[arg-type]
