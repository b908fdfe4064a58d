"""States that are not sums of rows: named arrays, and a row of numbers for every distinct context.

Policies written in Python choose one of these, or `Statistics` where what they know adds up. Folding the interactions
in order of arrival rebuilds any of them bit for bit.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self, TypeAlias, cast

import numpy as np

from armlet.errors import DecisionError, InvalidValueError, MergeError
from armlet.reference.refusals import MOST, check_array, check_mergeable
from armlet.types import Arm, Array, Float64, Int64, Interaction, Shapes, State

ContextUse: TypeAlias = Literal["ignored", "table"]
"""Whether a policy for finitely many contexts treats them all as one, or each by itself."""


def fresh(interaction: Interaction, policy: object) -> None:
    """Refuse an interaction that takes back or changes an earlier one, where what is known is no sum.

    Examples
    --------
    >>> fresh(Interaction(t=1, x=np.ones(1), arm=0, reward=1.0, weight=-1.0), "Exp3")
    Traceback (most recent call last):
    armlet.errors.DecisionError: 'Exp3' cannot take back or change what it learned; ...
    """
    if interaction.replaces is not None or interaction.weight < 0:
        raise DecisionError(
            f"{policy!r} cannot take back or change what it learned; choose a policy whose state is a sum of rows"
        )


def subtract(later: Any, labels: Sequence[Arm], earlier: State, earlier_labels: Sequence[Arm]) -> None:
    """Take the sums of an earlier state away from those of a later one, arm by arm; MergeError where they do not add.

    Arms that the later state no longer has are left out; it holds nothing of them.

    Examples
    --------
    >>> from armlet.kernel import Statistics
    >>> later, earlier = Statistics(2, 1), Statistics(1, 1)
    >>> for state in (later, earlier):
    ...     state.add(0, np.array([1.0]), 3.0)
    >>> later.add(1, np.array([1.0]), 5.0)
    >>> subtract(later, ["b", "a"], earlier, ["b"])
    >>> later.n.tolist()
    [0.0, 1.0]
    """
    if not hasattr(later, "subtract") or _definer(later, "subtract") is not _definer(later, "merge"):
        raise MergeError("this policy's state is no sum of rows, so there is no difference of two of them")
    places = {label: arm for arm, label in enumerate(labels)}
    for arm in reversed([i for i, label in enumerate(earlier_labels) if label not in places]):
        earlier.remove_arm(arm)
    later.subtract(earlier, [places[label] for label in earlier_labels if label in places])


def _definer(state: object, method: str) -> type:
    """Give the class that a method is from: one that changes `merge` alone has another idea of what adds up."""
    return next(base for base in type(state).__mro__ if method in vars(base))


class Arrays:
    """A state of named arrays: some with a row for every arm, some of the problem as a whole.

    Parameters
    ----------
    n_arms, dim
        K and d.
    by_arm
        Arrays whose first axis is the arm.
    whole
        Arrays that do not depend on the arms.
    blank
        What the entries of a new arm are, by name; 0 if left out.
    additive
        The state is a sum over interactions, so that two can be added.

    Examples
    --------
    >>> state = Arrays(2, 3, by_arm={"W": np.zeros((2, 3))}, whole={"clipped": np.zeros(1)})
    >>> state["W"][0] += 1.0
    >>> state.add_arm()
    >>> state["W"].shape, state.n_arms
    ((3, 3), 3)
    >>> state.merge(state.copy(), [0, 1, 2])
    Traceback (most recent call last):
    armlet.errors.MergeError: ...
    """

    def __init__(
        self,
        n_arms: int,
        dim: int,
        *,
        by_arm: Mapping[str, Array],
        whole: Mapping[str, Array] | None = None,
        blank: Mapping[str, float] | None = None,
        additive: bool = False,
    ) -> None:
        self._n_arms, self._dim, self._additive = n_arms, dim, additive
        self._by_arm, self._whole, self._blank = dict(by_arm), dict(whole or {}), dict(blank or {})
        # what starts infinite may stay so
        self._most = {
            name: np.inf if array.dtype == np.float64 and np.isinf(cast(Float64, array)).any() else MOST
            for name, array in (*self._by_arm.items(), *self._whole.items())
        }

    @property
    def n_arms(self) -> int:
        """The number of arms, K."""
        return self._n_arms

    @property
    def dim(self) -> int:
        """The number of features of a context, d."""
        return self._dim

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in (*self._by_arm.values(), *self._whole.values()))

    def __getitem__(self, name: str) -> Float64:
        """Give an array itself, to be read and changed in place."""
        return cast(Float64, self._by_arm[name] if name in self._by_arm else self._whole[name])

    def arrays(self) -> dict[str, Array]:
        """Give copies of all arrays."""
        return {name: array.copy() for name, array in (*self._by_arm.items(), *self._whole.items())}

    def restore_arrays(self, arrays: dict[str, Array]) -> None:
        """Take back what `arrays` gave."""
        for name, array in (*self._by_arm.items(), *self._whole.items()):
            check_array(name, arrays[name], array, most=self._most.get(name, MOST))
        for mine in (self._by_arm, self._whole):
            mine.update({name: arrays[name].copy() for name in mine})

    def copy(self) -> Self:
        """Make another that shares no array with this one."""
        return copy.deepcopy(self)

    def add_arm(self) -> None:
        """Append a blank row to every array of arms."""
        for name, array in self._by_arm.items():
            row = np.full((1, *array.shape[1:]), self._blank.get(name, 0), dtype=array.dtype)
            self._by_arm[name] = np.concatenate([array, row])
        self._n_arms += 1

    def remove_arm(self, arm: int) -> None:
        """Drop a row of every array of arms."""
        for name, array in self._by_arm.items():
            self._by_arm[name] = np.delete(array, arm, axis=0)
        self._n_arms -= 1

    def merge(self, other: Self, into: list[int]) -> None:
        """Add the other's arrays, if they are sums."""
        if not self._additive:
            raise MergeError("this policy's state is no sum of rows, so two of them cannot be added")
        self._add(other, into, 1.0)

    def subtract(self, other: Self, into: list[int]) -> None:
        """Take the other's arrays away, if they are sums."""
        if not self._additive:
            raise MergeError("this policy's state is no sum of rows, so there is no difference of two of them")
        self._add(other, into, -1.0)

    def _add(self, other: Self, into: list[int], sign: float) -> None:
        check_mergeable(self, other, into)
        for name, array in self._whole.items():
            if other._whole[name].shape != array.shape:
                raise MergeError(f"{name} has shape {other._whole[name].shape} there and {array.shape} here")
        for name in self._by_arm:
            self[name][into] += sign * other[name]
        for name in self._whole:
            self[name][...] += sign * other[name]


class Table:
    """A row of numbers, one for each arm, for every distinct context that was learned from.

    Parameters
    ----------
    n_arms, dim
        K and d.
    contexts
        "table" keeps a row for every context; "ignored" keeps a single one.
    fields
        The names of the numbers and what they are before anything is learned.
    additive
        The state is a sum over interactions, so that two can be added.

    Examples
    --------
    >>> state = Table(2, 1, contexts="table", fields={"n": 0.0})
    >>> state.read("n", np.array([0.5]))
    array([0., 0.])
    >>> state.write(np.array([0.5]))["n"][1] += 1
    >>> state.read("n", np.array([0.5])), state.n_contexts
    (array([0., 1.]), 1)
    """

    def __init__(
        self, n_arms: int, dim: int, *, contexts: ContextUse, fields: Mapping[str, float], additive: bool = False
    ) -> None:
        self._n_arms, self._dim, self._contexts, self._additive = n_arms, dim, contexts, additive
        self._fields = dict(fields)
        self._places: dict[bytes, int] = {}
        self._rows: list[dict[str, Float64]] = []

    @property
    def n_arms(self) -> int:
        """The number of arms, K."""
        return self._n_arms

    @property
    def dim(self) -> int:
        """The number of features of a context, d."""
        return self._dim

    @property
    def n_contexts(self) -> int:
        """How many distinct contexts were learned from."""
        return len(self._rows)

    @property
    def nbytes(self) -> int:
        """Bytes of contexts and numbers."""
        return self.n_contexts * 8 * (self._dim + self._n_arms * len(self._fields))

    def read(self, name: str, x: Float64) -> Float64:
        """Give the numbers of a context, (K,): those of one never met if it is new."""
        place = self._places.get(self._key(x))
        return np.full(self._n_arms, self._fields[name]) if place is None else self._rows[place][name]

    def write(self, x: Float64) -> dict[str, Float64]:
        """Give the row of a context to be changed in place, made now if it is new."""
        place = self._places.setdefault(self._key(x), len(self._rows))
        if place == len(self._rows):
            self._rows.append({name: np.full(self._n_arms, start) for name, start in self._fields.items()})
        return self._rows[place]

    def _key(self, x: Float64) -> bytes:
        return (x + 0.0).tobytes() if self._contexts == "table" else b""  # -0.0 is 0.0

    def arrays(self) -> dict[str, Array]:
        """Give the contexts, (M, d), and the numbers, (M, K) each."""
        keys = [np.frombuffer(key) if key else np.zeros(self._dim) for key in self._places]
        out: dict[str, Array] = {"contexts": np.array(keys).reshape(len(keys), self._dim)}
        for name in self._fields:
            out[name] = np.array([row[name] for row in self._rows]).reshape(len(keys), self._n_arms)
        return out

    def restore_arrays(self, arrays: dict[str, Array]) -> None:
        """Take back what `arrays` gave."""
        contexts = cast(Float64, arrays["contexts"])
        size, like = len(contexts) if contexts.ndim else 0, np.zeros(0)
        check_array("contexts", contexts, like, (size, self._dim))
        for name in self._fields:
            check_array(name, arrays[name], like, (size, self._n_arms))
        if len({self._key(x) for x in contexts}) != size:
            raise InvalidValueError("contexts holds one twice; each has one row")
        self._places, self._rows = {}, []
        for place, x in enumerate(contexts):
            row = self.write(x)
            for name in self._fields:
                row[name][:] = arrays[name][place]

    def copy(self) -> Self:
        """Make another that shares no array with this one."""
        return copy.deepcopy(self)

    def add_arm(self) -> None:
        """Give every context the starting numbers of one more arm."""
        for row in self._rows:
            for name, start in self._fields.items():
                row[name] = np.append(row[name], start)
        self._n_arms += 1

    def remove_arm(self, arm: int) -> None:
        """Drop an arm's numbers."""
        for row in self._rows:
            for name in self._fields:
                row[name] = np.delete(row[name], arm)
        self._n_arms -= 1

    def merge(self, other: Self, into: list[int]) -> None:
        """Add the numbers of every context, if they are sums."""
        if not self._additive:
            raise MergeError("this policy's state is no sum of rows, so two of them cannot be added")
        self._add(other, into, 1.0)

    def subtract(self, other: Self, into: list[int]) -> None:
        """Take the numbers of every context away, if they are sums."""
        if not self._additive:
            raise MergeError("this policy's state is no sum of rows, so there is no difference of two of them")
        self._add(other, into, -1.0)

    def _add(self, other: Self, into: list[int], sign: float) -> None:
        check_mergeable(self, other, into)
        arms: Int64 = np.array(into, dtype=np.int64)  # or no arm in common would be no index
        for key, place in other._places.items():
            row = self.write(np.frombuffer(key) if key else np.zeros(self._dim))
            for name in self._fields:
                row[name][arms] += sign * other._rows[place][name]


def table_shapes(n_arms: int, dim: int, *fields: str) -> Shapes:
    """Give the shapes of a `Table` with these fields.

    Examples
    --------
    >>> table_shapes(2, 3, "gain")
    {'contexts': (None, 3), 'gain': (None, 2)}
    """
    return {"contexts": (None, dim), **dict.fromkeys(fields, (None, n_arms))}
