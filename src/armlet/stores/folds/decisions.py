"""Whether decisions are as they should be: their contexts, their units, the clock, and their propensities.

Contexts are judged feature by feature, so that values that cannot be right stand out: sizes of values by powers of two
(of the first 256 that are not zero, then of every 16th decision), how often a value was another one than before, and
how many lay far beyond the usual size. One wild value does not move the usual size, which is the 90 % quantile of those
that are not zero. No value of a context is held: values are compared by 16 bits of a hash. Rows are folded 256 at a
time; how they are cut changes nothing. O(d) numbers for the first 256 features; further features are not looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np

from armlet.inference.betting import PropensityBets
from armlet.kernel import unit_seed
from armlet.policies.discounts import MINUTE
from armlet.stores.folds.fold import Fold, Seen, whole
from armlet.types import Float64, Int64

FEATURES: Final = 256  # that are looked at
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

    def on_decide(self, seen: Seen) -> None:
        """Count the context of a decision."""
        x = seen.row.x
        if x is not None:
            width = seen.fields.get("dim")  # of actions, whose features follow
            self.add(x if width is None else x[: 8 * width], seen.row.ts, seen.row.t or 0)

    def on_change(self, seen: Seen) -> None:
        """Begin again if a row says that contexts, or what reads them, are others."""
        if any(name in replaced for replaced in seen.fields.get("replaces", ()) for name in ("features", "policy")):
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
            width = min(size // 8, FEATURES)
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
        if len(shapes) != 1 or len(sizes) > FEATURES or made._largest.keys() != some or not made._wild.keys() <= some:
            raise ValueError("its counts of contexts do not belong together")
        return made


def _bins(X: Float64) -> Int64:
    """Return the power of two of each size, as the place of its bin."""
    return np.asarray(np.clip(np.frexp(X)[1] + ZERO, 0, BINS - 1), dtype=np.int64)


UNITS: Final = 1024  # whose last arm is remembered
BITS: Final = 48  # of the hash of a name


@dataclass(frozen=True, slots=True)
class UnitCounts:
    """What a tally says of units."""

    decisions: int  # of units
    repeats: int  # of these, of a unit that had decided in the epoch before; of the last 1,024 of them
    switches: int  # of these, with another arm than before: the context or the arms to choose from were others


class Switches(Fold):
    """Counts the decisions of units, those that came again within the epoch, and those with another arm then.

    A changed context, other eligible arms or an arm that went can switch a unit; nothing else can. It knows the last
    arms of the `UNITS` that came last, of the epoch under way, by 48 bits of a hash of their names; a unit that comes
    again after so many others is not compared.

    Examples
    --------
    >>> counts = Switches()
    >>> for unit, epoch, arm in [("u", 0, 2), ("u", 0, 2), ("v", 0, 1), ("u", 0, 1), ("u", 1, 0)]:
    ...     counts.decided(unit, epoch, arm)
    >>> counts.counts
    UnitCounts(decisions=5, repeats=2, switches=1)
    """

    __slots__ = ("_arms", "_epoch", "decisions", "repeats", "switches")

    key = "units"

    def __init__(self) -> None:
        self.decisions = self.repeats = self.switches = 0
        self._epoch = 0
        self._arms: dict[int, int] = {}  # of units by their hash, that which came last at the end

    def on_decide(self, seen: Seen) -> None:
        """Count a decision, if it is of a unit."""
        unit = seen.fields.get("unit")
        if unit is not None:
            self.decided(unit, seen.fields["epoch"] or 0, seen.place)

    def decided(self, unit: str, epoch: int, place: int) -> None:
        """Count a decision, by the place of its arm."""
        if epoch != self._epoch:
            self._epoch = epoch
            self._arms.clear()
        key = unit_seed(0, unit) % 2**BITS
        before = self._arms.pop(key, None)
        self._arms[key] = place
        self.decisions += 1
        if before is not None:
            self.repeats += 1
            self.switches += before != place
        elif len(self._arms) > UNITS:
            del self._arms[next(iter(self._arms))]

    @property
    def counts(self) -> UnitCounts:
        """What was counted."""
        return UnitCounts(self.decisions, self.repeats, self.switches)

    def state(self) -> list[Any]:
        """Return everything as numbers, for JSON."""
        if not self.decisions:
            return []
        arms = list(chain.from_iterable(self._arms.items()))
        return [self.decisions, self.repeats, self.switches, self._epoch, arms]

    @staticmethod
    def restore(state: list[Any]) -> Switches:
        """Return the counts that had this state."""
        *counts, arms = state
        made = Switches()
        made.decisions, made.repeats, made.switches, made._epoch = (whole(count) for count in counts)
        numbers = [whole(number) for number in arms]
        made._arms = dict(zip(numbers[::2], numbers[1::2], strict=True))
        if not made.decisions >= made.repeats >= made.switches >= 0:
            raise ValueError("its counts of units do not add up")
        return made


APART: Final = 60  # minutes that clocks may come apart without an alarm: a row counts at most twice as much


class Stamps(Fold):
    """Counts the decisions at which the wall clock jumped, by more than an hour.

    Rows are stamped with the wall clock, and aged by a steady one (`stores/runner.py`): the two differ by about the
    same amount for as long as nothing is wrong. A clock that is set, or a replica whose clock is, changes it.

    Examples
    --------
    >>> stamps = Stamps()
    >>> for step, wall in enumerate([1_000, 1_001, 526_603, 1_003], 1):  # minutes: once, a year ahead
    ...     stamps.decided(wall * MINUTE, 1_000 + step, step)
    >>> stamps.jumps, stamps.last, stamps.farthest
    (2, 4, 525600)
    """

    __slots__ = ("_offset", "farthest", "jumps", "last")

    key = "stamps"

    def __init__(self, jumps: int = 0, last: int = 0, farthest: int = 0, offset: int = 0) -> None:
        self.jumps, self.last = jumps, last  # `last`: the decision with this number
        self.farthest, self._offset = farthest, offset  # minutes of the wall clock ahead of the other, now and ever

    def on_decide(self, seen: Seen) -> None:
        """Count a decision, if its row is aged by time."""
        if tag := seen.fields.get("tag"):
            self.decided(seen.row.ts, tag, seen.decisions)

    def decided(self, stamp: int, minutes: int, number: int) -> None:
        """Count a decision by its stamp, in microseconds, and by the time that it is aged by."""
        offset = stamp // MINUTE - minutes
        if abs(offset - self._offset) > APART:
            self._offset = offset
            self.jumps, self.last = self.jumps + 1, number
            self.farthest = max(self.farthest, offset, key=abs)

    def state(self) -> list[int]:
        """Return everything as numbers, for JSON."""
        return [self.jumps, self.last, self.farthest, self._offset] if self.jumps else []

    @staticmethod
    def restore(state: list[Any]) -> Stamps:
        """Return the counts that had this state."""
        jumps, last, farthest, offset = state
        for number in (farthest, offset):
            whole(abs(number))
        return Stamps(whole(jumps), whole(last), farthest, offset)


RANKS: Final = 32  # actions of a support whose draws are tested


class Bets(PropensityBets, Fold):
    """Bets that every arm could be explored with the probability that rows say, as `armlet.evaluate` does."""

    __slots__ = ()

    key = "bets"
    required = True

    def on_decide(self, seen: Seen) -> None:
        """Bet on a decision; on actions by rank, since most labels are drawn once or twice."""
        fields = seen.fields
        rate = fields["exploration_rate"]
        if rate is not None:
            self._bet_on_exploring(seen, rate)
        elif "actions" in fields:
            ranked = rank_of(fields.get("support") or (), fields["arm"])
            if ranked is not None:
                self.draw(ranked[0], fields["propensity"], ranked[1])
        elif fields["propensity"] < 1.0:
            self.draw(seen.place, fields["propensity"], 1.0 / max(2, seen.n_arms))

    def _bet_on_exploring(self, seen: Seen, rate: float) -> None:
        fields, explored = seen.fields, seen.explored
        smallest, chance = fields["min_exploration_probability"], fields["exploration_propensity"]
        if smallest and rate > 0.0 and (chance or not explored):  # unknown where a control played
            if explored and chance:
                self.draw(seen.place, chance, smallest)
            if rate < 1.0:
                self.toss(rate, explored)


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
