"""Whether the environment stayed the same: contexts, and rewards of explored rows by arm, first half against second.

One pass: sums are kept for at most `PIECES` stretches of the log; when there are more, neighbours are added up.
O(PIECES (d + K)) memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from armlet.evaluation.checks.check import Check, Word, tail
from armlet.evaluation.rows import Rows
from armlet.kernel import sum_moments
from armlet.types import Arm, Float64, Int64

PIECES: Final = 64
A_BLOCK: Final = 16  # pieces that a block is cut into
ALPHA: Final = 1e-4
FEWEST: Final = 20  # explored rows of an arm in each half


class Drift:
    """Sums over stretches of a log.

    Parameters
    ----------
    dim, n_arms
        d and K.
    """

    def __init__(self, dim: int, n_arms: int) -> None:
        self._dim, self._n_arms = dim, n_arms
        self._pieces: list[Float64] = []  # n, S x, S x^2, and by arm the rows explored, S r, S r^2
        self._origin: Float64 | None = None

    def add(self, rows: Rows) -> None:
        """Take a block, in the order of the log."""
        if not len(rows):
            return
        if self._origin is None:
            self._origin = rows.X[0].copy()
        starts = np.unique(np.linspace(0, len(rows), A_BLOCK, endpoint=False).astype(np.int64))
        ends, paid = np.append(starts[1:], len(rows)), self._rewards(rows, starts)
        for start, end, rewards in zip(starts, ends, paid, strict=True):
            moments = sum_moments(rows.X[start:end], self._origin).ravel()
            self._pieces.append(np.concatenate([[end - start], moments, rewards]))
        while len(self._pieces) > PIECES:
            odd = self._pieces[len(self._pieces) // 2 * 2 :]
            pairs = zip(self._pieces[::2], self._pieces[1::2], strict=False)
            self._pieces = [first + second for first, second in pairs] + odd

    def _rewards(self, rows: Rows, starts: Int64) -> Float64:
        used = (rows.explored == 1) & rows.rewarded
        piece = np.searchsorted(starts, np.flatnonzero(used), side="right") - 1
        place = piece * self._n_arms + rows.arm[used]
        reward, size = rows.reward[used], len(starts) * self._n_arms
        sums = [np.bincount(place, weights=reward**power, minlength=size) for power in (0, 1, 2)]
        return np.concatenate([each.reshape(len(starts), self._n_arms) for each in sums], axis=1)

    def found(self, arms: Sequence[Arm], features: Sequence[str] | None) -> list[Check]:
        """Say what came of it."""
        if len(self._pieces) < 2:
            return []
        whole = np.array(self._pieces)
        half = int(np.abs(np.cumsum(whole[:, 0])[:-1] - whole[:, 0].sum() / 2).argmin()) + 1
        first, second = whole[:half].sum(axis=0), whole[half:].sum(axis=0)
        return [self._contexts(first, second, features), self._paid(first, second, arms)]

    def _contexts(self, first: Float64, second: Float64, features: Sequence[str] | None) -> Check:
        d = self._dim
        moments = [(np.full(d, one[0]), one[1 : 1 + d], one[1 + d : 1 + 2 * d]) for one in (first, second)]
        place, p = _most_apart(*moments, fewest=FEWEST)
        name = f"value {place + 1} of the contexts" if features is None else features[place]
        if p < ALPHA:
            told = f"Contexts drift: {name} has another mean in the second half. Values are of the whole log."
        else:
            told = "Contexts of the second half look like those of the first."
        word = Word.WARNING if p < ALPHA else Word.FINE
        return Check(name="drift of contexts", word=word, sentence=told, number=p, unit="p-value")

    def _paid(self, first: Float64, second: Float64, arms: Sequence[Arm]) -> Check:
        moments = [tuple(one[1 + 2 * self._dim :].reshape(3, self._n_arms)) for one in (first, second)]
        place, p = _most_apart(*moments, fewest=FEWEST)
        if math.isnan(p):
            told = f"No arm has {FEWEST} explored rows with rewards in either half, so it cannot be seen."
        elif p < ALPHA:
            told = (
                f"Rewards drift: {arms[place]} pays differently in the second half. A value is one over the whole log."
            )
        else:
            told = "Explored rows of every arm pay in the second half what they paid in the first."
        word = Word.WARNING if p < ALPHA else Word.FINE
        return Check(name="drift of rewards", word=word, sentence=told, number=p, unit="p-value")


def _most_apart(first: Sequence[Float64], second: Sequence[Float64], *, fewest: int) -> tuple[int, float]:
    """Give which of several means differs most between two samples, and how likely that is for the most extreme one.

    Samples are (n, sum, sum of squares); Welch's t, and what a normal would have to be to be as unlikely.
    """
    counts = np.minimum(first[0], second[0])
    used = np.flatnonzero(counts >= fewest)
    if not used.size:
        return 0, math.nan
    (m1, v1), (m2, v2) = (_moments(*(part[used] for part in sample)) for sample in (first, second))
    spread = np.sqrt(v1 + v2)
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.where(spread > 0, np.abs(m1 - m2) / spread, np.where(np.abs(m1 - m2) > 1e-9, np.inf, 0.0))
    nu = counts[used] - 1.0
    t = np.minimum(t, 1e6)
    z = (8 * nu + 1) / (8 * nu + 3) * np.sqrt(nu * np.log1p(t * t / nu))  # Wallace's normal for Student's t
    top = int(z.argmax())
    return int(used[top]), min(1.0, len(used) * tail(float(z[top])))


def _moments(n: Float64, total: Float64, squares: Float64) -> tuple[Float64, Float64]:
    """Give means, and the variances of means."""
    mean = total / n
    return mean, np.maximum(squares / n - mean * mean, 0.0) / (n - 1)
