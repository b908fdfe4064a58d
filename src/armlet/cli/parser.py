"""The command `armlet`: reads the command line, imports only what the command needs, and runs it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Literal, NoReturn

from armlet.cli.advise import add_advise
from armlet.cli.arguments import count, fail
from armlet.core.version import __version__

EXAMPLES = """\
examples:
  armlet demo                                    run Algorithm 1 on Figure (a), write results/demo.svg
  armlet demo --p 60 --horizon 20000 --runs 10   one value of p, a shorter run
  armlet paper                                   rebuild the paper's evaluation, a verdict for every claim
  armlet list                                    name every world, policy and experiment
  armlet compare --world FigureA                 rank six policies on the same runs
  armlet advise --horizon 1e5 --world FigureA    how much to explore, and what it costs
  armlet simulate --world FigureB --world-set I=100 --policy ContextualEpsilonGreedy --set p=120
"""

PAPER_EXAMPLES = """\
examples:
  armlet paper                        every experiment, quickly
  armlet paper --only fig-a,lemma-2   two of them
  armlet paper --full --out results/full
  armlet paper --engine dask --workers 8

A reproduction that was interrupted or killed goes on where it was if the same command is given again.
"""

REPORT_EXAMPLES = """\
examples:
  armlet report results/paper      judge the claims anew from what was computed
  armlet report results/simulate   plot what armlet simulate found, finished or not
"""

COMPARE_EXAMPLES = """\
examples:
  armlet compare --world FigureA
  armlet compare --world DisplayAds --policy ContextualEpsilonGreedy:p=200 --policy LinUCB:alpha=0.5 --runs 50
  armlet compare --world Linear --world-set dim=10 --policy OFUL --policy ThompsonSampling:v=1 --horizon 20000

A comparison that was interrupted or killed goes on where it was if the same command is given again.
"""

SIMULATE_EXAMPLES = """\
examples:
  armlet simulate --world FigureA --policy ContextualEpsilonGreedy --set p=120 --out results/a
  armlet simulate --world FigureB --world-set I=100 --policy Uniform --runs 100 --workers 2
  armlet simulate --world FigureA --policy ContextualEpsilonGreedy --set p=600 --horizon 1e12
  armlet simulate --world Linear --policy Oracle --engine tcp://host:8786

A run that was interrupted or killed goes on where it was if the same command is given again.
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}; see {self.prog} --help\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 failed, 2 wrongly called, 130 interrupted.

    Examples
    --------
    >>> main(["demo", "--runs", "many"])
    Traceback (most recent call last):
    SystemExit: 2
    """
    arguments = _parser().parse_args(argv)
    command: Callable[[argparse.Namespace], None] = arguments.command
    try:
        command(arguments)
    except KeyboardInterrupt:
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="armlet",
        description="Contextual linear bandits in constant time and memory.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"armlet {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="command", required=True)
    _add_demo(commands.add_parser("demo", help="show Algorithm 1 at work on the paper's Figure (a)"))
    _add_paper(commands.add_parser("paper", help="rebuild the paper's evaluation, with a verdict for every claim"))
    _add_list(commands.add_parser("list", help="name every world, policy and experiment"))
    _add_report(commands.add_parser("report", help="write the report of a folder of results anew"))
    _add_compare(commands.add_parser("compare", help="run several policies on the same runs of a world, and rank them"))
    add_advise(commands.add_parser("advise", help="say how much to explore, what it costs and how sure that is"))
    _add_simulate(commands.add_parser("simulate", help="run a policy in a world, many times, on any engine"))
    return parser


def _add_demo(parser: argparse.ArgumentParser) -> None:
    parser.description = "Run Algorithm 1 on one problem of the paper's Figure (a); plot and report its regret."
    parser.add_argument("--out", default="results", metavar="DIR", help="where to write; default: results")
    parser.add_argument("--horizon", type=int, metavar="T", help="steps in a run; default: 100000")
    parser.add_argument("--runs", type=int, metavar="N", help="independent runs; default: 20")
    parser.add_argument("--p", type=float, nargs="+", help="how much to explore, one or more; default: 24 120 600")
    parser.add_argument("--seed", type=int, metavar="N", help="of the problem and all runs; default: 2013")
    parser.set_defaults(command=_demo, parser=parser)


def _demo(arguments: argparse.Namespace) -> None:
    from armlet.simulation import demo  # only this command needs it

    given = {name: getattr(arguments, name) for name in ("horizon", "runs", "p", "seed")}
    if given["p"] is not None:
        given["p"] = tuple(given["p"])
    try:
        settings = demo.Settings(**{name: value for name, value in given.items() if value is not None})
    except ValueError as error:
        arguments.parser.error(str(error))
    try:
        demo.main(settings, arguments.out)
    except (ModuleNotFoundError, OSError, MemoryError) as error:
        if isinstance(error, ModuleNotFoundError) and error.name != "matplotlib":
            raise
        arguments.parser.exit(1, f"{arguments.parser.prog}: error: {error}\n")


def _add_paper(parser: argparse.ArgumentParser) -> None:
    parser.description = "Rebuild the paper's numerical results and say, claim by claim, what holds."
    parser.epilog, parser.formatter_class = PAPER_EXAMPLES, argparse.RawDescriptionHelpFormatter
    parser.add_argument("--full", action="store_true", help="more runs and theta: half an hour instead of two minutes")
    parser.add_argument("--only", metavar="NAMES", help="experiments, separated by commas; default: all")
    parser.add_argument("--seed", type=int, metavar="N", help="of all experiments; default: the published one")
    _add_engine(parser)
    parser.add_argument("--out", default="results/paper", metavar="DIR", help="default: results/paper")
    parser.set_defaults(command=_paper, parser=parser)


def _add_engine(parser: argparse.ArgumentParser) -> None:
    names = "processes, threads, serial, dask, or the address of a Dask scheduler"
    parser.add_argument("--engine", default="processes", help=f"where to compute: {names}; default: processes")
    parser.add_argument("--workers", type=int, metavar="N", help="default: as many as there are processors")


def _paper(arguments: argparse.Namespace) -> None:
    from armlet.core.errors import ArmletError
    from armlet.paper.experiment import SEED
    from armlet.paper.reproduce import reproduce
    from armlet.parallel import pool

    names = None if arguments.only is None else arguments.only.split(",")
    seed = SEED if arguments.seed is None else arguments.seed
    try:
        with pool.engine(arguments.engine, workers=arguments.workers) as where:
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


def _add_report(parser: argparse.ArgumentParser) -> None:
    parser.description = "Write DIR/report.html anew from the results in DIR; nothing is computed again."
    parser.epilog, parser.formatter_class = REPORT_EXAMPLES, argparse.RawDescriptionHelpFormatter
    parser.add_argument("folder", metavar="DIR", help="where armlet paper or armlet simulate wrote")
    parser.set_defaults(command=_report, parser=parser)


def _report(arguments: argparse.Namespace) -> None:
    from armlet.cli import rebuild
    from armlet.core.errors import ArmletError

    try:
        code = rebuild.report(arguments.folder)
    except (ModuleNotFoundError, OSError, ArmletError) as error:
        fail(arguments, error, "matplotlib", "pyarrow")
    if code:
        arguments.parser.exit(code)


def _add_list(parser: argparse.ArgumentParser) -> None:
    parser.description = "Name every world and policy with one line and its settings, and every experiment."
    parser.set_defaults(command=_list)


def _list(_: argparse.Namespace) -> None:
    from armlet.cli.listing import listing

    print(*listing(), sep="\n")


def _add_simulate(parser: argparse.ArgumentParser) -> None:
    parser.description = "Run a policy in a world; keep the regret of every run in a table."
    parser.epilog, parser.formatter_class = SIMULATE_EXAMPLES, argparse.RawDescriptionHelpFormatter
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
    _add_engine(parser)
    parser.add_argument("--out", default="results/simulate", metavar="DIR", help="default: results/simulate")
    parser.set_defaults(command=_simulate, parser=parser)


def _add_compare(parser: argparse.ArgumentParser) -> None:
    parser.description = "Run several policies on the same contexts and noise of one world; rank them by regret."
    parser.epilog, parser.formatter_class = COMPARE_EXAMPLES, argparse.RawDescriptionHelpFormatter
    parser.add_argument("--world", required=True, metavar="NAME", help="one of those that armlet list names")
    pair = "NAME=VALUE"
    parser.add_argument("--world-set", action="append", default=[], metavar=pair, help="of the world; may be repeated")
    described = "NAME or NAME:KEY=VALUE,...; may be repeated; default: six usual ones"
    parser.add_argument("--policy", action="append", default=[], metavar="POLICY", help=described)
    parser.add_argument("--horizon", type=count, default=10_000, metavar="T", help="steps in a run; default: 10000")
    parser.add_argument("--runs", type=count, default=20, metavar="N", help="independent runs; default: 20")
    parser.add_argument("--seed", type=int, default=2013, metavar="N", help="of the world and all runs; default: 2013")
    _add_engine(parser)
    parser.add_argument("--out", default="results/compare", metavar="DIR", help="default: results/compare")
    parser.set_defaults(command=_compare, parser=parser)


def _compare(arguments: argparse.Namespace) -> None:
    from armlet.core.errors import ArmletError
    from armlet.parallel import pool
    from armlet.simulation import compare

    a = arguments
    try:
        jobs = compare.make_jobs(a.world, a.world_set, a.policy, a.horizon, a.runs, a.seed)
        engine = pool.engine(a.engine, workers=a.workers)
    except (ValueError, TypeError) as error:
        a.parser.error(str(error))
    except ModuleNotFoundError as error:
        fail(a, error, "distributed")
    try:
        compare.compare(jobs, engine=engine, out=a.out)
    except (ModuleNotFoundError, OSError, ArmletError) as error:
        fail(a, error, "matplotlib", "pyarrow")


def _simulate(arguments: argparse.Namespace) -> None:
    from armlet.core.errors import ArmletError
    from armlet.parallel import pool
    from armlet.simulation import commands

    try:
        job = commands.make_job(
            world=arguments.world,
            world_settings=arguments.world_set,
            policy=arguments.policy,
            policy_settings=arguments.set,
            horizon=arguments.horizon,
            runs=arguments.runs,
            seed=arguments.seed,
            method=arguments.method,
        )
        engine = pool.engine(arguments.engine, workers=arguments.workers)
    except (ValueError, TypeError) as error:
        arguments.parser.error(str(error))
    except ModuleNotFoundError as error:
        fail(arguments, error, "distributed")
    try:
        commands.simulate(job, engine=engine, out=arguments.out)
    except (ModuleNotFoundError, OSError, ArmletError) as error:
        fail(arguments, error, "pyarrow")
