"""What arrays a state has, said without making it.

A file is compared with it before anything is allocated: then a few hundred bytes that claim a large problem cost
nothing. A policy whose state is not plain `Statistics` says so with a method `shapes(n_arms, dim)`. Arrays that a state
has beside those it saves are bounded by the policy's own `check`, with `check_room`.
"""

from __future__ import annotations

from collections.abc import Mapping

from armlet.errors import InvalidValueError
from armlet.reference.statistics import sum_shapes
from armlet.reference.units import units_of
from armlet.types import Array, Policy, Shapes

ROOM = 1 << 25  # numbers that a policy may make from its settings alone: a quarter of a GiB


def expected(policy: Policy, n_arms: int, dim: int) -> Shapes:
    """Ask a policy for the shapes of its state: those of `Statistics` unless it says otherwise.

    Examples
    --------
    >>> from armlet_lab.literature.banditron import Banditron
    >>> expected(Banditron(), 2, 10**9)
    {'W': (2, 1000000000)}
    """
    if hasattr(policy, "shapes"):
        said: Shapes = policy.shapes(n_arms, dim)
        return said
    return sum_shapes(n_arms, dim, units=units_of(policy))


def check_shapes(arrays: Mapping[str, Array], wanted: Shapes) -> None:
    """Refuse arrays of other names or shapes than those that a state would have.

    Examples
    --------
    >>> import numpy as np
    >>> from armlet.reference.statistics import sum_shapes
    >>> check_shapes({"records": np.zeros((2, 8))}, sum_shapes(2, 3))
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: its array 'records' has shape (2, 8) where its arms, dim and settings ...
    """
    if set(arrays) != set(wanted):
        raise InvalidValueError(f"it holds the arrays {sorted(arrays)} where its policy keeps {sorted(wanted)}")
    for name, shape in wanted.items():
        found = arrays[name].shape
        if len(found) != len(shape) or any(size not in (None, has) for has, size in zip(found, shape, strict=True)):
            told = str(shape).replace("None", "any")
            raise InvalidValueError(
                f"its array {name!r} has shape {found} where its arms, dim and settings need {told}"
            )


def check_room(numbers: int, what: str) -> None:
    """Refuse settings that would fill the memory with more than `ROOM` numbers.

    Examples
    --------
    >>> check_room(10**9, "n_policies x n_arms x dim")
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: n_policies x n_arms x dim is 1000000000; keep it within 33554432, a ...
    """
    if numbers > ROOM:
        raise InvalidValueError(f"{what} is {numbers}; keep it within {ROOM}, a quarter of a GiB")
