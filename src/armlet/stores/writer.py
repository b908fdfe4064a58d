"""The one thread that writes: it commits all calls that wait, in one transaction, and only then answers.

A call is handed over as a ticket: a thread waits for its answer, an event loop gets those of a whole batch by one
callback and has one timer for all deadlines, so that a server needs neither a thread nor a timer a request. While a
batch is on its way to the disk the next one gathers by itself, so that many callers share a commit and one alone waits
for nobody. Deciding, judging and learning happen in this thread too, so that rows are numbered in the order in which
the bandit did them.

Between two batches it does a slice of maintenance, if there is any: one transaction at which errands of a loop take
turns, piece by piece, until its CPU time is spent, so that nobody who decides waits for more than one. Errands that
delete something wait for one scrub of the ledger's files, which all that are done by then share.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import math
import os
import threading
import time
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from armlet.errors import InternalError, QueueFullError, StoreError, StoreFailedError, UncertainError
from armlet.stores.ledger import Ledger, Moment
from armlet.stores.transaction import (
    AsyncCall,
    Call,
    Chore,
    Counts,
    Desk,
    Errand,
    Task,
    Ticket,
    Transaction,
    Work,
    raised_in,
    release,
    transaction,
)

if TYPE_CHECKING:
    from armlet.stores.runner import LoopRunner

T = TypeVar("T")

log = logging.getLogger("armlet.store")
log.addHandler(logging.NullHandler())  # silent, unless the application listens

MOST = 1024  # decisions and rewards in a batch, so that nobody waits for a queue that never ends
SLICE = 0.003  # CPU seconds of maintenance in a transaction; what the commit costs comes on top
RETRY = 0.01  # seconds, if a reader is in the way of a scrub
PATIENCE = 10.0  # seconds until that is given up
SECOND = 1_000_000  # microseconds
DAY = 86_400 * SECOND
SLACK = 60 * SECOND  # that the wall clock may be set back between two starts without a word
MICROSECOND = timedelta(microseconds=1)
LATEST = 253402300799.0  # the end of the year 9999, in seconds since 1970
LONGEST_STOP = timedelta(days=7)  # that the wall clock is believed to have passed while nobody ran


class ClockWarning(UserWarning):
    """The wall clock says that a store was closed for a negative or a very long time."""


class Clock:
    """The two times of a store: what the wall clock says, and a steady time that windows go by.

    Rows are stamped with the wall clock as it is, right or wrong. Steady time goes on from the newest row and runs as
    long as the process does: the wall clock only says how long nobody ran, and is believed if that was neither negative
    nor more than the longest stop. So no setting of the clock closes windows, keeps them open, or discounts rewards.

    Examples
    --------
    >>> passed = iter([100.0, 101.5])
    >>> newest = Moment(wall=7_000_000, steady=7_000_000)
    >>> clock = Clock(newest, wall=lambda: 3.0, elapsed=lambda: next(passed))
    >>> clock.now()  # the wall says 3, but something has happened at 7
    Moment(wall=3000000, steady=8500000)
    """

    def __init__(
        self,
        newest: Moment | None,
        wall: Callable[[], float],
        elapsed: Callable[[], float],
        longest_stop: timedelta = LONGEST_STOP,
    ) -> None:
        self._wall, self._elapsed = wall, elapsed
        now = int(wall() * SECOND)
        self._start = now if newest is None else newest.steady + _stopped(now - newest.wall, longest_stop)
        self._zero = elapsed()
        self.is_alone = newest is None  # no other process has been met

    def meet(self, head: int) -> Moment:
        """Return the time after a newest row was met in a store that was empty, which may be another process's.

        It was written since the store was opened, so that no more can have passed since; else one of the clocks is
        wrong, and the row's is the one that counts.
        """
        self.is_alone = False
        if self._start > head:
            self._start += head - self.now().steady
        return self.now()

    def now(self) -> Moment:
        """Return the time by both clocks."""
        steady = self._start + int((self._elapsed() - self._zero) * SECOND)
        return Moment(int(self._wall() * SECOND), steady)


def _stopped(passed: int, longest: timedelta) -> int:
    """Return how long nobody ran, by what the wall clock says has passed; warn if that cannot be believed."""
    if -SLACK <= passed <= longest // MICROSECOND:
        return max(passed, 0)
    days, way = abs(passed) / DAY, "after" if passed > 0 else "before"
    pause = f"if the store was not used for so long, open it with longest_stop=timedelta(days={math.ceil(days)}), else "
    fix = f"{pause if passed > 0 else ''}set the clock"
    warnings.warn(
        f"the clock says {days:.1f} days {way} the newest row of the store: {fix}. "
        "Until then open windows, and discounts by time, go on from where they were; new rows are stamped with what "
        "the clock says",
        ClockWarning,
        stacklevel=2,
    )
    return 0


# ---- maintenance


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
        counts: Counts,
        on_failure: Callable[[Iterable[Ticket], BaseException], None],
    ) -> None:
        self._ledger, self._clock, self._budget, self._on_failure = ledger, clock, budget, on_failure
        self._counts = counts
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
            with transaction(self._ledger) as tx:
                now = self._clock.now()
                self._budget.renew()
                while (errand := self._next(begun)) is not None:
                    begun[errand] = None
                    errand.run(tx, now, self._ledger.failures, self._counts)
                    if not errand.is_done and errand.error is None:
                        self._errands.append(errand)
        except BaseException as error:
            begun = begun or dict.fromkeys(self._errands)  # where no transaction begins, none of them can go on
            self._errands = deque(errand for errand in self._errands if errand not in begun)
            self._on_failure(begun, error)
        for errand in begun:
            errand.is_partly_kept = errand.is_partly_kept or errand.error is None
            if errand.error is None and errand.is_done and errand.scrubs:
                self._unscrubbed.append(errand)
            elif errand.error is not None or errand.is_done:
                errand.release()

    def _next(self, begun: dict[Errand, None]) -> Errand | None:
        """Take the next errand of a slice: all of them about one loop, so that no two writers wait for each other."""
        if not self._errands or (begun and self._budget.is_spent()):
            return None
        if begun and self._errands[0].runner is not next(iter(begun)).runner:
            return None
        return self._errands.popleft()

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


# ---- the writer


class Writer:
    """Runs calls in transactions, many in each, and maintenance between them."""

    def __init__(
        self,
        ledger: Ledger,
        clock: Clock,
        on_failure: Callable[[], None],
        on_idle: Callable[[Transaction, Moment], None],
        deadline: float | None = None,
        queue: int | None = None,
    ) -> None:
        self._ledger, self._clock, self._deadline, self._limit = ledger, clock, deadline, queue
        self._on_failure = on_failure  # called where memory may know more than what is kept
        self._on_idle = on_idle  # called after the calls of a batch, before they are committed
        self.counts = Counts()
        self.entered: dict[LoopRunner, None] = {}  # loops that were used since somebody looked, the last one last
        self.budget = Budget()
        self._upkeep = Upkeep(ledger, clock, self.budget, self.counts, self._fail)
        self._queue: SimpleQueue[Sequence[Ticket] | None] = SimpleQueue()
        self._asked = self._taken = 0  # calls, by those who ask and by the thread that writes: what is between waits
        self._desks: dict[asyncio.AbstractEventLoop, Desk] = {}
        self._batch: list[Call] = []
        self._tasks: list[Ticket] = []
        self._pid = os.getpid()
        self._gate = threading.Lock()  # nothing is queued behind the end
        self._closed: str | None = None  # why
        self._is_let_go = self._is_ending_now = False
        self._thread = threading.Thread(target=self._run, name="armlet store", daemon=True)
        self._thread.start()
        _RUNNING.add(self)

    @property
    def depth(self) -> int:
        """How many calls wait."""
        return self._asked - self._taken

    def call(self, runner: LoopRunner, work: Work[T], events: Sequence[str] = (), size: int = 1) -> T:
        """Run a call in the next transaction; answer when it is kept, or raise what it or the ledger raised.

        `size` is for how many calls it counts in the queue; one of size 0 is never refused.
        """
        answer: T = self._ask(Call(runner, work, events, size), size=size)
        return answer

    async def acall(self, runner: LoopRunner, work: Work[T], events: Sequence[str] = (), size: int = 1) -> T:
        """Run a call in the next transaction, without a thread that waits."""
        desk = self._desk()
        self._admit(size)
        call = AsyncCall(desk, runner, work, events, size)
        desk.add((call,))
        try:
            answer: T = await call.future
        except asyncio.CancelledError:
            call.leave()
            raise
        return answer

    async def acall_each(self, asked: Iterable[tuple[LoopRunner, Work[T], Sequence[str]]]) -> list[T | Exception]:
        """Run calls that have nothing to do with each other, handed over together; return answers, and errors."""
        desk = self._desk()
        calls = [AsyncCall(desk, *each, 1) for each in asked]
        self._admit(len(calls))
        desk.add(calls)
        found: list[T | Exception] = []
        try:
            for call in calls:
                try:
                    found.append(await call.future)
                except Exception as error:
                    found.append(error)
        except BaseException:
            for call in calls:
                call.leave()
            raise
        return found

    def _desk(self) -> Desk:
        loop = asyncio.get_running_loop()
        return self._desks.get(loop) or self._open_desk(loop)

    def _open_desk(self, loop: asyncio.AbstractEventLoop) -> Desk:
        with self._gate:
            self._close_desks()
            return self._desks.setdefault(loop, Desk(loop, self._deadline, self._put_calls))

    def _close_desks(self) -> None:
        """Let go of event loops that have ended, and of calls that they will not hand over any more."""
        for loop in [each for each in self._desks if each.is_closed()]:
            self._asked -= sum(call.size for call in self._desks.pop(loop).fresh)

    def do(self, work: Callable[[Transaction, Moment], T], *, deadline: float | None = -1.0) -> T:
        """Run something in a transaction of its own, within the store's deadline unless another one is given."""
        answer: T = self._ask(Task(work), deadline)
        return answer

    def maintain(self, chore: Chore[T], runner: LoopRunner | None = None, *, scrubs: bool = False) -> T:
        """Do a chore between batches, piece by piece; answer when all of it is kept.

        If a piece raises, those before it stay done. `scrubs`: what it deletes is gone from all files on return.
        """
        answer: T = self._ask(Errand(chore, runner, scrubs=scrubs), deadline=None)
        return answer

    def later(self, chore: Chore[object], runner: LoopRunner) -> None:
        """Do a chore that nobody waits for. Only the thread that writes asks for it."""
        self._upkeep.add(Errand(chore, runner, is_waited_for=False))

    def _ask(self, ticket: Ticket, deadline: float | None = -1.0, size: int = 0) -> Any:
        self._admit(size)
        self._put(ticket)
        return ticket.wait(self._deadline if deadline == -1.0 else deadline)

    def _admit(self, size: int) -> None:
        """Let so many calls be handed over, or refuse them."""
        if os.getpid() != self._pid:  # before any lock, which a fork may have copied while it was held
            raise StoreError("the store was opened before a fork, and only the parent may use it; open another one")
        self.check_caller()
        with self._gate:
            self._check_open()
            if size and self._is_full():
                self._close_desks()
                if self._is_full():
                    what = f"{self.depth:,} calls wait already; try again in a second"
                    raise QueueFullError(f"nothing of this call was kept: {what}")
            self._asked += size

    def _is_full(self) -> bool:
        return self._limit is not None and self._asked - self._taken >= self._limit

    def _put(self, ticket: Ticket) -> None:
        with self._gate:
            self._check_open()
            self._queue.put((ticket,))

    def _put_calls(self, calls: Sequence[Call]) -> None:
        with self._gate:
            self._check_open()
            for portion in _portions(calls):
                self._queue.put(portion)

    def _check_open(self) -> None:
        if self._closed is not None:
            kind = StoreFailedError if self._closed else StoreError
            raise kind(f"the store is closed{self._closed}; open it again")

    def check_caller(self) -> None:
        """Refuse the thread that writes."""
        if threading.get_ident() == self._thread.ident:  # which would wait for itself
            raise StoreError("a policy called the store that was asking it; a policy must not use its own store")

    def close(self) -> bool:
        """Answer all that is waiting, then stop; return whether it was open."""
        if os.getpid() != self._pid:
            return False
        self.check_caller()
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
        pause, enough = self._upkeep.pause, self._taken + MOST
        while self._taken < enough:
            try:
                tickets = self._queue.get(block=pause != 0.0, timeout=pause or None)
            except Empty:
                break
            if tickets is None:
                return True
            for ticket in tickets:
                self._take(ticket)
            pause = 0.0
        return False

    def _take(self, ticket: Ticket) -> None:
        if isinstance(ticket, Call):
            self._batch.append(ticket)
            self._taken += ticket.size
        elif isinstance(ticket, Errand):
            self._upkeep.add(ticket)
        else:
            self._tasks.append(ticket)

    def _serve(self) -> None:
        if self._batch:
            self._batch = [call for call in self._batch if call.claim()]
            self._try(self._batch)
            batch, self._batch = self._batch, []
            release(batch)
        while self._tasks:
            if self._tasks[0].claim():
                self._try(self._tasks[:1])
            self._tasks.pop(0).release()

    def _try(self, tickets: list[Any]) -> None:
        """Run tickets in one transaction; if it fails by what one of them writes, each in one of its own."""
        if not tickets:
            return
        started = time.perf_counter()
        try:
            self._transact(tickets)
        except BaseException as error:
            is_of_one = isinstance(error, self._ledger.refusals) and len(tickets) > 1
            self._fail([] if is_of_one else tickets, error)  # those that were refused too: nothing was kept of that
            for ticket in tickets if is_of_one else ():
                ticket.error = ticket.answer = None
                self._try([ticket])
            return
        counts = self.counts
        counts.commits, counts.calls = counts.commits + 1, counts.calls + len(tickets)
        counts.largest = max(counts.largest, len(tickets))
        counts.seconds += time.perf_counter() - started

    def _transact(self, tickets: list[Any]) -> None:
        with transaction(self._ledger) as tx:
            now = self._clock.now()
            self.budget.renew()
            events: dict[LoopRunner, list[str]] = {}
            for ticket in tickets:
                if isinstance(ticket, Call) and ticket.runner is not None:
                    events.setdefault(ticket.runner, []).extend(ticket.events)
            tx.enter([runner.want(now, names) for runner, names in events.items() if not runner.is_gone])
            if self._clock.is_alone and (heads := tx.heads):
                now = self._clock.meet(max(heads))
            refused = self._begin(tx, now, events)
            for ticket in tickets:
                if ticket.runner in refused:
                    ticket.error = refused[ticket.runner]
                else:
                    ticket.run(tx, now, self._ledger.failures, self.counts)
            for runner in events:
                if runner not in refused and (draft := tx.draft(runner.id)) is not None:
                    runner.end(draft)
            self._on_idle(tx, now)

    def _begin(self, tx: Transaction, now: Moment, runners: Iterable[LoopRunner]) -> dict[LoopRunner, BaseException]:
        """Bring loops up to date; return why some cannot be."""
        refused: dict[LoopRunner, BaseException] = {}
        for runner in runners:
            draft = tx.draft(runner.id)
            mark = None if draft is None else draft.mark()
            try:
                runner.begin(tx, now)
            except self._ledger.failures:
                raise
            except BaseException as error:
                refused[runner] = raised_in(runner, error, self.counts)
                if draft is not None and mark is not None:
                    draft.undo(mark)
        return refused

    def _fail(self, tickets: Iterable[Ticket], error: BaseException) -> None:
        self._on_failure()
        self.counts.failures += 1
        why = str(error).partition("\n")[0]  # a database tells of the values of a row further down
        log.warning("a transaction failed: %s: %s", type(error).__name__, why)
        fault = None if isinstance(error, self._ledger.failures) else raised_in(None, error, self.counts)
        kind = InternalError if isinstance(fault, InternalError) else StoreError
        for ticket in tickets:
            is_known = not isinstance(error, UncertainError)
            ticket.error = kind(f"{ticket.left}: {error}") if is_known else UncertainError(str(error))
            ticket.error.__cause__ = error

    def _give_up(self, error: BaseException) -> None:
        with self._gate:
            self._closed = f", since its thread has ended: {error!r}"
        left: list[Ticket] = [*self._batch, *self._tasks, *self._upkeep.leave()]
        while not self._queue.empty():
            left.extend(self._queue.get() or ())
        self._batch, self._tasks = [], []
        self._fail(left, error)
        release(left)


def _portions(calls: Sequence[Call]) -> Iterator[list[Call]]:
    """Divide calls into what fits into a batch."""
    portion: list[Call] = []
    room = MOST
    for call in calls:
        portion.append(call)
        room -= call.size
        if room <= 0:
            yield portion
            portion, room = [], MOST
    if portion:
        yield portion


_RUNNING: weakref.WeakSet[Writer] = weakref.WeakSet()  # those whose thread has not ended keep themselves alive


@atexit.register
def stop_all() -> None:
    """End the threads of stores that nobody closed, before the interpreter goes: it cannot free what a thread holds."""
    for writer in list(_RUNNING):
        if writer._pid == os.getpid():
            writer.stop(now=True)
