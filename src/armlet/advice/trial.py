"""The runs behind an advice: every p of a grid on the same problems with the same seeds.

Whatever the advice says of any p is read off these runs, so its numbers agree with each other. O(grid runs C) numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from armlet.advice.spread import Sample, chance_within
from armlet.types import Float64, Int64

OWN: Final = (0.0, 0.1, 0.25, 0.5, 1.0)  # how much a problem's own runs count in the choice of its own p
CLOSE: Final = 1.1  # times the least regret: as good, for all that matters


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Runs with every p of a grid."""

    entries: tuple[int, ...]  # places on the grid K 2^(j/2), rising
    ps: tuple[float, ...]
    steps: Int64  # (C,): checkpoints, the last of them the horizon
    curves: Float64  # (grid, problems, runs, 3, C): regret, the part of it paid exploring, explored steps

    @property
    def problems(self) -> int:
        """How many problems were played."""
        return int(self.curves.shape[1])

    @property
    def runs(self) -> int:
        """How often each p played each problem."""
        return int(self.curves.shape[2])

    @property
    def regret(self) -> Float64:
        """Regret at the horizon, (grid, problems, runs)."""
        return self.curves[..., 0, -1]

    @property
    def means(self) -> Float64:
        """Mean regret of each p, (grid,)."""
        means: Float64 = self.regret.mean(axis=(1, 2))
        return means

    @property
    def best(self) -> int:
        """The place of the p of least mean regret."""
        return int(self.means.argmin())

    def place(self, halves: int) -> int | None:
        """Give the place of the best p times sqrt 2 to a power, or None if it was not tried."""
        entry = self.entries[self.best] + halves
        return self.entries.index(entry) if entry in self.entries else None

    def sample(self, place: int) -> Sample:
        """Give the regrets of one p, with their problems."""
        return Sample(self.regret[place].ravel(), np.repeat(np.arange(self.problems), self.runs))

    def close(self) -> tuple[float, float]:
        """Give the ends of the stretch round the best p in which every p is close to it."""
        good = self.means <= CLOSE * self.means[self.best]
        low = high = self.best
        while low > 0 and good[low - 1]:
            low -= 1
        while high + 1 < len(good) and good[high + 1]:
            high += 1
        return self.ps[low], self.ps[high]

    def chance(self, rng: np.random.Generator) -> float:
        """Give the bootstrap probability that the best p is close to the best of other such problems."""
        rows = np.stack([self.sample(place).independent() for place in range(len(self.ps))])
        return chance_within(rows, self.best, CLOSE, rng)

    def saving(self) -> float:
        """Estimate how much less the mean regret would be if every problem had its own p of the grid.

        That p is chosen on half of a problem's runs and judged on the others, and the other way round: the least of
        several noisy means would flatter it. How far to trust a problem's own few runs is tried out too.
        """
        if self.runs < 2:
            return 0.0
        even, odd = self.regret[:, :, ::2].mean(axis=2), self.regret[:, :, 1::2].mean(axis=2)
        shared = [(_judge(even, odd, own) + _judge(odd, even, own)) / 2 for own in OWN]
        return min(float(self.means[self.best]), max(0.0, shared[0] - min(shared)))


def _judge(choose: Float64, judge: Float64, own: float) -> float:
    """Choose by a problem's own runs, pulled towards all problems' average; judge by other runs."""
    score = own * choose + (1 - own) * choose.mean(axis=1, keepdims=True)
    return float(judge[score.argmin(axis=0), np.arange(choose.shape[1])].mean())
