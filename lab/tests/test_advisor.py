"""The advisor held against the best p in hindsight: what follows from the runs, and a small experiment."""

from __future__ import annotations

import math

import numpy as np
import pytest

from armlet.environments.families import draw_problem
from armlet.parallel import Seeds
from armlet.simulation.lab import Lab, as_floats
from armlet_lab.paper import advisor
from armlet_lab.paper.advisor import Family, judge
from armlet_lab.runner.experiment import SEED, Outcome, Role


def made_up(*, law: float, pilot: float, theorem: float, covered: float) -> Family:
    """Twenty problems on which the best p regrets about 0.1 of random play."""
    share = 0.1 * np.linspace(1.0, 1.2, 20)
    return Family(
        name="made up",
        horizon=1000,
        best=share,
        law=law * share,
        pilot=pilot * share,
        theorem=theorem * share,
        law_p=8.0,
        pilot_p=np.full(20, 16.0),
        theorem_p=math.inf,
        law_covered=np.full(20, 0.95),
        pilot_covered=np.full(20, covered),
    )


@pytest.mark.parametrize(
    ("family", "outcome"),
    [
        (made_up(law=1.1, pilot=1.2, theorem=9.0, covered=0.95), Outcome.UNDER_READING),
        (made_up(law=1.1, pilot=1.5, theorem=9.0, covered=0.95), Outcome.FAILS),
        (made_up(law=1.1, pilot=1.2, theorem=9.0, covered=0.8), Outcome.FAILS),
        (made_up(law=1.1, pilot=1.2, theorem=1.1, covered=0.95), Outcome.HOLDS),
    ],
)
def test_verdict_follows_from_ratios_and_coverage(family: Family, outcome: Outcome) -> None:
    findings = judge([family], 2000, np.random.default_rng(0))
    assert findings.verdicts[0].outcome == outcome
    row = findings.sections[0].tables[0].rows[0]
    assert row[3].startswith("1.10 ")
    assert row[6] == "none; 8; 16"


def test_the_theorem_asks_for_no_p_where_contexts_have_no_end() -> None:
    assert math.isinf(advisor._required_p(draw_problem("gaussian d = 10", Seeds(1), 0)))
    # (a) has |x| <= 1, display ads are longer: the repaired theorem answers, and asks for far more than any horizon
    for family in ("Figure (a)", "display ads"):
        assert 1e5 < advisor._required_p(draw_problem(family, Seeds(1), 0)) < math.inf


def test_a_pilot_is_random_play_of_the_very_problem() -> None:
    environment = draw_problem("Figure (a)", Seeds(1), 0)
    pilot = advisor._pilot(environment, 6000, np.random.default_rng(1))
    counts = np.bincount(pilot.played)
    assert len(counts) == 6
    assert abs(counts - 1000).max() < 4 * np.sqrt(6000 / 6 * 5 / 6)  # four standard deviations of a binomial
    mean = environment.means(pilot.X)[np.arange(6000), pilot.played]
    # rewards are mean (1 + u), u uniform on [-1, 1]: u has variance 1 / 3 and its square 4 / 45; four deviations again
    squares, off = np.square(mean), pilot.rewards - mean
    assert abs(off.sum()) < 4 * np.sqrt(squares.sum() / 3)
    assert abs(np.square(off).sum() - squares.sum() / 3) < 4 * np.sqrt(np.square(squares).sum() * 4 / 45)


def test_small_run_repeats_and_shows_the_theorem_fail() -> None:
    settings = advisor.Settings(families=("Figure (a)",), problems=2, runs=(4,), horizons=(3000,), budget=1e5)
    one, two = (advisor.find(settings, Lab(seed=SEED + 1)) for _ in range(2))
    assert one.verdicts == two.verdicts
    written, *reading = one.verdicts[0].statistics
    assert (written.role, [each.role for each in reading]) == (Role.WRITTEN, [Role.READING] * 4)
    assert written.estimate is not None
    assert written.estimate.low > 3  # every step explores, and a good p regrets a fifth of that at most
    assert len(one.sections[0].tables[0].rows) == 1


def test_a_p_beyond_the_horizon_is_random_play() -> None:
    task = advisor.Task(
        seeds=Seeds(3),
        family="Figure (a)",
        horizon=2000,
        budget=1e5,
        problem=0,
        runs=2,
        ratio=4.0,
        rows=500,
        law_p=24.0,
        theorem_p=math.inf,
    )
    found = advisor.play(task)
    # the arms of 2,000 random steps against their average: a few per cent
    random = as_floats(found["random"])
    np.testing.assert_allclose(as_floats(found["theorem"]), random, rtol=0.1)
    assert np.max(as_floats(found["law"]) / random) < 0.7
