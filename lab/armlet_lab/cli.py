"""The command `armlet-lab`: the paper's evaluation, the bake-off, reports of results, and pages of the docs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from armlet.cli.command import Work, arg, command, count, engine, names, new_parser, run

KEPT = "what is finished is kept in {out}; the same command goes on"
EXAMPLES = """\
examples:
  armlet-lab paper          rebuild the paper's evaluation, a verdict for every claim
  armlet-lab list           name every experiment
  armlet-lab bakeoff        real tables, next to others; armlet data fetch keel comes first
  armlet-lab publish units  run an experiment at full scale and put its tables into the docs
"""


@command(
    "paper",
    "rebuild the paper's evaluation, with a verdict for every claim",
    arg("--full", action="store_true", help="more runs and theta; progress says how long it takes"),
    arg("--only", type=names, metavar="NAMES", help="experiments, separated by commas; default: all of the paper"),
    arg("--seed", type=int, metavar="N", help="of all experiments; default: the published one"),
    *engine(),
    arg("--out", default="results/paper", metavar="DIR", help="default: results/paper"),
    extras=("matplotlib", "pyarrow", "distributed"),
    interrupted=KEPT,
)
def paper(a: argparse.Namespace) -> int:
    """Rebuild the paper's numerical results and say, claim by claim, what holds.

    Examples
    --------
      armlet-lab paper                        every experiment, quickly
      armlet-lab paper --only fig-a,lemma-2   two of them
      armlet-lab paper --full --out results/full
      armlet-lab paper --engine dask --workers 8
      armlet-lab paper --only units,evidence  what Armlet promises besides the paper, which is not run otherwise

    A reproduction that was interrupted or killed goes on where it was if the same command is given again.
    """
    from armlet import parallel
    from armlet_lab.runner.experiment import SEED
    from armlet_lab.runner.reproduce import reproduce

    with parallel.make_pool(a.engine, workers=a.workers) as where:
        seed = SEED if a.seed is None else a.seed
        return reproduce(a.only, "full" if a.full else "quick", seed, a.out, engine=where)


@command(
    "bakeoff",
    "play real tables as bandits, next to Vowpal Wabbit and MABWiser",
    arg("--full", action="store_true", help="whole tables and more orders; progress says how long it takes"),
    arg(
        "--policy",
        action="append",
        default=[],
        metavar="POLICY",
        help="NAME or NAME:KEY=VALUE,...; {rows} stands for the rows of a table; may be repeated; default: the usual",
    ),
    arg(
        "--tables", type=names, metavar="NAMES", help="KIND/NAME, KIND, even or odd, separated by commas; default: all"
    ),
    arg("--rows", type=count, metavar="N", help="of a table, at most; default: 1000, with --full 10000"),
    arg("--shuffles", type=count, metavar="N", help="orders of each table; default: 3, with --full 10"),
    arg(
        "--rivals",
        choices=("none", "vowpal", "usual", "grid"),
        help="none, Vowpal Wabbit's usual settings, MABWiser's as well (slow), or all of their grids; default: usual",
    ),
    arg("--seed", type=int, metavar="N", help="of all orders and policies; default: the published one"),
    *engine(),
    arg("--out", default="results/bakeoff", metavar="DIR", help="default: results/bakeoff"),
    extras=("matplotlib", "pyarrow", "distributed"),
    interrupted=KEPT,
)
def bakeoff(a: argparse.Namespace) -> None:
    """Play real classification tables as bandits, next to Vowpal Wabbit and MABWiser in environments of their own.

    Examples
    --------
      armlet data fetch keel              first, once: the tables
      armlet-lab bakeoff                      all tables, short, next to the rivals as they come
      armlet-lab bakeoff --full               whole tables, ten orders
      armlet-lab bakeoff --policy OptimisticEpsilonGreedy --policy LinUCB:alpha=0.3 --policy Uniform --out results/mine
      armlet-lab bakeoff --tables balanced/iris,balanced/wine --rivals none

    A bake-off that was interrupted or killed goes on where it was if the same command is given again. What the rivals
    did is kept in the folder: another call with other policies plays only those.
    """
    from armlet import parallel
    from armlet_lab.contests import bakeoff as contest
    from armlet_lab.runner.experiment import SEED

    given = {"policies": a.policy, "tables": a.tables, "rows": a.rows, "shuffles": a.shuffles, "rivals": a.rivals}
    settings = contest.configured("full" if a.full else "quick", given)
    with parallel.make_pool(a.engine, workers=a.workers) as where:
        contest.reproduce(settings, seed=SEED if a.seed is None else a.seed, out=a.out, engine=where)


@command(
    "report",
    "write the report of a folder of results again",
    arg("folder", metavar="DIR", help="where armlet-lab paper or armlet simulate wrote"),
    extras=("matplotlib", "pyarrow"),
)
def report(a: argparse.Namespace) -> Work:
    """Write DIR/report.html again from the results in DIR; nothing is computed again.

    Examples
    --------
      armlet-lab report results/paper      judge the claims again from what was computed
      armlet-lab report results/simulate   plot what armlet simulate found, finished or not
    """
    return lambda: rebuild(a.folder)


def rebuild(folder: str) -> int:
    """Write the page of a folder of results again, and return the exit code."""
    from armlet.simulation.lab import read_manifest
    from armlet.simulation.overview import write_overview
    from armlet_lab.contests import bakeoff as contest
    from armlet_lab.runner import reproduce

    kind = read_manifest(folder).get("kind")
    if kind == reproduce.KIND:
        return reproduce.rebuild(folder)
    if kind == contest.KIND:
        contest.rebuild(folder)
    else:
        print(f"Report: {write_overview(folder)}")
    return 0


@command(
    "publish",
    "run an experiment and put its tables into the docs",
    arg("name", metavar="NAME", nargs="?", help="of the page; default: list them"),
    extras=("matplotlib", "pyarrow"),
)
def publish(a: argparse.Namespace) -> None:
    """Run what a page of the documentation quotes, at full scale, and put its tables and figures there.

    Examples
    --------
      armlet-lab publish               name every page
      armlet-lab publish units         play at full scale into results/units, then rewrite docs/results/units.md

    It writes into docs/ of the folder where it is called: the root of the repository.
    """
    from armlet_lab.publish import PAGES, publish

    if a.name is not None:
        publish(a.name, main)
        return
    for name, page in PAGES.items():
        print(f"{name:16} {page.path}")


@command("list", "name every experiment")
def list_names(_: argparse.Namespace) -> None:
    """Name every experiment; armlet-lab paper --only NAME runs it."""
    from armlet_lab.runner import reproduce

    for name in reproduce.ALL:
        print(f"{name:16} {reproduce.load(name).title}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code, as `armlet` does."""
    return run(make_parser(), argv)


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of all commands.

    Examples
    --------
    >>> make_parser().parse_args(["paper", "--only", "fig-a"]).only
    ('fig-a',)
    """
    return new_parser(
        "armlet-lab",
        (paper, bakeoff, report, publish, list_names),
        description="The laboratory of Armlet: the paper's evaluation, and contests.",
        examples=EXAMPLES,
        version="print the version of armlet and its kernel",
    )
