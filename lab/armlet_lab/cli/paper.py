"""The command line of `armlet-lab paper`: its arguments, and how it ends."""

from __future__ import annotations

import argparse
import sys
from typing import Literal

from armlet.cli.arguments import add_engine, fail

EXAMPLES = """\
examples:
  armlet-lab paper                        every experiment, quickly
  armlet-lab paper --only fig-a,lemma-2   two of them
  armlet-lab paper --full --out results/full
  armlet-lab paper --engine dask --workers 8
  armlet-lab paper --only units,evidence  what Armlet promises besides the paper, which is not run otherwise

A reproduction that was interrupted or killed goes on where it was if the same command is given again.
"""


def add_paper(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = "Rebuild the paper's numerical results and say, claim by claim, what holds."
    parser.epilog, parser.formatter_class = EXAMPLES, argparse.RawDescriptionHelpFormatter
    parser.add_argument("--full", action="store_true", help="more runs and theta; progress says how long it takes")
    parser.add_argument("--only", metavar="NAMES", help="experiments, separated by commas; default: all of the paper")
    parser.add_argument("--seed", type=int, metavar="N", help="of all experiments; default: the published one")
    add_engine(parser)
    parser.add_argument("--out", default="results/paper", metavar="DIR", help="default: results/paper")
    parser.set_defaults(command=_paper, parser=parser)


def _paper(arguments: argparse.Namespace) -> None:
    from armlet.errors import ArmletError
    from armlet.parallel import pool
    from armlet_lab.runner.experiment import SEED
    from armlet_lab.runner.reproduce import reproduce

    names = None if arguments.only is None else arguments.only.split(",")
    seed = SEED if arguments.seed is None else arguments.seed
    try:
        with pool.make_pool(arguments.engine, workers=arguments.workers) as where:
            scale: Literal["quick", "full"] = "full" if arguments.full else "quick"
            code = reproduce(names, scale, seed, arguments.out, engine=where)
    except ValueError as error:
        arguments.parser.error(str(error))
    except KeyboardInterrupt:
        print(f"\ninterrupted: what is finished is kept in {arguments.out}; the same command goes on", file=sys.stderr)
        raise
    except (ModuleNotFoundError, OSError, ArmletError) as error:
        fail(arguments, error, "matplotlib", "pyarrow", "distributed")
    if code:
        arguments.parser.exit(code)
