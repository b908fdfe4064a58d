"""Section 4.2, first paragraph: p from a law of problems, by the theorem and by simulation, and from a small pilot.

The theorem's p is that which all but 5 % of the law's problems ask for at most. The advisor (`armlet.advise`, without
its look at other policies and with fewer runs) sees the law, or a pilot of the very problem; then every choice plays
the same fresh contexts and noise as a grid of fixed p, the best of which is known only in hindsight.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import numpy as np

from armlet.advice import Pilot
from armlet.advice.ask import prepare
from armlet.advice.pilot import Posterior, as_source
from armlet.advice.problem import Source
from armlet.advice.runs import predictive
from armlet.environments.families import FAMILIES, draw_problem
from armlet.environments.linear import LinearArms
from armlet.parallel.seeds import Seeds
from armlet.policies import Algorithm1, ContextualEpsilonGreedy
from armlet.simulation.lab import Arrays, Lab, Scale, as_floats
from armlet.theory import asked_p
from armlet.types import Float64
from armlet_lab.paper.section_4_2.advisor.report import Family, judge
from armlet_lab.runner import hindsight, together
from armlet_lab.runner.experiment import Experiment, Findings

SURE: Final = 0.95  # of the law's problems ask for no more than the theorem's p


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Problems of each family: what is advised before and after a pilot, beside a grid of p at each horizon."""

    families: tuple[str, ...] = ("Figure (a)", "display ads", "clicks 3 % or 4 %")
    problems: int = 6
    horizons: tuple[int, ...] = (10_000,)
    runs: tuple[int, ...] = (16,)  # of a problem, at each horizon; half of them choose the best p in hindsight
    ratio: float = 2.0  # between two values of p
    rows: int = 2000  # of the pilot
    budget: float = 1e6  # of a search, in microseconds by its own estimate


SCALES: dict[Scale, Settings] = {
    "quick": Settings(),
    "full": Settings(families=tuple(FAMILIES), problems=20, horizons=(10_000, 100_000), runs=(16, 8)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """One question to the advisor: which p for this law of problems."""

    seeds: Seeds
    family: str
    horizon: int
    budget: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Task(Law):
    """A pilot on one problem of the law, advice from it, and fresh runs."""

    problem: int
    runs: int
    ratio: float
    rows: int
    law_p: float
    theorem_p: float


def run(lab: Lab) -> Findings:
    """Run the experiment at the lab's scale."""
    return find(SCALES[lab.scale], lab)


def find(settings: Settings, lab: Lab) -> Findings:
    """Ask, play, then compare."""
    s = settings
    laws = [Law(seeds=lab.seeds, family=f, horizon=T, budget=s.budget) for T in s.horizons for f in s.families]
    advised = lab.map("laws", ask_law, laws, f"p from the law: {len(s.families)} families")
    tasks = [
        Task(
            seeds=law.seeds,
            family=law.family,
            horizon=law.horizon,
            budget=law.budget,
            problem=i,
            runs=s.runs[s.horizons.index(law.horizon)],
            ratio=s.ratio,
            rows=s.rows,
            law_p=float(told["p"]),
            theorem_p=float(told["theorem"]),
        )
        for law, told in zip(laws, advised, strict=True)
        for i in range(s.problems)
    ]
    found = lab.map("pilots", play, tasks, f"p from pilots of {s.rows:,} steps: {len(tasks)} problems")
    n = s.problems
    families = [
        _family(law, told, found[i * n : (i + 1) * n]) for i, (law, told) in enumerate(zip(laws, advised, strict=True))
    ]
    return judge(families, s.rows, lab.rng("advice intervals"))


def ask_law(task: Law) -> Arrays:
    """Give the advisor's p, (1,), the interval it predicts for one run, (2,), and the theorem's p, (1,)."""
    source = as_source(FAMILIES[task.family], task.horizon, "max")
    p, ends = _advise(source, task)
    asked = [_asked(draw_problem(task.family, task.seeds, "asked", i)) for i in range(100)]
    return {"p": np.array(p), "ends": ends, "theorem": np.array(np.quantile(asked, SURE, method="higher"))}


def play(task: Task) -> Arrays:
    """Give regret of every p of the grid, (runs, grid), of three choices of p, (runs,), and what the pilot promised."""
    T, environment = task.horizon, draw_problem(task.family, task.seeds, task.problem)
    which = (task.family, task.problem, T)
    pilot = _pilot(environment, task.rows, task.seeds.rng("pilots", *which))
    p, ends = _advise(Posterior.of(pilot, "max"), task, task.problem)
    grid = hindsight.grid_of_p(environment.n_arms, T, task.ratio)
    # p = T explores every step up to T, as any larger p does; the theorem is about Algorithm 1 as printed
    theorem = Algorithm1(p=min(task.theorem_p, float(T)))
    policies = [*(ContextualEpsilonGreedy(p=each) for each in (*grid, task.law_p, p)), theorem]
    entries = [together.Entry.of(policy, environment) for policy in policies]
    runs = [together.play(environment, entries, T, task.seeds, *which, run) for run in range(task.runs)]
    regret = np.array([run.regret for run in runs])
    return {
        "grid": regret[:, :-3].copy(),
        "law": regret[:, -3].copy(),
        "pilot": regret[:, -2].copy(),
        "theorem": regret[:, -1].copy(),
        "random": np.array([run.random for run in runs]),
        "p": np.array(p),
        "ends": ends,
    }


def _advise(source: Source, task: Law, *problem: int) -> tuple[float, Float64]:
    """Give the recommended p and the ends of the interval predicted for one run."""
    seed = task.seeds.seed("advice", task.family, task.horizon, *problem)
    with ThreadPoolExecutor(1) as here:
        search = prepare(source, task.horizon, seed, here, None, None, task.budget, lambda _: None)
        trial = search.settle()
    gap = float(np.mean([problem.table.gap for problem in search.bench.problems[: trial.problems]]))
    return trial.ps[trial.best], np.array(predictive(trial.sample(trial.best), gap * task.horizon))


def _asked(environment: LinearArms) -> float:
    """Give the p of Theorem 2, repaired where contexts are longer than the printed one allows; inf if there is none."""
    table = environment.table()
    if table is None:
        return math.inf  # contexts without end: the smallest gap is 0
    asked = asked_p(table, theta=np.array(environment.theta))
    condition = asked.printed or asked.repaired
    return math.inf if condition is None else condition.p


def _pilot(environment: LinearArms, rows: int, rng: np.random.Generator) -> Pilot:
    """Play at random for a while."""
    X, arms = environment.contexts(rng, rows), rng.integers(environment.n_arms, size=rows)
    return Pilot(X, arms, environment.rewards(rng, X)[np.arange(rows), arms])


def _family(law: Law, told: Arrays, found: Sequence[Arrays]) -> Family:
    """Put the problems of a family together, each in units of what random play loses."""
    random = np.array([as_floats(one["random"]).mean() for one in found])
    mean = {name: np.array([as_floats(one[name]).mean() for one in found]) for name in ("law", "pilot", "theorem")}
    best = hindsight.best(np.array([as_floats(one["grid"]) for one in found]) / random[:, None, None])
    return Family(
        name=law.family,
        horizon=law.horizon,
        best=best,
        law=mean["law"] / random,
        pilot=mean["pilot"] / random,
        theorem=mean["theorem"] / random,
        law_p=float(told["p"]),
        pilot_p=np.array([float(one["p"]) for one in found]),
        theorem_p=float(told["theorem"]),
        law_covered=np.array([_covered(as_floats(one["law"]), as_floats(told["ends"])) for one in found]),
        pilot_covered=np.array([_covered(as_floats(one["pilot"]), as_floats(one["ends"])) for one in found]),
    )


def _covered(regret: Float64, ends: Float64) -> float:
    return float(np.mean((regret >= ends[0]) & (regret <= ends[1])))


EXPERIMENT: Final = Experiment("advisor", "Section 4.2: p from a law of problems or a pilot", run)
