"""Bets against claimed probabilities: whether arms are drawn as often as propensities say.

A bet begins with a wealth of 1 and multiplies it row by row with numbers whose mean is at most 1 if the claim is right,
however rows depend on earlier ones. So its wealth exceeds 1000 with probability 1/1000 at most (Markov), at any number
of rows. No variance is estimated, so that a few heavy weights accuse nobody. Several bets, of several sizes, share the
money. Logarithms of wealth add up over blocks of rows: constant memory.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from armlet.types import Bool, Float64, Int64

SIZES: Final = np.array([1 / 8, 1 / 4, 1 / 2])
BOTH: Final = np.concatenate([SIZES, -SIZES])  # bets that something is more likely than claimed, and that it is less


def p_value(logs: Float64) -> float:
    """Return the largest probability, if all claims are right, of as much wealth as all bets have together.

    Examples
    --------
    >>> p_value(np.zeros((2, 8))), p_value(np.log([[2000.0, 0.5]]))
    (1.0, 0.0009997500624843...)
    """
    if not logs.size:
        return 1.0
    top = float(logs.max())
    return float(np.exp(min(0.0, -top - float(np.log(np.exp(logs - top).mean())))))


def bet_on_draws(arm: Int64, chance: Float64, smallest: Float64, eligible: Bool, sizes: Float64 = BOTH) -> Float64:
    """Return the logarithms of wealth, (arms, bets), after rows of which the probability of the drawn arm is known.

    For an arm that may be drawn, y = [it is drawn] / chance - 1 has the mean 0 and lies between -1 and 1/smallest - 1,
    where `smallest` is that of the eligible arms and known before the draw.

    Examples
    --------
    >>> arms = np.arange(300) % 3
    >>> logged = np.where(arms == 0, 0.5, 1 / 3)
    >>> logs = bet_on_draws(arms, logged, np.full(300, 1 / 3), np.ones((300, 3), dtype=bool))
    >>> p_value(logs) < 0.001, int(logs.max(axis=1).argmax())
    (True, 0)
    """
    n_arms = eligible.shape[1]
    if not len(arm):
        return np.zeros((n_arms, len(sizes)))
    scale = smallest / np.maximum(1.0 - smallest, smallest)  # keeps scale y within -1 and 1
    drawn = np.stack([1.0 / chance - 1.0, scale])
    if (drawn == drawn[:, :1]).all():  # the same probabilities in every row: counts are enough
        lost, won = (np.log1p(sizes * scale[0] * y) for y in (-1.0, drawn[0, 0]))
        times = np.bincount(arm, minlength=n_arms)[:, None]
        return np.asarray((rows_by_arm(eligible)[:, None] - times) * lost + times * won)
    lost, won = (np.log1p(sizes * (scale * y)[:, None]) for y in (-1.0, drawn[0]))  # (n, bets)
    logs = eligible.T.astype(np.float64) @ lost
    np.add.at(logs, arm, won - lost)
    return np.asarray(logs)


def bet_on_counts(counts: Float64, expected: Float64) -> Float64:
    """Return the logarithms of wealth, (claims, bets), from how often things happened and how often they should have.

    By exp(l [it happens]) having a mean of at most exp((e^l - 1) chance).

    Examples
    --------
    >>> p_value(bet_on_counts(np.array([130.0]), np.array([100.0]))) < 0.2
    True
    >>> p_value(bet_on_counts(np.array([200.0]), np.array([100.0]))) < 1e-9
    True
    """
    return np.asarray(np.multiply.outer(counts, BOTH) - np.multiply.outer(expected, np.expm1(BOTH)))


def rows_by_arm(eligible: Bool) -> Int64:
    """Count the rows in which each arm was eligible, (K,)."""
    n, n_arms = eligible.shape
    return np.full(n_arms, n) if eligible.all() else eligible.sum(axis=0)
