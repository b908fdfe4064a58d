"""The experiments of the paper: settings, a run, and what it showed; one file or folder each."""

from __future__ import annotations

from typing import Final

EXPERIMENTS: Final = {
    "fig-a": "armlet.paper.figure_a",
    "fig-b": "armlet.paper.figure_b",
    "section-4-1": "armlet.paper.section_4_1",
    "choosing-p": "armlet.paper.section_4_2.choosing_p.experiment",
    "advisor": "armlet.paper.section_4_2.advisor.experiment",
    "section-7": "armlet.paper.section_7",
    "contextual-ucb": "armlet.paper.algorithm_2.experiment",
    "theorem-1": "armlet.paper.theorem_1",
    "theorem-2": "armlet.paper.theorem_2.experiment",
    "lemma-2": "armlet.paper.lemma_2",
    "merge": "armlet.paper.merge",
    "leaderboard": "armlet.paper.leaderboard.experiment",
}
"""Every experiment by name, in the order of the report. Modules, not objects: importing all of them takes long."""

BESIDES: Final = {
    "units": "armlet.paper.units.experiment",
    "evidence": "armlet.paper.evidence.experiment",
    "tournament": "armlet.paper.tournament.experiment",
    "coverage": "armlet.paper.coverage.experiment",
    "printed-tables": "armlet.paper.printed_tables.experiment",
}
"""Experiments on what Armlet itself promises, not the paper: run only if asked for by name."""
