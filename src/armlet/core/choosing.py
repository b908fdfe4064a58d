"""How coins become arms: shared by policies in Python and by the reference."""

from __future__ import annotations

from armlet.core.types import Float64, Int64


def below(bits: int, n: int) -> int:
    """Turn 64 random bits into one of 0..n-1, uniform but for less than n / 2^64.

    Examples
    --------
    >>> below(0, 6), below(2**64 - 1, 6)
    (0, 5)
    """
    return (bits * n) >> 64


def best_arms(scores: Float64, arms: Int64) -> Int64:
    """Give those of `arms` that share the highest score.

    Examples
    --------
    >>> import numpy as np
    >>> best_arms(np.array([1.0, 3.0, 3.0, 9.0]), np.array([0, 1, 2])).tolist()
    [1, 2]
    """
    among = scores[arms]
    best: Int64 = arms[among == among.max()]
    return best
