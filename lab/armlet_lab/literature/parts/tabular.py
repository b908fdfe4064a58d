"""What policies for finitely many contexts share: a table that is one for all contexts, or one for each.

With contexts="ignored" they are the context-free algorithms of their papers, which on a contextual problem can at best
find the arm that is best on average: a floor. With contexts="table" every distinct context is a problem of its own, and
regret grows with the number of contexts. A table looks a row up in O(d).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, Self, TypeAlias, cast

import numpy as np

from armlet.errors import InvalidValueError, MergeError
from armlet.inputs.settings import one_of, settle
from armlet.policies.base import BasePolicy
from armlet.policies.state import check_array, check_counted, check_mergeable
from armlet.types import Array, Float64, Int64, Interaction, Memory, Shapes, StateT

ContextUse: TypeAlias = Literal["ignored", "table"]
"""Whether a policy for finitely many contexts treats them all as one, or each by itself."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Tabular(BasePolicy[StateT]):
    """The common part of such policies; not one by itself.

    Examples
    --------
    >>> from armlet.policies import UCB1
    >>> UCB1(contexts="tables")
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: contexts is 'tables'; choose 'ignored' or 'table'
    """

    contexts: ContextUse = "ignored"

    memory: ClassVar[Memory] = "grows with contexts"  # a single row if they are ignored

    def __post_init__(self) -> None:
        settle(self, contexts=one_of("ignored", "table"))


class Means(Table):
    """How often each arm was learned from in each context, and the sum of its rewards.

    Examples
    --------
    >>> state = Means(2, 1, "ignored")
    >>> state.add(Interaction(t=1, x=np.ones(1), arm=1, reward=0.5), 0.5, None)
    >>> state.means(np.ones(1))
    array([inf, 0.5])
    """

    def __init__(self, n_arms: int, dim: int, contexts: ContextUse) -> None:
        super().__init__(n_arms, dim, contexts=contexts, fields={"n": 0.0, "sum_r": 0.0}, additive=True)

    def add(self, interaction: Interaction, reward: float, replaces: float | None) -> None:
        """Add a row, take it back, or change its reward: all of them are sums."""
        i = interaction
        if replaces is not None or i.weight < 0.0:
            check_counted(float(self.read("n", i.x)[i.arm]), i.weight)
        row = self.write(i.x)
        row["sum_r"][i.arm] += i.weight * (reward - (replaces or 0.0))
        if replaces is None:
            row["n"][i.arm] += i.weight

    def means(self, x: Float64) -> Float64:
        """Return the mean reward of each arm, (K,): infinity for one without rows, so that it is tried first."""
        n, sum_r = self.read("n", x), self.read("sum_r", x)
        known = n > TRACE
        return np.where(known, sum_r / np.where(known, n, 1.0), np.inf)


class Levels(Table):
    """A table of which one field only means something relative to the other arms, such as a log-weight.

    A new arm starts at the mean of the others: at 0 it would be far ahead or far behind for no reason.

    Examples
    --------
    >>> state = Levels(2, 1, contexts="ignored", fields={"gain": 0.0}, level="gain")
    >>> state.write(np.ones(1))["gain"][:] = 4.0, 8.0
    >>> state.add_arm()
    >>> state.read("gain", np.ones(1))
    array([4., 8., 6.])
    """

    def __init__(
        self,
        n_arms: int,
        dim: int,
        *,
        contexts: ContextUse,
        fields: dict[str, float],
        level: str,
        additive: bool = False,
    ) -> None:
        super().__init__(n_arms, dim, contexts=contexts, fields=fields, additive=additive)
        self._level = level

    def add_arm(self) -> None:
        """Return every context one more arm, neither ahead nor behind."""
        super().add_arm()
        for row in self._rows:
            row[self._level][-1] = row[self._level][:-1].mean()


TRACE = 1e-9  # what rounding may leave of a count whose rows were all taken back
