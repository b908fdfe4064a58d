"""The timeline of a loop: shares of arms and exploring over all its decisions, in a few cells, and its last changes.

A cell is a stretch of decisions; when there are `CELLS` of them, neighbours are joined and new ones are twice as long.
So there are 16 to 32 after the first few hundred decisions, however many follow. O(1) a decision, memory O(arms).
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from armlet.cast.cast import role_of, shadows_of
from armlet.record.kinds import KINDS
from armlet.stores.tally.delays import finite, whole
from armlet.stores.tally.folds import Fold, Seen

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
    kinds = ("decide",)
    required = True

    def __init__(self) -> None:
        self.cells: list[Cell] = []
        self._width = SHORTEST

    def see(self, seen: Seen) -> None:
        """Count a decision."""
        self.decided(seen.place, seen.explored, seen.fields["exploration_rate"], seen.row.ts)

    def decided(self, place: int, explored: bool, rate: float | None, ts: int) -> None:
        """Count a decision."""
        cells = self.cells
        cell = self._next(ts) if not cells or cells[-1].n >= self._width else cells[-1]
        cell.n += 1
        if rate is not None:
            cell.explored += explored
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
        found = Cells()
        width, cells = state
        found._width = whole(width)
        for start, n, explored, expected, plays in cells:
            cell = Cell(whole(start), whole(n), whole(explored), finite(expected))
            cell.plays = [whole(number) for number in plays]
            if sum(cell.plays) != cell.n:
                raise ValueError(f"a cell of {cell.n} decisions has plays {cell.plays!r}")
            found.cells.append(cell)
        return found


@dataclass(frozen=True, slots=True)
class Change:
    """Something that was changed in a loop, in words."""

    seq: int  # its row
    at: int  # microseconds since 1970
    text: str

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain JSON types."""
        return {"seq": self.seq, "at": self.at, "text": self.text}


def words_of(kind: str, fields: Mapping[str, Any], before: Mapping[str, Any]) -> str:
    """Say what a row has changed; `before` are the guards until then.

    Examples
    --------
    >>> words_of("add_arm", {"arm": "sale"}, {})
    "arm 'sale' added"
    >>> words_of("change", {"rules": {"window": 60.0}, "replaces": [{"reward_range": [0.0, 5.0]}]}, {})
    'window: 60.0; reward_range: [0.0, 5.0]'
    >>> words_of("change", {"rules": {}, "replaces": [{"guards": {"frozen": True}}]}, {})
    'frozen'
    """
    text = "; ".join(_parts(fields, before))
    text = text or KINDS[kind].words.format_map({name: repr(value) for name, value in fields.items()})
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def _parts(fields: Mapping[str, Any], before: Mapping[str, Any]) -> Iterator[str]:
    rules: Mapping[str, Any] = fields.get("rules", {})
    yield from (f"{name}: {_plain(value)}" for name, value in rules.items() if name not in GUARDS)
    for replaced in fields.get("replaces", ()):
        for name, value in replaced.items():
            if name == "policy":
                yield f"policy: {policy_words(value)}"
            elif name == "guards":
                yield from _guard_parts(value, before)
            elif name == "encoder":
                yield "another encoder"
            elif name != "fill":
                yield f"{name}: {_plain(value)}"


def _guard_parts(now: Mapping[str, Any], before: Mapping[str, Any]) -> Iterator[str]:
    if now.get("control") != before.get("control"):
        control = now.get("control")
        yield f"control: {'none' if control is None else control_words(control)}"
    ours, theirs = shadows_of(now), shadows_of(before)
    for name in {**theirs, **ours}:
        if ours.get(name) != theirs.get(name):
            yield f"{role_of(name)}: {policy_words(ours[name]) if name in ours else 'none'}"
    if ("frozen" in now) != ("frozen" in before):
        yield "frozen" if "frozen" in now else "thawed"


def control_words(control: Mapping[str, Any]) -> str:
    """Say what a control plays, and its share.

    Examples
    --------
    >>> control_words({"arm": "sale", "share": 0.1})
    'always "sale", in 10 % of decisions'
    """
    return f"{control_label(control)}, in {100 * control['share']:.3g} % of decisions"


def control_label(control: Mapping[str, Any]) -> str:
    """Say what a control plays."""
    return f'always "{control["arm"]}"' if "arm" in control else policy_words(control["policy"])


def policy_words(header: Mapping[str, Any]) -> str:
    """Return a policy by its name and settings.

    Examples
    --------
    >>> policy_words({"name": "FixedEpsilon", "settings": {"epsilon": 0.1, "ridge": None}})
    'FixedEpsilon(epsilon=0.1)'
    """
    values: Mapping[str, Any] = header.get("settings", {})
    settings = ", ".join(f"{name}={_plain(value)}" for name, value in values.items() if value is not None)
    return f"{header['name']}({settings})"


def _plain(value: object) -> str:
    return "none" if value is None else reprlib.repr(value)
