"""The default and other policies on the environments and seeds of the search for p: which loses least, by how much.

In free units all; LinUCB and Thompson sampling with a few widths, of which some environments choose and all judge.
Every step is drawn (`core.kernel.simulate_steps`), so the cost grows with T. There is a budget of operations: costly
environments get fewer runs, and horizons that do not fit are cut short, which is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from armlet.advice.problem import SampledProblem
from armlet.advice.runs import Bench, Sample, Trial, difference, predictive
from armlet.environments.environment import FiniteEnvironment
from armlet.policies.contextual_epsilon_greedy import ContextualEpsilonGreedy
from armlet.policies.linucb import LinUCB
from armlet.policies.occasional_optimism import OccasionalOptimism
from armlet.policies.thompson_sampling import ThompsonSampling
from armlet.simulation.play import play_table
from armlet.types import Estimate, Float64, Interval

BUDGET: Final = 6e9  # nanoseconds of one core, by the estimate of `_cost`
FEWEST: Final = 4  # environments
MOST: Final = 128
WORTH: Final = 0.05  # of the default's loss: what another policy must save at least to be named before it
WIDTHS: Final = (0.25, 0.5, 1.0, 2.0)  # times the noise
FLOOR: Final = 0.02

Compiled: TypeAlias = OccasionalOptimism | LinUCB | ThompsonSampling | ContextualEpsilonGreedy

DEFAULT: Final = OccasionalOptimism()
FLOORED: Final = OccasionalOptimism(floor=FLOOR)
TUNED: Final[tuple[tuple[Compiled, ...], ...]] = (
    tuple(LinUCB(alpha=width) for width in WIDTHS),
    tuple(ThompsonSampling(v=width) for width in WIDTHS),
)
SETTINGS: Final = 2 + sum(map(len, TUNED))  # that are held against the default: the floor, p and every width


class StepTask(NamedTuple):
    """One run of a policy."""

    table: FiniteEnvironment
    policy: Compiled
    horizon: int
    seeds: tuple[int, int]


def play_steps(task: StepTask) -> float:
    """Run a task and give its regret."""
    at = np.array([task.horizon], dtype=np.int64)
    return float(play_table(task.table, task.policy, at, task.seeds, jumps=False).regret[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What one policy loses."""

    name: str
    setting: str  # empty for the default
    code: str  # that makes it
    mean: float  # regret, on average over environments and runs
    interval: Interval  # 95 %, of one run in one environment: where the user's own will lie
    difference: Estimate | None  # mean regret beyond the default's; the intervals of all settings hold together


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Policies on the same environments with the same seeds."""

    horizon: int  # the advice's, or an earlier checkpoint if that costs too much
    problems: int
    runs: int  # on each
    rows: tuple[Played, ...]  # the default first, exploring by p last
    best: int  # the row to take: the default's unless another is clearly better
    price: Estimate  # what exploring by p loses beyond that row
    random: float  # what random play loses

    @property
    def default(self) -> Played:
        """What is played where policy= is left out."""
        return self.rows[0]

    @property
    def recommended(self) -> Played:
        """The policy to take."""
        return self.rows[self.best]

    @property
    def exploring(self) -> Played:
        """ContextualEpsilonGreedy with the recommended p, whose log tells what other policies would have earned."""
        return self.rows[-1]


def compare(bench: Bench, trial: Trial, told: Callable[[float], None]) -> Comparison:
    """Play the default and the others on some of the environments of a trial; read exploring by p off it."""
    horizon, n, runs = _plan(bench, trial)
    few = min(n, max(FEWEST, n // 4))
    tasks = sum(map(len, TUNED)) * few + 2 * n + len(TUNED) * (n - few)
    arena = _Arena(bench, horizon, runs, _Counter(tasks * runs, told))
    tuned = [_best_width(arena, policies, few, n) for policies in TUNED]
    at = int(np.flatnonzero(trial.steps == horizon)[0])
    by_p = trial.curves[trial.best, :n, :runs, 0, at]
    regrets: list[tuple[Compiled, Float64]] = [
        (DEFAULT, arena.play(DEFAULT, range(n))),
        (FLOORED, arena.play(FLOORED, range(n))),
        *tuned,
        (ContextualEpsilonGreedy(p=trial.ps[trial.best]), by_p),
    ]
    return compared(regrets, horizon, [problem.table.gap for problem in bench.problems[:n]])


class _Counter:
    """Tells which share is done."""

    def __init__(self, total: int, told: Callable[[float], None]) -> None:
        self.done, self.total, self.told = 0, total, told

    def add(self) -> None:
        self.done += 1
        self.told(self.done / self.total)


class _Arena(NamedTuple):
    bench: Bench
    horizon: int
    runs: int
    counter: _Counter

    def play(self, policy: Compiled, problems: Iterable[int]) -> Float64:
        """Return regrets, (problems, runs)."""
        bench = self.bench
        tasks = [
            StepTask(bench.problems[i].table, policy, self.horizon, bench.pair(i, r))
            for i in problems
            for r in range(self.runs)
        ]
        regrets = []
        for regret in bench.executor.map(play_steps, tasks):
            regrets.append(regret)
            self.counter.add()
        return np.array(regrets).reshape(-1, self.runs)


def _plan(bench: Bench, trial: Trial) -> tuple[int, int, int]:
    """Return the horizon, and how many environments and runs on each fit into the budget."""
    each = float(np.mean([_cost(problem) for problem in bench.problems]))
    steps = bench.steps[bench.steps * each * FEWEST <= BUDGET]
    horizon = int(steps[-1]) if len(steps) else int(bench.steps[0])
    total = int(np.clip(BUDGET / (each * horizon), FEWEST, MOST))
    n = min(total, trial.problems)
    return horizon, n, min(trial.runs, max(1, total // n))


def _cost(problem: SampledProblem) -> float:
    """Estimate the nanoseconds of one step of all policies, within a factor of about two."""
    K, Kd = problem.n_arms, problem.n_arms * problem.dim
    widths = sum(map(len, TUNED)) / 4 + len(TUNED) * 3 / 4  # a quarter of the environments plays all widths
    return 2 * (250 + 5 * Kd) + widths * (200 + 30 * K + 15 * Kd)


def _best_width(arena: _Arena, policies: tuple[Compiled, ...], few: int, n: int) -> tuple[Compiled, Float64]:
    """Choose among widths on a few environments, and play the best one on the others too."""
    first = [arena.play(policy, range(few)) for policy in policies]
    best = int(np.argmin([regret.mean() for regret in first]))
    return policies[best], np.concatenate([first[best], arena.play(policies[best], range(few, n))])


def compared(regrets: list[tuple[Compiled, Float64]], horizon: int, gaps: list[float]) -> Comparison:
    """Return who loses least, from regrets by environment and run: the default's first, those of exploring by p last.

    `gaps` is what random play loses a step in each environment.
    """
    default, most = regrets[0][1], horizon * max(gaps)
    rows = tuple(
        played(policy, values, None if place == 0 else difference(values, default, SETTINGS), most)
        for place, (policy, values) in enumerate(regrets)
    )
    clear = [place for place, row in enumerate(rows) if row.difference is not None and _is_clear(row, rows[0])]
    best = min(clear, key=lambda place: rows[place].mean, default=0)
    n, runs = default.shape
    return Comparison(
        horizon=horizon,
        problems=n,
        runs=runs,
        rows=rows,
        best=best,
        price=difference(regrets[-1][1], regrets[best][1], SETTINGS),
        random=horizon * float(np.mean(gaps)),
    )


def _is_clear(row: Played, default: Played) -> bool:
    """Return whether a policy saves enough to matter, and surely saves something."""
    d = row.difference
    return d is not None and d.high < 0 and -d.value >= WORTH * default.mean


def played(policy: Compiled, values: Float64, beyond: Estimate | None, most: float) -> Played:
    """Put what a policy lost, (environments, runs), into words and numbers."""
    n, runs = values.shape
    setting = _setting(policy)
    name, given = type(policy).__name__, f"{setting[0]}={_exact(setting[1])}" if setting else ""
    return Played(
        name=name,
        setting=given.replace("=", " = "),
        code=f"armlet.{name}({given})",
        mean=float(values.mean()),
        interval=predictive(Sample(values.ravel(), np.repeat(np.arange(n), runs)), most),
        difference=beyond,
    )


def _setting(policy: Compiled) -> tuple[str, float] | None:
    match policy:
        case LinUCB(alpha=float(width)):
            return "alpha", width
        case ThompsonSampling(v=float(width)):
            return "v", width
        case ContextualEpsilonGreedy(p=float(p)):
            return "p", p
        case OccasionalOptimism(floor=floor) if floor:
            return "floor", floor
    return None


def _exact(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
