"""The leaderboard on a small scale: who is in it, how they are paired and ranked, and `armlet compare`."""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from armlet import cli
from armlet.parallel import Seeds
from armlet.policies import POLICIES, default_policy
from armlet.simulation import compare
from armlet.simulation.lab import Lab
from armlet_lab.contests import leaderboard
from armlet_lab.contests.contenders import ALL, CONTENDERS, Contender
from armlet_lab.contests.contest import THEORY, Task
from armlet_lab.contests.costs import Cost
from armlet_lab.contests.leaderboard import Rank, Standing, relative
from armlet_lab.literature import POLICIES as LITERATURE
from armlet_lab.runner.arena import ARENAS, brief, draw_environment
from armlet_lab.runner.experiment import Findings, Role

TINY = leaderboard.Settings(arenas=("Figure (a)", "Section 7"), horizon=60, runs=2, trials=1, timed=(20, 40))


@cache
def found() -> Findings:
    return leaderboard.find(TINY, Lab(seed=5))


def test_everyone_who_competes_is_a_policy_and_who_does_not_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """But for the oracle, and for Contextual UCB, whose milliseconds a step have an experiment of their own."""
    known = brief(draw_environment("Figure (a)", Seeds(1)), 1000)
    entered = {type(policy).__name__ for each in ALL.values() for policy in each.grid(known)}
    expected = {*POLICIES, *LITERATURE, "RunningMinimumEpsilonGreedy"} - {"Oracle", "ContextualUCB"}
    assert entered <= expected
    assert len(entered) >= 30  # the leaderboard is no longer one if most are missing
    for name in sorted(expected - entered):
        with capsys.disabled():
            print(f"\nnotice: {name} is not in contests/contenders.py, so it is not ranked")


@pytest.mark.parametrize("arena", ARENAS)
def test_every_contender_that_fits_can_start_with_all_its_settings(arena: str) -> None:
    environment = draw_environment(arena, Seeds(3))
    known = brief(environment, 500)
    for name, contender in ALL.items():
        if contender.fits(known):
            made = (*contender.grid(known), *([contender.settle(known, None)] if contender.theory else []))
            for policy in made:
                policy.check(environment.n_arms, environment.dim, 0)
            assert len(set(map(repr, made[: len(contender.grid(known))]))) == len(contender.grid(known)), name


def test_tables_need_contexts_that_repeat() -> None:
    assert not CONTENDERS["UCB1, table"].fits(brief(draw_environment("gaussian 10 x 10", Seeds(1)), 100))
    assert CONTENDERS["UCB1"].fits(brief(draw_environment("gaussian 10 x 10", Seeds(1)), 100))


def test_no_theory_no_theory_constants() -> None:
    known = brief(draw_environment("Figure (a)", Seeds(1)), 1000)
    with pytest.raises(ValueError, match="there is no theory to take constants from"):
        CONTENDERS["greedy"].settle(known, None)


def test_both_claims_are_judged_and_everyone_is_in_the_tables() -> None:
    verdicts, sections = found().verdicts, found().sections
    assert [verdict.claim.key for verdict in verdicts] == [section.claim for section in sections]
    for table in (*sections[0].tables, *sections[1].tables):
        assert {row[0] for row in table.rows} == set(ALL)
    assert "Tuned, Algorithm 1 regrets" in sections[0].notes[0]


def test_sums_are_found_not_to_grow_and_a_table_is() -> None:
    cost = found().verdicts[1]
    statistics = {each.name: each for each in cost.statistics}
    for name in ("LinUCB", "OFUL", "Thompson sampling"):
        estimate = statistics[f"bytes in $t$, {name}"].estimate
        assert estimate is not None
        assert estimate.value == 0
    assert all(each.passed for each in cost.statistics if each.role is Role.CONTROL)


def test_policies_meet_the_same_problems() -> None:
    def regret(contender: str, choice: int) -> float:
        task = Task(
            seeds=Seeds(5), environment="Figure (a)", player=contender, choice=choice, horizon=50, first=2, runs=1
        )
        return float(leaderboard.play(task)["regret"][0])

    assert regret("uniform", 0) == regret("uniform", 0)
    # with a theory that asks for more steps than there are, Algorithm 1 explores all the time: no better than uniform
    assert regret("Algorithm 1", THEORY) > 0.5 * regret("uniform", 0)


def test_relative_regret_is_the_geometric_mean_of_paired_ratios() -> None:
    cost = Cost(1e-6, 8, {}, {})
    half, double = (Standing(tuned=np.full(3, value), theory=None, uniform=np.ones(3)) for value in (0.5, 2.0))
    rank = Rank("x", "floor", {"a": half, "b": double}, cost)
    both, one = relative(rank, "tuned", Seeds(1)), relative(rank, "tuned", Seeds(1), ["a"])
    assert both is not None
    assert one is not None
    assert (round(both.value, 12), one.value) == (1.0, 0.5)
    assert relative(rank, "theory", Seeds(1)) is None


def test_settings_of_a_contender_are_data() -> None:
    assert all(dataclasses.is_dataclass(each) and isinstance(each, Contender) for each in ALL.values())


def test_compare_ranks_policies_on_the_same_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["compare", "--environment", "FigureA", "--policy", "Uniform", "--policy", "LinUCB:alpha=1"]
    sizes = ["--horizon", "400", "--runs", "3", "--engine", "serial", "--out", str(tmp_path)]
    assert cli.main([*arguments, *sizes]) == 0
    out = capsys.readouterr().out
    assert out.index("LinUCB(alpha=1") < out.index("Uniform(")  # least regret first
    assert (tmp_path / "report.html").exists()
    assert (tmp_path / "results.parquet").exists()


def test_compare_says_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["compare", "--environment", "FigureA", "--policy", "LinUCB:beta=1"])
    assert "LinUCB has no setting 'beta'; did you mean 'delta'" in capsys.readouterr().err


def test_the_usual_policies_can_be_made() -> None:
    jobs = compare.make_jobs("FigureA", [], 100, 2, seed=1)
    assert len(jobs) == len(compare.USUAL)
    assert jobs[0].policy == default_policy()
