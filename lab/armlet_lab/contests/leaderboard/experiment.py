"""Every system that the paper names, and what is used today, on the same problems: regret, time and memory.

Each run is another draw of the problem, the same for all policies, with the same contexts and noise. Constants are the
theory's, or the best of a small grid on other draws. Regret is told relative to that of uniform play.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from armlet.environments.environment import Environment
from armlet.environments.wrapped import OracleBit
from armlet.parallel.seeds import Seeds
from armlet.policies import LinUCB
from armlet.simulation import play as playing
from armlet.simulation.lab import Arrays, Lab, as_floats
from armlet.types import Float64
from armlet_lab.contests.leaderboard.contender import Contender
from armlet_lab.contests.leaderboard.contenders import CONTENDERS, ONE_BIT
from armlet_lab.contests.leaderboard.costs import Cost, find_costs
from armlet_lab.contests.leaderboard.report import judge
from armlet_lab.contests.leaderboard.verdicts import Rank, Standing
from armlet_lab.runner.arena import ARENAS, brief, draw_environment
from armlet_lab.runner.experiment import Experiment, Findings

ALL: Final[dict[str, Contender]] = {**CONTENDERS, **ONE_BIT}
THEORY: Final = -1  # in place of an index into the grid
WIDTHS: Final = (0.1, 2.36)  # a small alpha, and that of LinUCB's own formula at delta = 0.05
DIVIDED: Final = {"gaussian 20 x 30": 3}  # some policies take a millisecond a step there
ELSEWHERE: Final = 1000  # problems from this index on are for choosing constants


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Each contender in each arena: `trials` of its settings on other problems, then `runs` with the best of them."""

    arenas: tuple[str, ...] = tuple(ARENAS)
    horizon: int = 3000
    runs: int = 6
    trials: int = 2  # runs for each setting of a grid
    timed: tuple[int, int] = (200, 2000)  # steps before a policy is timed


QUICK: Final = Settings(arenas=("Figure (a)", "Section 7"), horizon=1000, runs=4, trials=1, timed=(100, 1000))
FULL: Final = Settings()


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Some runs of one contender in one arena."""

    seeds: Seeds
    arena: str
    contender: str
    choice: int  # of its grid, or THEORY
    horizon: int
    first: int  # problem
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Width:
    """LinUCB with one alpha on several problems of Figure (a)."""

    seeds: Seeds
    alpha: float
    horizon: int
    runs: int


def play_width(task: Width) -> Arrays:
    """Give regret at T/4, T/2 and T: (runs, 3)."""
    parts, out = tuple(task.horizon // part for part in (4, 2, 1)), []
    for run in range(task.runs):
        environment = draw_environment("Figure (a)", task.seeds, run)
        policy, seed = LinUCB(alpha=task.alpha, units="as given"), task.seeds.seed("runs of a width", run)
        job = playing.Job(
            environment=environment, policy=policy, horizon=task.horizon, runs=1, seed=seed, checkpoints=parts
        )
        out.append(playing.play(job, 0).regret)
    return {"regret": np.array(out)}


Regret: TypeAlias = dict[tuple[str, str, int], Float64]  # by arena, contender and choice: (runs,)


def play(task: Task) -> Arrays:
    """Play each problem of a task once."""
    problems = range(task.first, task.first + task.runs)
    return {"regret": np.array([_play_one(task, problem) for problem in problems])}


def _play_one(task: Task, problem: int) -> float:
    environment = draw_environment(task.arena, task.seeds, problem)
    contender, told = ALL[task.contender], brief(environment, task.horizon)
    policy = contender.settle(told, None if task.choice == THEORY else task.choice)
    met: Environment = OracleBit(environment=environment) if contender.family == "one bit" else environment
    seed = task.seeds.seed("runs", task.arena, problem)
    job = playing.Job(environment=met, policy=policy, horizon=task.horizon, runs=1, seed=seed, method="python")
    return float(playing.play(job, 0).regret[-1])


def find(settings: Settings, lab: Lab) -> Findings:
    """Choose constants, play, time and rank."""
    entered = [(arena, name) for arena in settings.arenas for name in ALL if _fits(arena, name, settings, lab.seeds)]
    trials = [
        _task(settings, lab.seeds, arena, name, choice, ELSEWHERE, settings.trials)
        for arena, name in entered
        for choice in range(_choices(arena, name, settings, lab.seeds))
    ]
    tried = _played(lab, "trials", trials, "Leaderboard: constants tried on other problems")
    best = {entry: _best(tried, *entry) for entry in entered}
    played = [
        _task(settings, lab.seeds, arena, name, choice, 0, settings.runs)
        for arena, name in entered
        for choice in dict.fromkeys((best[arena, name], *([THEORY] if ALL[name].theory else [])))
    ]
    found = _played(lab, "play", played, f"Leaderboard: {len(ALL)} policies in {len(settings.arenas)} environments")
    widths = [Width(seeds=lab.seeds, alpha=alpha, horizon=20_000, runs=20) for alpha in WIDTHS]
    locked = lab.map("widths", play_width, widths, "Leaderboard: LinUCB with a small and a large alpha")
    costs = find_costs(settings.timed, lab)
    ranks = {name: _rank(name, settings, found, tried, best, costs) for name in ALL}
    return judge(
        ranks,
        settings.arenas,
        settings.horizon,
        settings.runs,
        lab.seeds,
        costs,
        {task.alpha: as_floats(arrays["regret"]) for task, arrays in zip(widths, locked, strict=True)},
    )


def _fits(arena: str, name: str, settings: Settings, seeds: Seeds) -> bool:
    return ALL[name].fits(brief(draw_environment(arena, seeds), settings.horizon))


def _choices(arena: str, name: str, settings: Settings, seeds: Seeds) -> int:
    return len(ALL[name].grid(brief(draw_environment(arena, seeds), settings.horizon)))


def _task(settings: Settings, seeds: Seeds, arena: str, name: str, choice: int, first: int, runs: int) -> Task:
    horizon = settings.horizon // DIVIDED.get(arena, 1)
    return Task(seeds=seeds, arena=arena, contender=name, choice=choice, horizon=horizon, first=first, runs=runs)


def _played(lab: Lab, stage: str, tasks: Sequence[Task], label: str) -> Regret:
    found = lab.map(stage, play, tasks, label)
    return {
        (task.arena, task.contender, task.choice): as_floats(arrays["regret"])
        for task, arrays in zip(tasks, found, strict=True)
    }


def _best(tried: Regret, arena: str, name: str) -> int:
    means = {choice: regret.mean() for (where, who, choice), regret in tried.items() if (where, who) == (arena, name)}
    return min(means, key=lambda choice: means[choice])


def _worst(tried: Regret, arena: str, name: str) -> float:
    means = [regret.mean() for (where, who, _), regret in tried.items() if (where, who) == (arena, name)]
    return float(max(means) / tried[arena, "uniform", 0].mean())


def _rank(
    name: str,
    settings: Settings,
    found: Regret,
    tried: Regret,
    best: Mapping[tuple[str, str], int],
    costs: Mapping[str, Cost],
) -> Rank:
    standings = {
        arena: Standing(
            tuned=found[arena, name, best[arena, name]],
            theory=found.get((arena, name, THEORY)),
            uniform=found[arena, "uniform", 0],
            worst=_worst(tried, arena, name),
        )
        for arena in settings.arenas
        if (arena, name) in best
    }
    return Rank(name=name, family=ALL[name].family, standings=standings, cost=costs[name])


def _run(lab: Lab) -> Findings:
    return find(FULL if lab.scale == "full" else QUICK, lab)


EXPERIMENT: Final = Experiment("leaderboard", "Leaderboard: every system the paper names, regret and cost", _run)
