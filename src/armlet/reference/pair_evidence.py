"""Mirrors kernel/actions/evidence.cpp: which ridges and which weight of items' intercepts the rows make likely.

Rewards are phi'theta + delta_i + noise: slopes of variance sigma^2 / ridge, one ridge each for x, z and their products,
a flat constant, and an intercept an item of variance sigma^2 / kappa. With sigma profiled out, and v, the variance of
all rewards, as one row more, the logarithm of the marginal likelihood is, for sums A~, b~, S~ that items have left,

    -1/2 [log det(A~ + Lambda) - log det Lambda + sum_i log((n_i + kappa) / kappa) + n log(S~ - b~'theta + v)].

Each unknown is taken given the others, as the exponential of the posterior mean of its logarithm over a grid, under a
log-normal prior: ridges about the root of the number of slopes with deviation 1, kappa about 10 with deviation 2. Where
a likelihood is not finite, the unknown is the centre of its prior.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from armlet.reference.elementary import exp, exps, log, logs
from armlet.reference.linear import cholesky, log_determinant
from armlet.reference.ridge_evidence import LOG_RIDGES, tridiagonal, weigh
from armlet.types import Float64, Int64

LOG_KAPPAS: Final = np.arange(-1, 6) * (0.5 * 2.302585092994046)
KAPPAS: Final = np.array([exp(one) for one in LOG_KAPPAS.tolist()])
"""From 0.3 to 300, in half decades."""
FIRST_KAPPA: Final = 10.0


class PairSystem(NamedTuple):
    """Sums in standard units: A (D, D), b (D,) and S about the origin of rewards, without a ridge."""

    A: Float64
    b: Float64
    squares: float
    n: float  # rows, by weight
    variance: float  # of all rewards

    def log_squares(self, explained: float, more: Float64) -> Float64:
        """Return n log(S - explained - more + v)."""
        left = np.maximum((self.squares - explained) - more, 0.0)
        return (max(self.n - 1.0, 0.0) + 1.0) * logs(left + self.variance)


def first_ridge(slopes: int) -> float:
    """Return the centre of the prior of a ridge."""
    return exp(0.5 * log(float(slopes))) if slopes > 0 else 1.0


def likely_ridge(system: PairSystem, ridge: Float64, group: Int64) -> float:
    """Return the likely ridge of a group of terms, given those of the others, (D,).

    The others are eliminated first; what they leave of the group has a tridiagonal form, in which a ridge costs O(D).

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> X = np.column_stack([np.ones(400), rng.normal(size=(400, 30))])
    >>> noise, slopes = rng.normal(size=400), np.linspace(-2.0, 2.0, 30)
    >>> for r in (X[:, 1:] @ slopes + noise, noise):
    ...     system = PairSystem(X.T @ X, X.T @ r, float(r @ r), 400.0, float(r.var()))
    ...     print(f"{likely_ridge(system, np.zeros(31), np.arange(1, 31)):.1g}")
    1
    4e+02
    """
    is_other = np.ones(len(ridge), dtype=np.bool_)
    is_other[group] = False
    others = np.flatnonzero(is_other)
    order = np.concatenate([others, group])
    diagonal = np.where(is_other, ridge, 0.0)[order]
    C, g, explained = eliminate(system.A[np.ix_(order, order)] + np.diag(diagonal), system.b[order], len(others))
    determinants, more = weigh(*tridiagonal(C, g), np.zeros(25))
    off = LOG_RIDGES - 0.5 * log(float(len(group)))
    likely = -0.5 * ((determinants + system.log_squares(explained, more)) + off * off)
    return _mean(first_ridge(len(group)), LOG_RIDGES, likely)


def eliminate(M: Float64, b: Float64, count: int) -> tuple[Float64, Float64, float]:
    """Solve for the first values; return what they leave of M and b, and of the squares what they explain.

    Examples
    --------
    >>> C, g, explained = eliminate(np.array([[4.0, 2.0], [2.0, 5.0]]), np.array([2.0, 3.0]), 1)
    >>> C.tolist(), g.tolist(), explained
    ([[4.0]], [2.0], 1.0)
    """
    L, left, explained, d = np.tril(M), b.copy(), 0.0, len(M)
    for k in range(count):
        inverse = 1.0 / math.sqrt(L[k, k]) if L[k, k] > d * 2.0**-52 * M[k, k] else 0.0
        L[k + 1 :, k] *= inverse
        y = float(left[k] * inverse)
        explained += y * y
        left[k + 1 :] -= y * L[k + 1 :, k]
        L[k + 1 :, k + 1 :] -= np.tril(np.outer(L[k + 1 :, k], L[k + 1 :, k]))
    C = L[count:, count:]
    return np.tril(C) + np.tril(C, -1).T, left[count:], explained


def kappa_likelihood(system: PairSystem, ridge: Float64, n_items: Float64, kappa: float) -> float:
    """Return the logarithm of the marginal likelihood of one kappa, for whose items the system was made."""
    M = system.A + np.diag(ridge)
    L, inverse = cholesky(M)
    y, explained = system.b.copy(), 0.0
    for k in range(len(y)):
        y[k] *= inverse[k]
        explained += float(y[k] * y[k])
        y[k + 1 :] -= y[k] * L[k + 1 :, k]
    items = 0.0
    for n in n_items.tolist():
        items += log((n + kappa) / kappa)
    rest = float(system.log_squares(explained, np.zeros(1))[0])
    off = 0.5 * (log(kappa) - log(FIRST_KAPPA))
    return -0.5 * (((log_determinant(M) + items) + rest) + off * off)


def likely_kappa(likelihoods: Float64) -> float:
    """Return the likely kappa, given the log likelihoods of KAPPAS.

    Examples
    --------
    >>> round(likely_kappa(np.zeros(7)), 6), round(likely_kappa(np.array([0.0, 0.0, 99.0, 0.0, 0.0, 0.0, 0.0])), 6)
    (10.0, 3.162278)
    """
    return _mean(FIRST_KAPPA, LOG_KAPPAS, likelihoods)


def _mean(first: float, values: NDArray[np.floating[Any]], likely: Float64) -> float:
    """Return the exponential of the mean of logarithms; the prior's if some likelihood is not finite."""
    if not np.isfinite(likely).all():
        return first
    weights = exps(likely - likely.max())
    return exp(float(np.cumsum(weights * values)[-1] / np.cumsum(weights)[-1]))
