"""How much a row weighs among all rows, said before its arm is drawn: h_t = 1 / E_t[w^2].

Late rows of a log explore seldom, so that what they say of an arm which was not best is said with a heavy weight w.
Given the past and the rate, E_t[w^2] = g / (1 - rate + rate/m) + rest / rate, where g is how often the target plays
what the log exploits, and rest the sum of pi(a|x)^2 / c(a) over the other arms, c being the chance given exploring.
Both are running means over *earlier* rows: weights that knew the arm of their own row would bias what they weigh.
So would weights that knew which arms were eligible in their row, since a target is worth more where more may be played,
and the rate of exploring goes with them. Where that differs, rate and m are means over earlier rows too, late rows
first in weight: the rate falls.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from armlet.evaluation.basis import Basis
from armlet.evaluation.targets import Law
from armlet.types import Float64

SUMS: Final = 9
"""Explored rows and their sum of pi^2/c^2; exploited rows and their sums of pi^2 and of pi^2/c. Where eligible arms
differ also the rows, their sum of m, and of t^8 and t^8 times the rate, where t is the step."""


def contributions(law: Law, pi: Float64, basis: Basis) -> Float64:
    """Give what each row adds to the running sums, (n, SUMS)."""
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
    if not basis.whole:
        late = (basis.step**2) ** 4
        out[:, 5:] = np.column_stack([np.ones(len(pi)), m, late, late * basis.rate])
    return out


def row_weights(added: Float64, start: Float64, basis: Basis) -> Float64:
    """Give h for every row, (n,), from the sums of all rows before the first, (SUMS,).

    Examples
    --------
    >>> ones = np.ones(3)
    >>> basis = Basis(ones / 2, ones / 2, ones, ones == 1, 2 * ones, ones == 1, ones == 1, ones, whole=True)
    >>> pi = np.array([1.0, 0.0, 1.0])
    >>> row_weights(contributions(np.array([0, 0, 0]), pi, basis), np.zeros(SUMS), basis)
    array([0.5, 0.5, 0.5])
    """
    before = np.cumsum(np.vstack([start, added]), axis=0)[:-1]
    explored, spread, exploited, g, played = before.T[:5]
    m, rate = (basis.n_eligible, basis.rate) if basis.whole else _usual(before.T[5:], basis)
    spread = (spread + m) / (explored + 1.0)
    g = (g + 0.5) / (exploited + 1.0)
    played = (played + 0.5 * m) / (exploited + 1.0)
    rest = np.maximum(spread - played, 0.5 * m / (exploited + 1.0))
    with np.errstate(divide="ignore"):
        mixed = g / (1.0 - rate + rate / m) + rest / rate  # infinite, and so without weight, where nothing is explored
    return np.where(basis.known, 1.0 / np.where(rate >= 1.0, spread, mixed), 0.0)


def _usual(before: Float64, basis: Basis) -> tuple[Float64, Float64]:
    """Give what m and the rate usually were before each row; its own for the first, which has none before it."""
    rows, m, late, rates = before
    first = rows == 0.0
    with np.errstate(invalid="ignore"):
        return np.where(first, basis.n_eligible, m / rows), np.where(first, basis.rate, rates / late)
