"""Mirrors kernel/state/ridge_evidence.cpp and kernel/linear/tridiagonal.cpp: the ridge that the sums make likely.

Rewards of an arm are taken to be a constant, slopes of variance sigma^2 / ridge in standard units, and noise of
variance sigma^2. With the constant left out of both sides, what remains of the sums are C, g and S (`leftover`), and
the logarithm of the marginal likelihood of all arms is

    -1/2 sum_a log det(I + C_a / ridge) - 1/2 (sum_a (n_a - 1) + 1) log(sum_a (S_a - g_a' (C_a + ridge)^-1 g_a) + v),

sigma profiled out, v the variance of all rewards as one row more. To it comes the prior, log ridge normal about
log(number of slopes) / 2 with deviation 1. The ridge is the exponential of the posterior mean of log ridge, over 25
ridges from 1 to 10^6. A tridiagonal form makes each of them O(d); with few rows C has low rank, and the form is that of
its factors. One row tells nothing, and where a likelihood is not finite the prior speaks. Every operation is in the
order of the kernel's, so both agree to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

import numpy as np

from armlet.reference.elementary import exp, exps, log, logs
from armlet.types import Float64

LOG_RIDGES: Final = np.arange(25) * (0.25 * 2.302585092994046)
RIDGES: Final = np.array([exp(one) for one in LOG_RIDGES.tolist()])
NEGLIGIBLE_PIVOT: Final = 1e-12
LEAST_SQUARE: Final = 2.0**-900
"""Of what is reflected: below, 2 over it may be infinite."""
MUCH: Final = 2.0**300
"""What a product of ratios may reach before its logarithm is taken."""


def likely_ridge(systems: Iterable[tuple[Float64, Float64, float, float]], slopes: int, variance: float) -> float:
    """Return the likely ridge on slopes.

    Parameters
    ----------
    systems
        A, b, n and the sum of squared rewards of every arm in standard units, the constant first.
    slopes
        How many values vary.
    variance
        Of all rewards.

    Examples
    --------
    Without rows the prior speaks; slopes that are large next to the noise need hardly any ridge; none need a large one.

    >>> round(likely_ridge([], 10_000, 1.0))
    100
    >>> rng = np.random.default_rng(1)
    >>> X = np.column_stack([np.ones(400), rng.normal(size=(400, 30))])
    >>> noise, slopes = rng.normal(size=400), np.linspace(-2.0, 2.0, 30)
    >>> for r in (X[:, 1:] @ slopes + noise, noise):
    ...     found = likely_ridge([(X.T @ X, X.T @ r, 400.0, float(r @ r))], 30, float(r.var()))
    ...     print(f"{found:.1g}")
    1
    4e+02
    """
    if not (slopes > 0 and variance > 0.0):
        return 1.0
    determinants, left, freedom = np.zeros(25), np.zeros(25), 0.0
    for A, b, n, squares in systems:
        if not n > 1.0 or len(b) == 1:
            continue
        C, g, most = *leftover(A, b, n), (len(b) - 1) // 2
        freedom += n - 1.0
        whole = max(squares - float(b[0] * b[0]) / n, 0.0)
        low = low_rank(C, g, most, float(np.diag(A)[1:].max())) if n <= most else None
        if low is None:
            determinants, explained = weigh(*tridiagonal(C, g), determinants)
        else:
            L, c = low
            G, total = np.zeros((len(c), len(c))), 0.0
            for row in L:
                G += np.outer(row, row)
            for one in c.tolist():
                total += one * one
            determinants, rest = weigh(*tridiagonal(G, c), determinants)
            explained = total - RIDGES * rest
        left += np.maximum(whole - explained, 0.0)
    centre = 0.5 * log(float(slopes))
    off = LOG_RIDGES - centre
    likely = -0.5 * ((determinants + (freedom + 1.0) * logs(left + variance)) + off * off)
    if not np.isfinite(likely).all():
        return exp(centre)
    weights = exps(likely - likely.max())
    return exp(float(np.cumsum(weights * LOG_RIDGES)[-1] / np.cumsum(weights)[-1]))


def leftover(A: Float64, b: Float64, n: float) -> tuple[Float64, Float64]:
    """Return what the constant leaves of a system: C = A_ss - a a' / n and g = b_s - a b_0 / n."""
    a = A[1:, 0]
    return A[1:, 1:] - np.outer(a, a) / n, b[1:] - a * b[0] / n


def tridiagonal(M: Float64, g: Float64) -> tuple[Float64, Float64, Float64]:
    """Return the diagonal of T, what is next to it, and Q'g, where M = Q T Q' by Householder's reflections.

    Examples
    --------
    >>> M = np.array([[4.0, 1.0, 2.0], [1.0, 3.0, 0.0], [2.0, 0.0, 5.0]])
    >>> diagonal, off, h = tridiagonal(M, np.array([1.0, 2.0, 3.0]))
    >>> T = np.diag(diagonal) + np.diag(off, 1) + np.diag(off, -1)
    >>> bool(np.allclose(np.linalg.eigvalsh(T), np.linalg.eigvalsh(M)))
    True
    """
    M, g, m = M.copy(), g.copy(), len(M)
    diagonal, off = np.zeros(m), np.zeros(max(m - 1, 0))
    for k in range(m - 1):
        diagonal[k], u = M[k, k], M[k + 1 :, k].copy()
        first, rest = float(u[0]), _dot(u[1:], u[1:])
        norm = math.sqrt(first * first + rest)
        off[k] = (-norm if first > 0.0 else norm) if rest > LEAST_SQUARE else first
        u[0] = first - off[k]
        scale = 2.0 / float(u[0] * u[0] + rest) if rest > LEAST_SQUARE else 0.0
        w = np.zeros(len(u))
        for j in range(len(u)):
            w += M[k + 1 :, k + 1 + j] * u[j]
        w *= scale
        w -= u * (0.5 * scale * _dot(w, u))
        g[k + 1 :] -= u * (scale * _dot(u, g[k + 1 :]))
        M[k + 1 :, k + 1 :] -= np.outer(u, w) + np.outer(w, u)
    diagonal[-1:] = np.diag(M)[-1:]
    return diagonal, off, g


def low_rank(M: Float64, g: Float64, most: int, size: float) -> tuple[Float64, Float64] | None:
    """Return L and c with M = L L' and g = L c, by pivoted Cholesky; None if M has more rank than that.

    A pivot below 1e-12 of `size`, the largest number that M was made of, is rounding.

    Examples
    --------
    >>> X = np.array([[1.0, 2.0, 0.0, 1.0]])
    >>> L, c = low_rank(X.T @ X, 3.0 * X[0], 2, 4.0)
    >>> L.tolist(), c.tolist()
    ([[1.0], [2.0], [0.0], [1.0]], [3.0])
    >>> [part.shape for part in low_rank(X.T @ X, 3.0 * X[0], 2, 1e13)]
    [(4, 0), (0,)]
    """
    left, columns, c = np.diag(M).copy(), [], []  # type: ignore[var-annotated]
    least, pivots = NEGLIGIBLE_PIVOT * size, []  # type: ignore[var-annotated]
    while True:
        pivot = int(left.argmax())
        if not left[pivot] > least:
            return np.array(columns).reshape(-1, len(M)).T, np.array(c)
        if len(pivots) == most:
            return None
        column, rest = M[pivot].copy(), float(g[pivot])
        for earlier, coefficient in zip(columns, c, strict=True):
            own = earlier[pivot]
            column -= earlier * own
            rest -= float(coefficient * own)
        column[pivots] = 0.0
        root = math.sqrt(left[pivot])
        column /= root
        column[pivot] = root
        left -= column * column
        pivots.append(pivot)
        left[pivot] = -1.0
        columns.append(column)
        c.append(rest / root)


def weigh(diagonal: Float64, off: Float64, h: Float64, determinants: Float64) -> tuple[Float64, Float64]:
    """Return log det(I + T / ridge), added to what there is, and h' (T + ridge)^-1 h, for all ridges."""
    pivot, y, explained, product = np.ones(25), np.zeros(25), np.zeros(25), np.ones(25)
    for i, (own, right) in enumerate(zip(diagonal.tolist(), h.tolist(), strict=True)):
        before = float(off[i - 1]) if i > 0 else 0.0
        share = before / pivot
        y = right - share * y
        pivot = np.maximum((own + RIDGES) - share * before, RIDGES)
        explained = explained + y * y / pivot
        product = product * (pivot / RIDGES)
        large = product > MUCH
        determinants = np.where(large, determinants + logs(product), determinants)
        product = np.where(large, 1.0, product)
    return determinants + logs(product), explained


def _dot(x: Float64, y: Float64) -> float:
    return float(np.cumsum(x * y)[-1]) if len(x) else 0.0
