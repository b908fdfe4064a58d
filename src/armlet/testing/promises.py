"""What checks of promises share: how one is required, and when two states are the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt


class Kept(Protocol):
    """A state, as far as comparing goes."""

    def arrays(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return everything that it keeps."""


Options: TypeAlias = dict[str, Any]
"""Of a call, by name."""


def require(holds: object, promise: str) -> None:
    """Raise AssertionError if a promise is broken."""
    if not holds:
        raise AssertionError(promise)


def same(one: Kept, other: Kept) -> bool:
    """Return whether two states are equal to the last bit."""
    first, second = one.arrays(), other.arrays()
    return set(first) == set(second) and all(np.array_equal(first[name], second[name]) for name in first)
