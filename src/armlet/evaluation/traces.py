"""How a value came about: its weights by size, and what it was after so many rows. Sums, kept at a few looks."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from armlet.evaluation.plots import Path, Weighed
from armlet.inference.intervals import Interval
from armlet.inference.sequences import MeanSequence
from armlet.inputs.settings import Range
from armlet.types import Float64

FIRST: Final = 8  # rows at the first look
STEP: Final = 1.35  # times as many rows from one look to the next
LOWEST: Final = -40  # powers of 2 that are told apart
BINS: Final = 100


class Spread:
    """Rows by the size of their weight.

    Examples
    --------
    >>> spread = Spread()
    >>> spread.add(np.array([0.0, 1.0, 1.5, 4.0]))
    >>> told = spread.found("new")
    >>> told.zeros, told.powers.tolist(), told.rows.tolist()
    (1, [0, 1, 2], [2, 0, 1])
    """

    def __init__(self) -> None:
        self._rows, self._zeros = np.zeros(BINS, dtype=np.int64), 0

    def add(self, weights: Float64) -> None:
        """Take the weights of a block."""
        positive = weights[weights > 0]
        self._zeros += len(weights) - len(positive)
        power = np.frexp(positive)[1] - 1  # 2^power <= weight < 2^(power + 1)
        self._rows += np.bincount(np.clip(power - LOWEST, 0, BINS - 1), minlength=BINS)

    def found(self, name: str) -> Weighed:
        """Give the bins from the lightest row to the heaviest."""
        there = np.flatnonzero(self._rows)
        bins = np.arange(there[0], there[-1] + 1) if there.size else there
        return Weighed(name=name, powers=bins + LOWEST, rows=self._rows[bins], zeros=self._zeros)


class Running:
    """The weighted mean reward of a policy at looks that are `STEP` times as far each, and its sequence there.

    Parameters
    ----------
    reward_range
        That was declared; without it there is no sequence.

    Examples
    --------
    >>> running = Running((0.0, 1.0))
    >>> running.add(np.tile([0.0, 1.0], 50), np.ones(100))
    >>> path = running.found("new")
    >>> path.rows[-1], path.value[-1], bool(path.low[-1] < 0.5 < path.high[-1])
    (np.int64(100), np.float64(0.5), True)
    """

    def __init__(self, reward_range: Range | None) -> None:
        self._sequence = None if reward_range is None else MeanSequence(reward_range)
        self._looks: list[tuple[int, float, float, float]] = []
        self._sums, self._n, self._next = np.zeros(2), 0, FIRST

    def add(self, rewards: Float64, weights: Float64) -> None:
        """Take rows with rewards, in their order."""
        start = 0
        while start < len(rewards):
            end = min(len(rewards), start + self._next - self._n)
            self._take(rewards[start:end], weights[start:end])
            if self._n == self._next:
                self._look()
                self._next = math.ceil(STEP * self._next)
            start = end

    def _take(self, rewards: Float64, weights: Float64) -> None:
        self._n += len(rewards)
        self._sums += weights @ rewards, weights.sum()
        if self._sequence is not None:
            self._sequence.add(rewards, weights=weights)

    def _look(self) -> None:
        total, weight = self._sums
        value = total / weight if weight > 0 else math.nan
        ends = Interval(math.nan, math.nan) if self._sequence is None else self._sequence.interval()
        self._looks.append((self._n, value, *ends))

    def found(self, name: str) -> Path:
        """Give all looks, the last of them after the last row."""
        if self._n and (not self._looks or self._looks[-1][0] != self._n):
            self._look()
        looks = np.array(self._looks, dtype=np.float64).reshape(-1, 4)
        return Path(name=name, rows=looks[:, 0].astype(np.int64), value=looks[:, 1], low=looks[:, 2], high=looks[:, 3])
