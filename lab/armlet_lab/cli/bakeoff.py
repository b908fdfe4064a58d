"""The command line of `armlet-lab bakeoff`: its arguments, and how it ends."""

from __future__ import annotations

import argparse
import sys

from armlet.cli.arguments import add_engine, count, fail, names

EXAMPLES = """\
examples:
  armlet data fetch keel              first, once: the tables
  armlet-lab bakeoff                      all tables, short, beside Vowpal Wabbit as it comes
  armlet-lab bakeoff --full               whole tables, five shuffles, beside the bake-off's grid of settings
  armlet-lab bakeoff --policy OptimisticEpsilonGreedy --policy LinUCB:alpha=0.3 --policy Uniform --out results/mine
  armlet-lab bakeoff --tables balanced/iris,balanced/wine --rivals none

A bake-off that was interrupted or killed goes on where it was if the same command is given again. What Vowpal Wabbit
did is kept in the folder: another call with other policies plays only those.
"""


def add_bakeoff(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = (
        "Play real classification tables as bandits, beside Vowpal Wabbit in an environment of its own."
    )
    parser.epilog, parser.formatter_class = EXAMPLES, argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add(
        "--full",
        action="store_true",
        help="whole tables, more shuffles, the whole grid; progress says how long it takes",
    )
    described = "NAME or NAME:KEY=VALUE,...; {rows} stands for the rows of a table; may be repeated; default: the usual"
    add("--policy", action="append", default=[], metavar="POLICY", help=described)
    add("--tables", type=names, metavar="NAMES", help="KIND/NAME or KIND, separated by commas; default: all")
    add("--rows", type=count, metavar="N", help="of a table, at most; default: 1000, with --full 10000")
    add("--shuffles", type=count, metavar="N", help="of each table; default: 3, with --full 5")
    rivals = "of Vowpal Wabbit: none, usual settings, or the bake-off's grid; default: usual, with --full grid"
    add("--rivals", choices=("none", "usual", "grid"), help=rivals)
    add("--seed", type=int, metavar="N", help="of all shuffles and policies; default: the published one")
    add_engine(parser)
    add("--out", default="results/bakeoff", metavar="DIR", help="default: results/bakeoff")
    parser.set_defaults(command=_bakeoff, parser=parser)


def _bakeoff(arguments: argparse.Namespace) -> None:
    from armlet.errors import ArmletError
    from armlet.parallel import pool
    from armlet_lab.contests import bakeoff
    from armlet_lab.runner.experiment import SEED

    a = arguments
    try:
        given = {"policies": a.policy, "tables": a.tables, "rows": a.rows, "shuffles": a.shuffles, "rivals": a.rivals}
        settings = bakeoff.configured("full" if a.full else "quick", given)
        with pool.make_pool(a.engine, workers=a.workers) as where:
            bakeoff.reproduce(settings, seed=SEED if a.seed is None else a.seed, out=a.out, engine=where)
    except (ValueError, TypeError) as error:
        a.parser.error(str(error))
    except KeyboardInterrupt:
        print(f"\ninterrupted: what is finished is kept in {a.out}; the same command goes on", file=sys.stderr)
        raise
    except (ModuleNotFoundError, OSError, ArmletError) as error:
        fail(a, error, "matplotlib", "pyarrow", "distributed")
