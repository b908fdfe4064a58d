"""What a tally knows of a loop whose actions come with every decision: their tables, a baseline, what was deferred.

Arms of a catalogue come and go, more than a tally can count one by one: it keeps the `MOST` that are played most, by
the space-saving rule of Metwally, Agrawal and El Abbadi (2005), and all others as one. A newcomer takes the place of
the arm that counts least, and counts as much plus one, so that it can stay if it is played again; its own sums begin at
nothing. Of tables it knows the rows of those that have a name, and of the last `TABLES` that were used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from armlet.stores.tally.delays import whole
from armlet.stores.tally.folds import ERASE, Fold, Seen

MOST: Final = 100  # arms that are counted by themselves
TABLES: Final = 64  # hashes whose rows are remembered
RANKS: Final = 32  # actions of a support whose draws are tested


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

    kinds = ("decide", "actions", "remove_table", "activate", ERASE)

    def __init__(self) -> None:
        self.prepared: dict[str, TableRow] = {}  # by name
        self._known: dict[str, int] = {}  # rows by hash, the one that was used last at the end
        self._compared = self._agreed = 0
        self.deferred = 0  # decisions that wait to be activated
        self.bonus: list[int] = []  # by place: what counts for an arm besides its decisions

    def see(self, seen: Seen) -> None:
        """Count a row about a table, or a decision among its actions."""
        kind, fields = seen.row.kind, seen.fields
        if kind == "decide":
            self.decided(fields, is_erased=seen.row.x is None)
        elif kind == "actions":
            self.keep(seen.row.seq, fields["hash"], fields.get("name"))
        elif kind == "remove_table":
            self.prepared.pop(fields["name"], None)
        elif kind == "activate" or "deferred" in fields:
            self.deferred -= 1

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
        found = Catalogue()
        found.prepared = {
            str(name): TableRow(whole(seq), str(digest)) for name, (seq, digest) in state["prepared"].items()
        }
        found._known = {str(table): whole(seq) for table, seq in state["known"]}
        found._compared, found._agreed, found.deferred = (whole(count) for count in state["counts"])
        found.bonus = [whole(count) for count in state["bonus"]]
        return found

    def check(self, n_arms: int) -> None:
        """Raise a ValueError if it is of another number of arms."""
        if len(self.bonus) != n_arms:
            raise ValueError(f"there are {n_arms} arms, but {len(self.bonus)} counts of what they had before")


def rank_of(support: Sequence[Sequence[Any]], arm: object) -> tuple[int, float] | None:
    """Return the rank of an action by probability, among those that could be played, and the least probability.

    Ranks are known before the draw, as labels of a catalogue are, but there are few of them, so that bets on how often
    each is drawn have something to win. None if nothing was left to chance, or so many could be played that none is
    drawn often; that is known before the draw too.

    Examples
    --------
    >>> rank_of([["a", 0.2], ["b", 0.8]], "a"), rank_of([["a", 1.0]], "a")
    ((1, 0.2), None)
    """
    if not 1 < len(support) <= RANKS:
        return None
    ranked = sorted(support, key=lambda pair: -pair[1])
    rank = next(place for place, (label, _) in enumerate(ranked) if label == arm)
    return rank, ranked[-1][1]
