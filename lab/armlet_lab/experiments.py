"""The experiments of the paper: settings, a run, and what it showed; one file or folder each."""

from __future__ import annotations

from typing import Final

EXPERIMENTS: Final = {
    "fig-a": "armlet_lab.paper.figure_a",
    "fig-b": "armlet_lab.paper.figure_b",
    "section-4-1": "armlet_lab.paper.section_4_1",
    "choosing-p": "armlet_lab.paper.choosing_p",
    "advisor": "armlet_lab.paper.advisor",
    "section-7": "armlet_lab.paper.section_7",
    "contextual-ucb": "armlet_lab.paper.algorithm_2",
    "open-problem": "armlet_lab.paper.open_problem.experiment",
    "theorem-1": "armlet_lab.paper.theorem_1",
    "theorem-2": "armlet_lab.paper.theorem_2",
    "lemma-2": "armlet_lab.paper.lemma_2",
    "merge": "armlet_lab.paper.merge",
    "leaderboard": "armlet_lab.contests.leaderboard",
}
"""Every experiment by name, in the order of the report. Modules, not objects: importing all of them takes long."""

PRODUCT_EXPERIMENTS: Final = {
    "units": "armlet_lab.contests.units",
    "evidence": "armlet_lab.contests.evidence",
    "tournament": "armlet_lab.contests.tournament",
    "life": "armlet_lab.contests.life",
    "dimensions": "armlet_lab.contests.dimensions",
    "coverage": "armlet_lab.validation.coverage.experiment",
    "printed-tables": "armlet_lab.validation.printed_tables.experiment",
}
"""Experiments on what Armlet itself promises, not the paper: run only if asked for by name."""
