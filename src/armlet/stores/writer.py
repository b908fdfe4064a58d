"""The one thread that writes: it commits whatever is waiting, in one transaction, and only then answers.

While a batch is on its way to the disk the next one gathers by itself, so that many callers share a commit and one
alone waits for nobody; there is no timer. Deciding, judging and learning happen in this thread too, so that rows are
numbered in the order in which the bandit did them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from armlet.core.errors import StoreError
from armlet.stores.clock import Clock, Moment
from armlet.stores.ledger import Ledger, Pen

T = TypeVar("T")

MOST = 1024  # calls in a batch, so that nobody waits for a queue that never ends


class _Ticket:
    """A call that waits for its answer."""

    __slots__ = ("_done", "answer", "error", "work")

    def __init__(self, work: Callable[[Pen, Moment], Any]) -> None:
        self.work = work
        self.answer: Any = None
        self.error: Exception | None = None
        self._done = threading.Lock()
        self._done.acquire()

    def wait(self) -> None:
        self._done.acquire()

    def release(self) -> None:
        self._done.release()


class Writer:
    """Runs calls in transactions, many in each.

    Parameters
    ----------
    ledger
        Where to write.
    clock
        What time it is.
    on_failure
        Called after a transaction that failed: what memory knows may be more than what is kept.
    """

    def __init__(self, ledger: Ledger, clock: Clock, on_failure: Callable[[], None]) -> None:
        self._ledger, self._clock, self._on_failure = ledger, clock, on_failure
        self._queue: SimpleQueue[_Ticket | None] = SimpleQueue()
        self._pid = os.getpid()
        self._gate = threading.Lock()  # nothing is queued behind the end
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="armlet store", daemon=True)
        self._thread.start()

    def do(self, work: Callable[[Pen, Moment], T]) -> T:
        """Run a call in the next transaction; answer when it is kept, or raise what it or the ledger raised.

        Parameters
        ----------
        work
            What to do with the pen, at the given time. It raises before it changes anything, or not at all.
        """
        if os.getpid() != self._pid:  # before any lock, which a fork may have copied while it was held
            raise StoreError("the store was opened before a fork, and only the parent may use it; open another one")
        ticket = _Ticket(work)
        with self._gate:
            if self._closed:
                raise StoreError("the store is closed; open it again")
            self._queue.put(ticket)
        ticket.wait()
        if ticket.error is not None:
            raise ticket.error
        answer: T = ticket.answer
        return answer

    def close(self) -> bool:
        """Answer all that is waiting, then stop; tell whether it was open."""
        if os.getpid() != self._pid:
            return False
        with self._gate:
            was_open, self._closed = not self._closed, True
        if was_open:
            self._queue.put(None)
            self._thread.join()
        return was_open

    def _run(self) -> None:
        ending = False
        while not ending:
            batch, ending = self._next()
            if batch:
                self._serve(batch)
            for ticket in batch:
                ticket.release()

    def _next(self) -> tuple[list[_Ticket], bool]:
        batch: list[_Ticket] = []
        ticket = self._queue.get()
        while ticket is not None:
            batch.append(ticket)
            if len(batch) == MOST:
                return batch, False
            try:
                ticket = self._queue.get_nowait()
            except Empty:
                return batch, False
        return batch, True

    def _serve(self, batch: list[_Ticket]) -> None:
        try:
            with self._ledger.writing() as pen:
                now = self._clock.now()
                for ticket in batch:
                    self._work(ticket, pen, now)
        except Exception as error:
            self._on_failure()
            for ticket in batch:  # also those that were refused: by what, is not kept either
                ticket.error = StoreError(f"nothing of this call was kept: {error}")
                ticket.error.__cause__ = error

    def _work(self, ticket: _Ticket, pen: Pen, now: Moment) -> None:
        try:
            ticket.answer = ticket.work(pen, now)
        except self._ledger.failures:
            raise
        except Exception as error:
            ticket.error = error
