"""What waits for the thread that writes: calls, and maintenance that is done in pieces."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from typing import Any, Protocol, TypeAlias, TypeVar

from armlet.stores.clock import Moment
from armlet.stores.ledger import Pen

T = TypeVar("T")

Chore: TypeAlias = Generator[None, tuple[Pen, Moment], T]
"""Maintenance in pieces of about a millisecond each: after `pen, now = yield` the pen may be that of another
transaction, and other calls may have been served in between."""


class Preparation(Protocol):
    """What to bring up to date before a call; it stays done if the call is then refused."""

    def is_ready(self, now: Moment) -> bool:
        """Tell whether nothing is to be done."""

    def ready(self, pen: Pen, now: Moment) -> object:
        """Do it."""


class Ticket:
    """A call that waits for its answer."""

    __slots__ = ("_done", "answer", "error", "first", "work")

    def __init__(self, work: Callable[[Pen, Moment], Any], first: Preparation | None = None) -> None:
        self.work, self.first = work, first
        self.answer: Any = None
        self.error: BaseException | None = None
        self._done = threading.Lock()
        self._done.acquire()

    def run(self, pen: Pen, now: Moment, failures: tuple[type[Exception], ...]) -> None:
        """Do it, and keep nothing of it if anything is raised; only a failure of the ledger is raised here."""
        try:
            if self.first is not None and not self.first.is_ready(now):
                with pen.savepoint():
                    self.first.ready(pen, now)
            with pen.savepoint():
                self.answer = self.work(pen, now)
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

    def _piece(self, pen: Pen, now: Moment) -> Any:
        try:
            if not self._is_begun:
                self._is_begun = True
                next(self._chore)
            self._chore.send((pen, now))
        except StopIteration as end:
            self.is_done = True
            return end.value

    def release(self) -> None:
        """Let the caller go on; what is not done is broken off."""
        self._chore.close()
        super().release()
