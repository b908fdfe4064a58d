"""The search for p: a look along a coarse grid, then a trial of every p near the best on the same runs.

The look doubles p on a few runs, up to where exploration alone, gap times explored steps, is dearer than the best p so
far, or regret has clearly turned upwards. The trial runs p / 8 to 2 p, in steps of sqrt 2 round p; if another p turns
out best, it widens until p / 2 and 2 p are in it, on fewer runs if these are dearer. How many problems and runs there
are follows from a count of operations, never from a clock: the answer is the same on any machine and for any number of
workers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from armlet.advice.problem import SampledProblem
from armlet.advice.runs import Bench, by_steps, explorations
from armlet.advice.trial import Trial
from armlet.types import Float64

BUDGET: Final = 6e6  # microseconds of one core for the trial, by the estimate of `cost`
LOOK: Final = 0.05  # of that, for one p of the look
GLANCE: Final = 64  # runs of a p at the look, if they are cheap
TURNED: Final = 1.5  # times the least regret: so much more is no accident of 64 runs
MOST_PROBLEMS: Final = 256
MOST_RUNS: Final = 4096  # of one p
ENOUGH: Final = 128  # runs of one p; where there would be fewer, the steps of the trial are doublings
FEWEST_RUNS: Final = 12
DEAREST: Final = 0.5e6  # microseconds of a run; a p that takes longer is not tried, and the advice says so
NEAR: Final = (-2, -1, 0, 1, 2)  # what a trial has round its best p, in steps of sqrt 2
WIDE: Final = (-6, -4, *NEAR)  # and round the best p of the look: cheap, and some problems may want so little


def cost(problem: SampledProblem, p: float, horizon: int) -> float:
    """Estimate the microseconds that a run takes on one core, within a factor of about two."""
    M, d = len(problem.table.chances), problem.dim
    if by_steps(M, horizon):
        return 60 + 0.02 * horizon + (0.3 + M * (0.01 + 0.0013 * d)) * explorations(p, problem.n_arms, horizon)
    return 60 + (0.5 + M * (0.03 + 0.0012 * d)) * explorations(p, problem.n_arms, horizon)


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Looks for the p of least mean regret over the problems of a bench."""

    bench: Bench
    n_arms: int
    problems: int | None  # None to take what the budget allows
    runs: int | None
    budget: float  # for the trial, in units of `cost`
    told: Callable[[float], None]

    def p_at(self, j: int) -> float:
        """Give entry j of the grid, K 2^(j/2), a whole number."""
        return float(round(self.n_arms * 2 ** (j / 2)))

    def cost_at(self, j: int) -> float:
        """Estimate the microseconds of a run with entry j, on average over problems."""
        some = self.bench.problems[:16]
        return sum(cost(problem, self.p_at(j), self.bench.horizon) for problem in some) / len(some)

    @property
    def natural_top(self) -> int:
        """The last entry that makes sense: p of half the horizon, or K."""
        return max(0, math.floor(2 * math.log2(self.bench.horizon / 2 / self.n_arms)))

    @property
    def top(self) -> int:
        """The last entry that is tried."""
        top = self.natural_top
        while top > 0 and self.cost_at(top) > DEAREST:
            top -= 1
        return top

    def note(self, trial: Trial) -> tuple[str, ...]:
        """Say if the grid may have ended below the best p."""
        top = self.top
        if top == self.natural_top or trial.entries[trial.best] + 2 <= top:
            return ()
        return (
            f"the best p may be larger: p above {self.p_at(top):,.0f} was not tried, since a run of it takes too long "
            "to simulate",
        )

    def around(self, j: int, steps: tuple[int, ...]) -> list[int]:
        """Give the entries so many steps from entry j, without the odd ones if runs are dear."""
        top = self.top
        entries = [j + step for step in steps if 0 <= j + step <= top]
        return [i for i in entries if (i - j) % 2 == 0] if self._is_dear(entries) else entries

    def _is_dear(self, entries: list[int]) -> bool:
        return ENOUGH * sum(map(self.cost_at, entries)) > self.budget

    def settle(self) -> Trial:
        """Find the best p and all that is to be said of it."""
        j = self._look()
        problems, runs = self._afford(j)
        found: dict[int, Float64] = {}
        wanted, start, end = self.around(j, WIDE), 0.3, 0.8
        while True:
            missing = [i for i in wanted if i not in found]
            ps = [self.p_at(i) for i in missing]
            curves = self.bench.run(ps, problems, runs, self._between(start, end))
            found |= dict(zip(missing, curves, strict=True))
            trial = self._trial(found)
            best = trial.entries[trial.best]
            if best == j:
                return trial
            j, wanted, start, end = best, self.around(best, NEAR), end, (1 + end) / 2
            # a larger p is dearer: fewer runs from here on, and of all p the same ones
            problems, runs = np.minimum((problems, runs), self._afford(j)).tolist()
            found = {i: curves[:problems, :runs] for i, curves in found.items()}

    def _trial(self, found: dict[int, Float64]) -> Trial:
        entries = tuple(sorted(found))
        curves = np.stack([found[i] for i in entries])
        return Trial(entries=entries, ps=tuple(map(self.p_at, entries)), steps=self.bench.steps, curves=curves)

    def _between(self, start: float, end: float) -> Callable[[float], None]:
        return lambda share: self.told(start + (end - start) * share)

    def _look(self) -> int:
        """Run the coarse grid a little; give the entry of the best p."""
        bench, top = self.bench, self.top
        best, lowest = 0, np.empty((0, 0))
        for j in range(0, top + 1, 2):
            problems, runs = self._glance(j)
            here = bench.run([self.p_at(j)], problems, runs)[0][..., 0, -1]  # (problems, runs)
            least = lowest[:problems, :runs].mean() if j else math.inf  # on the same runs
            if here.mean() < least:
                best, lowest, least = j, here, here.mean()
            gap = float(np.mean([problem.table.gap for problem in bench.problems[:problems]]))
            too_dear = gap * explorations(self.p_at(j + 2), self.n_arms, bench.horizon) > least
            if too_dear or (j >= best + 4 and here.mean() > TURNED * least):
                break
            self.told(0.3 * j / (top + 1))
        return best

    def _glance(self, j: int) -> tuple[int, int]:
        """Give how many problems the look at entry j has, and how many runs on each."""
        total = int(np.clip(LOOK * self.budget / self.cost_at(j), 4, GLANCE))
        problems = min(len(self.bench.problems), total)
        return problems, max(1, total // problems)

    def _afford(self, j: int) -> tuple[int, int]:
        """Give the problems and runs that the budget allows near entry j, where the user does not say."""
        n = len(self.bench.problems)
        total = int(np.clip(self.budget / sum(map(self.cost_at, self.around(j, WIDE))), FEWEST_RUNS, MOST_RUNS))
        problems = min(n, max(1, total // 2)) if self.problems is None else n
        return problems, max(2, total // problems) if self.runs is None else self.runs
