"""The compiled log bonus is its numpy oracle to the last bit, and its best arm is that of the plain loop."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from scipy import stats

import armlet
from armlet import _kernel, kernel
from armlet.inputs.settings import Ridge, Units
from armlet.reference.choice import best_arms
from armlet.reference.evidence import by_evidence
from armlet.reference.log_bonus import Noise, PacedReference, TwoKinds, deviations
from armlet.theory.mostly_greedy import proved_radius
from armlet.types import Float64, Int64

NOISES: tuple[Noise, ...] = get_args(Noise)


def environment(n_arms: int, dim: int, steps: int, seed: int = 3) -> tuple[Float64, Float64]:
    """Features of different size, zero and kinship: nothing is isotropic."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(steps, dim)) * np.geomspace(0.1, 10, dim) + rng.normal(size=dim)
    X[:, -1] += X[:, 0]
    theta = rng.normal(size=(n_arms, dim)) / np.geomspace(0.1, 10, dim)
    return X, X @ theta.T + rng.normal(size=(steps, n_arms))


def reference(
    n_arms: int,
    dim: int,
    *,
    units: Units,
    noise: Noise,
    floor: float = 0.0,
    share: float = 0.2,
    ridge: float | None = None,
    proved: tuple[float, float] | None = None,
) -> PacedReference:
    return PacedReference(
        n_arms=n_arms,
        dim=dim,
        p=0.1 * n_arms,
        seed=7,
        ridge=Ridge("constant", ridge or 1.0),
        finds_ridge=ridge is None and units == "free",
        proved=proved,
        units=units,
        clock="evidence",
        learns_from="every step",
        noise=noise,
        floor=floor,
        share=share,
    )


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(
    ("units", "share", "ridge"), [("free", 1.0, None), ("free", 0.2, 0.5), ("free", 0.2, None), ("as given", 0.5, None)]
)
@pytest.mark.parametrize(("n_arms", "dim", "steps"), [(4, 3, 120), (1, 1, 60), (12, 9, 120), (2, 30, 70)])
def test_kernel_plays_the_same_steps_as_the_reference(
    n_arms: int, dim: int, steps: int, units: Units, share: float, ridge: float | None, noise: Noise
) -> None:
    """In 30 dimensions the ridge is found from few rows, and then from many."""
    X, rewards = environment(n_arms, dim, steps)
    policy = armlet.OccasionalOptimism(p=0.1 * n_arms, units=units, noise=noise, floor=0.1, share=share, ridge=ridge)
    played = kernel.rollout(X, rewards, start=policy.init(n_arms, dim), rule=policy.rule(), seed=7)
    plain = reference(n_arms, dim, units=units, noise=noise, floor=0.1, share=share, ridge=ridge)
    choices = plain.run(X, rewards)
    assert played.statistics.ridge == plain.ridge.value
    assert played.arms.tolist() == [choice.arm for choice in choices]
    assert played.propensities.tolist() == [choice.propensity for choice in choices]
    assert played.explored.tolist() == [choice.explored for choice in choices]
    assert any(choice.optimistic for choice in choices)
    state = played.statistics
    assert state.deviations(noise).tolist() == plain.deviations().tolist()
    assert state.widths(X[0]).tolist() == plain.widths(X[0]).tolist()
    assert state.scores(X[0]).tolist() == plain.scores(X[0]).tolist()


def test_kernel_plays_proved_bounds_as_the_reference_has_them() -> None:
    X, rewards = environment(3, 4, 150)
    policy = armlet.OccasionalOptimism(
        p=0.3, units="as given", ridge=2.0, share=0.5, radius="proved", noise_scale=1.0, theta_norm=3.0
    )
    played = kernel.rollout(X, rewards, start=policy.init(3, 4), rule=policy.rule(), seed=7)
    plain = reference(3, 4, units="as given", noise="pool", share=0.5, ridge=2.0, proved=(1.0, 3.0))
    assert played.arms.tolist() == [choice.arm for choice in plain.run(X, rewards)]
    said = policy.upper_bounds(played.statistics, 151, X[0])
    assert said.tolist() == (plain.scores(X[0]) + plain.radii(151) * plain.widths(X[0])).tolist()
    volumes = np.linalg.slogdet(plain.V / 2.0)[1]
    proved = [proved_radius(volume, 3, 151, noise_scale=1.0, ridge=2.0, theta_norm=3.0) for volume in volumes.tolist()]
    np.testing.assert_allclose(plain.radii(151), proved)


def test_an_arm_is_solved_for_the_rows_that_it_had_when_it_was_due() -> None:
    X, rewards = environment(3, 3, 405)
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


def late(n_arms: int, dim: int, rows: int) -> tuple[Float64, Int64, Float64, Float64]:
    """Rows with weights, a feature that begins to vary and one that leaves all it has been; most are of one arm."""
    (X, rewards), rng = environment(n_arms, dim, rows), np.random.default_rng(1)
    X[: rows // 2, 0], X[3 * rows // 4, 1] = 3.0, 1e4
    arms = rng.integers(n_arms, size=rows)
    arms[: 2 * rows // 3] = 0
    return X, arms, rewards[np.arange(rows), arms], rng.choice([0.5, 1.0, 1.0, 2.0], size=rows)


@pytest.mark.parametrize(("n_arms", "dim", "rows"), [(3, 4, 160), (2, 64, 20)])
def test_rows_that_leave_what_was_seen_are_learned_as_the_reference_has_it(n_arms: int, dim: int, rows: int) -> None:
    """The ridge among it."""
    state, plain = armlet.OccasionalOptimism().init(n_arms, dim), reference(n_arms, dim, units="free", noise="pool")
    for x, arm, reward, weight in zip(*late(n_arms, dim, rows), strict=True):
        for learner in (state, plain):
            learner.add(int(arm), x, float(reward), float(weight))
    assert plain.free is not None
    np.testing.assert_array_equal(state.arrays()["units"], plain.free.values())
    np.testing.assert_array_equal(state.standard_estimates(), plain.theta)
    np.testing.assert_array_equal(state.fits()[:, 0], plain.solved_n)


@pytest.mark.parametrize("units", ["free", "as given"])
@pytest.mark.parametrize(("n_arms", "dim", "rows"), [(3, 4, 300), (3, 66, 900)])
def test_rows_in_batches_are_learned_as_one_by_one(n_arms: int, dim: int, rows: int, units: Units) -> None:
    """Though an arm of a batch is solved for the last rows that it was due at, and looked at in between."""
    X, arms, rewards, weights = late(n_arms, dim, rows)
    policy = armlet.OccasionalOptimism(units=units)
    whole, single = (armlet.Bandit(range(n_arms), dim, policy=policy, seed=1) for _ in range(2))
    for start in range(0, rows, 130):
        batch = slice(start, start + 130)
        whole.partial_fit(X[batch], arms[batch], rewards[batch], weights=weights[batch])
        for x, arm, reward, weight in zip(X[batch], arms[batch], rewards[batch], weights[batch], strict=True):
            single.partial_fit(x[None], [int(arm)], [float(reward)], weights=[float(weight)])
        for name, array in single.state.arrays().items():
            np.testing.assert_array_equal(whole.state.arrays()[name], array)


def test_decisions_are_learned_together_as_one_by_one() -> None:
    X, rewards = environment(3, 4, 300)
    whole, single = (armlet.Bandit(range(3), 4, seed=1) for _ in range(2))
    for start in range(0, 300, 50):
        batch = slice(start, start + 50)
        many, each = ([bandit.decide(x) for x in X[batch]] for bandit in (whole, single))
        paid = [float(row[int(d.arm)]) for row, d in zip(rewards[batch], many, strict=True)]
        whole.learn_many(many, paid)
        for decision, reward in zip(each, paid, strict=True):
            single.learn(decision, reward)
        assert whole.to_bytes() == single.to_bytes()


def test_a_batch_is_solved_for_once() -> None:
    X, arms, rewards, _ = late(3, 66, 600)
    whole, single = (armlet.Bandit(range(3), 66, seed=1) for _ in range(2))
    before = whole.state.solves
    whole.partial_fit(X, arms, rewards)
    assert whole.state.solves == before  # not before anyone looks
    whole.predict(X[:1])
    assert whole.state.solves == before + 1
    for x, arm, reward in zip(X, arms, rewards, strict=True):
        single.partial_fit(x[None], [arm], [reward])
    np.testing.assert_array_equal(whole.state.arrays()["solved"], single.state.arrays()["solved"])


@pytest.mark.parametrize("dim", [3, 70])
def test_no_arm_is_solved_by_who_decides(dim: int) -> None:
    """But for the first look after rows were taken back, corrected or added many at a time."""
    X, rewards = environment(4, dim, 260)
    bandit = armlet.Bandit(range(4), dim, seed=1)
    for i, (x, row) in enumerate(zip(X, rewards, strict=True)):
        before = bandit.state.solves
        decision = bandit.decide(x)
        bandit.predict(x[None])
        assert bandit.state.solves == before
        paid = float(row[int(decision.arm) % 4])
        bandit.learn(decision, paid)
        if i == 100:
            bandit.add_arm(4)
        if i % 50 == 20:
            bandit.forget(decision, paid)
        if i % 50 == 40:
            bandit.correct(decision, paid, paid + 1.0)
        if i % 50 == 30:
            bandit.partial_fit(X[:20], [0, 1] * 10, rewards[:20, 0])
        if i % 50 in (20, 30, 40):
            bandit.predict(x[None])
    assert bandit.state.solves > 50


@pytest.mark.parametrize(("n_arms", "dim"), [(5, 2), (30, 12), (20, 40), (6, 64), (7, 66)])
def test_the_best_arm_is_that_of_the_plain_loop(n_arms: int, dim: int) -> None:
    X, rewards = environment(n_arms, dim, 1500, seed=n_arms)
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


def no_arms(arms: Int64) -> Int64:
    return arms[:0]


def law(share: float, rows: float, q: float = 1.0) -> TwoKinds:
    """Two arms that have so many rows, at step 5, where candidates do not matter."""
    exploring = by_evidence(np.full(2, rows), np.ones(2, dtype=np.bool_), 5, q=q)
    return TwoKinds(exploring, share, greedy=no_arms, optimistic=no_arms)


@pytest.mark.parametrize("rows", [3.0, 3.7, 10.0, 40.0])
def test_the_coin_explores_then_is_optimistic_then_greedy(rows: float) -> None:
    """One word decides all three; where every step is to be optimistic no coin is greedy, not even the last below 1."""
    last = 1.0 - 2.0**-53
    for q in np.geomspace(0.01, 1.0, 200):
        two, all_up = law(0.2, rows, float(q)), law(1.0, rows, float(q))
        e = two.law.rate
        assert not two.is_optimistic(np.nextafter(e, 0.0))
        assert two.is_optimistic(e) == all_up.is_optimistic(e) == (e < 1.0)
        assert not two.is_optimistic(e + (1.0 - e) * 0.2)
        assert all_up.is_optimistic(last) == (e <= last)
        assert not two.is_optimistic(last)


def test_optimistic_steps_are_a_share_of_those_that_do_not_explore_and_follow_from_the_seed() -> None:
    """Of 4,000 steps each: binomial tests at 1 in 1,000. Two seeds agree as often as two coins would."""
    X, kinds = np.random.default_rng(3).normal(size=(4000, 2)), []
    for seed in (1, 2):
        bandit = armlet.Bandit(range(3), 2, policy=armlet.OccasionalOptimism(floor=0.3), seed=seed)
        made = bandit.decide_many(X)
        assert not (made.explored & made.optimistic).any()
        rest = ~made.explored
        assert stats.binomtest(int(made.explored.sum()), 4000, made.exploration_rates.mean()).pvalue > 1e-3
        assert stats.binomtest(int(made.optimistic.sum()), int(rest.sum()), 0.2).pvalue > 1e-3
        kinds.append(made.optimistic)
    both = float(np.mean(kinds[0])) * float(np.mean(kinds[1]))
    assert stats.binomtest(int((kinds[0] & kinds[1]).sum()), 4000, both).pvalue > 1e-3


def test_one_noisy_arm_hardly_makes_the_others_noisy_by_empirical_bayes() -> None:
    residuals, n = np.array([100.0, 100.0, 100.0, 1e4]), np.full(4, 100.0)
    assert (deviations(residuals, n, "shrunk")[:3] < 2).all()
    assert (deviations(residuals, n, "max")[:3] > 4.9).all()
    for noise in NOISES:
        assert deviations(np.zeros(2), np.zeros(2), noise).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"p": -1.0}, "p is -1.0; it must be a number of at least 0"),
        ({"width_scale": np.nan}, "width_scale is nan"),
        ({"noise": "loud"}, "noise is 'loud'; choose 'pool', 'max' or 'shrunk'"),
        ({"cap": 0.0}, "cap is 0.0; it must lie in"),
        ({"theta_norm": -1.0}, "theta_norm is -1.0"),
        ({"floor": 2.0}, "floor is 2.0; it must lie in"),
        ({"share": 0.0}, "share is 0.0; it must lie in"),
    ],
)
def test_a_rule_refuses_what_makes_no_sense(change: dict[str, object], message: str) -> None:
    given = {"p": 1.0, "share": 0.5, "width_scale": 1.0, "noise": "max", "cap": 1.0, "floor": 0.0, **change}
    with pytest.raises(ValueError, match=message):
        kernel.LogBonus(**given)  # type: ignore[arg-type]
