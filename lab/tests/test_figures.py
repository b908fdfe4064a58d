"""Figures (a) and (b): tiny runs of both experiments, whose structure and controls must be those of the real ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from armlet.environments.environment import FiniteEnvironment
from armlet.environments.paper import FigureA, FigureB
from armlet.kernel import Simulated
from armlet.parallel import Seeds
from armlet.policies import Algorithm1
from armlet.simulation.lab import Lab
from armlet.simulation.play import play_table, table_seeds
from armlet.types import Int64
from armlet_lab.paper import figure_a, figure_b
from armlet_lab.runner.experiment import Experiment, Finding, Findings, Outcome, Role, Statistic, Verdict
from armlet_lab.runner.page import render
from armlet_lab.runner.verdicts import to_json

SEED = 5
TINY_A = figure_a.Settings(thetas=3, runs=40, long_runs=40, long_p_runs=3, long_p=1200)
TINY_B = figure_b.Settings(thetas=20, runs=3, fixed=(60, 120))
TINY_POLICY = Algorithm1(p=60)


@cache
def found_a() -> Findings:
    return figure_a.find(TINY_A, Lab(seed=SEED))


@cache
def found_b() -> Findings:
    return figure_b.find(TINY_B, Lab(seed=SEED))


def play_runs(
    table: FiniteEnvironment, policy: Algorithm1, steps: Int64, runs: int, environment: int = 0
) -> list[Simulated[Any]]:
    pairs = [table_seeds(Seeds(1), environment, run) for run in range(runs)]
    return [play_table(table, policy, steps, pair, jumps=True) for pair in pairs]


def by_role(verdict: Verdict, role: Role) -> list[Statistic]:
    return [each for each in verdict.statistics if each.role is role]


@pytest.mark.parametrize(("find", "keys"), [(found_a, ["fig-a", "fig-a-decades"]), (found_b, ["fig-b"])])
def test_every_verdict_has_its_section_and_the_page_takes_them(find: Callable[[], Findings], keys: list[str]) -> None:
    found = find()
    assert [verdict.claim.key for verdict in found.verdicts] == keys
    assert [section.claim for section in found.sections] == keys
    assert all(section.pictures for section in found.sections)
    page = render("Figures", found.sections, found.verdicts, {"seed": SEED})
    assert all(f'id="claim-{key}"' in page for key in keys)


def test_both_experiments_share_a_page() -> None:
    a, b = found_a(), found_b()
    page = render("Figures", a.sections + b.sections, a.verdicts + b.verdicts, {})
    assert page.count("<svg") == 6


def test_the_same_seed_gives_the_same_bytes() -> None:
    lab = Lab(seed=SEED)
    for first, again in ((found_a(), figure_a.find(TINY_A, lab)), (found_b(), figure_b.find(TINY_B, lab))):
        assert to_json(first.verdicts) == to_json(again.verdicts)
        assert first.sections == again.sections


def test_another_seed_gives_other_numbers() -> None:
    (other,) = figure_b.find(TINY_B, Lab(seed=SEED + 1)).verdicts
    assert to_json([other]) != to_json(found_b().verdicts)
    assert figure_a.select(Seeds(SEED), 5) != figure_a.select(Seeds(SEED + 1), 5)


def test_too_little_exploration_fails_the_check_of_figure_a() -> None:
    for verdict in found_a().verdicts:
        controls = by_role(verdict, Role.CONTROL)
        assert [each.name.partition(",")[0] for each in controls] == ["doubling ratio", "slope / ($p$ gap)"]
        for each, criterion in zip(controls, (figure_a.RATIO, figure_a.SLOPE), strict=True):
            assert "p = 24" in each.name
            assert each.passed
            assert each.estimate is not None
            assert criterion.judge(each.estimate) is Finding.FAILS


def test_figure_a_judges_a_ratio_and_a_slope_for_every_theta() -> None:
    here, long = found_a().verdicts
    for verdict in (here, long):
        for role in (Role.WRITTEN, Role.READING):
            names = [each.name for each in by_role(verdict, role)]
            assert sum(name.startswith("doubling ratio") for name in names) == TINY_A.thetas
            assert sum(name.startswith("slope") for name in names) == TINY_A.thetas
    looked_at = figure_a.select(Seeds(SEED), TINY_A.thetas)[-1] + 1
    named = {each.name.rpartition(", ")[2] for each in by_role(here, Role.WRITTEN)}
    assert named == {f"instance {number} of {looked_at}" for number in (1, 2, 3)}
    assert all("p = 600" in each.name for each in by_role(here, Role.READING))


def test_exploring_enough_makes_the_line_straight() -> None:
    # arms 3 apart, so p = 1200 leaves no mistakes: over [T/4, T] a run explores p log 4 = 1,660 times, and the loss of
    # a random arm spreads about as much as its mean, so that the mean of 12 runs is off by 1.4 / sqrt(20,000) = 1 %
    table = FigureA(theta=((3.0, 0.0, 0.0), (0.0, 3.0, 0.0), (0.0, 0.0, 3.0))).table()
    assert table is not None
    steps = np.array([25_000, 100_000])
    early, late = np.mean([run.regret for run in play_runs(table, Algorithm1(p=1200), steps, 12)], axis=0)
    assert abs((late - early) / (1200 * table.gap * np.log(4)) - 1) < 0.04


def test_the_rule_selects_the_first_theta_whose_arms_are_apart() -> None:
    chosen = figure_a.select(Seeds(SEED), 3)
    ease = [figure_a._ease(figure_a._draw(Seeds(SEED), index)) for index in range(chosen[-1] + 1)]
    assert chosen == [index for index, value in enumerate(ease) if value >= figure_a.EASY]


def test_a_run_depends_on_its_environment_and_number_not_on_how_many_there_are() -> None:
    table, steps, policy = FigureB.draw(np.random.default_rng(0)).table(), np.array([30, 1000]), TINY_POLICY
    two, three, other = (
        play_runs(table, policy, steps, runs, environment=environment) for environment, runs in ((0, 2), (0, 3), (1, 2))
    )
    for few, many in zip(two, three[:2], strict=True):
        np.testing.assert_array_equal(few.regret, many.regret)
        np.testing.assert_array_equal(few.statistics.n, many.statistics.n)
    assert (other[0].regret != two[0].regret).any()


def test_the_rows_of_the_arms_are_the_steps_that_explored() -> None:
    # within the warm-up every step explores, each arm in turn
    table, steps = FigureB.draw(np.random.default_rng(0), n_arms=6).table(), np.array([30, 60])
    for run in play_runs(table, TINY_POLICY, steps, 2):
        np.testing.assert_array_equal(run.statistics.n, np.full(6, 10))
        np.testing.assert_array_equal(run.exploring, run.regret)


def test_a_task_of_figure_a_says_all_there_is_to_know() -> None:
    task = figure_a.Task(seeds=Seeds(SEED), theta=0, p=24.0, horizon=1_000, runs=2)
    found, again = figure_a.play(task), figure_a.play(task)
    assert found.keys() == {"regret", "exploring"}
    for name, array in found.items():
        np.testing.assert_array_equal(array, again[name])


def test_figure_b_judges_fixed_p_as_written_and_growing_p_as_our_reading() -> None:
    (verdict,) = found_b().verdicts
    written, reading = by_role(verdict, Role.WRITTEN), by_role(verdict, Role.READING)
    assert [each.name for each in written] == [
        f"{what}, $p = {p}$"
        for p in (60, 120)
        for what in ("$R(I = 10) - R(I = 5)$", "$R(I = 100) - R(I = 10)$", "exponent of $I$")
    ]
    assert all(each.name.endswith("$p = 20 I$") for each in reading)
    assert [each.criterion.relation for each in reading] == ["above", "above", "contains"]


def test_figure_b_finds_proportional_growth_where_it_is_known_to_be() -> None:
    (verdict,) = found_b().verdicts
    (control,) = by_role(verdict, Role.CONTROL)
    assert control.passed
    assert verdict.outcome is not Outcome.HOLDS  # exploring costs the same at fixed p, and a rare context little


def test_figure_b_says_that_the_caption_is_wrong_and_what_exploiting_cost() -> None:
    (section,) = found_b().sections
    assert any("i.i.d." in note and "wrong" in note for note in section.notes)
    assert sum(note.startswith("Paid while exploiting") for note in section.notes) == 3


@pytest.mark.parametrize(("experiment", "name"), [(figure_a.EXPERIMENT, "fig-a"), (figure_b.EXPERIMENT, "fig-b")])
def test_experiments_have_the_name_of_their_first_claim(experiment: Experiment, name: str) -> None:
    assert experiment.name == name
    assert experiment.title
