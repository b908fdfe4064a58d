"""The command `armlet-lab`: the paper's evaluation, the bake-off, reports of folders of results, and pages of the docs.

A command imports what it needs when it runs: asking for help imports nothing heavy.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Literal

from armlet.cli.arguments import add_engine, count, fail, names
from armlet.cli.parser import Parser, Version, run

EXAMPLES = """\
examples:
  armlet-lab paper          rebuild the paper's evaluation, a verdict for every claim
  armlet-lab list           name every experiment
  armlet-lab bakeoff        real tables, beside Vowpal Wabbit; armlet data fetch keel comes first
  armlet-lab publish units  run an experiment at full scale and put its tables into the docs
"""
PAPER = """\
examples:
  armlet-lab paper                        every experiment, quickly
  armlet-lab paper --only fig-a,lemma-2   two of them
  armlet-lab paper --full --out results/full
  armlet-lab paper --engine dask --workers 8
  armlet-lab paper --only units,evidence  what Armlet promises besides the paper, which is not run otherwise

A reproduction that was interrupted or killed goes on where it was if the same command is given again.
"""
BAKEOFF = """\
examples:
  armlet data fetch keel              first, once: the tables
  armlet-lab bakeoff                      all tables, short, beside Vowpal Wabbit as it comes
  armlet-lab bakeoff --full               whole tables, five shuffles, beside the bake-off's grid of settings
  armlet-lab bakeoff --policy OptimisticEpsilonGreedy --policy LinUCB:alpha=0.3 --policy Uniform --out results/mine
  armlet-lab bakeoff --tables balanced/iris,balanced/wine --rivals none

A bake-off that was interrupted or killed goes on where it was if the same command is given again. What Vowpal Wabbit
did is kept in the folder: another call with other policies plays only those.
"""
REPORT = """\
examples:
  armlet-lab report results/paper      judge the claims again from what was computed
  armlet-lab report results/simulate   plot what armlet simulate found, finished or not
"""
PUBLISH = """\
examples:
  armlet-lab publish               name every page
  armlet-lab publish units         play at full scale into results/units, then rewrite docs/results/units.md

It writes into docs/ of the folder where it is called: the root of the repository.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code, as `armlet` does."""
    return run(make_parser(), argv)


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line, with all commands.

    Examples
    --------
    >>> make_parser().parse_args(["paper", "--only", "fig-a"]).only
    'fig-a'
    """
    parser = Parser(
        prog="armlet-lab",
        description="The laboratory of Armlet: the paper's evaluation, and contests.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=Version, nargs=0, help="print the version of armlet and its kernel")
    commands = parser.add_subparsers(title="commands", metavar="command", required=True)

    def add(
        name: str, run_it: Callable[[argparse.Namespace], None], about: str, described: str, epilog: str | None = None
    ) -> argparse.ArgumentParser:
        raw = argparse.RawDescriptionHelpFormatter
        command = commands.add_parser(name, help=about, description=described, epilog=epilog, formatter_class=raw)
        command.set_defaults(command=run_it, parser=command)
        return command

    about = "rebuild the paper's evaluation, with a verdict for every claim"
    described = "Rebuild the paper's numerical results and say, claim by claim, what holds."
    _add_paper(add("paper", _paper, about, described, PAPER))
    described = "Play real classification tables as bandits, beside Vowpal Wabbit in an environment of its own."
    _add_bakeoff(add("bakeoff", _bakeoff, "play real tables as bandits, beside Vowpal Wabbit", described, BAKEOFF))
    described = "Write DIR/report.html again from the results in DIR; nothing is computed."
    command = add("report", _report, "write the report of a folder of results again", described, REPORT)
    command.add_argument("folder", metavar="DIR", help="where armlet-lab paper or armlet simulate wrote")
    described = "Run what a page of the documentation quotes, at full scale, and put its tables and figures there."
    command = add("publish", _publish, "run an experiment and put its tables into the docs", described, PUBLISH)
    command.add_argument("name", metavar="NAME", nargs="?", help="of the page; default: list them")
    add("list", _list, "name every experiment", "Name every experiment; armlet-lab paper --only NAME runs it.")
    return parser


def _add_paper(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--full", action="store_true", help="more runs and theta; progress says how long it takes")
    parser.add_argument("--only", metavar="NAMES", help="experiments, separated by commas; default: all of the paper")
    parser.add_argument("--seed", type=int, metavar="N", help="of all experiments; default: the published one")
    add_engine(parser)
    parser.add_argument("--out", default="results/paper", metavar="DIR", help="default: results/paper")


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
        _interrupted(arguments.out)
        raise
    except (ModuleNotFoundError, OSError, ArmletError) as error:
        fail(arguments, error, "matplotlib", "pyarrow", "distributed")
    if code:
        arguments.parser.exit(code)


def _interrupted(folder: str) -> None:
    print(f"\ninterrupted: what is finished is kept in {folder}; the same command goes on", file=sys.stderr)


def _add_bakeoff(parser: argparse.ArgumentParser) -> None:
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
        _interrupted(a.out)
        raise
    except (ModuleNotFoundError, OSError, ArmletError) as error:
        fail(a, error, "matplotlib", "pyarrow", "distributed")


def _report(arguments: argparse.Namespace) -> None:
    from armlet.errors import ArmletError
    from armlet.simulation.manifest import read_manifest
    from armlet.simulation.overview import write_overview
    from armlet_lab.contests import bakeoff
    from armlet_lab.runner import reproduce

    code = 0
    try:
        kind = read_manifest(arguments.folder).get("kind")
        if kind == reproduce.KIND:
            code = reproduce.rebuild(arguments.folder)
        elif kind == bakeoff.KIND:
            bakeoff.rebuild(arguments.folder)
        else:
            print(f"Report: {write_overview(arguments.folder)}")
    except (ModuleNotFoundError, OSError, ArmletError) as error:
        fail(arguments, error, "matplotlib", "pyarrow")
    if code:
        arguments.parser.exit(code)


def _publish(arguments: argparse.Namespace) -> None:
    from armlet.errors import ArmletError
    from armlet_lab.publish import PAGES, publish

    if arguments.name is None:
        for name, page in PAGES.items():
            print(f"{name:16} {page.path}")
        return
    try:
        publish(arguments.name, main)
    except ValueError as error:
        arguments.parser.error(str(error))
    except (ModuleNotFoundError, OSError, ArmletError) as error:
        fail(arguments, error, "matplotlib", "pyarrow")


def _list(_: argparse.Namespace) -> None:
    from armlet_lab.runner import reproduce

    for name in reproduce.ALL:
        print(f"{name:16} {reproduce.load(name).title}")
