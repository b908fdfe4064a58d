"""Section 4.2: finding p while running, read to the letter and with a forecast, against the best p in hindsight.

Every problem of every family is played with a grid of fixed p, with AutoEpsilonGreedy, and, on Figure (a), with the running
minimum of the section, all on the same contexts and noise; fixed p and "auto" in free units, by evidence. The best p in
hindsight is that of each problem, or one for the family, whichever does better (`hindsight.best`): nobody could know
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from armlet.environments.families import FAMILIES, draw_problem
from armlet.parallel.seeds import Seeds
from armlet.policies import AutoEpsilonGreedy, ContextualEpsilonGreedy
from armlet.simulation import streams
from armlet.simulation.lab import Lab, Scale
from armlet.simulation.player import Block, InPython, draw
from armlet.simulation.shelf import Arrays, as_floats
from armlet.types import Float64, Int64, Policy
from armlet_lab.literature.running_minimum import RunningMinimumEpsilonGreedy
from armlet_lab.paper.section_4_2.choosing_p.report import Family, Literal, judge
from armlet_lab.runner import hindsight, together
from armlet_lab.runner.experiment import Experiment, Findings

FIRST: Final = "Figure (a)"
TOLD: Final = ("auto", "longer", "shorter", "untold")  # T, 10 T, T / 10, nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Problems of each family, every p of a grid beside p = auto; those for Section 4.2 to the letter are fewer."""

    problems: int = 10
    runs: int = 6
    horizons: tuple[int, ...] = (10_000,)
    ratio: float = 2.0  # between two values of p
    literal_horizon: int = 10_000
    literal_problems: int = 3


SCALES: dict[Scale, Settings] = {
    "quick": Settings(),
    "full": Settings(problems=20, runs=8, horizons=(10_000, 100_000), ratio=2**0.5, literal_problems=12),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """All runs of one problem."""

    seeds: Seeds
    family: str
    problem: int
    runs: int
    horizon: int
    ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Slow:
    """One run of the running minimum, which the kernel does not know, beside a grid and "auto"."""

    seeds: Seeds
    problem: int
    horizon: int
    ratio: float


def run(lab: Lab) -> Findings:
    """Run the experiment at the lab's scale."""
    return find(SCALES[lab.scale], lab)


def find(settings: Settings, lab: Lab) -> Findings:
    """Play, then compare."""
    s, both = settings, [(family, T) for T in settings.horizons for family in FAMILIES]
    tasks = [
        Task(seeds=lab.seeds, family=family, problem=i, runs=s.runs, horizon=T, ratio=s.ratio)
        for family, T in both
        for i in range(s.problems)
    ]
    label = f"p = auto: {s.problems} problems of {len(FAMILIES)} families, {len(s.horizons)} horizons"
    found = lab.map("auto", play, tasks, label)
    slow = [
        Slow(seeds=lab.seeds, problem=i, horizon=s.literal_horizon, ratio=s.ratio) for i in range(s.literal_problems)
    ]
    literal = lab.map("literal", play_literal, slow, f"Section 4.2 to the letter: {len(slow)} runs of Figure (a)")
    families = [_family(family, T, found[i * s.problems : (i + 1) * s.problems]) for i, (family, T) in enumerate(both)]
    return judge(families, _literal(s.literal_horizon, literal), lab.rng("auto intervals"))


def play(task: Task) -> Arrays:
    """Give regret of every p of the grid, (runs, grid), and of "auto", (runs,), by what it was told; and its p."""
    world, T = draw_problem(task.family, task.seeds, task.problem), task.horizon
    grid = hindsight.grid_of_p(world.n_arms, T, task.ratio)
    told = [AutoEpsilonGreedy(horizon=horizon) for horizon in (T, 10 * T, T // 10, None)]
    policies: list[Policy] = [*(ContextualEpsilonGreedy(p=p) for p in grid), *told]
    entries = [together.Entry.of(policy, world) for policy in policies]
    which = (task.family, task.problem, T)
    runs = [together.play(world, entries, T, task.seeds, *which, run) for run in range(task.runs)]
    regret = np.array([run.regret for run in runs])
    return {
        "grid": regret[:, : len(grid)].copy(),
        **{name: regret[:, len(grid) + i].copy() for i, name in enumerate(TOLD)},
        "p": np.array([run.p[len(grid)] for run in runs]),
        "random": np.array([run.random for run in runs]),
    }


def play_literal(task: Slow) -> Arrays:
    """Give p and regret at 40 steps, (40,), of the running minimum and of "auto", and the regret of the best p."""
    world = draw_problem(FIRST, task.seeds, task.problem)
    T, steps = task.horizon, np.geomspace(20, task.horizon, 40).round().astype(np.int64)
    one = play(Task(seeds=task.seeds, family=FIRST, problem=task.problem, runs=1, horizon=T, ratio=task.ratio))
    contexts, noise, coins = streams.of_run(task.seeds, FIRST, task.problem, T, 0)  # the very run of `one`
    whole = next(draw(world, contexts, noise, T, size=T))
    outcome = {}
    for name, policy in _two(T).items():
        outcome[name] = _path(InPython(world, policy, coins), policy, whole, np.unique(steps))
    return {
        "steps": steps,
        "best": one["grid"].min(axis=1),
        **{f"{name}_{what}": values for name, both in outcome.items() for what, values in both.items()},
    }


def _two(horizon: int) -> dict[str, AutoEpsilonGreedy | RunningMinimumEpsilonGreedy]:
    return {"literal": RunningMinimumEpsilonGreedy(), "auto": AutoEpsilonGreedy(horizon=horizon)}


def _path(
    player: InPython, policy: AutoEpsilonGreedy | RunningMinimumEpsilonGreedy, whole: Block, steps: Int64
) -> dict[str, Float64]:
    """Play step by step and note p and regret at some of them."""
    played, p = [], []
    for start, end in pairwise([0, *steps.tolist()]):
        played.append(player.play(whole.X[start:end], whole.rewards[start:end])[0])
        p.append(policy.current_p(player.bandit.state))
    arms = np.concatenate(played)
    regret = whole.losses[np.arange(len(arms)), arms].cumsum()[steps - 1]
    return {"p": np.array(p), "regret": regret}


def _family(name: str, horizon: int, found: Sequence[Arrays]) -> Family:
    """Put the problems of a family together, each in units of what random play loses."""
    shares = [as_floats(one["random"]).mean() for one in found]
    grids = [as_floats(one["grid"]) / share for one, share in zip(found, shares, strict=True)]
    told = [
        np.array([as_floats(one[name]).mean() / share for one, share in zip(found, shares, strict=True)])
        for name in TOLD
    ]
    return Family(
        name=name,
        horizon=horizon,
        best=hindsight.best(np.array(grids)),
        auto=told[0],
        longer=told[1],
        shorter=told[2],
        untold=told[3],
        p=np.array([float(np.median(as_floats(one["p"]))) for one in found]),
    )


def _literal(horizon: int, found: Sequence[Arrays]) -> Literal:
    names = ("literal_p", "literal_regret", "auto_p", "auto_regret")
    columns = {name: np.array([as_floats(one[name]) for one in found]) for name in names}
    best = np.array([float(as_floats(one["best"])[0]) for one in found])
    return Literal(horizon=horizon, steps=as_floats(found[0]["steps"]), best=best, **columns)


EXPERIMENT: Final = Experiment("choosing-p", "Section 4.2: finding p while running", run)
