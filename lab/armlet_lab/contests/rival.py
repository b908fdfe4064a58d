"""Another package on classification tables: its settings, and a worker run by the Python of its own environment."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from armlet.datasets import DatasetTable
from armlet.errors import ArmletError
from armlet.types import Float64, Int64
from armlet_lab.runner.venvs import last_line

Features: TypeAlias = Literal["raw", "standardised"]
"""As they are, or with the mean and standard deviation of the whole table, which no learner could know."""


class RivalError(ArmletError):
    """A rival failed, or answered something else than was asked."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One way to run a rival."""

    label: str
    options: str
    features: Features = "raw"

    def contexts(self, table: DatasetTable) -> Float64:
        """Return the numbers of a table as this setting is given them."""
        return table.standardised() if self.features == "standardised" else table.X


def ask(who: str, python: Path, worker: str, settings: Sequence[Sequence[Any]]) -> list[list[int]]:
    """Run a worker: settings go in as JSON, and the arms that each chose come out, a line for each."""
    command = [str(python), "-P", worker]  # without the worker's folder on the path: a module of ours hides no package
    done = subprocess.run(command, input=json.dumps({"settings": settings}), capture_output=True, text=True)
    answers: list[list[int]] = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode != 0 or len(answers) != len(settings):
        asked = settings[min(len(answers), len(settings) - 1)][1]
        raise RivalError(f"{who} failed with {asked}: {last_line(done.stderr)}")
    return answers


def wrong(who: str, table: DatasetTable, labels: Int64, answer: Sequence[int]) -> Float64:
    """Return 1 for each wrong choice and 0 for each right one; refuse an answer that leaves rows out."""
    if len(answer) != len(labels):
        raise RivalError(f"{who} chose {len(answer)} times for {len(labels)} rows of {table.name}")
    return np.asarray(np.array(answer) != labels, np.float64)
