"""Durable loops: decisions and rewards that outlive their process."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from armlet.errors import InvalidTypeError, StoreError
from armlet.stores.clock import ClockWarning, Moment
from armlet.stores.ledger import Kept, Ledger, Outcome, Pen, Pruned, Row
from armlet.stores.loop import Loop
from armlet.stores.memory import Memory
from armlet.stores.rewards import Aggregation, Status
from armlet.stores.store import Store

if TYPE_CHECKING:
    from armlet.stores.sqlite import SQLite

__all__ = [
    "Aggregation",
    "ClockWarning",
    "Kept",
    "Ledger",
    "Loop",
    "Memory",
    "Moment",
    "Outcome",
    "Pen",
    "Pruned",
    "Row",
    "SQLite",
    "Status",
    "Store",
    "open",
]


def open(  # noqa: A001 - as users say it: armlet.open
    path: str | os.PathLike[str],
    *,
    wall: Callable[[], float] = time.time,
    elapsed: Callable[[], float] = time.monotonic,
) -> Store:
    """Open a store in a file, or make one: `armlet.open`. Needs the extra `store`.

    Nothing is answered before it is on disk, and what was answered is there after whatever ends the process. One
    process at a time may have it open.

    Parameters
    ----------
    path
        The file. Beside it lie `-wal` and `-shm` files of SQLite's, and a `.lock` with a megabyte in reserve, for a
        full disk.
    wall, elapsed
        The clocks: seconds since 1970, which rows are stamped with, and seconds since any moment, which windows go by.
        For tests.

    Examples
    --------
    >>> import armlet
    >>> with armlet.open("shop.db") as store:
    ...     loop = store.loop("homepage", arms=["sale", "new"], features=["age"], policy=armlet.Algorithm1(p=8), seed=1)
    ...     decision = loop.decide({"age": 3.0}, event="order-17")
    ...     loop.reward("order-17", 1.0)
    'accepted'
    """
    ledger = _sqlite().SQLite(_file(path))
    try:
        return Store(ledger, wall=wall, elapsed=elapsed)
    except BaseException:
        ledger.close()
        raise


def _file(path: str | os.PathLike[str]) -> Path:
    """Refuse what names no file."""
    name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(name, str):
        raise InvalidTypeError(f"path is {path!r}; give the path of a file, such as 'shop.db'")
    if name in ("", ":memory:") or name.startswith("file:") or "://" in name or "\0" in name:
        raise StoreError(
            f"path is {name!r}; give the path of a file, such as 'shop.db'. "
            "For a store that ends with the process: armlet.stores.Store(armlet.stores.Memory())"
        )
    return Path(name)


def _sqlite() -> ModuleType:
    try:
        return import_module("armlet.stores.sqlite")
    except ModuleNotFoundError as error:
        if error.name != "apsw":
            raise
        raise StoreError("a store in a file needs apsw; install it with: pip install 'armlet[store]'") from error


def __getattr__(name: str) -> object:
    """Find the ledger that needs apsw when it is asked for."""
    if name == "SQLite":
        return _sqlite().SQLite
    raise AttributeError(f"module 'armlet.stores' has no attribute {name!r}")
