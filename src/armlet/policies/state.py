"""States of policies: what they refuse before they change anything, differences, and states of named arrays.

Policies written in Python choose `Arrays`, or `Statistics` where what they know adds up. Folding the interactions
in order of arrival rebuilds any of them bit for bit.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Self, cast

import numpy as np

from armlet.errors import DecisionError, InvalidValueError, MergeError
from armlet.inputs.columns import plain_label
from armlet.types import Arm, Array, Float64, Interaction, State

MOST = 1e200
"""The largest sum that a state may hold: rows of numbers up to 1e40 cannot lead to more."""


def check_counted(n: float, weight: float) -> None:
    """Refuse to take back or change a row that counts more than all that are there.

    Examples
    --------
    >>> check_counted(0.0, -1.0)
    Traceback (most recent call last):
    armlet.errors.DecisionError: there is no such row: n is 0.0 and the row counts 1.0; another bandit learned ...
    """
    if n < 0.999 * abs(weight):  # rounding leaves a little of n, or takes it
        raise DecisionError(
            f"there is no such row: n is {n} and the row counts {abs(weight)}; another bandit learned it, or it was "
            f"forgotten with its arm"
        )


def check_array(name: str, array: Array, like: Array, shape: tuple[int, ...] | None = None, most: float = MOST) -> None:
    """Refuse an array of another kind or shape than what it is to replace, and values that no rows lead to.

    Examples
    --------
    >>> check_array("W", np.zeros(3), np.zeros(2))
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: W is float64 of shape (3,), not float64 of shape (2,)
    """
    shape = like.shape if shape is None else shape
    if array.shape != shape or array.dtype != like.dtype:
        raise InvalidValueError(f"{name} is {array.dtype} of shape {array.shape}, not {like.dtype} of shape {shape}")
    if array.dtype == np.float64 and np.isnan(array).any():
        raise InvalidValueError(f"{name} holds values that are no numbers")
    if array.dtype == np.float64 and array.size and max(array.max(), -array.min()) > most:
        raise InvalidValueError(f"{name} holds values beyond {most:g}, which no rows lead to")


def check_between(name: str, array: Array, low: float, high: float) -> None:
    """Refuse an array with entries outside of what it can ever hold, nan among them.

    Examples
    --------
    >>> check_between("seen", np.array([-1.0]), 0.0, 10.0)
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: seen holds -1.0, which no rows lead to; its values lie between 0 and 10
    """
    values = cast(Float64, array)
    outside = values[~((values >= low) & (values <= high))]
    if outside.size:
        raise InvalidValueError(
            f"{name} holds {outside.flat[0]}, which no rows lead to; its values lie between {low:g} and {high:g}"
        )


class Sized(Protocol):
    """What has arms and a dimension."""

    @property
    def n_arms(self) -> int:
        """The number of arms, K."""

    @property
    def dim(self) -> int:
        """The number of features of a context, d."""


def check_mergeable(mine: Sized, other: Sized, into: list[int]) -> None:
    """Refuse a state of another kind or size, and arms that are not there, before anything is added.

    Examples
    --------
    >>> state = Arrays(2, 1, by_arm={"W": np.zeros((2, 1))}, additive=True)
    >>> state.merge(state.copy(), [0, 2])
    Traceback (most recent call last):
    armlet.errors.MergeError: into is [0, 2]; give each of the other's 2 arms a place of its own among 2
    """
    if type(other) is not type(mine) or other.dim != mine.dim:
        raise MergeError(
            f"other is a {type(other).__name__} of dim {other.dim}, not a {type(mine).__name__} of {mine.dim}"
        )
    if len(into) != other.n_arms or len(set(into)) != len(into) or not set(into) <= set(range(mine.n_arms)):
        raise MergeError(
            f"into is {into}; give each of the other's {other.n_arms} arms a place of its own among {mine.n_arms}"
        )


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
    """Subtract the sums of an earlier state from those of a later one, arm by arm; MergeError where they do not add.

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
    places = {plain_label(label): arm for arm, label in enumerate(labels)}
    earlier_plain = [plain_label(label) for label in earlier_labels]
    for arm in reversed([i for i, label in enumerate(earlier_plain) if label not in places]):
        earlier.remove_arm(arm)
    later.subtract(earlier, [places[label] for label in earlier_plain if label in places])


def _definer(state: object, method: str) -> type:
    """Return the class that a method is from: one that changes `merge` alone has another idea of what adds up."""
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
        """Return an array itself, to be read and changed in place."""
        return cast(Float64, self._by_arm[name] if name in self._by_arm else self._whole[name])

    def arrays(self) -> dict[str, Array]:
        """Return copies of all arrays."""
        return {name: array.copy() for name, array in (*self._by_arm.items(), *self._whole.items())}

    def restore_arrays(self, arrays: dict[str, Array]) -> None:
        """Restore what `arrays` returned."""
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
        """Subtract the other arrays, if they are sums."""
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
