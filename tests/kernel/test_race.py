"""Races and dials in the kernel: the arms and the sums of the numpy reference, to the last bit, on every processor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armlet import _kernel, kernel
from armlet.reference import race as reference
from armlet.types import Bool, Float64, Int64


@pytest.fixture(params=[0, 1, 2], ids=["any processor", "AVX2", "AVX-512"])
def level(request: pytest.FixtureRequest) -> Iterator[int]:
    """Run the code of each kind of processor up to this one's."""
    yield _kernel._use_level(request.param)
    _kernel._use_level(2)


def logged(rng: np.random.Generator, n: int, n_arms: int, share: float) -> tuple[Bool, Int64]:
    """Which arms are eligible, each with a share of chance, and which of them was played."""
    eligible, arms = rng.random((n, n_arms)) < share, rng.integers(n_arms, size=n)
    eligible[np.arange(n), arms] = True
    return eligible, arms


def same_race(X: Float64, eligible: Bool, arms: Int64, thetas: Float64, *, seed: int = 0) -> None:
    rng, n = np.random.default_rng(seed), len(X)
    u, w, certain = rng.random(n), 1.0 / rng.uniform(0.02, 1.0, n), rng.random(n) < 0.03
    sums, before = rng.random((4, len(thetas))), int(rng.integers(3))
    rest = (arms, w * u, w * (1.0 - u), certain, thetas, before, sums)
    found, known = kernel.race(X, eligible.ravel(), *rest)
    wanted, wanted_known = reference.race(X, eligible, *rest)
    assert found.tobytes() == wanted.tobytes()
    np.testing.assert_array_equal(known, wanted_known)


def same_dials(X: Float64, eligible: Bool, arms: Int64, thetas: Float64, dials: Float64, *, q: int = 3) -> None:
    columns = np.random.default_rng(q).standard_normal((len(X), q))
    found = kernel.sum_agreeing(X, eligible.ravel(), arms, columns, thetas, dials)
    wanted = reference.sum_agreeing(X, eligible, arms, columns, thetas, dials)
    assert found.tobytes() == wanted.tobytes()


SHAPES = [(1, 1, 1, 1), (33, 40, 5, 1), (70, 1, 20, 20), (64, 33, 4, 3), (31, 8, 9, 13), (100, 7, 3, 41), (0, 5, 3, 2)]


@pytest.mark.parametrize(("n", "J", "K", "d"), SHAPES)
def test_a_race_has_the_bits_of_the_reference_on_every_processor(level: int, n: int, J: int, K: int, d: int) -> None:
    assert level in (0, 1, 2)
    rng = np.random.default_rng([n, J, K, d])
    for share in (1.0, 0.6):
        eligible, arms = logged(rng, n, K, share)
        same_race(rng.standard_normal((n, d)), eligible, arms, rng.standard_normal((J, 1, K, d)))


@pytest.mark.parametrize(
    ("n", "J", "m", "K", "d", "D", "q"),
    [(100, 3, 2, 5, 10, 100, 10), (45, 2, 3, 3, 1, 33, 15), (33, 2, 1, 1, 2, 5, 20), (64, 1, 2, 8, 4, 1, 8)],
)
def test_dials_have_the_bits_of_the_reference_on_every_processor(
    level: int, n: int, J: int, m: int, K: int, d: int, D: int, q: int
) -> None:
    assert level in (0, 1, 2)
    rng = np.random.default_rng([n, J, m, K])
    for share in (1.0, 0.6):
        eligible, arms = logged(rng, n, K, share)
        thetas, dials = rng.standard_normal((J, m, K, d)), rng.standard_normal((D, m))
        same_dials(rng.standard_normal((n, d)), eligible, arms, thetas, dials, q=q)


def hard(kind: str, rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Numbers that float32 gets wrong, or that tie."""
    small, plain = rng.integers(-1, 2, shape).astype(np.float64), rng.standard_normal(shape)
    match kind:
        case "ties":
            return small
        case "zeros":
            return np.zeros(shape)
        case "all but ties":
            return small * (1.0 + rng.integers(-2, 3, shape) * 2.0**-52)
        case "close":
            return small + rng.integers(-3, 4, shape) * 1e-8
        case "huge":
            return plain * 10.0 ** rng.integers(-40, 40, shape)
        case "largest":
            return small * 1e40
        case "tiny":
            return plain * 1e-170
        case "least":
            return small * 5e-324
        case "uneven":
            return plain * 2.0 ** rng.integers(-30, 30, shape)
    return plain


KINDS = ["ties", "zeros", "all but ties", "close", "huge", "largest", "tiny", "least", "uneven", "plain"]


@pytest.mark.parametrize("contexts", KINDS)
@pytest.mark.parametrize("coefficients", KINDS)
def test_what_float32_cannot_tell_is_told_by_float64(contexts: str, coefficients: str) -> None:
    rng = np.random.default_rng([KINDS.index(contexts), KINDS.index(coefficients)])
    n, J, K, d = 64, 5, 6, 3
    eligible, arms = logged(rng, n, K, 0.8)
    X, thetas = hard(contexts, rng, (n, d)), hard(coefficients, rng, (J, 2, K, d))
    same_race(X, eligible, arms, np.ascontiguousarray(thetas[:, :1]))
    for kind in ("plain", "ties", "huge", "least", "largest"):
        same_dials(X, eligible, arms, thetas, hard(kind, rng, (6, 2)))


@given(
    n=st.integers(0, 70),
    J=st.integers(1, 3),
    m=st.integers(1, 4),
    K=st.integers(1, 9),
    d=st.integers(1, 9),
    D=st.integers(1, 70),
    kinds=st.tuples(*[st.sampled_from(KINDS)] * 3),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_rows_policies_and_dials(
    n: int, J: int, m: int, K: int, d: int, D: int, kinds: tuple[str, str, str], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    eligible, arms = logged(rng, n, K, 0.7)
    X, thetas, dials = hard(kinds[0], rng, (n, d)), hard(kinds[1], rng, (J, m, K, d)), hard(kinds[2], rng, (D, m))
    same_dials(X, eligible, arms, thetas, dials)
    same_race(X, eligible, arms, np.ascontiguousarray(thetas[:, :1]), seed=seed)


def test_arms_that_differ_by_one_bit_are_told_apart() -> None:
    """Two arms whose scores differ in the last bit of float64, the logged one now ahead, now behind."""
    X, arms = np.ones((40, 1)), np.tile([0, 1], 20)
    eligible, columns = np.ones(80, dtype=np.bool_), np.ones((40, 1))
    up = np.nextafter(1.0, 2.0)
    thetas = np.array([[[[1.0], [up]]], [[[up], [1.0]]], [[[1.0], [1.0]]]])
    found = kernel.sum_agreeing(X, eligible, arms, columns, thetas, np.ones((1, 1)))
    np.testing.assert_array_equal(found[:, 0, 0], [20.0, 20.0, 20.0])
    second = kernel.sum_agreeing(X, eligible, np.ones(40, dtype=np.int64), columns, thetas, np.ones((1, 1)))
    np.testing.assert_array_equal(second[:, 0, 0], [40.0, 0.0, 0.0])


def test_sums_go_on_where_the_rows_before_ended() -> None:
    rng = np.random.default_rng(1)
    eligible, arms = logged(rng, 90, 4, 0.8)
    X, thetas, u = rng.standard_normal((90, 3)), rng.standard_normal((35, 1, 4, 3)), rng.random(90)
    columns = (arms, u, 1.0 - u, np.zeros(90, dtype=np.bool_))
    whole, _ = kernel.race(X, eligible.ravel(), *columns, thetas, 0, np.zeros((4, 35)))
    sums = np.zeros((4, 35))
    for part in (slice(0, 41), slice(41, 90)):
        who, below, above, certain = (column[part] for column in columns)
        sums, _ = kernel.race(X[part], eligible[part].ravel(), who, below, above, certain, thetas, part.start, sums)
    assert sums.tobytes() == whole.tobytes()


def test_what_is_no_log_or_policy_is_refused() -> None:
    X, eligible, arms, columns = (
        np.ones((2, 1)),
        np.ones(4, dtype=np.bool_),
        np.zeros(2, dtype=np.int64),
        np.ones((2, 1)),
    )
    thetas, dials = np.ones((1, 1, 2, 1)), np.ones((1, 1))
    with pytest.raises(ValueError, match="arms holds a number that is none of an eligible arm"):
        kernel.sum_agreeing(X, eligible, arms + 2, columns, thetas, dials)
    with pytest.raises(ValueError, match="arms holds a number that is none of an eligible arm"):
        kernel.sum_agreeing(X, ~eligible, arms, columns, thetas, dials)
    with pytest.raises(ValueError, match="thetas holds a number that is not finite or beyond 1e40"):
        kernel.sum_agreeing(X, eligible, arms, columns, thetas * 2e40, dials)
    with pytest.raises(ValueError, match="X holds a number that is not finite or beyond 1e40"):
        kernel.sum_agreeing(X * np.nan, eligible, arms, columns, thetas, dials)
    with pytest.raises(ValueError, match="there must be a column and a dial"):
        kernel.sum_agreeing(X, eligible, arms, columns, thetas, dials[:0])
    with pytest.raises(ValueError, match="thetas must have one outcome"):
        kernel.race(X, eligible, arms, X[:, 0], X[:, 0], arms > 0, np.ones((1, 2, 2, 1)), 0, np.zeros((4, 1)))
