"""Rows that lie in memory, as a log to be evaluated or replayed; and estimates with a reward model that is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from armlet.evaluation.rows import BLOCK, Blocks, Rows
from armlet.kernel import gram, row_features
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
        (n,): whether a step explored, how likely that was, and the chance of its arm given that it does; not known if
        left out.

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
        self._arm = arms.view(np.int64) if arms.dtype == np.int64 else arms.astype(np.int64)  # whatever C calls it
        self._columns = (X, rewards, propensities)
        self._told: dict[str, Any] = {"rate": rate, "given_exploring": given}
        if explored is not None:
            self._told["explored"] = explored.astype(np.int8)
        self._alike = _alike(min(self.n, BLOCK), len(self.arms))

    def __len__(self) -> int:
        return -(-self.n // BLOCK)

    def __getitem__(self, block: int) -> Rows:
        where = slice(block * BLOCK, min((block + 1) * BLOCK, self.n))
        X, rewards, chances = (column[where] for column in self._columns)
        n = len(X)
        told: dict[str, Any] = {name: column[where] for name, column in self._told.items() if column is not None}
        return Rows(
            t=np.arange(where.start, where.start + n, dtype=np.int64) + 1,
            X=X,
            arm=self._arm[where],
            reward=rewards,
            propensity=chances,
            probabilities=None,
            **({name: column[:n] for name, column in self._alike.items()} | told),
        )


def _alike(n: int, n_arms: int) -> dict[str, Any]:
    """Give the columns of which every row says the same, once for all blocks."""
    unknown, silent = np.full(n, np.nan), np.full(n, -1, dtype=np.int8)
    return {
        "explored": silent,
        "greedy": silent,
        "rate": unknown,
        "given_exploring": unknown,
        "smallest": unknown,
        "turn": np.zeros(n, dtype=np.bool_),
        "eligible": np.ones((n, n_arms), dtype=np.bool_),
        "weight": np.ones(n),
    }


def gram_with(
    arms: Int64,
    rewards: Float64,
    chances: Float64,
    pi: Float64,
    q: Float64,
    *,
    most: float = np.inf,
    shrink: float = 1.0,
) -> Float64:
    """Give the sums that `estimate` reads, for a target and a reward model that are given row by row.

    Parameters
    ----------
    arms, rewards, chances
        (n,): what was played, what it paid, and its propensity.
    pi, q
        (n, K): the target's probabilities, and the rewards that are expected.
    most, shrink
        The constants of Switch-DR and DRos.

    Examples
    --------
    >>> from armlet.evaluation.estimators import estimate
    >>> pi, q = np.array([[1.0, 0.0], [0.0, 1.0]]), np.full((2, 2), 0.5)
    >>> sums = gram_with(np.array([0, 0]), np.array([1.0, 0.0]), np.array([0.5, 0.5]), pi, q)
    >>> estimate("ips", sums).value, estimate("dr", sums).value
    (1.0, 1.0)
    """
    at = np.arange(len(arms))
    chance, played = np.ascontiguousarray(pi[at, arms]), np.ascontiguousarray(q[at, arms])
    direct, ones = (pi * q).sum(axis=1), np.ones(len(arms))
    F = row_features(chance, direct, rewards, chances, chances, ones, played, ones, most, shrink)
    return gram(F, F)
