"""A tournament for the default policy: regret of candidates as they come over that of tuned rivals, family by family.

Each run is another draw of the problem, the same for all policies, with the same contexts and noise. The constants of
rivals are the best of a small grid on other draws. The default is judged by the worst of its ratios of means to the
better rival, and by whether any of its runs is far above its family's median; its constants were chosen on other seeds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from armlet.bandit import Bandit
from armlet.environments import Environment
from armlet.kernel import Decision
from armlet.parallel.seeds import Seeds
from armlet.simulation.lab import Arrays, Lab, as_floats
from armlet.simulation.play import draw, player, run_streams
from armlet.types import Bool, Float64, Int64, Policy
from armlet_lab.contests.tournament.contenders import CANDIDATES, RIVALS
from armlet_lab.contests.tournament.families import FAMILIES, Family, draw_problem
from armlet_lab.contests.tournament.report import Cell, judge
from armlet_lab.runner.experiment import Experiment, Findings

ELSEWHERE: Final = 1000  # problems from this index on are for choosing constants
DRAWN: Final = 4096  # steps drawn at a time


@dataclass(frozen=True, slots=True)
class Round:
    """So many steps: rivals' settings by `trials` problems of a family, then `runs` problems for all."""

    horizon: int
    runs: int
    trials: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Each policy on each family."""

    families: tuple[str, ...] = tuple(FAMILIES)
    rounds: tuple[Round, ...] = (Round(10_000, 40, 6), Round(100_000, 10, 3))


SCALES: Final = {
    "quick": Settings(families=("Figure (a)", "one noisy arm", "at once"), rounds=(Round(1000, 3, 1),)),
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
    environment = draw_problem(task.family, task.seeds, problem, task.horizon)
    policy = RIVALS[task.name][task.choice] if task.name in RIVALS else CANDIDATES[task.name]
    return regret(environment, policy, task, problem)


def regret(environment: Environment, policy: Policy, task: Task, problem: int) -> float:
    """Play one run, rewards coming as the family says."""
    contexts, noise, seed = run_streams(task.seeds, task.family, problem)
    family = FAMILIES[task.family]
    who = player(environment, policy, seed) if family.is_prompt else Waiting(environment, policy, seed, family)
    total = 0.0
    for _, X, rewards, losses in draw(environment, contexts, noise, task.horizon, DRAWN):
        arms, _ = who.play(X, rewards)
        total += float(losses[np.arange(len(X)), arms].sum())
    return total


class Waiting:
    """Plays as a user's loop would whose rewards come late, or in blocks."""

    def __init__(self, environment: Environment, policy: Policy, seed: int, family: Family) -> None:
        self.bandit = Bandit(range(environment.n_arms), environment.dim, policy=policy, seed=seed)
        self._family, self._waiting = family, deque[tuple[Decision, float]]()

    def play(self, X: Float64, rewards: Float64) -> tuple[Int64, Bool]:
        """Take the next steps; give the arms played, and which steps explored."""
        arms, explored = np.empty(len(X), dtype=np.int64), np.empty(len(X), dtype=np.bool_)
        for i, (x, row) in enumerate(zip(X, rewards, strict=True)):
            decision = self.bandit.decide(x)
            arms[i], explored[i] = decision.arm, decision.explored
            self._waiting.append((decision, float(row[arms[i]])))
            if self.bandit.t % self._family.block == 0:
                while len(self._waiting) > self._family.delay:
                    self.bandit.learn(*self._waiting.popleft())
        return arms, explored


def find(settings: Settings, lab: Lab) -> Findings:
    """Choose the rivals' constants, play all, and judge."""
    places = [(family, each) for family in settings.families for each in settings.rounds]
    trials = [
        _task(lab.seeds, family, each.horizon, name, choice, ELSEWHERE, each.trials)
        for family, each in places
        for name, grid in RIVALS.items()
        for choice in range(len(grid))
    ]
    tried = _played(lab, "trials", trials, "Tournament: constants of rivals, tried on other problems")
    best = {
        (family, each.horizon, name): _best(tried, (family, each.horizon), name)
        for family, each in places
        for name in RIVALS
    }
    played = [
        _task(lab.seeds, family, each.horizon, name, best.get((family, each.horizon, name), 0), 0, each.runs)
        for family, each in places
        for name in (*CANDIDATES, *RIVALS)
    ]
    found = _played(lab, "play", played, f"Tournament: {len(CANDIDATES)} candidates on {len(places)} kinds of problem")
    cells = [
        Cell(
            family=family,
            horizon=each.horizon,
            candidates={name: found[family, each.horizon, name, 0] for name in CANDIDATES},
            rivals={name: found[family, each.horizon, name, best[family, each.horizon, name]] for name in RIVALS},
        )
        for family, each in places
    ]
    return judge(cells, lab.rng("resampling"))


def _task(seeds: Seeds, family: str, horizon: int, name: str, choice: int, first: int, runs: int) -> Task:
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
