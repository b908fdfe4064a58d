"""The command `armlet-lab`: the paper's evaluation, the bake-off, reports of results, and pages of the docs."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from armlet.cli.answer import Answer
from armlet.cli.command import (
    REPEATED,
    Groups,
    Listed,
    Work,
    arg,
    command,
    count,
    engine,
    named_policy,
    names,
    new_parser,
    out_folder,
    progress,
    run,
    seed,
)

if TYPE_CHECKING:
    from armlet.parallel import Progress
    from armlet.simulation.lab import Scale

KEPT = "what is finished is kept in {out}; the same command goes on"
EXAMPLES = """\
examples:
  armlet-lab paper --only fig-a,lemma-2    two experiments, a verdict for each claim
  armlet-lab bakeoff --rivals none         real tables; armlet data fetch keel comes first
  armlet-lab report results/paper          write the report again from what was computed
"""


@command(
    arg("--full", action="store_true", help="more runs and theta; progress says how long it takes"),
    arg("--only", type=names, metavar="NAMES", help="experiments, separated by commas; default: all of the paper"),
    seed("all experiments", fallback="the published one"),
    *engine(),
    out_folder("results/paper"),
    extras=("matplotlib", "pyarrow", "distributed"),
    interrupted=KEPT,
)
def paper(a: argparse.Namespace) -> Answer | int:
    """Rebuild the paper's numerical results and say, claim by claim, what holds.

    examples:
      armlet-lab paper                        every experiment, quickly
      armlet-lab paper --only fig-a,lemma-2   two of them
      armlet-lab paper --full --out results/full
      armlet-lab paper --engine dask --workers 8
      armlet-lab paper --only units,evidence  what Armlet promises besides the paper

    A reproduction that was interrupted or killed goes on where it was if the same command is given again.
    """
    from armlet import parallel
    from armlet_lab.runner.experiment import SEED
    from armlet_lab.runner.reproduce import reproduce

    with parallel.make_pool(a.engine, workers=a.workers) as where, _telling(a):
        root = SEED if a.seed is None else a.seed
        scale: Scale = "full" if a.full else "quick"
        code = reproduce(a.only, scale, root, a.out, engine=where, progress=_progress(a))
    return _judged(a, a.out, code)


@contextmanager
def _telling(a: argparse.Namespace) -> Iterator[None]:
    """Leave stdout to the JSON, if that is asked for."""
    with redirect_stdout(sys.stderr if a.json else sys.stdout):
        yield


def _progress(a: argparse.Namespace) -> Callable[[str], Progress]:
    return lambda what: progress(a, what)


def _judged(a: argparse.Namespace, folder: str, code: int = 0) -> Answer | int:
    """Return the verdicts that were written, if they are to be JSON; as text they are printed as they are found."""
    if not a.json:
        return code
    verdicts, report = json.loads((Path(folder) / "verdicts.json").read_text()), Path(folder) / "report.html"
    return Answer({"verdicts": verdicts, "report": report}, code=code)


@command(
    arg("--full", action="store_true", help="whole tables and more orders; progress says how long it takes"),
    named_policy("{rows} stands for the rows of a table", REPEATED, "default: the usual", action="append", default=[]),
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
    seed("all orders and policies", fallback="the published one"),
    *engine(),
    out_folder("results/bakeoff"),
    extras=("matplotlib", "pyarrow", "distributed"),
    interrupted=KEPT,
)
def bakeoff(a: argparse.Namespace) -> Answer | int:
    """Play real classification tables as bandits, next to Vowpal Wabbit and MABWiser in environments of their own.

    examples:
      armlet data fetch keel                  first, once: the tables
      armlet-lab bakeoff                      all tables, short, next to the rivals as they come
      armlet-lab bakeoff --full               whole tables, ten orders
      armlet-lab bakeoff --policy LinUCB:alpha=0.3 --policy Uniform --out results/mine
      armlet-lab bakeoff --tables balanced/iris,balanced/wine --rivals none

    A bake-off that was interrupted or killed goes on where it was if the same command is given again. What the rivals
    did is kept in the folder: another call with other policies plays only those.
    """
    from armlet import parallel
    from armlet_lab.contests import bakeoff as contest
    from armlet_lab.runner.experiment import SEED

    given = {"policies": a.policy, "tables": a.tables, "rows": a.rows, "shuffles": a.shuffles, "rivals": a.rivals}
    settings = contest.configured("full" if a.full else "quick", given)
    with parallel.make_pool(a.engine, workers=a.workers) as where, _telling(a):
        root = SEED if a.seed is None else a.seed
        contest.reproduce(settings, seed=root, out=a.out, engine=where, progress=_progress(a))
    return _judged(a, a.out)


@command(
    arg("folder", metavar="DIR", help="where armlet-lab paper or armlet simulate wrote"),
    extras=("matplotlib", "pyarrow"),
)
def report(a: argparse.Namespace) -> Work:
    """Write DIR/report.html again from the results in DIR; nothing is computed again.

    examples:
      armlet-lab report results/paper      judge the claims again from what was computed
      armlet-lab report results/simulate   plot what armlet simulate found, finished or not
    """

    def work() -> Answer | int:
        with _telling(a):
            return rebuild(a)

    return work


def rebuild(a: argparse.Namespace) -> Answer | int:
    """Write the page of a folder of results again."""
    from armlet.simulation.lab import read_manifest
    from armlet.simulation.overview import write_overview
    from armlet_lab.contests import bakeoff as contest
    from armlet_lab.runner import reproduce

    kind = read_manifest(a.folder).get("kind")
    if kind == reproduce.KIND:
        return _judged(a, a.folder, reproduce.rebuild(a.folder))
    if kind == contest.KIND:
        contest.rebuild(a.folder)
        return _judged(a, a.folder)
    page = write_overview(a.folder)
    return Answer({"report": page}, f"Report: {page}")


@command(
    arg("name", metavar="NAME", nargs="?", help="of the page; default: list them"),
    extras=("matplotlib", "pyarrow"),
)
def publish(a: argparse.Namespace) -> Answer:
    """Run what a page of the documentation quotes, at full scale, and put its tables and figures there.

    examples:
      armlet-lab publish               name every page
      armlet-lab publish units         play at full scale, then rewrite docs/results/units.md

    It writes into docs/ of the folder where it is called: the root of the repository.
    """
    from armlet_lab.publish import PAGES, publish

    if a.name is not None:
        with _telling(a):
            path = publish(a.name, main)
        return Answer({"page": path}, f"Page: {path}")
    pages = {name: page.path for name, page in PAGES.items()}
    return Answer({"pages": pages}, [f"{name:16} {path}" for name, path in pages.items()])


@command()
def list_names(_: argparse.Namespace) -> Answer:
    """Name every experiment; armlet-lab paper --only NAME runs it.

    examples:
      armlet-lab list
    """
    from armlet_lab.runner import reproduce

    titles: dict[str, Any] = {name: reproduce.load(name).title for name in reproduce.ALL}
    return Answer({"experiments": titles}, [f"{name:16} {title}" for name, title in titles.items()])


COMMANDS: Final[Groups] = {
    "reproduce the paper": (
        Listed("paper", "rebuild the paper's evaluation, with a verdict for every claim", paper),
        Listed("list", "name every experiment", list_names),
        Listed("report", "write the report of a folder of results again", report),
    ),
    "contests": (Listed("bakeoff", "play real tables as bandits, next to Vowpal Wabbit and MABWiser", bakeoff),),
    "publish": (Listed("publish", "run an experiment and put its tables into the docs", publish),),
}


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
        COMMANDS,
        description="The laboratory of Armlet: the paper's evaluation, and contests.",
        examples=EXAMPLES,
        version="show the version and the CPU instruction set in use",
    )
