"""Section 4.2 as an experiment, and the calibration of p="auto"."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from armlet import kernel
from armlet.environments import FigureA
from armlet.environments.families import FAMILIES, draw_problem
from armlet.parallel import Seeds
from armlet.policies import Algorithm1, AutoEpsilonGreedy
from armlet.policies.auto_epsilon_greedy import CAUTION
from armlet.simulation.lab import Lab
from armlet.simulation.play import block_size, run_streams
from armlet_lab.paper import calibration, choosing_p
from armlet_lab.paper.choosing_p import Family, ToTheLetter, judge
from armlet_lab.runner import hindsight, together
from armlet_lab.runner.experiment import SEED, Outcome

DOCS = Path(__file__).parents[2] / "docs" / "how-to" / "how-much-to-explore.md"


def test_contestants_meet_the_same_environment_and_do_not_disturb_each_other() -> None:
    environment, T = FigureA.draw(np.random.default_rng(1)), 9000  # more than a block
    policies: list[Algorithm1 | AutoEpsilonGreedy] = [
        *(Algorithm1(p=p) for p in (6, 40, 300)),
        AutoEpsilonGreedy(horizon=T),
    ]
    entries = [together.Entry.of(policy, environment) for policy in policies]
    among = together.play(environment, entries, T, Seeds(5), 2)
    (shown, noisy, coins), blocks = run_streams(Seeds(5), 2), []
    for start in range(0, T, block_size(environment)):
        X = environment.contexts(shown, min(block_size(environment), T - start))
        blocks.append((X, environment.rewards(noisy, X)))
    X, rewards = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    mu = environment.means(X)
    for policy, found in zip(policies, among.regret, strict=True):
        alone = kernel.rollout(X, rewards, start=policy.init(6, 3), rule=policy.rule(), seed=coins)
        assert found == pytest.approx((mu.max(axis=1) - mu[np.arange(T), alone.arms]).sum(), rel=1e-12)
    assert among.random == pytest.approx((mu.max(axis=1) - mu.mean(axis=1)).sum(), rel=1e-12)
    assert np.isnan(among.p[:3]).all()
    assert among.p[3] >= 12


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_draws_another_problem_each_time(family: str) -> None:
    assert draw_problem(family, Seeds(1), 0) == draw_problem(family, Seeds(1), 0)
    draws = {repr(draw_problem(family, Seeds(1), index)) for index in range(8)}
    assert len(draws) == (8 if family != "clicks 3 % or 4 %" else 2)  # which customer likes which action


def test_hindsight_is_not_charged_with_the_luck_of_its_choice() -> None:
    """Twenty values that are all alike: the lowest mean of a few runs is luck, and does not repeat."""
    regret = np.random.default_rng(0).normal(10.0, 3.0, size=(400, 8, 20))
    charged = np.array([hindsight.of_problem(one) for one in regret])
    lowest = regret.mean(axis=1).min(axis=1)
    error = charged.std() / np.sqrt(len(charged))
    assert abs(charged.mean() - 10.0) < 4 * error
    assert lowest.mean() < 9.0


def test_one_p_for_all_is_the_rival_where_problems_are_alike() -> None:
    noisy = np.random.default_rng(1).normal(np.tile([12.0, 10.0, 12.0], (30, 2, 1)), 6.0)
    assert hindsight.best(noisy).mean() == noisy.mean(axis=1)[:, 1].mean()


def made_up(auto: float, literal: float) -> tuple[list[Family], ToTheLetter]:
    """Twenty problems on which the best p regrets about 0.1 of random play."""
    share = 0.1 * np.linspace(1.0, 1.2, 20)
    mine = auto * share
    family = Family("made up", 1000, share, mine, mine, mine, mine, np.full(20, 7.0))
    best, steps = np.linspace(1.0, 2.0, 20), np.array([10.0, 1000.0])
    paths = np.tile([20.0, 2000.0], (20, 1))
    regret = np.stack([best, literal * best], axis=1)
    return [family], ToTheLetter(1000, steps, best, paths, regret, paths, regret)


@pytest.mark.parametrize(
    ("auto", "literal", "outcome"),
    [(1.2, 30.0, Outcome.UNDER_READING), (1.8, 30.0, Outcome.FAILS), (1.2, 1.1, Outcome.HOLDS)],
)
def test_verdict_follows_from_the_ratios(auto: float, literal: float, outcome: Outcome) -> None:
    findings = judge(*made_up(auto, literal), np.random.default_rng(0))
    assert findings.verdicts[0].outcome == outcome
    assert f"{auto:.2f}" in findings.sections[0].tables[0].rows[0][2]


def test_small_run_repeats_and_shows_the_running_minimum_fail() -> None:
    settings = choosing_p.Settings(
        problems=2, runs=2, horizons=(1000,), ratio=3.0, literal_horizon=1500, literal_problems=2
    )
    one, two = (choosing_p.find(settings, Lab(seed=SEED + 1)) for _ in range(2))
    assert one.verdicts == two.verdicts
    assert len(one.verdicts[0].statistics) == 1 + len(FAMILIES)
    letter = one.verdicts[0].statistics[0].estimate
    assert letter is not None
    assert letter.low > 1.5


def test_calibration_ranks_by_the_worst_family() -> None:
    ratios = np.ones((len(calibration.CAUTIONS), 2 * len(FAMILIES)))
    ratios[:, 3] = np.linspace(2.0, 1.2, len(ratios))
    table = calibration.table(ratios, 1, 1)
    assert table.rows[0][:2] == (f"{calibration.CAUTIONS[-1]:g}", "1.20")


def test_calibration_compares_with_the_best_fixed_p() -> None:
    found = calibration.play(calibration.Task(family="Figure (a)", problem=0, runs=2, horizon=2000))
    assert found["auto"].shape == (len(calibration.CAUTIONS),)
    assert found["grid"].shape[0] == 2
    assert float(found["grid"].max()) < 1.2


def test_the_constant_in_use_is_the_one_that_the_docs_say_and_the_calibration_tried() -> None:
    text = DOCS.read_text(encoding="utf-8")
    tried = re.findall(r"^\| ([\d.]+) \| [\d.]+ \|", text, flags=re.MULTILINE)
    assert sorted(map(float, tried)) == sorted(calibration.CAUTIONS)
    assert f"{CAUTION:g} is in use" in text
