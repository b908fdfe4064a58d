"""What is counted by arm: decisions and what is learned of them, tables of actions, and plays over time.

Arms of a catalogue come and go, more than a tally can count one by one: it keeps the `MOST` that are played most, by
the space-saving rule of Metwally, Agrawal and El Abbadi (2005), and all others as one. A newcomer takes the place of
the arm that counts least, and counts as much plus one, so that it can stay if it is played again; its own sums begin at
nothing. Of tables it knows the rows of those that have a name, and of the last `TABLES` that were used. State O(arms).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from armlet.stores.folds.fold import Fold, Seen, finite, whole
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

    def on_decide(self, seen: Seen) -> None:
        """Count a decision."""
        sums = self._sums[seen.place]
        sums[DECIDED] += 1
        if seen.explored:
            sums[EXPLORED] += 1

    def on_learn(self, seen: Seen) -> None:
        """Count the first value of a decision."""
        value = seen.after
        if value is None:
            return
        sums = self._sums[seen.place]
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

    def on_correct(self, seen: Seen) -> None:
        """Count another value instead."""
        before, after = seen.before, seen.after
        if before is None or after is None:
            return
        sums = self._sums[seen.place]
        sums[TOTAL] += after - before
        sums[SQUARES] += after * after - before * before
        if seen.explored:
            sums[DRAWN_TOTAL] += after - before
        self._widen(after)

    def on_forget(self, seen: Seen) -> None:
        """Take a default back; among the values of explored decisions it stays, for another arm."""
        value = seen.before
        if value is None:
            return
        sums = self._sums[seen.place]
        sums[COUNT] -= 1
        sums[TOTAL] -= value
        sums[SQUARES] -= value * value
        if self._range == [value, value]:
            self._range = []

    def on_erase(self, seen: Seen) -> None:
        """Take back what was learned of a decision that is deleted."""
        self.on_forget(seen)
        if seen.before is not None and seen.explored:
            sums = self._sums[seen.place]
            sums[DRAWN] -= 1
            sums[DRAWN_TOTAL] -= seen.before

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


MOST: Final = 100  # arms that are counted by themselves
TABLES: Final = 64  # hashes whose rows are remembered


class TableRow(NamedTuple):
    """A table of actions in a ledger: its row, and the hash of its contents."""

    seq: int
    hash: str


@dataclass(frozen=True, slots=True)
class BaselineCounts:
    """How often the policy would have played what its caller played instead."""

    decisions: int  # with a baseline
    agreed: int  # of these, where the policy would have played the same

    @property
    def share(self) -> float:
        """Of decisions with a baseline, those on which both agree."""
        return self.agreed / self.decisions


class Catalogue(Fold):
    """Tables, baselines and deferred decisions of a loop.

    Examples
    --------
    >>> catalogue = Catalogue()
    >>> catalogue.keep(7, "ab12", "shop")
    >>> catalogue.decided({"actions": "ab12", "table": 7, "arm": "a", "shadow": {"arm": "b"}}, is_erased=False)
    >>> catalogue.prepared["shop"].seq, catalogue.find("ab12"), catalogue.baseline
    (7, 7, BaselineCounts(decisions=1, agreed=0))
    """

    __slots__ = ("_agreed", "_compared", "_known", "bonus", "deferred", "prepared")

    def __init__(self) -> None:
        self.prepared: dict[str, TableRow] = {}  # by name
        self._known: dict[str, int] = {}  # rows by hash, the one that was used last at the end
        self._compared = self._agreed = 0
        self.deferred = 0  # decisions that wait to be activated
        self.bonus: list[int] = []  # by place: what counts for an arm besides its decisions

    def on_decide(self, seen: Seen) -> None:
        """Count a decision among the actions of a table."""
        self.decided(seen.fields, is_erased=seen.row.x is None)

    def on_actions(self, seen: Seen) -> None:
        """Remember the row of a table."""
        self.keep(seen.row.seq, seen.fields["hash"], seen.fields.get("name"))

    def on_remove_table(self, seen: Seen) -> None:
        """Forget a name."""
        self.prepared.pop(seen.fields["name"], None)

    def on_activate(self, seen: Seen) -> None:
        """Count a decision that waits no longer to be activated, since it was, or is deleted."""
        if seen.row.kind == "activate" or "deferred" in seen.fields:
            self.deferred -= 1

    on_erase = on_activate

    def add_arm(self) -> None:
        """Make room for one more arm."""
        self.bonus.append(0)

    def find(self, table: str) -> int | None:
        """Return the row of a table by its hash, if it is known."""
        return self._known.get(table)

    def keep(self, seq: int, table: str, name: str | None) -> None:
        """Remember the row of a table, and its name if it has one."""
        self._use(table, seq)
        if name is not None:
            self.prepared[name] = TableRow(seq, table)

    def _use(self, table: str, seq: int) -> None:
        self._known.pop(table, None)
        self._known[table] = seq
        if len(self._known) > TABLES:
            del self._known[next(iter(self._known))]

    @property
    def rows(self) -> set[int]:
        """The rows of tables that may be used again."""
        return {*self._known.values(), *(table.seq for table in self.prepared.values())}

    def decided(self, fields: Mapping[str, Any], *, is_erased: bool) -> None:
        """Count a decision by the fields of its row."""
        self._use(fields["actions"], fields["table"])
        if "shadow" in fields:
            self._compared += 1
            self._agreed += fields["shadow"]["arm"] == fields["arm"]
        if "deferred" in fields and not is_erased:
            self.deferred += 1

    @property
    def baseline(self) -> BaselineCounts | None:
        """How often the policy agreed with a baseline; None if there was none."""
        return BaselineCounts(self._compared, self._agreed) if self._compared else None

    def least(self, decided: Sequence[float]) -> int:
        """Return the place of the arm that counts least."""
        return min(range(1, len(decided)), key=lambda place: decided[place] + self.bonus[place])

    def state(self) -> dict[str, Any]:
        """Return everything as lists, for JSON."""
        return {
            "prepared": {name: list(table) for name, table in self.prepared.items()},
            "known": list(self._known.items()),
            "counts": [self._compared, self._agreed, self.deferred],
            "bonus": self.bonus,
        }

    @staticmethod
    def restore(state: Mapping[str, Any]) -> Catalogue:
        """Return what had this state; a ValueError, TypeError or KeyError says that it is none."""
        catalogue = Catalogue()
        catalogue.prepared = {
            str(name): TableRow(whole(seq), str(digest)) for name, (seq, digest) in state["prepared"].items()
        }
        catalogue._known = {str(table): whole(seq) for table, seq in state["known"]}
        catalogue._compared, catalogue._agreed, catalogue.deferred = (whole(count) for count in state["counts"])
        catalogue.bonus = [whole(count) for count in state["bonus"]]
        return catalogue

    def check(self, n_arms: int) -> None:
        """Raise a ValueError if it is of another number of arms."""
        if len(self.bonus) != n_arms:
            raise ValueError(f"there are {n_arms} arms, but {len(self.bonus)} counts of what they had before")


CELLS: Final = 32
SHORTEST: Final = 16  # decisions of a cell
CHANGES: Final = 30  # that are remembered
LONGEST: Final = 300  # characters of a change

GUARDS: Final = ("control", "shadow")  # rules that guards tell of, too


class Cell:
    """A stretch of decisions: when it began, how many, how many explored and should have, and plays by arm."""

    __slots__ = ("expected", "explored", "n", "plays", "start")

    def __init__(self, start: int, n: int = 0, explored: int = 0, expected: float = 0.0) -> None:
        self.start, self.n, self.explored, self.expected = start, n, explored, expected
        self.plays: list[int] = []  # by arm; those that are missing at the end have none

    def join(self, later: Cell) -> None:
        """Add the cell that follows."""
        self.n += later.n
        self.explored += later.explored
        self.expected += later.expected
        self._reach(len(later.plays))
        for place, n in enumerate(later.plays):
            self.plays[place] += n

    def _reach(self, n_arms: int) -> None:
        self.plays += [0] * (n_arms - len(self.plays))

    def play(self, place: int) -> None:
        """Count a play of an arm."""
        self._reach(place + 1)
        self.plays[place] += 1


class Cells(Fold):
    """All decisions of a loop, in cells."""

    __slots__ = ("_width", "cells")

    key = "cells"
    required = True

    def __init__(self) -> None:
        self.cells: list[Cell] = []
        self._width = SHORTEST

    def on_decide(self, seen: Seen) -> None:
        """Count a decision."""
        place, rate = seen.place, seen.fields["exploration_rate"]
        cells = self.cells
        cell = self._next(seen.row.ts) if not cells or cells[-1].n >= self._width else cells[-1]
        cell.n += 1
        if rate is not None:
            cell.explored += seen.explored
            cell.expected += rate
        plays = cell.plays
        if place < len(plays):
            plays[place] += 1
        else:
            cell.play(place)

    def move(self, place: int, into: int) -> None:
        """Count the plays of an arm as those of others, so that its place is free."""
        for cell in self.cells:
            if place < len(cell.plays):
                cell.plays[into] += cell.plays[place]
                cell.plays[place] = 0

    def _next(self, ts: int) -> Cell:
        if len(self.cells) == CELLS:
            for at in range(0, CELLS, 2):
                self.cells[at].join(self.cells[at + 1])
            del self.cells[1::2]
            self._width *= 2
        self.cells.append(Cell(ts))
        return self.cells[-1]

    def shares(self, place: int) -> Iterator[float]:
        """Return the share of an arm in every cell; -1 is the place of one that was never played."""
        for cell in self.cells:
            yield cell.plays[place] / cell.n if 0 <= place < len(cell.plays) else 0.0

    def state(self) -> list[Any]:
        """Return everything as lists, for JSON."""
        return [self._width, [[c.start, c.n, c.explored, c.expected, c.plays] for c in self.cells]]

    @staticmethod
    def restore(state: Sequence[Any]) -> Cells:
        """Return the cells that had this state; a ValueError or TypeError says that it is none."""
        made = Cells()
        width, rows = state
        made._width = whole(width)
        for start, n, explored, expected, plays in rows:
            cell = Cell(whole(start), whole(n), whole(explored), finite(expected))
            cell.plays = [whole(number) for number in plays]
            if sum(cell.plays) != cell.n:
                raise ValueError(f"a cell of {cell.n} decisions has plays {cell.plays!r}")
            made.cells.append(cell)
        return made
