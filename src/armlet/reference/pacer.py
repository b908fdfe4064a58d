"""Mirrors kernel/budget/pacer.cpp: the price that keeps the spend of a bandit within its budget.

Balseiro, Lu and Mirrokni (2020), "Dual mirror descent for online allocation problems", on the logarithm of the price,
towards what is left instead of the mean of the plan; Agrawal and Devanur (2016), "Linear contextual bandits with
knapsacks", say why a price a unit of cost is enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from armlet.types import Float64

FIRST_STEP: Final = 0.5  # of log price, by the excess of a cost: at first this by the square root of the costs so far,
STEP: Final = 0.01  # then this
LATE_STEP: Final = 0.6  # at most this, divided by the costs that are under way: an answer that is late must be weak
LARGEST_STEP: Final = 0.5  # a price at most grows by half, or loses a third, by one cost
MEMORY: Final = 0.002  # of the mean cost and of its noise: the last 500 or so
LEAD: Final = 50.0  # decisions as planned that are added to those left: at the end of a period rho would be noise
MOST_AHEAD: Final = 10.0  # rho is at most as many times the rate of the plan
START: Final = 0.1  # the first price: as if a decision's share of the budget were worth a tenth of a deviation
LEAST: Final = 1e-4  # the least level, from which a price can come back soon; up to twice this the price is 0
SETTLED: Final = 100.0  # rows after which the scale of rewards is known well enough: the price stops following it
ROUNDING: Final = 1e-9  # of the total, by which sums of known prices may be off


@dataclass(slots=True)
class Pacer:
    """The price of a unit of cost, as a function of the events in their order.

    Examples
    --------
    A budget for half of the decisions at a cost of 1: the price rises while all of them cost that much.

    >>> pacer = Pacer(total=500.0, length=1000.0, repeats=False)
    >>> for _ in range(100):
    ...     pacer.begin()
    ...     pacer.count(1.0)
    ...     pacer.see(float(_ % 2))
    >>> pacer.spent, 0.1 < pacer.price
    (100.0, True)
    """

    total: float
    length: float
    repeats: bool
    level: float = 0.0  # the price before its least value is taken off
    spent: float = 0.0  # in this period, like decisions
    decisions: float = 0.0
    waiting: float = 0.0  # decisions whose cost has not been reported
    counted: float = 0.0  # costs, ever
    mean: float = 0.0  # of late costs
    noise: float = 0.0  # of their excess over rho, squared
    rows: float = 0.0  # rewards seen, their mean, and the squares about it
    reward: float = 0.0
    squares: float = 0.0

    @property
    def rate(self) -> float:
        """Return what the plan spends a decision."""
        return self.total / self.length

    @property
    def deviation(self) -> float:
        """Return that of rewards; 1 while they have none."""
        return math.sqrt(self.squares / self.rows) if self.squares > 0.0 else 1.0

    @property
    def unit(self) -> float:
        """Return the unit of prices: a deviation of rewards for what the plan spends a decision."""
        return self.deviation / self.rate

    @property
    def price(self) -> float:
        """Return lambda, what a unit of cost counts now."""
        return max(self.level - 2.0 * LEAST * self.unit, 0.0) if self.counted else 0.0

    def begin(self) -> None:
        """Begin a decision, in a new period if this one is over."""
        if self.repeats and self.decisions >= self.length:
            self.decisions = self.spent = 0.0
        self.decisions += 1.0
        self.await_cost()

    def count(self, cost: float) -> None:
        """Count the cost of a decision, and move the price."""
        self.waiting = max(self.waiting - 1.0, 0.0)
        self.spent += cost
        self.counted += 1.0
        gain = max(MEMORY, 1.0 / self.counted)
        self.mean += gain * (cost - self.mean)
        if self.counted == 1.0:
            self.level = START * self.unit
        ahead = self.length - self.decisions
        if not self.repeats and ahead < 1.0:
            return
        left = self.total - self.spent - self.waiting * self.mean
        rho = (left + LEAD * self.rate) / (max(ahead, 0.0) + LEAD)
        self._move((cost - min(max(rho, 0.0), MOST_AHEAD * self.rate)) / self.rate, gain)

    def _move(self, excess: float, gain: float) -> None:
        self.noise += gain * (excess * excess - self.noise)
        size = min(max(STEP, FIRST_STEP / math.sqrt(self.counted)), LATE_STEP / (1.0 + self.waiting))
        by = min(max(size * excess / max(math.sqrt(self.noise), 1.0), -LARGEST_STEP), LARGEST_STEP)
        moved = self.level * (1.0 + by) if by >= 0.0 else self.level / (1.0 - by)
        self.level = min(max(moved, LEAST * self.unit), self.unit / LEAST)

    def correct(self, before: float, after: float) -> None:
        """Replace a cost that was counted."""
        self.spent += after - before

    def expire(self) -> None:
        """Stop waiting for the cost of a decision."""
        self.waiting = max(self.waiting - 1.0, 0.0)

    def await_cost(self) -> None:
        """Wait for the cost of a decision, after all."""
        self.waiting += 1.0

    def see(self, reward: float) -> None:
        """See the reward of a row that was learned, under the default weights: prices are in its scale."""
        before, follows = self.deviation, self.rows < SETTLED or not self.squares > 0.0
        self.rows += 1.0
        off = reward - self.reward
        self.reward += off / self.rows
        self.squares += off * (reward - self.reward)
        if follows:
            self.level *= self.deviation / before

    def affords(self, cost: float, bound: float) -> bool:
        """Return whether the next decision may cost as much, if each of those under way may cost `bound`."""
        spent = 0.0 if self.repeats and self.decisions >= self.length else self.spent
        return spent + self.waiting * bound + cost <= self.total * (1.0 + ROUNDING)

    def merge(self, other: Pacer) -> None:
        """Add what another one has counted; the price is the mean of both, by the costs that each has counted."""
        counted, rows = self.counted + other.counted, self.rows + other.rows
        if counted > 0.0:
            share = other.counted / counted
            self.level += share * (other.level - self.level)
            self.mean += share * (other.mean - self.mean)
            self.noise += share * (other.noise - self.noise)
        if rows > 0.0:
            off, share = other.reward - self.reward, other.rows / rows
            self.squares += other.squares + off * off * (self.rows * share)
            self.reward += share * off
        self.spent += other.spent
        self.decisions += other.decisions
        self.waiting += other.waiting
        self.counted, self.rows = counted, rows

    def subtract(self, earlier: Pacer) -> None:
        """Take away what was counted before; the price stays."""
        rows = max(self.rows - earlier.rows, 0.0)
        self.squares *= rows / self.rows if self.rows > 0.0 else 0.0
        self.spent -= earlier.spent
        self.decisions = max(self.decisions - earlier.decisions, 0.0)
        self.waiting -= earlier.waiting
        self.counted, self.rows = max(self.counted - earlier.counted, 0.0), rows

    def values(self) -> Float64:
        """Return what must be kept, (10,)."""
        spend = [self.level, self.spent, self.decisions, self.waiting, self.counted, self.mean, self.noise]
        return np.array([*spend, self.rows, self.reward, self.squares])
