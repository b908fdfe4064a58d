"""Checks of a log: what they accuse, what they leave alone, and that they are sums over blocks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from armlet.evaluation.checks import Check, Trained, Word, check_ess
from armlet.evaluation.monitor import Checks
from armlet.evaluation.rows import Rows
from armlet.evaluation.targets import ArmLaw
from armlet.policies import Algorithm1, AutoEpsilonGreedy, ContextualEpsilonGreedy, LinUCB, ThompsonSampling, Uniform
from armlet.types import Arm, Policy
from support.decided import imported, played


def look(rows: Rows, *, arm: int = 0, pieces: int = 1) -> dict[str, Check]:
    """Return the checks of a log and of a target that always plays one arm, by name."""
    n_arms = rows.eligible.shape[1]
    checks = Checks(range(n_arms), rows.X.shape[1], ["always"])
    for part in np.array_split(np.arange(len(rows)), pieces):
        some = rows.take(part)
        checks.add(some, {"always": ArmLaw(np.tile(np.eye(n_arms)[arm], (len(some), 1)), some.arm)})
    return {check.name: check for check in checks.result()}


def words(checks: dict[str, Check]) -> dict[str, Word]:
    """Return those that are not fine."""
    return {name: check.word for name, check in checks.items() if check.word is not Word.FINE}


POLICIES: dict[str, Policy] = {
    "p/t": Algorithm1(p=60, warmup="uniform"),
    "turns": Algorithm1(p=60),
    "evidence": ContextualEpsilonGreedy(p=30),
    "floor": ContextualEpsilonGreedy(p=10, floor=0.05),
    "auto": AutoEpsilonGreedy(),
    "uniform": Uniform(),
}


@pytest.mark.parametrize("name", POLICIES)
def test_a_log_that_is_in_order_passes_every_check(name: str) -> None:
    assert words(look(played(POLICIES[name], 2000))) == {}


def test_right_propensities_are_accused_in_fewer_than_one_of_200_logs() -> None:
    # the bets of a log end above 500 with chance 1/500 at most; 3 logs of 60 would have a chance below 1e-4
    accused = sum(
        "propensities" in words(look(played(Algorithm1(p=60, warmup="uniform"), 1500, seed=seed)))
        for seed in range(100, 160)
    )
    assert accused <= 1


@pytest.mark.parametrize("times", [1.25, 0.75])
@pytest.mark.parametrize("known", [True, False], ids=["explored rows", "propensities alone"])
def test_an_error_of_a_quarter_on_one_arm_is_found_in_uniform_logs(times: float, known: bool) -> None:
    found = 0
    for seed in range(10):
        rows = played(Uniform(), 3000, seed=seed) if known else imported(3000, seed=seed)
        wrong = np.where(rows.arm == 1, times / 3, 1 / 3)
        columns: dict[str, Any] = (
            {"exploration_propensity": wrong, "min_exploration_probability": np.full(3000, wrong.min())}
            if known
            else {}
        )
        checks = look(replace(rows, propensity=wrong, **columns))
        check = checks["propensities"]
        found += check.word is Word.REFUSED and "1 was not drawn as often" in check.sentence
    assert found == 10  # chance of missing one is below 1e-3 at four and more standard errors beyond the threshold


def test_wrong_chances_among_explored_rows_of_algorithm_1_are_found() -> None:
    rows = played(Algorithm1(p=600, warmup="uniform"), 3000)
    skewed = np.where(rows.arm == 2, 0.5, 0.25)
    lied = replace(
        rows,
        exploration_propensity=skewed,
        min_exploration_probability=np.full(3000, 0.25),
        propensity=rows.propensity + rows.exploration_rate * (skewed - rows.exploration_propensity),
    )
    assert look(lied)["propensities"].word is Word.REFUSED


def test_rates_that_are_not_those_it_explored_by_are_found() -> None:
    rows = played(ContextualEpsilonGreedy(p=30, floor=0.1), 4000)
    assert look(rows)["explored share"].word is Word.FINE
    half = replace(rows, explored=np.where((rows.explored == 1) & (rows.t % 2 == 0), 0, rows.explored).astype(np.int8))
    assert look(half)["explored share"].word is Word.REFUSED


def test_what_cannot_be_is_counted_row_by_row() -> None:
    rows = played(ContextualEpsilonGreedy(p=30), 500)
    e = rows.propensity.copy()
    e[[10, 20]] = 0.0, 1.5
    check = look(replace(rows, propensity=e))["possible"]
    assert (check.word, check.number) == (Word.REFUSED, 2)
    assert "the first at step 11" in check.sentence
    eligible = rows.eligible.copy()
    eligible[7, rows.arm[7]] = False
    assert look(replace(rows, eligible=eligible))["possible"].number == 1


def test_probabilities_must_sum_to_1_and_have_the_propensity_among_them() -> None:
    rows = imported(200)
    chances = np.full((200, 3), 1 / 3)
    assert look(replace(rows, probabilities=chances))["possible"].word is Word.FINE
    chances[5] = 0.4
    chances[6, rows.arm[6]], chances[6, (rows.arm[6] + 1) % 3] = 0.5, 1 / 6
    assert look(replace(rows, probabilities=chances))["possible"].number == 2


def test_linucb_cannot_be_evaluated_and_is_not_called_a_liar() -> None:
    checks = look(played(LinUCB(alpha=1.0), 2000))
    assert checks["evaluable"].word is Word.WARNING
    assert "tells only of targets that play the same arms there" in checks["evaluable"].sentence
    assert checks["support"].word is Word.REFUSED
    assert checks["propensities"].word is Word.FINE


def test_thompson_sampling_is_not_called_a_liar() -> None:
    for seed in range(5):
        assert look(played(ThompsonSampling(v=0.5), 2000, seed=seed))["propensities"].word is Word.FINE


def test_a_target_that_the_logger_hardly_ever_plays_cannot_be_evaluated() -> None:
    rng = np.random.default_rng(3)
    chances = np.tile([0.9995, 0.0004, 0.0001], (3000, 1))
    arm = np.zeros(3000, dtype=np.int64)
    arm[:3] = 1  # plays of an arm that should have come 1.2 times, and none of the last one
    rows = imported(3000, arm=rng.permutation(arm), propensity=None)
    rows = replace(rows, propensity=chances[0, rows.arm])
    assert look(rows, arm=0)["weights"].word is Word.FINE
    assert look(rows, arm=2)["tried"].word is Word.REFUSED


def test_few_effective_rows_are_a_warning_and_none_refuse() -> None:
    assert check_ess("new", 100, 30.0, 2.0).word is Word.FINE
    assert check_ess("new", 100, 29.9, 2.0).word is Word.WARNING
    none = check_ess("new", 100, 50.0, 0.0)  # an estimator may count rows that say nothing of its arms
    assert none.word is Word.REFUSED
    assert "nothing to value it by" in none.sentence


def test_zero_support_is_refused_by_logged_probabilities() -> None:
    chances = np.tile([0.5, 0.5, 0.0], (400, 1))
    rows = imported(400, arm=np.arange(400) % 2, propensity=np.full(400, 0.5), probabilities=chances)
    assert look(rows, arm=2)["support"].number == 1.0
    assert look(rows, arm=1)["support"].word is Word.FINE


def test_drift_of_contexts_and_of_rewards_is_told_apart() -> None:
    rows = played(Uniform(), 2000)
    later = rows.t > 1000
    moved = look(replace(rows, X=rows.X + 0.5 * later[:, None]))
    assert words(moved) == {"drift of contexts": Word.WARNING}
    paid = look(replace(rows, reward=np.where(later & (rows.arm == 1), 0.9, rows.reward)))
    assert words(paid) == {"drift of rewards": Word.WARNING}
    assert "1 pays differently" in paid["drift of rewards"].sentence


def test_rewards_that_lack_by_arm_are_told() -> None:
    rows = played(Uniform(), 2000)
    rng = np.random.default_rng(1)
    evenly = look(replace(rows, reward=np.where(rng.random(2000) < 0.1, np.nan, rows.reward)))["missing rewards"]
    assert evenly.word is Word.FINE
    assert 150 < evenly.number < 250
    lost = (rows.arm == 2) & (rng.random(2000) < 0.2)
    check = look(replace(rows, reward=np.where(lost, np.nan, rows.reward)))["missing rewards"]
    assert check.word is Word.WARNING
    assert "2 lacks" in check.sentence


def test_a_model_that_learned_here_is_told_by_its_rows() -> None:
    rows = played(ContextualEpsilonGreedy(p=30), 1000)
    trained = Trained(3)
    trained.add(rows)
    learned: dict[Arm, float] = {arm: float(((rows.arm == arm) & (rows.explored == 1)).sum()) for arm in range(3)}
    check = trained.result("mine", range(3), rows=learned)
    assert check.word is Word.WARNING
    assert '"own"' in check.sentence
    other: dict[Arm, float] = {**learned, 1: learned[1] + 1}
    assert trained.result("mine", range(3), rows=other).word is Word.FINE


def test_blocks_add_up() -> None:
    rows = played(AutoEpsilonGreedy(), 3000)
    whole, parts = look(rows), look(rows, pieces=7)
    for name, check in whole.items():
        if not name.startswith("drift"):  # whose halves end where a piece does
            assert parts[name].number == pytest.approx(check.number, rel=1e-9), name
    assert {name: check.word for name, check in parts.items()} == {name: check.word for name, check in whole.items()}


def test_arms_are_a_law_over_arms() -> None:
    rows, arms = played(ThompsonSampling(v=0.5), 500), np.arange(500) % 3
    checks = Checks(range(3), 3, ["arms", "law"])
    checks.add(rows, {"arms": ArmLaw(arms, rows.arm), "law": ArmLaw(np.eye(3)[arms], rows.arm)})
    found = {(check.target, check.name): check for check in checks.result()}
    for (target, name), check in found.items():
        if target == "arms":
            assert replace(found["law", name], target="arms") == check


def test_an_empty_log_and_a_log_of_one_row_are_no_error() -> None:
    rows = played(Uniform(), 3)
    for few in (rows.take(slice(0, 0)), rows.take(slice(0, 1))):
        assert look(few)["possible"].word is Word.FINE
