"""The forced sampling of Goldenshluger and Zeevi (2013), "A Linear Response Bandit Problem".

Arm i (from 1 on) is forced at steps (2^n - 1) K q + j for n = 0, 1, 2, ... and j in (q (i - 1), q i]: blocks of K q
steps, q for each arm in turn, with gaps that double. About K q log2(t / (K q)) of the first t steps are forced.
"""

from __future__ import annotations


def forced_arm(t: int, n_arms: int, q: int) -> int | None:
    """Give the arm (from 0 on) that step t >= 1 is forced to play; None if the step is free.

    Examples
    --------
    >>> [forced_arm(t, n_arms=2, q=1) for t in range(1, 9)]
    [0, 1, 0, 1, None, None, 0, 1]
    """
    block, place = divmod(t - 1, n_arms * q)
    is_forced = block & (block + 1) == 0  # block = 2^n - 1: all bits are ones
    return place // q if is_forced else None
