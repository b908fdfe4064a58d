"""Growth rates: exact on curves without noise, honest about their error on curves with it, and in words."""

from __future__ import annotations

import numpy as np
import pytest

from armlet.inference import intervals as growth
from armlet.inference.intervals import Pairing
from armlet.types import Estimate, Float64
from support.curves import GROWTH, RUNS, STEPS, TRIALS, allowed, covered, fourth_root, logarithmic, noisy, square_root


@pytest.mark.parametrize("name", GROWTH)
def test_a_doubling_ratio_is_exact_without_noise(name: str) -> None:
    found = growth.doubling_ratio(STEPS, np.tile(GROWTH[name](STEPS), (3, 1)), np.random.default_rng(0))
    assert found is not None
    assert [found.value, found.low, found.high] == pytest.approx([growth.RATES[name]] * 3, rel=1e-12)


@pytest.mark.parametrize("name", GROWTH)
def test_noisy_growth_is_named_rightly_as_often_as_its_interval_covers(name: str) -> None:
    """Size: the true ratio is inside as often as it should. Power: the other two are outside, always.

    With 40 runs a ratio's standard error is about 6 % of it: the nearest wrong rate is 4.8 errors away, at worst.
    An interval reaches 2 of them, and the remaining 2.8 are left in less than 1 % of the trials.
    """
    rng = np.random.default_rng(1)
    found = [growth.doubling_ratio(STEPS, noisy(GROWTH[name], rng, RUNS), rng) for _ in range(TRIALS)]
    low, high = allowed(RUNS)
    assert low <= covered(found, growth.RATES[name]) <= high
    wrong = [name_ for ratio in found for name_ in growth.classify(ratio) if name_ != name]
    assert len(wrong) <= TRIALS // 100


def test_growth_between_the_named_rates_is_given_no_name_once_runs_are_many() -> None:
    # 2^(1/4) = 1.19; with 400 runs the error is 2 %, so that 1 and 1.41 are 8 errors away
    ratio = growth.doubling_ratio(STEPS, noisy(fourth_root, np.random.default_rng(2), 400), np.random.default_rng(3))
    assert ratio is not None
    assert growth.classify(ratio) == ()
    assert ratio.low < 2**0.25 < ratio.high


def test_few_runs_leave_the_rate_open() -> None:
    """A test that always had an answer would have no size: 3 runs must often be consistent with several."""
    rng = np.random.default_rng(4)
    wide = [growth.doubling_ratio(STEPS, noisy(square_root, rng, 3), rng) for _ in range(100)]
    assert all(ratio is not None and ratio.low < ratio.high for ratio in wide)
    assert len({growth.classify(ratio) for ratio in wide}) > 1


def test_the_log_slope_covers_the_truth_in_its_unit() -> None:
    rng = np.random.default_rng(5)

    def regret(t: Float64) -> Float64:
        return 30 * np.log(t) + 5

    found: list[Estimate | None] = [
        growth.log_slope(STEPS, noisy(regret, rng, RUNS), rng, start=400, unit=15) for _ in range(TRIALS)
    ]
    low, high = allowed(RUNS)
    assert low <= covered(found, 2.0) <= high
    assert covered(found, 1.0) == 0  # power: a slope of p * gap alone is far outside


def test_the_log_slope_ignores_what_came_before_the_start() -> None:
    curves = np.tile(np.where(STEPS < 1000, 0.0, 7 * np.log(STEPS)), (2, 1))
    found = growth.log_slope(STEPS, curves, np.random.default_rng(0), start=1000)
    assert found.value == pytest.approx(7, rel=1e-12)


@pytest.mark.parametrize("pairing", ["paired", "independent"])
def test_the_power_slope_covers_the_exponent(pairing: Pairing) -> None:
    rng, settings = np.random.default_rng(6), np.array([5.0, 10.0, 100.0])
    found = []
    for _ in range(TRIALS):
        own, shared = rng.gamma(4.0, 0.25, (3, RUNS)), rng.gamma(4.0, 0.25, RUNS)
        columns = 3 * settings[:, None] * own * (shared if pairing == "paired" else 1.0)
        found.append(growth.power_slope(settings, list(columns), rng, pairing=pairing))
    low, high = allowed(RUNS)
    assert low <= covered(found, 1.0) <= high
    assert covered(found, 0.0) == 0


def test_pairing_takes_the_shared_environment_out_of_the_error() -> None:
    shared = np.random.default_rng(7).gamma(1.0, 1.0, 50)
    columns = [np.asarray(setting * shared) for setting in (1.0, 2.0, 4.0)]
    paired = growth.power_slope([1, 2, 4], columns, np.random.default_rng(8))
    apart = growth.power_slope([1, 2, 4], columns, np.random.default_rng(8), pairing="independent")
    assert paired is not None
    assert apart is not None
    assert paired.high - paired.low < 1e-9
    assert apart.high - apart.low > 0.1


def test_an_exponential_law_is_found_in_bits_per_unit() -> None:
    dims = np.array([3.0, 5.0, 8.0])
    columns = [np.full(4, 2.0 ** (-1.1 * dim)) for dim in dims]
    found = growth.power_slope(2.0**dims, columns, np.random.default_rng(0), pairing="independent", average="median")
    assert found is not None
    assert found.value == pytest.approx(-1.1, rel=1e-12)


def test_the_same_generator_gives_the_same_interval() -> None:
    curves = noisy(logarithmic, np.random.default_rng(11), 10)
    first, again, other = (growth.doubling_ratio(STEPS, curves, np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert first == again
    assert first != other


def test_a_ratio_without_regret_to_divide_by_is_not_made_up() -> None:
    flat = np.zeros((3, len(STEPS)))
    assert growth.doubling_ratio(STEPS, flat, np.random.default_rng(0)) is None
    assert growth.classify(None) == ()
    assert growth.power_slope([1, 2], [[0.0, 0.0], [1.0, 1.0]], np.random.default_rng(0)) is None


CURVES = np.tile(np.log(STEPS), (2, 1))


@pytest.mark.parametrize(
    ("steps", "curves", "message"),
    [
        (STEPS, CURVES[:1], "an interval needs at least 2 runs; got 1"),
        (STEPS, CURVES[0], r"must be \(runs, checkpoints\); got shape"),
        (STEPS[:-1], CURVES, r"steps has shape \(56,\) but curves has 57 checkpoints"),
        (STEPS[::-1], CURVES, "steps must increase"),
        (STEPS, np.where(STEPS > 10, np.nan, CURVES), "not finite"),
        (STEPS[STEPS < 99], CURVES[:, STEPS < 99], "growth needs at least 100 steps; run longer"),
        (STEPS[STEPS != 10_000], CURVES[:, STEPS != 10_000], "no checkpoint at 10000; keep T, T // 2 and T // 4"),
    ],
)
def test_curves_that_say_nothing_about_growth_are_refused(steps: Float64, curves: Float64, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        growth.doubling_ratio(steps, curves, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("start", "unit", "message"),
    [
        (30_000, 1.0, "start is 30000 but must lie between 0 and half the horizon, 20000"),
        (100, 0.0, "unit is 0.0 but must be positive"),
    ],
)
def test_a_slope_that_would_mean_nothing_is_refused(start: float, unit: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        growth.log_slope(STEPS, CURVES, np.random.default_rng(0), start=start, unit=unit)


def test_a_slope_needs_three_checkpoints() -> None:
    with pytest.raises(ValueError, match=r"only 2 checkpoints lie in \[50, 1000\]; a slope needs at least 3"):
        growth.log_slope([10, 100, 1000], np.ones((2, 3)), np.random.default_rng(0), start=50)


@pytest.mark.parametrize(
    ("settings", "columns", "message"),
    [
        ([1, 2], [[1.0, 2.0]], "there are 1 columns of outcomes"),
        ([0, 2], [[1.0, 2.0]] * 2, "needs positive values"),
        ([2, 2], [[1.0, 2.0]] * 2, "at least two of them different"),
        ([1, 2], [[1.0, 2.0], [1.0, 2.0, 3.0]], r"paired columns need as many runs each; got \[2, 3\]"),
    ],
)
def test_settings_that_give_no_exponent_are_refused(
    settings: list[float], columns: list[list[float]], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        growth.power_slope(settings, columns, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.5, 0.9, "slower than logarithmic"),
        (0.9, 1.1, "consistent with logarithmic"),
        (0.9, 1.5, "consistent with logarithmic or square-root"),
        (1.1, 1.3, "between logarithmic and square-root"),
        (1.5, 1.9, "between square-root and linear"),
        (1.9, 2.1, "consistent with linear"),
        (2.1, 2.2, "faster than linear"),
    ],
)
def test_words_about_growth_follow_the_interval(low: float, high: float, words: str) -> None:
    assert growth.growth(Estimate((low + high) / 2, low, high)).endswith(f"], {words} growth")


def test_a_ratio_that_is_not_defined_is_told() -> None:
    assert growth.growth(None) == "not defined, too little regret after T/4"
