"""The search inside Contextual UCB (Section 7, Algorithm 2), and the rows of each arm that it searches.

It minimises f(T) = |(I + A_T / sqrt(n))^-1 x|^2 over subsets T of an arm's rows, n = |T|; the width of Algorithm 2 is
c = log(t) f(T*). A subset says how often it counts each row, so that equal rows need to be kept only once.
Cost for N rows: exact O(2^N d^3); relaxed O(N^2 d^2) up to 64 rows, O(N d^2) beyond; counts O(N^2 d^2 + N d^3) up to 24
rows, however often each occurred. Learning a row O(d), taking one back O(N d); memory O(N d).
"""

from __future__ import annotations

import copy
import math
from typing import Literal, NamedTuple, Self, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from armlet import kernel
from armlet.errors import ArmletError, DecisionError, InvalidValueError
from armlet.inputs.settings import HUGE
from armlet.policies.state import MOST, check_between, check_mergeable
from armlet.types import Array, Float64, Int64, Interaction

Kept: TypeAlias = Literal["rows", "contexts"]
"""One entry for every row, or one for every distinct context."""


class HistoryLimitError(ArmletError):
    """An arm's history is as long as its policy allows."""


# ---- one arm


class ArmPast:
    """The rows of one arm, how often each occurred and its total reward, in memory that the kernel reads as it is.

    Examples
    --------
    >>> past = ArmPast.of([[1.0, 0.0], [1.0, 1.0]], rewards=[0.5, 2.0])
    >>> past.append(np.array([0.0, 1.0]), 3.0, 6.0)
    >>> len(past), past.counts, past.sums
    (3, array([1., 1., 3.]), array([0.5, 2. , 6. ]))
    """

    def __init__(self, dim: int) -> None:
        self._rows, self._counts, self._sums = np.zeros((0, dim)), np.zeros(0), np.zeros(0)
        self._size = 0

    @classmethod
    def of(cls, rows: npt.ArrayLike, rewards: npt.ArrayLike | None = None, counts: npt.ArrayLike | None = None) -> Self:
        """Make a past of rows, (N, d), the total reward of each, (N,), and its count; by default 0 and 1."""
        matrix = np.array(rows, dtype=np.float64)
        if matrix.ndim != 2 or not np.isfinite(matrix).all():
            raise InvalidValueError(f"rows has shape {matrix.shape}; give finite numbers, one row of d values each")
        past = cls(matrix.shape[1])
        past._size, past._rows = len(matrix), matrix
        past._counts = _column("counts", 1.0 if counts is None else counts, len(matrix))
        past._sums = _column("rewards", 0.0 if rewards is None else rewards, len(matrix))
        if not ((past._counts >= 1) & (past._counts == np.floor(past._counts))).all():
            raise InvalidValueError(f"counts are {past._counts}; give whole numbers of at least 1")
        return past

    def __len__(self) -> int:
        return self._size

    @property
    def dim(self) -> int:
        """The number of features of a context, d."""
        return self._rows.shape[1]

    @property
    def rows(self) -> Float64:
        """The rows themselves, not a copy: (N, d)."""
        return self._rows[: self._size]

    @property
    def counts(self) -> Float64:
        """How often each row occurred, (N,): whole numbers."""
        return self._counts[: self._size]

    @property
    def sums(self) -> Float64:
        """The total reward of each row, (N,)."""
        return self._sums[: self._size]

    def append(self, row: Float64, count: float, total: float) -> None:
        """Add a row with its count and total reward."""
        if self._size == len(self._rows):
            room = max(4, self._size)
            self._rows = np.concatenate([self._rows, np.zeros((room, self.dim))])
            self._counts, self._sums = (np.append(each, np.zeros(room)) for each in (self._counts, self._sums))
        self._size += 1
        self.rows[-1], self.counts[-1], self.sums[-1] = row, count, total

    def delete(self, place: int) -> None:
        """Drop a row; those after it move up."""
        for array in (self._rows, self._counts, self._sums):
            array[place : self._size - 1] = array[place + 1 : self._size]
        self._size -= 1

    def find(self, row: Float64, reward: float) -> int | None:
        """Return the place of the last such row, or None."""
        same = np.flatnonzero((self.rows == row).all(axis=1) & (self.sums == reward * self.counts))
        return int(same[-1]) if same.size else None


def _column(name: str, values: npt.ArrayLike, n: int) -> Float64:
    column = np.asarray(values, dtype=np.float64)
    if column.shape not in ((), (n,)) or not np.isfinite(column).all():
        raise InvalidValueError(f"{name} has shape {column.shape}; give {n} finite numbers, one for each row")
    return np.broadcast_to(column, (n,)).copy()


# ---- searches


class Subset(NamedTuple):
    """The result of a search.

    Examples
    --------
    >>> found = exact(np.array([1.0, 1.0]), ArmPast.of([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]))
    >>> found.rows, found.n
    ([1], 1)
    """

    weights: Float64  # (N,): how often each row counts, a whole number
    value: float  # f
    exact: bool  # proved to be the minimum
    tried: int = 0  # how many subsets were evaluated, where `counts` counts them, else 0

    @property
    def n(self) -> int:
        """The number of rows in it, equal ones counted one by one."""
        return int(self.weights.sum())

    @property
    def rows(self) -> list[int]:
        """The places of its rows."""
        places: list[int] = np.flatnonzero(self.weights).tolist()
        return places


def exact(x: Float64, past: ArmPast) -> Subset:
    """Try every subset; refused if there are more than 2^16.

    Examples
    --------
    >>> x, past = np.array([1.0, 1.0]), ArmPast.of([[1.0, 1.0], [1.0, 0.0]], counts=[10, 1000])
    >>> exact(x, past).weights  # the common row helps in no number
    array([10.,  0.])
    """
    return _search("exact", x, past)


def relaxed(x: Float64, past: ArmPast) -> Subset:
    """Sort rows by the slope of f in fractional weights, take the best prefix, and repeat: a heuristic, no bound.

    The start is the best prefix of the rows sorted by |x'x_i| or by |cos(x, x_i)|: every prefix of up to 64 rows, then
    lengths that grow by a twentieth; of more than 256 rows every prefix of up to 16, then lengths that grow by a tenth;
    of more than 1000, after a quarter of the rows, only while f is below 1.5 times the best. Slopes are followed 12
    times, or until two in a row gain less than a thousandth if there are more than 64 rows, and at most 4 times for
    more than 1000 rows, each at a mixture of the subsets before: steps of Frank-Wolfe, for all sizes at once. Then rows
    are dropped, added and swapped; of up to 24 rows every swap is tried. Of up to 64 rows another start is tried too:
    the best row, again and again.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, past = rng.normal(size=3), ArmPast.of(rng.normal(size=(500, 3)))
    >>> relaxed(x, past).value < 0.9 * value(x, past, past.counts)
    True
    """
    return _search("relaxed", x, past)


def counts(x: Float64, past: ArmPast) -> Subset:
    """Search how often each distinct row should count: exact where that is proved (`exact` says so), else a heuristic.

    One row: all of it, since f falls with n. Up to 4096 subsets: all of them. Two rows: all of one, or nearly, and some
    of the other, on a grid of 33 counts that is refined around the best. Up to 24 rows: one count is changed at a time,
    alone or with the others in proportion, from several starts. More rows: `relaxed`, for which a row that occurred
    often is one row with a large weight. Up to 24 rows `tried` is bounded regardless of the counts.

    Examples
    --------
    >>> x, past = np.array([1.0, 1.0]), ArmPast.of([[1.0, 1.0], [1.0, 0.0]], counts=[30, 3000])
    >>> found = counts(x, past)
    >>> found.weights, found.exact
    (array([30.,  0.]), False)
    """
    return _search("counts", x, past)


def _search(how: str, x: Float64, past: ArmPast) -> Subset:
    return Subset(*kernel.search_subset(how, x, past.rows, past.counts))


def value(x: Float64, past: ArmPast, weights: Float64) -> float:
    """Compute f of a subset from its definition.

    Examples
    --------
    >>> value(np.array([1.0]), ArmPast.of([[1.0]], counts=[4]), np.array([4.0]))  # 1 / (1 + sqrt(4))^2
    0.1111111111111111
    """
    A = (past.rows.T * weights) @ past.rows
    y = np.linalg.solve(np.eye(len(x)) + A / math.sqrt(weights.sum()), x)
    return float(y @ y)


def estimate(past: ArmPast, subset: Subset) -> Float64:
    """Solve (lambda_n I + A / n) theta = b / n on the chosen rows, lambda_n = 1 / sqrt(n).

    Which of several equal rows are chosen does not matter to f; each contributes their mean reward.

    Examples
    --------
    >>> past = ArmPast.of([[1.0]], rewards=[6.0], counts=[4])
    >>> estimate(past, exact(np.array([1.0]), past))  # 6 / (4 + sqrt(4))
    array([1.])
    """
    return kernel.estimate_subset(past.rows, past.counts, past.sums, subset.weights, past.dim)


# ---- all arms


class Histories:
    """The state of Contextual UCB: the past of every arm.

    Parameters
    ----------
    n_arms, dim
        K and d.
    kept
        What has an entry of its own.
    limit
        The most entries of one arm.

    Examples
    --------
    >>> state = Histories(1, 1, kept="contexts", limit=10)
    >>> for t in range(1, 4):
    ...     state.learn(Interaction(t=t, x=np.array([0.5]), arm=0, reward=1.0))
    >>> state.past(0).counts, state.past(0).sums
    (array([3.]), array([3.]))
    """

    def __init__(self, n_arms: int, dim: int, *, kept: Kept, limit: int) -> None:
        self._dim, self._kept, self._limit = dim, kept, limit
        self._pasts = [ArmPast(dim) for _ in range(n_arms)]
        self._places: list[dict[bytes, int]] = [{} for _ in range(n_arms)]  # of contexts; empty where rows are kept

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
        return 8 * (entries * (self._dim + 2) + keys * self._dim)

    def past(self, arm: int) -> ArmPast:
        """Return the past of an arm; to be read only."""
        return self._pasts[arm]

    def learn(self, interaction: Interaction) -> None:
        """Add, take back or correct a row; a whole weight w counts it w times."""
        i, past = interaction, self._pasts[interaction.arm]
        if i.weight != math.floor(i.weight):
            raise DecisionError(f"weight is {i.weight}; subsets are of whole rows, so give a whole number")
        place = self._place(i)
        if place is None and i.replaces is None and i.weight > 0:
            self._check_room(i.arm, 1)
            self._append(i.arm, i.x, i.weight, i.weight * i.reward)
        elif place is None or past.counts[place] < -i.weight:
            raise DecisionError(f"arm {i.arm} has no such row to take back or change; was it learned here?")
        elif i.replaces is not None:
            past.sums[place] += i.weight * (i.reward - i.replaces)
        elif past.counts[place] == -i.weight:
            self._delete(i.arm, place)
        else:
            past.counts[place] += i.weight
            past.sums[place] += i.weight * i.reward

    def _place(self, i: Interaction) -> int | None:
        if self._kept == "contexts":
            return self._places[i.arm].get(_key(i.x))
        if i.replaces is not None:
            return self._pasts[i.arm].find(i.x, i.replaces)
        return self._pasts[i.arm].find(i.x, i.reward) if i.weight < 0 else None

    def _append(self, arm: int, row: Float64, count: float, total: float) -> None:
        if self._kept == "contexts":
            self._places[arm][_key(row)] = len(self._pasts[arm])
        self._pasts[arm].append(row, count, total)

    def _delete(self, arm: int, place: int) -> None:
        self._pasts[arm].delete(place)
        keys = [key for key, at in self._places[arm].items() if at != place]
        self._places[arm] = {key: at for at, key in enumerate(keys)}  # keys are in the order of their rows

    def _check_room(self, arm: int, more: int) -> None:
        entries = len(self._pasts[arm]) + more
        if entries > self._limit:
            raise HistoryLimitError(
                f"arm {arm} would have {entries} {self._kept} in its history but history_limit is {self._limit}; raise "
                "it, count equal contexts once (search='counts'), or keep explored rows only (history='explored')"
            )

    def arrays(self) -> dict[str, Array]:
        """Return all entries, those of the first arm first."""
        return {
            "arms": np.repeat(np.arange(self.n_arms), [len(past) for past in self._pasts]),
            "rows": np.concatenate([past.rows for past in self._pasts]),
            "counts": np.concatenate([past.counts for past in self._pasts]),
            "sums": np.concatenate([past.sums for past in self._pasts]),
        }

    def restore_arrays(self, arrays: dict[str, Array]) -> None:
        """Take over what `arrays` returned."""
        arms = cast(Int64, arrays["arms"])
        n = arms.size
        for name, shape in {"arms": (n,), "rows": (n, self._dim), "counts": (n,), "sums": (n,)}.items():
            if arrays[name].shape != shape:
                raise InvalidValueError(f"{name} has shape {arrays[name].shape}, not {shape}")
        check_between("rows", arrays["rows"], -HUGE, HUGE)
        check_between("sums", arrays["sums"], -MOST, MOST)
        check_between("counts", arrays["counts"], 1.0, MOST)
        if n and not (arms.min() >= 0 and arms.max() < self.n_arms and (np.diff(arms) >= 0).all()):
            raise InvalidValueError(f"arms are not those of {self.n_arms} arms in order")
        ends, pasts, places = np.searchsorted(arms, np.arange(self.n_arms + 1)), [], []
        for arm in range(self.n_arms):
            mine = slice(ends[arm], ends[arm + 1])
            past = ArmPast.of(*(cast(Float64, arrays[name][mine]) for name in ("rows", "sums", "counts")))
            of_arm = past.rows if self._kept == "contexts" else ()
            pasts.append(past)
            places.append({_key(row): place for place, row in enumerate(of_arm)})
            if len(places[arm]) != len(of_arm):
                raise InvalidValueError(f"rows holds one twice for arm {arm}; equal contexts have one entry")
        self._pasts, self._places = pasts, places

    def copy(self) -> Self:
        """Copy everything."""
        return copy.deepcopy(self)

    def add_arm(self) -> None:
        """Add an arm without a past."""
        self._pasts.append(ArmPast(self._dim))
        self._places.append({})

    def remove_arm(self, arm: int) -> None:
        """Drop an arm and its past."""
        del self._pasts[arm], self._places[arm]

    def merge(self, other: Self, into: list[int]) -> None:
        """Append the other's rows; the counts and rewards of equal contexts add up."""
        check_mergeable(self, other, into)
        for theirs, arm in enumerate(into):
            known = sum(key in self._places[arm] for key in other._places[theirs])
            self._check_room(arm, len(other.past(theirs)) - known)
        for theirs, arm in enumerate(into):
            past, added = self._pasts[arm], other.past(theirs)
            for row, count, total in zip(added.rows, added.counts, added.sums, strict=True):
                place = self._places[arm].get(_key(row))
                if place is None:
                    self._append(arm, row, count, total)
                else:
                    past.counts[place] += count
                    past.sums[place] += total


def _key(x: Float64) -> bytes:
    return (x + 0.0).tobytes()  # -0.0 is 0.0
