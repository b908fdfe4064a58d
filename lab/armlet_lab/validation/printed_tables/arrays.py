"""Logs and sums from arrays, as other libraries take them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from armlet.evaluation.estimators import ESTIMATORS, Estimator, kernel_constants
from armlet.evaluation.rows import BLOCK, Blocks, Rows, unknown_columns
from armlet.kernel import gram, row_features
from armlet.reference.evaluate import Parts
from armlet.types import Arm, Bool, Float64, Int64


class ArrayBlocks(Blocks):
    """Decisions of another system as arrays, cut into blocks; nothing is copied but what a block takes.

    Parameters
    ----------
    X, arms, rewards, propensities
        (n, d), (n,) indices of labels, (n,) and (n,).
    labels
        Of the arms.
    explored, rate, given
        (n,): whether a step explored, its exploration probability, and the probability of its arm given exploring;
        not known if left out.

    Examples
    --------
    >>> log = ArrayBlocks(np.ones((3, 1)), np.array([0, 1, 1]), np.ones(3), np.full(3, 0.5), labels=("a", "b"))
    >>> log.n, log.dim, [len(rows) for rows in log]
    (3, 1, [3])
    """

    def __init__(
        self,
        X: Float64,
        arms: Int64,
        rewards: Float64,
        propensities: Float64,
        *,
        labels: Sequence[Arm],
        explored: Bool | None = None,
        rate: Float64 | None = None,
        given: Float64 | None = None,
    ) -> None:
        super().__init__({"dim": X.shape[1], "arms": list(labels), "objective": "max", "policy": None})
        self.arms, self.n = tuple(labels), len(X)
        # int64 under one name, however C calls it
        arms = arms.view(np.int64) if arms.dtype == np.int64 else arms.astype(np.int64)
        self._columns: dict[str, Any] = {"X": X, "arm": arms, "reward": rewards, "propensity": propensities}
        known = {"explored": None if explored is None else explored.astype(np.int8), "exploration_rate": rate}
        known["exploration_propensity"] = given
        self._columns |= {name: column for name, column in known.items() if column is not None}
        self._unknown = unknown_columns(min(self.n, BLOCK), len(self.arms))

    def __len__(self) -> int:
        return -(-self.n // BLOCK)

    def __getitem__(self, block: int) -> Rows:
        start, end = block * BLOCK, min((block + 1) * BLOCK, self.n)
        columns = {name: column[: end - start] for name, column in self._unknown.items()}
        columns |= {name: column[start:end] for name, column in self._columns.items()}
        return Rows(t=np.arange(start, end, dtype=np.int64) + 1, probabilities=None, **columns)


def gram_with(
    arms: Int64, rewards: Float64, propensities: Float64, pi: Float64, q: Float64, *estimators: Estimator
) -> Float64:
    """Return the sums that estimators read, for a target and a reward model given row by row.

    Parameters
    ----------
    arms, rewards, propensities
        (n,): the arm played, its reward and its propensity.
    pi, q
        (n, K): the target's probabilities, and the expected rewards.
    estimators
        Those whose constants are not the usual ones.

    Examples
    --------
    >>> pi, q = np.array([[1.0, 0.0], [0.0, 1.0]]), np.full((2, 2), 0.5)
    >>> sums = gram_with(np.array([0, 0]), np.array([1.0, 0.0]), np.array([0.5, 0.5]), pi, q)
    >>> from armlet.evaluation.estimators import estimate
    >>> estimate("ips", sums).value, estimate("dr", sums).value
    (1.0, 1.0)
    """
    at = np.arange(len(arms))
    mine, played = np.ascontiguousarray(pi[at, arms]), np.ascontiguousarray(q[at, arms])
    direct, ones = (pi * q).sum(axis=1), np.ones(len(arms))
    parts = Parts(mine, direct, rewards, propensities, propensities, ones, played, ones)
    F = row_features(*parts, **kernel_constants((*ESTIMATORS.values(), *estimators)))
    return gram(F, F)
