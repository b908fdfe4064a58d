"""`armlet evaluate` at the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armlet
from armlet.cli import main


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Write a log of 200 decisions and a model."""
    rng = np.random.default_rng(2)
    path = tmp_path / "decisions.jsonl"
    with armlet.Log(path) as kept:
        policy = armlet.Algorithm1(p=100, warmup="uniform")
        bandit = armlet.Bandit(["north", "south"], 2, policy=policy, seed=5, log=kept)
        for _ in range(200):
            x = [1.0, rng.uniform()]
            decision = bandit.decide(x)
            bandit.learn(decision, float(rng.random() < (0.7 if decision.arm == "north" else 0.3)))
        bandit.save(tmp_path / "model.armlet")
    return path


def test_a_table_and_a_page_come_out(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = log.with_name("report.html")
    model = str(log.with_name("model.armlet"))
    words = [
        "evaluate",
        str(log),
        "--candidate",
        model,
        "--candidate",
        "always:north",
        "--candidate",
        "own",
        "--out",
        str(page),
    ]
    assert main(words) == 0
    output = capsys.readouterr().out
    assert "always:north" in output
    assert "weighted" in output
    assert "difference in reward from logged (higher is better)" in output
    assert page.stat().st_size > 1000


def test_json_has_the_same_numbers(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(log), "--candidate", "always:north", "--reward-range", "0..1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    mine = armlet.evaluate(log, {"always:north": "north"}, reward_range=(0, 1)).to_dict()
    command = found["made"].pop("call")
    assert command == f"armlet evaluate {log} --candidate always:north --reward-range 0..1 --json"
    mine["made"].pop("call")
    assert found == mine
    assert found["values"]["always:north"]["anytime"] is not None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--candidate", "always:west"],
            "--candidate is always:west, but the log has no such arm; choose one of north",
        ),
        (
            ["--candidate", "best"],
            "--candidate is best, which is not a model file; choose one of uniform, ",
        ),
        (["--candidate", "unifrm"], "--candidate is unifrm, which is not a model file; did you mean 'uniform'? see"),
        (
            ["--candidate", "uniform", "--baseline", "always:nort"],
            "--baseline is always:nort, but the log has no such",
        ),
        (["--candidate", "uniform", "--level", "2"], "--level is 2.0; give a number between 0 and 1"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(
    log: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["evaluate", str(log), *words])
    assert message in capsys.readouterr().err


def test_a_missing_log_or_folder_fails(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="1"):
        main(["evaluate", str(log.with_name("none.jsonl")), "--candidate", "uniform"])
    assert "does not exist" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="1"):
        main(["evaluate", str(log), "--candidate", "uniform", "--out", str(log.parent / "nowhere" / "page.html")])
    assert "in a folder that does not exist" in capsys.readouterr().err


def test_a_log_that_cannot_be_evaluated_fails_with_its_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "greedy.jsonl"
    with armlet.Log(path) as kept:
        bandit = armlet.Bandit(["north", "south"], 1, policy=armlet.LinUCB(), seed=5, log=kept)
        for _ in range(20):
            decision = bandit.decide([1.0])
            bandit.learn(decision, 1.0 if decision.arm == "north" else 0.5)
    with pytest.raises(SystemExit, match="1"):
        main(["evaluate", str(path), "--candidate", "uniform"])
    assert "could not have been otherwise" in capsys.readouterr().err


@pytest.fixture
def routed(tmp_path: Path) -> Path:
    """Write a log of 400 decisions with outcomes, and a model that learned from others."""
    rng, path = np.random.default_rng(3), tmp_path / "routed.jsonl"
    prices: Any = {"cost": {"small": 0.001, "large": 0.03}}
    policy = armlet.ContextualEpsilonGreedy(p=300)

    def play(n: int, seed: int, log: armlet.Log | None) -> armlet.Bandit:
        outcomes = {"quality": 1.0, "cost": -5.0}
        bandit = armlet.Bandit(
            list(prices["cost"]), 1, policy=policy, outcomes=outcomes, known=prices, seed=seed, log=log
        )
        for _ in range(n):
            decision = bandit.decide([rng.uniform()])
            bandit.learn(decision, {"quality": 0.5 + 0.3 * decision.x[0] * (decision.arm == "large")})
        return bandit

    play(300, 1, None).save(tmp_path / "router.armlet")
    with armlet.Log(path) as log:
        play(400, 2, log)
    return path


def test_dials_give_a_pareto_curve(routed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, model = routed.with_name("pareto.html"), str(routed.with_name("router.armlet"))
    words = ["evaluate", str(routed), "--candidate", model, "--candidate", "always:large"]
    assert main([*words, "--dials", "6", "--out", str(page)]) == 0
    output = capsys.readouterr().out
    assert output.startswith("On 400 decisions ")
    assert "always:large" in output
    assert "Pareto curve" in page.read_text()
    assert main([*words, "--dials", "cost=-5,-20", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    mine = armlet.evaluate(routed, {model: model, "always:large": "large"}, dials=[{"cost": -5.0}, {"cost": -20.0}])
    assert found["made"].pop("call").endswith("--dials cost=-5,-20 --json")
    plain = mine.to_dict()
    plain["made"].pop("call")
    assert found == plain


def test_options_that_dials_do_not_take_are_refused(routed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(routed.with_name("router.armlet"))
    for words, message in [
        (["--exploring"], "--exploring is 'exploring', which dials do not take; leave it out"),
        (["--estimator", "dr"], "--estimator is 'dr', which dials do not take; leave it out"),
        (["--curve", "quality,speed"], "--curve is ('quality', 'speed'); give two of the outcomes"),
    ]:
        with pytest.raises(SystemExit) as refused:
            main(["evaluate", str(routed), "--candidate", model, "--dials", "5", *words])
        assert refused.value.code == 2
        assert message in capsys.readouterr().err
