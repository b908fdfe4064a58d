"""`armlet evaluate` at the command line."""

from __future__ import annotations

import json
from pathlib import Path

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
    words = ["evaluate", str(log), "--policy", model, "--policy", "always:north", "--policy", "own", "--out", str(page)]
    assert main(words) == 0
    told = capsys.readouterr().out
    assert "always:north" in told
    assert "weighted" in told
    assert "difference in reward from logged (higher is better)" in told
    assert page.stat().st_size > 1000


def test_json_has_the_same_numbers(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(log), "--policy", "always:north", "--reward-range", "0..1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    mine = armlet.evaluate(log, {"always:north": "north"}, reward_range=(0, 1)).to_dict()
    command = found["made"].pop("call")
    assert command == f"armlet evaluate {log} --policy always:north --reward-range 0..1 --json"
    mine["made"].pop("call")
    assert found == mine
    assert found["values"]["always:north"]["anytime"] is not None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--policy", "always:west"],
            "--policy is always:west, but the log has no such arm; choose one of north",
        ),
        (
            ["--policy", "best"],
            "--policy is best, which is not a model file; choose one of uniform, ",
        ),
        (["--policy", "unifrm"], "--policy is unifrm, which is not a model file; did you mean 'uniform'? see"),
        (
            ["--policy", "uniform", "--baseline", "always:nort"],
            "--baseline is always:nort, but the log has no such",
        ),
        (["--policy", "uniform", "--level", "2"], "--level is 2.0; give a number between 0 and 1"),
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
        main(["evaluate", str(log.with_name("none.jsonl")), "--policy", "uniform"])
    assert "does not exist" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="1"):
        main(["evaluate", str(log), "--policy", "uniform", "--out", str(log.parent / "nowhere" / "page.html")])
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
        main(["evaluate", str(path), "--policy", "uniform"])
    assert "could not have been otherwise" in capsys.readouterr().err
