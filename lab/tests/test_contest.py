"""The machine of all contests: columns by place, constants chosen on draws that judge nothing."""

from __future__ import annotations

import numpy as np

from armlet.parallel import Seeds
from armlet.simulation.lab import Arrays, Lab
from armlet_lab.contests.contest import ELSEWHERE, THEORY, Entry, Task, play_all, tune_and_play

SEEDS = Seeds(1)


def task(player: str, **more: int) -> Task:
    return Task(seeds=SEEDS, environment="here", horizon=10, player=player, **more)


def play(task: Task) -> Arrays:
    """Regret that is least at the third setting elsewhere, at the first on the draws that are judged."""
    best = 2 if task.first == ELSEWHERE else 0
    return {"regret": np.array([float(100 * abs(task.choice - best) + draw) for draw in task.draws])}


def test_columns_of_a_place_are_in_the_order_of_its_tasks() -> None:
    tasks = {"b": [task("b", first=4), task("b", first=1, runs=2)], "a": [task("a", first=7)]}
    found = play_all(Lab(seed=1), "play", play, tasks, "")
    assert {place: columns["regret"].tolist() for place, columns in found.items()} == {"b": [4, 1, 2], "a": [7]}


def test_a_setting_is_chosen_by_draws_that_are_not_judged() -> None:
    tuned = Entry(task("tuned"), runs=2, trials=3, settings=4, theory=True)
    plain = Entry(task("plain"), runs=2)
    seen: list[Task] = []

    def watched(task: Task) -> Arrays:
        seen.append(task)
        return play(task)

    scores = tune_and_play(Lab(seed=1), watched, [tuned, plain], "Contest", "two players")
    assert scores[tuned].tried.argmin() == 2
    assert scores[tuned].tuned.tolist() == [200, 201]  # the third setting, though the first would be best here
    assert scores[plain].tuned.tolist() == [0, 1]
    assert scores[plain].theory is None
    theory = scores[tuned].theory
    assert theory is not None
    assert theory.tolist() == [100, 101]
    trials, judged = ([each for each in seen if (each.first == ELSEWHERE) is when] for when in (True, False))
    assert {(each.player, each.choice, each.runs) for each in trials} == {("tuned", i, 3) for i in range(4)}
    assert [(each.player, each.choice) for each in judged] == [("tuned", 2), ("tuned", THEORY), ("plain", 0)]
