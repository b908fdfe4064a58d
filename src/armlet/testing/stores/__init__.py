"""What every store promises, as checks that can be run over any of them.

`check_store` runs over Armlet's own ledgers in its tests; run it over one of your own in yours. Checks of the ledger
come first, then those of loops that are kept in it. They raise AssertionError with the promise that was broken.
"""

from __future__ import annotations

from collections.abc import Callable

from armlet.testing.stores.common import Place, StoreCheck
from armlet.testing.stores.ledgers import LEDGER_CHECKS
from armlet.testing.stores.loops import LOOP_CHECKS

__all__ = ["STORE_CHECKS", "Place", "StoreCheck", "check_store"]

STORE_CHECKS: tuple[StoreCheck, ...] = (*LEDGER_CHECKS, *LOOP_CHECKS)


def check_store(new: Callable[[], Place]) -> None:
    """Run every check over a kind of ledger, each over one of its own.

    Parameters
    ----------
    new
        Gives a place where no ledger is yet: a function that opens it, the same one again after it was closed.

    Examples
    --------
    >>> from armlet.stores import Memory
    >>> from armlet.testing import check_store
    >>> def new():
    ...     ledger = Memory()
    ...     return lambda: ledger
    >>> check_store(new)
    """
    for check in STORE_CHECKS:
        check(new())
