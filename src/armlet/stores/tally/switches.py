"""How often units changed their arm within an epoch: what `unit` of `decide` is to prevent.

A changed context, other eligible arms or an arm that went can switch a unit; nothing else can. Memory: the last arm of
the 1,024 units that came last, of the epoch under way; a unit that comes again after so many others is not compared.
Names of units are kept as 48 bits of a hash.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from armlet.kernel import unit_seed
from armlet.stores.tally.delays import whole
from armlet.stores.tally.folds import Fold, Seen

MOST: Final = 1024  # units whose last arm is remembered
BITS: Final = 48  # of the hash of a name


@dataclass(frozen=True, slots=True)
class UnitCounts:
    """What a tally says of units."""

    decisions: int  # of units
    repeats: int  # of these, of a unit that had decided in the epoch before; of the last 1,024 of them
    switches: int  # of these, with another arm than before: the context or the arms to choose from were others


class Switches(Fold):
    """Counts the decisions of units, those that came again within the epoch, and those with another arm then.

    Examples
    --------
    >>> counts = Switches()
    >>> for unit, epoch, arm in [("u", 0, 2), ("u", 0, 2), ("v", 0, 1), ("u", 0, 1), ("u", 1, 0)]:
    ...     counts.decided(unit, epoch, arm)
    >>> counts.counts
    UnitCounts(decisions=5, repeats=2, switches=1)
    """

    __slots__ = ("_arms", "_epoch", "decisions", "repeats", "switches")

    key = "units"
    kinds = ("decide",)

    def __init__(self) -> None:
        self.decisions = self.repeats = self.switches = 0
        self._epoch = 0
        self._arms: dict[int, int] = {}  # of units by their hash, that which came last at the end

    def see(self, seen: Seen) -> None:
        """Count a decision, if it is of a unit."""
        unit = seen.fields.get("unit")
        if unit is not None:
            self.decided(unit, seen.fields["epoch"] or 0, seen.place)

    def decided(self, unit: str, epoch: int, place: int) -> None:
        """Count a decision, by the place of its arm."""
        if epoch != self._epoch:
            self._epoch = epoch
            self._arms.clear()
        key = unit_seed(0, unit) % 2**BITS
        before = self._arms.pop(key, None)
        self._arms[key] = place
        self.decisions += 1
        if before is not None:
            self.repeats += 1
            self.switches += before != place
        elif len(self._arms) > MOST:
            del self._arms[next(iter(self._arms))]

    @property
    def counts(self) -> UnitCounts:
        """What was counted."""
        return UnitCounts(self.decisions, self.repeats, self.switches)

    def state(self) -> list[Any]:
        """Return everything as numbers, for JSON."""
        if not self.decisions:
            return []
        arms = list(chain.from_iterable(self._arms.items()))
        return [self.decisions, self.repeats, self.switches, self._epoch, arms]

    @staticmethod
    def restore(state: list[Any]) -> Switches:
        """Return the counts that had this state."""
        *counts, arms = state
        made = Switches()
        made.decisions, made.repeats, made.switches, made._epoch = (whole(count) for count in counts)
        numbers = [whole(number) for number in arms]
        made._arms = dict(zip(numbers[::2], numbers[1::2], strict=True))
        if not made.decisions >= made.repeats >= made.switches >= 0:
            raise ValueError("its counts of units do not add up")
        return made
