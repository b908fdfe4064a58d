"""What holds for every command of the laboratory, as for those of the library."""

from __future__ import annotations

from pathlib import Path

import pytest

from armlet.cli import main as armlet
from armlet_lab.cli import COMMANDS, main, make_parser
from armlet_lab.experiments import EXPERIMENTS
from armlet_lab.publish import PAGES
from support.commands import check_help, check_options, check_width, leaves, strictly

PARSERS = {parser.prog: parser for parser in leaves(make_parser())}


@pytest.mark.parametrize("name", PARSERS)
def test_options_have_one_form_and_examples_are_its_own(name: str) -> None:
    assert {"--json", "--quiet"} <= PARSERS[name]._option_string_actions.keys()
    check_options(PARSERS[name])
    check_help(PARSERS[name], "armlet")  # those of the bake-off begin with `armlet data fetch`


def test_commands_are_grouped() -> None:
    assert {f"{title}:" for title in COMMANDS} <= set(check_width(make_parser()))


def test_lists_are_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--json"]) == 0
    assert strictly(capsys.readouterr().out)["experiments"].keys() >= set(EXPERIMENTS)
    assert main(["publish", "--json"]) == 0
    assert strictly(capsys.readouterr().out)["pages"].keys() == PAGES.keys()


def test_a_report_is_named_in_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = "--environment FigureA --policy Uniform --horizon 50 --runs 2 --engine serial --quiet"
    assert armlet(["simulate", *small.split(), "--out", str(tmp_path)]) == 0
    capsys.readouterr()
    assert main(["report", str(tmp_path), "--json"]) == 0
    assert strictly(capsys.readouterr().out) == {"report": str(tmp_path / "report.html")}
