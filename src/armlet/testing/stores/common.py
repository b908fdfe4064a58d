"""What checks of stores share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from armlet.stores import Ledger

Place: TypeAlias = Callable[[], Ledger]
"""Opens a ledger; called again after it was closed, it opens the same one, with what was written."""

StoreCheck: TypeAlias = Callable[[Place], None]


def require(holds: object, promise: str) -> None:
    """Say which promise was broken, if one was."""
    if not holds:
        raise AssertionError(promise)
