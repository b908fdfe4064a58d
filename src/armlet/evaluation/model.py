"""A reward model from sums: ridge regression for each arm on (1, x), and what it would say had it not seen a row.

Where exploring ignores the context, explored rows are alike whatever was learned, so a model without row t is
independent of the coin, the arm and the reward of step t: the estimates that use it are cross-fitted exactly, by one
solve an arm. O(n d^2) time for its sums, O(K d^2) memory.

A bandit that plays the best by x' theta is asked in the kernel, where a context is read once for its arm and for both
predictions. What the model says of the arm that was played has no weight where the target would not have played it, so
there it is left out: O(n K d) for a bandit, and d^2 for every row that it would have played.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from armlet.evaluation.rows import Rows
from armlet.evaluation.targets import Law, Played, Target, chance_of_played
from armlet.kernel import predict_played, predict_target, sum_rows, value_greedy
from armlet.types import Bool, Float64

RIDGE: Final = 1.0
"""Constant: one that changes with the number of rows would not be the same without one of them."""


@dataclass(frozen=True, slots=True)
class RewardModel:
    """What is expected of every arm."""

    theta: Float64  # (K, d + 1): for (1, x)
    inverse: Float64  # (K, d + 1, d + 1): of sum y y' + ridge I

    def played(self, rows: Rows, learned: Bool) -> Float64:
        """Say what is expected of the arms played, without the row itself where it was learned, (n,)."""
        return predict_played(self.theta, self.inverse, rows.X, rows.arm, rows.reward, learned)

    def played_where(self, which: Bool, rows: Rows, learned: Bool) -> Float64:
        """Say the same of some rows, and 0 of those that are not asked about."""
        some, out = np.flatnonzero(which), np.zeros(len(rows))
        columns = (column[some] for column in (rows.X, rows.arm, rows.reward, learned))
        out[some] = predict_played(self.theta, self.inverse, *columns)
        return out

    def target(self, rows: Rows, law: Law, played: Float64) -> Float64:
        """Say what is expected of a target, (n,): of the arms played, what `played` said without the row itself."""
        return predict_target(self.theta, self.inverse, rows.X, law, rows.arm, played)


class Opinion(NamedTuple):
    """Of a target, by a reward model: (n,) each."""

    law: Law  # or (n, K)
    pi: Float64  # its probability of the arm that was played
    direct: Float64  # what it is expected to earn, by a model that has not seen the row either
    played: Float64  # what was expected of that arm, without the row itself; 0 where pi is 0


class Said:
    """Opinions about one block.

    Parameters
    ----------
    rows, learned
        Rows that have a reward, and which of them the model has learned from.
    model
        The reward model.
    """

    def __init__(self, rows: Rows, learned: Bool, model: RewardModel) -> None:
        self._rows, self._learned, self._model = rows, learned, model
        self._played: Float64 | None = None  # of all rows, once a target has asked about most

    def of(self, target: Target) -> Opinion:
        """Ask a target."""
        greedy = self._greedy(target) if isinstance(target, Played) else None
        if greedy is not None:
            return greedy
        law = target.law(self._rows)
        pi = chance_of_played(law, self._rows.arm)
        played = self._where(pi > 0.0)
        return Opinion(law, pi, self._model.target(self._rows, law, played), played)

    def _where(self, asked: Bool) -> Float64:
        if self._played is None and 2 * np.count_nonzero(asked) <= len(asked):
            return self._model.played_where(asked, self._rows, self._learned)
        if self._played is None:
            self._played = self._model.played(self._rows, self._learned)
        return self._played

    def _greedy(self, target: Played) -> Opinion | None:
        rows, model = self._rows, self._model
        slopes = target.slopes(rows)
        if slopes is None or not len(rows):
            return None
        best, direct, played = value_greedy(
            *slopes, model.theta, model.inverse, rows.X, rows.arm, rows.reward, self._learned
        )
        if (best < 0).any():  # arms that tie share a row
            return None
        best = best.view(np.int64)
        return Opinion(best, chance_of_played(best, rows.arm), direct, played)


def empty_records(n_arms: int, dim: int) -> Float64:
    """Give the sums of no rows."""
    size = dim + 1
    return np.zeros((n_arms, 3 + size + size * (size + 1) // 2))


def row_sums(rows: Rows, learned: Bool) -> Float64:
    """Give the sums of the rows that a model learns from, arm by arm."""
    n_arms = rows.eligible.shape[1]
    if learned.all():
        return sum_rows(rows.X, rows.arm, rows.reward, n_arms)
    return sum_rows(rows.X, np.where(learned, rows.arm, -1), np.where(learned, rows.reward, 0.0), n_arms)


def combine(parts: Sequence[Float64]) -> Float64:
    """Add arrays entry by entry, exactly rounded: whoever made them, in whatever pieces they came.

    Every addition leaves a remainder that is a float64 too, and so does the addition of remainders. Where what is left
    of those cannot change the sum, it is the rounded one; elsewhere `math.fsum` says.

    Examples
    --------
    >>> combine([np.array([1.0, 0.1]), np.array([1e100, 0.2]), np.array([-1e100, 0.3])])
    array([1. , 0.6])
    """
    if len(parts) == 1:
        return parts[0]
    total, rest, lost = parts[0], np.zeros(parts[0].shape), np.zeros(parts[0].shape)
    for part in parts[1:]:
        total, left = _added(total, part)
        rest, gone = _added(rest, left)
        lost = lost + np.abs(gone)
    slack = np.where(lost == 0.0, 0.0, 2.0 * (lost + np.finfo(np.float64).eps * np.abs(rest)))
    low, high = total + (rest - slack), total + (rest + slack)
    for place in zip(*np.nonzero(~(low == high)), strict=True):  # and where something is no number
        low[place] = math.fsum(float(part[place]) for part in parts)
    return low


def _added(a: Float64, b: Float64) -> tuple[Float64, Float64]:
    """Give a + b, rounded, and what that leaves (Knuth)."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


def solve(records: Float64, ridge: float = RIDGE) -> RewardModel:
    """Solve (A + ridge I) theta = b for every arm."""
    n_arms = len(records)
    size = round((math.sqrt(9 + 8 * (records.shape[1] - 3)) - 3) / 2)
    upper = np.triu_indices(size)
    V = np.zeros((n_arms, size, size))
    V[:, upper[0], upper[1]] = records[:, 3 + size :]
    V[:, upper[1], upper[0]] = records[:, 3 + size :]
    V += ridge * np.eye(size)
    b = records[:, 3 : 3 + size]
    inverse = np.ascontiguousarray(np.linalg.inv(V))
    return RewardModel(np.ascontiguousarray(np.linalg.solve(V, b[:, :, None])[:, :, 0]), inverse)
