"""Widths, determinants and layers: against numpy's solvers, and against the reference to the last bit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armlet import _kernel, kernel
from armlet.inputs.settings import Ridge
from armlet.kernel import Optimism, Statistics
from armlet.reference.schedule import Reference
from support.examples import scaled
from support.streams import Stream, make_stream, streams


@pytest.fixture(params=[0, 1, 2], ids=["any processor", "AVX2", "AVX-512"])
def level(request: pytest.FixtureRequest) -> Iterator[int]:
    """Run the code of each kind of processor up to this one's."""
    used = _kernel._use_level(request.param)
    yield used
    _kernel._use_level(2)


def make_statistics(n_arms: int, dim: int, ridge: float = 1.0) -> Statistics:
    return Statistics(n_arms, dim, ridge="constant", value=ridge)


def filled(stream: Stream, ridge: float) -> tuple[Statistics, Reference]:
    """Return every row to one arm after the other."""
    state = make_statistics(stream.n_arms, stream.dim, ridge)
    slow = Reference(stream.n_arms, stream.dim, 1.0, 0, ridge=Ridge("constant", ridge))
    for i, (x, rewards) in enumerate(zip(stream.contexts, stream.rewards, strict=True)):
        arm = i % stream.n_arms
        state.add(arm, x, float(rewards[arm]))
        slow.add(arm, x, float(rewards[arm]))
    return state, slow


@settings(max_examples=scaled(150))
@given(stream=streams(max_dim=40, max_arms=6, work=3000), ridge=st.sampled_from([1.0, 1e-3, 250.0]), data=st.data())
def test_widths_are_the_references_to_the_last_bit(stream: Stream, ridge: float, data: st.DataObject) -> None:
    state, slow = filled(stream, ridge)
    _kernel._use_level(data.draw(st.integers(0, 2)))
    try:
        for x in (stream.contexts[0], stream.contexts[-1], np.zeros(stream.dim)):
            np.testing.assert_array_equal(state.widths(x), slow.widths(x))
        np.testing.assert_array_equal(state.log_determinants(), slow.log_determinants())
        np.testing.assert_array_equal(state.estimates(), slow.estimates())
    finally:
        _kernel._use_level(2)


@pytest.mark.parametrize("dim", [1, 2, 7, 8, 9, 16, 31, 33, 40, 100, 128, 129])
def test_widths_and_determinants_are_those_of_a_solver_that_is_not_ours(level: int, dim: int) -> None:
    assert level in (0, 1, 2)
    state, _ = filled(make_stream(6 * dim, dim, 3, seed=dim), 0.7)
    V, x = 0.7 * np.eye(dim) + state.A, np.random.default_rng(dim).normal(size=dim)
    expected = np.sqrt([x @ np.linalg.solve(one, x) for one in V])
    np.testing.assert_allclose(state.widths(x), expected, rtol=1e-10)
    np.testing.assert_allclose(state.log_determinants(), np.linalg.slogdet(V)[1], rtol=1e-12)


def test_an_arm_that_nobody_played_is_as_wide_as_the_ridge_says() -> None:
    state, x = make_statistics(2, 3, 4.0), np.array([2.0, 3.0, 6.0])
    np.testing.assert_allclose(state.widths(x), 7.0 / 2.0, rtol=1e-15)
    np.testing.assert_allclose(state.log_determinants(), 3 * np.log(4.0), rtol=1e-15)


@pytest.mark.parametrize("ridge", ["paper", "1/n"])
def test_widths_need_a_constant_ridge(ridge: str) -> None:
    state = Statistics(2, 3, ridge=ridge)
    with pytest.raises(ValueError, match="widths need a constant ridge"):
        state.widths(np.ones(3))
    with pytest.raises(ValueError, match="widths need a constant ridge"):
        kernel.rollout(np.ones((1, 3)), np.ones((1, 2)), start=state, rule=Optimism.constant(1.0), seed=1)


@settings(max_examples=scaled(60))
@given(stream=streams(max_dim=20, max_arms=5, work=2000), data=st.data())
def test_the_factor_is_a_function_of_the_sums(stream: Stream, data: st.DataObject) -> None:
    """Asked early or late, copied, restored, merged into nothing: the same sums give the same bits."""
    x, eager = stream.contexts[0], make_statistics(stream.n_arms, stream.dim)
    for i, row in enumerate(stream.contexts):
        if data.draw(st.booleans()):
            eager.widths(x)
        eager.add(i % stream.n_arms, row, 1.0)
    if data.draw(st.booleans()) and len(stream.contexts) > stream.n_arms:
        eager.add(0, stream.contexts[0], 1.0, -1.0)
    late = make_statistics(stream.n_arms, stream.dim)
    late.restore_arrays(eager.arrays())
    merged = make_statistics(stream.n_arms, stream.dim)
    merged.widths(x)
    merged.merge(late, list(range(stream.n_arms)))
    for other in (eager.copy(), late, late.copy(), merged):
        np.testing.assert_array_equal(other.widths(x), eager.widths(x))
        np.testing.assert_array_equal(other.log_determinants(), eager.log_determinants())
        np.testing.assert_array_equal(other.estimates(), eager.estimates())


def test_widths_follow_arms_that_come_and_go() -> None:
    stream = make_stream(60, 10, 4, seed=2)
    state, slow = filled(stream, 1.0)
    x, expected = stream.contexts[0], slow.widths(stream.contexts[0])
    state.widths(x)
    state.add_arm()
    np.testing.assert_array_equal(state.widths(x)[:4], expected)
    assert state.widths(x)[4] == pytest.approx(np.linalg.norm(x), rel=1e-15)
    state.remove_arm(1)
    np.testing.assert_array_equal(state.widths(x)[:3], expected[[0, 2, 3]])


def test_only_who_asks_for_widths_pays_for_them() -> None:
    state = make_statistics(10, 32)
    before = state.nbytes
    state.add(0, np.ones(32), 1.0)
    state.estimates()
    assert state.nbytes == before
    state.widths(np.ones(32))
    assert state.nbytes > 1.9 * before
    held = state.nbytes
    state.add(0, np.ones(32), 1.0)
    state.widths(np.ones(32))
    assert state.nbytes == held


def test_a_version_names_the_sums_of_an_arm() -> None:
    state, x = make_statistics(3, 2), np.ones(2)
    assert state.versions.tolist() == [0, 0, 0]
    state.add(1, x, 1.0)
    first = state.versions.tolist()
    assert first[0] == first[2] == 0
    assert first[1] > 0
    state.widths(x)
    state.estimates()
    assert state.versions.tolist() == first
    state.correct(1, x, 1.0, 2.0)
    state.add(2, x, 1.0)
    second = state.versions.tolist()
    assert second[0] == 0
    assert len({first[1], second[1], second[2]}) == 3
    state.remove_arm(0)
    assert state.versions.tolist() == second[1:]
    state.restore(state.records())
    assert not set(state.versions.tolist()) & set(second)


def test_a_policy_may_keep_a_note_on_the_statistics() -> None:
    state = make_statistics(1, 1)
    state.note = {"seen": 3}  # type: ignore[attr-defined]
    assert state.note == {"seen": 3}  # type: ignore[attr-defined]
