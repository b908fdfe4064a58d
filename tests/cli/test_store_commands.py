"""`armlet store`, and commands that read the log of a loop in a store: next to its process, and on damaged files."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import apsw
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

import armlet
from armlet.cli import main
from armlet.log.reader import read
from armlet.stores import encoding
from armlet.stores.ledger import Row

N = 60


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a store with a loop of 60 decisions, 40 of them rewarded, and a second loop."""
    monkeypatch.chdir(tmp_path)
    with armlet.open_store("shop.db") as store:
        loop = store.loop("home", arms=["a", "b", "c"], features=["one", "age"], policy=policy(), seed=3)
        events = [f"e{i}" for i in range(N)]
        loop.decide_many([[1.0, (i % 5) / 4] for i in range(N)], events=events)
        loop.reward_many([(event, (i % 4) / 4) for i, event in enumerate(events) if i % 3])
        loop.retire_arm("c")
        store.loop("side", arms=[1, 2], dim=1, seed=4).decide([1.0])
    return Path("shop.db")


def policy() -> armlet.Policy:
    return armlet.Algorithm1(p=12, warmup="uniform")


def run(*words: str) -> int:
    """Run a command on the store and return its exit code."""
    return ended("store", "shop.db", *words)


def ended(*words: str) -> int:
    try:
        return main(words)
    except SystemExit as end:
        return int(end.code or 0)


def shown(capsys: pytest.CaptureFixture[str], name: str = "home") -> dict[str, Any]:
    assert run("show", name, "--json") == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def digest(name: str = "home") -> str:
    with armlet.open_store("shop.db") as store:
        return store.loop(name).model().digest()


# ---- what reads


@pytest.mark.usefixtures("shop")
def test_list_names_loops_with_their_counts(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list") == 0
    head, home, side, total = capsys.readouterr().out.splitlines()
    assert head.split() == ["decisions", "rewards", "rows", "bytes", "last", "decision", "loop"]
    assert (home.split()[:3], home.split()[-1]) == (["60", "40", "101"], "home")
    assert (side.split()[:3], side.split()[-1]) == (["1", "0", "1"], "side")
    assert total.startswith("loops: 2, bytes of the store: ")
    assert run("list", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in found["loops"]] == ["home", "side"]
    assert 0 < found["loops"][0]["bytes"] < found["bytes"]


@pytest.mark.usefixtures("shop")
def test_show_says_what_a_loop_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("show", "home") == 0
    output = capsys.readouterr().out
    lines = dict(line.split(maxsplit=1) for line in output.split("\n\n")[0].splitlines())
    assert lines["policy"] == repr(policy())
    assert lines["features"] == '["one", "age"]'
    assert lines["rewards"] == "40 accepted"
    assert lines["waiting"] == "20 decisions for a reward, 0 rewards for their decision"
    assert lines["digest"] == digest()
    assert output.splitlines()[-2].endswith("  c, retired")
    assert output.splitlines()[-1].startswith("gain: is the live policy better than random play? nothing to say; ")
    found = shown(capsys)
    assert (found["arms"], found["retired"], found["open"]) == (["a", "b"], ["c"], 20)
    assert sum(each["decisions"] for each in found["counts"]) == N
    assert found["alarms"] == []


@pytest.mark.usefixtures("shop")
def test_verify_prints_the_digest_of_what_rows_lead_to(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("verify") == 0
    home, side = capsys.readouterr().out.splitlines()
    assert home.startswith("home: ok, 101 rows, 101 of them played again, 60 outcomes, the snapshot at row 101 is the")
    assert home.endswith(f"digest {digest()}")
    assert side.startswith("side: ok, 1 rows")
    assert run("verify", "home", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["ok"], found["loops"][0]["digest"], len(found["loops"])) == (True, digest(), 1)


@pytest.mark.usefixtures("shop")
def test_verify_tells_its_progress_where_there_is_much(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("verify", "home") == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("armlet.cli.stores.MANY", 100)
    assert run("verify", "home") == 0
    first, last = capsys.readouterr().err.splitlines()
    assert first == "verifying home: 0 %"
    assert last.startswith("verifying home: done in ")
    assert run("verify", "home", "--json", "--quiet") == 0
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("shop")
def test_export_writes_the_log_of_a_loop(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("export", "home", "home.jsonl") == 0
    assert run("export", "home", "home.parquet") == 0
    assert main(["log", "export", "shop.db", "again.jsonl", "--loop", "home"]) == 0
    sizes = [f"{name}: {Path(name).stat().st_size:,} bytes" for name in ("home.jsonl", "home.parquet", "again.jsonl")]
    assert capsys.readouterr().out.splitlines() == sizes
    with armlet.open_store("shop.db") as store:
        assert list(read("home.jsonl")) == list(store.loop("home").log)
    assert Path("again.jsonl").read_bytes() == Path("home.jsonl").read_bytes()
    assert pq.read_table("home.parquet")["reward"].to_pylist().count(None) == 20


@pytest.mark.usefixtures("shop")
def test_backup_copies_the_store(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("backup", "copy.db") == 0
    assert capsys.readouterr().out.startswith("copy.db: ")
    with armlet.open_store("copy.db") as store:
        assert store.loop("home").model().digest() == digest()
    assert run("backup", "copy.db") == 1
    assert "copy.db exists; name a file that does not" in capsys.readouterr().err


@pytest.mark.usefixtures("shop")
def test_commands_that_read_a_log_read_that_of_a_loop(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", "show", "shop.db", "--loop", "home", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["loop"], found["events"]) == ("home", {"start": 1, "decide": 60, "learn": 40, "retire_arm": 1})
    assert 1e15 < found["from"] <= found["to"]
    assert main(["log", "tail", "shop.db", "--loop", "home", "-n", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "retire_arm"
    assert run("export", "home", "home.jsonl") == 0
    for words in (
        ["evaluate", "--candidate", "uniform", "--json"],
        ["rejection-replay", "--policy", "Uniform"],
        ["gate", "--candidate", "always:b", "--reward-range", "0..1", "--json"],
    ):
        runs = []
        for log in (["shop.db", "--loop", "home"], ["home.jsonl"]):
            capsys.readouterr()
            assert ended(words[0], *log, *words[1:]) in (0, 4)  # not yet, says a gate
            runs.append(re.sub(r', "made": \{[^}]*\}', "", capsys.readouterr().out))  # it names the log and the command
        assert runs[0] == runs[1] != ""


# ---- what writes


@pytest.mark.usefixtures("shop")
def test_forget_unlearns_decisions(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("forget", "home", "e1", "e2", "e1", "nobody") == 0
    assert capsys.readouterr().out == ("forgot 2 of 3 decisions; the others are not there, or were forgotten before\n")
    assert b'"e1"' not in Path("shop.db").read_bytes()
    assert run("verify") == 0
    assert "58 outcomes" in capsys.readouterr().out


@pytest.mark.usefixtures("shop")
def test_prune_deletes_what_is_old_and_did_not_explore(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("prune", "--before", "1d") == 0
    assert capsys.readouterr().out.startswith("pruned 0 decisions from before 20")
    with armlet.open_store("shop.db") as store:
        store.loop("home").decide_many([[1.0, 0.5]] * 40)
        greedy = sum(not event.get("explored", True) for name in store.loops for event in store.loop(name).log)
    assert run("prune", "--before", "9999-12-31") == 0
    assert greedy > 10
    assert capsys.readouterr().out == f"pruned {greedy} decisions from before 9999-12-31T00:00:00Z\n"
    assert run("verify") == 0


CHANGES: dict[str, tuple[list[str], Callable[[dict[str, Any]], object], object]] = {
    "a window": (
        ["--window", "60", "--default-reward", "0"],
        lambda found: (found["terms"]["window"], found["terms"]["default_reward"]),
        (60.0, 0.0),
    ),
    "an aggregation": (["--aggregation", "sum"], lambda found: found["terms"]["aggregation"], "sum"),
    "early rewards": (["--early-window", "5"], lambda found: found["terms"]["early_window"], 5.0),
    "a range": (["--reward-range=-2..3"], lambda found: found["reward_range"], [-2, 3]),
    "features": (["--features", "one,new", "--fill", "new=0"], lambda found: found["features"], ["one", "new"]),
    "arms": (["--arms", "b,c,d"], lambda found: (found["arms"], found["retired"]), (["b", "c", "d"], ["a"])),
    "settings": (
        ["--policy", "Algorithm1:p=50"],
        lambda found: (found["policy"]["name"], found["policy"]["settings"]["p"]),
        ("Algorithm1", 50),
    ),
    "a control": (
        ["--control", "b", "--share", "0.25"],
        lambda found: (found["guards"]["control"], found["guards"]["share"]),
        ('always "b"', 0.25),
    ),
    "a shadow": (
        ["--shadow", "LinUCB", "--refit"],
        lambda found: found["guards"]["shadow"] is not None,
        True,
    ),
    "a policy": (["--policy", "LinUCB:alpha=0.5", "--refit"], lambda found: found["policy"]["name"], "LinUCB"),
}


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize("name", CHANGES)
def test_change_goes_on_with_other_terms(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    words, pick, expected = CHANGES[name]
    before = pick(shown(capsys))
    assert run("change", "home", *words) == 0
    assert capsys.readouterr().out.startswith("home: changed ")
    assert pick(shown(capsys)) == expected != before
    assert run("verify") == 0


@pytest.mark.usefixtures("shop")
def test_windows_can_be_taken_away_and_arms_may_be_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("change", "side", "--arms", "2,3", "--window", "9", "--default-reward", "0") == 0
    assert run("change", "side", "--window", "none", "--default-reward", "none") == 0
    capsys.readouterr()
    found = shown(capsys, "side")
    assert (found["arms"], found["retired"], found["terms"]["window"]) == ([2, 3], [1], None)


@pytest.mark.usefixtures("shop")
def test_outcomes_and_a_budget_are_shown_and_changed(capsys: pytest.CaptureFixture[str]) -> None:
    with armlet.open_store("shop.db") as store:
        loop = store.loop(
            "router",
            arms=["small", 2],
            dim=1,
            outcomes={"quality": 1.0, "cost": -40.0},
            known={"cost": {"small": 0.001, 2: 0.03}},
            budget=armlet.Budget("cost", total=2.5, horizon=1000),
            seed=1,
        )
        loop.decide([1.0], event="r-1", eligible=[2])
        loop.reward("r-1", {"quality": 0.5})
    assert run("show", "router") == 0
    output = capsys.readouterr().out
    assert re.search(r"^outcomes +quality=1, cost=-40 \(known\)$", output, re.M)
    assert re.search(r"^budget +.*0\.03 of 2\.5 cost spent, 2\.47 left for 999 decisions; price", output, re.M)
    assert re.search(r"^ +1 +0\.5  quality$", output, re.M)
    assert re.search(r"^ +1 +0\.03  cost of 2$", output, re.M)
    words = ("--outcomes", "cost=-20", "--known", "cost:2=0.02,tiny=0.0001", "--arms", "small,2,tiny")
    assert run("change", "router", *words, "--budget", "cost:total=5,horizon=2k") == 0
    assert capsys.readouterr().out == "router: changed outcomes, budget, arms, known\n"
    found = shown(capsys, "router")
    assert found["weights"] == {"quality": 1.0, "cost": -20.0}
    assert found["arms"] == ["small", 2, "tiny"]
    assert (found["budget"]["total"], found["budget"]["spent"]) == (5.0, 0.03)
    with armlet.open_store("shop.db") as store:
        outcomes = store.loop("router").model().settings.outcomes
        assert outcomes is not None
        assert outcomes.known == {"cost": {"small": 0.001, 2: 0.02, "tiny": 0.0001}}


@pytest.mark.usefixtures("shop")
def test_actions_are_shown_and_their_policy_changed(capsys: pytest.CaptureFixture[str]) -> None:
    with armlet.open_store("shop.db") as store:
        loop = store.loop("films", features=["age"], action_features=["genre"], seed=3)
        loop.prepare("all", {"Alien": [1.0], "Heat": [0.0]})
        for i in range(4):
            loop.reward(loop.decide([0.5], actions="all", baseline="Heat", defer=i == 3).id, 0.5)
    assert run("show", "films") == 0
    text = capsys.readouterr().out
    for line in (
        'action_features      ["genre"]',
        "tables               all",
        "4 decisions, the policy",
        "1 decisions that",
    ):
        assert line in text
    assert run("change", "films", "--policy", "SharedThompson:draws=10") == 0
    assert run("change", "films", "--arms", "a,b") == 1
    assert run("freeze", "films") == 1
    assert "is for loops with arms" in capsys.readouterr().err
    assert shown(capsys, "films")["policy"]["settings"]["draws"] == 10


@pytest.mark.usefixtures("shop")
def test_guards_come_and_go_by_commands(capsys: pytest.CaptureFixture[str]) -> None:
    def guards() -> dict[str, Any]:
        capsys.readouterr()
        found: dict[str, Any] = shown(capsys)["guards"]
        return found

    assert run("freeze", "home") == 0
    assert guards()["is_frozen"]
    assert run("thaw", "home") == 0
    assert not guards()["is_frozen"]
    assert run("change", "home", "--control", "a", "--shadow", "LinUCB", "--refit") == 0
    assert (guards()["control"], guards()["share"]) == ('always "a"', 0.1)
    assert run("promote", "home") == 1
    assert capsys.readouterr().out.startswith("home: not promoted\n")
    assert run("promote", "home", "--gate", "off", "--share", "0.2") == 0
    assert guards()["share"] == 0.2
    assert run("change", "home", "--control", "none") == 0
    assert guards()["control"] is None
    assert run("verify") == 0


@pytest.mark.usefixtures("shop")
def test_delete_asks_whether_it_is_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("delete", "side") == 2
    assert "--yes is missing; give it if loop 'side' is to be deleted for good" in capsys.readouterr().err
    assert run("delete", "side", "--yes") == 0
    assert capsys.readouterr().out == "deleted side\n"
    assert run("list", "--json") == 0
    assert [each["name"] for each in json.loads(capsys.readouterr().out)["loops"]] == ["home"]


# ---- wrong calls


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["store", "none.db", "list"], 1, "none.db is not there; give the path of a store"),
        (["store", "none.db", "prune", "--before", "9d"], 1, "STORE is none.db, which is not a store"),
        (["store", "text.db", "list"], 1, "text.db cannot be read: file is not a database"),
        (["store", "text.db", "forget", "home", "e1"], 1, "STORE is text.db, which is not a store"),
        (["store", "empty.db", "list"], 1, "empty.db is empty; give the path of a store"),
        (["store", "old.db", "list"], 1, "old.db is a store of version 6, and can be read once it is of version 8"),
        (["store", "shop.db", "show", "hoem"], 2, "NAME is 'hoem'; did you mean 'home'?"),
        (["store", "shop.db", "verify", "other"], 2, "NAME is 'other'; choose one of home, side"),
        (["store", "shop.db", "forget", "other", "e1"], 2, "NAME is 'other'; choose one of home, side"),
        (["store", "shop.db", "export", "home", "home.txt"], 2, "OUT is home.txt; give a name that ends in .jsonl"),
        (["store", "shop.db", "backup", "none/copy.db"], 1, "none/copy.db cannot be written: "),
        (
            ["store", "shop.db", "prune", "--before", "soon"],
            2,
            "argument --before: invalid moment: 'soon'; write a date",
        ),
        (
            ["store", "shop.db", "prune", "--before", "9" * 9 + "d"],
            2,
            "argument --before: invalid moment: '999999999d'",
        ),
        (["store", "shop.db", "change", "home"], 2, "there is nothing to change; give --policy, --arms, --window"),
        (
            ["store", "shop.db", "change", "home", "--refit"],
            2,
            "--refit is given, but --policy is not; name the policy",
        ),
        (
            ["store", "shop.db", "change", "home", "--share", "0.2"],
            2,
            "--share is given, but --control is not",
        ),
        (
            ["store", "shop.db", "change", "home", "--control", "z"],
            2,
            "control is 'z', which is not an arm; give one of",
        ),
        (["store", "shop.db", "promote", "home"], 1, "there is no shadow to promote"),
        (["store", "shop.db", "change", "home", "--window", "9"], 2, "window is 9.0 and default_reward is None"),
        (["store", "shop.db", "change", "home", "--window", "long"], 2, "--window: invalid number: 'long'; write a"),
        (["store", "shop.db", "change", "home", "--reward-range", "1"], 2, "--reward-range: invalid range: '1'; write"),
        (["store", "shop.db", "change", "home", "--fill", "new"], 2, "--fill: invalid values: 'new'; write them as in"),
        (["store", "shop.db", "change", "home", "--outcomes", "a=1"], 2, "outcomes is {'a': 1.0}"),
        (["store", "shop.db", "change", "home", "--budget", "a:total=1,period=9"], 2, "but the bandit has one reward"),
        (["store", "shop.db", "change", "home", "--budget", "a:total=1"], 2, "has neither horizon nor period"),
        (["store", "shop.db", "change", "home", "--policy", "LinUBC"], 2, "did you mean 'LinUCB'?"),
        (["log", "show", "shop.db"], 2, "--loop is missing; give one of home, side"),
        (["log", "show", "shop.db", "--loop", "hoem"], 2, "--loop is 'hoem'; did you mean 'home'?"),
        (["log", "show", "log.jsonl", "--loop", "home"], 2, "--loop is 'home', but LOG is not a store; leave it out"),
        (["evaluate", "shop.db", "--candidate", "uniform"], 2, "--loop is missing; give one of home, side"),
        (["evaluate", "none.db", "--candidate", "uniform"], 1, "log is none.db, which does not exist"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    words: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("text.db").write_text("a text that is not a database, and longer than the hundred bytes of its header" * 9)
    Path("empty.db").touch()
    Path("log.jsonl").write_text("{}\n")
    edit("PRAGMA user_version = 6", path="old.db")
    with pytest.raises(SystemExit) as end:
        main(words)
    out, err = capsys.readouterr()
    assert (end.value.code, out, err.count("\n")) == (code, "", 1)
    assert message in err
    assert not Path("none.db").exists()


def test_the_only_loop_needs_no_name(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with armlet.open_store(tmp_path / "one.db") as store:
        store.loop("only", arms=["a", "b"], dim=1, seed=1).decide([1.0])
    assert main(["log", "show", str(tmp_path / "one.db"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["loop"] == "only"


# ---- damage


def edit(sql: str, *values: object, path: str = "shop.db") -> None:
    """Change a table behind the store's back; of another file than shop.db, in a copy."""
    if path != "shop.db":
        Path(path).write_bytes(Path("shop.db").read_bytes())
    connection = apsw.Connection(path)
    connection.execute(sql, values)
    connection.close()


def mend(row: Row) -> None:
    """Put another row in the place of one, with a checksum that is right."""
    edit("DELETE FROM event WHERE loop = 1 AND seq = ?", row.seq)
    edit("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?, ?)", *encoding.event_values(1, row))


def row_of(seq: int) -> Row:
    connection = apsw.Connection("shop.db")
    columns = ", ".join(encoding.EVENT)
    found = connection.execute(f"SELECT {columns} FROM event WHERE loop = 1 AND seq = ?", (seq,)).fetchall()
    connection.close()
    return encoding.read_event(found[0])


def tamper_with_a_reward() -> None:
    row = row_of(61)
    mend(row._replace(fields={**row.fields, "reward": 1.0}))


def tamper_with_a_context() -> None:
    row = row_of(40)
    mend(row._replace(x=b"\0" * 8))


def add_a_row() -> None:
    mend(row_of(101)._replace(seq=102))


def put_another_snapshot() -> None:
    model = armlet.Bandit(["a", "b", "c"], 2, policy=policy(), features=["one", "age"], seed=3).to_bytes()
    edit("UPDATE snapshot SET seq = ?2, model = ?3, crc = ?4 WHERE loop = ?1", *encoding.snapshot_values(1, 101, model))


def break_a_page() -> None:
    """Overwrite what a table's last page holds."""
    with Path("shop.db").open("r+b") as file:
        data = file.read()
        at = data.index(b'"event":"e30"')
        page = at // 4096 * 4096
        file.seek(page)
        file.write(b"\xff" * 64)


DAMAGES: dict[str, tuple[Callable[[], object], str]] = {
    "a byte of a row": (
        lambda: edit("UPDATE event SET ts = ts + 1 WHERE loop = 1 AND seq = 50"),
        "home: not whole: row 50 of the loop is damaged: its checksum is wrong; go back to a backup",
    ),
    "a reward": (tamper_with_a_reward, "the snapshot at row 101 has digest"),
    "a context": (tamper_with_a_context, "row 40 of the loop has a context of 1 values, where there are 2 features"),
    "a missing row": (
        lambda: edit("DELETE FROM event WHERE loop = 1 AND seq = 70"),
        "row 70 of the loop is missing",
    ),
    "a missing row at the end": (
        lambda: edit("DELETE FROM event WHERE loop = 1 AND seq = 101"),
        "row 101 of the loop is missing",
    ),
    "a row too many": (add_a_row, "row 102 of the loop is not one that was written: 101 is the last"),
    "a missing decision": (
        lambda: edit("DELETE FROM event WHERE loop = 1 AND seq = 1"),
        "row 1 of the loop is missing",
    ),
    "a checksum of a snapshot": (
        lambda: edit("UPDATE snapshot SET crc = crc + 1 WHERE loop = 1"),
        "the snapshot is damaged: its checksum is wrong",
    ),
    "another snapshot": (put_another_snapshot, "the snapshot at row 101 has digest"),
    "an outcome": (
        lambda: edit("UPDATE outcome SET value = 0.75 WHERE loop = 1 AND t = 2"),
        "the outcome of step 2 of the loop is damaged: its checksum is wrong",
    ),
    "a tally": (lambda: edit("UPDATE tally SET counts = '{}' WHERE loop = 1"), "the tally of the loop is damaged"),
}


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize("name", DAMAGES)
def test_verify_names_what_is_damaged_and_goes_on_with_other_loops(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    damage, message = DAMAGES[name]
    damage()
    assert run("verify") == 1
    home, side = capsys.readouterr().out.splitlines()
    assert home.startswith("home: not whole: ")
    assert message in home
    assert side.startswith("side: ok")
    assert run("verify", "--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["ok"], [each["ok"] for each in found["loops"]]) == (False, [False, True])
    assert run("verify", "side") == 0


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (break_a_page, "shop.db is damaged: "),
        (lambda: edit("DELETE FROM outcome WHERE loop = 1 AND t = 5"), "shop.db is damaged: outcomes are missing"),
        (lambda: edit("DELETE FROM head WHERE loop = 1"), "shop.db is damaged: "),
        (
            lambda: edit("UPDATE head SET seq = 90 WHERE loop = 1"),
            "the head of loop 1 is damaged: its checksum is wrong",
        ),
        (lambda: edit("UPDATE loop SET about = '{}' WHERE id = 1"), "loop 'home' is damaged: its checksum is wrong"),
        (lambda: edit("CREATE TABLE more (a)"), "shop.db has another schema than a store of Armlet's"),
    ],
)
def test_a_damaged_file_is_said_in_one_line(
    damage: Callable[[], object], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    damage()
    assert run("verify") == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err


# ---- next to the process that has the store open

SERVER = """
import sys, armlet
with armlet.open_store("shop.db") as store:
    loop = store.loop("home")
    print(loop.model().digest(), flush=True)
    for word in sys.stdin:
        n, first = map(int, word.split())
        for at in range(first, first + n, 50):
            events = [f"more{i}" for i in range(at, at + 50)]
            loop.decide_many([[1.0, (i % 8) / 8] for i in range(50)], events=events)
            loop.reward_many([(event, 0.5) for event in events])
        print(loop.model().digest(), flush=True)
"""


class Server:
    """A process that has the store open, and does what it is asked to."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.digest = self.answer()
        self._first = 0

    def ask(self, n: int) -> None:
        """Let it decide and reward so many times."""
        self._in.write(f"{n} {self._first}\n")
        self._in.flush()
        self._first += n

    def answer(self) -> str:
        """Wait until it has, and return the digest of its model."""
        assert self.process.stdout is not None
        self.digest = self.process.stdout.readline().strip()
        return self.digest

    @property
    def _in(self) -> IO[str]:
        assert self.process.stdin is not None
        return self.process.stdin


@pytest.fixture
def server(shop: Path) -> Iterator[Server]:
    words, pipe = [sys.executable, "-c", SERVER], subprocess.PIPE
    with subprocess.Popen(words, cwd=shop.parent, text=True, stdin=pipe, stdout=pipe) as process:
        try:
            yield Server(process)
        finally:
            process.communicate()
    assert process.returncode == 0


def test_what_reads_reads_next_to_a_process(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.ask(1200)
    server.answer()
    found = shown(capsys)
    assert (found["decisions"], found["digest"]) == (N + 1200, server.digest)
    assert run("verify", "home", "--json") == 0
    assert json.loads(capsys.readouterr().out)["loops"][0]["digest"] == server.digest
    assert run("backup", "copy.db") == run("export", "home", "home.jsonl") == 0
    with armlet.open_store("copy.db") as store:
        assert store.loop("home").model().digest() == server.digest
    assert main(["log", "show", "shop.db", "--loop", "home", "--json"]) == 0
    capsys.readouterr()
    assert main(["evaluate", "shop.db", "--loop", "home", "--candidate", "uniform", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["values"].keys() == {"logged", "uniform"}
    server.ask(50)
    assert server.answer() != found["digest"]  # it was not disturbed


def test_a_loop_is_whole_at_every_moment(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """Verified again and again while it decides and keeps snapshots: what is read is one moment."""
    server.ask(5000)
    rows = [0]
    while rows[-1] < 101 + 2 * 5000:
        assert run("verify", "home", "--json") == 0
        found = json.loads(capsys.readouterr().out)["loops"][0]
        rows.append(found["rows"])
    assert rows == sorted(rows)
    assert found["digest"] == server.answer()


@pytest.mark.parametrize(
    ("words", "call"),
    [
        (["forget", "home", "e1"], "store.loop('home').forget_many([...])"),
        (["prune", "--before", "1d"], "store.prune(before)"),
        (["change", "home", "--aggregation", "last"], "store.loop('home').change(...)"),
        (["delete", "home", "--yes"], "store.delete('home')"),
    ],
)
def test_what_writes_is_refused_next_to_a_process(
    server: Server, words: list[str], call: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = server.digest
    assert run(*words) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert (
        f"shop.db is open in another process, and only that can change it: stop it first, or call {call} there" in err
    )
    assert shown(capsys)["digest"] == before


def test_a_store_whose_process_was_killed_is_read_as_it_was(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.ask(200)
    server.answer()
    server.process.kill()
    server.process.wait()
    server.process.returncode = 0  # as asked for
    assert shown(capsys)["digest"] == server.digest
    assert run("verify") == 0
    capsys.readouterr()
    assert run("forget", "home", "e1") == 0
