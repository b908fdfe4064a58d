"""The command line of `armlet compare`: its arguments, and how it ends."""

from __future__ import annotations

import argparse

from armlet.cli.arguments import add_engine, count, fail

EXAMPLES = """\
examples:
  armlet compare
  armlet compare --policy Algorithm1:p=24 --policy Algorithm1:p=600 --horizon 1e5
  armlet compare --world DisplayAds --policy Algorithm1:p=200 --policy LinUCB:alpha=0.5 --runs 50
  armlet compare --world Linear --world-set dim=10 --policy OFUL --policy ThompsonSampling:v=1 --horizon 20000

A comparison that was interrupted or killed goes on where it was if the same command is given again.
"""


def add_compare(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = "Run several policies on the same runs of one world; rank them and draw their regret."
    parser.epilog, parser.formatter_class = EXAMPLES, argparse.RawDescriptionHelpFormatter
    parser.add_argument("--world", default="FigureA", metavar="NAME", help="as armlet list names it; default: FigureA")
    pair = "NAME=VALUE"
    parser.add_argument("--world-set", action="append", default=[], metavar=pair, help="of the world; may be repeated")
    described = "NAME or NAME:KEY=VALUE,...; may be repeated; default: OccasionalOptimism and six others"
    parser.add_argument("--policy", action="append", default=[], metavar="POLICY", help=described)
    parser.add_argument("--horizon", type=count, default=10_000, metavar="T", help="steps in a run; default: 10000")
    parser.add_argument("--runs", type=count, default=20, metavar="N", help="independent runs; default: 20")
    parser.add_argument("--seed", type=int, default=2013, metavar="N", help="of the world and all runs; default: 2013")
    add_engine(parser)
    parser.add_argument("--out", default="results/compare", metavar="DIR", help="default: results/compare")
    parser.set_defaults(command=_compare, parser=parser)


def _compare(arguments: argparse.Namespace) -> None:
    from armlet.errors import ArmletError
    from armlet.parallel import pool
    from armlet.simulation import compare

    a = arguments
    try:
        jobs = compare.make_jobs(a.world, a.world_set, a.policy, a.horizon, a.runs, a.seed)
        engine = pool.make_pool(a.engine, workers=a.workers)
    except (ValueError, TypeError) as error:
        a.parser.error(str(error))
    except ModuleNotFoundError as error:
        fail(a, error, "distributed")
    try:
        compare.compare(jobs, engine=engine, out=a.out)
    except (ModuleNotFoundError, OSError, ArmletError) as error:
        fail(a, error, "matplotlib", "pyarrow")
