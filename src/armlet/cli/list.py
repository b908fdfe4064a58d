"""The command line of `armlet list`: no arguments, one answer."""

from __future__ import annotations

import argparse


def add_list(parser: argparse.ArgumentParser) -> None:
    """Say what the command is."""
    parser.description = "Name every world and policy with one line and its settings, and every experiment."
    parser.set_defaults(command=_list)


def _list(_: argparse.Namespace) -> None:
    from armlet.cli.listing import listing

    print(*listing(), sep="\n")
