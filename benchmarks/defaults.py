"""What Thompson sampling and SquareCB regret as they come, and where their constants are from.

    python benchmarks/defaults.py thompson           # T = 10^4, twenty families of the tournament
    python benchmarks/defaults.py squarecb
    python benchmarks/defaults.py squarecb quick     # T = 10^3, three families: does it run

The constant is the one of a small grid with the least geometric mean, over families, of regret relative to the best of
the grid, on two problems of each family. It is judged on three others, next to the best constant of each family in
hindsight (on those very problems, so that no choice could be better), the default of before, and random play.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from armlet.parallel import Seeds
from armlet.policies import SquareCB, ThompsonSampling
from armlet.types import Float64, Policy
from armlet_lab.contests.contest import Task
from armlet_lab.contests.problems import draw_problem
from armlet_lab.contests.tournament import regret
from armlet_lab.runner.arena import ARENAS

SEEDS, TRIED, JUDGED = Seeds(2013), (1, 2), (101, 102, 103)  # problems
FAMILIES = (
    *ARENAS,
    *("clicks 3 %", "level 100", "scale 0.02", "t3 noise", "one-hot 50", "near-ties", "one noisy arm"),
    *("news", "delay 1,000", "at once", "blocks of 1,000"),
)
SCALES = {"quick": (("Figure (a)", "clicks 3 %", "level 100"), 1000), "full": (FAMILIES, 10_000)}
CONTEXTS = 4096  # to estimate what random play loses


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A policy with one constant."""

    make: Callable[[float], Policy]
    grid: tuple[float, ...]
    before: Policy  # as it came before


SUBJECTS = {
    "thompson": Subject(
        make=lambda v: ThompsonSampling(v=v), grid=(0.1, 0.3, 0.6, 1.0), before=ThompsonSampling(v=1.0)
    ),
    "squarecb": Subject(
        make=lambda scale: SquareCB(gamma_scale=scale),
        grid=(1.0, 4.0, 16.0, 64.0),
        before=SquareCB(gamma_scale=1.0, units="as given"),
    ),
}


@cache
def mean_regret(family: str, policy: Policy, problems: tuple[int, ...], horizon: int) -> float:
    """Play each problem once."""
    task = Task(seeds=SEEDS, environment=family, horizon=horizon)
    return float(np.mean([regret(policy, task, i) for i in problems]))


def random_regret(family: str, problems: tuple[int, ...], horizon: int) -> float:
    """Return what random play loses."""
    losses = []
    for i in problems:
        environment = draw_problem(family, SEEDS, i, horizon)
        means = environment.means(environment.contexts(SEEDS.rng("random play", family, i), CONTEXTS))
        losses.append(float((means.max(axis=1) - means.mean(axis=1)).mean()))
    return horizon * float(np.mean(losses))


def regrets(subject: Subject, family: str, problems: tuple[int, ...], horizon: int) -> Float64:
    """Return the regret of every constant, (grid,)."""
    return np.array([mean_regret(family, subject.make(c), problems, horizon) for c in subject.grid])


def choose(subject: Subject, families: Sequence[str], horizon: int) -> int:
    """Choose the constant on problems that judge nothing."""
    tried = np.array([regrets(subject, family, TRIED, horizon) for family in families])
    overall = np.exp(np.log(tried / tried.min(axis=1, keepdims=True)).mean(axis=0))
    ratios = ", ".join(f"{c:g}: {ratio:.2f}" for c, ratio in zip(subject.grid, overall, strict=True))
    print(f"Regret over that of the best of the grid, {len(TRIED)} problems of {len(families)} families: {ratios}")
    return int(np.argmin(overall))


def judge(subject: Subject, families: Sequence[str], horizon: int) -> None:
    """Choose a constant, and print what it regrets next to others."""
    chosen = choose(subject, families, horizon)
    print(f"| family | {subject.grid[chosen]:g} | in hindsight | before | random |\n|---|---|---|---|---|", flush=True)
    ratios = []
    for family in families:
        found = regrets(subject, family, JUDGED, horizon)
        before, chance = mean_regret(family, subject.before, JUDGED, horizon), random_regret(family, JUDGED, horizon)
        own, best = found[chosen], found.min()
        ratios.append((own / best, before / best, own / chance, before / chance))
        hindsight = f"{best:,.0f} ({subject.grid[int(np.argmin(found))]:g})"
        print(f"| {family} | {own:,.0f} | {hindsight} | {before:,.0f} | {chance:,.0f} |", flush=True)
    middle, worst = np.exp(np.log(ratios).mean(axis=0)), np.max(ratios, axis=0)
    for i, what in enumerate(("now / hindsight", "before / hindsight", "now / random", "before / random")):
        print(f"{what}: geometric mean {middle[i]:.2f}, worst {worst[i]:.2f}")


if __name__ == "__main__":
    judge(SUBJECTS[sys.argv[1]], *SCALES[sys.argv[2] if len(sys.argv) > 2 else "full"])
