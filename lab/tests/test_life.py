"""What goes wrong in life: environments are what they say, scores count what they should, verdicts follow from them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

import armlet
from armlet.parallel import Seeds
from armlet.simulation.lab import Lab
from armlet.types import Float64
from armlet_lab.contests import life
from armlet_lab.contests.contest import Task
from armlet_lab.contests.life import (
    AS_GIVEN,
    BETWEEN,
    CHANCE,
    COMES,
    DEFAULT,
    DELAY,
    GAPS,
    HALF,
    LATE,
    OPTIMIST,
    ROWS,
    TwoContexts,
    judge,
    public_steps,
)
from armlet_lab.runner.experiment import Outcome

SEEDS = Seeds(1)


def task(environment: str, horizon: int) -> Task:
    return Task(seeds=SEEDS, environment=environment, horizon=horizon)


@pytest.mark.parametrize("when", [CHANCE, BETWEEN])
def test_the_second_context_is_as_frequent_whether_or_not_it_avoids_steps(when: str) -> None:
    n = 100_000
    X = TwoContexts(theta=GAPS, second=CHANCE if when == CHANCE else BETWEEN).contexts(np.random.default_rng(1), n)
    assert abs(X[:, 1].mean() - 0.2) < 5 * np.sqrt(0.2 * 0.8 / n)  # five standard errors
    avoided = X[public_steps(np.arange(1, n + 1), 0.2), 1]
    assert (avoided.sum() == 0) == (when == BETWEEN)


def test_a_late_context_is_first_seen_after_half_time() -> None:
    X = TwoContexts(theta=GAPS, second=HALF, half=30).contexts(np.random.default_rng(1), 50, start=10)
    assert X[:, 1].tolist() == [0.0] * 20 + [1.0] * 30


def test_scores_count_plays_and_mistakes() -> None:
    plays = ROWS["newcomer"].score(armlet.Uniform(), task("newcomer", COMES + DELAY), 0)
    assert abs(plays - DELAY / 6) < 5 * np.sqrt(DELAY * 5 / 36)  # one arm of six, five standard deviations
    plays = ROWS["silent"].score(armlet.Uniform(), task("silent arm", 600), 0)
    assert abs(plays - 100) < 5 * np.sqrt(600 * 5 / 36)
    mistakes = ROWS["late"].score(armlet.Uniform(), task(next(iter(LATE)), 600), 0)
    assert abs(mistakes - 300) < 5 * np.sqrt(600 / 4)
    lost = ROWS["avoided"].score(armlet.Uniform(), task(CHANCE, 600), 0)
    assert abs(lost / 600 - 0.8 * 0.5 / 3 - 0.2 * 0.5 / 3) < 0.05


def scores(**changed: float) -> dict[tuple[str, str], Float64]:
    """Return a run's worth of scores that pass all bars, but for those that are given."""
    values = {"newcomer": 10.0, "silent": 10.0, "avoided": 10.0, "late": 10.0, **changed}
    found = {
        (where, who): np.full(3, values[name] if who in (DEFAULT, AS_GIVEN) else 10.0)
        for name, row in ROWS.items()
        for where in row.environments
        for who in row.players
    }
    return found | {(CHANCE, who): np.full(3, 10.0) for who in ROWS["avoided"].players}


def outcomes(found: Mapping[tuple[str, str], Float64], blocks: float = 10.0) -> list[Outcome]:
    settings = life.SCALES["quick"]
    regret = {DEFAULT: np.full(3, blocks), "Thompson sampling": np.full(3, 10.0)}
    in_blocks = {each.horizon: regret for each in settings.blocks}
    return [one.outcome for one in judge(settings, found, in_blocks, np.random.default_rng(1)).verdicts]


def test_every_bar_can_be_missed_alone() -> None:
    assert outcomes(scores()) == [Outcome.HOLDS] * 5
    missed = [
        outcomes(scores(newcomer=200.0)),
        outcomes(scores(silent=200.0)),
        outcomes(scores(), blocks=13.0),
        outcomes(scores(avoided=25.0)),
        outcomes(scores(late=35.0)),
    ]
    for i, found in enumerate(missed):
        assert [one is Outcome.FAILS for one in found] == [j == i for j in range(5)]
    only_as_given = scores() | {(where, AS_GIVEN): np.full(3, 35.0) for where in LATE}
    assert outcomes(only_as_given)[-1] is Outcome.FAILS
    assert OPTIMIST in ROWS["late"].players


def test_the_quick_scale_runs() -> None:
    found = life.run(Lab(seed=3, name="life"))
    assert [verdict.claim.key for verdict in found.verdicts] == [
        *("life-newcomer", "life-silent", "life-blocks", "life-avoided", "life-late")
    ]
