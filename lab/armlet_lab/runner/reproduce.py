"""The paper's evaluation in one go: run its experiments, judge its claims, write the report.

DIR/report.html, verdicts.json, verdicts.md    what was found
DIR/figures/*.svg, *.png                       every figure of the report
DIR/tables/*.md                                its tables, with the notes above them
DIR/data/NAME/*.parquet                        what every task of an experiment found
DIR/manifest.json                              seed, scale, versions, machine, durations

An experiment that fails is named and the others go on. A reproduction that was interrupted or killed keeps what was
finished, and the same call goes on from there; one that was finished begins again.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from pathlib import Path
from typing import Any, Final

from armlet.disk import write_atomically
from armlet.errors import choices, load_pyarrow
from armlet.parallel import Pool, PoolLike, Progress, WorkerError, opened, reporter
from armlet.report.document import check_pictures, document, figure, lines
from armlet.report.document import table as html_table
from armlet.report.numbers import show
from armlet.report.plots import require_matplotlib
from armlet.simulation.lab import Archive, Lab, Scale, Shelf, Unfinished, new_session, read_manifest, versions
from armlet_lab.experiments import EXPERIMENTS, PRODUCT_EXPERIMENTS
from armlet_lab.runner.experiment import SEED, Experiment, Finding, Findings, Outcome, Section, Statistic, Verdict

TITLE: Final = "A time and space efficient algorithm for contextual linear bandits: what holds"
KIND: Final = "paper"
ALL: Final = {**EXPERIMENTS, **PRODUCT_EXPERIMENTS}
SIGNS: Final = {Outcome.HOLDS: "✓", Outcome.UNDER_READING: "◐", Outcome.FAILS: "✗", Outcome.UNSETTLED: "?"}
CLASSES: Final = {Outcome.HOLDS: "yes", Outcome.UNDER_READING: "partly", Outcome.FAILS: "no", Outcome.UNSETTLED: "open"}
MARKS: Final = {Finding.PASSES: "yes", Finding.FAILS: "no", Finding.OPEN: "open"}


@dataclass(slots=True)
class Reproduction:
    """What was found so far, experiment by experiment."""

    findings: dict[str, Findings] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    @property
    def verdicts(self) -> list[Verdict]:
        """All verdicts, in the order of the experiments."""
        return [verdict for found in self.findings.values() for verdict in found.verdicts]

    @property
    def sections(self) -> list[Section]:
        """All sections of the report, in the same order."""
        return [section for found in self.findings.values() for section in found.sections]


def load(name: str) -> Experiment:
    """Import an experiment by its name.

    Examples
    --------
    >>> load("lemma-2").name
    'lemma-2'
    >>> load("lemma-3")
    Traceback (most recent call last):
    ValueError: there is no experiment 'lemma-3'; did you mean 'lemma-2'?
    """
    if name not in ALL:
        raise ValueError(f"there is no experiment {name!r}; {choices(name, ALL)}")
    experiment: Experiment = importlib.import_module(ALL[name]).EXPERIMENT
    return experiment


def reproduce(
    names: Iterable[str] | None = None,
    scale: Scale = "quick",
    seed: int = SEED,
    out: str | os.PathLike[str] = "results/paper",
    *,
    engine: PoolLike = "processes",
    workers: int | None = None,
    progress: Callable[[str], Progress] = reporter,
) -> int:
    """Run experiments in order, write the report, print the verdicts; give the exit code, 1 if one failed.

    Parameters
    ----------
    names
        Keys of `EXPERIMENTS`, all of them if left out; or of `PRODUCT_EXPERIMENTS`, which are run only if named.
    scale
        "quick", or "full": more runs and theta.
    seed
        Of everything that is drawn.
    out
        The folder for the report, the figures and the data.
    engine, workers
        Where tasks run; see `armlet.parallel.make_pool`. The results are the same.
    progress
        Given what is being done, gives what is told how far it is.
    """
    chosen = list(dict.fromkeys(EXPERIMENTS if names is None else names))
    _check(chosen)
    folder, done = Path(out), Reproduction()
    with opened(engine, workers=workers) as where:
        manifest = _begin(folder, chosen, scale, seed, where)
        start = time.monotonic()
        try:
            for name in chosen:
                lab = Lab(seed=seed, name=name, scale=scale, where=where, shelf=_shelf(folder, name), progress=progress)
                _attempt(done, name, lab, manifest["seconds"])
            manifest["status"] = "finished"
        except BaseException:
            manifest["status"] = "interrupted"
            raise
        finally:  # Ctrl-C too leaves a report of what was finished
            manifest["sessions"][-1]["seconds"] = round(time.monotonic() - start, 1)
            report = write_report(done, folder, manifest)
    _tell(done, report)
    return 1 if done.failures else 0


def rebuild(folder: str | os.PathLike[str]) -> int:
    """Analyse what a reproduction computed once more and write its report again; nothing is simulated."""
    manifest, done = read_manifest(folder), Reproduction()
    for name in manifest["names"]:
        shelf = _shelf(Path(folder), name)
        lab = Archive(seed=manifest["seed"], name=name, scale=manifest["scale"], shelf=shelf)
        _attempt(done, name, lab, {})
    _tell(done, write_report(done, Path(folder), manifest))
    return 1 if done.failures else 0


def _check(names: Sequence[str]) -> None:
    if unknown := [name for name in names if name not in ALL]:
        raise ValueError(f"there is no experiment {unknown[0]!r}; {choices(unknown[0], ALL)}")
    if not names:
        raise ValueError(f"names is empty; choose from {', '.join(ALL)}")
    require_matplotlib()  # better now than after the computation
    load_pyarrow()


def _begin(folder: Path, names: Sequence[str], scale: Scale, seed: int, where: Pool) -> dict[str, Any]:
    """Go on with what was interrupted, or begin again."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {"kind": KIND, "names": list(names), "scale": scale, "seed": seed, "versions": versions()}
    before: dict[str, Any] = read_manifest(folder) if (folder / "manifest.json").exists() else {"status": "none"}
    fresh: dict[str, Any] = {"format": 1, "status": "running", **wanted, "seconds": {}, "sessions": []}
    goes_on = before["status"] in ("running", "interrupted") and {**before, **wanted} == before
    manifest = before | {"status": "running"} if goes_on else fresh
    if goes_on:
        print(f"Going on with what was interrupted; a folder other than {folder} begins again.", flush=True)
    else:
        for name in ALL:
            _shelf(folder, name).clear()
    manifest["sessions"].append(new_session(where.name))
    write_manifest(folder, manifest)
    return manifest


def _shelf(folder: Path, name: str) -> Shelf:
    return Shelf(folder / "data" / name)


def _attempt(done: Reproduction, name: str, lab: Lab, seconds: dict[str, float]) -> None:
    """Run one experiment; its failure does not stop the others, unless the workers are gone."""
    start = time.perf_counter()
    try:
        found = load(name).run(lab)
        told = {verdict.claim.key for verdict in done.verdicts}
        if twice := [verdict.claim.key for verdict in found.verdicts if verdict.claim.key in told]:
            raise ValueError(f"claim {twice[0]} was judged before; give it another key")
        render(TITLE, found.sections, found.verdicts, {})  # a page that cannot be made must not stop the others'
        done.findings[name] = found
    except WorkerError:  # nothing else would run either, and the same command goes on
        raise
    except Unfinished as error:
        done.failures[name] = f"not finished: {error}; armlet-lab paper with the same settings goes on"
    except Exception as error:
        done.failures[name] = f"{type(error).__name__}: {error}"
    seconds[name] = round(seconds.get(name, 0.0) + time.perf_counter() - start, 1)


def write_report(done: Reproduction, folder: Path, manifest: dict[str, Any], title: str = TITLE) -> Path:
    """Write the report, the verdicts, the figures and the manifest; give the path of the report."""
    page = render(title, done.sections, done.verdicts, {**manifest, "failed": done.failures or "nothing"})
    files = {
        "report.html": page.encode(),
        "verdicts.json": f"{to_json(done.verdicts)}\n".encode(),
        "verdicts.md": f"{to_markdown(done.verdicts)}\n".encode(),
    }
    for part in ("figures", "tables"):
        (folder / part).mkdir(exist_ok=True)
    for name, data in (*files.items(), *_figures(done.sections), *_tables(done.sections)):
        write_atomically(folder / name, [data])
    write_manifest(folder, manifest)
    return folder / "report.html"


def _figures(sections: Iterable[Section]) -> Iterator[tuple[str, bytes]]:
    for section in sections:
        for index, picture in enumerate(section.pictures):
            name = section.claim if index == 0 else f"{section.claim}-{index + 1}"
            yield f"figures/{name}.svg", f"{picture.svg}\n".encode()
            yield f"figures/{name}.png", picture.png


def _tables(sections: Iterable[Section]) -> Iterator[tuple[str, bytes]]:
    for section in sections:
        if section.tables:
            parts = [*section.notes, *(f"{table.caption}:\n\n{table.markdown()}" for table in section.tables)]
            yield f"tables/{section.claim}.md", ("\n\n".join(parts) + "\n").encode()


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """Write what the folder says of itself."""
    text = json.dumps(manifest, indent=1, allow_nan=False)
    write_atomically(folder / "manifest.json", [text.encode(), b"\n"])


def _tell(done: Reproduction, report: Path) -> None:
    print(to_text(done.verdicts))
    for name, failure in done.failures.items():
        print(f"{name} failed: {failure}")
    print(f"Report: {report}")


def render(title: str, sections: Sequence[Section], verdicts: Sequence[Verdict], manifest: Mapping[str, object]) -> str:
    """Return the page: all verdicts in a table, then a section for each claim, then how it was made.

    Parameters
    ----------
    title
        Of the page.
    sections
        One for each verdict, in the order of the page.
    verdicts
        What was found.
    manifest
        How it was found: seed, versions, settings, machine, duration; any values that JSON can hold.

    Examples
    --------
    >>> from armlet.types import Estimate
    >>> from armlet_lab.runner.experiment import Claim, Criterion
    >>> claim = Claim(key="fig-a", where="Figure (a)", says="Regret grows as log t.", reading="At p = 600.")
    >>> ratio = Statistic("doubling ratio", Estimate(1.0, 0.9, 1.1), Criterion("within", 0.8, 1.3))
    >>> verdict = Verdict(claim=claim, statistics=(ratio,))
    >>> page = render("The paper", [Section(claim="fig-a", heading="Figure (a)")], [verdict], {"seed": 7})
    >>> '<a href="#claim-fig-a">' in page and "✓" in page
    True
    """
    found = _match(sections, verdicts)
    ordered = [found[section.claim] for section in sections]
    check_pictures([picture for section in sections for picture in section.pictures])
    told = [_section(section, verdict) for section, verdict in zip(sections, ordered, strict=True)]
    return document(title, f"{count(verdicts)}.", [_overview(sections, ordered), *told], manifest)


def _match(sections: Sequence[Section], verdicts: Sequence[Verdict]) -> dict[str, Verdict]:
    """Find every section's verdict, and refuse a page that would leave one out or tell one twice."""
    told, judged = (
        Counter(section.claim for section in sections),
        Counter(verdict.claim.key for verdict in verdicts),
    )
    if told != judged or max(told.values(), default=1) > 1:
        raise ValueError(
            f"sections are {sorted(told.elements())} but verdicts {sorted(judged.elements())}; give one each"
        )
    return {verdict.claim.key: verdict for verdict in verdicts}


def _overview(sections: Sequence[Section], verdicts: Sequence[Verdict]) -> str:
    rows = [
        f'<tr><th scope="row"><a href="#claim-{verdict.claim.key}">{escape(section.heading)}</a>'
        f"<small>{escape(verdict.claim.says)}</small></th><td>{_badge(verdict.outcome)}</td></tr>"
        for section, verdict in zip(sections, verdicts, strict=True)
    ]
    return (
        "<table><caption>Every claim and its verdict</caption><thead>"
        '<tr><th scope="col">Claim</th><th scope="col">Verdict</th></tr></thead>'
        f"<tbody>\n{lines(rows)}\n</tbody></table>"
    )


def _section(section: Section, verdict: Verdict) -> str:
    claim = verdict.claim
    return lines(
        [
            f'<section id="claim-{claim.key}" aria-labelledby="heading-{claim.key}">',
            f'<h2 id="heading-{claim.key}">{escape(section.heading)}</h2><p class="where">{escape(claim.where)}</p>',
            f"<dl><dt>{escape(claim.source)} says</dt><dd>{escape(claim.says)}</dd>",
            f"<dt>Our reading</dt><dd>{escape(claim.reading)}</dd></dl>",
            *(f"<p>{escape(note)}</p>" for note in section.notes),
            *(figure(picture) for picture in section.pictures),
            *map(html_table, section.tables),
            _statistics(verdict.statistics),
            f'<div class="outcome {CLASSES[verdict.outcome]}">{_badge(verdict.outcome)}',
            f"<p>{escape(verdict.reason)}</p></div>",
            "</section>",
        ]
    )


def _statistics(statistics: Iterable[Statistic]) -> str:
    # on a narrow screen the cells stack; the roles keep it a table for those who hear it
    rows = [
        f'<tr role="row"><th scope="row" role="rowheader">{escape(each.name)}<small>{escape(each.role)}</small></th>'
        f'<td role="cell" class="number" data-name="measured">{escape(show(each.estimate))}</td>'
        f'<td role="cell" data-name="passes if">{escape(each.passes_if)}</td>'
        f'<td role="cell" class="{MARKS[each.finding]}"><strong>{escape(each.finding)}</strong></td></tr>'
        for each in statistics
    ]
    names = "".join(f'<th scope="col">{name}</th>' for name in ("Statistic", "Measured", "Passes if", "Result"))
    return (
        '<table class="stack" role="table"><caption>What was measured, with 95 % intervals</caption>'
        f"<thead><tr>{names}</tr></thead><tbody>\n{lines(rows)}\n</tbody></table>"
    )


def _badge(outcome: Outcome) -> str:
    sign = f'<span class="sign" aria-hidden="true">{SIGNS[outcome]}</span>'
    return f'<span class="verdict {CLASSES[outcome]}">{sign}{escape(outcome)}</span>'


def to_text(verdicts: Sequence[Verdict], width: int = 100) -> str:
    """Lay the verdicts out for a terminal: a line each, what it rests on below it, and a count at the end.

    Examples
    --------
    >>> from armlet.types import Estimate
    >>> from armlet_lab.runner.experiment import Claim, Criterion
    >>> claim = Claim(key="fig-a", where="Figure (a)", says="Regret grows as log t.", reading="At p = 600.")
    >>> ratio = Statistic("doubling ratio", Estimate(1.9, 1.7, 2.1), Criterion("within", 0.8, 1.3))
    >>> print(to_text([Verdict(claim=claim, statistics=(ratio,))], width=60))
    fig-a  Figure (a)  does not hold
        Regret grows as log t.
        As written, 0 of 1 check passed: doubling ratio is 1.90
        [1.70 to 2.10], but passes if the interval lies within
        0.8 to 1.3.
    <BLANKLINE>
    Claims: 1; does not hold: 1
    """
    keys = max((len(verdict.claim.key) for verdict in verdicts), default=0)
    places = max((len(verdict.claim.where) for verdict in verdicts), default=0)
    lines = []
    for verdict in verdicts:
        lines.append(f"{verdict.claim.key:{keys}}  {verdict.claim.where:{places}}  {verdict.outcome}")
        for text in (verdict.claim.says, verdict.reason):
            lines += textwrap.wrap(text, width, initial_indent=" " * 4, subsequent_indent=" " * 4)
    return "\n".join([*lines, "", count(verdicts)])


def count(verdicts: Sequence[Verdict]) -> str:
    """Return how many claims had each outcome.

    Examples
    --------
    >>> count([])
    'Claims: 0'
    """
    found = Counter(verdict.outcome for verdict in verdicts)
    parts = [f"{outcome}: {found[outcome]}" for outcome in Outcome if found[outcome]]
    return "; ".join([f"Claims: {len(verdicts)}", *parts])


def to_markdown(verdicts: Sequence[Verdict]) -> str:
    """Return the verdicts as a table in Markdown.

    Examples
    --------
    >>> print(to_markdown([]))
    | claim | where | what it says | verdict | reason |
    |---|---|---|---|---|
    """
    rows = [(v.claim.key, v.claim.where, v.claim.says, v.outcome, v.reason) for v in verdicts]
    head = ["| claim | where | what it says | verdict | reason |", "|---|---|---|---|---|"]
    return "\n".join([*head, *(f"| {' | '.join(map(_cell, row))} |" for row in rows)])


def to_json(verdicts: Sequence[Verdict]) -> str:
    """Return the verdicts and every number behind them as JSON, the same bytes for the same verdicts.

    Examples
    --------
    >>> to_json([])
    '[]'
    """
    return json.dumps([_record(verdict) for verdict in verdicts], indent=1, sort_keys=True, allow_nan=False)


def _record(verdict: Verdict) -> dict[str, object]:
    numbers = [_numbers(statistic) for statistic in verdict.statistics]
    return {**asdict(verdict.claim), "outcome": verdict.outcome, "reason": verdict.reason, "statistics": numbers}


def _numbers(statistic: Statistic) -> dict[str, object]:
    return {
        "name": statistic.name,
        "role": statistic.role,
        "estimate": None if statistic.estimate is None else asdict(statistic.estimate),
        "passes_if": statistic.passes_if,
        "finding": statistic.finding,
        "passed": statistic.passed,
    }


def _cell(text: str) -> str:
    """Keep a text inside its cell, and its signs from being markup."""
    return re.sub(r"([\\`*_|<>\[\]#])", r"\\\1", " ".join(text.split()))
