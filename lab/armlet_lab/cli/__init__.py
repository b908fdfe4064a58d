"""The command `armlet-lab`: the paper's evaluation, the bake-off, and reports of folders of results."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from armlet.cli.parser import Parser, Version, run
from armlet_lab.cli.bakeoff import add_bakeoff
from armlet_lab.cli.list import add_list
from armlet_lab.cli.paper import add_paper
from armlet_lab.cli.report import add_report

EXAMPLES = """\
examples:
  armlet-lab paper        rebuild the paper's evaluation, a verdict for every claim
  armlet-lab list         name every experiment
  armlet-lab bakeoff      real tables, beside Vowpal Wabbit; armlet data fetch keel comes first
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code, as `armlet` does."""
    return run(make_parser(), argv)


def make_parser() -> argparse.ArgumentParser:
    """Make what reads the command line, with all commands.

    Examples
    --------
    >>> make_parser().parse_args(["paper", "--only", "fig-a"]).only
    'fig-a'
    """
    parser = Parser(
        prog="armlet-lab",
        description="The laboratory of Armlet: the paper's evaluation, and contests.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=Version, nargs=0, help="print the version of armlet and its kernel")
    commands = parser.add_subparsers(title="commands", metavar="command", required=True)
    add_paper(commands.add_parser("paper", help="rebuild the paper's evaluation, with a verdict for every claim"))
    add_bakeoff(commands.add_parser("bakeoff", help="play real tables as bandits, beside Vowpal Wabbit"))
    add_report(commands.add_parser("report", help="write the report of a folder of results again"))
    add_list(commands.add_parser("list", help="name every experiment"))
    return parser
