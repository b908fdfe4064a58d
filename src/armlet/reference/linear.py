"""Mirrors kernel/linear/: Cholesky factors, solutions, widths and log determinants, in plain numpy.

Nothing here is fast. Every sum is written in the order in which the kernel makes it, and numpy never fuses a product
into a sum, so kernel and reference agree to the last bit.
"""

from __future__ import annotations

import math

import numpy as np

from armlet.errors import MissingConstantError
from armlet.reference.elementary import log
from armlet.types import Float64

BEYOND_ANY = 1e100
"""More than any estimate or width of rows up to 1e40 in size with a ridge of at least 1e-40 can be."""


def cholesky(M: Float64) -> tuple[Float64, Float64]:
    """Give L with M = L L' (its diagonal left as pivots) and 1 / L_kk.

    A feature that is, to rounding, a combination of those before it gets 1 / L_kk = 0, hence theta_k = 0.
    """
    L, inverse, d = np.tril(M), np.zeros(len(M)), len(M)
    for k in range(d):
        if L[k, k] > d * 2.0**-52 * M[k, k]:
            inverse[k] = 1.0 / math.sqrt(L[k, k])
        L[k + 1 :, k] *= inverse[k]
        L[k + 1 :, k + 1 :] -= np.tril(np.outer(L[k + 1 :, k], L[k + 1 :, k]))
    return L, inverse


def solve(M: Float64, b: Float64) -> Float64:
    """Solve M theta = b by Cholesky."""
    L, inverse = cholesky(M)
    theta = b.copy()
    for k in range(len(b)):
        theta[k] *= inverse[k]
        theta[k + 1 :] -= theta[k] * L[k + 1 :, k]
    for k in reversed(range(len(b))):
        theta[k] *= inverse[k]
        theta[:k] -= theta[k] * L[k, :k]
    return theta


def width(M: Float64, x: Float64) -> float:
    """Give sqrt(x' M^-1 x) = |L^-1 x|; the squares are added in eight columns, then across."""
    L, inverse = cholesky(M)
    y = x.copy()
    for k in range(len(x)):
        y[k] *= inverse[k]
        y[k + 1 :] -= y[k] * L[k + 1 :, k]
    padded = np.zeros(-(-len(x) // 8) * 8)
    padded[: len(x)] = y * y
    columns, total = np.zeros(8), 0.0
    for row in padded.reshape(-1, 8):
        columns += row
    for column in columns.tolist():
        total += column
    return math.sqrt(total) if total <= BEYOND_ANY**2 else BEYOND_ANY


def log_determinant(M: Float64) -> float:
    """Give log det M from the pivots; one that rounding has eaten counts as what is negligible."""
    (L, _), d = cholesky(M), len(M)
    pivots = np.maximum(np.maximum(np.diag(L), d * 2.0**-52 * np.diag(M)), 2.0**-1022)
    total = 0.0
    for pivot in pivots.tolist():
        total += log(pivot)
    return total


def smallest_eigenvalue(second_moment: Float64) -> float:
    """Give the smallest eigenvalue of E xx' that is not zero.

    An eigenvalue counts as zero up to 10 d eps times the largest: eigvalsh is exact up to a small multiple
    of d eps times the norm of the matrix.

    Examples
    --------
    >>> smallest_eigenvalue(np.diag([0.5, 0.25, 0.0]))
    0.25
    """
    values = np.linalg.eigvalsh(second_moment)
    left = values[values > 10 * len(values) * np.finfo(np.float64).eps * values[-1]]
    if left.size == 0:
        raise MissingConstantError("sigma_min", "every context is zero")
    return float(left[0])


def ordered_scores(X: Float64, theta: Float64) -> Float64:
    """Return x' theta_a of every row x and arm a, (n, K), summed in the order of the features as decisions do.

    Examples
    --------
    >>> ordered_scores(np.eye(2), np.array([[0.0, 1.0], [1.0, 2.0]]))
    array([[0., 1.],
           [1., 2.]])
    """
    out = np.zeros((len(X), len(theta)))
    for feature, slopes in zip(X.T, theta.T, strict=True):
        out += feature[:, None] * slopes
    return out
