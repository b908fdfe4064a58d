"""The experiment on Algorithm 2, on a small scale: what it measures is what it says."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from armlet.parallel import Seeds
from armlet.simulation.lab import Lab
from armlet_lab.paper import algorithm_2
from armlet_lab.runner.experiment import Findings, Outcome, Role, Verdict
from armlet_lab.runner.verdicts import in_a_cell

TINY = algorithm_2.Settings(rare=(10, 100), rows=6, histories=4, horizon=80, runs=5, lengths=(20, 40), doubling=(6, 10))


@cache
def found() -> Findings:
    return algorithm_2.find(TINY, Lab(seed=5))


def verdict(key: str) -> Verdict:
    return next(each for each in found().verdicts if each.claim.key == key)


def test_three_claims_are_judged_in_the_order_of_their_sections() -> None:
    keys = ["algorithm-2-memory", "algorithm-2-search", "algorithm-2-regret"]
    assert [each.claim.key for each in found().verdicts] == [each.claim for each in found().sections] == keys


@pytest.mark.parametrize("m", [10, 100, 1000])
def test_algorithm_1_forgets_and_the_best_subset_remembers(m: int) -> None:
    """m rows among m^2: the ridge sqrt(n) = m holds half of them back, whatever m."""
    estimates = algorithm_2.remembered(m)
    assert abs(estimates["Algorithm 1"] - 0.5) < 0.1
    assert estimates["Algorithm 1, ridge 1/n"] > m / (m + 3)
    assert estimates["Contextual UCB"] > np.sqrt(m) / (np.sqrt(m) + 1) - 0.02  # as if there were the m rows only


def test_memory_is_judged_without_any_draw() -> None:
    assert verdict("algorithm-2-memory").outcome is Outcome.HOLDS


def test_no_search_beats_brute_force() -> None:
    task = algorithm_2.Small(seeds=Seeds(5), family="gaussian, d = 3", rows=6, histories=4)
    ratios = np.asarray(algorithm_2.search_small(task)["ratios"], dtype=np.float64)
    assert ratios.shape == (12,)
    assert (ratios >= 1 - 1e-12).all()


def test_the_same_problems_for_all_policies() -> None:
    def regret(policy: str) -> list[float]:
        task = algorithm_2.Play(seeds=Seeds(5), environment="I = 10", policy=policy, horizon=40, first=0, runs=2)
        return np.asarray(algorithm_2.play(task)["regret"], dtype=np.float64).tolist()  # type: ignore[no-any-return]

    assert regret("LinUCB") == regret("LinUCB")
    assert len(set(map(tuple, map(regret, algorithm_2.POLICIES)))) > 1


def test_regret_is_judged_against_algorithm_1_with_linucb_as_control() -> None:
    statistics = verdict("algorithm-2-regret").statistics
    assert [each.role for each in statistics] == [Role.WRITTEN] * 2 + [Role.CONTROL] * 2


def test_the_page_has_the_words_of_the_experiment() -> None:
    """What was measured depends on the machine, so figures are not compared; nobody types the rest of a row either."""
    page = (Path(__file__).parents[2] / "docs" / "reference" / "paper.md").read_text()
    for each in found().verdicts:
        (row,) = (
            line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith(f"| {each.claim.key} |")
        )
        where, says, outcome, reason = row[1:]
        assert [where, says] == [in_a_cell(text) for text in (each.claim.where, each.claim.says)]
        assert _shape(reason).endswith(_shape(in_a_cell(each.explanations[Outcome(outcome)])))
        names = [_shape(in_a_cell(statistic.name)) for statistic in each.statistics]
        named = [
            any(_shape(part).startswith(f"{name} is ") for name in names) for part in reason.split(" passed: ")[1:]
        ]
        assert named
        assert all(named)


def _shape(text: str) -> str:
    """Return a text without its numbers: they follow from the scale."""
    return re.sub(r"\d[\d,]*", "#", text)
