"""The one thread that writes: it commits all calls that wait, in one transaction, and only then answers.

While a batch is on its way to the disk the next one gathers by itself, so that many callers share a commit and one
alone waits for nobody; there is no timer. Deciding, judging and learning happen in this thread too, so that rows are
numbered in the order in which the bandit did them.

Between two batches it does a slice of maintenance, if there is any: one transaction at which errands take turns, piece
by piece, until its CPU time is spent, so that nobody who decides waits for more than one. Errands that delete something
wait for one scrub of the ledger's files, which all that are done by then share.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterable
from queue import Empty, SimpleQueue
from typing import Any, Protocol, TypeAlias, TypeVar

from armlet.errors import StoreError
from armlet.stores.ledger import Ledger, Moment, Transaction

T = TypeVar("T")

MOST = 1024  # calls in a batch, so that nobody waits for a queue that never ends
SLICE = 0.003  # CPU seconds of maintenance in a transaction; what the commit costs comes on top
RETRY = 0.01  # seconds, if a reader is in the way of a scrub
PATIENCE = 10.0  # seconds until that is given up
SECOND = 1_000_000  # microseconds
DAY = 86_400 * SECOND
SLACK = 60 * SECOND  # that the wall clock may be set back between two starts without a word
LONGEST_STOP = 7 * DAY  # that the wall clock is believed to have passed while nobody ran

Chore: TypeAlias = Generator[None, tuple[Transaction, Moment], T]
"""Maintenance in pieces of about a millisecond each: after `tx, now = yield` the transaction may be another one, and
other calls may have been served in between."""


class ClockWarning(UserWarning):
    """The wall clock says that a store was closed for a negative or a very long time."""


class Clock:
    """The two times of a store: what the wall clock says, and a steady time that windows go by.

    Rows are stamped with the wall clock as it is, right or wrong. Steady time goes on from the newest row and runs as
    long as the process does: the wall clock only says how long nobody ran, and is believed if that was neither negative
    nor more than `LONGEST_STOP`. So no setting of the clock closes windows or keeps them open.

    Examples
    --------
    >>> passed = iter([100.0, 101.5])
    >>> newest = Moment(wall=7_000_000, steady=7_000_000)
    >>> clock = Clock(newest, wall=lambda: 3.0, elapsed=lambda: next(passed))
    >>> clock.now()  # the wall says 3, but something has happened at 7
    Moment(wall=3000000, steady=8500000)
    """

    def __init__(self, newest: Moment | None, wall: Callable[[], float], elapsed: Callable[[], float]) -> None:
        self._wall, self._elapsed = wall, elapsed
        now = int(wall() * SECOND)
        self._start = now if newest is None else newest.steady + _stopped(now - newest.wall)
        self._zero = elapsed()

    def now(self) -> Moment:
        """Return the time by both clocks."""
        steady = self._start + int((self._elapsed() - self._zero) * SECOND)
        return Moment(int(self._wall() * SECOND), steady)


def _stopped(passed: int) -> int:
    """Return how long nobody ran, by what the wall clock says has passed; warn if that cannot be believed."""
    if -SLACK <= passed <= LONGEST_STOP:
        return max(passed, 0)
    days, way = abs(passed) / DAY, "after" if passed > 0 else "before"
    fix = "if nobody has used the store for so long, all is well; else set the clock" if passed > 0 else "set the clock"
    warnings.warn(
        f"the clock says {days:.1f} days {way} the newest row of the store: {fix}. "
        "Open windows go on from where they were; new rows are stamped with what the clock says",
        ClockWarning,
        stacklevel=2,
    )
    return 0


class Preparation(Protocol):
    """What to bring up to date before a call; it stays done if the call is then refused."""

    def is_ready(self, now: Moment) -> bool:
        """Whether nothing is to be done."""

    def ready(self, tx: Transaction, now: Moment) -> object:
        """Do it."""


class Ticket:
    """A call that waits for its answer."""

    __slots__ = ("_done", "answer", "error", "first", "work")

    def __init__(self, work: Callable[[Transaction, Moment], Any], first: Preparation | None = None) -> None:
        self.work, self.first = work, first
        self.answer: Any = None
        self.error: BaseException | None = None
        self._done = threading.Lock()
        self._done.acquire()

    def run(self, tx: Transaction, now: Moment, failures: tuple[type[Exception], ...]) -> None:
        """Do it, or undo it if anything is raised; only a failure of the ledger is raised here."""
        try:
            if self.first is not None and not self.first.is_ready(now):
                with tx.savepoint():
                    self.first.ready(tx, now)
            with tx.savepoint():
                self.answer = self.work(tx, now)
        except failures:
            raise
        except BaseException as error:  # of a policy, which may raise anything: the caller gets it, nobody else
            self.error = error

    def wait(self) -> Any:
        """Wait for the answer, in the thread that asked."""
        self._done.acquire()
        if self.error is not None:
            raise self.error
        return self.answer

    def release(self) -> None:
        """Let the caller go on."""
        self._done.release()


class Errand(Ticket):
    """Maintenance: run again and again, in several transactions, until it is done."""

    __slots__ = ("_chore", "_is_begun", "is_done", "is_waited_for", "scrubs", "stuck_since")

    def __init__(self, chore: Chore[Any], *, scrubs: bool = False, is_waited_for: bool = True) -> None:
        super().__init__(self._piece)
        self._chore, self.scrubs, self.is_waited_for = chore, scrubs, is_waited_for
        self._is_begun = self.is_done = False
        self.stuck_since: float | None = None

    def _piece(self, tx: Transaction, now: Moment) -> Any:
        try:
            if not self._is_begun:
                self._is_begun = True
                next(self._chore)
            self._chore.send((tx, now))
        except StopIteration as end:
            self.is_done = True
            return end.value

    def release(self) -> None:
        """Let the caller go on; what is not done is broken off."""
        self._chore.close()
        super().release()


class Budget:
    """CPU time for maintenance in front of those who wait; only the thread that writes asks."""

    _end = 0.0

    def renew(self) -> None:
        """Begin a transaction."""
        self._end = time.thread_time() + SLICE

    def is_spent(self) -> bool:
        """Whether those who wait should be served now."""
        return time.thread_time() >= self._end


class Upkeep:
    """The maintenance of a store; only the thread that writes comes here."""

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
            with self._ledger.transaction() as tx:
                now = self._clock.now()
                self._budget.renew()
                while self._errands and not (begun and self._budget.is_spent()):
                    errand = self._errands.popleft()
                    begun[errand] = None
                    errand.run(tx, now, self._ledger.failures)
                    if not errand.is_done and errand.error is None:
                        self._errands.append(errand)
        except BaseException as error:
            begun = begun or dict.fromkeys(self._errands)  # where no transaction begins, none of them can go on
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
        """Return all errands as they are, and forget them."""
        left = [*self._errands, *self._unscrubbed]
        self._errands, self._unscrubbed = deque(), []
        return left


class Writer:
    """Runs calls in transactions, many in each, and maintenance between them."""

    def __init__(self, ledger: Ledger, clock: Clock, on_failure: Callable[[], None]) -> None:
        self._ledger, self._clock = ledger, clock
        self._on_failure = on_failure  # called where memory may know more than what is kept
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

    def do(self, work: Callable[[Transaction, Moment], T], first: Preparation | None = None) -> T:
        """Run a call in the next transaction; answer when it is kept, or raise what it or the ledger raised."""
        answer: T = self._ask(Ticket(work, first))
        return answer

    def maintain(self, chore: Chore[T], *, scrubs: bool = False) -> T:
        """Do a chore between batches, piece by piece; answer when all of it is kept.

        If a piece raises, those before it stay done. `scrubs`: what it deletes is gone from all files on return.
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
        """Answer all that is waiting, then stop; return whether it was open."""
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
        """Take what is in the queue, waiting for it if there is nothing else to do; return whether it has ended."""
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
        if not self._batch:
            return
        try:
            with self._ledger.transaction() as tx:
                now = self._clock.now()
                self.budget.renew()
                for ticket in self._batch:
                    ticket.run(tx, now, self._ledger.failures)
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
