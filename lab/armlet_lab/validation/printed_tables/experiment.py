"""Printed tables of others, rebuilt: OBP's digits, Dudik, Langford and Li's classifiers, Hadad and others' designs.

Each names in its own module what is printed and what is not. The tables of KEEL must have been fetched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from armlet.datasets import load
from armlet.parallel.seeds import Seeds
from armlet.simulation.lab import Arrays, Lab, Scale, as_floats
from armlet_lab.runner.experiment import Experiment, Findings
from armlet_lab.validation.printed_tables import adaptive, classifiers, digits
from armlet_lab.validation.printed_tables.report import Adaptive, Classified, Digits, judge


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How much to run."""

    splits: int = 4  # of digits
    tables: tuple[str, ...] = ("vehicle", "satimage")
    runs: int = 30  # of a table
    horizon: int = 500  # of an adaptive run
    repeats: int = 60


SCALES: dict[Scale, Settings] = {
    "quick": Settings(),
    "full": Settings(splits=40, tables=tuple(classifiers.TABLES), runs=200, horizon=2000, repeats=500),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One split of digits, one table, or one design."""

    seeds: Seeds
    part: Literal["digits", "classifiers", "adaptive"]
    name: str
    runs: int
    horizon: int = 0


def run(lab: Lab) -> Findings:
    """Run the experiment at the lab's scale."""
    return find(SCALES[lab.scale], lab)


def find(settings: Settings, lab: Lab) -> Findings:
    """Rebuild all tables, then compare."""
    s = settings
    splits = [Task(seeds=lab.seeds, part="digits", name=str(i), runs=1) for i in range(s.splits)]
    tables = [Task(seeds=lab.seeds, part="classifiers", name=name, runs=s.runs) for name in s.tables]
    how = {"runs": s.repeats, "horizon": s.horizon}
    designs = [Task(seeds=lab.seeds, part="adaptive", name=name, **how) for name in adaptive.MEANS]
    first = [as_floats(one["errors"]) for one in lab.map("digits", play, splits, "Printed tables: splits of digits")]
    second = lab.map("classifiers", play, tables, "Printed tables: UCI tables as bandits")
    third = lab.map("adaptive", play, designs, "Printed tables: adaptive designs")
    return judge(
        digits=Digits(np.array(first)),
        classified={task.name: Classified.of(one) for task, one in zip(tables, second, strict=True)},
        adaptive={task.name: Adaptive.of(one) for task, one in zip(designs, third, strict=True)},
        horizon=s.horizon,
        rng=lab.rng("intervals"),
    )


def play(task: Task) -> Arrays:
    """Play one task."""
    rng = task.seeds.rng("logs", task.part, task.name)
    match task.part:
        case "digits":
            found, covers = digits.relative_errors(rng)
            return {"errors": np.array([*found.values(), covers])}
        case "classifiers":
            table = load("keel", classifiers.TABLES[task.name])
            errors, covered, truth = classifiers.errors(table, rng, task.runs)
            about = np.array([len(table), table.n_arms, truth])
            return {"errors": errors, "covered": covered, "about": about}
        case "adaptive":
            means = adaptive.MEANS[task.name]
            theirs = adaptive.weigh(adaptive.thompson(means, task.horizon, task.runs, rng), means)
            ours = adaptive.by_algorithm_1(means, task.horizon, task.runs, rng)
            return {
                "errors": np.concatenate([theirs[0], ours[0][None]]),
                "covered": np.concatenate([theirs[1], ours[1][None]]).astype(np.float64),
            }


EXPERIMENT: Final = Experiment("printed-tables", "Off-policy evaluation: tables of others, rebuilt", run)
