"""The one thread that writes: it commits all calls that wait, in one transaction, and only then answers.

While a batch is on its way to the disk the next one gathers by itself, so that many callers share a commit and one
alone waits for nobody; there is no timer. Deciding, judging and learning happen in this thread too, so that rows are
numbered in the order in which the bandit did them. Between two batches it does a slice of maintenance, if there is any.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Callable, Iterable
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from armlet.errors import StoreError
from armlet.stores.budget import Budget
from armlet.stores.clock import Clock, Moment
from armlet.stores.ledger import Ledger, Pen
from armlet.stores.tickets import Chore, Errand, Preparation, Ticket
from armlet.stores.upkeep import Upkeep

T = TypeVar("T")

MOST = 1024  # calls in a batch, so that nobody waits for a queue that never ends


class Writer:
    """Runs calls in transactions, many in each, and maintenance between them.

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
        self.budget = Budget()
        self._upkeep = Upkeep(ledger, clock, self.budget, self._fail)
        self._queue: SimpleQueue[Ticket | None] = SimpleQueue()
        self._batch: list[Ticket] = []
        self._pid = os.getpid()
        self._gate = threading.Lock()  # nothing is queued behind the end
        self._closed: str | None = None  # why
        self._is_let_go = self._is_ending_now = False
        self._thread = threading.Thread(target=self._run, name="armlet store", daemon=True)
        self._thread.start()
        _RUNNING.add(self)

    def do(self, work: Callable[[Pen, Moment], T], first: Preparation | None = None) -> T:
        """Run a call in the next transaction; answer when it is kept, or raise what it or the ledger raised.

        Parameters
        ----------
        work
            What to do with the pen, at the given time. Whatever it raises, nothing of it is kept.
        first
            What to bring up to date before.
        """
        answer: T = self._ask(Ticket(work, first))
        return answer

    def maintain(self, chore: Chore[T], *, scrubs: bool = False) -> T:
        """Do a chore between batches, piece by piece; answer when all of it is kept.

        Parameters
        ----------
        chore
            What to do. If a piece raises, those before it stay done.
        scrubs
            Whether what it deletes must be gone from all files when the answer comes.
        """
        answer: T = self._ask(Errand(chore, scrubs=scrubs))
        return answer

    def later(self, chore: Chore[object]) -> None:
        """Do a chore that nobody waits for. Only the thread that writes asks for it."""
        self._upkeep.add(Errand(chore, is_waited_for=False))

    def _ask(self, ticket: Ticket) -> Any:
        if os.getpid() != self._pid:  # before any lock, which a fork may have copied while it was held
            raise StoreError("the store was opened before a fork, and only the parent may use it; open another one")
        self._check_caller()
        with self._gate:
            if self._closed is not None:
                raise StoreError(f"the store is closed{self._closed}; open it again")
            self._queue.put(ticket)
        return ticket.wait()

    def _check_caller(self) -> None:
        if threading.current_thread() is self._thread:  # which would wait for itself
            raise StoreError("a policy called the store that was asking it; a policy must not use its own store")

    def close(self) -> bool:
        """Answer all that is waiting, then stop; tell whether it was open."""
        if os.getpid() != self._pid:
            return False
        self._check_caller()
        with self._gate:
            was_open, self._is_let_go = not self._is_let_go, True
        self.stop()
        return was_open

    def stop(self, *, now: bool = False) -> None:
        """Answer all that is waiting, then end the thread; if it must end now, maintenance is broken off."""
        with self._gate:
            self._is_ending_now = now
            if self._closed is None:
                self._closed = ""
                self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        try:
            is_ending = False
            while not is_ending or (self._upkeep.is_waited_for and not self._is_ending_now):
                is_ending = is_ending or self._gather()
                self._serve()
                self._upkeep.run()
        except BaseException as error:  # nobody may wait for a thread that is gone
            self._give_up(error)
        for errand in self._upkeep.leave():
            errand.error = StoreError("the program ended before this was done")
            errand.release()

    def _gather(self) -> bool:
        """Take what is in the queue, waiting for it if there is nothing else to do; tell whether it has ended."""
        pause = self._upkeep.pause
        for _ in range(MOST):
            try:
                ticket = self._queue.get(block=pause != 0.0, timeout=pause or None)
            except Empty:
                break
            if ticket is None:
                return True
            if isinstance(ticket, Errand):
                self._upkeep.add(ticket)
            else:
                self._batch.append(ticket)
            pause = 0.0
        return False

    def _serve(self) -> None:
        """Run a batch, commit it and answer."""
        if not self._batch:
            return
        try:
            with self._ledger.writing() as pen:
                now = self._clock.now()
                self.budget.renew()
                for ticket in self._batch:
                    ticket.run(pen, now, self._ledger.failures)
        except BaseException as error:
            self._fail(self._batch, error)  # also those that were refused: by what, is not kept either
        batch, self._batch = self._batch, []
        for ticket in batch:
            ticket.release()

    def _fail(self, tickets: Iterable[Ticket], error: BaseException) -> None:
        self._on_failure()
        for ticket in tickets:
            ticket.error = StoreError(f"nothing of this call was kept: {error}")
            ticket.error.__cause__ = error

    def _give_up(self, error: BaseException) -> None:
        with self._gate:
            self._closed = f", since its thread has ended: {error!r}"
        left = [*self._batch, *self._upkeep.leave()]
        while not self._queue.empty():
            if (ticket := self._queue.get()) is not None:
                left.append(ticket)
        self._batch = []
        self._fail(left, error)
        for ticket in left:
            ticket.release()


_RUNNING: weakref.WeakSet[Writer] = weakref.WeakSet()  # those whose thread has not ended keep themselves alive


@atexit.register
def _stop_all() -> None:
    """End the threads of stores that nobody closed, before the interpreter goes: it cannot free what a thread holds."""
    for writer in list(_RUNNING):
        if writer._pid == os.getpid():
            writer.stop(now=True)
