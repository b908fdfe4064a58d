"""The changes of a transaction, gathered in memory and written at its end, all of them at once.

A call that is refused is undone here, by itself, and costs the database nothing. What is read in the midst of a
transaction comes from the ledger and is then overlaid with what was gathered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from armlet.stores.ledger import Early, Entered, Head, Ledger, Moment, Pending, Row, Session, Want

_Table: TypeAlias = dict[int, Pending]
_new = tuple.__new__  # quicker than the call of a class
Mark: TypeAlias = tuple[int, int, int, int, int, int, int, int]
"""How much a draft had before a call."""


class Draft:
    """The changes of one loop; `found` is how it was when it was locked."""

    __slots__ = (
        "_undo",
        "arrived",
        "changed",
        "clock",
        "early",
        "found",
        "loop",
        "new",
        "rows",
        "seq",
        "snapshot",
        "steady",
        "tally",
        "ts",
    )

    def __init__(self, loop: int, found: Entered) -> None:
        self.loop, self.found = loop, found
        self.begin(found.head)

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
        was = self.found.head
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
        for want, found in zip(fresh, self.session.enter(fresh) if fresh else (), strict=True):
            if found is not None:
                self._drafts[want.loop] = Draft(want.loop, found)

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
            draft.found = draft.found._replace(head=draft.head, rows=(), decided=(), due=())
            draft.begin(draft.found.head)

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
