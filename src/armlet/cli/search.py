"""The command line of `armlet search`: the best of many linear policies about a model, by a log."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from armlet.cli.arguments import between, count, fail
from armlet.errors import InvalidValueError

EXAMPLES = """\
examples:
  armlet search decisions.parquet --around model.armlet --reward-range 0..1
  armlet search decisions.jsonl --around model.armlet --policies 1e4 --spread 0.5 --json

Those that are surely worse than another drop out; the interval of the winner holds although it was selected, at any
look. The model must have been trained on other rows.
"""
OPTIONS = {
    "bandit": "--around",
    "n": "--policies",
    "spread": "--spread",
    "reward_range": "--reward-range",
    "level": "--level",
}


def add_search(parser: argparse.ArgumentParser) -> None:
    """Give a parser the arguments of the command."""
    parser.description = "Find the best of many linear policies about what a model has learned, by the rows of a log."
    parser.epilog, parser.formatter_class = EXAMPLES, argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("log", type=Path, metavar="LOG", help="a log, .jsonl or .parquet")
    add("--around", type=Path, required=True, metavar="MODEL", help="the model file; itself one of the policies")
    add("--policies", type=count, default=1000, metavar="N", help="how many; default: 1000")
    add("--spread", type=float, default=0.3, help="of changes, in units of the estimates' own size; default: 0.3")
    add("--seed", type=int, default=1, help="of the changes; default: 1")
    add("--reward-range", type=between, metavar="LOW..HIGH", help="of rewards; default: that of the log")
    add("--level", type=float, default=0.95, metavar="SHARE", help="how often the interval holds; default: 0.95")
    add("--json", action="store_true", help="print JSON and nothing else")
    parser.set_defaults(command=_search, parser=parser)


def _search(arguments: argparse.Namespace) -> None:
    from armlet.bandit import load
    from armlet.errors import ArgumentError, ArmletError
    from armlet.evaluation.search import search_around

    a = arguments
    try:
        if a.reward_range is not None and not isinstance(a.reward_range, tuple):
            raise InvalidValueError(f"--reward-range is {a.reward_range}; write two numbers as in 0..1")
        how = {"reward_range": a.reward_range, "level": a.level, "seed": a.seed, "spread": a.spread}
        found, theta = search_around(a.log, load(a.around), a.policies, **how)
    except ValueError as error:
        a.parser.error(error.told(OPTIONS) if isinstance(error, ArgumentError) else str(error))
    except (ModuleNotFoundError, OSError, ArmletError) as error:
        fail(a, error, "pyarrow")
    if a.json:
        told = {"winner": found.winner, "value": found.value, "interval": list(found.interval), "rows": found.rows}
        told |= {
            "policies": found.policies,
            "left": found.left.tolist(),
            "unknown": found.unknown,
            "theta": {str(k): v for k, v in theta.items()},
        }
        print(json.dumps(told))
        return
    print(found)
    for arm, (constant, *slopes) in theta.items():
        print(f"  {arm}: {constant:.4g} + ({', '.join(f'{slope:.4g}' for slope in slopes)}) @ x")
