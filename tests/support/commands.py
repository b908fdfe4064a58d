"""What is asked of every command of a parser: options of one form, and a help that fits a page."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from typing import Any, NoReturn
from unittest import mock

from armlet.cli.command import Parser

WIDTH = 92  # columns: what a page of the site shows without scrolling
METAVARS = {
    "--arm": {"NAME"},
    "--arms": {"NAMES", "K"},
    "--default-reward": {"X"},
    "--environment": {"NAME"},
    "--features": {"NAMES"},
    "--horizon": {"T"},
    "--level": {"SHARE"},
    "--loop": {"NAME"},
    "--out": {"FILE", "DIR"},
    "--policy": {"POLICY"},
    "--port": {"N"},
    "--reward-range": {"LOW..HIGH"},
    "--runs": {"N"},
    "--seed": {"N"},
    "--share": {"SHARE"},
    "--workers": {"N"},
}


def leaves(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    if isinstance(parser, Parser):
        parser.complete()
    below = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    if not below:
        yield parser
    for each in below:
        for command in each.choices.values():
            yield from leaves(command)


def check_options(parser: argparse.ArgumentParser) -> None:
    """Options of one name have one form in all commands."""
    for option, action in parser._option_string_actions.items():
        if option in METAVARS:
            assert action.metavar in METAVARS[option], option
        if isinstance(action, argparse._AppendAction):
            assert "may be repeated" in str(action.help), option


def check_width(parser: argparse.ArgumentParser) -> list[str]:
    """A help fits a page; return its lines."""
    with mock.patch.dict(os.environ, COLUMNS=str(WIDTH + 2)):  # argparse leaves two columns free
        lines = parser.format_help().splitlines()
    assert [line for line in lines if len(line) > WIDTH] == []
    return lines


def check_help(parser: argparse.ArgumentParser, words: str) -> None:
    """A help fits a page, and its examples begin with the command itself, or go on with a line before."""
    lines = check_width(parser)
    examples = lines[lines.index("examples:") + 1 :]
    end = examples.index("") if "" in examples else len(examples)
    own = [line.startswith((f"  {words}", " " * 6)) for line in examples[:end]]
    assert any(own)
    assert [line for line, is_own in zip(examples, own, strict=False) if not is_own] == []


def strictly(text: str) -> Any:
    """Read JSON, which has no NaN."""

    def refuse(word: str) -> NoReturn:
        raise AssertionError(f"{word} in JSON")

    return json.loads(text, parse_constant=refuse)
