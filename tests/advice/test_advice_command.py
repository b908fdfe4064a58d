"""`armlet advise`: what it prints, the logs it reads, and how it refuses what it cannot use."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.csv  # type: ignore[import-untyped]
import pyarrow.parquet  # type: ignore[import-untyped]
import pytest

import armlet
from armlet import cli
from armlet.advice import Advice, Pilot, Prior, advise, comparison, words
from armlet.advice import command as advice_command
from armlet.cli.command import count
from armlet.environments import FigureA
from armlet.policies import AutoEpsilonGreedy, ContextualEpsilonGreedy
from armlet.report.numbers import percent, show
from armlet.types import Estimate

SIZE = ["--problems", "3", "--runs", "2", "--seed", "1"]
ARMS = ["--arms", "3", "--dim", "2", "--effect", "0.3"]
KNOWN = ["advise", "--horizon", "2000", "--environment", "FigureA", *SIZE]
COLUMNS = ["--features", "1,age,country", "--arm", "ad", "--reward", "click"]


def ending(arguments: Sequence[str]) -> int | str | None:
    with pytest.raises(SystemExit) as caught:
        cli.main(list(arguments))
    return caught.value.code


def printed(arguments: Sequence[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert cli.main(list(arguments)) == 0
    return capsys.readouterr().out


def without_command(document: dict[str, Any]) -> dict[str, Any]:
    """An advice as JSON has it, but for the line that asked."""
    kept: dict[str, Any] = json.loads(json.dumps(document))
    return {name: value for name, value in kept.items() if name not in ("command", "per_day")}


@pytest.fixture(scope="module")
def advice() -> Advice:
    return advise(FigureA.draw, horizon=2000, problems=3, runs=2, seed=1)


@pytest.fixture(scope="module")
def log() -> pa.Table:
    rng, n = np.random.default_rng(3), 400
    played = rng.integers(2, size=n)
    return pa.table(
        {
            "age": rng.random(n),
            "country": rng.choice(["de", "fr"], size=n),
            "ad": np.where(played == 0, "plain", "loud"),
            "click": (rng.random(n) < 0.2 + 0.3 * played).astype(np.int64),
            "prob": np.full(n, 0.5),
        }
    )


@pytest.fixture
def pilot(log: pa.Table, tmp_path: Path) -> list[str]:
    pa.parquet.write_table(log, tmp_path / "pilot.parquet")
    return ["advise", "--horizon", "2000", "--log", str(tmp_path / "pilot.parquet"), *SIZE]


def test_json_is_the_advice_and_nothing_else(advice: Advice, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*KNOWN, "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert without_command(found) == without_command(advice.to_dict())
    assert found["command"] == f"armlet {' '.join(KNOWN)} --json"
    assert err.splitlines()[-1].startswith("simulating: done in ")


def test_the_words_tell_every_number_that_a_reader_needs(advice: Advice, capsys: pytest.CaptureFixture[str]) -> None:
    text = " ".join(printed([*KNOWN, "--unit", "euros"], capsys).split())
    o = advice.policies
    gain = show(Estimate(o.recommended.gain.value, *o.recommended.gain_range))
    assert f"over 2,000 decisions instead of {show(o.ab_test.played.total, 0)} with an A/B test, {gain} more;" in text
    assert f"about {advice.bill.explored:,.0f} of 2,000 decisions ({percent(advice.bill.share)})" in text
    assert f"that costs about {show(advice.bill.lost)} euros" in text
    assert f"every arm equally likely for {o.ab_test.plan.decisions:,} decisions" in text
    assert f"with probability {advice.sureness.chance:.0%}" in text or "above 99 %" in text
    assert f"at most {show(advice.more_data.regret)} euros" in text
    for name, total, gain in words.policies(advice).rows:
        assert f"{name} {total} {gain}" in text
    for wrong in (advice.half, advice.double):
        assert wrong is None or f"p = {wrong.p:g} would lose {100 * wrong.extra:.0f} % more" in text
    assert advice.theorem_p is not None
    assert f"Theorem 2 as printed asks for p = {show(advice.theorem_p)}" in text


def test_a_value_tells_everything_in_money_too(advice: Advice, capsys: pytest.CaptureFixture[str]) -> None:
    out = printed([*KNOWN, "--unit", "clicks", "--value", "0.30", "--currency", "EUR"], capsys)
    assert max(map(len, out.splitlines())) <= words.WIDTH
    best = advice.policies.recommended
    worth = show(Estimate(*(0.3 * each for each in (best.gain.value, *best.gain_range))))
    said = f"At EUR 0.30 each, that is about EUR {worth} more than an A/B test over 2,000 decisions."
    assert said in " ".join(out.split())
    found = json.loads(printed([*KNOWN, "--value", "0.30", "--currency", "EUR", "--json"], capsys))
    assert (found["in_money"], found["money"]) == (said, {"value": 0.3, "currency": "EUR"})


def test_no_line_is_wider_than_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert max(map(len, printed(KNOWN, capsys).splitlines())) <= words.WIDTH


def test_the_code_that_it_prints_makes_the_policies_that_it_names(advice: Advice) -> None:
    made: list[object] = []
    for line in words.usage(advice):
        scope: dict[str, Any] = {"armlet": armlet, "arms": ["a", "b"], "dim": 3}
        exec(line, scope)
        made += [scope["bandit"].policy] if "bandit" in scope else [scope["policy"]] if "policy" in scope else []
    exploring = [ContextualEpsilonGreedy(p=advice.p), AutoEpsilonGreedy(horizon=2000)]
    assert made == [eval(advice.policies.recommended.code), *exploring]
    assert advice.policies.recommended.code == "armlet.OccasionalOptimism()"


def test_a_large_p_is_printed_to_the_last_digit() -> None:
    assert comparison.given(ContextualEpsilonGreedy(p=1048577.0)) == "p=1048577"


def test_traffic_gives_the_horizon_and_times_in_days(advice: Advice, capsys: pytest.CaptureFixture[str]) -> None:
    traffic = ["advise", "--per-day", "200", "--days", "10", *KNOWN[3:]]
    found = json.loads(printed([*traffic, "--json"], capsys))
    assert (found.pop("per_day"), found.pop("found_by_day")) == (
        200,
        found["found_by"] and math.ceil(found["found_by"] / 200),
    )
    assert without_command(found) == without_command({**advice.to_dict(), "per_day": None})
    sentences = words.about_p(dataclasses.replace(advice, found_by=401, per_day=200))
    assert dict(sentences)["Best arm found"].startswith("by decision 401, day 3 of 10: ")


def test_an_environment_is_advised_on_by_its_law(capsys: pytest.CaptureFixture[str]) -> None:
    command = [
        "advise",
        "--horizon",
        "1e3",
        "--environment",
        "FigureA:n_arms=4",
        *SIZE,
        "--json",
    ]
    found = json.loads(printed(command, capsys))
    assert (found["n_arms"], found["problems"]) == (4, 3)
    assert found["source"] == "problems drawn by FigureA.draw with n_arms=4"


@pytest.mark.parametrize(
    ("option", "words"), [("--clicks", "clicks at 0.1 to 0.2"), ("--noise", "noise 0.1 to 0.2")], ids=str
)
def test_a_guess_may_have_ranges(option: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["advise", "--horizon", "1000", "--arms", "2..3", "--dim", "2", "--effect", "0.02..0.04"]
    found = json.loads(printed([*command, option, "0.1..0.2", *SIZE, "--json"], capsys))
    assert found["source"] == f"a guess: 2 to 3 arms, contexts of 2 values, effect 0.02 to 0.04, {words}"


def test_a_guess_is_a_prior(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(printed(["advise", "--horizon", "2000", *ARMS, "--noise", "0.5", *SIZE, "--json"], capsys))
    prior = Prior(n_arms=3, dim=2, effect=0.3, noise=0.5)
    asked = advise(prior, horizon=2000, problems=3, runs=2, seed=1)
    assert without_command(found) == without_command(asked.to_dict())


def test_the_same_log_in_every_format_gives_the_same_advice(
    log: pa.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pa.csv.write_csv(log, tmp_path / "log.csv")
    pa.parquet.write_table(log, tmp_path / "log.parquet")
    for name, write in (("log.arrow", pa.ipc.new_file), ("log.feather", pa.ipc.new_stream)):
        with write(tmp_path / name, log.schema) as writer:
            writer.write_table(log)
    outs = set()
    for path in sorted(tmp_path.iterdir()):
        command = ["advise", "--horizon", "2000", "--log", str(path), *COLUMNS, "--propensity", "prob", *SIZE, "--json"]
        outs.add(json.dumps(without_command(json.loads(printed(command, capsys)))))
    assert len(outs) == 1
    country = np.array(log["country"].to_pylist())
    X = np.column_stack([np.ones(400), log["age"], country == "de", country == "fr"]).astype(float)
    direct = Pilot(X, log["ad"].to_pylist(), log["click"].to_pylist(), log["prob"].to_pylist())
    wanted, found = advise(direct, horizon=2000, problems=3, runs=2, seed=1).to_dict(), json.loads(outs.pop())
    note = "2 flags stand for country: country=de, country=fr; give the bandit the same encoder"
    assert found.pop("notes") == [note, *wanted.pop("notes")]
    assert found == without_command(wanted)
    assert [check["arm"] for check in found["checks"]] == ["loud", "plain"]


def test_costs_are_rewards_turned_round(log: pa.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pay = pa.array(np.random.default_rng(4).normal(size=400) + np.array(log["click"]))
    negative = pa.array(-np.array(pay))
    pa.parquet.write_table(log.append_column("pay", pay).append_column("cost", negative), tmp_path / "log.parquet")
    command = ["advise", "--horizon", "2000", "--log", str(tmp_path / "log.parquet"), *COLUMNS[:4], *SIZE, "--json"]
    asked = (["--reward", "pay"], ["--reward", "cost", "--objective", "min"], ["--reward", "cost"])
    earned, spent, wrong = (json.loads(printed([*command, *each], capsys)) for each in asked)
    assert earned["grid"] == spent["grid"] != wrong["grid"]
    for one, other in zip(earned["policies"]["rows"], spent["policies"]["rows"], strict=True):
        assert (one["total"], one["gain"], one["lost"]) == (-other["total"], other["gain"], other["lost"])
    assert "it earns about" in earned["answer"]
    assert "it costs about" in spent["answer"]


def test_a_constant_is_added_where_features_hold_none(pilot: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The bandit has one of its own, so to name a 1 among the features changes nothing."""
    found = [json.loads(printed([*pilot, *COLUMNS, "--features", each, "--json"], capsys)) for each in ("age", "1,age")]
    assert found[0]["grid"] == found[1]["grid"]
    assert "contexts of 1 values" in found[0]["source"]


def test_arms_may_be_numbers(log: pa.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    numbered = log.set_column(2, "ad", pa.array([1 if ad == "loud" else 2 for ad in log["ad"].to_pylist()]))
    pa.csv.write_csv(numbered, tmp_path / "log.csv")
    command = ["advise", "--horizon", "2000", "--log", str(tmp_path / "log.csv"), *COLUMNS, *SIZE, "--json"]
    plain, named = (json.loads(printed(each, capsys)) for each in (command, [*command, "--arm-names", "1,2"]))
    assert without_command(plain) == without_command(named)
    assert ending([*command, "--arm-names", "1,b"]) == 2
    assert "--arm-names has 'b', but the table names arms by whole numbers" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--environment", "FigureA"],
            "missing: --horizon (how many decisions there will be), or --per-day and --days; for example: armlet",
        ),
        (["--days", "3", "--environment", "FigureA"], "missing: --per-day (decisions a day), or --horizon in place of"),
        (["--horizon", "9", "--per-day", "3", "--days", "3"], "--horizon is 9 but --days is 3 too; give one of them"),
        (["--per-day", "0", "--days", "3"], "--per-day is 0; give 1 or more"),
        (["--horizon", "many"], "argument --horizon: invalid count: 'many'"),
        (["--horizon", "1", "--environment", "FigureA"], "horizon is 1"),
        (["--horizon", "99"], "missing: what is known (one of --environment; --log; --arms, --dim and --effect)"),
        (["--horizon", "99", "--environment", "FigureA", "--dim", "3"], "--environment and --dim do not go together"),
        (
            ["--horizon", "99", "--environment", "Customers", "--objective", "min"],
            "objective is 'min' but rewards are 0 or 1; count what is wanted",
        ),
        (["--horizon", "99", *ARMS, "--noise", "1", "--current", "a"], "--current and --arms do not go together"),
        (["--horizon", "99", *ARMS, "--clicks", "0.5", "--mean", "0.5"], "--mean and --clicks do not go together"),
        (["--horizon", "99", *ARMS, "--noise", "1", "--value", "0.3"], "missing: --currency (of --value, such as EUR)"),
        (
            ["--horizon", "99", *ARMS, "--noise", "1", "--value", "0", "--currency", "EUR"],
            "--value is 0.0; give what one unit of reward is worth, such as 0.30",
        ),
        (
            ["--horizon", "99", *ARMS, "--noise", "1", "--value", "1", "--currency", "doubloons"],
            "--currency is 'doubloons'; give a word of at most 8 letters, such as EUR",
        ),
        (
            ["--horizon", "99", *ARMS, "--noise", "1", "--out", "advice.pdf"],
            "--out is advice.pdf; give a name that ends",
        ),
        (["--horizon", "99", "--environment", "FigureC"], "there is no environment 'FigureC'; did you mean 'FigureB'?"),
        (["--horizon", "99", "--environment", "Drifting"], "arms change over time"),
        (["--horizon", "99", *ARMS], "missing: --noise (the standard deviation of a reward), or --clicks if rewards"),
        (["--horizon", "99", *ARMS, "--effect", "0.1.."], "argument --effect: invalid range: '0.1..'"),
        (["--horizon", "99", *ARMS, "--arms", "1", "--noise", "1"], "--arms is 1; give whole numbers of at least 2"),
        (["--horizon", "99", *ARMS, "--clicks", "2"], "--clicks is 2; give a share of clicks between 0 and 1"),
        (["--horizon", "99", *ARMS, "--clicks", "0.01"], "effect is 0.3 but --clicks is 0.01"),
        (["--horizon", "99", *ARMS, "--noise", "1", "--runs", "1"], "runs is 1"),
        (["--horizon", "99", *ARMS, "--noise", "1", "--unit", "x" * 21], "give a word of at most 20 letters"),
        (
            ["--horizon", "99", "--environment", "FigureA:K=2"],
            "FigureA has no setting 'K'; choose one of n_arms",
        ),
        (
            ["--horizon", "99", "--log", "pilot.csv"],
            "missing: --features (its columns that make a context); --arm (",
        ),
        (["--horizon", "99", "--log", "pilot.txt", *COLUMNS], "--log is pilot.txt; give a file that ends in .csv, "),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_code_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ending(["advise", *arguments]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("armlet advise: error: ")
    assert message in err


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (
            [],
            ["--horizon", "--environment", "--log", "--arms", "; for example: armlet advise --horizon 100k --arms 5 "],
        ),
        (["--arms", "3"], ["--horizon", "--dim", "--effect", "--noise", "--clicks"]),
        (["--arms", "3", "--currency", "EUR"], ["--horizon", "--dim", "--effect", "--noise", "--value (what one unit"]),
        (["--days", "3", "--reward", "click"], ["--per-day", "--log pilot.csv", "--features", "--arm "]),
    ],
)
def test_all_that_is_missing_is_named_at_once(
    arguments: list[str], names: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert ending(["advise", *arguments]) == 2
    said = capsys.readouterr().err
    assert [name for name in names if name not in said] == []


@pytest.mark.parametrize("horizon", ["2000", "2k", "2K", "2e3", "2_000", "0.002M"])
def test_a_count_may_be_written_short(horizon: str) -> None:
    assert count(horizon) == 2000


@pytest.mark.parametrize("text", ["", "k", "many", "2.5", "0.0001k", "nan", "inf", "1e999999999", "1kk", "5 %"])
def test_what_is_no_whole_number_is_no_count(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=r"invalid count: .*; write a whole number, such as 50000"):
        count(text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--features", "agee"],
            "--features names 'agee', which is not a column of pilot.parquet; did you mean 'age'?",
        ),
        (
            ["--features", "age,age"],
            "--features names a column twice: age; give each once",
        ),
        (
            ["--arm", "offer"],
            "--arm names 'offer', which is not a column of pilot.parquet; choose one of age, ",
        ),
        (["--reward", "ad"], "--reward names 'ad', which --arm names before"),
        (["--propensity", "chance"], "--propensity names 'chance', which is not a column"),
        (["--propensity", "age"], "--propensity names 'age', which --features names before"),
        (["--arm-names", "plain,loud,loudest"], "the pilot never tried arm 'loudest', so nothing is known of it"),
        (
            ["--arm-names", "plain,loudest"],
            "row 0: column 'ad' is 'loud', which is none of the arms; name all of",
        ),
        (["--current", "loudest"], "current is 'loudest'; choose one of 'loud', 'plain'"),
    ],
)
def test_a_log_that_cannot_be_used_is_refused_by_the_name_of_the_argument(
    arguments: list[str], message: str, pilot: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert ending([*pilot, *COLUMNS, *arguments]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err


def test_too_many_texts_are_refused(log: pa.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log.parquet"
    pa.parquet.write_table(log.set_column(1, "country", pa.array(list(map(str, range(400))))), path)
    assert ending(["advise", "--horizon", "99", "--log", str(path), *COLUMNS, *SIZE]) == 2
    assert "column 'country' has 400 different texts; group them into 50 or fewer" in capsys.readouterr().err


def test_a_file_that_is_no_table_is_told_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("log.csv", "log.parquet", "log.arrow"):
        (tmp_path / name).write_bytes(b'a,b\n1\n"2,')
        assert ending(["advise", "--horizon", "99", "--log", str(tmp_path / name), *COLUMNS]) == 2
        err = capsys.readouterr().err
        assert err.count("\n") == 1
        assert f"--log is {name}, which cannot be read: " in err
    assert ending(["advise", "--horizon", "99", "--log", str(tmp_path / "no.csv"), *COLUMNS]) == 1
    assert "no.csv, which does not exist" in capsys.readouterr().err


def test_an_interrupt_ends_quietly_and_leaves_no_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(advice_command, "advise", interrupt)
    assert cli.main([*KNOWN, "--out", str(tmp_path / "page.html")]) == 130
    assert capsys.readouterr() == ("", "\ninterrupted: nothing was written\n")
    assert list(tmp_path.iterdir()) == []


def test_a_page_that_could_not_be_written_is_told_before_anything_is_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ending([*KNOWN, "--out", str(tmp_path)]) == 1
    assert capsys.readouterr() == (
        "",
        f"armlet advise: error: --out is {tmp_path}, a directory; add a file name, such as advice.html\n",
    )
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert ending([*KNOWN, "--out", str(tmp_path / "page.html")]) == 1
    error = "armlet advise: error: plots need matplotlib; pip install 'armlet[plots]'\n"
    assert capsys.readouterr() == ("", error)
