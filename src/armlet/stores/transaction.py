"""Transactions: calls that wait for a store's thread, and what they change, gathered in memory and written at once.

A call that is refused is undone in its draft, by itself, and costs the database nothing. What is read in the midst of a
transaction comes from the ledger and is then overlaid with what was gathered.

A call waits as a ticket. A thread waits for its answer. The calls of an event loop wait at its desk: those of one turn
are handed over together, answers come by one callback a batch, and one timer serves all deadlines.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from armlet.errors import ArmletError, InternalError, StoreError, UncertainError, trace_of
from armlet.kernel import Decision
from armlet.stores.ledger import Early, Entered, Head, Ledger, Moment, Pending, Row, Session, Want
from armlet.types import Arm

if TYPE_CHECKING:
    from armlet.stores.runner import LoopRunner

T = TypeVar("T")

log = logging.getLogger("armlet.store")

_Table: TypeAlias = dict[int, Pending]
_new = tuple.__new__  # quicker than the call of a class
Mark: TypeAlias = tuple[int, int, int, int, int, int, int, int]
"""How much a draft had before a call."""


class Draft:
    """The changes of one loop; `entered` is how it was when it was locked."""

    __slots__ = (
        "_undo",
        "arrived",
        "changed",
        "clock",
        "early",
        "entered",
        "loop",
        "new",
        "rows",
        "seq",
        "snapshot",
        "steady",
        "tally",
        "ts",
    )

    def __init__(self, loop: int, entered: Entered) -> None:
        self.loop, self.entered = loop, entered
        self.begin(entered.head)

    def begin(self, head: Head) -> None:
        """Gather from here on."""
        self.clock, self.seq, self.ts, self.steady = head.clock, head.seq, head.ts, head.steady
        self.rows: list[Row] = []
        self.new: _Table = {}  # by step; there was no outcome before
        self.changed: _Table = {}
        self.early: list[Early] = []
        self.arrived: list[tuple[str, int]] = []  # events whose early rewards go, and how many these are
        self.snapshot: tuple[int, bytes] | None = None  # the last row that a model has learned, and the model
        self.tally: str | None = None  # JSON, if it is another one: of all rows up to the last
        self._undo: list[tuple[_Table, int, Pending | None]] = []

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write."""
        changes = self.rows or self.new or self.changed or self.early or self.arrived or self.snapshot
        return not changes and self.tally is None

    @property
    def head(self) -> Head:
        """How far the loop will have come."""
        was = self.entered.head
        return Head(
            clock=self.clock,
            seq=self.seq,
            ts=self.ts,
            steady=self.steady,
            epoch=was.epoch,
            outcomes=was.outcomes + len(self.new),
            early=was.early + len(self.early) - sum(n for _, n in self.arrived),
            tallied=was.tallied if self.tally is None else self.seq,
        )

    def append(self, now: Moment, kind: str, t: int | None, fields: Mapping[str, Any], x: bytes | None = None) -> int:
        """Add a row and return its number; a decision takes the next step of the clock."""
        if kind == "decide":
            if t != self.clock + 1:
                raise AssertionError(f"step {t} is decided, but the clock stands at {self.clock}")
            self.clock = t
        self.seq = seq = self.seq + 1
        self.ts, steady = now
        if steady > self.steady:  # that of a replica may be ahead
            self.steady = steady
        self.rows.append(_new(Row, (seq, self.ts, kind, t, fields, x)))
        return seq

    def insert(self, pending: Pending) -> None:
        """Add the outcome of a decision that has none."""
        self._undo.append((self.new, pending.t, None))
        self.new[pending.t] = pending

    def change(self, pending: Pending) -> None:
        """Put an outcome in the place of the one before."""
        t = pending.t
        table = self.new if t in self.new else self.changed
        self._undo.append((table, t, table.get(t)))
        table[t] = pending

    def mark(self) -> Mark:
        """Remember how things are, before a call."""
        ends = len(self.rows), len(self.early), len(self.arrived), len(self._undo)
        return (self.clock, self.seq, self.ts, self.steady, *ends)

    def undo(self, mark: Mark) -> None:
        """Go back to where things were."""
        self.clock, self.seq, self.ts, self.steady, rows, early, arrived, undo = mark
        del self.rows[rows:], self.early[early:], self.arrived[arrived:]
        while len(self._undo) > undo:
            table, t, before = self._undo.pop()
            if before is None:
                del table[t]
            else:
                table[t] = before


class Transaction:
    """A session of a ledger and the drafts of the loops that it has entered."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._drafts: dict[int, Draft] = {}

    def enter(self, wants: Sequence[Want]) -> None:
        """Lock loops and read what is wanted of them; those that are entered already are left as they are."""
        fresh = sorted(want for want in wants if want.loop not in self._drafts)
        for want, entered in zip(fresh, self.session.enter(fresh) if fresh else (), strict=True):
            if entered is not None:
                self._drafts[want.loop] = Draft(want.loop, entered)

    def draft(self, loop: int) -> Draft | None:
        """Return the draft of a loop that was entered; None if there is no such loop."""
        return self._drafts.get(loop)

    @property
    def heads(self) -> list[int]:
        """The steady times of the newest rows of loops that have some."""
        return [draft.steady for draft in self._drafts.values() if draft.seq]

    def flush(self) -> None:
        """Write what was gathered; there may be more later."""
        drafts = [draft for draft in self._drafts.values() if not draft.is_empty]
        if drafts:
            self.session.write(drafts)
            self._begin_again(drafts)

    def _begin_again(self, drafts: Sequence[Draft]) -> None:
        for draft in drafts:
            draft.entered = draft.entered._replace(head=draft.head, rows=(), decided=(), due=())
            draft.begin(draft.entered.head)

    def direct(self, loop: int) -> Session:
        """Write what was gathered and give the session for maintenance of a loop, which is to be entered anew then."""
        self.flush()
        self._drafts.pop(loop, None)
        return self.session

    @contextmanager
    def savepoint(self) -> Iterator[Session]:
        """Give the session for maintenance, undone by itself if anything is raised.

        All that is in drafts is written before and at the end; the loops are to be entered anew after it.
        """
        self.flush()
        try:
            with self.session.savepoint():
                yield self.session
                self.flush()
        finally:
            self._drafts.clear()


@contextmanager
def transaction(ledger: Ledger) -> Iterator[Transaction]:
    """Open a transaction of a ledger; what it gathers is written when it ends well."""
    with ledger.session() as session:
        tx = Transaction(session)
        yield tx
        tx.flush()


class Recent:
    """A decision in memory, its row, and what is known of its reward."""

    __slots__ = ("decision", "pending", "row")

    def __init__(self, decision: Decision, pending: Pending, row: Row) -> None:
        self.decision, self.pending, self.row = decision, pending, row

    @property
    def arm(self) -> Arm:
        """The arm that was played."""
        return self.decision.arm if self.pending.played is None else self.pending.played


# ---- calls that wait

SOON = 0.001  # seconds that a timer may be early
FAULTS = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, AssertionError, RuntimeError)

Work: TypeAlias = Callable[[Transaction, Draft, Moment], T]
"""What a call does in a transaction."""

Chore: TypeAlias = Generator[None, tuple[Transaction, Moment], T]
"""Maintenance in pieces of about a millisecond each: after `tx, now = yield` the transaction may be another one, and
other calls may have been served in between."""


class ContextChangedError(Exception):
    """A context was read for other features than the loop has now; it is read again."""


class Counts:
    """What the writer has done since it began; only its thread writes."""

    __slots__ = ("calls", "commits", "failures", "faults", "largest", "seconds")

    def __init__(self) -> None:
        self.commits = self.calls = self.failures = self.faults = self.largest = 0  # `largest`: calls in a batch
        self.seconds = 0.0  # from the begin of a batch until its answers


def raised_in(runner: LoopRunner | None, error: BaseException, counts: Counts) -> BaseException:
    """Return what a caller gets of an error inside a transaction: a refusal as it is, and else a fault.

    Arguments were read before, so an error of Python is a fault of Armlet's; those of a user's own policy are his own.
    """
    is_refusal = isinstance(error, ArmletError | ContextChangedError) and not _is_of_a_fault(error)
    if is_refusal or isinstance(error, MemoryError) or not isinstance(error, Exception):
        return error
    if runner is not None and runner.policy is not None:
        return error
    counts.faults += 1
    whose = "a call" if runner is None else f"loop {runner.name}: a call"
    first = _first(error)
    log.error("%s failed and was rolled back: %s at %s", whose, type(first).__name__, trace_of(first))
    if isinstance(error, InternalError):
        return error
    kind, text = type(error).__name__, "nothing of this call was kept: a fault inside the store"
    fault = InternalError(f"{text}, {kind}: {error}; please report it with its traceback")
    fault.__cause__ = error
    return fault


def _is_of_a_fault(error: BaseException) -> bool:
    """Whether an error of Armlet's own was made of one of Python's, such as that a file or a row cannot be read."""
    first = _first(error)
    return isinstance(error, InternalError) or (isinstance(first, FAULTS) and not isinstance(first, ArmletError))


def _first(error: BaseException) -> BaseException:
    """Return the error that others were raised from."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


class Ticket:
    """A call that waits for its answer; `runner` is of the loop that it is about, if there is one."""

    __slots__ = ("_claim", "_done", "answer", "error", "runner")

    def __init__(self, runner: LoopRunner | None = None) -> None:
        self.runner = runner
        self.answer: Any = None
        self.error: BaseException | None = None
        self._claim = [True]  # whoever takes it out has it: the writer that begins, or a caller who gives up
        self._done = threading.Lock()
        self._done.acquire()

    def run(self, tx: Transaction, now: Moment, failures: tuple[type[Exception], ...], counts: Counts) -> None:
        """Do it, or undo it if anything is raised; only a failure of the ledger is raised here."""
        try:
            with tx.savepoint():
                self.answer = self._work(tx, now)
        except failures:
            raise
        except BaseException as error:
            self.error = raised_in(self.runner, error, counts)

    def _work(self, tx: Transaction, now: Moment) -> Any:
        raise NotImplementedError

    @property
    def left(self) -> str:
        """What is left of a call whose transaction has failed."""
        return "nothing of this call was kept"

    def claim(self) -> bool:
        """Return whether this is the first claim: it is not begun yet, and its caller still waits."""
        try:
            return self._claim.pop()
        except IndexError:
            return False

    def give_up(self, deadline: float | None) -> StoreError:
        """Return what to raise when there is no answer in time."""
        if self.claim():
            return StoreError(f"nothing of this call was kept: it was not begun within {deadline:g} seconds")
        return UncertainError(f"it is not known whether this call was kept: no answer within {deadline:g} seconds")

    def wait(self, deadline: float | None) -> Any:
        """Wait for the answer, in the thread that asked, so many seconds at most."""
        if not self._done.acquire(timeout=-1 if deadline is None else deadline):
            raise self.give_up(deadline)
        if self.error is not None:
            raise self.error
        return self.answer

    def release(self) -> None:
        """Let the caller go on."""
        self._done.release()


class Call(Ticket):
    """A decision or a reward: one of many in a transaction, undone in its draft if it is refused."""

    __slots__ = ("events", "size", "work")

    def __init__(self, runner: LoopRunner, work: Work[Any], events: Sequence[str], size: int = 1) -> None:
        super().__init__(runner)
        self.work, self.events, self.size = work, events, size

    def run(self, tx: Transaction, now: Moment, failures: tuple[type[Exception], ...], counts: Counts) -> None:
        """Do it, or undo it if anything is raised; only a failure of the ledger is raised here."""
        runner = self.runner
        draft = None if runner is None else tx.draft(runner.id)
        if runner is None or draft is None:
            return
        if draft.early:
            tx.flush()  # so that a decision finds them
        mark = draft.mark()
        try:
            runner.wake(tx, draft)
            self.answer = self.work(tx, draft, now)
        except failures:
            raise
        except BaseException as error:  # of a policy, which may raise anything: only its caller gets it
            draft.undo(mark)
            self.error = raised_in(runner, error, counts)
            runner.undo(tx, draft, error)


class AsyncCall(Call):
    """A call of an event loop, which gets all answers of a batch at once."""

    __slots__ = ("desk", "future", "until")

    def __init__(self, desk: Desk, runner: LoopRunner, work: Work[Any], events: Sequence[str], size: int) -> None:
        self.runner, self.work, self.events, self.size = runner, work, events, size
        self.answer = self.error = None
        self._claim = [True]  # but no lock, since no thread waits
        self.desk, self.until = desk, 0.0
        self.future: asyncio.Future[Any] = desk.loop.create_future()

    def settle(self) -> None:
        """Answer, in the thread of the event loop."""
        if self.future.done():  # its caller no longer waits
            return
        if isinstance(self.error, StopIteration):  # which no future takes
            self.future.set_exception(RuntimeError(f"a policy raised {self.error!r}"))
        elif self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.answer)

    def release(self) -> None:
        """Let the caller go on, by itself."""
        release([self])

    def leave(self) -> None:
        """Leave it undone if it was not begun, since its caller no longer waits."""
        self.claim()
        self.future.cancel()


class Desk:
    """Where the calls of one event loop wait; only its thread comes here.

    Those of one turn of the event loop are handed over together. They wait in the order of their deadlines, since all
    are given the same time: one timer, for the first of them, is enough, and a call that is answered in time never sets
    one.
    """

    __slots__ = ("_deadline", "_hand_over", "_timer", "_waiting", "fresh", "loop")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        deadline: float | None,
        hand_over: Callable[[Sequence[AsyncCall]], None],
    ) -> None:
        self.loop, self._deadline, self._hand_over = loop, deadline, hand_over
        self.fresh: list[AsyncCall] = []  # not handed over yet
        self._waiting: deque[AsyncCall] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, calls: Iterable[AsyncCall]) -> None:
        """Take calls, to be handed over at the end of this turn."""
        if not self.fresh:
            self.loop.call_soon(self._flush)
        self.fresh.extend(calls)

    def _flush(self) -> None:
        calls, self.fresh = self.fresh, []
        try:
            self._hand_over(calls)
        except StoreError as error:  # it was closed meanwhile
            for call in calls:
                call.error = error
            self.settle(calls)
            return
        if self._deadline is not None:
            self._watch(calls, self.loop.time() + self._deadline)

    def _watch(self, calls: Sequence[AsyncCall], until: float) -> None:
        for call in calls:
            call.until = until
        self._waiting.extend(calls)
        if self._timer is None:
            self._timer = self.loop.call_at(until, self._sweep)

    def settle(self, calls: Sequence[AsyncCall]) -> None:
        """Answer calls, and let go of them."""
        for call in calls:
            call.settle()
        self._trim()

    def _trim(self) -> None:
        waiting = self._waiting
        while waiting and waiting[0].future.done():
            waiting.popleft()

    def _sweep(self) -> None:
        """Give up the calls whose time is over, and come back for the next one."""
        now, waiting = self.loop.time(), self._waiting
        self._timer = None
        self._trim()
        while waiting and waiting[0].until <= now + SOON:
            call = waiting.popleft()
            call.future.set_exception(call.give_up(self._deadline))
            self._trim()
        if waiting:
            self._timer = self.loop.call_at(waiting[0].until, self._sweep)


def release(tickets: Iterable[Ticket]) -> None:
    """Let callers go on: threads one by one, those of an event loop together."""
    desks: dict[Desk, list[AsyncCall]] = {}
    for ticket in tickets:
        if isinstance(ticket, AsyncCall):
            desks.setdefault(ticket.desk, []).append(ticket)
        else:
            ticket.release()
    for desk, calls in desks.items():
        with suppress(RuntimeError):  # of a loop that was closed meanwhile
            desk.loop.call_soon_threadsafe(desk.settle, calls)


class Task(Ticket):
    """A change of a loop that is made in a transaction of its own."""

    __slots__ = ("work",)

    def __init__(self, work: Callable[[Transaction, Moment], Any], runner: LoopRunner | None = None) -> None:
        super().__init__(runner)
        self.work = work

    def _work(self, tx: Transaction, now: Moment) -> Any:
        return self.work(tx, now)


class Errand(Ticket):
    """Maintenance: run again and again, in several transactions, until it is done."""

    __slots__ = ("_chore", "_is_chore_begun", "is_done", "is_partly_kept", "is_waited_for", "scrubs", "stuck_since")

    def __init__(
        self,
        chore: Chore[Any],
        runner: LoopRunner | None = None,
        *,
        scrubs: bool = False,
        is_waited_for: bool = True,
    ) -> None:
        super().__init__(runner)
        self._chore, self.scrubs, self.is_waited_for = chore, scrubs, is_waited_for
        self._is_chore_begun = self.is_done = self.is_partly_kept = False
        self.stuck_since: float | None = None

    def _work(self, tx: Transaction, now: Moment) -> Any:
        try:
            if not self._is_chore_begun:
                self._is_chore_begun = True
                next(self._chore)
            self._chore.send((tx, now))
        except StopIteration as end:
            self.is_done = True
            return end.value

    @property
    def left(self) -> str:
        """What is left of it when one of its transactions has failed."""
        return (
            "this was broken off, and what was done before stays done; ask again"
            if self.is_partly_kept
            else super().left
        )

    def release(self) -> None:
        """Let the caller go on; what is not done is broken off."""
        self._chore.close()
        super().release()
