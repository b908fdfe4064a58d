"""The paper's evaluation in one go: run its experiments, judge its claims, write the report.

An experiment that fails is named and the others go on; an interrupted reproduction keeps what was finished.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import platform
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from armlet.core.version import __version__
from armlet.experiments import EXPERIMENTS, verdicts
from armlet.experiments.experiment import SEED, Experiment, Findings, Scale
from armlet.experiments.report import Section, render
from armlet.experiments.verdicts import Verdict

TITLE: Final = "A time and space efficient algorithm for contextual linear bandits: what holds"


@dataclass(slots=True)
class Reproduction:
    """What was found so far, experiment by experiment."""

    findings: dict[str, Findings] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

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
    ValueError: there is no experiment 'lemma-3'; choose from fig-a, ...
    """
    if name not in EXPERIMENTS:
        raise ValueError(f"there is no experiment {name!r}; choose from {', '.join(EXPERIMENTS)}")
    experiment: Experiment = importlib.import_module(EXPERIMENTS[name]).EXPERIMENT
    return experiment


def reproduce(
    names: Iterable[str] | None = None,
    scale: Scale = "quick",
    seed: int = SEED,
    out: str | os.PathLike[str] = "results/paper",
    say: Callable[[str], None] = print,
) -> int:
    """Run experiments in order, write the report, print the verdicts; give the exit code, 1 if one failed.

    Parameters
    ----------
    names
        Keys of `EXPERIMENTS`; all of them if left out.
    scale
        "quick", about two minutes in all, or "full".
    seed
        Of everything that is drawn.
    out
        The folder for report.html, verdicts.json, verdicts.md and the figures.
    say
        Is told what goes on; the verdicts themselves are printed.
    """
    chosen = list(dict.fromkeys(EXPERIMENTS if names is None else names))
    _check(chosen)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    done = Reproduction()
    try:
        for name in chosen:
            _attempt(done, name, scale, seed, say)
    finally:  # Ctrl-C too leaves a report of what was finished
        report = _write(done, folder, scale, seed)
    print(verdicts.table(done.verdicts))
    for name, failure in done.failures.items():
        print(f"{name} failed: {failure}")
    print(f"Report: {report}")
    return 1 if done.failures else 0


def _check(names: Sequence[str]) -> None:
    if unknown := [name for name in names if name not in EXPERIMENTS]:
        raise ValueError(f"there is no experiment {unknown[0]!r}; choose from {', '.join(EXPERIMENTS)}")
    if not names:
        raise ValueError(f"names is empty; choose from {', '.join(EXPERIMENTS)}")
    if importlib.util.find_spec("matplotlib") is None:  # better now than after the computation
        raise ModuleNotFoundError("plots need matplotlib; pip install 'armlet[bench]'", name="matplotlib")


def _attempt(done: Reproduction, name: str, scale: Scale, seed: int, say: Callable[[str], None]) -> None:
    """Run one experiment; whatever goes wrong in it is its own affair."""
    start = time.perf_counter()
    try:
        found = load(name).run(scale, seed, say)
        told = {verdict.claim.key for verdict in done.verdicts}
        if twice := [verdict.claim.key for verdict in found.verdicts if verdict.claim.key in told]:
            raise ValueError(f"claim {twice[0]} was judged before; give it another key")
        render(TITLE, found.sections, found.verdicts, {})  # a page that cannot be made must not stop the others'
        done.findings[name] = found
    except Exception as error:
        done.failures[name] = f"{type(error).__name__}: {error}"
        say(f"{name} failed: {done.failures[name]}")
    done.seconds[name] = round(time.perf_counter() - start, 1)


def _write(done: Reproduction, folder: Path, scale: Scale, seed: int) -> Path:
    """Write the report, the verdicts and the figures; give the path of the report."""
    report = folder / "report.html"
    page = render(TITLE, done.sections, done.verdicts, _manifest(done, scale, seed))
    report.write_text(page, encoding="utf-8")
    (folder / "verdicts.json").write_text(verdicts.to_json(done.verdicts) + "\n", encoding="utf-8")
    (folder / "verdicts.md").write_text(verdicts.to_markdown(done.verdicts) + "\n", encoding="utf-8")
    for section in done.sections:
        for index, picture in enumerate(section.pictures):
            name = section.claim if index == 0 else f"{section.claim}-{index + 1}"
            (folder / f"{name}.svg").write_text(picture.svg + "\n", encoding="utf-8")
    return report


def _manifest(done: Reproduction, scale: Scale, seed: int) -> dict[str, object]:
    return {
        "seed": seed,
        "scale": scale,
        "armlet": __version__,
        "Python": platform.python_version(),
        "numpy": np.__version__,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        "seconds": done.seconds,
        "failed": done.failures or "nothing",
    }
