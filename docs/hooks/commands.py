"""What every command prints for `--help`, asked for when the site is built: no page can fall behind the command."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING
from unittest import mock

from armlet.cli import COMMANDS, make_parser
from armlet_lab.cli import COMMANDS as LAB_COMMANDS
from armlet_lab.cli import make_parser as make_lab_parser

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx

PAGE = "docs/reference/commands"
WIDTH = 92  # letters: what a page of the site shows without scrolling, on a screen that is not a phone's


def found(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Return the parser of a command, then those of its own commands, however deep.

    Examples
    --------
    >>> names = [each.prog for each in found(make_parser())]
    >>> names[:2], "armlet log compact" in names
    (['armlet', 'armlet evaluate'], True)
    """
    parser.format_help()  # a command adds its arguments when its help is printed
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from found(each)


def helped(parser: argparse.ArgumentParser) -> str:
    """Return what a command prints for `--help`, in lines that fit the page.

    Examples
    --------
    >>> print(helped(make_parser()))  # doctest: +ELLIPSIS
    usage: armlet [-h] [--version] COMMAND ...
    """
    with mock.patch.dict(os.environ, COLUMNS=str(WIDTH + 2)):  # argparse leaves two letters free
        return parser.format_help().rstrip()


def page(text: str) -> str:
    r"""Put a table of all commands below a page, and a section for each: commands of commands one level deeper.

    Examples
    --------
    >>> [line for line in page("# Commands").splitlines() if line.startswith("#")][:3]
    ['# Commands', '## armlet', '## armlet evaluate']
    """
    sections = [
        f"{'#' * max(2, sum(map(str.islower, each.prog.split())))} {each.prog}\n\n```text\n{helped(each)}\n```"
        for parser in (make_parser(), make_lab_parser())
        for each in found(parser)
    ]
    return "\n\n".join([text.rstrip(), overview(), *sections, ""])


def overview() -> str:
    """Return a table of all commands by what one works with.

    Examples
    --------
    >>> print(overview().splitlines()[2])
    | **work with a log** | [`armlet evaluate`](#armlet-evaluate) | what other policies would have earned |
    """
    lines = ["| | command | |", "|---|---|---|"]
    for prog, groups in (("armlet", COMMANDS), ("armlet-lab", LAB_COMMANDS)):
        for title, commands in groups.items():
            for number, each in enumerate(commands):
                name = f"{prog} {each.name}"
                group = "" if number else f"**{title}**"
                lines.append(f"| {group} | [`{name}`](#{name.replace(' ', '-')}) | {each.help} |")
    return "\n".join(lines)


def _on_source(_: Sphinx, docname: str, source: list[str]) -> None:
    if docname == PAGE:
        source[0] = page(source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Fill the page of the commands when it is read."""
    app.connect("source-read", _on_source)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
