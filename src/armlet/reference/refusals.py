"""What states refuse before they change anything: rows that are not theirs, arrays and states that do not fit."""

from __future__ import annotations

from typing import Protocol, cast

import numpy as np

from armlet.errors import DecisionError, InvalidValueError, MergeError
from armlet.types import Array, Float64

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


def check_array(name: str, given: Array, like: Array, shape: tuple[int, ...] | None = None, most: float = MOST) -> None:
    """Refuse an array of another kind or shape than what it is to replace, and values that no rows lead to.

    Examples
    --------
    >>> check_array("W", np.zeros(3), np.zeros(2))
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: W is float64 of shape (3,), not float64 of shape (2,)
    """
    shape = like.shape if shape is None else shape
    if given.shape != shape or given.dtype != like.dtype:
        raise InvalidValueError(f"{name} is {given.dtype} of shape {given.shape}, not {like.dtype} of shape {shape}")
    if given.dtype == np.float64 and np.isnan(given).any():
        raise InvalidValueError(f"{name} holds values that are no numbers")
    if given.dtype == np.float64 and given.size and max(given.max(), -given.min()) > most:
        raise InvalidValueError(f"{name} holds values beyond {most:g}, which no rows lead to")


def check_between(name: str, given: Array, low: float, high: float) -> None:
    """Refuse an array with entries outside of what it can ever hold, nan among them.

    Examples
    --------
    >>> check_between("seen", np.array([-1.0]), 0.0, 10.0)
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: seen holds -1.0, which no rows lead to; its values lie between 0 and 10
    """
    values = cast(Float64, given)
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
    >>> from armlet.policies.state import Arrays
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
