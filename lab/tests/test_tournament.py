"""The tournament: families are what they say, rewards come when they should, and verdicts follow from numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import armlet
from armlet.parallel import Seeds
from armlet.simulation.play import InPython, draw, run_streams
from armlet.types import Float64, Reward
from armlet_lab.contests.contest import Task
from armlet_lab.contests.problems import FAMILIES, MADE, WITH_HORIZON, draw_problem
from armlet_lab.contests.tournament import ALL, BEFORE, SHORT, TournamentCell, judge, play, regret
from armlet_lab.runner.experiment import Outcome

SEEDS = Seeds(1)


@pytest.mark.parametrize("family", ALL)
def test_rewards_spread_about_their_means(family: str) -> None:
    environment = draw_problem(family, SEEDS, 0, 4000)
    X = environment.contexts(np.random.default_rng(1), 4000)
    noise = environment.rewards(np.random.default_rng(2), X) - environment.means(X)
    assert X.shape == (4000, environment.dim)
    # five standard errors of a mean
    assert (np.abs(noise.mean(axis=0)) < 5 * noise.std(axis=0) / np.sqrt(4000) + 1e-9).all()


def task(family: str, name: str = "LinUCB", horizon: int = 300) -> Task:
    return Task(seeds=SEEDS, environment=family, player=name, horizon=horizon)


def test_a_delay_leaves_a_bandit_without_rewards_until_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    learned: list[tuple[int, int]] = []

    class Watched(armlet.Bandit):
        def learn(self, decision: armlet.Decision, reward: Reward, *, weight: float = 1.0) -> None:
            learned.append((self.t, decision.t))
            super().learn(decision, reward, weight=weight)

    for where in ("armlet.simulation.play.Bandit", "armlet_lab.contests.problems.Bandit"):
        monkeypatch.setattr(where, Watched)
    for family, delays in (("delay 1,000", {1000}), ("blocks of 1,000", set(range(1000)))):
        learned.clear()
        regret(armlet.LinUCB(), task(family, horizon=2500), 0)
        assert {now - then for now, then in learned} == delays
        assert len(learned) == {"delay 1,000": 1500, "blocks of 1,000": 2000}[family]


@pytest.mark.parametrize("family", ["one noisy arm", "at once", "Figure (a)"])
def test_a_prompt_family_is_played_in_the_kernel_as_a_loop_would(family: str) -> None:
    environment, one = draw_problem(family, SEEDS, 0, 500), task(family, horizon=500)
    policy, (contexts, noise, seed) = armlet.OccasionalOptimism(), run_streams(SEEDS, family, 0)
    loop, total = InPython(environment, policy, seed), 0.0
    for _, X, rewards, losses in draw(environment, contexts, noise, 500, 4096):
        total += float(losses[np.arange(len(X)), loop.play(X, rewards)[0]].sum())
    assert regret(policy, one, 0) == total


@pytest.mark.parametrize("family", WITH_HORIZON)
def test_a_family_that_is_told_the_horizon_is_played_to_its_end(family: str) -> None:
    assert play(task(family, "occasional optimism", horizon=400))["regret"][0] > 0


def test_a_silent_arm_is_never_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    learned: set[object] = set()

    class Watched(armlet.Bandit):
        def learn(self, decision: armlet.Decision, reward: Reward, *, weight: float = 1.0) -> None:
            learned.add(decision.arm)
            super().learn(decision, reward, weight=weight)

    monkeypatch.setattr("armlet_lab.contests.problems.Bandit", Watched)
    regret(armlet.Uniform(), task("silent arm"), 0)
    assert learned == {1, 2, 3, 4, 5}


def test_a_late_context_comes_in_the_second_half() -> None:
    X = draw_problem("late context", SEEDS, 0, 1000).contexts(np.random.default_rng(1), 1000)
    assert X[:500, 2:].sum() == 0
    # 500 draws at chance one half: five standard deviations are 56
    assert 194 < X[500:, 2:].sum() < 306


def test_lists_of_families_name_families() -> None:
    assert {*MADE, *SHORT} <= {*ALL}
    assert not {*FAMILIES} & {*WITH_HORIZON}


def test_a_task_is_played_the_same_again() -> None:
    again = [play(task("one noisy arm", "occasional optimism"))["regret"].tolist() for _ in range(2)]
    assert again[0] == again[1]


def cell(family: str, mine: Sequence[float], theirs: Sequence[float], horizon: int = 1000) -> TournamentCell:
    def regrets(values: Sequence[float]) -> Float64:
        return np.array(values, dtype=np.float64)

    rivals = {"LinUCB": regrets(theirs), "Thompson sampling": 3 * regrets(theirs)}
    candidates = {"mine": regrets(mine), BEFORE: regrets(theirs)}
    return TournamentCell(family=family, horizon=horizon, candidates=candidates, rivals=rivals)


def outcomes(*cells: TournamentCell) -> list[Outcome]:
    return [verdict.outcome for verdict in judge(cells, np.random.default_rng(1)).verdicts]


NEAR, FAR = cell("near", [10.0, 11.0, 12.0], [10.0, 11.0, 12.0]), cell("far", [30.0, 33.0, 36.0], [10.0, 11.0, 12.0])


def test_the_better_rival_is_the_measure_and_the_worst_family_decides() -> None:
    assert outcomes(NEAR) == [Outcome.HOLDS] * 3
    assert outcomes(NEAR, FAR)[:2] == [Outcome.FAILS] * 2
    means, families, _ = judge([NEAR, FAR], np.random.default_rng(1)).sections
    assert means.tables[0].rows[0][2] == "1.73"  # the geometric mean of 1 and 3
    assert families.tables[0].rows[-1][:3] == ("worst", "", "3.00")
    assert families.notes == ("mine above 1.4 times the better rival: far, 1,000 3.00 [3.00 to 3.00].",)


def test_a_family_that_was_made_to_show_a_fault_does_not_count_in_the_mean() -> None:
    assert outcomes(NEAR, cell(MADE[0], [30.0, 33.0, 36.0], [10.0, 11.0, 12.0]))[0] is Outcome.HOLDS


def test_a_run_that_never_left_a_wrong_arm_is_counted_and_long_tails_are_compared() -> None:
    still = cell("still", [1.0, 1.0, 50.0], [1.0, 1.0, 1.0])
    found = judge([NEAR, still], np.random.default_rng(1))
    assert found.verdicts[2].outcome is Outcome.FAILS
    assert found.sections[2].tables[0].rows[0][1:] == ("1", "7.4", "50 (still)")  # 7.4: of 50 and 12/11
    long = cell("still", [1.0, 1.0, 2.0], [1.0, 1.0, 1.0], horizon=5000)
    assert outcomes(NEAR, long)[2] is Outcome.FAILS
