"""exp, log and erfc of our own: held to mpmath, and to the kernel bit for bit."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from armlet import kernel
from armlet.reference import elementary
from armlet.types import Float64

DIGITS: Final = mpmath.workdps(40)
"""Of what is taken for the truth."""

Function = Callable[[float], float]
numbers = st.floats() | st.floats(-30.0, 30.0) | st.floats(0.0, 2.0)


def units_off(found: float, true: object) -> float:
    """Describe how far a value is from the truth, in units of its last place."""
    return float(abs(mpmath.mpf(found) - true) / mpmath.mpf(math.ulp(float(true))))  # type: ignore[arg-type]


@given(st.floats(-700.0, 709.78))
@example(-42.62747172706179)
def test_exp_is_within_two_units_of_the_last_place(u: float) -> None:
    with DIGITS:
        assert units_off(elementary.exp(u), mpmath.exp(u)) <= 2


@given(st.floats(min_value=0.0, exclude_min=True, allow_infinity=False) | st.floats(0.5, 2.0))
@example(1.0000017803673968)
def test_log_is_within_four_units_of_the_last_place(v: float) -> None:
    with DIGITS:
        assert units_off(elementary.log(v), mpmath.log(v)) <= 4


@given(st.floats(-30.0, 26.4) | st.floats(-1.0, 1.0))
@example(0.5)
@example(-0.5)
@example(26.4)
def test_erfc_is_within_six_units_of_the_last_place(x: float) -> None:
    with DIGITS:
        assert units_off(elementary.erfc(x), mpmath.erfc(x)) <= 6


def test_erfc_keeps_its_bound_on_a_fine_grid() -> None:
    """Where the polynomial is worst is not left to chance: 4,000 points on either side of where the formulas meet."""
    points = np.concatenate([np.linspace(-2.0, 2.0, 2001), np.linspace(2.0, 26.4, 2000)]).tolist()
    with DIGITS:
        assert max(units_off(elementary.erfc(x), mpmath.erfc(x)) for x in points) <= 6


@pytest.mark.parametrize(
    ("function", "in_kernel"),
    [
        (elementary.exp, kernel.exps),
        (elementary.log, kernel.logs),
        (elementary.erfc, kernel.erfcs),
    ],
)
def test_kernel_and_python_have_the_same_bits(function: Function, in_kernel: Callable[[Float64], Float64]) -> None:
    @given(st.lists(numbers, min_size=1, max_size=50))
    @example([0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, -700.0, -700.1, 709.78, 709.79, 26.4, 26.5, 0.5, -0.5])
    def check(values: list[float]) -> None:
        found = in_kernel(np.array(values))
        np.testing.assert_array_equal(found, np.array([function(value) for value in values]))

    check()


@given(st.lists(st.floats(-1000.0, 0.0), min_size=1, max_size=50))
def test_arrays_have_the_bits_of_single_numbers(u: list[float]) -> None:
    v = 1.0 - np.array(u)
    assert elementary.exps(np.array(u)).tolist() == [elementary.exp(one) for one in u]
    assert elementary.logs(v).tolist() == [elementary.log(one) for one in v.tolist()]


def test_beyond_their_range_they_end_as_the_functions_do() -> None:
    assert [elementary.exp(u) for u in (-700.1, -math.inf, 709.79, math.inf)] == [0.0, 0.0, math.inf, math.inf]
    assert [elementary.log(v) for v in (0.0, math.inf)] == [-math.inf, math.inf]
    assert [elementary.erfc(x) for x in (-math.inf, 26.41, math.inf)] == [2.0, 0.0, 0.0]
    assert all(math.isnan(f(math.nan)) for f in (elementary.exp, elementary.log, elementary.erfc))
    assert math.isnan(elementary.log(-1.0))
