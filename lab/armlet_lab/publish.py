"""What the documentation quotes from experiments: run them at full scale and paste their tables; nobody types one.

A page has marks, `<!-- name: begin -->` and `<!-- name: end -->`; what stands between them is replaced by a file of the
results. A page is one entry of `PAGES`: what runs, into folders below results/, and which file goes where.
"""

from __future__ import annotations

import contextlib
import io
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from armlet.errors import ArmletError, choices

Run: TypeAlias = Callable[[Sequence[str]], int]
"""Runs a command line of `armlet-lab` and returns its exit code."""
Step: TypeAlias = tuple[str, ...] | Callable[[Path], None]
"""A command line of `armlet-lab`, or a function of the folder of results."""


class PublishError(ArmletError):
    """What a page quotes could not be made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocPage:
    """A page below docs/, the steps that make what it quotes, and the files below results/ that it quotes."""

    path: str
    steps: tuple[Step, ...]
    parts: Mapping[str, str]  # by the name of the mark
    figures: Mapping[str, str] = field(default_factory=dict)  # by the name below docs/figures/
    quoted_on: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # parts of other pages, by their path

    @property
    def texts(self) -> dict[str, Mapping[str, str]]:
        """The parts of every page that is written, this one first."""
        return {self.path: self.parts, **self.quoted_on}


def paste(page: str, name: str, text: str) -> str:
    r"""Return the page with the text between the marks of that name.

    Examples
    --------
    >>> print(paste("<!-- n: begin -->\nold\n<!-- n: end -->", "n", "new"))
    <!-- n: begin -->
    <BLANKLINE>
    new
    <BLANKLINE>
    <!-- n: end -->
    """
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    if page.count(begin) != 1 or page.count(end) != 1:
        raise PublishError(f"the page needs one {begin} and one {end}")
    marked = re.compile(f"{re.escape(begin)}.*{re.escape(end)}", re.DOTALL)
    return marked.sub(lambda _: f"{begin}\n\n{text.strip()}\n\n{end}", page)


def publish(name: str, run: Run, root: Path = Path()) -> Path:
    """Run what a page quotes, put it there, and return the path of the page.

    Parameters
    ----------
    name
        A key of `PAGES`.
    run
        What runs a command line of `armlet-lab`.
    root
        The repository, with docs/ in it.
    """
    if name not in PAGES:
        raise ValueError(f"there is no page {name!r}; {choices(name, PAGES)}")
    page, docs, results = PAGES[name], root / "docs", root / "results"
    before = {path: (docs / path).read_text() for path in page.texts}
    for path, parts in page.texts.items():  # better refused now than after the computation
        for mark in parts:
            paste(before[path], mark, "")
    for step in page.steps:
        if not isinstance(step, tuple):
            step(results)
        elif code := run([part.replace("results/", f"{results}/") for part in step]):
            raise PublishError(f"armlet-lab {' '.join(step)} ended with {code}; {page.path} is as it was")
    made = {path: _pasted(before[path], parts, results) for path, parts in page.texts.items()}
    for figure, file in page.figures.items():
        shutil.copy(results / file, docs / "figures" / figure)
    for path, text in made.items():
        (docs / path).write_text(text)
    return docs / page.path


def _pasted(page: str, parts: Mapping[str, str], results: Path) -> str:
    for mark, file in parts.items():
        page = paste(page, mark, (results / file).read_text())
    return page


def _of_experiment(
    name: str,
    *parts: str,
    prefix: str = "",
    before: tuple[Step, ...] = (),
    figures: Mapping[str, str] | None = None,
    more: tuple[str, ...] = (),
) -> DocPage:
    """Describe a page of verdicts and of tables, each of which has a mark."""
    return DocPage(
        path=f"results/{name}.md",
        steps=(*before, ("paper", "--full", "--only", name, *more, "--out", f"results/{name}")),
        parts={
            **{part: f"{name}/tables/{prefix or name}-{part}.md" for part in parts},
            "verdicts": f"{name}/verdicts.md",
        },
        figures=figures or {},
    )


def _fetch_keel(_: Path) -> None:
    _fetch("keel")


def _fetch_router(_: Path) -> None:
    _fetch("router")


def _fetch_movielens(_: Path) -> None:
    _fetch("movielens")


def _fetch_open_bandit(_: Path) -> None:
    _fetch("open-bandit")


def _fetch(name: str) -> None:
    from armlet.cli import main

    if code := main(["data", "fetch", name]):
        raise PublishError(f"armlet data fetch {name} ended with {code}")


def _calibrate(results: Path) -> None:
    from armlet_lab.paper import calibration

    with contextlib.redirect_stdout(io.StringIO()) as printed:
        calibration.main([])
    results.mkdir(parents=True, exist_ok=True)
    (results / "calibration.md").write_text(printed.getvalue())


def _draw_advice(results: Path) -> None:
    """Ask the advisor about customers that click, and draw what it says."""
    from armlet.advice import advise
    from armlet.advice.page import regret_by_p
    from armlet.environments import Customers

    advice = advise(Customers.draw, horizon=100_000, seed=1, unit="clicks")
    (results / "explore" / "figures" / "clicks.svg").write_text(regret_by_p(advice).svg, encoding="utf-8")


def _benchmark(script: str, folder: str) -> Callable[[Path], None]:
    """Run a script of benchmarks/ that writes into a folder of results; what it prints is seen while it runs."""

    def step(results: Path) -> None:
        _run_script(results.parent / "benchmarks" / script, "--out", str(results / folder))

    return step


def _printed(script: str, file: str, *options: str) -> Callable[[Path], None]:
    """Run a script of benchmarks/ and keep what it prints as a file of results; its progress is seen."""

    def step(results: Path) -> None:
        text = _run_script(results.parent / "benchmarks" / script, *options, stdout=subprocess.PIPE)
        (results / file).parent.mkdir(parents=True, exist_ok=True)
        (results / file).write_text(text)

    return step


def _run_script(script: Path, *options: str, stdout: int | None = None) -> str:
    done = subprocess.run([sys.executable, str(script), *options], check=False, stdout=stdout, text=True)
    if done.returncode:
        raise PublishError(f"{script.name} ended with {done.returncode}")
    return done.stdout or ""


JUDGED: Final = "80000"
"""The seed of what judges the default policy: constants were chosen on others, below it."""

PAGES: Final[dict[str, DocPage]] = {
    "paper": DocPage(
        path="reference/paper.md",
        steps=(("paper", "--out", "results/paper"),),  # its verdicts are those of the quick scale
        parts={"verdicts": "paper/verdicts.md"},
    ),
    "leaderboard": DocPage(
        path="reference/policies.md",
        steps=(("paper", "--full", "--only", "leaderboard", "--out", "results/leaderboard"),),
        parts={"leaderboard": "leaderboard/tables/leaderboard-regret.md"},
        figures={"leaderboard.svg": "leaderboard/figures/leaderboard-regret.svg"},
    ),
    "bakeoff": DocPage(
        path="results/bakeoff.md",
        steps=(
            _fetch_keel,
            ("bakeoff", "--shuffles", "5", "--seed", JUDGED, "--out", "results/bakeoff"),
        ),
        parts={
            "balanced": "bakeoff/tables/bakeoff-balanced.md",
            "imbalanced": "bakeoff/tables/bakeoff-imbalanced.md",
            "digits": "bakeoff/tables/bakeoff-digits.md",
            "verdicts": "bakeoff/verdicts.md",
        },
        figures={f"bakeoff-{kind}.svg": f"bakeoff/figures/bakeoff-{kind}.svg" for kind in ("balanced", "imbalanced")},
    ),
    "explore": DocPage(
        path="how-to/how-much-to-explore.md",
        steps=(
            _calibrate,
            ("paper", "--full", "--only", "choosing-p,advisor", "--out", "results/explore"),
            _draw_advice,
        ),
        parts={
            "calibration": "calibration.md",
            "trials": "explore/tables/section42-online.md",
            "advice": "explore/tables/section42-prior.md",
        },
        figures={
            "explore-rates.svg": "explore/figures/section42-online-2.svg",
            "explore-clicks.svg": "explore/figures/clicks.svg",
        },
    ),
    "calibration": DocPage(
        path="how-to/how-much-to-explore.md", steps=(_calibrate,), parts={"calibration": "calibration.md"}
    ),
    "speed": DocPage(
        path="results/speed.md",
        steps=(_benchmark("steps.py", "speed"),),
        parts={name: f"speed/{name}.md" for name in ("conclusion", "peers", "microseconds", "origin")},
        quoted_on={
            "../README.md": {"speed": "speed/quoted.md"},
            "explanation/against-the-others.md": {"speed": "speed/peers.md"},
        },
    ),
    "router": DocPage(
        path="results/router.md",
        steps=(_benchmark("router.py", "router"), _printed("dial.py", "router/dial.md")),
        parts={
            name: f"router/{name}.md"
            for name in ("verdicts", "still", "cold", "rises", "falls", "comes", "cpu", "dial")
        },
        figures={"router.svg": "router/router.svg"},
    ),
    "catalogue": DocPage(
        path="results/catalogue.md",
        steps=(
            _fetch_movielens,
            _fetch_open_bandit,
            _benchmark("catalogue.py", "catalogue"),
            _benchmark("movielens.py", "catalogue"),
            _printed("open_bandit.py", "catalogue/open-bandit.md"),
            _printed("text.py", "catalogue/text.md"),
        ),
        parts={
            name: f"catalogue/{name}.md"
            for name in ("verdicts", "regret", "new", "cpu", "movielens", "liked", "open-bandit", "text")
        },
        figures={"catalogue.svg": "catalogue/catalogue.svg"},
    ),
    "proxy": DocPage(
        path="how-to/proxy-rewards.md",
        steps=(_printed("proxy.py", "proxy/regret.md"), _printed("proxy.py", "proxy/state.md", "--state")),
        parts={"regret": "proxy/regret.md", "state": "proxy/state.md"},
    ),
    "units": _of_experiment("units", "levels", "lengths", "families", "horizons", "ties"),
    "tournament": _of_experiment("tournament", "mean", "families", "tails", more=("--seed", JUDGED)),
    "life": _of_experiment("life", "newcomer", "silent", "blocks", "avoided", "late", more=("--seed", JUDGED)),
    "evidence": _of_experiment("evidence", "news", "newcomer", "delay", "trained", "closed", "floor", "auto"),
    "dimensions": _of_experiment(
        "dimensions",
        *("router", "noise"),
        before=(_fetch_keel, _fetch_router),
        figures={
            f"dimensions-{part}.svg": f"dimensions/figures/dimensions-{part}.svg"
            for part in ("router", "router-2", "noise", "noise-2")
        },
        more=("--seed", JUDGED),
    ),
    "coverage": _of_experiment(
        "coverage",
        *("fixed", "sequences", "errors", "past", "own", "coefficients", "propensities"),
        figures={"coverage.svg": "coverage/figures/coverage-fixed.svg"},
    ),
    "open-problem": _of_experiment(
        "open-problem",
        *("mistakes", "coin", "radius", "policy"),
        figures={"open-problem.svg": "open-problem/figures/open-problem-mistakes.svg"},
    ),
    "printed-tables": _of_experiment(
        "printed-tables", "digits", "classifiers", "adaptive", prefix="printed", before=(_fetch_keel,)
    ),
}
"""What `armlet-lab publish` knows, by name."""
