"""A comparison: its numbers against exact means, its words against its numbers, its files."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from armlet import cli
from armlet.environments.paper import FigureA
from armlet.inference.intervals import growth
from armlet.parallel import make_pool
from armlet.simulation.compare import RegretComparison, compare, make_jobs, rates
from armlet.simulation.overview import Place, answer, rank
from armlet.simulation.results import Result
from armlet.simulation.run import simulate_all

P, HORIZON, RUNS, SEED = (12, 60), 2000, 8, 3
POLICIES = [*(f"Algorithm1:p={p}" for p in P), "Uniform"]


@pytest.fixture(scope="module")
def small() -> list[Result]:
    return simulate_all(make_jobs("FigureA", POLICIES, HORIZON, RUNS, SEED), engine="serial")


def report(results: list[Result]) -> list[str]:
    where = make_jobs("FigureA", POLICIES, HORIZON, RUNS, SEED)[0].environment
    return RegretComparison(where, rank(results), Path("report.html")).lines(theory=True)


def test_the_ranking_comes_first_and_theory_for_those_who_ask(small: list[Result]) -> None:
    where = make_jobs("FigureA", POLICIES, HORIZON, RUNS, SEED)[0].environment
    found = RegretComparison(where, rank(small), Path("report.html"))
    lines = found.lines()
    assert lines[0].lstrip().startswith("regret at T = 2,000")
    assert " ".join(lines[5:7]) in answer(found.places)
    assert "sigma_min" not in "".join(lines)
    assert "sigma_min" in "".join(found.lines(theory=True))


def test_the_json_has_what_the_terminal_says(small: list[Result]) -> None:
    where = make_jobs("FigureA", POLICIES, HORIZON, RUNS, SEED)[0].environment
    found = RegretComparison(where, rank(small), Path("report.html")).to_dict()
    assert {"environment", "horizon", "runs", "answer", "policies", "page", "figure"} == found.keys()
    assert found["answer"] == answer(rank(small))
    values = [each["regret"]["value"] for each in found["policies"]]
    assert values == [place.regret.value for place in rank(small)]
    assert found["policies"][0]["more_than_first"] == {"value": 0.0, "low": 0.0, "high": 0.0}


def test_uniform_regret_per_step_matches_its_exact_mean(small: list[Result]) -> None:
    # the regret of one step is one of 8 x 6 equally likely values, independent over steps and runs,
    # so the mean over runs * T steps has standard error sd / sqrt(runs * T); five of them
    environment = make_jobs("FigureA", POLICIES, HORIZON, RUNS, SEED)[0].environment
    assert isinstance(environment, FigureA)
    mu = environment.means(environment.support())
    losses = mu.max(axis=1, keepdims=True) - mu
    error = losses.std() / math.sqrt(RUNS * HORIZON)
    assert abs(small[-1].mean[-1] / HORIZON - losses.mean()) < 5 * error


@pytest.mark.parametrize("index", [0, 1])
def test_explored_share_matches_the_schedule(small: list[Result], index: int) -> None:
    # steps 1..p always explore; step t > p with probability q = p/t, of variance q (1 - q)
    q = np.minimum(1.0, P[index] / np.arange(1, HORIZON + 1))
    error = math.sqrt((q * (1 - q)).sum() / RUNS) / HORIZON
    assert abs(small[index].explored[:, -1].mean() / HORIZON - q.mean()) < 5 * error


def test_regret_never_falls_and_exploring_is_a_part_of_it(small: list[Result]) -> None:
    for found in small:
        assert (np.diff(found.regret, axis=1) >= 0).all()
        assert (found.exploring[:, -1] > 0).all()
        assert (found.exploring <= found.regret * (1 + 1e-12)).all()


def test_the_report_gives_every_policy_its_numbers_least_first(small: list[Result]) -> None:
    lines = report(small)
    ordered = sorted(small, key=lambda each: float(each.mean[-1]))
    for line, found in zip(lines[1:4], ordered, strict=True):
        assert line.lstrip().startswith(f"{found.mean[-1]:,.0f}")
        assert f"{found.explored[:, -1].mean() / HORIZON:.2%}" in line
    assert sum(line.endswith(" growth") for line in lines) == 3


def test_the_same_seed_repeats_every_word_and_another_does_not(small: list[Result]) -> None:
    again = simulate_all(make_jobs("FigureA", POLICIES, HORIZON, RUNS, SEED), engine="serial")
    assert report(again) == report(small)
    other = simulate_all(make_jobs("FigureA", POLICIES, HORIZON, RUNS, SEED + 1), engine="serial")
    assert report(other) != report(small)


def moved(result: Result, at_end: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Result:
    regret = result.regret.copy()
    regret[:, -1] = at_end
    return replace(result, curves=result.curves._replace(regret=regret))


def places(*results: Result) -> list[Place]:
    return [Place.of(result, results[0]) for result in results]


def test_the_best_is_named_with_what_the_runs_can_tell(small: list[Result]) -> None:
    by_run = np.arange(8.0)
    level, above, noisy = (
        moved(found, values)
        for found, values in ((small[0], by_run), (small[1], by_run + 1), (small[1], by_run[::-1] + 0.1))
    )
    sentence = answer(places(level, above))
    assert "Algorithm1(p=12) regrets least after" in sentence
    assert sentence.endswith("in the mean of 8 runs; Algorithm1(p=60) regrets 1 more: these runs tell the two apart.")
    assert answer(places(level, noisy)).endswith("these runs cannot tell the two apart.")
    assert "Algorithm1(p=12) regrets 3.5 [" in answer(places(level))


def test_growth_is_not_spoken_of_where_runs_are_too_short() -> None:
    short = simulate_all(make_jobs("FigureA", POLICIES[:1], 99, 2, SEED), engine="serial")
    assert rates(rank(short)) == []


def test_growth_is_told_in_words(small: list[Result]) -> None:
    assert rates(rank(small))[-1].startswith("  Uniform(): 2.0")
    assert growth(None) in rates(rank([moved_flat(small[0])]))[-1]


def moved_flat(result: Result) -> Result:
    return replace(result, curves=result.curves._replace(regret=np.zeros_like(result.regret)))


@pytest.mark.parametrize("arguments", [["--horizon", "50"], ["--horizon", "200", "--runs", "1"]])
def test_short_and_single_runs_are_reported_too(arguments: list[str], tmp_path: Path) -> None:
    words = ["compare", "--policy", "Uniform", "--engine", "serial", "--out", str(tmp_path), *arguments]
    assert cli.main(words) == 0
    assert "Uniform(" in (tmp_path / "report.html").read_text()


def test_equal_comparisons_draw_equal_figures(tmp_path: Path) -> None:
    words = ["compare", "--horizon", "300", "--runs", "2", "--policy", POLICIES[0], "--engine", "serial", "--out"]
    for name in ("a", "b"):
        assert cli.main([*words, str(tmp_path / name)]) == 0
    for name, start in (("regret.svg", b"<svg"), ("regret.png", b"\x89PNG")):
        one, other = ((tmp_path / folder / name).read_bytes() for folder in ("a", "b"))
        assert one == other
        assert one.startswith(start)
        assert len(one) > 5000


def test_terminal_and_page_show_the_same_intervals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", "--horizon", "400", "--runs", "6", "--engine", "serial", "--verbose", "--out", str(tmp_path)]
    assert cli.main([*words, *(word for policy in POLICIES for word in ("--policy", policy))]) == 0
    printed = capsys.readouterr().out
    page = (tmp_path / "report.html").read_text()
    intervals = re.findall(r"[\d.,-]+ \[[\d.,-]+ to [\d.,-]+\]", printed)
    assert len(intervals) >= 3 + 2 + 3  # regret, more than the first, doubling ratios
    for interval in intervals:
        assert interval in page
    assert page.index("Algorithm1(p=12)</th>") < page.index("Uniform()</th>")  # as ranked


def test_a_comparison_is_a_frame_a_figure_and_a_page(tmp_path: Path) -> None:
    jobs = make_jobs("FigureA", POLICIES, 200, 3, SEED)
    found = compare(jobs, engine=make_pool("serial"), out=tmp_path)
    frame = found.to_pandas()
    assert frame["policy"].tolist() == [place.name for place in found.places]
    assert (frame["regret_low"] <= frame["regret"]).all()
    assert frame["more_than_first"].isna().tolist() == [True, False, False]
    assert found.plot().axes[0].texts[0].get_text() == "Algorithm1(p=12)"
    found.save(tmp_path / "again.html")
    assert (tmp_path / "again.html").read_text() == found.page.read_text()
    assert str(found) == "\n".join(found.lines())
