"""A row of numbers for every distinct context: the state of policies that treat contexts as a table."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Literal, Self, TypeAlias, cast

import numpy as np

from armlet.errors import InvalidValueError, MergeError
from armlet.policies.state import check_array, check_mergeable
from armlet.types import Array, Float64, Int64, Shapes

ContextUse: TypeAlias = Literal["ignored", "table"]
"""Whether a policy for finitely many contexts treats them all as one, or each by itself."""


class ContextTable:
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
    >>> state = ContextTable(2, 1, contexts="table", fields={"n": 0.0})
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
        """Return the numbers of a context, (K,): those of one never met if it is new."""
        place = self._places.get(self._key(x))
        return np.full(self._n_arms, self._fields[name]) if place is None else self._rows[place][name]

    def write(self, x: Float64) -> dict[str, Float64]:
        """Return the row of a context to be changed in place, made now if it is new."""
        place = self._places.setdefault(self._key(x), len(self._rows))
        if place == len(self._rows):
            self._rows.append({name: np.full(self._n_arms, start) for name, start in self._fields.items()})
        return self._rows[place]

    def _key(self, x: Float64) -> bytes:
        return (x + 0.0).tobytes() if self._contexts == "table" else b""  # -0.0 is 0.0

    def arrays(self) -> dict[str, Array]:
        """Return the contexts, (M, d), and the numbers, (M, K) each."""
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
        """Return every context the starting numbers of one more arm."""
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
    """Return the shapes of a `ContextTable` with these fields.

    Examples
    --------
    >>> table_shapes(2, 3, "gain")
    {'contexts': (None, 3), 'gain': (None, 2)}
    """
    return {"contexts": (None, dim), **dict.fromkeys(fields, (None, n_arms))}
