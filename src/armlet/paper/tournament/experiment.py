"""A tournament for the default policy: regret of candidates as they come over that of tuned rivals, family by family.

Each run is another draw of the problem, the same for all policies, with the same contexts and noise. The constants of
rivals are the best of a small grid on other draws. A candidate is judged by the worst of its ratios of means to the
better rival, and by whether any of its runs is far above its family's median.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from armlet.bandit import Bandit
from armlet.core.types import Float64, Policy
from armlet.paper.experiment import Experiment, Findings
from armlet.paper.tournament.contenders import CANDIDATES, RIVALS
from armlet.paper.tournament.families import FAMILIES, World, draw_problem
from armlet.paper.tournament.report import Cell, judge
from armlet.parallel.seeds import Seeds
from armlet.simulation.lab import Lab
from armlet.simulation.shelf import Arrays, as_floats

ELSEWHERE: Final = 1000  # problems from this index on are for choosing constants
DRAWN: Final = 4096  # steps drawn at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Each policy on each family: rivals' settings by `trials` problems, then `runs` problems for all."""

    families: tuple[str, ...] = tuple(FAMILIES)
    horizons: tuple[int, ...] = (10_000, 100_000)
    runs: int = 20
    trials: int = 6


SCALES: Final = {
    "quick": Settings(families=("Figure (a)", "one noisy arm", "at once"), horizons=(1000,), runs=3, trials=1),
    "full": Settings(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Some runs of one policy on one family."""

    seeds: Seeds
    family: str
    name: str  # of a candidate, or of a rival
    choice: int  # of a rival's grid
    horizon: int
    first: int  # problem
    runs: int


def play(task: Task) -> Arrays:
    """Play each problem of a task once: regret, (runs,)."""
    return {"regret": np.array([_play_one(task, task.first + run) for run in range(task.runs)])}


def _play_one(task: Task, problem: int) -> float:
    world = draw_problem(task.family, task.seeds, problem)
    policy = RIVALS[task.name][task.choice] if task.name in RIVALS else CANDIDATES[task.name](world.n_arms)
    return regret(world, policy, task, problem)


def regret(world: World, policy: Policy, task: Task, problem: int) -> float:
    """Play one run as a user's loop would, rewards coming as the family says."""
    seeds, family, total = task.seeds, FAMILIES[task.family], 0.0
    contexts, noise = (seeds.rng(word, task.family, problem) for word in ("contexts", "noise"))
    bandit = Bandit(range(world.n_arms), world.dim, policy=policy, seed=seeds.seed("coins", task.family, problem))
    waiting = []
    for start in range(0, task.horizon, DRAWN):
        X = world.contexts(contexts, min(DRAWN, task.horizon - start))
        rewards, means = world.rewards(noise, X), world.means(X)
        losses = means.max(axis=1, keepdims=True) - means
        for i, x in enumerate(np.ascontiguousarray(X)):
            decision = bandit.decide(x)
            arm = int(decision.arm)
            total += float(losses[i, arm])
            waiting.append((decision, float(rewards[i, arm])))
            if len(waiting) > family.delay and (start + i + 1) % family.block == 0:
                for late, reward in waiting[: len(waiting) - family.delay]:
                    bandit.learn(late, reward)
                del waiting[: len(waiting) - family.delay]
    return total


def find(settings: Settings, lab: Lab) -> Findings:
    """Choose the rivals' constants, play all, and judge."""
    places = [(family, horizon) for family in settings.families for horizon in settings.horizons]
    trials = [
        _task(lab.seeds, place, name, choice, ELSEWHERE, settings.trials)
        for place in places
        for name, grid in RIVALS.items()
        for choice in range(len(grid))
    ]
    tried = _played(lab, "trials", trials, "Tournament: constants of rivals, tried on other problems")
    played = [
        *(_task(lab.seeds, place, name, 0, 0, settings.runs) for place in places for name in CANDIDATES),
        *(
            _task(lab.seeds, place, name, _best(tried, place, name), 0, settings.runs)
            for place in places
            for name in RIVALS
        ),
    ]
    found = _played(lab, "play", played, f"Tournament: {len(CANDIDATES)} candidates on {len(places)} kinds of problem")
    cells = [
        Cell(
            family=family,
            horizon=horizon,
            candidates={name: found[family, horizon, name, 0] for name in CANDIDATES},
            rivals={name: found[family, horizon, name, _best(tried, (family, horizon), name)] for name in RIVALS},
        )
        for family, horizon in places
    ]
    return judge(cells, lab.rng("resampling"))


def _task(seeds: Seeds, place: tuple[str, int], name: str, choice: int, first: int, runs: int) -> Task:
    family, horizon = place
    return Task(seeds=seeds, family=family, name=name, choice=choice, horizon=horizon, first=first, runs=runs)


def _played(lab: Lab, stage: str, tasks: Sequence[Task], label: str) -> dict[tuple[str, int, str, int], Float64]:
    found = lab.map(stage, play, tasks, label)
    return {
        (task.family, task.horizon, task.name, task.choice): as_floats(arrays["regret"])
        for task, arrays in zip(tasks, found, strict=True)
    }


def _best(tried: dict[tuple[str, int, str, int], Float64], place: tuple[str, int], name: str) -> int:
    means = [float(tried[(*place, name, choice)].mean()) for choice in range(len(RIVALS[name]))]
    return int(np.argmin(means))


def _run(lab: Lab) -> Findings:
    return find(SCALES["full" if lab.scale == "full" else "quick"], lab)


EXPERIMENT: Final = Experiment("tournament", "Tournament: which policy needs nothing set", _run)
