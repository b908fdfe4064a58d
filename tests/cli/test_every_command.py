"""What holds for every command of the parser: options of one form, examples of its own, and JSON for its result."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import armlet
from armlet import cli
from armlet.cli.answer import tinted
from fuzz.commands import sound_files
from support.commands import check_help, check_options, check_width, leaves, strictly

SERVERS = {"armlet serve", "armlet watch"}  # run until they are stopped, and have no result
DOWNLOADS = {"armlet data fetch", "armlet data log"}  # tests/datasets runs them on made files
SMALL = "--horizon 50 --runs 2 --engine serial --out out"
ROLES = "--features age --arm ad --reward click"
SAMPLES = {  # what makes a command do its work on the files of the fixture
    "armlet list": "LinUCB FigureA",
    "armlet compare": f"--policy Uniform --policy LinUCB {SMALL}",
    "armlet advise": "--horizon 500 --environment FigureA --problems 2 --runs 2",
    "armlet simulate": f"--environment FigureA --policy Uniform {SMALL}",
    "armlet fit": f"rows.parquet {ROLES} --out out.armlet",
    "armlet data list": "",
    "armlet log show": "log.jsonl",
    "armlet log tail": "log.jsonl",
    "armlet log compact": "log.jsonl --out out.parquet",
    "armlet log export": "log.jsonl out.csv",
    "armlet log import": f"rows.csv out.jsonl {ROLES} --propensity p",
    "armlet store STORE list": "",
    "armlet store STORE show": "home",
    "armlet store STORE verify": "home",
    "armlet store STORE export": "home out.jsonl",
    "armlet store STORE backup": "copy.db",
    "armlet store STORE forget": "home e1",
    "armlet store STORE prune": "--before 90d",
    "armlet store STORE change": "home --shadow LinUCB --refit",
    "armlet store STORE freeze": "home",
    "armlet store STORE thaw": "home",
    "armlet store STORE promote": "home --gate off",
    "armlet store STORE delete": "home --yes",
    "armlet evaluate": "log.jsonl --candidate uniform --candidate other.armlet",
    "armlet rejection-replay": "log.jsonl --policy LinUCB",
    "armlet audit": "log.jsonl",
    "armlet gate": "log.jsonl --candidate other.armlet --reward-range 0..1",
    "armlet search": "log.jsonl --around other.armlet --reward-range 0..1 --policies 20",
    "armlet summary": "model.armlet",
    "armlet intervals": "model.armlet",
}


TESTS = Path(__file__).parents[1]
COMMANDS = {parser.prog: parser for parser in leaves(cli.make_parser())}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_that_has_a_result_has_it_as_json(name: str) -> None:
    options = COMMANDS[name]._option_string_actions
    assert {"--json", "--quiet"} <= options.keys() or name in SERVERS


@pytest.mark.parametrize("name", COMMANDS)
def test_options_have_one_form_and_examples_are_its_own(name: str) -> None:
    check_options(COMMANDS[name])
    check_help(COMMANDS[name], name.replace("STORE", "shop.db"))


def test_helps_of_all_commands_need_no_extra() -> None:
    """Commands import what they need at their top; packages of extras wait until one runs."""
    extras = ("apsw", "httptools", "matplotlib", "msgspec", "pandas", "psycopg", "pyarrow", "uvicorn")
    code = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({extras!r}))\n"
        "from armlet import cli\n"
        "from support.commands import leaves\n"
        "print(len([parser.format_help() for parser in leaves(cli.make_parser())]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=TESTS)
    assert int(done.stdout) == len(COMMANDS)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = shutil.copytree(sound_files(), tmp_path / "files")
    monkeypatch.chdir(folder)
    other = armlet.Bandit(["a", "b"], features=["age"], seed=2)
    for x in range(8):
        other.learn(other.decide([float(x % 3)]), float(x % 2))
    other.save("other.armlet")
    with armlet.open_store("shop.db") as store:
        loop = store.loop("home", arms=["a", "b"], features=["age"], policy=armlet.Algorithm1(p=4), seed=3)
        loop.decide_many([[1.0], [2.0]], events=["e1", "e2"])
        loop.reward_many([("e1", 1.0), ("e2", 0.0)])
    return folder


def run(words: Sequence[str]) -> int:
    try:
        return cli.main(words)
    except SystemExit as end:
        return int(end.code or 0)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - SERVERS - DOWNLOADS))
def test_json_is_one_object_on_stdout_and_quiet_says_nothing_else(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if name.endswith("promote"):
        run(["store", "shop.db", *["change", "home", "--shadow", "LinUCB", "--refit"]])
        capsys.readouterr()
    words = name.replace("STORE", "shop.db").split()[1:]
    assert run([*words, *SAMPLES[name].split(), "--json", "--quiet"]) in (0, 3, 4)
    out, err = capsys.readouterr()
    assert err == ""
    assert out.count("\n") == 1
    assert isinstance(strictly(out), dict)


def test_groups_have_headings_and_no_line_of_argparse() -> None:
    lines = check_width(cli.make_parser())
    assert {f"{title}:" for title in cli.COMMANDS} <= set(lines)
    assert not {"command", "COMMAND"} & {line.strip() for line in lines}


def test_verdicts_are_coloured_where_they_stand_and_nowhere_else() -> None:
    text = tinted("always:a  0.2  better\nthe better of two", {"better": "good"})
    assert text == "always:a  0.2  \x1b[32mbetter\x1b[0m\nthe better of two"
