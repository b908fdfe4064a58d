"""Tables of actions as rows of a loop, and back.

A table is a row of kind `actions`, written before the first decision that was made among its actions, which names the
row. Features are the bytes of the row, (n, width) float64. Where few actions have changed since a table that is known,
the row has only these, and the number of the other row; at most `DEPTH` rows lead to a whole one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from armlet.actions.table import ActionTable
from armlet.errors import ArmletError, StoreError
from armlet.stores.ledger import Row
from armlet.stores.rows.decisions import BYTES, bytes_of, checked
from armlet.types import Arm, Int64

DEPTH: Final = 16  # rows that are read for a table, besides a whole one
SMALL: Final = 32  # actions of a table that is written whole in any case

Find = Callable[[int], Row | None]


class KeptTable(NamedTuple):
    """A table, its row, and how many rows lead from there to one that has it whole."""

    seq: int
    depth: int
    table: ActionTable


class TableFields(NamedTuple):
    """A table as a row has it."""

    fields: dict[str, Any]
    Z: bytes
    depth: int


def fields_of_table(table: ActionTable, name: str | None, base: KeptTable | None) -> TableFields:
    """Return what a row says of a table: all of it, or what has changed since another one if that is little."""
    fields: dict[str, Any] = {"hash": table.hash, "width": table.dim}
    if table.names is not None:
        fields["names"] = list(table.names)
    if name is not None:
        fields["name"] = name
    change = None if base is None or base.depth >= DEPTH else _changes(table, base.table)
    if base is None or change is None:
        return TableFields({**fields, "labels": list(table.labels)}, bytes_of(table.features), 0)
    new, gone = change
    fields |= {"base": base.seq, "from": base.table.hash, "remove": gone}
    labels = [table.labels[place] for place in new.tolist()]
    return TableFields({**fields, "labels": labels}, bytes_of(table.features[new]), base.depth + 1)


def _changes(table: ActionTable, base: ActionTable) -> tuple[Int64, list[Arm]] | None:
    """Return the places of actions that are new or have other features, and the labels that are gone, if few."""
    if len(table) < SMALL or (table.names, table.dim) != (base.names, base.dim):
        return None
    new = np.flatnonzero(~np.isin(table.keys, base.keys))
    gone = [label for label in base.labels if label not in table]
    return (new, gone) if 2 * (len(new) + len(gone)) <= len(table) else None


def table_of(row: Row, find: Find) -> KeptTable:
    """Return the table of a row; `find` leads to others that it says the changes of."""
    rows = [*_upwards(row, find)]
    try:
        labels, Z, names = _own(rows[-1])
        table = ActionTable._of(labels, Z, names)
        for each in reversed(rows[:-1]):
            labels, Z, _ = _own(each)
            table = table.changed(dict(zip(labels, Z, strict=True)), each.fields["remove"])
    except (ArmletError, ValueError, KeyError, TypeError) as error:
        raise _damaged(row, str(error)) from error
    if table.hash != row.fields["hash"]:
        raise _damaged(row, f"it has hash {table.hash}, but is said to have {row.fields['hash']}")
    return KeptTable(row.seq, len(rows) - 1, table)


def _upwards(row: Row | None, find: Find) -> Iterator[Row]:
    """Yield a row, and those that it says the changes of, up to a whole one."""
    for _ in range(DEPTH + 1):
        if row is None or row.kind != "actions" or row.x is None:
            raise StoreError("a table of actions of the loop is missing; go back to a backup")
        yield checked(row)
        if "base" not in row.fields:
            return
        row = find(row.fields["base"])
    raise StoreError(f"a table of actions of the loop is the change of more than {DEPTH} others; go back to a backup")


def _own(row: Row) -> tuple[list[Arm], Any, tuple[str, ...] | None]:
    """Return the labels, the features and their names that are in a row itself."""
    fields: Mapping[str, Any] = row.fields
    labels, names = fields["labels"], fields.get("names")
    Z = np.frombuffer(row.x or b"", dtype=BYTES).astype(np.float64).reshape(len(labels), fields["width"])
    return labels, Z, None if names is None else tuple(names)


class TableUse:
    """Which tables the rows of a loop name."""

    def __init__(self) -> None:
        self._bases: dict[int, int | None] = {}  # of each table: the row that it is a change of
        self._named: set[int] = set()

    def see(self, rows: Iterable[Row]) -> None:
        """Take note of rows."""
        for row in rows:
            if row.kind == "actions":
                self._bases[row.seq] = row.fields.get("base")
            elif row.kind == "decide" and "table" in row.fields:
                self._named.add(row.fields["table"])

    def unused(self, upto: int, known: set[int]) -> list[int]:
        """Return tables up to a row that nothing names: no decision, no table that is used, and `known` neither."""
        used: set[int] = set()
        later = {seq for seq in self._bases if seq > upto}
        for seq in self._named | known | later:
            at: int | None = seq
            while at is not None and at not in used:
                used.add(at)
                at = self._bases.get(at)
        return [seq for seq in self._bases if seq not in used]


def _damaged(row: Row, why: str) -> StoreError:
    return StoreError(f"row {row.seq} of the loop is not a valid 'actions': {why}; go back to a backup")
