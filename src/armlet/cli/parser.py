"""The command `armlet`: reads the command line, imports only what the command needs, and runs it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from armlet.cli.advise import add_advise
from armlet.cli.audit import add_audit
from armlet.cli.compare import add_compare
from armlet.cli.data import add_data
from armlet.cli.evaluate import add_evaluate
from armlet.cli.fit import add_fit
from armlet.cli.gate import add_gate
from armlet.cli.list import add_list
from armlet.cli.log import add_log
from armlet.cli.replay import add_replay
from armlet.cli.search import add_search
from armlet.cli.simulate import add_simulate
from armlet.cli.summary import add_intervals, add_summary
from armlet.errors import choices
from armlet.types import __version__

EXAMPLES = """\
examples:
  armlet list                                    name every environment and policy
  armlet list LinUCB FigureA                     what these are, and their settings
  armlet compare --world FigureA                 rank policies on the same runs, draw their regret
  armlet advise --horizon 1e5 --world FigureA    how much to explore, and what it costs
  armlet evaluate decisions.jsonl --policy model.armlet     what it would have earned
  armlet audit decisions.jsonl                   replay a log from its start model, and compare bit for bit
  armlet simulate --world FigureB --world-set I=100 --policy Algorithm1 --set p=120
"""


class Parser(argparse.ArgumentParser):
    """Names the closest choice, and ends a refusal with the way to the help."""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}; {choices(str(value), action.choices)}")

    def error(self, message: str) -> NoReturn:
        """End with 2 and one line."""
        self.exit(2, f"{self.prog}: error: {message}; see {self.prog} --help\n")


class Version(argparse.Action):
    """Asks the kernel, which only this option imports."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        """Print the versions and end."""
        from armlet import kernel

        print(f"armlet {__version__}, kernel {kernel.level()}")
        parser.exit()


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 failed, 2 wrongly called, 130 interrupted, 141 cut short.

    Examples
    --------
    >>> main(["compare", "--runs", "many"])
    Traceback (most recent call last):
    SystemExit: 2
    """
    return run(make_parser(), argv)


def run(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> int:
    """Parse a command line, run its command, and return the exit code."""
    arguments = parser.parse_args(sys.argv[1:] if argv is None else list(argv))
    command: Callable[[argparse.Namespace], None] = arguments.command
    try:
        command(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is flushed at the end
        return 141
    return 0


def make_parser() -> argparse.ArgumentParser:
    """Make what reads the command line, with all commands.

    Examples
    --------
    >>> make_parser().parse_args(["list", "LinUCB"]).names
    ['LinUCB']
    """
    parser = Parser(
        prog="armlet",
        description="Contextual linear bandits in constant time and memory.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    about = "say the version, and which instructions of this processor the kernel uses"
    parser.add_argument("--version", action=Version, nargs=0, help=about)
    commands = parser.add_subparsers(title="commands", metavar="command", required=True)
    add_list(commands.add_parser("list", help="name every environment and policy, or describe some"))
    add_compare(commands.add_parser("compare", help="run several policies on the same runs of a world, and rank them"))
    add_advise(commands.add_parser("advise", help="say how much to explore, what it costs and how sure that is"))
    add_simulate(commands.add_parser("simulate", help="run a policy in a world, many times, on any engine"))
    add_fit(commands.add_parser("fit", help="learn from Parquet of any size, and write a model"))
    add_data(commands.add_parser("data", help="bring tables of real data here, to be played as bandits"))
    add_log(commands.add_parser("log", help="read, compact, export and import logs of decisions"))
    add_evaluate(commands.add_parser("evaluate", help="say what policies would have earned on the decisions of a log"))
    add_replay(commands.add_parser("rejection-replay", help="let policies learn from a log as if they had run"))
    add_audit(commands.add_parser("audit", help="prove a log by replaying it from its start model"))
    add_gate(commands.add_parser("gate", help="say whether a candidate should replace what plays: keep, kill, not yet"))
    add_search(commands.add_parser("search", help="find the best of many policies about a model, by a log"))
    add_summary(commands.add_parser("summary", help="print what a model knows: coefficients, errors, rows by arm"))
    add_intervals(commands.add_parser("intervals", help="print every coefficient of a model with its interval"))
    return parser
