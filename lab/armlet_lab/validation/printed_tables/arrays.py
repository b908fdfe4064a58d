"""Sums from arrays, as other libraries take them."""

from __future__ import annotations

import numpy as np

from armlet.evaluation.estimators import ESTIMATORS, Estimator, kernel_constants
from armlet.kernel import gram, row_features
from armlet.reference.evaluate import Parts
from armlet.types import Float64, Int64


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
