"""The command line of `armlet evaluate`: what policies would have earned on a log."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from armlet.cli.arguments import add_engine, between, fail
from armlet.errors import InvalidValueError

if TYPE_CHECKING:
    from armlet.evaluation.targets import TargetLike

EXAMPLES = """\
examples:
  armlet evaluate decisions.jsonl --policy model.armlet --policy always:north --out report.html
  armlet evaluate decisions.parquet --policy uniform --baseline always:north --reward-range 0..1 --json
  armlet evaluate decisions.parquet --policy own

A policy is a model file (what looks best to it, or with --exploring its next decision), always:ARM, uniform, logged, or
own: the honest value of what these very rows teach.
"""

OPTIONS = {
    "log": "LOG",
    "targets": "--policy",
    "baseline": "--baseline",
    "estimator": "--estimator",
    "reward_range": "--reward-range",
    "weights": "--weights",
    "level": "--level",
}


def add_evaluate(parser: argparse.ArgumentParser) -> None:
    """Give a parser the arguments of the command."""
    parser.description = "Say what policies would have earned on the decisions of a log, with intervals and checks."
    parser.epilog, parser.formatter_class = EXAMPLES, argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("log", type=Path, metavar="LOG", help="a log, .jsonl or .parquet")
    add("--policy", action="append", required=True, metavar="POLICY", help="what to value; may be given several times")
    add("--baseline", default="logged", metavar="POLICY", help="what to compare with; default: logged")
    add(
        "--estimator",
        default="auto",
        metavar="NAME",
        help="default: auto, which says why it chose",
    )
    add("--exploring", action="store_true", help="models play as their next decision would, exploring included")
    add("--reward-range", type=between, metavar="LOW..HIGH", help="of rewards, for intervals that hold at every look")
    add("--level", type=float, default=0.95, metavar="SHARE", help="how often an interval covers; default: 0.95")
    add("--weights", choices=("refuse", "ignore"), default="refuse", help="rows learned with a weight other than 1")
    add("--out", type=Path, metavar="FILE", help="write a page, such as report.html")
    add("--json", action="store_true", help="print JSON and nothing else")
    add_engine(parser)
    parser.set_defaults(engine="serial", command=_evaluate, parser=parser)


def _evaluate(arguments: argparse.Namespace) -> None:
    from armlet.errors import ArgumentError, ArmletError
    from armlet.evaluation.evaluate import evaluate
    from armlet.evaluation.log import open_rows
    from armlet.parallel.progress import reporter, silent

    a = arguments
    try:
        if a.out is not None and not a.out.absolute().parent.is_dir():  # better now than after all was read
            raise FileNotFoundError(f"--out is {a.out}, in a folder that does not exist")
        blocks = open_rows(a.log)
        result = evaluate(
            blocks,
            {name: _target(name, blocks.arms) for name in a.policy},
            baseline=_target(a.baseline, blocks.arms),
            estimator=a.estimator,
            playing="exploring" if a.exploring else "greedy",
            reward_range=a.reward_range,
            level=a.level,
            weights=a.weights,
            pool=a.engine,
            workers=a.workers,
            progress=silent if a.json or len(blocks) < 8 else reporter("blocks"),
        )
        if a.out is not None:
            result.save(a.out)
    except (ValueError, TypeError) as error:
        a.parser.error(error.told(OPTIONS) if isinstance(error, ArgumentError) else str(error))
    except KeyboardInterrupt:
        print("\ninterrupted: nothing was written", file=sys.stderr)
        raise
    except (ModuleNotFoundError, OSError, ArmletError) as error:
        fail(a, error, "pyarrow", "matplotlib", "distributed")
    print(json.dumps(result.to_dict()) if a.json else result)
    if a.out is not None and not a.json:
        print(f"\n{a.out}")


def _target(word: str, arms: tuple[str | int, ...]) -> TargetLike:
    """Read a policy: always:ARM is the arm of that name, a number if arms have numbers for names."""
    kind, told, label = word.partition(":")
    if kind != "always" or not told:
        return word
    by_name = {str(arm): arm for arm in arms}
    if label not in by_name:
        raise InvalidValueError(f"--policy is {word}, but the arms of the log are {', '.join(by_name)}")
    return by_name[label]
