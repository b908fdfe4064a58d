"""The demonstration: its numbers against exact means, its words against its numbers, its files."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from armlet.simulation import demo
from armlet.simulation.demo import Demo, Estimate, Settings

SETTINGS = Settings(horizon=2000, runs=8, p=(12, 60), seed=3)


@pytest.fixture(scope="module")
def small() -> Demo:
    return demo.run(SETTINGS, say=lambda _: None)


def numbers(value: object) -> Iterator[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from numbers(item)
    elif isinstance(value, int | float):
        yield value


def test_uniform_regret_per_step_matches_its_exact_mean(small: Demo) -> None:
    # the regret of one step is one of 8 x 6 equally likely values, independent over steps and runs,
    # so the mean over runs * T steps has standard error sd / sqrt(runs * T); five of them
    losses = demo._losses(small.world, small.world.support())
    error = losses.std() / math.sqrt(SETTINGS.runs * SETTINGS.horizon)
    assert abs(small.findings[-1].final.value / SETTINGS.horizon - losses.mean()) < 5 * error


@pytest.mark.parametrize("index", [0, 1])
def test_explored_share_matches_the_schedule(small: Demo, index: int) -> None:
    # steps 1..p always explore; step t > p with probability q = p/t, of variance q (1 - q)
    q = np.minimum(1.0, SETTINGS.p[index] / np.arange(1, SETTINGS.horizon + 1))
    error = math.sqrt((q * (1 - q)).sum() / SETTINGS.runs) / SETTINGS.horizon
    assert abs(small.findings[index].explored_share - q.mean()) < 5 * error


def test_a_run_is_the_same_for_every_policy_and_unlike_the_other_runs(small: Demo) -> None:
    first, again, other = (demo._stream(small.world, SETTINGS, index) for index in (0, 0, 1))
    for position in range(3):
        assert np.array_equal(first[position], again[position])
        assert not np.array_equal(first[position], other[position])


def test_regret_never_falls_and_exploring_is_a_part_of_it(small: Demo) -> None:
    for found in small.findings:
        means = [point.value for point in found.regret]
        assert means == sorted(means)
        assert 0 < found.exploring.value <= found.final.value * (1 + 1e-12)
        assert found.final.low <= found.final.value <= found.final.high


def test_the_same_seed_repeats_every_figure_and_another_does_not(small: Demo) -> None:
    again = demo.run(SETTINGS, say=lambda _: None)
    assert again == small
    assert demo.run(replace(SETTINGS, seed=4), say=lambda _: None).findings != small.findings


def test_files_are_written_and_hold_finite_numbers(small: Demo, tmp_path: Path) -> None:
    paths = demo.save(small, tmp_path)
    assert [path.name for path in paths] == ["demo.svg", "demo.png", "demo.json"]
    record = json.loads(paths[2].read_text(encoding="utf-8"))
    assert record["settings"] == {"horizon": 2000, "runs": 8, "p": [12, 60], "seed": 3}
    assert record["checkpoints"][-1] == 2000
    assert all(len(found["regret"]) == len(record["checkpoints"]) for found in record["findings"])
    assert all(math.isfinite(value) for value in numbers(record))
    assert b"</svg>" in paths[0].read_bytes()
    assert paths[1].read_bytes().startswith(b"\x89PNG")
    assert all(path.stat().st_size > 5000 for path in paths)


def test_equal_demos_give_equal_files(small: Demo, tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    for one, other in zip(*(demo.save(small, folder) for folder in folders), strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_checkpoints_are_increasing_and_hold_the_doublings() -> None:
    for horizon in (100, 101, 100_000):
        steps = Settings(horizon=horizon).checkpoints()
        assert np.all(np.diff(steps) > 0)
        assert (steps[0], steps[-1]) == (1, horizon)
        assert {horizon // 4, horizon // 2} <= set(steps.tolist())


@pytest.mark.parametrize(("power", "expected"), [(0.0, 1.0), (0.5, math.sqrt(2)), (1.0, 2.0)])
def test_the_doubling_ratio_tells_the_rates_apart(power: float, expected: float) -> None:
    # log t adds log 2 in each half, t^power adds 2^power times as much in the later one: exact
    def regret(t: float) -> float:
        return t**power if power else math.log(t)

    late, early = (np.full(5, regret(1000 / k) - regret(500 / k)) for k in (1, 2))
    ratio = demo._estimate_ratio(late, early, demo._resamples(replace(SETTINGS, runs=5)))
    assert ratio is not None
    assert [ratio.value, ratio.low, ratio.high] == pytest.approx([expected] * 3, rel=1e-12)


def test_a_ratio_without_regret_to_divide_by_is_not_made_up() -> None:
    weights = demo._resamples(replace(SETTINGS, runs=3))
    assert demo._estimate_ratio(np.ones(3), np.array([0.0, 0.0, 1.0]), weights) is None
    assert demo.growth(None) == "not defined, too little regret after T/4"


def test_the_interval_covers_the_mean_as_often_as_a_bootstrap_of_20_should() -> None:
    # the percentile bootstrap of 20 gaussians covers slightly less than 95 %, about 93 %;
    # 400 trials have a standard error of 1.3 %: five of them below 93 %
    weights = demo._resamples(Settings())
    samples = np.random.default_rng(0).standard_normal((400, 20))
    intervals = [demo._estimate(sample, weights) for sample in samples]
    assert np.mean([found.low <= 0 <= found.high for found in intervals]) > 0.93 - 5 * 0.013


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
    assert demo.growth(Estimate((low + high) / 2, low, high)).endswith(f"], {words} growth")


def test_the_best_p_is_named_with_what_the_runs_can_tell(small: Demo) -> None:
    weights = demo._resamples(SETTINGS)
    first, second = small.findings[0], small.findings[1]
    by_run = np.arange(8.0)
    level = replace(first, final=Estimate(3.5, 0, 0), final_by_run=tuple(by_run))
    above = replace(second, final=Estimate(4.5, 0, 0), final_by_run=tuple(by_run + 1))
    noisy = replace(second, final=Estimate(3.6, 0, 0), final_by_run=tuple(by_run[::-1] + 0.1))
    assert "p = 12. p = 60 paid 1 [1 to 1] more: these runs tell the two" in demo._compare([above, level], weights)
    assert "these runs cannot tell the two apart" in demo._compare([level, noisy], weights)
    assert demo._compare([level], weights) == "Least mean regret at T: p = 12."


def test_the_report_gives_every_policy_its_numbers(small: Demo) -> None:
    text = "\n".join(demo.describe(small))
    for found in small.findings:
        assert f"{found.final:,.0f}" in text
        assert f"{found.policy}: {demo.growth(found.doubling_ratio)}" in text
    assert f"seed {SETTINGS.seed}" in text
