"""`armlet log`, run on logs made by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from armlet import cli
from support.logs import made_events, write_events


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_events(tmp_path / "a.jsonl", made_events(30))


def test_show_says_what_a_log_holds(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["log", "show", str(path)]) == 0
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert lines["arms"] == '["north", "south"]'
    assert "30 decide" in lines["events"]
    assert lines["from"] == "2023-11-14T22:13:20+00:00"
    with path.open("ab") as file:
        file.write(b'{"seq"')
    assert cli.main(["log", "show", str(path)]) == 0
    assert "unfinished   6 bytes after the last whole line" in capsys.readouterr().out
    assert cli.main(["log", "show", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["events"]["decide"] == 30


def test_tail_prints_the_last_events(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["log", "tail", str(path), "-n", "3"]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == list(made_events(30))[-3:]


def test_compact_and_export_give_the_log_back(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, again = path.with_name("b.parquet"), path.with_name("again.jsonl")
    assert cli.main(["log", "compact", str(path), "--columns", "--out", str(rows)]) == 0
    assert "x.0" in pq.read_table(rows).column_names
    assert cli.main(["log", "export", str(rows), str(again)]) == 0
    assert again.read_bytes() == path.read_bytes()
    assert f"{rows}: " in capsys.readouterr().out


def test_import_makes_a_log_of_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pilot.csv").write_text("age,ad,click,prob\n31,a,1,0.5\n44,b,0,0.5\n")
    roles = ["--features", "age", "--arm", "ad", "--reward", "click", "--propensity", "prob"]
    assert cli.main(["log", "import", str(tmp_path / "pilot.csv"), str(tmp_path / "log.parquet"), *roles]) == 0
    assert pq.read_table(tmp_path / "log.parquet")["arm"].to_pylist() == ["a", "b"]
    with pytest.raises(SystemExit) as ended:
        cli.main(["log", "import", str(tmp_path / "pilot.csv"), str(tmp_path / "log.jsonl"), "--features", "age"])
    assert ended.value.code == 2
    assert "--arm is missing; name the column of what was played: one of ad, click, prob" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["show", "none.jsonl"], 1, "log is none.jsonl, which does not exist"),
        (["compact", "a.jsonl", "--out", "a.txt"], 2, "--out is a.txt; give a name that ends in .parquet"),
        (["export", "a.jsonl", "a.txt"], 2, "OUT is a.txt; give a name that ends in .jsonl"),
        (["show", "damaged.jsonl"], 1, "event 3 of damaged.jsonl"),
        (["show", "garbage.parquet"], 1, "garbage.parquet cannot be read: "),
        (["export", "garbage.parquet", "b.csv"], 1, "garbage.parquet cannot be read: "),
        (["show", "/dev/zero"], 1, "log is /dev/zero, a device or a pipe; give an ordinary file"),
        (
            ["import", "null.json", "b.jsonl", "--kind", "dsjson"],
            2,
            "LOG has a line 1 that cannot be read: _label_cost",
        ),
        (["show", "other.jsonl"], 1, "other.jsonl is not an Armlet log: its first line is not an event; for other"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    path: Path,
    arguments: list[str],
    code: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(path.parent)
    lines = path.read_bytes().splitlines(keepends=True)
    Path("damaged.jsonl").write_bytes(b"".join(lines[:3] + lines[4:]))
    Path("garbage.parquet").write_bytes(b"garbage" * 100)
    line: object = {
        "_label_cost": None,
        "_label_probability": 0.8,
        "_labelIndex": 1,
        "a": [2, 1],
        "p": [0.8, 0.2],
        "c": {},
    }
    Path("null.json").write_text(json.dumps(line))
    Path("other.jsonl").write_bytes(b'{"a": 1}\n')
    with pytest.raises(SystemExit) as ended:
        cli.main(["log", *arguments])
    errors = capsys.readouterr().err
    assert ended.value.code == code
    assert message in errors
    assert errors.count("\n") == 1
