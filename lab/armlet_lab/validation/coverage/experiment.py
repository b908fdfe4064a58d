"""How often intervals of evaluations cover: eight worlds, all looks, own values, coefficients, and false accusations.

Every log is that of a bandit that decides and learns step by step. A task plays some logs of one world, one after the
other; all that it finds follows from the seed, the world and the number of the log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from armlet.evaluation.checks import Word
from armlet.evaluation.monitor import Checks
from armlet.evaluation.rows import Rows
from armlet.parallel.seeds import Seeds
from armlet.policies import Algorithm1, ContextualEpsilonGreedy, Uniform
from armlet.simulation import streams
from armlet.simulation.lab import Lab, Scale
from armlet.simulation.shelf import Arrays, as_floats
from armlet.types import Float64
from armlet_lab.runner.experiment import Experiment, Findings
from armlet_lab.validation.coverage import coefficients
from armlet_lab.validation.coverage.logs import Held, play
from armlet_lab.validation.coverage.report import SPOILT, judge
from armlet_lab.validation.coverage.shares import Columns
from armlet_lab.validation.coverage.values import OWN_ROWS, own_values, values
from armlet_lab.validation.coverage.worlds import KINDS, draw_steps, draw_world

A_TASK: Final = 25  # logs
WRONG: Final = 1.25  # times too much, or too little
TESTED: Final = 3_000  # rows of a log whose propensities are tested
TRUSTED: Final = {
    "Algorithm 1": Algorithm1(p=60, warmup="uniform"),
    "evidence": ContextualEpsilonGreedy(p=60),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How many logs of each kind, and how long."""

    worlds: tuple[str, ...] = tuple(KINDS)
    logs: int = 25
    own: int = 25
    runs: int = 25  # of coefficients
    tested: int = 25
    laws: tuple[str, ...] = ("p/t", "evidence", "auto")  # of exploring, for coefficients
    horizon: int = 1_000


SCALES: Final[dict[Scale, Settings]] = {
    "quick": Settings(worlds=("p/t", "3 % clicks", "auto", "eligible sets")),
    "full": Settings(logs=600, own=600, runs=150, tested=200, horizon=5_000),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Some logs of one kind."""

    seeds: Seeds
    kind: str
    first: int
    logs: int
    horizon: int

    @property
    def numbers(self) -> range:
        """Those of its logs."""
        return range(self.first, self.first + self.logs)


def run(lab: Lab) -> Findings:
    """Run the experiment at the lab's scale."""
    return find(SCALES[lab.scale], lab)


def find(settings: Settings, lab: Lab) -> Findings:
    """Play, then judge."""
    s = settings
    worlds = _map(lab, "worlds", play_worlds, s.worlds, s.logs, s.horizon)
    own = _map(lab, "own", play_own, ("noise", "signal"), s.own, OWN_ROWS)
    kinds = [f"{world}, {law}" for world in coefficients.WORLDS for law in s.laws]
    slopes = _map(lab, "coefficients", play_coefficients, kinds, s.runs, coefficients.HORIZON)
    tested = _map(lab, "propensities", play_tested, (*TRUSTED, SPOILT), s.tested, TESTED)
    return judge(
        worlds=worlds,
        own=own,
        coefficients=slopes,
        propensities=tested,
        horizon=s.horizon,
        rng=lab.rng("intervals"),
    )


def _map(
    lab: Lab, stage: str, function: Callable[[Task], Arrays], kinds: Sequence[str], logs: int, horizon: int
) -> dict[str, Columns]:
    """Run one stage in small tasks; give for each kind the columns over logs by name."""
    starts = range(0, logs, A_TASK)
    tasks = [
        Task(seeds=lab.seeds, kind=kind, first=first, logs=min(A_TASK, logs - first), horizon=horizon)
        for kind in kinds
        for first in starts
    ]
    found = lab.map(stage, function, tasks, f"Coverage: {stage}, {logs:,} logs of {len(kinds)} kinds")
    whole: dict[str, Columns] = {}
    for i, kind in enumerate(kinds):
        mine = found[i * len(starts) : (i + 1) * len(starts)]
        whole[kind] = {name: np.concatenate([as_floats(part[name]) for part in mine]) for name in mine[0]}
    return whole


def _columns(rows: Sequence[dict[str, float]]) -> Arrays:
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def play_worlds(task: Task) -> Arrays:
    """Value another policy by every log of one world, in all ways that are compared."""
    world = draw_world(task.kind, task.seeds)
    world = replace(world, kind=replace(world.kind, horizon=task.horizon))
    truth = world.value()
    rows = []
    for log in task.numbers:
        points, rewards, eligible = draw_steps(world, task.seeds.rng("steps", task.kind, log))
        seed = streams.of_run(task.seeds, task.kind, log).coins
        decided, _ = play(world.kind.policy, world.contexts[points], rewards, seed, eligible)
        bounds = (0.0, 1.0) if world.kind.paid == "0 or 1" else None
        rows.append({"truth": truth, **values(Held(decided, range(world.kind.n_arms), bounds), world.target, truth)})
    return _columns(rows)


def play_own(task: Task) -> Arrays:
    """Value the model of every log by the very rows that it has learned from."""
    return _columns(
        [
            own_values(task.kind, task.seeds.rng("own", task.kind, log), task.seeds.seed("own coins", task.kind, log))
            for log in task.numbers
        ]
    )


def play_coefficients(task: Task) -> Arrays:
    """Say which coefficients every run's intervals cover."""
    name, _, law = task.kind.partition(", ")
    (world,) = (each for each in coefficients.WORLDS if each == name)
    rows = []
    for log in task.numbers:
        found = coefficients.run(world, coefficients.POLICIES[law], task.seeds.seed("slopes", task.kind, log))
        rows.append(
            {
                "coefficients": float(found.coefficients.mean()),
                "contrasts": float(found.contrasts.all()),
                "anytime": float(found.anytime.all()),
            }
        )
    return _columns(rows)


def play_tested(task: Task) -> Arrays:
    """Say of every log whether its propensities are accused: right ones, or wrong ones of a uniform log."""
    accused = []
    for log in task.numbers:
        rng = task.seeds.rng("tested", task.kind, log)
        X = rng.standard_normal((task.horizon, 3))
        rewards = (rng.random((task.horizon, 3)) < 0.5).astype(np.float64)
        seed = task.seeds.seed("tested coins", task.kind, log)
        rows, _ = play(TRUSTED.get(task.kind, Uniform()), X, rewards, seed)
        accused.append(float(is_accused(rows if task.kind in TRUSTED else _spoilt(rows, log))))
    return {"accused": np.array(accused)}


def is_accused(rows: Rows) -> bool:
    """Say whether the check of propensities refuses a log."""
    checks = Checks(range(rows.eligible.shape[1]), rows.X.shape[1], [])
    checks.add(rows, {})
    return any(check.name == "propensities" and check.word is Word.REFUSED for check in checks.found())


def _spoilt(rows: Rows, log: int) -> Rows:
    """Give the rows of a uniform log with wrong propensities of one arm, too high or too low in turn."""
    wrong: Float64 = np.where(rows.arm == 0, (WRONG if log % 2 else 2.0 - WRONG) / 3, 1 / 3)
    return replace(rows, propensity=wrong, given_exploring=wrong, smallest=np.full(len(rows), wrong.min()))


EXPERIMENT: Final = Experiment("coverage", "Coverage: whether intervals of evaluations hold what they say", run)
