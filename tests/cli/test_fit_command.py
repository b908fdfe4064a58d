"""`armlet fit`: a model in one line, refusals in the words of the command line."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

import armlet
from armlet import cli

ROLES = ["--features", "age,country", "--arm", "ad", "--reward", "click", "--seed", "7"]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    country, ad = rng.choice(["no", "fr"], 500), rng.choice(["a", "b"], 500)
    rows = pa.table({"age": rng.normal(size=500), "country": country, "ad": ad, "click": rng.normal(size=500)})
    pq.write_table(rows, tmp_path / "log.parquet")
    return tmp_path / "log.parquet"


def test_it_writes_the_model_that_fit_makes(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = log.with_name("model.armlet")
    assert cli.main(["fit", str(log), "--policy", "LinUCB:alpha=0.5", *ROLES, "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"500 rows, 2 arms, 4 features, sums of rows: {out}\n"
    policy = armlet.LinUCB(alpha=0.5)
    features = ["age", "country"]
    wanted = armlet.fit(log, policy, features=features, arm="ad", reward="click", seed=7)
    assert armlet.load(out).to_bytes() == wanted.to_bytes()
    assert armlet.load(out).decide({"age": 31.0, "country": "jp"}).arm in ("a", "b")


def test_it_says_when_rows_are_learned_one_by_one(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(log.with_name("model.armlet"))
    arguments = ["--policy", "AutoEpsilonGreedy", "--all-explored", *ROLES, "--out", out]
    assert cli.main(["fit", str(log.parent), *arguments]) == 0
    assert "row by row, since what it knows is not a sum of rows" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ["--policy", "Algorithm1:p=9", *ROLES],
            2,
            "--explored is missing: .* or give --all-explored if all were; see",
        ),
        (
            ["--policy", "LinUCB", "--features", "age"],
            2,
            "--arm is missing; name the column of what was played: one of country, ad",
        ),
        (["--policy", "LinUCB", "--arm", "ad", "--reward", "click"], 2, "--features is missing: name the columns"),
        (["--policy", "LinUCB", "--arm", "age", *ROLES[:2]], 2, "--arm names 'age', which --features names before"),
        (["--policy", "Magic", *ROLES], 2, "there is no policy 'Magic'; armlet list shows all"),
        (["--policy", "LinUCB", "--explored", "a", "--all-explored", *ROLES], 2, "are both given; give one"),
        (["--policy", "LinUCB", *ROLES, "--engine", "spark"], 2, "engine is 'spark'"),
        (["--policy", "LinUCB", *ROLES, "--out", "nowhere/model.armlet"], 1, "--out is nowhere/model.armlet, in a"),
    ],
)
def test_refusals_are_one_line_in_its_own_words(
    arguments: list[str], code: int, message: str, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = log.with_name("model.armlet")
    with pytest.raises(SystemExit) as caught:
        cli.main(["fit", str(log), "--out", str(out), *arguments])
    assert caught.value.code == code
    said = capsys.readouterr().err
    assert said.startswith("armlet fit: error: ")
    assert said.count("\n") == 1
    assert re.search(message, said)
    assert not out.exists()


def test_without_a_policy_the_default_is_fitted(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = log.with_name("model.armlet")
    assert cli.main(["fit", str(log), *ROLES, "--out", str(out)]) == 0
    assert "sums of rows" in capsys.readouterr().out
    assert armlet.load(out).policy == armlet.OccasionalOptimism()
