"""The tables of a log of actions: which of them its next events may name, and how one is written.

A table is written when a decision chooses from one that readers need not keep: whole, or by what is other than in one
that they do keep. They keep the `KEPT` tables that were used last, up to `VALUES` values in all, and those that were
prepared under a name: neither writers nor readers need memory that grows with the log. O(1) for a table that is kept,
O(n log n) for a new one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

import numpy as np

from armlet.actions.table import ActionTable
from armlet.errors import ArmletError, LogError
from armlet.log.reader import Source, read
from armlet.record.faults import explain
from armlet.record.kinds import OF_TABLES
from armlet.record.values import Event

KEPT: Final = 64
"""Tables without a name that a reader keeps."""
VALUES: Final = 2**22
"""Labels and numbers in all of these; the one that was used last is kept regardless."""
BASES: Final = 8  # tables that a new one is compared with


class Tables:
    """The tables that the next event may name; a writer and a reader of the same events keep the same.

    Examples
    --------
    >>> written, read = Tables(), Tables()
    >>> table = ActionTable(["a", "b", "c"], [[1.0], [2.0], [3.0]])
    >>> event = {"seq": 1, **written.fields(table)}
    >>> written.take(table)
    >>> read.take(read.decode(event))
    >>> written.fields(table) is None  # it is kept
    True
    >>> event = {"seq": 2, **written.fields(table.changed(remove=["b"]))}
    >>> event["from"] == table.hash, event["remove"], read.decode(event).labels
    (True, ['b'], ('a', 'c'))
    """

    def __init__(self) -> None:
        self.named: dict[str, ActionTable] = {}
        """The tables that were prepared, by name."""
        self._pinned: dict[str, ActionTable] = {}  # the same by hash
        self._used: OrderedDict[str, ActionTable] = OrderedDict()  # the others, the one that was used last at the end
        self._values = 0  # values in these

    def find(self, wanted: str) -> ActionTable | None:
        """Return the table of a hash, if it is kept."""
        return self._pinned.get(wanted) or self._used.get(wanted)

    def get(self, wanted: str, event: Mapping[str, Any]) -> ActionTable:
        """Return the table that an event names."""
        table = self.find(wanted)
        if table is None:
            text = f"event {event['seq']:,} names the table {wanted}, which is not told before it, or too long ago"
            raise LogError(text, event["seq"])
        return table

    # ---- events

    def fields(self, table: ActionTable, name: str | None = None) -> Event | None:
        """Return the fields of the event that tells a table, or its name; None if nothing is to be told."""
        known = self.find(table.hash)
        if known is not None and (name is None or self.named.get(name) is known):
            return None
        fields = table.fields(self._nearest(table, name) if known is None else known)
        if "from" in fields:
            fields.pop("names", None)  # those of the table that it changes
        return fields if name is None else {**fields, "name": name}

    def decode(self, event: Event) -> ActionTable:
        """Return the table that an event tells; refuse one that has another hash."""
        try:
            return ActionTable.from_fields(event, lambda wanted: self.get(wanted, event))
        except LogError:
            raise
        except ArmletError as error:
            text = f"event {event['seq']:,} is not a table of actions: {explain(error)}"
            raise LogError(text, event["seq"]) from error

    def read(self, event: Event) -> ActionTable | None:
        """Keep the table that an event tells, and return it; or drop the one that it removes."""
        if event["kind"] != "actions":
            self.drop(event["name"])
            return None
        table = self.decode(event)
        self.take(table, event.get("name"))
        return table

    def chosen_from(self, event: Event) -> ActionTable:
        """Return the table that a decision chose from, which is used by it; refuse one that has no such choice."""
        table = self.get(event["actions"], event)
        if why := _impossible(event, table):
            text = f"event {event['seq']:,} is not a choice from its table: {why}"
            raise LogError(text, event["seq"])
        self.use(table)
        return table

    def _nearest(self, table: ActionTable, name: str | None) -> ActionTable | None:
        """Return the one of some tables that shares most rows with a new one; the first that shares half of them."""
        best, most = None, 0
        before = () if name is None or name not in self.named else (self.named[name],)
        last = (*islice(reversed(self._used.values()), BASES), *islice(reversed(self._pinned.values()), BASES))
        for base in (*before, *last):
            shared = int(np.isin(table.keys, base.keys, kind="sort").sum())
            if shared > most:
                best, most = base, shared
            if 2 * most > len(table):
                break
        return best

    # ---- what is kept

    def after_taking(self, table: ActionTable, name: str | None = None) -> Tables:
        """Return what is kept after a table was told; this stays as it is."""
        after = self._copied()
        after.take(table, name)
        return after

    def after_dropping(self, name: str) -> Tables:
        """Return what is kept after a table has lost its name; this stays as it is."""
        after = self._copied()
        after.drop(name)
        return after

    def after_using(self, table: ActionTable) -> Tables:
        """Return what is kept after a decision chose from a table, this itself if nothing differs."""
        if table.hash in self._pinned or (self._used and next(reversed(self._used)) == table.hash):
            return self
        after = self._copied()
        after.use(table)
        return after

    def _copied(self) -> Tables:
        other = Tables()
        other.named, other._pinned = dict(self.named), dict(self._pinned)
        other._used, other._values = self._used.copy(), self._values
        return other

    def take(self, table: ActionTable, name: str | None = None) -> None:
        """Keep a table that was told, for as long as it has this name if it has one."""
        if name is None:
            self.use(table)
            return
        before = self.named.get(name)
        self.named[name] = self.find(table.hash) or table
        self._pinned = {one.hash: one for one in self.named.values()}
        if self._used.pop(table.hash, None) is not None:
            self._values -= _size(table)
        if before is not None:
            self.use(before)

    def drop(self, name: str) -> None:
        """Keep a table no longer under this name, if there is one; it is used at that moment."""
        before = self.named.pop(name, None)
        if before is not None:
            self._pinned = {one.hash: one for one in self.named.values()}
            self.use(before)

    def use(self, table: ActionTable) -> None:
        """Take note that a table is used, and drop those that were not for longest."""
        if table.hash in self._pinned:
            return
        if table.hash not in self._used:
            self._used[table.hash] = table
            self._values += _size(table)
        self._used.move_to_end(table.hash)
        while len(self._used) > KEPT or (self._values > VALUES and len(self._used) > 1):
            self._values -= _size(self._used.popitem(last=False)[1])


def with_tables(log: Source) -> Iterator[tuple[Event, ActionTable]]:
    """Yield every decision of a log of actions, and the table that it chose from; O(1) memory.

    Parameters
    ----------
    log
        A path, .jsonl or .parquet, an `armlet.Log`, or `Events`.

    Examples
    --------
    >>> import tempfile, pathlib, armlet
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "decisions.jsonl"
    >>> with armlet.Log(path) as log:
    ...     bandit = armlet.ActionBandit(1, 1, seed=1, log=log)
    ...     _ = bandit.decide([0.5], {"tea": [2.0], "milk": [1.0]})
    ...     _ = bandit.decide([0.1], {"tea": [2.0], "milk": [1.5]})
    >>> [(event["t"], table["milk"].tolist()) for event, table in armlet.log.with_tables(path)]
    [(1, [1.0]), (2, [1.5])]
    """
    tables = Tables()
    for event in read(log):
        if event["kind"] in OF_TABLES:
            tables.read(event)
        elif event["kind"] == "decide" and "actions" in event:
            yield event, tables.chosen_from(event)


def _impossible(event: Event, table: ActionTable) -> str | None:
    arm, z = event["arm"], event["z"]
    if event["n_actions"] != len(table):
        return f"n_actions is {event['n_actions']}, but it has {len(table)}"
    named = [arm, *(event["eligible"] or ()), *(label for label, _ in event["support"] or ())]
    if unknown := [label for label in named if label not in table]:
        return f"it has no {unknown[0]!r}"
    if z is not None and z != table[arm].tolist():
        return f"z is {z}, but it has {table[arm].tolist()}"
    return None


def _size(table: ActionTable) -> int:
    return len(table) * (1 + table.dim)
