"""Sums in one written order, as kernel and reference add: BLAS adds in another on every processor."""

from __future__ import annotations

from armlet.types import Float64


def dot(x: Float64, y: Float64) -> float:
    """x'y, from the first value to the last.

    Examples
    --------
    >>> import numpy as np
    >>> dot(np.array([1e16, 1.0, -1e16]), np.ones(3))
    0.0
    """
    total = 0.0
    for one, other in zip(x.tolist(), y.tolist(), strict=True):
        total += one * other
    return total
