"""What checks of promises share: how one is required, and when two states are the same."""

from __future__ import annotations

import numpy as np

from armlet.types import State


def require(holds: object, promise: str) -> None:
    """Raise AssertionError if a promise is broken."""
    if not holds:
        raise AssertionError(promise)


def same(one: State, other: State) -> bool:
    """Return whether two states are equal to the last bit."""
    first, second = one.arrays(), other.arrays()
    return set(first) == set(second) and all(np.array_equal(first[name], second[name]) for name in first)
