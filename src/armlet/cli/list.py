"""The command line of `armlet list`: all names, or what some of them are."""

from __future__ import annotations

import argparse


def add_list(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = (
        "Name every environment and policy; or say in a line what some of them are, and their settings."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="describe these; default: name all")
    parser.set_defaults(command=_list, parser=parser)


def _list(arguments: argparse.Namespace) -> None:
    from armlet.cli.listing import described, listing

    try:
        lines = [line for name in arguments.names for line in described(name)] if arguments.names else listing()
    except ValueError as error:
        arguments.parser.error(str(error))
    print(*lines, sep="\n")
