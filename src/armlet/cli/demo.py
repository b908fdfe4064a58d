"""The command line of `armlet demo`: its arguments, and how it ends."""

from __future__ import annotations

import argparse


def add_demo(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = "Run Algorithm 1 on one problem of the paper's Figure (a); plot and report its regret."
    parser.add_argument("--out", default="results", metavar="DIR", help="where to write; default: results")
    parser.add_argument("--horizon", type=int, metavar="T", help="steps in a run; default: 100000")
    parser.add_argument("--runs", type=int, metavar="N", help="independent runs; default: 20")
    parser.add_argument("--p", type=float, nargs="+", help="how much to explore, one or more; default: 24 120 600")
    parser.add_argument("--seed", type=int, metavar="N", help="of the problem and all runs; default: 2013")
    parser.set_defaults(command=_demo, parser=parser)


def _demo(arguments: argparse.Namespace) -> None:
    from armlet.simulation import demo  # only this command needs it

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
