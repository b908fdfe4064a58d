"""How long rewards take: when decisions were made, in few moments, and delays in powers of two of a second.

Both are O(1) a call and of bounded size, however long a loop lives: what is longer ago is remembered less exactly.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, Final

SECOND: Final = 1_000_000  # microseconds
BINS: Final = 30  # delays: below 1 s, 2 s, 4 s, ... and all above 8 years
RATIO: Final = 1.25  # between the ages of moments that are remembered
MOMENTS: Final = 96  # at most


class DecisionTimes:
    """How many decisions were made until when: fewer moments are remembered of what is longer ago."""

    __slots__ = ("counts", "due", "seconds")

    def __init__(self) -> None:
        self.seconds: list[int] = []  # ascending
        self.counts: list[int] = []  # decisions before each
        self.due = -1  # microseconds: the next moment to remember

    def mark(self, ts: int, count: int) -> None:
        """Remember how many decisions there were before this moment."""
        second = ts // SECOND
        self.due = (second + 1) * SECOND
        self.seconds.append(second)
        self.counts.append(count)
        if len(self.seconds) > MOMENTS:
            self._thin(second + 1)

    def _thin(self, now: int) -> None:
        """Drop moments between neighbours that are about as old."""
        stay = [0]
        for at in range(1, len(self.seconds) - 1):
            if now - self.seconds[stay[-1]] > RATIO * (now - self.seconds[at + 1]):
                stay.append(at)
        stay.append(len(self.seconds) - 1)
        self.seconds, self.counts = ([part[at] for at in stay] for part in (self.seconds, self.counts))

    def at_least(self, ts: int) -> int:
        """Return a number of decisions that had been made by then, for certain."""
        at = bisect_right(self.seconds, ts // SECOND) - 1
        return self.counts[at] if at >= 0 else 0

    def at_most(self, ts: int, decisions: int) -> int:
        """Return the most decisions that can have been made by then, of so many there are now."""
        at = bisect_right(self.seconds, ts // SECOND)
        return self.counts[at] if at < len(self.seconds) else decisions

    def state(self) -> list[Any]:
        """Return everything as lists, for JSON."""
        return [self.due, self.seconds, self.counts]

    @staticmethod
    def restore(state: Sequence[Any]) -> DecisionTimes:
        """Return the times that had this state; a ValueError or TypeError says that it is not one."""
        due, seconds, counts = state
        times = DecisionTimes()
        times.due, times.seconds, times.counts = whole(due), [whole(one) for one in seconds], [whole(n) for n in counts]
        if len(seconds) != len(counts) or sorted(seconds) != seconds or sorted(counts) != counts:
            raise ValueError("moments are not in order")
        return times


class Delays:
    """How many values came how long after their decisions, in powers of two of a second."""

    __slots__ = ("bins", "longest")

    def __init__(self) -> None:
        self.bins: list[int] = []
        self.longest = 0  # microseconds

    def add(self, delay: int) -> None:
        """Count one."""
        at, bins = (delay // SECOND).bit_length() if delay > 0 else 0, self.bins
        if at >= len(bins):
            at = min(at, BINS - 1)
            bins += [0] * (at + 1 - len(bins))
        bins[at] += 1
        if delay > self.longest:
            self.longest = delay

    def state(self) -> list[Any]:
        """Return everything as lists, for JSON."""
        return [self.longest, self.bins]

    @staticmethod
    def restore(state: Sequence[Any]) -> Delays:
        """Return the delays that had this state; a ValueError or TypeError says that it is not one."""
        longest, bins = state
        delays = Delays()
        delays.longest, delays.bins = whole(longest), [whole(n) for n in bins]
        if len(bins) > BINS or min(bins, default=0) < 0:
            raise ValueError("delays are not counts")
        return delays

    def shares(self, times: DecisionTimes, now: int, decisions: int) -> list[float]:
        """Return which part of the decisions that are old enough came in each bin."""
        return [
            n / max(times.at_most(now - least_delay(at), decisions), n) if n else 0.0 for at, n in enumerate(self.bins)
        ]


def least_delay(at: int) -> int:
    """Return the shortest delay of a bin; that of the next is where it ends."""
    return SECOND << (at - 1) if at else 0


def whole(number: object) -> int:
    """Refuse what is not a whole number, read from JSON."""
    if type(number) is not int:
        raise ValueError(f"{number!r} is not a whole number")
    return number


def finite(number: object) -> float:
    """Refuse what is not a number, read from JSON."""
    if not isinstance(number, int | float) or isinstance(number, bool) or not math.isfinite(number):
        raise ValueError(f"{number!r} is not a number")
    return float(number)
