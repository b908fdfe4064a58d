"""Mirrors kernel/rules/under_way.hpp: decisions under way as rows to come.

n are the rows of every arm that came back, m its decisions that wait for their reward, (K,) each.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from armlet.types import Bool, Float64, Int64

PATIENCE: Final = 5.0
"""Rows that an arm without any may owe before that counts, where bounds do not grow with time.

Such policies never come back to an arm that they have given up. Of five rows to come, none comes by chance once in
exp(5) = 148 times.
"""


def expected_rows(n: Float64, m: Float64, spared: float = 0.0) -> Float64:
    """Return e = rho (n + m) - n, at least 0: the rows that an arm's decisions under way still stand for.

    rho = N / (N + M) is how often decisions of all arms have come back so far, 1 before the first. Where rewards of all
    arms are lost alike, what is under way is mostly lost, and hardly counts; for one arm among others whose rewards
    come, it counts in full. Arms without rows are spared some of theirs.

    Examples
    --------
    >>> expected_rows(np.array([0.0, 99.0]), np.array([1.0, 0.0])).round(2).tolist()
    [0.99, 0.0]
    >>> expected_rows(np.array([10.0, 20.0]), np.array([90.0, 180.0])).tolist()
    [0.0, 0.0]
    """
    rows, waits = float(np.cumsum(n)[-1]), float(np.cumsum(m)[-1])  # from left to right, as the kernel adds
    rho = rows / (rows + waits) if rows > 0.0 else 1.0
    owed = rho * (n + m) - n
    out: Float64 = np.maximum(np.where(n > 0.0, owed, owed - spared), 0.0)
    return out


def shrinkage(n: Float64, expected: Float64) -> Float64:
    """Return sqrt((n + 1) / (n + 1 + e)): how much narrower widths will be once e more rows have come back.

    Examples
    --------
    >>> shrinkage(np.array([0.0, 9.0, 9.0]), np.array([3.0, 30.0, 0.0])).tolist()
    [0.5, 0.5, 1.0]
    """
    rows = n + 1.0
    out: Float64 = np.sqrt(rows / (rows + expected))
    return out


def silent(n: Float64, m: Float64) -> Bool:
    """Return which arms were played without anything having come back yet: they have no estimate.

    Examples
    --------
    >>> silent(np.array([0.0, 0.0, 5.0]), np.array([3.0, 0.0, 3.0])).tolist()
    [True, False, False]
    """
    out: Bool = (m > 0.0) & ~(n > 0.0)
    return out


def skip_silent(scores: Float64, n: Float64, m: Float64, arms: Int64) -> Float64:
    """Return scores, minus infinity for silent arms if any of these arms has rows.

    Examples
    --------
    >>> n, m = np.array([0.0, 5.0]), np.array([3.0, 3.0])
    >>> skip_silent(np.array([0.0, -1.0]), n, m, np.array([0, 1])).tolist()
    [-inf, -1.0]
    """
    if not (n[arms] > 0.0).any():
        return scores
    return np.where(silent(n, m), -np.inf, scores)


def lower_silent(
    scores: Float64, n: Float64, m: Float64, deviations: Float64, arms: Int64, spared: float = 0.0
) -> Float64:
    """Return scores, for silent arms sigma e / (e + 1) less than they are, or than the best known of these arms.

    What is still to come counts as one reward, a deviation lower. Silent arms start at the mean of all rewards: without
    the others' best they would lead wherever a context is a poor one for all arms.

    Examples
    --------
    >>> n, m = np.array([0.0, 60.0]), np.array([4.0, 16.0])
    >>> lower_silent(np.array([0.0, -1.0]), n, m, np.ones(2), np.array([0, 1])).tolist()
    [-1.75, -1.0]
    """
    known, expected = arms[n[arms] > 0.0], expected_rows(n, m, spared)
    start = np.minimum(scores, scores[known].max()) if known.size else scores
    return np.where(silent(n, m), start - deviations * (expected / (expected + 1.0)), scores)
