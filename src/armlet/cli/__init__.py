"""The command `armlet`: reads the command line, imports the module of the command that is called, and runs it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

from armlet.cli import command
from armlet.cli.command import Listed

COMMANDS: Final[command.Groups] = {
    "work with a log": (
        Listed("evaluate", "what other policies would have earned", "armlet.cli.evaluation:evaluate"),
        Listed("gate", "whether to ship a candidate: keep, kill, not yet", "armlet.cli.evaluation:gate"),
        Listed("log", "show, compact, export and import logs", "armlet.cli.logs:log"),
        Listed("audit", "prove a log by replaying it from its start", "armlet.cli.logs:audit"),
        Listed("search", "find the best of many policies close to a model", "armlet.cli.evaluation:search"),
        Listed(
            "rejection-replay",
            "let policies learn from a log as if they had run",
            "armlet.cli.evaluation:rejection_replay",
        ),
    ),
    "work with a model": (
        Listed("fit", "train a model from a table, or Parquet of any size", "armlet.cli.models:fit"),
        Listed("summary", "what a model has learned, arm by arm", "armlet.cli.models:summary"),
        Listed("intervals", "every coefficient of a model with its interval", "armlet.cli.models:intervals"),
    ),
    "simulate": (
        Listed("compare", "rank policies on the same simulated runs", "armlet.cli.simulation:compare"),
        Listed("advise", "which policy to take, and what it earns next to an A/B test", "armlet.cli.simulation:advise"),
        Listed("simulate", "run one policy many times, on any engine", "armlet.cli.simulation:simulate"),
        Listed("list", "name all policies and environments, describe some", "armlet.cli.listing:list_names"),
        Listed("data", "list and download public data sets", "armlet.cli.logs:data"),
    ),
    "serve, and work with stores": (
        Listed("serve", "decisions and rewards over HTTP", "armlet.cli.serve:serve"),
        Listed("watch", "a page for each loop, next to its process", "armlet.cli.watch:watch"),
        Listed("store", "show, verify, back up and change loops", "armlet.cli.stores:store"),
    ),
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
