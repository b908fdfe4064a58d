"""The pasts of all arms: every row, a row for each distinct context, or a row for each bucket of directions.

A bucket is a cell of a fixed lattice, so which rows share one depends on nothing but themselves: histories can be
merged, and rows taken back, in any order. Update O(d); memory O(rows kept d).
"""

from __future__ import annotations

import copy
import math
from typing import Literal, Self, TypeAlias, cast

import numpy as np

from armlet.errors import ArmletError, DecisionError, InvalidValueError
from armlet.inputs.settings import HUGE
from armlet.policies.state import MOST, check_between, check_mergeable
from armlet.policies.subset_search.past import Past
from armlet.types import Array, Float64, Int64, Interaction

Kept: TypeAlias = Literal["rows", "contexts", "buckets"]
"""One entry for every row, for every distinct context, or for every bucket."""


class HistoryLimitError(ArmletError):
    """An arm's history is as long as its policy allows."""


def bucket(x: Float64, width: float) -> bytes:
    """Name the bucket of a context: rows that share one have a cosine of at least 1 - width.

    Directions are rounded to a lattice with steps of sqrt(2 width / d), so two in a cell are at most sqrt(2 width)
    apart; lengths are rounded to powers of 1 + sqrt(2 width).

    Examples
    --------
    >>> bucket(np.array([1.0, 0.0]), 0.01) == bucket(np.array([1.0, 0.01]), 0.01)
    True
    >>> bucket(np.array([1.0, 0.0]), 0.01) == bucket(np.array([2.0, 0.0]), 0.01)
    False
    """
    length, reach = math.sqrt(float(x @ x)), math.sqrt(2 * width)
    if length == 0.0:
        return bytes(8 * (len(x) + 1))
    cell = np.rint(x / (length * reach / math.sqrt(len(x))))
    return np.append(cell, 1.0 + 2.0 * round(math.log(length) / math.log1p(reach))).astype(np.int64).tobytes()


class Histories:
    """What a policy that searches its past remembers.

    Parameters
    ----------
    n_arms, dim
        K and d.
    kept
        What has an entry of its own.
    limit
        The most entries of one arm.
    width
        Of a bucket.

    Examples
    --------
    >>> state = Histories(1, 1, kept="contexts", limit=10)
    >>> for t in range(1, 4):
    ...     state.learn(Interaction(t=t, x=np.array([0.5]), arm=0, reward=1.0))
    >>> state.past(0).counts, state.past(0).sums
    (array([3.]), array([3.]))
    """

    def __init__(self, n_arms: int, dim: int, *, kept: Kept, limit: int, width: float = 0.0) -> None:
        self._dim, self._kept, self._limit, self._width = dim, kept, limit, width
        self._pasts = [Past(dim) for _ in range(n_arms)]
        self._places: list[dict[bytes, int]] = [{} for _ in range(n_arms)]  # empty where every row has its own entry

    @property
    def n_arms(self) -> int:
        """The number of arms, K."""
        return len(self._pasts)

    @property
    def dim(self) -> int:
        """The number of features of a context, d."""
        return self._dim

    @property
    def nbytes(self) -> int:
        """Bytes of all entries."""
        entries, keys = sum(map(len, self._pasts)), sum(map(len, self._places))
        return 8 * (entries * (self._dim + 2) + keys * self._key_size)

    def past(self, arm: int) -> Past:
        """Give what is known of an arm; to be read only."""
        return self._pasts[arm]

    # ---- learning

    def learn(self, interaction: Interaction) -> None:
        """Add, take back or correct a row; a whole weight w counts it w times."""
        i, past = interaction, self._pasts[interaction.arm]
        if i.weight != math.floor(i.weight):
            raise DecisionError(f"weight is {i.weight}; subsets are of whole rows, so give a whole number")
        place = self._place(i)
        if i.replaces is not None:
            past.sums[self._known(place, i)] += i.weight * (i.reward - i.replaces)
        elif place is None and i.weight > 0:
            self._open(i)
        else:
            self._add(i, self._known(place, i))

    def _place(self, i: Interaction) -> int | None:
        if self._kept != "rows":
            return self._places[i.arm].get(self._key(i.x))
        if i.replaces is not None:
            return self._pasts[i.arm].find(i.x, i.replaces)
        return self._pasts[i.arm].find(i.x, i.reward) if i.weight < 0 else None

    def _known(self, place: int | None, i: Interaction) -> int:
        if place is None or (i.weight < 0 and self._pasts[i.arm].counts[place] < -i.weight):
            raise DecisionError(f"arm {i.arm} has no such row to take back or change; was it learned here?")
        return place

    def _open(self, i: Interaction) -> None:
        past = self._pasts[i.arm]
        self._check_room(i.arm, 1)
        if self._kept != "rows":
            self._places[i.arm][self._key(i.x)] = len(past)
        past.append(i.x, i.weight, i.weight * i.reward)

    def _add(self, i: Interaction, place: int) -> None:
        past = self._pasts[i.arm]
        count = past.counts[place] + i.weight
        if count == 0.0:
            past.delete(place)
            keys = [key for key, at in self._places[i.arm].items() if at != place]
            self._places[i.arm] = {key: at for at, key in enumerate(keys)}  # keys lie in the order of their rows
            return
        if self._kept == "buckets":  # its representative is the mean of its rows
            past.rows[place] += (i.x - past.rows[place]) * (i.weight / count)
        past.counts[place] = count
        past.sums[place] += i.weight * i.reward

    def _check_room(self, arm: int, more: int) -> None:
        if len(self._pasts[arm]) + more > self._limit:
            raise HistoryLimitError(
                f"arm {arm} would have {len(self._pasts[arm]) + more} {self._kept} in its history but history_limit is "
                f"{self._limit}; raise it, count equal contexts once (search='counts'), or use wider buckets "
                "(history='buckets', bucket_width=...)"
            )

    # ---- keys

    @property
    def _key_size(self) -> int:
        return {"rows": 0, "contexts": self._dim, "buckets": self._dim + 1}[self._kept]  # in words of 8 bytes

    def _key(self, x: Float64) -> bytes:
        return bucket(x, self._width) if self._kept == "buckets" else (x + 0.0).tobytes()  # -0.0 is 0.0

    # ---- the state of a bandit

    def arrays(self) -> dict[str, Array]:
        """Give all entries, those of the first arm first."""
        keys = [np.frombuffer(key, np.int64) for places in self._places for key in places]
        return {
            "arms": np.repeat(np.arange(self.n_arms), [len(past) for past in self._pasts]),
            "rows": np.concatenate([past.rows for past in self._pasts]),
            "counts": np.concatenate([past.counts for past in self._pasts]),
            "sums": np.concatenate([past.sums for past in self._pasts]),
            "keys": np.array(keys, dtype=np.int64).reshape(-1, self._key_size) if self._key_size else np.zeros((0, 0)),
        }

    def restore_arrays(self, arrays: dict[str, Array]) -> None:
        """Take back what `arrays` gave."""
        arms, keys = cast(Int64, arrays["arms"]), arrays["keys"]
        n = arms.size
        shapes = {"arms": (n,), "rows": (n, self._dim), "counts": (n,), "sums": (n,)}
        shapes["keys"] = (n, self._key_size) if self._key_size else (0, 0)
        for name, shape in shapes.items():
            if arrays[name].shape != shape:
                raise InvalidValueError(f"{name} has shape {arrays[name].shape}, not {shape}")
        check_between("rows", arrays["rows"], -2.0 * HUGE, 2.0 * HUGE)  # means of rows round
        check_between("sums", arrays["sums"], -MOST, MOST)
        check_between("counts", arrays["counts"], 1.0, MOST)
        if self._key_size and keys.dtype != np.int64:
            raise InvalidValueError(f"keys are {keys.dtype}, not int64")
        if arms.size and not (arms.min() >= 0 and arms.max() < self.n_arms and (np.diff(arms) >= 0).all()):
            raise InvalidValueError(f"arms are not those of {self.n_arms} arms in order")
        ends, pasts, places = np.searchsorted(arms, np.arange(self.n_arms + 1)), [], []
        for arm in range(self.n_arms):
            mine = slice(ends[arm], ends[arm + 1])
            pasts.append(Past.of(*(cast(Float64, arrays[name][mine]) for name in ("rows", "sums", "counts"))))
            of_arm = keys[mine] if self._key_size else ()
            places.append({key.tobytes(): place for place, key in enumerate(of_arm)})
            if len(places[arm]) != len(of_arm):
                raise InvalidValueError(f"keys holds one twice for arm {arm}; what is equal has one entry")
        self._pasts, self._places = pasts, places

    def copy(self) -> Self:
        """Copy everything."""
        return copy.deepcopy(self)

    def add_arm(self) -> None:
        """Add an arm without a past."""
        self._pasts.append(Past(self._dim))
        self._places.append({})

    def remove_arm(self, arm: int) -> None:
        """Drop an arm and its past."""
        del self._pasts[arm], self._places[arm]

    def merge(self, other: Self, into: list[int]) -> None:
        """Append the other's rows; equal contexts and buckets add up."""
        check_mergeable(self, other, into)
        for theirs, arm in enumerate(into):
            self._check_room(arm, len(other._new_entries(theirs, self._places[arm])))
        for theirs, arm in enumerate(into):
            self._append(arm, other.past(theirs), list(other._places[theirs]))

    def _new_entries(self, arm: int, known: dict[bytes, int]) -> list[object]:
        if self._kept == "rows":
            return list(range(len(self._pasts[arm])))
        return [key for key in self._places[arm] if key not in known]

    def _append(self, arm: int, theirs: Past, keys: list[bytes]) -> None:
        past, places = self._pasts[arm], self._places[arm]
        for i in range(len(theirs)):
            place = places.get(keys[i]) if keys else None
            count, paid = float(theirs.counts[i]), float(theirs.sums[i])
            if place is None:
                if keys:
                    places[keys[i]] = len(past)
                past.append(theirs.rows[i], count, paid)
                continue
            past.counts[place] += count
            past.sums[place] += paid
            past.rows[place] += (theirs.rows[i] - past.rows[place]) * (count / past.counts[place])
