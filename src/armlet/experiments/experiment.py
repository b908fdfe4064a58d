"""What an experiment of the paper is: settings as data, a run, and an analysis that ends in verdicts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from armlet.experiments.report import Section
from armlet.experiments.verdicts import Verdict

Scale: TypeAlias = Literal["quick", "full"]

SEED = 20130923
"""The seed of every published figure, fixed before any of them was seen: the first day of ECML PKDD 2013."""


@dataclass(frozen=True, slots=True)
class Findings:
    """One section of the report for each verdict, in the same order."""

    verdicts: tuple[Verdict, ...]
    sections: tuple[Section, ...]


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment by name: `run(scale, seed, say)` simulates, analyses, and tells `say` what it is doing."""

    name: str
    title: str
    run: Callable[[Scale, int, Callable[[str], None]], Findings]
