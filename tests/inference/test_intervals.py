"""Intervals: they cover as often as they say, and what cannot have one is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import armlet
from armlet.inference import intervals as intervals
from armlet.types import Estimate
from support.curves import RUNS, TRIALS, allowed, covered, logarithmic, noisy


def test_a_paired_difference_covers_a_small_shift_in_noisy_environments() -> None:
    rng = np.random.default_rng(9)
    found: list[Estimate | None] = []
    for _ in range(TRIALS):
        environment = rng.gamma(1.0, 100.0, RUNS)  # much larger than the difference
        found.append(intervals.paired_difference(environment + 1 + rng.standard_normal(RUNS), environment, rng))
    low, high = allowed(RUNS)
    assert low <= covered(found, 1.0) <= high
    assert covered(found, 0.0) < 0.01  # 1 is 6.3 standard errors away


def test_the_band_is_the_interval_of_the_mean_at_every_checkpoint() -> None:
    curves = noisy(logarithmic, np.random.default_rng(10), RUNS)
    mean, low, high = intervals.band(curves, np.random.default_rng(11))
    alone = intervals.bootstrap(lambda a: a.mean(-1), curves[:, -1], rng=np.random.default_rng(12))
    assert mean[-1] == pytest.approx(alone.value, rel=1e-12)
    # an end of an interval from 2000 resamples has an error of about 2.7 % of the interval's half width; five
    # of each of the two that are compared
    half = (alone.high - alone.low) / 2
    assert [low[-1], high[-1]] == pytest.approx([alone.low, alone.high], abs=5 * math.sqrt(2) * 0.027 * half)


def test_a_higher_level_gives_a_wider_interval() -> None:
    runs = np.random.default_rng(12).standard_normal(30)
    wide, narrow = (
        intervals.bootstrap(lambda a: a.mean(-1), runs, rng=np.random.default_rng(0), level=level)
        for level in (0.99, 0.5)
    )
    assert wide.low < narrow.low < narrow.value < narrow.high < wide.high


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"level": 1.0}, "level is 1.0 but must lie between 0 and 1"),
        ({"resamples": 20}, "resamples is 20 but level 0.95 needs at least 40"),
        ({"statistic": lambda a: a.mean()}, "must reduce the last axis"),
        ({"statistic": lambda a: a.mean(-1) * math.nan}, "not a finite number in every resample"),
    ],
)
def test_a_bootstrap_that_cannot_work_is_refused(change: dict[str, object], message: str) -> None:
    given: dict[str, object] = {"statistic": lambda a: a.mean(-1), "rng": np.random.default_rng(0), **change}
    statistic = given.pop("statistic")
    with pytest.raises(ValueError, match=message):
        intervals.bootstrap(statistic, [1.0, 2.0, 3.0], **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("looks", ["fixed", "anytime"])
def test_discounted_rows_have_no_intervals(looks: Any) -> None:
    bandit = armlet.Bandit(["a", "b"], 2, policy=armlet.FixedEpsilon(epsilon=0.5, discount=0.98), seed=1)
    rng = np.random.default_rng(1)
    bandit.partial_fit(
        rng.normal(size=(300, 2)), rng.choice(["a", "b"], 300), rng.normal(size=300), design="randomized"
    )
    found = bandit.inference.intervals(interval=looks, noise_scale=1.0)
    assert "Rows are discounted" in str(found)
    assert "all looks" not in str(found)
    assert {row.why for row in bandit.inference.summary(noise_scale=1.0).coefficients} == {"rows are discounted"}


@pytest.mark.parametrize("x", [None, [0.5, 0.5]])
def test_rows_hardly_discounted_have_no_contrast(x: Any) -> None:
    bandit = armlet.Bandit(["a", "b"], 2, policy=armlet.FixedEpsilon(epsilon=0.5, half_life=10**13), seed=1)
    rng, rows = np.random.default_rng(1), 300
    bandit.partial_fit(
        rng.normal(size=(rows, 2)), rng.choice(["a", "b"], rows), rng.normal(size=rows), design="randomized"
    )
    found = bandit.inference.contrast("a", "b", x)
    assert (found.error, found.low, found.high) == (None, None, None)
    assert "Rows are discounted" in str(found)
