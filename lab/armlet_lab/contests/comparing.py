"""Who is better on one table: the pilot's test, and a stricter one.

The usual test of the bake-off takes all rows of all shuffles for independent. They are not: a shuffle plays the rows
that another played, and a run that was led astray errs in many rows. So it finds too many winners.

The stricter test looks at differences, row by row within the same order. Its variance is that between rows, each
averaged over its shuffles, plus that between shuffles: what is common to a row and what is common to a run are both
counted, and chance that belongs to neither is counted twice. It asks for Student's t with one degree fewer than there
are shuffles. It errs to the side of a tie; with fewer than three shuffles it hardly ever finds a winner.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from armlet.inference.intervals import Z
from armlet.types import Float64, Int64

Test: TypeAlias = Literal["z", "strict"]

T: Final = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""The 97.5 % quantile of Student's t for 1, 2, ... degrees of freedom; beyond, the last, which errs to a tie."""


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """What one contender did on one table."""

    mistakes: tuple[Float64, ...]  # for every shuffle, (n,): 1 where it was wrong, in the order of play
    orders: tuple[Int64, ...]  # for every shuffle, (n,): which rows these were

    @property
    def errors(self) -> Float64:
        """The share of mistakes in every shuffle."""
        return np.array([each.mean() for each in self.mistakes])

    @property
    def error(self) -> float:
        """The share of mistakes."""
        return float(self.errors.mean())


def z_score(ours: Runs, theirs: Runs) -> float:
    """Return how far apart two error rates are, every row of every shuffle counted as independent.

    Examples
    --------
    >>> rows = (np.arange(100),)
    >>> few, many = (Runs((np.repeat([1.0, 0.0], [n, 100 - n]),), rows) for n in (20, 40))
    >>> round(z_score(few, many), 2)
    -3.16
    """
    n = sum(map(len, ours.mistakes))
    a, b = ours.error, theirs.error
    return _ratio(a - b, (a * (1 - a) + b * (1 - b)) / n)


def strict_score(ours: Runs, theirs: Runs) -> float:
    """Return how far apart two error rates are, as the stricter test counts.

    Examples
    --------
    >>> rows = (np.arange(4), np.arange(4))
    >>> all_wrong, all_right = (Runs((np.full(4, wrong), np.full(4, wrong)), rows) for wrong in (1.0, 0.0))
    >>> strict_score(all_wrong, all_right)
    inf
    """
    differences = [mine - other for mine, other in zip(ours.mistakes, theirs.mistakes, strict=True)]
    shuffles, total = len(differences), sum(map(len, differences))
    mean = float(np.concatenate(differences).mean())
    if shuffles < 2:
        return 0.0  # one run says nothing of the next
    residuals = [each - mean for each in differences]
    n_rows = max(int(order.max()) for order in ours.orders) + 1
    rows = np.zeros(n_rows)
    for order, each in zip(ours.orders, residuals, strict=True):
        np.add.at(rows, order, each)
    between_rows = float((rows**2).sum()) / total**2
    means = np.array([each.mean() for each in differences])
    between_shuffles = float(means.var(ddof=1)) / shuffles
    return _ratio(mean, between_rows + between_shuffles)


def winner(ours: Runs, theirs: Runs, test: Test) -> int:
    """Return 1 if we are better, -1 if they are, 0 if this test cannot tell at 5 %."""
    if test == "z":
        score, bound = z_score(ours, theirs), Z
    else:
        score, bound = strict_score(ours, theirs), _t(len(ours.mistakes) - 1)
    return 0 if abs(score) <= bound else 1 if score < 0 else -1


def tally(ours: Sequence[Runs], theirs: Sequence[Runs], test: Test) -> tuple[int, int]:
    """Count tables won and lost."""
    found = [winner(mine, other, test) for mine, other in zip(ours, theirs, strict=True)]
    return found.count(1), found.count(-1)


def _t(freedom: int) -> float:
    return math.inf if freedom < 1 else T[freedom - 1] if freedom <= len(T) else T[-1]


def _ratio(mean: float, variance: float) -> float:
    if variance > 0:
        return mean / math.sqrt(variance)
    return 0.0 if mean == 0 else math.copysign(math.inf, mean)
