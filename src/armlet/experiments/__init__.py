"""Experiments: settings, a run, and what it showed; one file each."""

from __future__ import annotations

from typing import Final

EXPERIMENTS: Final = {
    "fig-a": "armlet.experiments.figure_a",
    "fig-b": "armlet.experiments.figure_b",
    "section-4-1": "armlet.experiments.section41",
    "choosing-p": "armlet.experiments.choosing_p",
    "advisor": "armlet.experiments.advisor",
    "section-7": "armlet.experiments.section7",
    "contextual-ucb": "armlet.experiments.contextual_ucb",
    "theorem-1": "armlet.experiments.theorem1",
    "theorem-2": "armlet.experiments.theorem2",
    "lemma-2": "armlet.experiments.lemma2",
    "merge": "armlet.experiments.merge",
    "leaderboard": "armlet.experiments.leaderboard",
}
"""Every experiment by name, in the order of the report. Modules, not objects: importing all of them takes long."""
