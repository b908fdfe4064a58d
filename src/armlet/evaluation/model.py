"""A reward model from sums: ridge regression for each arm on (1, x), and what it would say had it not seen a row.

Where exploring ignores the context, explored rows are alike whatever was learned, so a model without row t is
independent of the coin, the arm and the reward of step t: the estimates that use it are cross-fitted exactly, by one
solve an arm. O(n d^2) time for its sums, O(K d^2) memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from armlet.core.kernel import add_rows, predict_played, predict_target
from armlet.core.types import Bool, Float64
from armlet.evaluation.rows import Rows
from armlet.evaluation.targets import Law

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

    def target(self, X: Float64, law: Law) -> Float64:
        """Say what is expected of a target, (n,)."""
        return predict_target(self.theta, self.inverse, X, law)


def empty_records(n_arms: int, dim: int) -> Float64:
    """Give the sums of no rows."""
    size = dim + 1
    return np.zeros((n_arms, 3 + size + size * (size + 1) // 2))


def row_sums(rows: Rows, learned: Bool) -> Float64:
    """Give the sums of the rows that a model learns from, arm by arm."""
    records = empty_records(rows.eligible.shape[1], rows.X.shape[1])
    rewards = np.where(learned, rows.reward, 0.0)
    add_rows(records, rows.X, np.where(learned, rows.arm, -1), rewards, None, np.zeros(rows.X.shape[1] + 1))
    return records


def combine(parts: Sequence[Float64]) -> Float64:
    """Add arrays entry by entry, exactly rounded: whoever made them, in whatever pieces they came."""
    if len(parts) == 1:
        return parts[0]
    stacked = np.stack(parts).reshape(len(parts), -1)
    return np.array([math.fsum(column) for column in stacked.T.tolist()]).reshape(parts[0].shape)


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
