"""How often the wall clock left the time by which a loop ages its rows.

Rows are stamped with the wall clock, and aged by a steady one (`stores/runner.py`): the two differ by about the same
amount for as long as nothing is wrong. A clock that is set, or a replica whose clock is, changes it.
"""

from __future__ import annotations

from typing import Any, Final

from armlet.policies.discounts import MINUTE
from armlet.stores.tally.delays import whole
from armlet.stores.tally.folds import Fold, Seen

MOST: Final = 60  # minutes that they may come apart without a word: a row counts at most twice as much


class Stamps(Fold):
    """Counts the decisions at which the wall clock jumped, by more than an hour.

    Examples
    --------
    >>> stamps = Stamps()
    >>> for step, wall in enumerate([1_000, 1_001, 526_603, 1_003], 1):  # minutes: once, a year ahead
    ...     stamps.decided(wall * MINUTE, 1_000 + step, step)
    >>> stamps.jumps, stamps.last, stamps.farthest
    (2, 4, 525600)
    """

    __slots__ = ("_offset", "farthest", "jumps", "last")

    key = "stamps"
    kinds = ("decide",)

    def __init__(self, jumps: int = 0, last: int = 0, farthest: int = 0, offset: int = 0) -> None:
        self.jumps, self.last = jumps, last  # `last`: the decision with this number
        self.farthest, self._offset = farthest, offset  # minutes of the wall clock ahead of the other, now and ever

    def see(self, seen: Seen) -> None:
        """Count a decision, if its row is aged by time."""
        if tag := seen.fields.get("tag"):
            self.decided(seen.row.ts, tag, seen.decisions)

    def decided(self, stamp: int, minutes: int, number: int) -> None:
        """Count a decision by its stamp, in microseconds, and by the time that it is aged by."""
        offset = stamp // MINUTE - minutes
        if abs(offset - self._offset) > MOST:
            self._offset = offset
            self.jumps, self.last = self.jumps + 1, number
            self.farthest = max(self.farthest, offset, key=abs)

    def state(self) -> list[int]:
        """Return everything as numbers, for JSON."""
        return [self.jumps, self.last, self.farthest, self._offset] if self.jumps else []

    @staticmethod
    def restore(state: list[Any]) -> Stamps:
        """Return the counts that had this state."""
        jumps, last, farthest, offset = state
        for number in (farthest, offset):
            whole(abs(number))
        return Stamps(whole(jumps), whole(last), farthest, offset)
