"""The command `armlet`: reads the command line, imports only what the command needs, and runs it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

from armlet.cli import command, evaluation, logs, models, serve, simulation, stores, watch

COMMANDS: Final[command.Groups] = {
    "work with a log": (
        evaluation.evaluate,
        evaluation.gate,
        logs.log,
        logs.audit,
        evaluation.search,
        evaluation.rejection_replay,
    ),
    "work with a model": (models.fit, models.summary, models.intervals),
    "simulate": (simulation.compare, simulation.advise, simulation.simulate, simulation.list_names, logs.data),
    "serve, and work with stores": (serve.serve, watch.watch, stores.store),
}
EXAMPLES: Final = """\
examples:
  armlet evaluate decisions.jsonl --policy model.armlet    what it would have earned
  armlet gate decisions.jsonl --candidate model.armlet     keep it, kill it, or not yet
  armlet summary model.armlet                              what a model has learned
  armlet compare --environment FigureA                     rank policies on the same runs
  armlet advise --horizon 1e5 --environment FigureA        which policy, and what it costs
  armlet list LinUCB FigureA                               what these are; their settings
  armlet serve shop.db --loop home --arms sale,new --features age,basket
  armlet store shop.db verify                              replay all loops, and compare
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 failed, 2 wrongly called, 130 interrupted, 141 cut short.

    Examples
    --------
    >>> main(["compare", "--runs", "many"])
    Traceback (most recent call last):
    SystemExit: 2
    """
    return command.run(make_parser(), argv)


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of all commands.

    Examples
    --------
    >>> make_parser().parse_args(["list", "LinUCB"]).names
    ['LinUCB']
    """
    return command.new_parser(
        "armlet",
        COMMANDS,
        description="Contextual linear bandits in constant time and memory.",
        examples=EXAMPLES,
        version="show the version and the CPU instruction set in use",
    )
