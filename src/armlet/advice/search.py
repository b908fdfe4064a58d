"""The search for p: a coarse grid that doubles, then steps of sqrt 2 round the best, the same seeds throughout.

What exploration costs is known without a run, gap times explored steps, and regret is no less, so the grid ends where
that alone is dearer than the best p so far. How many problems and runs there are follows from a count of operations,
never from a clock: the answer is the same on any machine and for any number of workers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from armlet.advice.problem import Problem
from armlet.advice.runs import Bench, explorations, pairs

BUDGET: Final = 5e6  # microseconds of one core for the p near the best, by the estimate of `cost`
LOOK: Final = 2e6  # for the first look at the grid
GLANCE: Final = 64  # runs of a p at the first look, if they are cheap
MOST_PROBLEMS: Final = 256
MOST_RUNS: Final = 4096  # of one p
FEWEST_RUNS: Final = 24
FEWEST_DEAR_RUNS: Final = 12  # where even 24 would take twice the budget; the steps are then doublings
DEAREST: Final = 0.5e6  # microseconds of a run; a p that takes longer is not tried, and the advice says so
MOVES: Final = 8


class Found(NamedTuple):
    """The best p, and how many runs on how many problems it and its neighbours have."""

    p: float
    problems: int
    runs: int


def cost(problem: Problem, p: float, horizon: int) -> float:
    """Estimate the microseconds that a run takes on one core, within a factor of about two."""
    each = 0.5 + 0.025 * len(problem.table.chances) + 2e-4 * problem.dim**3
    return 50 + each * explorations(p, horizon)


@dataclass(slots=True)
class Search:
    """Looks for the p of least mean regret over the problems of a bench."""

    bench: Bench
    n_arms: int
    horizon: int
    problems: int | None  # None to take what the budget allows
    runs: int | None
    told: Callable[[float], None]

    def p_at(self, j: int) -> float:
        """Give entry j of the grid, K 2^(j/2), a whole number."""
        return float(round(self.n_arms * 2 ** (j / 2)))

    @property
    def natural_top(self) -> int:
        """The last entry that makes sense: p of half the horizon, or K."""
        return max(0, math.floor(2 * math.log2(self.horizon / 2 / self.n_arms)))

    @property
    def top(self) -> int:
        """The last entry that is tried."""
        top = self.natural_top
        while top > 0 and cost(self.bench.problems[0], self.p_at(top), self.horizon) > DEAREST:
            top -= 1
        return top

    def note(self) -> tuple[str, ...]:
        """Say which p were too dear to try."""
        if self.top == self.natural_top:
            return ()
        return (f"p above {self.p_at(self.top):,.0f} was not tried: a run of it takes too long to simulate",)

    def near(self, j: int) -> list[int]:
        """Give the entries from half to double of entry j, without those between if runs are dear."""
        entries = [i for i in range(j - 2, j + 3) if 0 <= i <= self.top]
        return [i for i in entries if (i - j) % 2 == 0] if self._is_dear(entries) else entries

    def _cost_of(self, entries: list[int]) -> float:
        return sum(cost(self.bench.problems[0], self.p_at(i), self.horizon) for i in entries)

    def _is_dear(self, entries: list[int]) -> bool:
        return FEWEST_RUNS * self._cost_of(entries) > 2 * BUDGET

    def settle(self) -> Found:
        """Find the best p."""
        j = self._look()
        found = self._afford(j)
        wanted = pairs(found.problems, found.runs)
        for move in range(MOVES):
            start = 0.8 - 0.5 * 0.5**move
            self.bench.run(map(self.p_at, self.near(j)), wanted, self._between(start, (start + 0.8) / 2))
            best = min(self.near(j), key=lambda i: self.bench.mean(self.p_at(i), wanted))
            if best == j:
                break
            j = best
        # a few runs of the p further off, so that single problems can have their own best p
        wide = [p for p in (self.p_at(i) for i in range(j - 8, j + 5, 2)) if p in self.bench.results]
        self.bench.run(wide, pairs(found.problems, max(2, found.runs // 2)), self._between(0.8, 1.0))
        return Found(self.p_at(j), found.problems, found.runs)

    def _between(self, start: float, end: float) -> Callable[[float], None]:
        return lambda share: self.told(start + (end - start) * share)

    def _look(self) -> int:
        """Run the coarse grid a little; give the entry of the best p."""
        bench = self.bench
        glance = self._glance()
        gap = float(np.mean([bench.problems[i].table.gap for i in {i for i, _ in glance}]))
        best, least = 0, math.inf
        for j in range(0, self.top + 1, 2):
            p = self.p_at(j)
            if gap * explorations(p, self.horizon) > least:
                break
            affordable = max(4, int(LOOK / 2 / cost(bench.problems[0], p, self.horizon)))
            bench.run([p], glance[:affordable])
            least = bench.mean(self.p_at(best), bench.results[p])  # on the same runs
            if bench.mean(p) < least or j == 0:
                best, least = j, bench.mean(p)
            self.told(0.3 * j / (self.top + 1))
        return best

    def _glance(self) -> list[tuple[int, int]]:
        n = len(self.bench.problems)
        listed = [(i, r) for r in range(math.ceil(GLANCE / n)) for i in range(n)]
        return listed[:GLANCE]

    def _afford(self, j: int) -> Found:
        """Give the problems and runs that the budget allows near entry j, where the user does not say."""
        n = len(self.bench.problems)
        near = self.near(j)
        fewest = FEWEST_DEAR_RUNS if self._is_dear(near) else FEWEST_RUNS
        total = int(np.clip(BUDGET / self._cost_of(near), fewest, MOST_RUNS))
        problems = min(n, max(1, total // 3)) if self.problems is None else n
        runs = max(2, total // problems) if self.runs is None else self.runs
        return Found(self.p_at(j), problems, runs)
