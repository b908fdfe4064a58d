"""Bets against claimed probabilities: whether arms are drawn as often as propensities say.

A bet begins with a wealth of 1 and multiplies it row by row with numbers whose mean is at most 1 if the claim is right,
however rows depend on earlier ones. So its wealth exceeds 1000 with probability 1/1000 at most (Markov), at any number
of rows. No variance is estimated, so that a few heavy weights accuse nobody. Several bets, of several sizes, share the
money. Logarithms of wealth add up over blocks of rows: constant memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal, Self

import numpy as np

from armlet.types import Bool, Float64, Int64

SIZES: Final = np.array([1 / 8, 1 / 4, 1 / 2])
BOTH: Final = np.concatenate([SIZES, -SIZES])  # bets that something is more likely than claimed, and that it is less
BLOCK: Final = 64  # rows after which bets start again
NOTHING: Final = -1e9  # the logarithm of no wealth: numbers that JSON has
RICHEST: Final = 40.0  # the logarithm of the most that a bet keeps, so that an alarm can end once its fault has
LEAST: Final = 1e-300  # probability


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


class PropensityBets:
    """Bets on the draws of a loop as they come: O(1) a decision, and blind to when things went wrong.

    Bets on draws are placed that an arm is drawn more often than claimed, so that it need not be known which arms could
    be drawn: if one is drawn too seldom, another is drawn too often. Bets on coins are placed that steps explore more
    often, or less, than the exploration rates say. Bets start again before every block of `BLOCK` rows: the share
    1/(b(b+1)) of the money is put aside for block b, so that a fault which begins late is not paid for out of what was
    lost before, while all of the money is never more than a fair game's.

    Examples
    --------
    >>> bets = PropensityBets()
    >>> for step in range(500):
    ...     bets.draw(int(step % 4 > 1), 0.25, 0.25)  # drawn every second time
    >>> bets.worst_draw(2)[0] < 1e-6
    True
    """

    __slots__ = ("_blocks", "_chances", "_coins", "_draws", "_expected", "_explored", "_places", "_smallest", "_tosses")

    def __init__(self) -> None:
        self._blocks = [0, 0]  # of draws, of coins
        self._draws: Float64 = np.zeros((0, len(SIZES)))  # logarithms of wealth, (arms, bets)
        self._places: list[int] = []  # draws since the last block
        self._chances: list[float] = []
        self._smallest: list[float] = []
        self._coins: Float64 = np.full(len(BOTH), NOTHING)
        self._tosses = self._explored = 0  # since the last block
        self._expected = 0.0

    def draw(self, place: int, chance: float, smallest: float) -> None:
        """Bet on a draw: the arm, the probability claimed for it, and the least claimed for any arm."""
        self._places.append(place)
        self._chances.append(chance)
        self._smallest.append(smallest)
        if len(self._places) == BLOCK:
            self._draws = self._drawn(max(len(self._draws), 1 + max(self._places)))
            self._places, self._chances, self._smallest = [], [], []
            self._blocks[0] += 1

    def toss(self, rate: float, explored: bool) -> None:
        """Bet on a coin: the probability claimed for exploring, and whether the step explored."""
        self._tosses += 1
        self._expected += rate
        self._explored += explored
        if self._tosses == BLOCK:
            self._coins = self._tossed()
            self._tosses, self._explored, self._expected = 0, 0, 0.0
            self._blocks[1] += 1

    def _drawn(self, n_arms: int) -> Float64:
        """Return the logarithms of wealth with the draws since the last block; new arms have no bets in it yet."""
        old = len(self._draws)
        logs = np.full((n_arms, len(SIZES)), NOTHING)
        if old:
            eligible = np.ones((len(self._places), n_arms), dtype=np.bool_)
            won = bet_on_draws(
                np.array(self._places, dtype=np.int64),
                np.maximum(np.array(self._chances), LEAST),
                np.array(self._smallest),
                eligible,
                SIZES,
            )
            logs[:old] = np.logaddexp(self._draws, _put_aside(self._blocks[0])) + won[:old]
        return _kept(logs)

    def _tossed(self) -> Float64:
        counts = bet_on_counts(np.array([self._explored]), np.array([self._expected]))[0]
        return _kept(np.logaddexp(self._coins, _put_aside(self._blocks[1])) + counts)

    def worst_draw(self, n_arms: int) -> tuple[float, int]:
        """Return the p-value of all draws so far, and the arm that is drawn too often if any is."""
        logs = self._drawn(max(n_arms, len(self._draws), 1 + max(self._places, default=0)))
        return p_value(logs), int(logs.max(axis=1).argmax())

    def worst_coin(self) -> tuple[float, Literal["more", "less"]]:
        """Return the p-value of all coins so far, and whether steps explored more or less often than claimed."""
        logs = self._tossed()
        return p_value(logs), "more" if int(logs.argmax()) < len(SIZES) else "less"

    def state(self) -> list[list[float]]:
        """Return everything as lists of numbers, for JSON."""
        sums = [float(self._tosses), float(self._explored), self._expected]
        flat: list[float] = self._draws.ravel().tolist()
        return [[*self._blocks], flat, self._places, self._chances, self._smallest, self._coins.tolist(), sums]

    @classmethod
    def restore(cls, state: Sequence[Sequence[float]]) -> Self:
        """Return the bets that had this state; a ValueError or TypeError says that it is not one."""
        blocks, draws, places, chances, smallest, coins, (tosses, explored, expected) = state
        bets = cls()
        bets._blocks = [_count(blocks[0]), _count(blocks[1])]
        bets._draws = np.array(draws, dtype=np.float64).reshape(-1, len(SIZES))
        bets._coins = np.array(coins, dtype=np.float64).reshape(len(BOTH))
        bets._places = [_count(place) for place in places]
        bets._chances, bets._smallest = [float(one) for one in chances], [float(one) for one in smallest]
        if not len(places) == len(chances) == len(smallest) < BLOCK:
            raise ValueError(
                f"{len(places)} arms, {len(chances)} and {len(smallest)} probabilities since the last block"
            )
        bets._tosses, bets._explored, bets._expected = _count(tosses), _count(explored), float(expected)
        return bets


def _kept(logs: Float64) -> Float64:
    """Round wealth down, so that it is short in JSON and no more than it was, and limit it."""
    return np.asarray(np.floor(np.minimum(logs, RICHEST) * 1024) / 1024)


def _put_aside(blocks: int) -> float:
    """Return the logarithm of the share of all money that is put aside for the block after so many."""
    return -math.log((blocks + 1) * (blocks + 2))


def _count(number: float) -> int:
    if number != int(number) or number < 0:
        raise ValueError(f"{number} is not a count")
    return int(number)
