"""What an experiment of the paper is: settings as data, tasks for a lab, and an analysis that ends in verdicts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from armlet.simulation.lab import Lab
from armlet_lab.runner.page import Section
from armlet_lab.runner.verdicts import Verdict

SEED = 12073024
"""The seed of every published figure: the paper's number on arXiv. It was fixed, with every criterion, before anything
was run with it; the experiments were written and tried on other seeds."""


@dataclass(frozen=True, slots=True)
class Findings:
    """One section of the report for each verdict, in the same order."""

    verdicts: tuple[Verdict, ...]
    sections: tuple[Section, ...]


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment by name: `run` simulates in a lab, at its scale and seed, and analyses what was found."""

    name: str
    title: str
    run: Callable[[Lab], Findings]
