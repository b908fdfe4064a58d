"""From the CSV files of an A/B test to a page: fit, evaluate and gate, with the same words for the same columns."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armlet
from armlet.cli import main

ARMS = ("plain", "loud", "basic")  # not in the order of the alphabet
ROLES = ["--arm", "variant", "--reward", "paid", "--propensity", "1/3"]
FEATURES = ["--features", "age,country,seen"]


def rows(n: int, seed: int) -> list[dict[str, Any]]:
    """Draw visits: loud pays in Norway, plain pays elsewhere; some cells and rewards are missing."""
    rng, visits = np.random.default_rng(seed), []
    for i in range(n):
        country, variant = str(rng.choice(["no", "fr", ""], p=[0.5, 0.4, 0.1])), str(rng.choice(ARMS))
        pays = rng.random() < (0.8 if (variant == "loud") == (country == "no") and variant != "basic" else 0.2)
        age = "" if i % 17 == 3 else f"{rng.normal(40, 9):.1f}"
        seen, paid = f"2026-03-{1 + i % 28:02d}", "" if i % 41 == 5 else str(int(pays))
        visits.append({"user": f"u{i}", "age": age, "country": country, "seen": seen, "variant": variant, "paid": paid})
    return visits


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, n, seed in (("ab.csv", 600, 1), ("later.csv", 1500, 2)):
        with (tmp_path / name).open("w", newline="") as file:
            writer = csv.DictWriter(file, ["user", "age", "country", "seen", "variant", "paid"])
            writer.writeheader()
            writer.writerows(rows(n, seed))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_three_commands_lead_from_a_csv_file_to_a_page(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = ["--arm-names", ",".join(ARMS), "--policy", "LinUCB", "--seed", "1", "--out", "model.armlet"]
    assert main(["fit", "ab.csv", *FEATURES, *ROLES, *model]) == 0
    assert capsys.readouterr().out == "600 rows, 3 arms, 16 features, sums of rows: model.armlet\n"
    bandit = armlet.load("model.armlet")
    assert bandit.arms == list(ARMS)
    assert bandit.settings.features is not None
    assert {"country=no", "country=missing", "age=missing", "seen.days"} <= set(bandit.settings.features)

    candidates = ["--candidate", "model.armlet", "--candidate", "always:loud", "--estimator", "ips"]
    assert main(["evaluate", "later.csv", *ROLES, *candidates, "--json", "--out", "page.html"]) == 0
    values = json.loads(capsys.readouterr().out)["values"]
    assert (folder / "page.html").read_text().startswith("<!DOCTYPE html>")
    late = [row for row in rows(1500, 2) if row["paid"]]
    best = bandit.predict([{name: row[name] or None for name in ("country", "seen")} | age_of(row) for row in late])
    by_hand = np.mean([3 * float(row["paid"]) * (row["variant"] == arm) for row, arm in zip(late, best, strict=True)])
    assert values["model.armlet"]["value"] == pytest.approx(by_hand, rel=1e-12)
    loud = np.mean([3 * float(row["paid"]) * (row["variant"] == "loud") for row in late])
    assert values["always:loud"]["value"] == pytest.approx(loud, rel=1e-12)

    gate = ["--candidate", "model.armlet", "--against", "always:basic", "--reward-range", "0..1"]
    assert main(["gate", "later.csv", *ROLES, *gate]) == 0
    assert capsys.readouterr().out.startswith("Keep")


def age_of(row: dict[str, Any]) -> dict[str, Any]:
    seen = np.datetime64(row["seen"])
    return {"age": float(row["age"]) if row["age"] else None, "seen": seen}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fit", "ab.csv", *ROLES, "--out", "m.armlet"], "--features is missing: name the columns that were known"),
        (["fit", "ab.csv", *FEATURES, "--arm", "variant", "--out", "m.armlet"], "--reward is missing; name the column"),
        (["evaluate", "ab.csv", *ROLES[:4], "--candidate", "uniform"], "--propensity is missing; name the column"),
        (
            ["evaluate", "ab.csv", *ROLES[2:], "--candidate", "always:no"],
            "--candidate is always:no, but the log has no",
        ),
        (["gate", "ab.csv", *ROLES, "--candidate", "uniform"], "--reward-range is missing"),
        (
            ["gate", "ab.csv", *ROLES, "--candidate", "uniform", "--reward", "pay"],
            "--reward names 'pay', which is not a",
        ),
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_cannot_be_known_is_asked_for(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_a_log_says_itself_what_its_columns_are(capsys: pytest.CaptureFixture[str]) -> None:
    armlet.log.write(armlet.Table("ab.csv", reward="paid", propensity=1 / 3), "log.parquet")
    assert main(["evaluate", "log.parquet", "--candidate", "uniform"]) == 0
    armlet.log.write(armlet.Table("ab.csv", reward="paid", propensity=1 / 3), "log.jsonl")
    with pytest.raises(SystemExit):
        main(["fit", "log.jsonl", "--out", "m.armlet"])
    assert (
        "LOG is log.jsonl, a log of JSON lines; write it as Parquet first: armlet log compact"
        in capsys.readouterr().err
    )
    with pytest.raises(SystemExit):
        main(["evaluate", "log.parquet", "--candidate", "uniform", "--arm", "variant"])
    assert "--arm is 'variant', but LOG is a log, which says that itself; leave it out" in capsys.readouterr().err
