"""`armlet search` at the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import armlet
from armlet.cli import main
from armlet.evaluation.search import search_around


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Write a log of 1500 uniform decisions, and a model that learned from others."""
    rng = np.random.default_rng(2)

    def clicks(x: float, arm: object) -> float:
        return float(rng.random() < 0.5 + 0.4 * np.sign(x) * (1 if arm == "north" else -1))

    path = tmp_path / "decisions.jsonl"
    with armlet.Log(path) as kept:
        bandit = armlet.Bandit(["north", "south"], 1, policy=armlet.Uniform(), seed=5, log=kept)
        for x in rng.uniform(-1, 1, 1500):
            decision = bandit.decide([x])
            bandit.learn(decision, clicks(x, decision.arm))
    X, arms = rng.uniform(-1, 1, 60), ["south", "north"] * 30
    model = armlet.Bandit(["south", "north"], 1, policy=armlet.ContextualEpsilonGreedy(p=20), seed=1)
    model.partial_fit(X[:, None], arms, [clicks(x, arm) for x, arm in zip(X, arms, strict=True)], explored=True)
    model.save(tmp_path / "model.armlet")
    return path


def test_the_winner_and_its_coefficients_come_out(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["search", str(log), "--around", str(log.with_name("model.armlet")), "--reward-range", "0..1"]
    assert main([*words, "--policies", "50", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    found, theta = search_around(log, armlet.load(log.with_name("model.armlet")), 50, seed=1, reward_range=(0, 1))
    assert answer["theta"] == theta
    assert (answer["winner"], answer["interval"]) == (found.winner, list(found.interval))
    assert found.interval.low > 0.6  # it would have been 0.9 at best, and 0.5 by chance
    assert theta["north"][1] > theta["south"][1]  # the log and the model name arms in another order
    assert main(words) == 0
    assert "north:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "--reward-range is missing"),
        (["--reward-range", "1"], "write two numbers as in 0..1"),
        (["--reward-range", "0..1", "--policies", "0"], "--policies is 0"),
        (["--reward-range", "0..1", "--level", "2"], "--level is 2.0"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(
    log: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["search", str(log), "--around", str(log.with_name("model.armlet")), *words])
    assert message in capsys.readouterr().err


def test_a_model_of_other_arms_or_of_these_very_rows_is_refused(log: Path) -> None:
    other = armlet.Bandit(["north", "west"], 1, policy=armlet.ContextualEpsilonGreedy(p=20), seed=1)
    with pytest.raises(ValueError, match="has no arm 'south'"):
        search_around(log, other, 5, seed=1, reward_range=(0, 1))
    rows = armlet.evaluation.sources.open_rows(log)[0]
    same = armlet.Bandit(["north", "south"], 1, policy=armlet.ContextualEpsilonGreedy(p=20), seed=1)
    same.partial_fit(rows.X, [("north", "south")[arm] for arm in rows.arm], rows.reward, explored=True)
    with pytest.raises(armlet.errors.EvaluationError, match="was trained on them"):
        search_around(log, same, 5, seed=1, reward_range=(0, 1))
