"""The command line of `armlet rejection-replay`: what policies that learn would have earned on a log."""

from __future__ import annotations

import argparse
from pathlib import Path

from armlet.cli.arguments import fail

EXAMPLES = """\
examples:
  armlet rejection-replay decisions.jsonl --policy LinUCB:alpha=1
  armlet rejection-replay decisions.parquet --policy OccasionalOptimism --policy Greedy --policy Uniform --seed 3

The log must have rows whose arms were drawn regardless of the context: explored rows of a bandit that explores so, or
rows of others where every arm has one propensity throughout. K rows make a step, K the number of arms.
"""


def add_replay(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = "Let policies learn from a log, exactly as if they had run themselves (Li and others, 2011)."
    parser.epilog, parser.formatter_class = EXAMPLES, argparse.RawDescriptionHelpFormatter
    parser.add_argument("log", type=Path, metavar="LOG", help="a file")
    described = "NAME or NAME:KEY=VALUE,...; may be repeated; default: the policy that bandits have by default"
    parser.add_argument("--policy", action="append", default=[], metavar="POLICY", help=described)
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of all coins; default: 0")
    parser.set_defaults(command=_replay, parser=parser)


def _replay(arguments: argparse.Namespace) -> None:
    from armlet.errors import ArgumentError, ArmletError
    from armlet.evaluation.learners import rejection_replay
    from armlet.evaluation.log import open_rows
    from armlet.simulation.compare import parse_policy
    from armlet.simulation.named import make_policy

    names = arguments.policy or ["OccasionalOptimism"]
    try:
        policies = [make_policy(*parse_policy(name)) for name in names]
        rows = open_rows(arguments.log)
        print(f"{'reward a step':>13}  {'95 % interval':22}{'steps':>9}{'of rows':>10}  policy")
        for name, policy in zip(names, policies, strict=True):
            found = rejection_replay(rows, policy, seed=arguments.seed)
            between = "" if found.interval is None else f"{found.interval.low:.4f} to {found.interval.high:.4f}"
            print(f"{found.mean:13.4f}  {between:22}{found.accepted:9,}{found.rows:10,}  {name}")
    except ArgumentError as error:
        arguments.parser.error(error.told({"log": "LOG", "path": "LOG"}))
    except (ValueError, TypeError) as error:
        arguments.parser.error(str(error))
    except (ModuleNotFoundError, OSError, ArmletError) as error:
        fail(arguments, error, "pyarrow")
