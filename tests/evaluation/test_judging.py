"""One verdict, one count and one number for terminal, page and data; and none where the log does not tell."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armlet
from armlet import Bandit
from armlet.errors import ArgumentError, EvaluationError
from armlet.evaluation.evaluate import evaluate
from armlet.evaluation.result import Evaluation
from armlet.evaluation.rows import HeldBlocks, rows_of
from armlet.types import Bool, Float64
from support.decided import played


def log_of(
    rewards: Float64, arms: Any, chances: float | Float64 = 0.5, *, X: Float64 | None = None, **about: Any
) -> HeldBlocks:
    """Return a log of two arms of which propensities alone are known."""
    n = len(rewards)
    X = np.ones((n, 1)) if X is None else X
    rows = rows_of(X, np.asarray(arms), rewards, np.broadcast_to(chances, n).astype(float), n_arms=2)
    return HeldBlocks(rows, range(2), about)


def clicks(n: int, rates: tuple[float, float], seed: int = 1, **about: Any) -> HeldBlocks:
    """Return a log of clicks."""
    rng = np.random.default_rng(seed)
    arms = rng.integers(2, size=n)
    return log_of((rng.random(n) < np.array(rates)[arms]).astype(float), arms, **about)


def page_of(found: Evaluation, folder: Path) -> str:
    """Return the words of a page."""
    found.save(folder / "page.html")
    text = (folder / "page.html").read_text(encoding="utf-8")
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", text))


@pytest.mark.parametrize(
    ("objective", "verdict", "words"),
    [
        ("max", "better", "difference in reward from logged (higher is better)"),
        ("min", "worse", "difference in cost from logged (lower is better)"),
    ],
)
def test_terminal_page_and_data_give_the_same_verdict(objective: str, verdict: str, words: str, tmp_path: Path) -> None:
    """An arm that costs 0.8 where 0.4 is paid is worse, and says so everywhere."""
    found = evaluate(clicks(2000, (0.8, 0.0), objective=objective), {"always 0": 0})
    assert found.differences["always 0"].value > 0.3
    assert found.to_dict()["differences"]["always 0"]["verdict"] == verdict
    page = page_of(found, tmp_path)
    (line,) = re.findall(r"always 0\s+0\.\d+\s+\[.*\]\s+(.*)$", str(found).split("from logged")[1], re.MULTILINE)
    assert line == verdict
    assert re.search(rf"always 0 0\.\d+ \[0\.\d+ to 0\.\d+\] {verdict} ", page)
    assert words in str(found)
    assert words[1:] in page
    assert found.answer.startswith(f"On 2,000 rewarded decisions always 0 is {verdict} than what ran")
    assert found.answer in page
    assert ("costs more" in found.answer) == (objective == "min")


@pytest.mark.parametrize("checks", ["all", "none"])
def test_a_model_is_not_judged_by_the_rows_that_it_learned_from(checks: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    X, arms = rng.normal(size=(200, 3)), rng.integers(2, size=200)
    rewards = rng.random(200)
    bandit = Bandit(range(2), 3, policy=armlet.ContextualEpsilonGreedy(p=9), seed=1)
    bandit.partial_fit(X, arms, rewards, explored=True)
    log = log_of(rewards, arms, X=X, reward_range=(0.0, 1.0))
    found = evaluate(log, {"model": bandit, "always 1": 1}, checks=checks)
    words = "not judged: trained on these rows"
    assert found.differences["model"].verdict == words
    assert (found["model"].interval, found["model"].anytime) == (None, None)
    assert found.to_dict()["values"]["model"]["doubtful"] == "trained on these rows"
    assert found["always 1"].interval is not None
    assert words in str(found)
    page = page_of(found, tmp_path)
    assert words in page
    assert "trained on these rows" in (tmp_path / "page.html").read_text().split("</svg>")[0]  # in the legend, in grey
    assert [path.name for path in found.paths] == (["always 1"] if checks == "all" else [])
    other = evaluate(log, {"always 1": 1}, baseline=bandit, checks=checks).differences["always 1"]
    assert other.verdict == "not judged: baseline: trained on these rows"


def test_what_these_rows_teach_is_compared_with_the_baseline() -> None:
    """Arms differ by the context alone: what is learned is worth 0.8, a coin 0.5."""
    rng, n = np.random.default_rng(3), 1500
    X, arms = rng.choice([-1.0, 1.0], size=(n, 1)), rng.integers(2, size=n)
    rewards = (rng.random(n) < 0.5 + 0.3 * X[:, 0] * (2 * arms - 1)).astype(float)
    log = log_of(rewards, arms, X=X)
    for baseline in ("logged", 0):
        found = evaluate(log, ["own", "uniform"], baseline=baseline)
        difference = found.differences["own"]
        assert difference.value == found["own"].value - found.values[found.baseline].value
        assert difference.verdict == "better"
        assert difference.adjusted is not None
        assert difference.interval is not None
        assert difference.adjusted.low < difference.interval.low < 0.3 < difference.interval.high
        assert re.search(r"own .*better", str(found))
    assert "own: its interval is of the progressive value" in str(found)


def test_intervals_of_what_rows_teach_beside_the_log_cover_where_nothing_is_to_be_learned() -> None:
    """Arms are alike, so the difference is 0: of 40 logs 84 % cover at least, 95 % less three standard errors."""
    covered = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        log = log_of(rng.normal(size=200), rng.integers(2, size=200), X=rng.normal(size=(200, 2)))
        low, high = evaluate(log, "own", interval="fixed", checks="none").differences["own"].interval or (1.0, 1.0)
        covered.append(low <= 0.0 <= high)
    assert np.mean(covered) >= 0.84


def test_what_rows_teach_says_why_it_is_not_compared() -> None:
    rng = np.random.default_rng(1)
    arms, chances = rng.integers(2, size=400), np.full(400, 0.5)
    arms[:100], chances[:100] = 0, 1.0
    found = evaluate(log_of(rng.random(400), arms, chances), {"always 0": 0, "own": "own"})
    assert math.isnan(found["own"].value)
    assert found.differences["own"].verdict == "not judged: cannot be valued by this log"
    assert "own: 100 decisions could not have been otherwise" in str(found)


# --- no number where the log does not tell ---------------------------------------------------------------------------


@pytest.mark.parametrize("checks", ["all", "none"])
def test_rows_without_a_choice_are_useless_only_for_targets_that_play_otherwise_there(checks: Any) -> None:
    rng, n = np.random.default_rng(5), 1000
    arms, chances = rng.integers(2, size=n), np.full(n, 0.5)
    arms[:300], chances[:300] = 0, 1.0
    rewards = np.where(arms == 0, 3.0, 5.0) + rng.normal(size=n)
    found = evaluate(log_of(rewards, arms, chances), {"always 0": 0, "always 1": 1, "even": "uniform"}, checks=checks)
    assert found["always 0"].value == pytest.approx(3.0, abs=0.2)
    assert found["always 0"].interval is not None
    for name in ("always 1", "even"):
        assert math.isnan(found[name].value)
        assert found.to_dict()["values"][name]["value"] is None
        assert "could not have played" in found[name].note
        assert found.differences[name].verdict == "not judged: cannot be valued by this log"
        assert all(math.isnan(point.value) for point in found.estimates[name].values())
        assert re.search(rf"{name}\s+none\s+none", str(found))
    with pytest.raises(EvaluationError, match="300 decisions of the log could not have been otherwise"):
        evaluate(log_of(rewards, arms, chances), {"always 1": 1}, checks=checks)
    assert evaluate(log_of(rewards, arms, chances), "logged", checks=checks)["logged"].value == pytest.approx(
        rewards.mean()
    )


def test_no_number_is_told_where_a_check_refuses(tmp_path: Path) -> None:
    """Propensities that are wrong: the mean of what came is known all the same, and nothing else."""
    rng = np.random.default_rng(4)
    arms, rewards = rng.integers(2, size=2000), rng.random(2000)
    log = log_of(rewards, arms, np.where(arms == 0, 0.35, 0.65), reward_range=(0.0, 1.0))
    found = evaluate(log, {"always 0": 0, "own": "own"})
    assert found["logged"].value == pytest.approx(rewards.mean())
    page = page_of(found, tmp_path)
    for name in ("always 0", "own"):
        assert math.isnan(found[name].value)
        assert "propensities are wrong" in found[name].note
        fields = found.to_dict()["values"][name]
        assert (fields["value"], fields["se"], fields["interval"], fields["anytime"]) == (None, None, None, None)
        assert f"{name} none none" in page
    assert found.paths == ()
    assert not re.search(r"\b(nan|inf)\b", page + str(found) + json.dumps(found.to_dict()))


def test_nothing_is_said_of_an_arm_that_never_paid() -> None:
    """The model's guess is no value: no row has a reward of that arm."""
    rows = rows_of(np.ones((90, 1)), np.arange(90) % 2, np.arange(90.0), np.full(90, 1 / 3), n_arms=3)
    for checks in ("all", "none"):
        found = evaluate(HeldBlocks(rows, range(3)), {"always 2": 2, "always 0": 0}, estimator="dr", checks=checks)
        assert math.isnan(found["always 2"].value)
        assert not math.isnan(found["always 0"].value)


@pytest.mark.parametrize("declared", [None, (0.0, 1.0)])
def test_values_stay_within_the_range_of_rewards(declared: tuple[float, float] | None) -> None:
    """One row of weight 4 with a click: ips says 4/3, and a click rate is at most 1."""
    log = log_of(np.array([1.0, 0.0, 0.0]), [0, 1, 1], np.array([0.25, 0.5, 0.5]), reward_range=declared)
    found = evaluate(log, {"always 0": 0}, estimator="ips", checks="none")["always 0"]
    assert found.value == 1.0
    assert found.note.startswith("the estimate, 1.333, is outside the range of rewards, [0, 1]")
    free = log_of(np.array([1.5, 0.0, 0.0]), [0, 1, 1], np.array([0.25, 0.5, 0.5]))
    assert evaluate(free, {"always 0": 0}, estimator="ips", checks="none")["always 0"].value == 2.0


def test_an_interval_outside_the_declared_range_is_not_given() -> None:
    """Weights of 4 where they should be 2: nothing between 0 and 1 explains a value of 1.4."""
    rng, n = np.random.default_rng(1), 400
    arms = np.arange(n) % 2
    log = log_of(rng.uniform(0.6, 0.8, size=n), arms, np.where(arms == 0, 0.25, 0.75), reward_range=(0.0, 1.0))
    found = evaluate(log, {"always 0": 0}, estimator="ips", checks="none")["always 0"]
    assert found.value == 1.0
    assert found.interval is None
    assert "lies outside the declared range" in found.note


@pytest.mark.parametrize("word", ["weighted", "explored", "replay"])
def test_an_estimator_that_the_log_does_not_feed_is_refused(word: Any) -> None:
    with pytest.raises(ArgumentError, match=rf"estimator is '{word}', which .*Choose 'auto'"):
        evaluate(clicks(100, (0.5, 0.5)), 0, estimator=word)


@pytest.mark.parametrize("chance", [5e-324, 1e-101, 1.3, 0.0, math.nan])
def test_a_propensity_that_cannot_be_weighed_is_refused(chance: float) -> None:
    log = log_of(np.ones(3), [0, 1, 0], np.array([0.5, chance, 0.5]))
    with pytest.raises(ArgumentError, match=rf"propensity of {chance} at step 2; .* at most 1 \(1e-100 or more\)"):
        evaluate(log, 0)


@pytest.mark.parametrize("reward", [7.0, -100.0, 1.0])
@pytest.mark.parametrize("word", ["dr", "sndr", "ips", "snips", "own"])
def test_intervals_of_a_constant_reward_hold_it(word: Any, reward: float) -> None:
    rng = np.random.default_rng(2)
    for n in (5, 40):
        for _ in range(10):
            log = log_of(np.full(n, reward), rng.integers(2, size=n), X=rng.normal(size=(n, 1)))
            name, how = ("own", {}) if word == "own" else ("0", {"estimator": word})
            for declared in (None, (-200.0, 200.0)):
                found = evaluate(log, "own" if word == "own" else 0, reward_range=declared, checks="none", **how)[name]
                span = found.interval
                assert math.isnan(found.value) or span is None or span.low <= reward <= span.high
                assert declared is None or math.isnan(found.value) or (span is not None and span.low < span.high)


# --- one count -------------------------------------------------------------------------------------------------------


def test_effective_rows_are_the_same_in_table_and_check(tmp_path: Path) -> None:
    rows = played(armlet.ContextualEpsilonGreedy(p=40, floor=0.05), 1500)
    found = evaluate(HeldBlocks(rows, range(3)), {"always 0": 0, "always 1": 1})
    checks = {str(check.target): check.number for check in found.checks if check.unit == "effective rows"}
    assert checks == {name: found[name].ess for name in ("always 0", "always 1")}
    page = page_of(found, tmp_path)
    for name in checks:
        assert page.count(f"{found[name].ess:,.0f} effective rows") == 1
        assert f"tell as much as {found[name].ess:,.0f} of equal weight" in page


def test_explored_decisions_are_counted_once_in_words(tmp_path: Path) -> None:
    """All that explored, those of them with a reward, and those that a coin chose: each with its word."""
    rng = np.random.default_rng(1)
    rows = played(armlet.Algorithm1(p=60), 1000)
    missing = np.where(rng.random(1000) < 0.1, np.nan, rows.reward)
    log = HeldBlocks(replace(rows, reward=missing), range(3))
    found = evaluate(log, {"always 0": 0})
    explored, rewarded = (rows.explored == 1), ~np.isnan(missing)
    all_of_them, paid = int(explored.sum()), int((explored & rewarded).sum())
    assert (found.explored, found.explored_rewarded) == (all_of_them, paid)
    words = f"{all_of_them} explored, {paid} of them rewarded"
    page = page_of(found, tmp_path)
    assert words in str(found)
    assert words in page
    coins = int((explored & ~rows.turn & (rows.exploration_rate < 1.0)).sum())
    words = f"Of {all_of_them} explored decisions {coins} were chosen by a coin and {all_of_them - coins} for certain"
    assert words in page
    assert evaluate(clicks(50, (0.5, 0.5)), 0).explored is None


# --- targets ---------------------------------------------------------------------------------------------------------


def test_a_target_cannot_change_what_the_next_one_sees() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 1))
    log, before = log_of(rng.random(100), rng.integers(2, size=100), X=X), X.copy()

    def by_sign(contexts: Float64, _: Bool) -> Float64:
        return np.asarray(np.eye(2)[(contexts[:, 0] > 0).astype(int)])

    def spoils(contexts: Float64, eligible: Bool) -> Float64:
        contexts[:] = 0.0
        return np.asarray(eligible / 2)

    def locks_out(_: Float64, eligible: Bool) -> Float64:
        eligible[:, 1] = False
        return np.asarray(np.eye(2)[np.zeros(len(eligible), dtype=int)])

    alone = evaluate(log, {"g": by_sign})["g"].value
    for writes in (spoils, locks_out):
        with pytest.raises(ValueError, match="read-only"):
            evaluate(log, {"first": writes, "g": by_sign})
    assert (before == X).all()
    assert evaluate(log, {"g": by_sign})["g"].value == alone


def test_the_least_propensity_gives_numbers() -> None:
    log = log_of(np.array([1e40, -1e40, 1.0]), [0, 1, 0], np.array([1e-100, 0.5, 0.5]))
    found = evaluate(log, {"always 0": 0}, checks="none")
    assert all(math.isfinite(point.value) for point in found.estimates["always 0"].values() if not math.isnan(point.se))
    assert math.isfinite(found["always 0"].value)
