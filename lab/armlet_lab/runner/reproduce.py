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
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from armlet.disk import write_atomically
from armlet.errors import choices, load_pyarrow
from armlet.parallel import Pool, PoolLike, Progress, WorkerError, opened, reporter
from armlet.report.plots import require_matplotlib
from armlet.simulation.lab import Archive, Lab, Scale, Shelf, Unfinished, new_session, read_manifest, versions
from armlet_lab.experiments import EXPERIMENTS, PRODUCT_EXPERIMENTS
from armlet_lab.runner.experiment import SEED, Experiment, Findings, Section, Verdict
from armlet_lab.runner.page import render
from armlet_lab.runner.verdicts import to_json, to_markdown, to_text

TITLE: Final = "A time and space efficient algorithm for contextual linear bandits: what holds"
KIND: Final = "paper"
ALL: Final = {**EXPERIMENTS, **PRODUCT_EXPERIMENTS}


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
        Given what is being done, returns a `Progress`.
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
            report = write_report(done, folder, manifest, title_of(chosen))
    _tell(done, report)
    return 1 if done.failures else 0


def rebuild(folder: str | os.PathLike[str]) -> int:
    """Analyse what a reproduction computed once more and write its report again; nothing is simulated."""
    manifest, done = read_manifest(folder), Reproduction()
    for name in manifest["names"]:
        shelf = _shelf(Path(folder), name)
        lab = Archive(seed=manifest["seed"], name=name, scale=manifest["scale"], shelf=shelf)
        _attempt(done, name, lab, {})
    _tell(done, write_report(done, Path(folder), manifest, title_of(manifest["names"])))
    return 1 if done.failures else 0


def title_of(names: Sequence[str]) -> str:
    """Return the title of a page: the paper's, unless nothing on it is of the paper.

    Examples
    --------
    >>> title_of(["life"])
    'Life: newcomers, silent arms, blocks, and contexts that come late'
    """
    return TITLE if any(name in EXPERIMENTS for name in names) else "; ".join(load(name).title for name in names)


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
        keys = {verdict.claim.key for verdict in done.verdicts}
        if twice := [verdict.claim.key for verdict in found.verdicts if verdict.claim.key in keys]:
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


def write_report(done: Reproduction, folder: Path, manifest: dict[str, Any], title: str) -> Path:
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
