"""What bounds need of A and b, as rows to be multiplied with x: estimates, and lengths that cannot turn negative.

With A = U diag(l) U' the ridge inverse (ridge I + A)^-1 is F'F for F = diag(l + ridge)^(-1/2) U', so a width is |F x|:
a root of a sum of squares, where x' V^-1 x computed from an inverse can round below zero.
O(d^3) for every matrix; O(d^2) for every product with x.
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from armlet.types import Float64
from armlet_lab.literature.derived import estimate_row

ROUNDING = 1e-9  # of the threshold 1: one context of length 1 has the eigenvalue 1, and rounding must not drop it


def truncated_rows(A: Float64, b: Float64) -> Float64:
    """Stack the estimate from directions with eigenvalue 1 or more, their factor, and the others: (..., 1 + 2 d, d).

    Of y = rows @ x, the first is the estimate, the next d have the length |a| of Auer's weights, and the last d are
    the part of x that the estimate says nothing about.

    Examples
    --------
    >>> truncated_rows(np.diag([0.5, 4.0]), np.array([2.0, 4.0]))
    array([[0. , 1. ],
           [0. , 0. ],
           [0. , 0.5],
           [1. , 0. ],
           [0. , 0. ]])
    """
    values, U = np.linalg.eigh(A)
    known, directions = values >= 1.0 - ROUNDING, U.swapaxes(-1, -2)
    F = directions * (known / np.sqrt(np.where(known, values, 1.0)))[..., None]
    return np.concatenate([estimate_row(F, b), F, directions * ~known[..., None]], axis=-2)


def inverse_of(V: Float64) -> Float64:
    """Invert V, (..., d, d), a sum of squares and a ridge, even where rounding has eaten the ridge.

    Examples
    --------
    >>> inverse_of(np.diag([0.5, 4.0]))
    array([[2.  , 0.  ],
           [0.  , 0.25]])
    >>> bool(np.isfinite(inverse_of(np.full((2, 2), 1e40) + np.eye(2))).all())  # 1e40 + 1 is 1e40: nothing is left of I
    True
    """
    negligible = V.shape[-1] * np.finfo(np.float64).eps
    try:
        found = cast(Float64, np.linalg.inv(V))
        if np.abs(found).max() * np.abs(V).max() * negligible <= 1.0:
            return found
    except np.linalg.LinAlgError:
        pass
    values, U = np.linalg.eigh(V)
    roots = U / np.sqrt(np.maximum(values, negligible * values[..., -1:]))[..., None, :]
    return cast(Float64, roots @ roots.swapaxes(-1, -2))


def log_det(A: Float64, ridge: float) -> Float64:
    """Return log det(ridge I + A) - d log ridge, 0 before the first row; a determinant itself would overflow.

    Examples
    --------
    >>> float(log_det(np.diag([0.0, 3.0]), ridge=1.0) / np.log(2))
    2.0
    """
    return cast(Float64, np.log1p(np.maximum(np.linalg.eigvalsh(A), 0.0) / ridge).sum(-1))


def lengths(y: Float64) -> Float64:
    """Return the length of each row.

    Examples
    --------
    >>> lengths(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([5., 0.])
    """
    return cast(Float64, np.sqrt((y * y).sum(-1)))


def deviation(noise_scale: float, horizon: int, n_arms: int, delta: float) -> float:
    """Return how many standard errors noise may add in T steps and K arms, but for a chance delta.

    It is R sqrt(2 log(2 T K / delta)): Azuma's inequality for noise of sub-gaussian scale R, with a union bound over
    steps, arms and the two signs.

    Examples
    --------
    >>> round(deviation(0.5, 1000, 6, 0.05), 3)
    2.489
    """
    return noise_scale * math.sqrt(2 * math.log(2 * horizon * n_arms / delta))


def truncated_bounds(y: Float64, *, noise: float, theta_norm: float) -> tuple[Float64, Float64]:
    """Read y = `truncated_rows` @ x, (K, 1 + 2 d), as the estimate and the width of LinRel for every arm, (K,) each.

    Examples
    --------
    >>> truncated_bounds(np.array([[0.5, 3.0, 4.0, 0.0, 1.0]]), noise=2.0, theta_norm=1.0)
    (array([0.5]), array([11.]))
    """
    d = y.shape[1] // 2
    return y[:, 0], noise * lengths(y[:, 1 : 1 + d]) + theta_norm * lengths(y[:, 1 + d :])
