"""How much a row weighs among all rows, said before its arm is drawn: h_t = 1 / E_t[w^2].

Late rows of a log explore seldom, so that what they say of an arm which was not best is said with a heavy weight w.
Given the past and the rate, E_t[w^2] = g / (1 - rate + rate/m) + rest / rate, where g is how often the target plays
what the log exploits, and rest the sum of pi(a|x)^2 / c(a) over the other arms, c being the chance given exploring.
Both are running means over *earlier* rows: weights that knew the arm of their own row would bias what they weigh.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from armlet.core.types import Float64
from armlet.evaluation.basis import Basis
from armlet.evaluation.targets import Law

SUMS: Final = 5
"""Explored rows and their sum of pi^2/c^2; exploited rows and their sums of pi^2 and of pi^2/c."""


def contributions(law: Law, pi: Float64, basis: Basis) -> Float64:
    """Give what each row adds to the running sums, (n, 5)."""
    m, c, x = basis.n_eligible, basis.given, basis.explored
    squares = np.ones(len(pi)) if law.ndim == 1 else np.einsum("ij,ij->i", law, law)
    even = c == 1.0 / m
    spread = np.where(even, m * squares, (pi / c) ** 2)  # where all arms are alike, the mean over arms is known
    out = np.zeros((len(pi), SUMS))
    out[:, 0] = x
    out[:, 1] = np.where(x, spread, 0.0)
    out[:, 2] = ~x
    out[:, 3] = np.where(x, 0.0, pi * pi)
    out[:, 4] = np.where(x, 0.0, pi * pi / c)
    return out


def row_weights(added: Float64, start: Float64, basis: Basis) -> Float64:
    """Give h for every row, (n,), from the sums of all rows before the first, (5,).

    Examples
    --------
    >>> ones = np.ones(3)
    >>> basis = Basis(ones / 2, ones / 2, ones, ones == 1, 2 * ones, ones == 1, ones == 1)
    >>> pi = np.array([1.0, 0.0, 1.0])
    >>> row_weights(contributions(np.array([0, 0, 0]), pi, basis), np.zeros(5), basis)
    array([0.5, 0.5, 0.5])
    """
    before = np.cumsum(np.vstack([start, added]), axis=0)[:-1]
    explored, spread, exploited, g, played = before.T
    m, rate = basis.n_eligible, basis.rate
    spread = (spread + m) / (explored + 1.0)
    g = (g + 0.5) / (exploited + 1.0)
    played = (played + 0.5 * m) / (exploited + 1.0)
    rest = np.maximum(spread - played, 0.5 * m / (exploited + 1.0))
    with np.errstate(divide="ignore"):
        mixed = g / (1.0 - rate + rate / m) + rest / rate  # infinite, and so without weight, where nothing is explored
    return np.where(basis.known, 1.0 / np.where(rate >= 1.0, spread, mixed), 0.0)
