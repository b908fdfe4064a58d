"""The command line of `armlet fit`: its arguments, and how it ends."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from armlet.cli.arguments import add_engine, fail, names
from armlet.errors import InvalidValueError

EXAMPLES = """\
examples:
  armlet fit clicks.parquet --x age,visits --arm ad --reward click --out model.armlet
  armlet fit 'logs/*.parquet' --policy ContextualEpsilonGreedy:p=60 --x age,country --text --arm ad --reward click \\
      --explored random --out model.armlet --engine processes
  armlet fit compacted.parquet --policy LinUCB:alpha=0.5 --out model.armlet     a compacted log says what is what

Where what a policy knows is sums of rows, the model is the same to the last byte on any engine, if the seed is. Other
policies learn row by row, in order, in this process, and it says so.
"""

OPTIONS = {
    "data": "LOG",
    "x": "--x",
    "arm": "--arm",
    "reward": "--reward",
    "explored": "--explored",
    "explored=True": "--all-explored",
    "weight": "--weight",
    "arms": "--arm-names",
}

DESIGN = "how arms were chosen: by what learned from rewards (default), by a fixed rule, or at random; for intervals"


def add_fit(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = "Learn from Parquet of any size, in bounded memory, and write a model."
    parser.epilog, parser.formatter_class = EXAMPLES, argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("data", nargs="+", metavar="LOG", help="Parquet files, folders of them, or patterns in quotes")
    add("--policy", metavar="POLICY", help="NAME or NAME:KEY=VALUE,...; default: OccasionalOptimism")
    add("--x", type=names, metavar="NAMES", help="columns that make a context, separated by commas")
    add("--text", action="store_true", help="some of them are text: a flag for each text, and one for all others")
    add("--arm", default="arm", metavar="NAME", help="the column of what was played; default: arm")
    add("--reward", default="reward", metavar="NAME", help="the column of what it paid, if anything; default: reward")
    add("--explored", metavar="NAME", help="the column that says which rows were played at random")
    add("--all-explored", action="store_true", help="all rows were played at random")
    add("--design", choices=("adaptive", "fixed", "randomized"), default="adaptive", help=DESIGN)
    add("--weight", metavar="NAME", help="the column of how much a row counts; default: all alike")
    add("--arm-names", type=names, metavar="NAMES", help="all arms there will be; default: those of the data")
    add("--objective", choices=("max", "min"), help="min if rewards are costs; default: max, or what a log says")
    add("--normalize", choices=("l2",), help="divide every context by its length")
    add("--units", choices=("free", "as given"), help="default: the policy's own")
    add("--seed", type=int, metavar="N", help="of the bandit's coins; default: drawn at random")
    add_engine(parser)
    parser.set_defaults(engine="serial")
    add("--out", required=True, metavar="FILE", help="the model, such as model.armlet")
    parser.set_defaults(command=_fit, parser=parser)


def _fit(arguments: argparse.Namespace) -> None:
    from armlet.errors import ArgumentError, ArmletError
    from armlet.inputs.encoder import Encoder
    from armlet.log.fitting import fit_parquet, is_sums
    from armlet.simulation.compare import parse_policy
    from armlet.simulation.named import make_policy

    a = arguments
    try:
        if a.explored is not None and a.all_explored:
            raise InvalidValueError("--explored and --all-explored are both given; give one")
        if not Path(a.out).absolute().parent.is_dir():  # better now than after all was read
            raise FileNotFoundError(f"--out is {a.out}, in a folder that does not exist")
        bandit = fit_parquet(
            a.data,
            None if a.policy is None else make_policy(*parse_policy(a.policy)),
            x=a.x,
            arm=a.arm,
            reward=a.reward,
            explored=True if a.all_explored else a.explored,
            weight=a.weight,
            design=a.design,
            arms=a.arm_names,
            encoder=Encoder() if a.text else None,
            objective=a.objective,
            normalize=a.normalize,
            units=a.units,
            seed=a.seed,
            engine=a.engine,
            workers=a.workers,
        )
        bandit.save(a.out)
    except (ValueError, TypeError) as error:
        a.parser.error(error.told(OPTIONS) if isinstance(error, ArgumentError) else str(error))
    except KeyboardInterrupt:
        print("\ninterrupted: nothing was written", file=sys.stderr)
        raise
    except (ModuleNotFoundError, OSError, ArmletError) as error:
        fail(a, error, "pyarrow", "distributed")
    how = "sums of rows" if is_sums(bandit) else "row by row, since what it knows is no sum of rows"
    print(f"{bandit.t:,} rows, {len(bandit.arms)} arms, {bandit.dim} features, {how}: {a.out}")
