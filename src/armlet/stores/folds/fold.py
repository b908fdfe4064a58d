"""Folds: sums over the rows of a loop. Each row is seen once, when it is written or when it is played again.

A fold is a subclass of `Fold` in a module of this package: its `key` in the JSON of a tally, and a method `on_KIND`,
which is O(1), for each kind of row that it counts. A tally makes one of each, and `tally[Subclass]` returns it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from armlet.stores.ledger import Row
from armlet.types import Arm

ERASE: Final = "erase"
"""The kind of a row that no ledger has: all about a decision is deleted, and only folds see its values once more."""
SECOND: Final = 1_000_000  # microseconds


class Seen:
    """A row as folds see it, read once for all of them: a tally has one of these, and fills it in for each row."""

    __slots__ = (
        *("about", "after", "arm", "before", "decisions", "explored", "fields", "is_reported", "n_arms", "place"),
        "row",
    )

    row: Row
    fields: Mapping[str, Any]  # of the row
    about: Row  # the row of the decision; of a row about none, the row itself
    decisions: int  # so far, with this one
    n_arms: int  # so far
    arm: Arm  # that was played
    place: int  # of this arm; -1 for none
    explored: bool  # a coin chose this arm
    before: float | None  # what was learned of the decision until now, as one value
    after: float | None  # and what is from now on
    is_reported: bool  # what is learned was reported, and is not the default of a window


class Fold:
    """Sums over rows; see the module."""

    __slots__ = ()

    key: ClassVar[str]
    kinds: ClassVar[tuple[str, ...]]
    required: ClassVar[bool] = False  # a tally that lacks it is damaged; others are left out while they are empty

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.kinds = tuple(name[3:] for name in dir(cls) if name.startswith("on_"))
        if "key" in cls.__dict__:
            FOLDS[cls.key] = cls

    def add_arm(self) -> None:
        """Make room for one more arm."""

    def move(self, place: int, into: int) -> None:
        """Count an arm together with others, so that its place is free."""

    def state(self) -> Any:
        """Return everything as lists, for JSON; empty if nothing was counted, unless it is `required`."""
        raise NotImplementedError

    @classmethod
    def restore(cls, state: Any) -> Fold:
        """Return the fold that had this state; a ValueError, TypeError or KeyError says that it is not one."""
        raise NotImplementedError

    def check(self, n_arms: int) -> None:
        """Raise a ValueError if it is of another number of arms."""


FOLDS: Final[dict[str, type[Fold]]] = {}


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
