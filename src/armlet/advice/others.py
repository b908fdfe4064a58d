"""LinUCB and Thompson sampling on the same problems and seeds, in free units too, a few widths of their noise each.

Every step is drawn (`core.kernel.simulate_steps`), so the cost grows with T. There is a budget of operations: dear
problems get fewer runs, and horizons that do not fit are cut short, which is said.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from armlet.advice.problem import SampledProblem
from armlet.advice.runs import Bench
from armlet.advice.spread import Sample, mean_interval
from armlet.advice.trial import Trial
from armlet.core.finite import FiniteWorld
from armlet.core.intervals import Interval
from armlet.core.types import Float64
from armlet.policies.linucb import LinUCB
from armlet.policies.thompson_sampling import ThompsonSampling
from armlet.simulation.player import play_table

WIDTHS: Final = (0.25, 0.5, 1.0, 2.0)  # times the noise
BUDGET: Final = 3e9  # nanoseconds of one core, by the estimate of `step_cost`
FEWEST: Final = 4  # problems
MOST: Final = 64
MADE: Final[dict[str, Callable[[float], LinUCB | ThompsonSampling]]] = {
    "LinUCB": lambda width: LinUCB(alpha=width, units="free"),
    "ThompsonSampling": lambda width: ThompsonSampling(v=width, units="free"),
}
GOOD: Final = (
    "ContextualEpsilonGreedy gives in exchange: a step that costs the same for ever, exact propensities of every arm, "
    "and explored steps whose contexts are a clean random sample"
)


class StepTask(NamedTuple):
    """One run of a policy."""

    table: FiniteWorld
    policy: LinUCB | ThompsonSampling
    horizon: int
    seeds: tuple[int, int]


def play_steps(task: StepTask) -> float:
    """Run a task and give its regret."""
    at = np.array([task.horizon], dtype=np.int64)
    return float(play_table(task.table, task.policy, at, task.seeds, jumps=False).regret[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """What a policy came to, with the best of a few settings."""

    name: str
    setting: str
    width: float  # the same as a number, in units of the noise that the policy finds
    mean: float
    interval: Interval  # 95 %, of the mean
    problems: int
    horizon: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Other policies beside ContextualEpsilonGreedy, all by the same step on the same problems."""

    horizon: int
    ours: float  # mean regret of the recommended p
    interval: Interval
    rivals: tuple[Rival, ...]
    sentence: str
    note: str  # how much was run, and why not more


def step_cost(problem: SampledProblem) -> float:
    """Estimate the nanoseconds of a step, within a factor of about two."""
    return 200 + 30 * problem.n_arms + 15 * problem.n_arms * problem.dim


def compare(bench: Bench, trial: Trial, told: Callable[[float], None]) -> Comparison:
    """Run the others on some of the problems."""
    horizon, n, runs = _plan(bench, trial)
    settings = [(name, width) for name in MADE for width in WIDTHS]
    tasks = [
        StepTask(bench.problems[i].table, MADE[name](width), horizon, bench.pair(i, r))
        for name, width in settings
        for i in range(n)
        for r in range(runs)
    ]
    regrets = []
    for done, regret in enumerate(bench.executor.map(play_steps, tasks), start=1):
        regrets.append(regret)
        told(done / len(tasks))
    by = dict(zip(settings, np.array(regrets).reshape(len(settings), n, runs), strict=True))
    rivals = tuple(_best(name, by, horizon) for name in MADE)
    return _compared(trial, horizon, n, rivals, runs)


def _plan(bench: Bench, trial: Trial) -> tuple[int, int, int]:
    """Give the horizon, and how many problems and runs on each fit into the budget."""
    each = float(np.mean([step_cost(problem) for problem in bench.problems])) * 2 * len(WIDTHS)
    steps = bench.steps[bench.steps * each * FEWEST <= BUDGET]
    horizon = int(steps[-1]) if len(steps) else int(bench.steps[0])
    total = int(np.clip(BUDGET / (each * horizon), FEWEST, MOST))
    n = min(total, trial.problems)
    return horizon, n, min(trial.runs, max(1, total // n))


def _best(name: str, by: dict[tuple[str, float], Float64], horizon: int) -> Rival:
    width = min(WIDTHS, key=lambda w: float(by[name, w].mean()))
    values = by[name, width]
    return Rival(
        name=name,
        setting=f"{'alpha' if name == 'LinUCB' else 'v'} = {width:g}",
        width=width,
        mean=float(values.mean()),
        interval=mean_interval(_sample(values)),
        problems=len(values),
        horizon=horizon,
    )


def _sample(values: Float64) -> Sample:
    n, runs = values.shape
    return Sample(values.ravel(), np.repeat(np.arange(n), runs))


def _compared(trial: Trial, horizon: int, n: int, rivals: tuple[Rival, ...], runs: int) -> Comparison:
    at = int(np.flatnonzero(trial.steps == horizon)[0])
    ours = trial.curves[trial.best, :n, :, 0, at]
    mean = float(ours.mean())
    least = min(rivals, key=lambda rival: rival.mean)
    whole = horizon == int(trial.steps[-1])
    by = "" if whole else f" by step {horizon:,}"
    if least.mean < mean:
        sentence = f"{least.name} regrets least here{by}: {least.mean:.4g} against {mean:.4g}. {GOOD}"
    else:
        beside = f"{mean:.4g} against {least.mean:.4g} of {least.name}"
        sentence = f"ContextualEpsilonGreedy regrets least here{by}: {beside}. {GOOD}"
    played = f"{runs} run{'s' if runs > 1 else ''} on each of the first {n} problems"
    note = f"{len(WIDTHS)} widths each, the best shown, {played}"
    if not whole:
        note += f"; cut at step {horizon:,} of {int(trial.steps[-1]):,}: they draw every step, which takes long"
    interval = mean_interval(_sample(ours))
    return Comparison(horizon=horizon, ours=mean, interval=interval, rivals=rivals, sentence=sentence, note=note)
