"""The command `armlet`: reads the command line, imports only what the command needs, and runs it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from armlet.core.version import __version__

EXAMPLES = """\
examples:
  armlet demo                                    run Algorithm 1 on Figure (a), write results/demo.svg
  armlet demo --p 60 --horizon 20000 --runs 10   one value of p, a shorter run
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}; see {self.prog} --help\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 failed, 2 wrongly called, 130 interrupted.

    Examples
    --------
    >>> main(["demo", "--runs", "many"])
    Traceback (most recent call last):
    SystemExit: 2
    """
    arguments = _parser().parse_args(argv)
    command: Callable[[argparse.Namespace], None] = arguments.command
    try:
        command(arguments)
    except KeyboardInterrupt:
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="armlet",
        description="Contextual linear bandits in constant time and memory.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"armlet {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="command", required=True)
    _add_demo(commands.add_parser("demo", help="show Algorithm 1 at work on the paper's Figure (a)"))
    return parser


def _add_demo(parser: argparse.ArgumentParser) -> None:
    parser.description = "Run Algorithm 1 on one problem of the paper's Figure (a); plot and report its regret."
    parser.add_argument("--out", default="results", metavar="DIR", help="where to write; default: results")
    parser.add_argument("--horizon", type=int, metavar="T", help="steps in a run; default: 100000")
    parser.add_argument("--runs", type=int, metavar="N", help="independent runs; default: 20")
    parser.add_argument("--p", type=float, nargs="+", help="how much to explore, one or more; default: 24 120 600")
    parser.add_argument("--seed", type=int, metavar="N", help="of the problem and all runs; default: 2013")
    parser.set_defaults(command=_demo, parser=parser)


def _demo(arguments: argparse.Namespace) -> None:
    from armlet.experiments import demo  # only this command needs it

    given = {name: getattr(arguments, name) for name in ("horizon", "runs", "p", "seed")}
    if given["p"] is not None:
        given["p"] = tuple(given["p"])
    try:
        settings = demo.Settings(**{name: value for name, value in given.items() if value is not None})
    except ValueError as error:
        arguments.parser.error(str(error))
    try:
        demo.main(settings, arguments.out)
    except (ModuleNotFoundError, OSError, MemoryError) as error:
        if isinstance(error, ModuleNotFoundError) and error.name != "matplotlib":
            raise
        arguments.parser.exit(1, f"{arguments.parser.prog}: error: {error}\n")


if __name__ == "__main__":
    sys.exit(main())
