"""The command `armlet`: reads the command line, imports only what the command needs, and runs it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from armlet.cli import command, evaluation, logs, models, serve, simulation, stores, watch

COMMANDS = (
    simulation.list_names,
    simulation.compare,
    simulation.advise,
    simulation.simulate,
    models.fit,
    logs.data,
    logs.log,
    stores.store,
    serve.serve,
    watch.watch,
    evaluation.evaluate,
    evaluation.rejection_replay,
    logs.audit,
    evaluation.gate,
    evaluation.search,
    models.summary,
    models.intervals,
)
EXAMPLES = """\
examples:
  armlet list                                          name every environment and policy
  armlet list LinUCB FigureA                           what these are, and their settings
  armlet compare --environment FigureA                 rank policies on the same runs, draw their regret
  armlet advise --horizon 1e5 --environment FigureA    how much to explore, and what it costs
  armlet evaluate decisions.jsonl --policy model.armlet     what it would have earned
  armlet audit decisions.jsonl                         replay a log from its start model, and compare bit for bit
  armlet store shop.db verify                          replay all loops of a store, and compare
  armlet serve shop.db --loop home --arms sale,new --features age,basket     decisions over HTTP
  armlet watch shop.db                                 a page for each loop, next to the process that runs it
  armlet simulate --environment FigureB --environment-set I=100 --policy Algorithm1 --set p=120
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
        version="say the version, and which instructions of this processor the kernel uses",
    )
