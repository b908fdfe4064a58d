"""Maintenance of a store, in slices between two batches of calls, so that nobody who decides waits for more than one.

A slice is one transaction: errands take turns at it, piece by piece, until its CPU time is spent. Errands that delete
something wait for one scrub of the ledger's files, which all that are done by then share.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable

from armlet.errors import StoreError
from armlet.stores.budget import Budget
from armlet.stores.clock import Clock
from armlet.stores.ledger import Ledger
from armlet.stores.tickets import Errand, Ticket

RETRY = 0.01  # seconds, if somebody who reads is in the way of a scrub
PATIENCE = 10.0  # seconds until that is given up


class Upkeep:
    """The errands of a store; only the thread that writes comes here.

    Parameters
    ----------
    ledger, clock, budget
        Where to write, what time it is, and how long a slice may take.
    on_failure
        Called with the errands of a transaction that failed.
    """

    def __init__(
        self,
        ledger: Ledger,
        clock: Clock,
        budget: Budget,
        on_failure: Callable[[Iterable[Ticket], BaseException], None],
    ) -> None:
        self._ledger, self._clock, self._budget, self._on_failure = ledger, clock, budget, on_failure
        self._errands: deque[Errand] = deque()
        self._unscrubbed: list[Errand] = []  # done, but for what the ledger's files still have
        self._scrub_at = 0.0

    def add(self, errand: Errand) -> None:
        """Take an errand in."""
        self._errands.append(errand)

    @property
    def pause(self) -> float | None:
        """Seconds until there is something to do; None if there is nothing."""
        if self._errands:
            return 0.0
        return RETRY if self._unscrubbed else None

    @property
    def is_waited_for(self) -> bool:
        """Whether anybody waits for the end of it."""
        return bool(self._unscrubbed) or any(errand.is_waited_for for errand in self._errands)

    def run(self) -> None:
        """Do a slice, and scrub if anybody waits for that."""
        if self._errands:
            self._slice()
        if self._unscrubbed and time.monotonic() >= self._scrub_at:
            self._scrub()

    def _slice(self) -> None:
        begun: dict[Errand, None] = {}
        try:
            with self._ledger.writing() as pen:
                now = self._clock.now()
                self._budget.renew()
                while self._errands and not (begun and self._budget.is_spent()):
                    errand = self._errands.popleft()
                    begun[errand] = None
                    errand.run(pen, now, self._ledger.failures)
                    if not errand.is_done and errand.error is None:
                        self._errands.append(errand)
        except BaseException as error:
            self._errands = deque(errand for errand in self._errands if errand not in begun)
            self._on_failure(begun, error)
        for errand in begun:
            if errand.error is None and errand.is_done and errand.scrubs:
                self._unscrubbed.append(errand)
            elif errand.error is not None or errand.is_done:
                errand.release()

    def _scrub(self) -> None:
        try:
            is_done, reason = self._ledger.scrub(), "somebody reads it, a backup perhaps"
        except Exception as error:
            self._let_go(self._unscrubbed, str(error))
            return
        if is_done:
            self._let_go(self._unscrubbed)
            return
        now = time.monotonic()
        self._scrub_at = now + RETRY
        for errand in self._unscrubbed:
            errand.stuck_since = errand.stuck_since or now
        self._let_go([errand for errand in self._unscrubbed if now - (errand.stuck_since or now) > PATIENCE], reason)

    def _let_go(self, errands: list[Errand], reason: str = "") -> None:
        self._unscrubbed = [errand for errand in self._unscrubbed if errand not in errands]
        for errand in errands:
            if reason:
                errand.error = StoreError(
                    f"it was deleted, but the store's -wal file may still contain it: {reason}; try again"
                )
            errand.release()

    def leave(self) -> list[Errand]:
        """Give all errands back as they are."""
        left = [*self._errands, *self._unscrubbed]
        self._errands, self._unscrubbed = deque(), []
        return left
