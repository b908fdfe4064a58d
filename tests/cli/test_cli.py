"""The command line: what it prints, what it imports, and how it ends."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from armlet import cli
from armlet.simulation import compare
from armlet.types import __version__

TWO = ["--policy", "FixedEpsilon:epsilon=0.1", "--policy", "Uniform"]
SMALL = ["compare", "--horizon", "200", "--runs", "2", *TWO, "--engine", "serial"]


def ending(arguments: list[str]) -> int | str | None:
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    return caught.value.code


def test_version_is_the_one_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert ending(["--version"]) == 0
    output = capsys.readouterr().out
    assert re.fullmatch(rf"armlet {re.escape(__version__)}, kernel (base|AVX2|AVX-512)\n", output)


def test_the_package_itself_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "armlet", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"armlet {__version__}, kernel ")


def test_help_shows_examples_and_one_line_per_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert ending(["--help"]) == 0
    out = capsys.readouterr().out
    assert "examples:\n  armlet evaluate" in out
    assert sum(line.startswith("  compare ") for line in out.splitlines()) == 1


def test_the_defaults_in_the_help_are_the_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    assert ending(["compare", "--help"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    arguments = vars(cli.make_parser().parse_args(["compare"]))
    for name in ("environment", "horizon", "runs", "seed", "engine", "out"):
        assert f"default: {arguments[name]}" in out


ABSENT = ["matplotlib", "scipy", "pandas", "armlet_lab"]  # from what any help imports
LATER = ["simulation", "environments", "evaluation", "stores", "service", "log.exporting"]


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["comparr"], ["compare", "--help"]])
def test_help_and_version_import_nothing_heavy(arguments: list[str]) -> None:
    heavy = ABSENT if "compare" in arguments else [*ABSENT, *(f"armlet.{name}" for name in LATER)]
    code = (
        "import sys, contextlib, armlet.cli\n"
        f"with contextlib.suppress(SystemExit): armlet.cli.main({arguments!r})\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["dmeo"], "there is no command 'dmeo'"),
        (["compare", "--horizon", "many"], "argument --horizon: invalid count: 'many'"),
        (["compare", "--policy", "Uniform", "--horizon", "0"], "horizon is 0; give at least 1 step"),
        (["compare", "--runs", "0"], "runs is 0; give at least 1"),
        (["compare", "--policy", "Algorithm1:p=5"], "p is 5 but there are 6 arms"),
        (["compare", "--seed", "-1"], "seed is -1"),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_code_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ending(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err
    assert "--help" in err


def test_compare_prints_findings_and_reports_progress_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*SMALL, "--out", str(tmp_path / "new" / "results")]) == 0
    out, err = capsys.readouterr()
    assert {line.split(":")[0] for line in err.splitlines()} == {"simulating"}
    assert "regrets least after 200 steps" in " ".join(out.split())
    assert str(tmp_path / "new" / "results" / "regret.svg") in out


def test_missing_matplotlib_is_told_before_anything_is_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert ending([*SMALL, "--out", str(tmp_path / "results")]) == 1
    assert capsys.readouterr() == (
        "",
        "armlet compare: error: plots need matplotlib; pip install 'armlet[plots]'\n",
    )
    assert not (tmp_path / "results").exists()


def test_an_output_path_that_is_a_file_is_told_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "results").write_text("mine")
    assert ending([*SMALL, "--out", str(tmp_path / "results")]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert str(tmp_path / "results") in err
    assert (tmp_path / "results").read_text() == "mine"


def test_an_interrupt_ends_quietly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(compare, "compare", interrupt)
    assert cli.main([*SMALL, "--out", str(tmp_path)]) == 130
    assert capsys.readouterr() == ("", "")


def test_an_error_of_our_own_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ModuleNotFoundError("no kernel", name="armlet._kernel")

    monkeypatch.setattr(compare, "compare", fail)
    with pytest.raises(ModuleNotFoundError, match="no kernel"):
        cli.main(SMALL)
