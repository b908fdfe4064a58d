"""The tournament: families are what they say, rewards come when they should, and verdicts follow from numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import armlet
from armlet.parallel import Seeds
from armlet.simulation.play import InPython, draw, run_streams
from armlet.types import Float64
from armlet_lab.contests.contest import Task
from armlet_lab.contests.tournament import FAMILIES, Cell, draw_problem, judge, play, regret
from armlet_lab.runner.experiment import Outcome

SEEDS = Seeds(1)


@pytest.mark.parametrize("family", FAMILIES)
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
        def learn(self, decision: armlet.Decision, reward: float, *, weight: float = 1.0) -> None:
            learned.append((self.t, decision.t))
            super().learn(decision, reward, weight=weight)

    for where in ("armlet.simulation.play.Bandit", "armlet_lab.contests.tournament.Bandit"):
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


def test_arms_of_the_news_come_and_go() -> None:
    assert play(task("news", "occasional optimism", horizon=400))["regret"][0] > 0


def test_a_task_is_played_the_same_again() -> None:
    again = [play(task("one noisy arm", "occasional optimism"))["regret"].tolist() for _ in range(2)]
    assert again[0] == again[1]


def cell(family: str, mine: Sequence[float], theirs: Sequence[float]) -> Cell:
    def regrets(values: Sequence[float]) -> Float64:
        return np.array(values, dtype=np.float64)

    rivals = {"LinUCB": regrets(theirs), "Thompson sampling": 3 * regrets(theirs)}
    return Cell(family=family, horizon=1000, candidates={"mine": regrets(mine)}, rivals=rivals)


def test_the_better_rival_is_the_measure_and_the_worst_family_decides() -> None:
    rng = np.random.default_rng(1)
    near, far = (
        cell("near", [10.0, 11.0, 12.0], [10.0, 11.0, 12.0]),
        cell("far", [30.0, 33.0, 36.0], [10.0, 11.0, 12.0]),
    )
    assert judge([near], rng).verdicts[0].outcome is Outcome.HOLDS
    found = judge([near, far], rng)
    assert found.verdicts[0].outcome is Outcome.FAILS
    assert found.sections[0].tables[0].rows[-1] == ("worst", "", "3.00")


def test_a_run_that_never_left_a_wrong_arm_is_told() -> None:
    notes = judge([cell("still", [1.0, 1.0, 50.0], [1.0, 1.0, 1.0])], np.random.default_rng(1)).sections[0].notes
    assert "in still, T = 1,000" in notes[0]


def test_feedback_in_blocks_is_compared_with_feedback_at_once() -> None:
    cells = [cell("at once", [10.0, 10.0], [10.0, 10.0]), cell("blocks of 1,000", [25.0, 25.0], [10.0, 10.0])]
    assert "2.50 at T = 1,000" in judge(cells, np.random.default_rng(1)).sections[0].notes[0]
