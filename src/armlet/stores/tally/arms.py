"""Counts and sums by arm: decisions, explored ones, rewards, defaults, and what is learned now. State O(arms)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from armlet.stores.tally.delays import finite, whole
from armlet.stores.tally.folds import ERASE, Fold, Seen
from armlet.types import Arm

OTHERS: Final = 0  # the place of all arms of a catalogue that are counted as one
SEVERAL: Final = [0.0, 1.0]  # values were reported; which ones may be somebody's secret
NUMBERS: Final = 9  # of an arm: six counts and three sums
DECIDED, EXPLORED, REWARDS, DEFAULTS, COUNT, DRAWN, TOTAL, SQUARES, DRAWN_TOTAL = range(NUMBERS)


@dataclass(frozen=True, slots=True)
class ArmCounts:
    """What a tally says of one arm."""

    arm: Arm
    decisions: int
    explored: int
    rewards: int  # first values that were reported
    defaults: int  # windows that closed without one
    learned: int  # values that are learned now
    mean: float | None  # of these; None if there are none
    variance: float | None  # of these; None if there are fewer than 2
    explored_mean: float | None  # of the values of explored decisions, which no context chose


class ArmSums(Fold):
    """Sums of every arm, in the order in which they were first seen."""

    __slots__ = ("_range", "_sums", "defaulted_total", "labels", "places")

    kinds = ("decide", "learn", "correct", "forget", ERASE)

    def __init__(self) -> None:
        self.labels: list[Arm] = []
        self.places: dict[Arm, int] = {}  # of arms that are counted by themselves
        self._sums: list[list[float]] = []  # by arm
        self._range: list[float] = []  # of rewards while all of them are alike, and then that of SEVERAL
        self.defaulted_total = 0.0  # of defaults that were learned first

    # ---- places

    def append(self, arm: Arm, *, is_named: bool = True) -> int:
        """Make room for one more arm, and return its place."""
        place = len(self.labels)
        self.labels.append(arm)
        self._sums.append([0] * TOTAL + [0.0] * (NUMBERS - TOTAL))
        if is_named:
            self.places[arm] = place
        return place

    def rename(self, place: int, arm: Arm) -> None:
        """Give a place that is free to another arm."""
        del self.places[self.labels[place]]
        self.labels[place] = arm
        self.places[arm] = place

    def move(self, place: int, into: int) -> None:
        """Count an arm together with others, so that its place is free."""
        pairs = zip(self._sums[into], self._sums[place], strict=True)
        self._sums[into] = [others + one for others, one in pairs]
        self._sums[place] = [0] * TOTAL + [0.0] * (NUMBERS - TOTAL)

    # ---- rows

    def see(self, seen: Seen) -> None:
        """Count a decision, or what is learned of one."""
        sums = self._sums[seen.place]
        if seen.row.kind == "decide":
            sums[DECIDED] += 1
            if seen.explored:
                sums[EXPLORED] += 1
            return
        before, after = seen.before, seen.after
        if before is None:
            if after is not None:
                self._learn(sums, after, seen)
        elif after is None:
            # a default that is taken back counts on among the values of explored decisions, for another arm
            sums[COUNT] -= 1
            sums[TOTAL] -= before
            sums[SQUARES] -= before * before
            if seen.explored and seen.row.kind == ERASE:
                sums[DRAWN] -= 1
                sums[DRAWN_TOTAL] -= before
            if self._range == [before, before]:
                self._range = []
        else:
            sums[TOTAL] += after - before
            sums[SQUARES] += after * after - before * before
            if seen.explored:
                sums[DRAWN_TOTAL] += after - before
            self._widen(after)

    def _learn(self, sums: list[float], value: float, seen: Seen) -> None:
        """Count the first value of a decision."""
        sums[COUNT] += 1
        sums[TOTAL] += value
        sums[SQUARES] += value * value
        if seen.explored:
            sums[DRAWN] += 1
            sums[DRAWN_TOTAL] += value
        if seen.is_reported:
            sums[REWARDS] += 1
            if self._range is not SEVERAL:
                self._widen(value)
        else:
            sums[DEFAULTS] += 1
            self.defaulted_total += value

    def _widen(self, value: float) -> None:
        if not self._range:
            self._range = [value, value]
        elif self._range != [value, value]:
            self._range = SEVERAL

    # ---- what they say

    @property
    def decided(self) -> list[float]:
        """Decisions of each arm."""
        return [sums[DECIDED] for sums in self._sums]

    @property
    def explored(self) -> int:
        """How many decisions explored."""
        return self._count(EXPLORED)

    @property
    def rewarded(self) -> int:
        """How many decisions had a first value that was reported."""
        return self._count(REWARDS)

    @property
    def defaulted(self) -> int:
        """How many decisions had a first value that was the default of a window."""
        return self._count(DEFAULTS)

    @property
    def learned(self) -> int:
        """How many values are learned now."""
        return self._count(COUNT)

    @property
    def total(self) -> float:
        """The sum of the values that are learned now."""
        return sum(sums[TOTAL] for sums in self._sums)

    def _count(self, part: int) -> int:
        return int(sum(sums[part] for sums in self._sums))

    @property
    def is_complete(self) -> bool:
        """Whether rewards of several values are reported, rather than successes alone."""
        return bool(self._range) and self._range[0] < self._range[1]

    def counts(self, place: int) -> ArmCounts:
        """Return what was counted of the arm at a place."""
        *counts, total, squares, drawn_total = self._sums[place]
        decisions, explored, rewards, defaults, n, drawn = map(int, counts)
        return ArmCounts(
            arm=self.labels[place],
            decisions=decisions,
            explored=explored,
            rewards=rewards,
            defaults=defaults,
            learned=n,
            mean=total / n if n > 0 else None,
            variance=max(squares - total * total / n, 0.0) / (n - 1) if n > 1 else None,
            explored_mean=drawn_total / drawn if drawn else None,
        )

    # ---- JSON

    def state(self) -> dict[str, Any]:
        """Return everything as lists, for JSON."""
        columns = [[sums[part] for sums in self._sums] for part in range(NUMBERS)]
        return {"range": self._range, "arms": self.labels, "columns": columns}

    @staticmethod
    def read(state: dict[str, Any], first: int) -> ArmSums:
        """Return the sums that had this state; arms before the `first` one are many that are counted as one."""
        sums = ArmSums()
        for place, arm in enumerate(state["arms"]):
            if place >= first and (type(arm) not in (str, int) or arm in sums.places):
                raise ValueError(f"{arm!r} is not an arm, or is there twice")
            sums.append(arm, is_named=place >= first)
        for part, column in zip(range(NUMBERS), state["columns"], strict=True):
            if len(column) != len(sums.labels):
                raise ValueError(f"there are {len(sums.labels)} arms, but {len(column)} numbers of them")
            for place, number in enumerate(column):
                sums._sums[place][part] = whole(number) if part < TOTAL else finite(number)
        ends = [finite(end) for end in state["range"]]
        sums._range = SEVERAL if ends == SEVERAL else ends
        return sums
