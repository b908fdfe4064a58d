"""Folds: sums over the rows of a loop. Each row is seen once, when it is written or when it is played again.

A fold is a subclass of `Fold` in a module of this package: its `key` in the JSON of a tally, the `kinds` of rows that
it sees, and `see`, which is O(1). A tally makes one of each subclass, and `tally[Subclass]` returns it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, NamedTuple

from armlet.stores.ledger import Row
from armlet.types import Arm

ERASE: Final = "erase"
"""The kind of a row that no ledger has: all about a decision is deleted, and only folds see its values once more."""


class Seen(NamedTuple):
    """A row as folds see it: read once for all of them."""

    row: Row
    fields: Mapping[str, Any]  # of the row
    about: Row  # the row of the decision; of a row about none, the row itself
    decisions: int  # so far, with this one
    n_arms: int  # so far
    arm: Arm = ""  # that was played
    place: int = -1  # of this arm
    explored: bool = False  # a coin chose this arm
    before: float | None = None  # what was learned of the decision until now, as one value
    after: float | None = None  # and what is from now on
    is_reported: bool = True  # what is learned was reported, and is not the default of a window


class Fold:
    """Sums over rows; see the module."""

    __slots__ = ()

    key: ClassVar[str]
    kinds: ClassVar[tuple[str, ...]]
    required: ClassVar[bool] = False  # a tally that lacks it is damaged; others are left out while they are empty

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "key" in cls.__dict__:
            FOLDS[cls.key] = cls

    def see(self, seen: Seen) -> None:
        """Count a row."""
        raise NotImplementedError

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
