"""Units: decisions that share one coin, such as those of a session, are one draw and count as one.

A row's code names its unit within an epoch. Values are sums over rows as ever; how far they may be off is read off sums
over units (Liang and Zeger's cluster-robust variance). Reward models and row weights must not know a unit's coin, which
its other rows tell, so units are dealt into folds and each fold is predicted by what the others teach. Confidence
sequences bet once a unit, when its epoch is over. O(n log n) time a block; memory holds a number for each unit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from armlet.errors import ArgumentError, EvaluationError
from armlet.types import Bool, Float64, Int64

if TYPE_CHECKING:
    from armlet.evaluation.rows import Blocks, Rows

FOLDS: Final = 5
"""Parts that units are dealt into: what is predicted for one is learned from the others."""
ALONE: Final = np.uint64(0x9E3779B97F4A7C15)


# ---- codes


def unit_codes(units: Sequence[Any], epochs: Sequence[Any], t: Int64) -> Int64:
    """Return a number for each (epoch, unit), (n,); a row without a unit is a unit of its own, named by its step.

    Numbers are hashes of 64 bits, so that any block of a log can be read alone.

    Examples
    --------
    >>> one, other, later, alone = unit_codes(["a", "a", "a", None], [0, 0, 1, None], np.arange(4)).tolist()
    >>> one == other, one == later, len({one, later, alone})
    (True, False, 3)
    """
    codes = (t.astype(np.uint64) * ALONE).view(np.int64).copy()
    known: dict[tuple[Any, Any], int] = {}
    for place, key in enumerate(zip(units, epochs, strict=True)):
        if key[0] is not None:
            if key not in known:
                digest = blake2b(f"{key[1]}:{key[0]}".encode(), digest_size=8).digest()
                known[key] = int.from_bytes(digest, "little", signed=True)
            codes[place] = known[key]
    return codes


def fold_of(units: Int64) -> Int64:
    """Return the fold of each row, (n,): all rows of a unit have the same."""
    return np.asarray(units % FOLDS)


def refuse_units(blocks: Blocks, what: str, fix: str) -> None:
    """Refuse a log whose decisions share coins, for what would count each of them as a draw of its own."""
    if blocks.has_units:
        raise EvaluationError(
            f"{blocks.name} has units, whose decisions share one draw, and {what} counts every decision as its own; "
            f"{fix}"
        )


class FirstDecisions:
    """Which rows are the first of their unit, block by block: one draw each, whatever came after."""

    def __init__(self) -> None:
        self._seen = np.empty(0, dtype=np.int64)

    def add(self, units: Int64) -> Bool:
        """Return which rows of the next block are the first of theirs."""
        codes, first = np.unique(units, return_index=True)
        is_new = ~np.isin(codes, self._seen, assume_unique=True)
        self._seen = np.union1d(self._seen, codes)
        firsts = np.zeros(len(units), dtype=np.bool_)
        firsts[first[is_new]] = True
        return firsts

    def __len__(self) -> int:
        return len(self._seen)


class UnitCount:
    """How many units there are, and which of them have rows in several blocks."""

    def __init__(self) -> None:
        self._seen = self.spanning = np.empty(0, dtype=np.int64)  # sorted

    def add(self, units: Int64) -> None:
        """Add a block."""
        codes = np.unique(units)
        self.spanning = np.union1d(self.spanning, np.intersect1d(codes, self._seen, assume_unique=True))
        self._seen = np.union1d(self._seen, codes)

    def __len__(self) -> int:
        return len(self._seen)


# ---- sums over units

Product = Callable[[Float64, Float64], Float64]


def sum_by_unit(units: Int64, F: Float64) -> tuple[Int64, Float64]:
    """Return the units of rows and the sums of their rows' features, one after the other.

    Examples
    --------
    >>> sum_by_unit(np.array([7, 3, 7]), np.array([[1.0], [2.0], [4.0]]))
    (array([3, 7]), array([[2.],
           [5.]]))
    """
    order = np.argsort(units, kind="stable")
    codes, starts = np.unique(units[order], return_index=True)
    if not len(codes):
        return codes, F[:0]
    return codes, np.add.reduceat(F[order], starts, axis=0)


@dataclass(frozen=True, slots=True)
class UnitSums:
    """Products of features that were summed over units first, for J targets, the last of which is the baseline."""

    own: Float64  # (J, F, F)
    paired: Float64  # (J, F, F)
    codes: Int64  # (m,): units that other blocks have rows of, too
    open: Float64  # (J, m, F): what these rows add to their sums

    @classmethod
    def of(cls, units: Int64, features: Sequence[Float64], spanning: Int64, product: Product) -> UnitSums:
        """Sum a block; `spanning`, sorted, are the units that also have rows elsewhere."""
        codes = sum_by_unit(units, features[0][:, :0])[0]
        sums = [sum_by_unit(units, F)[1] for F in features]
        elsewhere = np.isin(codes, spanning, assume_unique=True)
        own, paired = _products([each[~elsewhere] for each in sums], product)
        return cls(own, paired, codes[elsewhere], np.stack([each[elsewhere] for each in sums]))

    @classmethod
    def add(
        cls, parts: Sequence[UnitSums], product: Product, combine: Callable[[Sequence[Float64]], Float64]
    ) -> UnitSums:
        """Add the sums of all blocks, in their order; no unit is open afterwards."""
        owners = np.concatenate([part.codes for part in parts])
        whole = [sum_by_unit(owners, rows)[1] for rows in np.concatenate([part.open for part in parts], axis=1)]
        own, paired = _products(whole, product)
        return cls(
            combine([*(part.own for part in parts), own]),
            combine([*(part.paired for part in parts), paired]),
            owners[:0],
            np.stack(whole)[:, :0],
        )


def _products(sums: Sequence[Float64], product: Product) -> tuple[Float64, Float64]:
    last = np.ascontiguousarray(sums[-1])
    each = [np.ascontiguousarray(F) for F in sums]
    return np.stack([product(F, F) for F in each]), np.stack([product(F, last) for F in each])


# ---- sums that are bet on


class OpenUnits:
    """Sums of units whose epoch is not over, given out when it is, in the order of their first rows.

    Parameters
    ----------
    largest
        The most rows that a unit can have in an epoch, known beforehand.
    """

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._epoch: int | None = None
        self._order: dict[int, int] = {}  # the place of each unit
        self._sums: list[Float64] = []

    def add(self, rows: Rows, columns: Float64) -> Float64:
        """Add rows, and c numbers of each; return the sums of the units that are closed now, (k, 1 + c), rows first."""
        numbers = np.column_stack([np.ones(len(rows)), columns])
        if rows.unit is None or not len(rows):
            return numbers[:0]
        epochs = self._epochs(rows)
        cuts = np.flatnonzero(np.diff(epochs)) + 1
        closed: list[Float64] = []
        for start, end in zip([0, *cuts.tolist()], [*cuts.tolist(), len(rows)], strict=True):
            if start < end:
                closed += self._enter(int(epochs[start]))
                self._gather(rows.unit[start:end], numbers[start:end])
        return np.stack(closed) if closed else numbers[:0]

    def _epochs(self, rows: Rows) -> Int64:
        """Return the epoch of every row; one without a unit falls into that of the rows before it."""
        stated = np.full(len(rows), -1) if rows.epoch is None else rows.epoch
        if self._epoch is None and (stated < 0).all():
            raise EvaluationError(NO_EPOCHS)
        last = np.maximum.accumulate(np.where(stated < 0, -1, np.arange(len(rows))))
        return np.where(last < 0, -1 if self._epoch is None else self._epoch, stated[last])

    def _enter(self, epoch: int) -> list[Float64]:
        """Begin an epoch; return the units of the one before, if this is another."""
        if self._epoch is not None and epoch < self._epoch:
            raise EvaluationError(
                f"epoch {epoch} begins after epoch {self._epoch}; give rows in the order of their decisions"
            )
        if epoch == self._epoch:
            return []
        closed, self._epoch, self._order, self._sums = self._sums, epoch, {}, []
        return closed

    def _gather(self, units: Int64, numbers: Float64) -> None:
        codes, first = np.unique(units, return_index=True)
        sums = sum_by_unit(units, numbers)[1]
        for place in np.argsort(first, kind="stable").tolist():
            code = int(codes[place])
            if code in self._order:
                self._sums[self._order[code]] = self._sums[self._order[code]] + sums[place]
            else:
                self._order[code] = len(self._sums)
                self._sums.append(sums[place])
            if self._sums[self._order[code]][0] > self._largest:
                raise EvaluationError(
                    f"a unit has more than {self._largest:,} decisions in an epoch; give largest_unit, the most that "
                    "one can have, known beforehand"
                )


def largest_unit(blocks: Blocks, largest: int | None) -> int | None:
    """Return the most decisions that a unit can have in an epoch: as given, or as the log's epochs are long."""
    if largest is not None and largest < 1:
        raise ArgumentError("{largest_unit} is {value!r}; give 1 or more", value=largest)
    epoch = blocks.about.get("epoch")
    return largest if largest is not None or type(epoch) is not int else epoch


NO_EPOCHS: Final = (
    "rows have units but no epochs, so nothing says when a unit is complete; log with a bandit that has an epoch, or "
    "give a column 'epoch' of whole numbers that never fall"
)
