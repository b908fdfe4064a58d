"""The command line of `armlet-lab list`: every experiment by name, with its title."""

from __future__ import annotations

import argparse


def add_list(parser: argparse.ArgumentParser) -> None:
    """Add the description of the command, which takes no arguments."""
    parser.description = "Name every experiment; armlet-lab paper --only NAME runs it."
    parser.set_defaults(command=_list, parser=parser)


def _list(_: argparse.Namespace) -> None:
    from armlet_lab.runner import reproduce

    for name in reproduce.ALL:
        print(f"{name:16} {reproduce.load(name).title}")
