"""`armlet summary` and `armlet intervals`, run on small models."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import armlet
from armlet import cli


@pytest.fixture
def model(tmp_path: Path) -> Path:
    bandit = armlet.Bandit(["a", "b"], features=["age"], policy=armlet.ContextualEpsilonGreedy(p=20), seed=1)
    for t in range(80):
        decision = bandit.decide({"age": t % 7})
        bandit.learn(decision, 2.0 * (t % 7) + t % 3)
    bandit.save(tmp_path / "model.armlet")
    return tmp_path / "model.armlet"


def test_summary_prints_and_draws_a_model(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["summary", str(model), "--plot", str(model.with_suffix(".svg"))]) == 0
    assert "80 decisions; rewards" in capsys.readouterr().out
    assert "<svg" in model.with_suffix(".svg").read_text()


def test_intervals_are_json_if_asked(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["intervals", str(model), "--interval", "anytime", "--level", "0.9", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["level"] == 0.9
    slope = found["coefficients"][1]
    assert (slope["arm"], slope["feature"]) == ("a", "age")
    assert slope["low"] < 2.0 < slope["high"]
    assert cli.main(["intervals", str(model)]) == 0
    assert "95 % intervals" in capsys.readouterr().out


def test_wrong_calls_end_with_a_line(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, code in ((["--level", "2"], 2), (["--interval", "never"], 2)):
        with pytest.raises(SystemExit) as ended:
            cli.main(["summary", str(model), *arguments])
        assert ended.value.code == code
    with pytest.raises(SystemExit) as ended:
        cli.main(["intervals", str(model.with_name("none.armlet"))])
    assert ended.value.code == 1
    assert "none.armlet" in capsys.readouterr().err


def test_a_missing_file_is_named_without_the_number_of_the_error(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("summary", "intervals"):
        with pytest.raises(SystemExit) as ended:
            cli.main([command, "nowhere.armlet"])
        assert ended.value.code == 1
        assert capsys.readouterr().err == f"armlet {command}: error: nowhere.armlet: no such file or directory\n"
