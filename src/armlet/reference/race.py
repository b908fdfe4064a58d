"""Mirrors kernel/evaluate/race.cpp and agreement.cpp: the arms of many linear policies and dials, and sums over rows.

Scores are summed over features in their order, dials over outcomes, and sums over rows one after the other.
"""

from __future__ import annotations

import numpy as np

from armlet.types import Bool, Float64, Int64


def dial_arms(X: Float64, eligible: Bool, thetas: Float64, dials: Float64) -> Int64:
    """Return the arm that each policy plays under each dial in each row, (J, D, n): the first of the best.

    Parameters
    ----------
    X
        Contexts (n, d).
    eligible
        (n, K).
    thetas
        (J, m, K, d): policy j scores arm a of outcome o with thetas[j, o, a] @ x.
    dials
        (D, m): dial k plays the highest sum over o of dials[k, o] times that.

    Examples
    --------
    >>> thetas = np.array([[[[1.0], [0.0]], [[3.0], [1.0]]]])  # quality and cost of two arms
    >>> dial_arms(np.ones((2, 1)), np.array([[True, True], [True, False]]), thetas, np.array([[1.0, 0.0], [1.0, -1.0]]))
    array([[[0, 0],
            [1, 0]]])
    """
    J, m, K, d = thetas.shape
    arms = np.zeros((J, len(dials), len(X)), dtype=np.int64)
    for j, theta in enumerate(thetas):
        scores = np.zeros((m, K, len(X)))
        for f in range(d):
            scores = scores + X[:, f] * theta[:, :, f, np.newaxis]
        for k, dial in enumerate(dials):
            sums = np.zeros((K, len(X)))
            for o in range(m):
                sums = sums + dial[o] * scores[o]
            arms[j, k] = np.where(eligible.T, sums, -np.inf).argmax(axis=0)
    return arms


def sum_agreeing(X: Float64, eligible: Bool, arms: Int64, columns: Float64, thetas: Float64, dials: Float64) -> Float64:
    """Return sums of columns (n, q) over the rows where a policy under a dial plays the played arm, (J, D, q)."""
    agrees = dial_arms(X, eligible, thetas, dials) == arms
    sums = np.zeros((*agrees.shape[:2], columns.shape[1]))
    for i, row in enumerate(columns):
        sums[agrees[:, :, i]] += row
    return sums


def race(
    X: Float64,
    eligible: Bool,
    arms: Int64,
    below: Float64,
    above: Float64,
    certain: Bool,
    thetas: Float64,
    before: int,
    sums: Float64,
) -> tuple[Float64, Bool]:
    """Return what rows add to the sums (4, J) of policies with one outcome, and whether each plays all certain arms."""
    agrees = dial_arms(X, eligible, thetas, np.ones((1, 1)))[:, 0] == arms
    out = sums.copy()
    for i in range(len(X)):
        for side, value in ((out[:2], below[i]), (out[2:], above[i])):
            X_i = np.where(agrees[:, i], value, 0.0)
            guess = np.minimum((side[0] + 0.5) / (before + i + 1.0), 1.0)
            side[1] += (X_i - guess) ** 2
            side[0] += X_i
    return out, np.asarray(agrees[:, certain].all(axis=1))
