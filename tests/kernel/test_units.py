"""Free units: the kernel against numpy to the last bit, and what they promise."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armlet import kernel
from armlet.inputs.settings import Ridge, RidgeLike
from armlet.kernel import AutoTunedStatistics, Statistics
from armlet.policies import Algorithm1, ScheduledEpsilonGreedy
from armlet.policies.base import sums
from armlet.reference.schedule import Reference
from armlet.reference.units import rounded
from armlet.types import Float64
from support.examples import scaled
from support.streams import Stream, make_stream, streams

seeds = st.integers(0, 2**128 - 1)
ridges = st.sampled_from(["paper", "1/n", 0.3])
offsets = st.sampled_from([0.0, 3.0, 1000.0, 1025.0, -1e6, 1e8, 1e12])


def free(n_arms: int, dim: int, ridge: RidgeLike = 1.0, **settings: Any) -> Statistics:
    return sums(Ridge.parse(ridge), n_arms, dim, units="free", **settings)


def oracle(n_arms: int, dim: int, ridge: RidgeLike = 1.0) -> Reference:
    return Reference(n_arms, dim, 1.0, 0, ridge=Ridge.parse(ridge), units="free")


def assert_equal(fast: Statistics, slow: Reference, x: Float64) -> None:
    assert slow.free is not None
    for name in ("n", "A", "b", "sum_r", "sum_rr"):
        np.testing.assert_array_equal(getattr(fast, name), getattr(slow, name), err_msg=name)
    np.testing.assert_array_equal(fast.arrays()["units"], slow.free.values())
    np.testing.assert_array_equal(fast.standard(x[None])[0], slow.view(x))
    np.testing.assert_array_equal(fast.standard_estimates(), slow.estimates())
    np.testing.assert_array_equal(fast.scores(x), slow.scores(x))
    in_user_units = [slow.free.to_user(theta) for theta in slow.estimates()]
    np.testing.assert_array_equal(fast.estimates(), [slopes for slopes, _ in in_user_units])
    np.testing.assert_array_equal(fast.intercepts(), [intercept for _, intercept in in_user_units])


rows = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 7), st.sampled_from([0.0, 1.0, 1.0, 0.5, 3.0, -1.0])), max_size=40
)


@settings(max_examples=scaled(300))
@given(stream=streams(max_dim=9, max_arms=4), offset=offsets, level=offsets, ridge=ridges, rows=rows, data=st.data())
def test_kernel_equals_the_reference_whatever_rows_come_and_go(
    stream: Stream,
    offset: float,
    level: float,
    ridge: RidgeLike,
    rows: list[tuple[int, int, float]],
    data: st.DataObject,
) -> None:
    """Constant, duplicate, tiny, huge, far and late features; weights of 0, and rows that are taken back."""
    X, R = stream.contexts + offset, stream.rewards + level
    if data.draw(st.booleans(), "a constant feature"):
        X[:, 0] = offset
    if data.draw(st.booleans(), "a late feature"):
        X[:4, -1] = 0.0
    fast, slow = free(stream.n_arms, stream.dim, ridge), oracle(stream.n_arms, stream.dim, ridge)
    for arm, i, weight in rows:
        a, k = arm % stream.n_arms, i % len(X)
        fast.add(a, X[k], float(R[k, a]), weight)
        slow.add(a, X[k], float(R[k, a]), weight)
    assert_equal(fast, slow, X[0])
    if ridge == 0.3:
        np.testing.assert_array_equal(fast.widths(X[-1]), slow.widths(X[-1]))
        np.testing.assert_array_equal(fast.log_determinants(), slow.log_determinants())


@settings(max_examples=scaled(150))
@given(
    stream=streams(work=6_000),
    spare=st.floats(0, 20),
    seed=seeds,
    ridge=ridges,
    offset=offsets,
    policy_type=st.sampled_from([Algorithm1, ScheduledEpsilonGreedy]),
)
def test_kernel_plays_the_same_arms_as_the_reference(
    stream: Stream, spare: float, seed: int, ridge: RidgeLike, offset: float, policy_type: type[Algorithm1]
) -> None:
    policy = policy_type(p=stream.n_arms + spare, ridge=ridge, units="free")
    X, R = stream.contexts + offset, stream.rewards + offset
    slow = Reference(
        stream.n_arms, stream.dim, float(policy.p), seed, ridge=Ridge.parse(ridge), learns_from=policy.learns_from,
        units="free",
    )  # fmt: skip
    choices = slow.run(X, R)
    fast = kernel.rollout(X, R, start=policy.init(stream.n_arms, stream.dim), rule=policy.rule(), seed=seed)
    assert fast.arms.tolist() == [choice.arm for choice in choices]
    assert fast.propensities.tolist() == [choice.propensity for choice in choices]
    assert_equal(fast.statistics, slow, X[0])


@pytest.mark.parametrize("dim", [1, 3, 8, 20])
def test_estimates_are_those_of_standardised_rows(dim: int) -> None:
    """By numpy's own mean, deviation and solver, and not from sums."""
    stream = make_stream(40 * dim, dim, 3, seed=dim)
    rng = np.random.default_rng(dim)
    X, R = stream.contexts * 10.0 ** rng.integers(-3, 4, dim) + rng.normal(size=dim), 5.0 * stream.rewards + 40.0
    state, played = free(3, dim, "paper"), rng.integers(0, 3, len(X))
    for x, r, arm in zip(X, R, played, strict=True):
        state.add(int(arm), x, float(r[arm]))
    state.renew()
    paid = R[np.arange(len(X)), played]
    Z = np.column_stack([np.ones(len(X)), (X - X.mean(0)) / X.std(0)])
    for arm in range(3):
        mine = played == arm
        penalty = np.diag([1.0] + [np.sqrt(mine.sum())] * dim)
        theta = np.linalg.solve(Z[mine].T @ Z[mine] + penalty, Z[mine].T @ (paid[mine] - paid.mean()))
        np.testing.assert_allclose(state.standard_estimates()[arm], theta, rtol=1e-8, atol=1e-10)
        expected = paid.mean() + Z[:5] @ theta
        np.testing.assert_allclose(state.intercepts()[arm] + X[:5] @ state.estimates()[arm], expected, rtol=1e-9)
        np.testing.assert_allclose([state.base + state.scores(x)[arm] for x in X[:5]], expected, rtol=1e-9)


def learn(state: Statistics, stream: Stream, first: int = 0) -> None:
    for i, x in enumerate(stream.contexts):
        arm = (first + i) % stream.n_arms
        state.add(arm, x, float(stream.rewards[i, arm]))


@pytest.mark.parametrize("make", [free, lambda *a: AutoTunedStatistics(*a, units="free")])
def test_a_restored_state_goes_on_bit_for_bit_at_any_row(make: Any) -> None:
    stream = make_stream(60, 4, 3, seed=1)
    whole = make(3, 4)
    for i, x in enumerate(stream.contexts):
        twin = make(3, 4)
        twin.restore_arrays(whole.arrays())
        for state in (whole, twin):
            state.add(i % 3, x, float(stream.rewards[i, i % 3]))
        for name, array in whole.arrays().items():
            np.testing.assert_array_equal(array, twin.arrays()[name])
        np.testing.assert_array_equal(whole.scores(x), twin.scores(x))


def test_units_are_looked_at_when_rows_have_grown_by_a_tenth_and_not_when_anybody_asks() -> None:
    stream = make_stream(200, 2, 2, seed=3)
    quiet, asked = free(2, 2), free(2, 2)
    changes = []
    for i, x in enumerate(stream.contexts):
        before = quiet.arrays()["units"][1:]
        for state in (quiet, asked):
            state.add(i % 2, x, float(stream.rewards[i, i % 2]))
        asked.scores(x)
        if (quiet.arrays()["units"][1:] != before).any():
            changes.append(i + 1)
    assert changes[:10] == list(range(1, 11))
    late = [n for n in changes if n > 10]
    assert all(b >= 1.1 * a - 1e-9 and b < 1.1 * a + 1 + 1e-9 for a, b in itertools.pairwise(late))
    np.testing.assert_array_equal(quiet.arrays()["units"], asked.arrays()["units"])


def snapshots(X: Float64) -> list[int]:
    """Learn rows of one arm and give the rows after which means and deviations were others."""
    state, changes = free(1, X.shape[1]), []
    for i, x in enumerate(X):
        before = state.arrays()["units"][1:]
        state.add(0, x, 0.0)
        if (state.arrays()["units"][1:] != before).any():
            changes.append(i + 1)
    return changes


CLOCK = 10 + int(np.log(300) / np.log(1.1)) + 1
"""How often units are looked at in 3,000 rows by their number alone."""


def test_units_are_looked_at_when_a_constant_begins_to_vary_or_a_value_leaves() -> None:
    X = np.random.default_rng(1).normal(size=(500, 3))
    X[:, 0] = 0.1
    assert not {401, 451} & {*snapshots(X)}
    X[400, 0], X[450, 1] = 0.2, 100.0
    assert {401, 451} <= {*snapshots(X)}


@pytest.mark.parametrize("degrees", [1, 2, 3])
def test_heavy_tails_end_few_snapshots(degrees: int) -> None:
    """Each such end makes the squares of a feature add up to four times as much as before."""
    X = np.random.default_rng(degrees).standard_t(degrees, size=(3000, 4))
    squares = np.log(((X - X.mean(0)) ** 2).sum(0) / ((X[:10] - X[:10].mean(0)) ** 2).sum(0)) / np.log(4)
    assert len(snapshots(X)) <= CLOCK + np.ceil(squares).sum() + 4


def test_what_varies_by_less_than_its_digits_ends_no_snapshot() -> None:
    X = 0.1 + 1e-10 * np.random.default_rng(2).normal(size=(3000, 2))
    assert len(snapshots(X)) <= CLOCK + 2


def test_with_many_features_and_few_rows_units_are_looked_at_when_rows_have_doubled() -> None:
    """But for values that leave, of which there are none by chance among 70 normal ones after 12 rows."""
    changes = [n for n in snapshots(np.random.default_rng(3).normal(size=(400, 70))) if n > 12]
    worth = 71 * 71 / (6 * 72)
    for a, b in itertools.pairwise(changes):
        assert b == np.ceil(a + max(0.1 * a, min(a, worth)) - 1e-9)


@pytest.mark.parametrize(("offset", "level"), [(0.0, 0.0), (1e6, 1e8), (1e8, -1e6)])
def test_bandits_of_different_origins_merge_to_rounding(offset: float, level: float) -> None:
    stream = make_stream(300, 3, 2, seed=5)
    X, R = stream.contexts + offset, stream.rewards + level
    one, other, both = free(2, 3), free(2, 3), free(2, 3)
    X[0] -= 0.4 * offset  # another first row, another origin
    R[0] -= 0.4 * level
    for i, x in enumerate(X):
        for state in (both, one if i % 2 else other):
            state.add(i % 3 % 2, x, float(R[i, i % 3 % 2]))
    one.merge(other, [0, 1])
    both.renew()
    assert offset == level == 0.0 or (one.arrays()["units"][1:5] != other.arrays()["units"][1:5]).any()
    np.testing.assert_allclose(one.estimates(), both.estimates(), rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(one.n, both.n)


def test_a_merge_into_nothing_is_a_copy() -> None:
    stream, one, nothing = make_stream(50, 3, 2, seed=6), free(2, 3), free(2, 3)
    learn(one, Stream(stream.contexts + 5000.0, stream.rewards))
    one.renew()
    nothing.merge(one, [0, 1])
    for name, array in one.arrays().items():
        np.testing.assert_array_equal(nothing.arrays()[name], array)


def test_what_was_subtracted_is_gone() -> None:
    stream, state, early = make_stream(80, 3, 2, seed=7), free(2, 3), free(2, 3)
    learn(early, stream)
    learn(state, stream)
    later = make_stream(60, 3, 2, seed=8)
    learn(state, later)
    state.subtract(early, [0, 1])
    alone = free(2, 3)
    learn(alone, later)
    alone.renew()
    np.testing.assert_allclose(state.estimates(), alone.estimates(), rtol=1e-9, atol=1e-12)


def test_forgetting_all_rows_leaves_nothing_not_even_an_origin() -> None:
    state, rng = free(2, 3), np.random.default_rng(0)
    X = rng.normal(size=(20, 3)) + 1e5
    for i, x in enumerate(X):
        state.add(i % 2, x, 1e6 + i)
    for i in rng.permutation(20):
        state.add(int(i) % 2, X[i], 1e6 + float(i), -1.0)
    for array in state.arrays().values():
        assert not array.any()


def test_an_origin_is_no_copy_of_a_row() -> None:
    assert rounded(1024.0) == 0.0
    for value in (1025.0, 129_900.0, 1e8 + 1, -3.3e30):
        found = rounded(value)
        assert abs(found - value) <= abs(value) / 256
        assert np.frexp(found)[0] * 256 == int(np.frexp(found)[0] * 256)
    state = free(1, 2)
    state.add(0, np.array([123_456.789, 5.0]), 2e9)
    assert state.arrays()["units"][1:4].tolist() == [rounded(2e9), rounded(123_456.789), 0.0]


def test_a_given_origin_stays() -> None:
    state = free(1, 2, origin=(10.0, 2000.0, 0.0))
    state.add(0, np.array([1e6, 5.0]), 2e9)
    state.add(0, np.array([1e6, 5.0]), 2e9, -1.0)
    assert state.arrays()["units"][1:4].tolist() == [10.0, 2000.0, 0.0]
    with pytest.raises(ValueError, match="origin has 1 values; give 3"):
        free(1, 2, origin=(10.0,))
    with pytest.raises(ValueError, match="units are 'as given', which have no origin"):
        Statistics(1, 2, origin=np.zeros(3))


@pytest.mark.parametrize("offset", [1e4, 1e6, 1e8])
def test_slopes_are_right_far_from_zero(offset: float) -> None:
    rng, slopes = np.random.default_rng(9), np.array([1.0, -2.0, 0.5])
    X = rng.normal(size=(1000, 3))
    r = X @ slopes + 0.01 * rng.normal(size=1000)
    far, near = free(1, 3, "1/n"), free(1, 3, "1/n")
    for x, reward in zip(X, r, strict=True):
        near.add(0, x, float(reward))
        far.add(0, x + offset, float(reward + offset))
    np.testing.assert_allclose(far.estimates(), near.estimates(), atol=1e-4)


def test_powers_of_two_change_no_bit() -> None:
    stream = make_stream(300, 4, 3, seed=11)
    scales, worth = 2.0 ** np.array([3, -5, 0, 9]), 2.0**-7
    one, other = free(3, 4, 0.5), free(3, 4, 0.5)
    learn(one, stream)
    learn(other, Stream(stream.contexts * scales, stream.rewards * worth))
    for x in stream.contexts[:20]:
        np.testing.assert_array_equal(one.scores(x) * worth, other.scores(x * scales))
        np.testing.assert_array_equal(one.widths(x), other.widths(x * scales))
    assert one.noise() * worth == other.noise()
    np.testing.assert_array_equal(one.estimates() * worth / scales, other.estimates())


def test_equal_rewards_have_no_noise() -> None:
    stream = make_stream(100, 3, 2, seed=12)
    for reward in (0.0, 0.1, 100.1, 1e9 / 3):
        state = free(2, 3)
        for i, x in enumerate(stream.contexts):
            state.add(i % 2, x, reward)
        assert state.noise() == 0.0


def test_an_arm_of_which_nothing_is_known_is_expected_to_pay_the_mean() -> None:
    state = free(2, 1)
    for x, r in [(1.0, 8.0), (2.0, 12.0)]:
        state.add(0, np.array([x]), r)
    assert (state.base, state.scores(np.array([5.0]))[1]) == (10.0, 0.0)
    state.add_arm()
    assert state.intercepts().tolist()[1:] == [10.0, 10.0]


def test_removing_an_arm_looks_again() -> None:
    stream, state, alone = make_stream(90, 3, 3, seed=13), free(3, 3), free(2, 3)
    learn(state, stream)
    for i, x in enumerate(stream.contexts):
        if i % 3 != 1:
            alone.add(0 if i % 3 == 0 else 1, x, float(stream.rewards[i, i % 3]))
    alone.renew()
    state.remove_arm(1)
    np.testing.assert_array_equal(state.estimates(), alone.estimates())


@pytest.mark.parametrize(("place", "value"), [(0, -1.0), (2, np.nan), (9, 1e50), (-1, -2.0), (-1, 1e-70)])
def test_units_that_no_rows_can_have_are_refused(place: int, value: float) -> None:
    state = free(2, 3)
    arrays = state.arrays()
    arrays["units"][..., place] = value
    with pytest.raises(ValueError, match="not those of any rows"):
        state.restore_arrays(arrays)


def test_units_do_not_mix() -> None:
    with pytest.raises(ValueError, match="free and those of the other as given"):
        free(2, 3).merge(Statistics(2, 3), [0, 1])
    with pytest.raises(ValueError, match="units is 'metric'; choose 'free' or 'as given'"):
        Statistics(2, 3, units="metric")


def test_the_typical_noise_is_hardly_moved_by_one_noisy_arm() -> None:
    rng = np.random.default_rng(14)
    deviations, state = np.array([1.0, 1.0, 1.0, 1.0, 20.0]), free(5, 3)
    rows: list[list[tuple[Float64, float]]] = [[] for _ in range(5)]
    for i in range(5000):
        x, arm = rng.normal(size=3), i % 5
        r = float(x.sum() * arm + deviations[arm] * rng.normal())
        state.add(arm, x, r)
        rows[arm].append((x, r))
    state.renew()
    X, R = (np.array([row[i] for own in rows for row in own]) for i in (0, 1))
    Z = np.column_stack([np.ones(5000), (X - X.mean(0)) / X.std(0)]).reshape(5, 1000, 4)
    Y = (R - R.mean()).reshape(5, 1000)
    left = np.array(
        [((y - z @ np.linalg.solve(z.T @ z + np.eye(4), z.T @ y)) ** 2).sum() for z, y in zip(Z, Y, strict=True)]
    )
    pooled = left.sum() / (5000 - 20)
    own, weight = (left + 32 * pooled) / (996 + 32), 996 / (996 + 32)
    assert state.noise() == pytest.approx(np.sqrt(pooled), rel=1e-6)
    assert state.typical_noise() == pytest.approx(np.sqrt(5 * weight / (weight / own).sum()), rel=1e-6)
    assert state.noise() > 8
    assert state.typical_noise() < 2.2


def test_a_single_arm_has_the_noise_of_all() -> None:
    state = free(1, 2)
    learn(state, make_stream(50, 2, 1, seed=15))
    assert state.typical_noise() == pytest.approx(state.noise(), rel=0.1)
    assert free(2, 2).typical_noise() == 1.0
