"""All rows weighed as `armlet.evaluate` does, with a reward model that knows only rows before the one it speaks of.

Leaving out a row's own reward is exact cross-fitting where later draws do not depend on it: at p/t. Under the evidence
clock they do, a little; here nothing later is known, so whatever that costs shows in the comparison.
O(n K d^3) time: a solve an arm for every row that taught it something.
"""

from __future__ import annotations

import math

import numpy as np

from armlet.evaluation.estimators import ESTIMATORS, estimate, kernel_constants, t_interval, wilson
from armlet.evaluation.model import RIDGE, RUNNING, contributions, row_weights
from armlet.evaluation.rows import Design, Rows
from armlet.evaluation.targets import prob_of_played
from armlet.kernel import gram, row_features
from armlet.types import Bool, Float64, Int64


def expected(X: Float64, arms: Int64, rewards: Float64, learned: Bool, n_arms: int) -> Float64:
    """Say what is expected of every arm in every row by ridge regression on the rows before it, (n, K).

    Examples
    --------
    >>> flags = np.array([True, True, True])
    >>> expected(np.zeros((3, 1)), np.array([0, 0, 0]), np.ones(3), flags, 2)[:, 0].round(3).tolist()
    [0.0, 0.5, 0.667]
    """
    n = len(X)
    Y = np.column_stack([np.ones(n), X])
    q = np.empty((n, n_arms))
    for arm in range(n_arms):
        taught = np.flatnonzero(learned & (arms == arm))
        theta = _thetas(Y[taught], rewards[taught])
        q[:, arm] = np.einsum("ij,ij->i", Y, theta[np.searchsorted(taught, np.arange(n))])  # strictly earlier rows
    return q


def _thetas(Y: Float64, rewards: Float64) -> Float64:
    """Give what is estimated before the first row, after it, ..., after the last: (n + 1, d + 1)."""
    size = Y.shape[1]
    V, b = np.zeros((len(Y) + 1, size, size)), np.zeros((len(Y) + 1, size))
    V[1:], b[1:] = np.cumsum(Y[:, :, None] * Y[:, None, :], axis=0), np.cumsum(Y * rewards[:, None], axis=0)
    return np.asarray(np.linalg.solve(V + RIDGE * np.eye(size), b[:, :, None])[:, :, 0])


def value_by_past(rows: Rows, law: Float64, level: float) -> tuple[float, float, float]:
    """Give the value of a target that plays by a law, (n, K), and the ends of its interval."""
    design = Design.of(rows)
    q = expected(rows.X, rows.arm, rows.reward, design.learned, law.shape[1])
    pi = prob_of_played(law, rows.arm)
    h = row_weights(contributions(law, pi, design), np.zeros(RUNNING), design)
    played = np.ascontiguousarray(q[np.arange(len(rows)), rows.arm])
    direct, explored = (law * q).sum(axis=1), design.explored.astype(np.float64)
    parts = (pi, direct, rows.reward, design.propensity, design.given, explored, played, h)
    F = row_features(*parts, **kernel_constants(ESTIMATORS.values()))
    own = gram(F, F)
    found = estimate("weighted", own)
    told = (found.value, math.sqrt(found.variance(own)), found.ess, level)
    clicks = bool(np.isin(rows.reward, (0.0, 1.0)).all())
    return (found.value, *(wilson(*told, (0.0, 1.0)) if clicks else t_interval(*told)))
