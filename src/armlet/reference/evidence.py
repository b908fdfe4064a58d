"""Mirrors kernel/rules/evidence.cpp: when a step explores and which arm it takes then, independently of the context.

By steps, Algorithm 1's: arms take turns, or one rate is shared by all alike. By evidence: an arm is explored the more
the fewer rows its sums hold. An arm that is explored with probability exp(1 - n/q) has n = q (1 + log(t/q)) rows by
step t, hence probability q/t: where arms neither come nor go and rewards are prompt that is p/t for all of them, as in
Algorithm 1, but it needs no clock. Every operation is in the order of the kernel's, so both agree to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from armlet.reference.choice import below
from armlet.reference.elementary import exps
from armlet.types import Bool, Choice, Coins, Float64, Int64

Clock: TypeAlias = Literal["evidence", "steps"]
"""What says how much to explore: the rows that each arm has, or the count of steps."""

Best: TypeAlias = Callable[[Int64], Int64]
"""Returns those of some arms that look best; not asked where a step is sure to explore."""


def exploration_weights(n: Float64, q: float | Float64) -> Float64:
    """Return min(1, exp(1 - n/q)), how much arms with n rows want to be explored: 1 up to q rows.

    Examples
    --------
    >>> exploration_weights(np.array([0.0, 5.0, 10.0, 15.0]), 5.0).round(4).tolist()
    [1.0, 1.0, 0.3679, 0.1353]
    """
    with np.errstate(over="ignore"):
        u = 1.0 - n / q
    out: Float64 = np.where(u >= 0.0, 1.0, np.minimum(1.0, exps(np.minimum(u, 0.0))))
    return out


@dataclass(frozen=True, slots=True)
class ExploringLaw:
    """Whether a step explores, and with which arm."""

    arms: Int64  # (m,): those that exploring may take
    rate: float  # the probability that the step explores
    chances: Float64  # (m,): that it explores and takes this arm
    given: Float64  # (m,): that it takes this arm, given that it explores
    smallest: float  # the smallest probability of an eligible arm, given that it explores

    def drawn(self, bits: int) -> int:
        """Return the arm that 64 random bits point at, all alike."""
        return int(self.arms[below(bits, len(self.arms))])

    def with_best(self, n_arms: int, best: Best) -> Float64:
        """Return the probability of every arm, where a step that does not explore draws one of the best."""
        chances = np.zeros(n_arms)
        chances[self.arms] = self.chances
        if self.rate < 1.0:
            among = best(self.arms)
            chances[among] = np.minimum(1.0, chances[among] + (1.0 - self.rate) / len(among))
        return chances

    def decide(self, n_arms: int, best: Best, coins: Coins) -> Choice:
        """Play what exploring takes, or one of the best arms, by the coins."""
        explored = coins.coin < self.rate
        among = best(self.arms) if self.rate < 1.0 else None  # a step that is sure to explore does not look
        arm = self.drawn(coins.pick) if explored or among is None else int(among[below(coins.tie, len(among))])
        chance = float(self.with_best(n_arms, best)[arm])
        greedy = None if among is None else bool(arm in among)
        return Choice(arm, chance, explored, 0, self.exploration_propensity(arm), self.rate, self.smallest, greedy)

    def exploration_propensity(self, arm: int) -> float:
        """Return the probability of an arm, given that the step explores."""
        return float(self.given[np.searchsorted(self.arms, arm)])


class WeightedLaw(ExploringLaw):
    """The same with arms that are not alike."""

    def drawn(self, bits: int) -> int:
        """Return the first arm at which the running sum of chances passes the bits' share of the whole."""
        running = np.cumsum(self.chances)  # from left to right, as the kernel adds
        place = int(np.searchsorted(running, (bits >> 11) * 2.0**-53 * running[-1], side="right"))
        return int(self.arms[min(place, len(self.arms) - 1)])  # the product may round to the whole


def turn(arms: Int64, t: int) -> ExploringLaw:
    """Return the law of a step that plays arm t mod K.

    Examples
    --------
    >>> turn(np.array([0, 2, 5]), 4).arms.tolist()
    [2]
    """
    return ExploringLaw(arms[t % len(arms)][None], 1.0, np.ones(1), np.ones(1), 1.0 if len(arms) == 1 else 0.0)


def alike(arms: Int64, rate: float) -> ExploringLaw:
    """Return the law of a step that explores at a rate, all arms alike.

    Examples
    --------
    >>> alike(np.array([0, 2]), 0.5).chances.tolist()
    [0.25, 0.25]
    """
    m = len(arms)
    return ExploringLaw(arms, rate, np.full(m, rate / m), np.full(m, 1.0 / m), 1.0 / m)


def by_evidence(
    n: Float64, eligible: Bool, t: int, *, q: float | Float64, cap: float = 1.0, floor: float = 0.0
) -> WeightedLaw:
    """Return the law of a step that explores what lacks rows.

    An arm weighs w = max(min(1, q/t), min(1, exp(1 - n/q))). With probability `floor` an eligible arm is drawn, all
    alike; else the step explores with probability min(cap, sum of w), and takes an arm with its share of that sum.

    Parameters
    ----------
    n
        (K,): the rows of every arm.
    q
        Rows that each arm is given to begin with: the same for all, or one number for each, (K,).

    Examples
    --------
    >>> law = by_evidence(np.array([60.0, 60.0, 0.0]), np.array([True, True, True]), 10**6, q=5.0)
    >>> round(law.rate, 3), law.given.round(3).tolist()
    (1.0, [0.0, 0.0, 1.0])
    >>> by_evidence(np.array([60.0, 60.0, 0.0]), np.array([True, True, False]), 10**6, q=5.0).rate.__round__(6)
    3.3e-05
    """
    arms = np.flatnonzero(eligible)
    each = np.broadcast_to(q, n.shape)[arms]
    weights = np.maximum(np.minimum(1.0, each / t), exploration_weights(n[arms], each))
    total = float(np.cumsum(weights)[-1])
    shared = (1.0 - floor) * min(cap, total)
    chances, rate = floor / len(arms) + shared * (weights / total), floor + shared
    given = np.minimum(1.0, chances / rate)
    return WeightedLaw(arms, rate, chances, given, float(given.min()))
