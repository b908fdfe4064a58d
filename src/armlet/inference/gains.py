"""What a policy gains over another one that a coin plays now and then: four sums a comparison, valid at every look.

A step t draws its arm a with a known probability p_a = c q_a + (1 - c) pi_a: with probability c it explores, by a law q
that no context moves, else it plays the live policy's law pi. Reward u is a share of the reward range, m a guess made
before the row (the mean of earlier rows), mu_a the expected u of an arm given the past and the context.

For two laws of an arm, v and w, and a factor k that is known before the draw, the score of a row is

    D = k (v_a - w_a) / p_a (u - m),    E[D | past] = k sum_a (v_a - w_a) (mu_a - m) = k (mu_v - mu_w),

since v and w both add up to 1. So sum D over sum k estimates the mean gain of v over w, weighted by k, whatever m is.
k is chosen such that |D| <= 1 without division by a small propensity; a row where both laws agree is exactly 0:

- live over exploration, v = pi, w = q, k = c (1 - c): k pi_a / p_a <= c and k q_a / p_a <= 1 - c.
- a shadow that would have played the arm s over live, v = [a = s], w = pi, k = c (1 - c) min q:
  k / p_s <= 1 - c and k pi_a / p_a <= c.
- live over a control, which has a coin of its own with share c, e = 1 if it fell on the control: D = (c - e) (u - m), 0
  where both would play the same arm, and k = c (1 - c).

Nothing is asked of how policies learn, nor need c and q stay as they are: they only have to be known before the draw.
If the gain moves, the ends are for its weighted mean so far. The pi_a of the played arm follows from its propensity,
p_a and c q_a; those of other arms are not needed. Cost: O(1) a row, and no array.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from armlet.inference.intervals import LEVEL
from armlet.types import Interval

GUESS: Final = 0.01  # the largest guess of a score; a gain of 1 % of the range with a coin of 10 % is 0.001
BOUND: Final = 1.0 + GUESS  # no score is further from its guess
WIDEST: Final = Interval(-1.0, 1.0)
GOAL: Final = math.log(2.0 / (1.0 - LEVEL))
TIMES: Final = 1.1 ** np.arange(146)  # as many rows, up to 10^6


class GainSums:
    """The sums of one comparison: rows, scores S, their squares about a guess V, and weights W.

    The ends are (S -+ B margin(V / B^2)) / W, B = 1.01, margin as in `armlet.inference.sequences`: the bets of an
    empirical Bernstein mixture (Howard et al. 2021), for scores no less than -B from guesses made before each row.

    Examples
    --------
    >>> sums = GainSums()
    >>> for row in range(4000):  # the live policy earns 0.8, and the control 0.2, with a coin of a half
    ...     e, u = row % 2, float(row % 10 in (0, 2, 1, 4, 6))
    ...     sums.add((0.5 - e) * (u - 0.5), 0.25)
    >>> sums.rows, sums.W
    (4000, 1000.0)
    >>> "{:.2f} to {:.2f}".format(*sums.interval())
    '0.54 to 0.66'
    """

    __slots__ = ("S", "V", "W", "rows")

    def __init__(self, rows: int = 0, S: float = 0.0, V: float = 0.0, W: float = 0.0) -> None:
        self.rows, self.S, self.V, self.W = rows, S, V, W

    def add(self, d: float, weight: float) -> None:
        """Add the score of a row, between -1 and 1, and its weight k."""
        rows, S = self.rows, self.S
        guess = S / rows if rows else 0.0
        if guess > GUESS:
            guess = GUESS
        elif guess < -GUESS:
            guess = -GUESS
        miss = d - guess
        self.rows, self.S = rows + 1, S + d
        self.V += miss * miss
        self.W += weight

    def interval(self, level: float = LEVEL) -> Interval:
        """Return where the gain lies, as a share of the reward range; both ends hold at all looks with this level."""
        if not self.W > 0.0:
            return WIDEST
        from armlet.inference.sequences import mixed_margin  # not before it is needed: it would slow down imports

        margin = BOUND * float(mixed_margin(self.V / BOUND**2, math.log(2.0 / (1.0 - level))))
        return Interval(max((self.S - margin) / self.W, -1.0), min((self.S + margin) / self.W, 1.0))

    @property
    def mean(self) -> float | None:
        """The gain seen so far, as a share of the reward range; None before the first row."""
        return self.S / self.W if self.W > 0.0 else None

    def rows_until(self, gain: float) -> float | None:
        """Return about how many more rows like these an answer takes, if the gain is this one; None if that is endless.

        With f times as many rows, S is f gain W and V is f V: f is found where the margin is no more than S. It is a
        rough guess while the gain is barely seen, and mostly too long.
        """
        if not (self.W > 0.0 and gain):
            return None
        from armlet.inference.sequences import mixed_margin

        squares, sums = self.V / BOUND**2, abs(gain) * self.W
        margins = BOUND * mixed_margin(squares * TIMES, GOAL)
        enough = (margins <= sums * TIMES).nonzero()[0]
        return self.rows * (float(TIMES[enough[0]]) - 1.0) if enough.size else None

    def state(self) -> list[Any]:
        """Return everything as numbers, for JSON."""
        return [self.rows, self.S, self.V, self.W]


class ValueSums:
    """What one arm is worth if it is always played: rows on which a coin that no context moves has drawn it.

    The mean over these rows of what the arm was expected to earn lies between the ends, at all looks: those of the
    mixture of `GainSums`, about the mean of earlier rows.

    Examples
    --------
    >>> sums = ValueSums()
    >>> for row in range(1000):
    ...     sums.add(float(row % 4 == 0))
    >>> "{:.2f} to {:.2f}".format(*sums.interval())
    '0.20 to 0.30'
    """

    __slots__ = ("S", "V", "rows")

    def __init__(self, rows: int = 0, S: float = 0.0, V: float = 0.0) -> None:
        self.rows, self.S, self.V = rows, S, V

    def add(self, u: float) -> None:
        """Add a reward, as a share of its range."""
        miss = u - (self.S + 0.5) / (self.rows + 1.0)
        self.rows += 1
        self.S += u
        self.V += miss * miss

    def interval(self, level: float = LEVEL) -> Interval:
        """Return where the mean lies, as a share of the reward range."""
        return value_intervals([self], level)[0]

    def state(self) -> list[Any]:
        """Return everything as numbers, for JSON."""
        return [self.rows, self.S, self.V]


def value_intervals(values: Sequence[ValueSums], level: float = LEVEL) -> list[Interval]:
    """Return where the means of several arms lie, each with this level, as shares of the reward range."""
    from armlet.inference.sequences import mixed_margin

    margins = mixed_margin([each.V for each in values], math.log(2.0 / (1.0 - level))).tolist()
    return [_around(each, margin) for each, margin in zip(values, margins, strict=True)]


def _around(sums: ValueSums, margin: float) -> Interval:
    if not sums.rows:
        return Interval(0.0, 1.0)
    return Interval(max((sums.S - margin) / sums.rows, 0.0), min((sums.S + margin) / sums.rows, 1.0))


# ---- scores: the factor of u - m, and the weight k


def live_prob(propensity: float, rate: float, given: float) -> float:
    """Return pi_a of the arm that was played: its probability where the step does not explore.

    Examples
    --------
    >>> live_prob(0.9333333333333333, 0.1, 1 / 3), live_prob(0.1 / 3, 0.1, 1 / 3)
    (1.0, 0.0)
    """
    pi = (propensity - rate * given) / (1.0 - rate)
    return 0.0 if pi < 0.0 else 1.0 if pi > 1.0 else pi  # beyond them by rounding


def exploration_score(propensity: float, rate: float, given: float) -> tuple[float, float]:
    """Return the score of the live policy over exploration.

    Parameters
    ----------
    propensity
        p_a, the probability of the arm that was played, over all coins of the policy.
    rate
        c, the probability that the step explores, between 0 and 1.
    given
        q_a, the probability of that arm if it does.

    Examples
    --------
    >>> K, c = 4, 0.1
    >>> best, other = 1 - c + c / K, c / K
    >>> f"{exploration_score(best, c, 1 / K)[0]:.4f}", f"{exploration_score(other, c, 1 / K)[0]:.4f}"
    ('0.0730', '-0.9000')
    """
    pi = live_prob(propensity, rate, given)
    weight, chance = rate * (1.0 - rate), rate * given + (1.0 - rate) * pi
    return (weight * (pi - given) / chance if chance > 0.0 else 0.0), weight


def shadow_score(
    propensity: float, rate: float, given: float, smallest: float, is_shadows: bool
) -> tuple[float, float]:
    """Return the score of a shadow over the live policy; `is_shadows`: it would have played the same arm.

    `smallest` is min q. What the shadow would have played must not depend on the coins of the step.
    """
    pi = live_prob(propensity, rate, given)
    weight, chance = rate * (1.0 - rate) * smallest, rate * given + (1.0 - rate) * pi
    return (weight * (is_shadows - pi) / chance if chance > 0.0 else 0.0), weight


def control_score(share: float, is_controls: bool, differs: bool) -> tuple[float, float]:
    """Return the score of the live policy over a control.

    Parameters
    ----------
    share
        The probability with which the control plays.
    is_controls
        Whether it did.
    differs
        Whether the two would have played different arms; True where that is not known.
    """
    return (share - is_controls if differs else 0.0), share * (1.0 - share)


def as_share(value: float, low: float, high: float) -> float:
    """Return a reward as a share of its range; one from before the range was changed counts as the nearest end.

    Examples
    --------
    >>> as_share(0.5, -1.0, 1.0), as_share(4.0, 0.0, 2.0)
    (0.75, 1.0)
    """
    u = (value - low) / (high - low)
    return 0.0 if u < 0.0 else 1.0 if u > 1.0 else u
