"""The command line of `armlet simulate`: its arguments, and how it ends."""

from __future__ import annotations

import argparse

from armlet.cli.arguments import add_engine, count, fail

EXAMPLES = """\
examples:
  armlet simulate --world FigureA --policy Algorithm1 --set p=120 --out results/a
  armlet simulate --world FigureB --world-set I=100 --policy Uniform --runs 100 --workers 2
  armlet simulate --world FigureA --policy Algorithm1 --set p=600 --horizon 1e12
  armlet simulate --world Linear --policy Oracle --engine tcp://host:8786

A run that was interrupted or killed goes on where it was if the same command is given again.
"""


def add_simulate(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = "Run a policy in a world; keep the regret of every run in a table."
    parser.epilog, parser.formatter_class = EXAMPLES, argparse.RawDescriptionHelpFormatter
    pair = "NAME=VALUE"
    parser.add_argument("--world", required=True, metavar="NAME", help="one of those that armlet list names")
    parser.add_argument("--world-set", action="append", default=[], metavar=pair, help="of the world; may be repeated")
    parser.add_argument("--policy", required=True, metavar="NAME", help="one of those that armlet list names")
    parser.add_argument("--set", action="append", default=[], metavar=pair, help="of the policy; may be repeated")
    parser.add_argument("--horizon", type=count, default=100_000, metavar="T", help="steps in a run; default: 100000")
    parser.add_argument("--runs", type=count, default=20, metavar="N", help="independent runs; default: 20")
    parser.add_argument("--seed", type=int, default=2013, metavar="N", help="of the world and all runs; default: 2013")
    methods = ("auto", "steps", "events", "python")
    parser.add_argument("--method", choices=methods, default="auto", help="how to compute; default: auto")
    add_engine(parser)
    parser.add_argument("--out", default="results/simulate", metavar="DIR", help="default: results/simulate")
    parser.set_defaults(command=_simulate, parser=parser)


def _simulate(arguments: argparse.Namespace) -> None:
    from armlet.errors import ArmletError
    from armlet.parallel import pool
    from armlet.simulation import compare

    try:
        job = compare.make_job(
            world=arguments.world,
            world_settings=arguments.world_set,
            policy=arguments.policy,
            policy_settings=arguments.set,
            horizon=arguments.horizon,
            runs=arguments.runs,
            seed=arguments.seed,
            method=arguments.method,
        )
        engine = pool.make_pool(arguments.engine, workers=arguments.workers)
    except (ValueError, TypeError) as error:
        arguments.parser.error(str(error))
    except ModuleNotFoundError as error:
        fail(arguments, error, "distributed")
    try:
        compare.simulate(job, engine=engine, out=arguments.out)
    except (ModuleNotFoundError, OSError, ArmletError) as error:
        fail(arguments, error, "pyarrow")
