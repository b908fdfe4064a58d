"""What contexts usually are, feature by feature, so that values that cannot be right stand out.

A fold over decisions: sizes of values by powers of two (of the first 256 that are not zero, then of every 16th
decision), how often a value was another one than before, and how many lay far beyond the usual size. One wild value
does not move the usual size, which is the 90 % quantile of those that are not zero. It holds no value of a context:
sizes are powers of two, and values are compared by 16 bits of a hash. Rows are folded 256 at a time; how they are cut
changes nothing. O(d) numbers for the first 256 features; further features are not looked at.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from armlet.record.kinds import CHANGING
from armlet.stores.tally.delays import whole
from armlet.stores.tally.folds import Fold, Seen
from armlet.types import Float64, Int64

MOST: Final = 256  # features
FOLDED: Final = 256  # decisions at a time
FIRST: Final = 256  # sizes of a feature that are counted,
EVERY: Final = 16  # and then those of one decision in so many
BINS: Final = 192  # powers of two
ZERO: Final = 48  # the bin of sizes from 1/2 to 1
ENOUGH: Final = 8  # sizes by which one is usual
LOOK: Final = 16  # decisions until limits are found for the first time
FAR: Final = 10  # powers of two beyond the usual size: about 1,000 times,
FARTHEST: Final = 24  # or up to so many where sizes differ widely
TAIL: Final = 4  # times the distance from the median to the 99 % quantile, in powers of two
COLUMNS: Final = ("_some", "_changes", "_changed", "_longest")
HASH: Final = np.uint64(0x9E3779B97F4A7C15)


class Wild(NamedTuple):
    """Values of a feature that lay far beyond its usual size."""

    n: int
    last: int  # the number of the last decision with one, 1 the first
    t: int  # its step
    at: int  # microseconds since 1970


class Largest(NamedTuple):
    """The largest value of a feature so far, by the place of its bin, and the first decision that had one as large."""

    size: int
    number: int
    t: int
    at: int


class ContextSums(Fold):
    """What contexts usually are.

    Examples
    --------
    >>> sums = ContextSums()
    >>> for i in range(100):
    ...     sums.add(np.array([20.0 + i % 50 if i != 70 else 1.8e18]).tobytes(), at=i, t=i + 1)
    >>> sums.wild
    {0: Wild(n=1, last=71, t=71, at=70)}
    >>> ContextSums.restore(sums.state()).state() == sums.state()
    True
    """

    __slots__ = (
        *("_changed", "_changes", "_largest", "_limits", "_longest", "_marks", "_rows", "_sizes", "_some", "_wild"),
        "n",
    )

    key = "contexts"
    kinds = ("decide", *CHANGING)

    def __init__(self) -> None:
        self._rows: list[tuple[bytes, int, int]] = []  # to be folded: contexts, moments, steps
        self._begin(0)

    def _begin(self, width: int) -> None:
        self.n = 0  # decisions
        self._sizes = np.zeros((width, BINS), dtype=np.int64)
        self._some = np.zeros(width, dtype=np.int64)  # values that were not zero
        self._limits = np.full(width, np.inf)  # sizes beyond are wild
        self._marks = np.zeros(width, dtype=np.uint64)  # of the last values
        self._changes = np.zeros(width, dtype=np.int64)  # how often a value was another one than before
        self._changed = np.zeros(width, dtype=np.int64)  # the last decision with another value, 1 the first
        self._longest = np.zeros(width, dtype=np.int64)  # most decisions from one change to the next
        self._wild: dict[int, Wild] = {}
        self._largest: dict[int, Largest] = {}

    def see(self, seen: Seen) -> None:
        """Count the context of a decision; begin again if a row says that contexts, or what reads them, are others."""
        row = seen.row
        if row.kind == "decide":
            if row.x is not None:
                width = seen.fields.get("dim")  # of actions, whose features follow
                self.add(row.x if width is None else row.x[: 8 * width], row.ts, row.t or 0)
        elif any(name in replaced for replaced in seen.fields.get("replaces", ()) for name in ("features", "policy")):
            self.clear()

    def add(self, x: bytes, at: int, t: int) -> None:
        """Count the context of a decision: float64, little-endian."""
        self._rows.append((x, at, t))
        if len(self._rows) >= FOLDED:
            self._fold()

    def clear(self) -> None:
        """Begin again: features are others, or what was wild has been dealt with."""
        self._rows.clear()
        self._begin(0)

    def _fold(self) -> None:
        rows, self._rows = self._rows, []
        while rows:
            size = len(rows[0][0])
            width = min(size // 8, MOST)
            if width != len(self._limits):
                self._begin(width)
            end = self._next_look() - self.n
            part = [row for row in rows[:end] if len(row[0]) == size]
            values = np.frombuffer(b"".join([x for x, _, _ in part]), dtype="<f8")
            self._fold_in(values.reshape(len(part), size // 8)[:, :width], part)
            rows = rows[len(part) :]

    def _next_look(self) -> int:
        """Return the decision after which limits are found again: 16, 32, 64, ..."""
        look = LOOK
        while look <= self.n:
            look *= 2
        return look

    def _fold_in(self, X: Float64, rows: list[tuple[bytes, int, int]]) -> None:
        numbers = self.n + 1 + np.arange(len(X))  # of decisions
        beyond = np.abs(X) > self._limits
        for i, j in np.argwhere(beyond).tolist():
            _, at, t = rows[i]
            before = self._wild.get(j)
            self._wild[j] = Wild((0 if before is None else before.n) + 1, int(numbers[i]), t, at)
        bins, is_some = _bins(X), X != 0.0
        sizes = is_some.cumsum(axis=0) + self._some
        counted = is_some & ((sizes <= FIRST) | (numbers % EVERY == 0)[:, None])
        np.add.at(self._sizes, (np.arange(X.shape[1]), bins), counted)
        self._some = sizes[-1]
        self._keep_largest(np.where(is_some, bins, -1), rows)
        self._compare(X, numbers)
        self.n += len(X)
        if self.n == self._next_look() // 2:
            self._look()

    def _keep_largest(self, bins: Int64, rows: list[tuple[bytes, int, int]]) -> None:
        """Keep the decision with the largest value of each feature, which may turn out to be wild."""
        for j, size in enumerate(bins.max(axis=0).tolist()):
            if size > (self._largest[j].size if j in self._largest else -1):
                i = int(bins[:, j].argmax())
                self._largest[j] = Largest(size, self.n + 1 + i, rows[i][2], rows[i][1])

    def _compare(self, X: Float64, numbers: Int64) -> None:
        """Count the values that are others than before, and the longest time without one."""
        marks = (np.ascontiguousarray(X + 0.0).view(np.uint64) * HASH) >> np.uint64(48)
        before = np.vstack([self._marks if self.n else marks[:1], marks[:-1]])
        changes = np.where(marks != before, numbers[:, None], 0)
        last = np.maximum.accumulate(np.vstack([self._changed, changes]), axis=0)
        self._longest = np.maximum(self._longest, np.where(changes, changes - last[:-1], 0).max(axis=0))
        self._changes = self._changes + (changes > 0).sum(axis=0)
        self._marks, self._changed = marks[-1], last[-1]

    def _look(self) -> None:
        """Find limits again, and values before that lie beyond them."""
        totals = self._sizes.cumsum(axis=1)
        for j in np.flatnonzero(totals[:, -1] >= ENOUGH).tolist():
            ranks = [int(share * (totals[j, -1] - 1)) for share in (0.5, 0.9, 0.99)]
            middle, high, top = np.searchsorted(totals[j], ranks, side="right").tolist()
            far = high + min(max(TAIL * (top - middle), FAR), FARTHEST)
            self._limits[j] = 2.0 ** (far - ZERO)
            earlier = int(self._sizes[j, far + 1 :].sum())
            if earlier and j not in self._wild:
                self._wild[j] = Wild(earlier, *self._largest[j][1:])

    @property
    def wild(self) -> dict[int, Wild]:
        """Values that lay far beyond the usual size, by the place of the feature."""
        self._fold()
        return self._wild

    @property
    def width(self) -> int:
        """How many features are looked at."""
        self._fold()
        return len(self._limits)

    @property
    def limits(self) -> Float64:
        """The size beyond which a value is wild, by the place of the feature."""
        self._fold()
        return self._limits

    def still(self) -> list[tuple[int, int, int, int]]:
        """Return how often each feature changed, the longest time between, that since, and values not zero."""
        self._fold()
        since = (self.n - self._changed).tolist()
        return list(zip(self._changes.tolist(), self._longest.tolist(), since, self._some.tolist(), strict=True))

    def state(self) -> list[Any]:
        """Return everything as numbers, for JSON."""
        self._fold()
        if not self.n:
            return []
        sizes = [np.column_stack([np.flatnonzero(row), row[row > 0]]).ravel().tolist() for row in self._sizes]
        limits = [None if np.isinf(limit) else float(limit) for limit in self._limits]
        columns = [getattr(self, name).tolist() for name in ("_marks", *COLUMNS)]
        some = [[[j, *each] for j, each in each_of.items()] for each_of in (self._wild, self._largest)]
        return [self.n, sizes, limits, *columns, *some]

    @staticmethod
    def restore(state: list[Any]) -> ContextSums:
        """Return the sums that had this state."""
        n, sizes, limits, marks, *columns, wild, largest = state
        made = ContextSums()
        made._begin(len(sizes))
        made.n = whole(n)
        for row, pairs in zip(made._sizes, sizes, strict=True):
            row[[whole(bin_) for bin_ in pairs[::2]]] = [whole(count) for count in pairs[1::2]]
        made._limits = np.array([np.inf if limit is None else float(limit) for limit in limits])
        made._marks = np.array([whole(mark) for mark in marks], dtype=np.uint64)
        for name, column in zip(COLUMNS, columns, strict=True):
            setattr(made, name, np.array([whole(one) for one in column], dtype=np.int64))
        made._wild = {whole(j): Wild(*map(whole, each)) for j, *each in wild}
        made._largest = {whole(j): Largest(*map(whole, each)) for j, *each in largest}
        shapes, some = (
            {len(sizes), len(limits), len(marks), *map(len, columns)},
            set(np.flatnonzero(made._some).tolist()),
        )
        if len(shapes) != 1 or len(sizes) > MOST or made._largest.keys() != some or not made._wild.keys() <= some:
            raise ValueError("its counts of contexts do not belong together")
        return made


def _bins(X: Float64) -> Int64:
    """Return the power of two of each size, as the place of its bin."""
    return np.asarray(np.clip(np.frexp(X)[1] + ZERO, 0, BINS - 1), dtype=np.int64)
