"""Units: every policy as it was and as it is, on the same problems in different units.

The same problem is played in all units with the same contexts, noise and coins, so a policy whose units are free plays
the very same arms. The best fixed p is one for a family, chosen and judged on the same runs, in both forms alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from armlet.environments.families import FAMILIES
from armlet.parallel.seeds import Seeds
from armlet.simulation.lab import Arrays, Lab, Scale, as_floats
from armlet_lab.contests.units.contestants import FORMS, contestants
from armlet_lab.contests.units.problems import LENGTHS, LEVELS, TIES, draw_problem
from armlet_lab.contests.units.report import Played, judge
from armlet_lab.runner import together
from armlet_lab.runner.experiment import Experiment, Findings


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How much to run."""

    problems: int = 3
    horizon: int = 2_000
    levels: tuple[float, ...] = (0.0, 300.0, 1e6)
    lengths: tuple[float, ...] = (1.0, 0.02)
    ties: tuple[str, ...] = tuple(TIES)
    families: tuple[str, ...] = ("Figure (a)", "gaussian d = 10", "clicks 3 % or 4 %")
    ratio: float = 4.0  # between two values of p


SCALES: dict[Scale, Settings] = {
    "quick": Settings(),
    "full": Settings(
        problems=24,
        horizon=20_000,
        levels=(0.0, 30.0, 300.0, 1000.0, 1e6),
        lengths=(1.0, 0.5, 0.2, 0.1, 0.05, 0.02),
        families=tuple(FAMILIES),
        ratio=2.0,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One problem in one kind of units, played by all."""

    seeds: Seeds
    family: str
    problem: int
    level: float = 0.0
    length: float = 1.0
    horizon: int
    ratio: float


def run(lab: Lab) -> Findings:
    """Run the experiment at the lab's scale."""
    return find(SCALES[lab.scale], lab)


def find(settings: Settings, lab: Lab) -> Findings:
    """Play, then compare."""
    s, T = settings, settings.horizon
    levels = [_tasks(s, lab, LEVELS, T, level=level) for level in s.levels]
    lengths = [_tasks(s, lab, LENGTHS, T, length=length) for length in s.lengths]
    families = {family: _tasks(s, lab, family, T // 2) for family in s.families}
    ties = {family: _tasks(s, lab, family, T) for family in s.ties}
    groups = [*levels, *lengths, *families.values(), *ties.values()]
    tasks = [task for group in groups for task in group]
    found = lab.map("play", play, tasks, f"Units: {s.problems} problems in {len(groups)} families and units")
    played = [_played(tasks[i : i + s.problems], found[i : i + s.problems]) for i in range(0, len(tasks), s.problems)]
    first, second = len(levels), len(levels) + len(lengths)
    third = second + len(families)
    return judge(
        levels=dict(zip(s.levels, played[:first], strict=True)),
        lengths=dict(zip(s.lengths, played[first:second], strict=True)),
        families=dict(zip(families, played[second:third], strict=True)),
        ties=dict(zip(ties, played[third:], strict=True)),
        rng=lab.rng("intervals"),
    )


def _tasks(s: Settings, lab: Lab, family: str, T: int, *, level: float = 0.0, length: float = 1.0) -> list[Task]:
    return [
        Task(seeds=lab.seeds, family=family, problem=i, level=level, length=length, horizon=T, ratio=s.ratio)
        for i in range(s.problems)
    ]


def play(task: Task) -> Arrays:
    """Give the regret of every contestant by form, and what random play loses."""
    environment = draw_problem(task.family, task.seeds, task.problem, level=task.level, length=task.length)
    forms = {form: contestants(form, environment.n_arms, task.horizon, task.ratio).values() for form in FORMS}
    entries = [together.Entry.of(policy, environment) for policies in forms.values() for policy in policies]
    found = together.play(environment, entries, task.horizon, task.seeds, task.family, task.problem)
    cut = len(forms["as given"])
    return {"as given": found.regret[:cut], "free": found.regret[cut:], "random": np.array([found.random])}


def _played(tasks: Sequence[Task], found: Sequence[Arrays]) -> Played:
    """Put the problems of a family in one kind of units together."""
    first = tasks[0]
    n_arms = draw_problem(first.family, first.seeds, 0, level=0.0, length=1.0).n_arms
    regret = {}
    for form in FORMS:
        columns = np.array([as_floats(one[form]) for one in found])  # (problems, contestants)
        names = contestants(form, n_arms, first.horizon, first.ratio)
        regret[form] = {name: columns[:, i] for i, name in enumerate(names)}
    random = np.array([float(as_floats(one["random"])[0]) for one in found])
    return Played(regret=regret, random=random, horizon=first.horizon)


EXPERIMENT: Final = Experiment("units", "Units: levels, lengths, near-ties, and the seven families old and new", run)
