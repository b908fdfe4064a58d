"""What a store is, as a contract: rows in order, outcomes, heads and snapshots, written in transactions.

A ledger keeps rows and knows nothing of bandits. Its transaction is a `Session`, which reads at any time and is given
all that changed in loops at once, as `Draft`s: a bounded number of statements for any number of calls. A loop that a
session has entered is locked until the session ends, regardless of other writers, so that what was read is what will
be overwritten. `armlet.testing.check_store` is the contract as checks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, TypeAlias

from armlet.types import Arm

if TYPE_CHECKING:
    from armlet.stores.transaction import Draft

Phase: TypeAlias = Literal["open", "deferred", "expired", "default", "learned"]
"""What was learned of a decision: nothing yet, nothing before it is activated, nothing that is waited for, the default
of its window, or a reward."""

PartPhase: TypeAlias = Literal["held", "default", "learned", "billed"]
"""What the bandit was given of a part: nothing yet, the default of its window, what was reported, or a bill alone."""

REWARD: Final = "reward"
"""The name of the only part of a reward that is a number."""

_PART_PHASES: Final[Mapping[Phase, PartPhase]] = {
    "open": "held",
    "deferred": "held",
    "expired": "held",
    "default": "default",
    "learned": "learned",
}
_new = tuple.__new__  # quicker than the call of a class


class Moment(NamedTuple):
    """One moment by both clocks, in microseconds."""

    wall: int  # since 1970, as the wall clock says
    steady: int  # since 1970 or so; never less than before


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopRecord:
    """A loop in a ledger: its name, its rules, and the model that its rows go on from."""

    id: int
    name: str
    about: str  # JSON
    start: bytes  # a model, with its seed
    base: int = 0  # the number of the last row that `start` has learned


class Head(NamedTuple):
    """How far a loop has come: read when it is locked, written when its transaction ends."""

    clock: int = 0  # the last step that was decided
    seq: int = 0  # the last row that was written, even if it was deleted
    ts: int = 0  # when, by the wall clock
    steady: int = 0  # when, in steady time
    epoch: int = 0  # counted up by what changes the loop without a row: then nobody's memory of it is right
    outcomes: int = 0  # how many there are
    early: int = 0  # rewards that wait for their decision
    tallied: int = 0  # the last row that the tally has counted


class Row(NamedTuple):
    """Something that changed a loop; numbered 1, 2, ... in the order in which its bandit did it."""

    seq: int
    ts: int  # microseconds since 1970, as the wall clock said
    kind: str
    t: int | None  # the step of the decision that it is about
    fields: Mapping[str, Any]  # plain JSON types
    x: bytes | None = None  # float64, little-endian


class Part(NamedTuple):
    """What is known of one part of a reward: of one of several outcomes, such as cost."""

    value: float  # reported so far, or the default
    phase: PartPhase
    rank: int = 0  # of what was reported so far
    names: tuple[str, ...] = ()  # of the rewards that counted, as far as they have any
    billed: float | None = None  # what counts in the budget, if that is not the value


class Pending(NamedTuple):
    """What is known of a decision's reward: a number, `value`, or several parts of one, `parts`; see `each`."""

    t: int
    event: str
    seq: int  # of its row
    phase: Phase
    value: float | None = None  # reported so far, or learned
    due: int | None = None  # when its window closes, if it is open; steady time
    rank: int = 0  # of what was reported so far
    names: tuple[str, ...] = ()  # of the rewards that counted, as far as they have any
    played: Arm | None = None  # instead of the arm that was decided
    parts: Mapping[str, Part] | None = None  # by outcome, those that there are; None if there is none, or a number

    @property
    def each(self) -> Mapping[str, Part]:
        """What is known of each part, by name; a number is the part `REWARD`."""
        if self.parts is not None:
            return self.parts
        if self.value is None:
            return {}
        return {REWARD: _new(Part, (self.value, _PART_PHASES[self.phase], self.rank, self.names, None))}

    @property
    def is_open(self) -> bool:
        """Whether rewards wait: for the end of a window, or for a decision that is deferred."""
        return self.due is not None or self.phase == "deferred"

    def having(self, each: Mapping[str, Part], phase: Phase, due: int | None, *, is_number: bool) -> Pending:
        """Return it with other parts, in another phase."""
        t, event, seq, _, _, _, _, _, played, _ = self
        if is_number and each:
            value, _, rank, names, _ = each[REWARD]
            return _new(Pending, (t, event, seq, phase, value, due, rank, names, played, None))
        return _new(Pending, (t, event, seq, phase, None, due, 0, (), played, each or None))

    @property
    def reward(self) -> float | dict[str, float] | None:
        """What was reported so far, or learned: a value, or the values of parts."""
        return self.value if self.parts is None else {name: part.value for name, part in self.parts.items()}

    @property
    def given(self) -> dict[str, float]:
        """The parts that the bandit has, by name: their values."""
        return {name: part.value for name, part in self.each.items() if part.phase in ("default", "learned")}

    @property
    def billed(self) -> float | None:
        """What counts as its cost in the budget, if that is not the cost that was learned."""
        return next((part.billed for part in (self.parts or {}).values() if part.billed is not None), None)


class Decided(NamedTuple):
    """What is known of a decision's reward, and the row of the decision."""

    pending: Pending
    row: Row


class Early(NamedTuple):
    """A reward that came before its decision."""

    event: str
    until: int  # when it is dropped; steady time
    fields: Mapping[str, Any]  # the reward, in plain JSON types


class Want(NamedTuple):
    """What to read of a loop when it is locked."""

    loop: int
    after: int | None = None  # rows with higher numbers, written by others; None for none at all
    events: Sequence[str] = ()  # whose outcomes are asked for
    due: int | None = None  # outcomes whose window has closed by then, in steady time
    most: int = 0  # of these


class Entered(NamedTuple):
    """A loop as it was when it was locked."""

    head: Head
    rows: Sequence[Row] = ()
    decided: Sequence[Decided] = ()  # in any order; events that are not there are left out
    due: Sequence[Decided] = ()  # the first ones first


@dataclass(frozen=True, slots=True)
class Pruned:
    """The result of pruning some of the old decisions."""

    n: int  # deleted
    after: int | None  # the last step that was looked at, to go on from; None if it was the last of all
    open: tuple[Decided, ...] = ()  # would have been deleted, but for a reward that is waited for


class Session(Protocol):
    """A transaction. Nobody else can change a loop that it has entered before it ends."""

    def enter(self, wants: Sequence[Want]) -> Sequence[Entered | None]:
        """Lock loops, in ascending order, and read what is wanted of each; None for a loop that is not there.

        A session enters loops in ascending order too, those of several calls included, or it may wait for another one
        that waits for it.
        """

    def write(self, drafts: Sequence[Draft]) -> None:
        """Write what has changed in loops that it has entered."""

    def savepoint(self) -> AbstractContextManager[None]:
        """Undo what is done inside, and only that, if anything is raised there; the transaction goes on."""

    # ---- reading what is written

    def find(self, name: str) -> LoopRecord | None:
        """Find a loop by its name."""

    def decided(self, loop: int, events: Sequence[str]) -> Sequence[Decided]:
        """Look events up; those that are not there are left out."""

    def due(self, loop: int, now: int, most: int) -> Sequence[Decided]:
        """Return open outcomes whose window has closed by now, in steady time, the first ones first."""

    def early(self, loop: int, event: str) -> Sequence[Early]:
        """Return the rewards that wait for a decision, the first ones first."""

    def row(self, loop: int, seq: int) -> Row | None:
        """Read one row."""

    def pick(self, loop: int, seqs: Sequence[int]) -> Sequence[Row]:
        """Read rows by their numbers, in any order; those that are not there are left out."""

    def heard(self, loop: int, t: int) -> Sequence[Row]:
        """Read all rows about a decision but its own, in order."""

    def rows(self, loop: int, after: int) -> Iterator[Row]:
        """Read all rows with higher numbers, in order and in bounded memory."""

    def snapshot(self, loop: int) -> tuple[int, bytes] | None:
        """Return the newest snapshot and the number of the last row that it has learned."""

    def tally(self, loop: int) -> str | None:
        """Return the tally of a loop, if there is one; `Head.tallied` is the last row that it has counted."""

    # ---- maintenance, written at once

    def create(self, name: str, about: str, start: bytes, clock: int) -> LoopRecord:
        """Write a new loop, whose next step is the one after `clock`; the session has entered it."""

    def describe(self, loop: int, about: str) -> None:
        """Write other rules of a loop, and count up its epoch."""

    def rebase(self, loop: int, seq: int, model: bytes) -> None:
        """Let the rows after this one go on from another model, so that those before it are no longer needed.

        Its epoch is counted up, and its snapshot deleted.
        """

    def erase(self, loop: int, t: int) -> None:
        """Delete all about a decision but its own row, which stays without its context and event."""

    def drop_early(self, loop: int, until: int, most: int) -> int:
        """Delete some of the early rewards that have waited until then; return how many."""

    def prune(self, loop: int, before: int, after: int, most: int) -> Pruned:
        """Look at the next decisions after a step; delete all about those that are older and did not explore.

        Rows of explored decisions stay, of decisions whose window is open, and of those that rows after the loop's base
        are about, since these could not be played again without them. Those whose outcome is "open" stay as well, and
        are returned: once they are expired, and the base is later, they can go.
        """

    def drop_rows(self, loop: int, seqs: Sequence[int]) -> None:
        """Delete rows by their numbers: none after the loop's base, and none of a decision."""

    def delete(self, loop: int, most: int) -> bool:
        """Delete some of a loop's rows, or itself once there are none; return whether there is more."""

    def shrink(self, most: int) -> bool:
        """Return so many free pages, or what a ledger has instead, to the system; return whether there are more."""


class Usage(NamedTuple):
    """What there is of a loop, counted in the tables."""

    rows: int
    outcomes: int
    early: int
    snapshots: int  # 0 or 1
    bytes: int  # of rows: their fields and contexts


class OutcomeRecord(NamedTuple):
    """An outcome, the row of its decision, and the last row that says something about that."""

    pending: Pending
    row: Row
    last: Row | None


class View(Protocol):
    """A ledger as it is at one moment, to be read while others write."""

    def check(self) -> None:
        """Refuse a ledger whose tables or indexes are damaged, or disagree with each other."""

    def loops(self) -> Sequence[LoopRecord]:
        """Return all loops, the oldest first."""

    def head(self, loop: int) -> Head | None:
        """Read how far a loop has come."""

    def row(self, loop: int, seq: int) -> Row | None:
        """Read one row."""

    def rows(self, loop: int, after: int) -> Iterator[Row]:
        """Read all rows with higher numbers, in order and in bounded memory."""

    def outcomes(self, loop: int) -> Iterator[OutcomeRecord]:
        """Read all outcomes, in the order of their steps and in bounded memory."""

    def snapshot(self, loop: int) -> tuple[int, bytes] | None:
        """Return the newest snapshot and the number of the last row that it has learned; None if it is damaged."""

    def tally(self, loop: int) -> str | None:
        """Return the tally of a loop, if there is one; `Head.tallied` is the last row that it has counted."""

    def usage(self, loop: int) -> Usage:
        """Count what there is of a loop; reads all of it."""


class LedgerReader(Protocol):
    """What can be read of a ledger, by any thread or process, while others write."""

    def view(self) -> AbstractContextManager[View]:
        """Look at it as it is at one moment. Nobody waits for that, but what is deleted meanwhile takes its space."""

    def newest(self) -> Moment | None:
        """Return the moment of the newest row, None if there is none."""

    def loops(self) -> Sequence[LoopRecord]:
        """Return all loops, the oldest first."""

    def head(self, loop: int) -> Head | None:
        """Read how far a loop has come, without a lock."""

    def rows(self, loop: int, after: int = 0) -> Iterator[Row]:
        """Read committed rows, in order and in bounded memory, while others write."""

    def decided(self, loop: int, t: int) -> Row | None:
        """Read the committed row of a decision, by its step."""

    def size(self) -> int:
        """Return the bytes that everything takes on disk; 0 if it has none."""

    def backup(self, path: Path) -> None:
        """Copy everything into a new file, as it is at one moment, while others write."""

    def close(self) -> None:
        """Close it; the next one who opens it finds all that was written."""


class Ledger(LedgerReader, Protocol):
    """Where loops are kept."""

    failures: tuple[type[Exception], ...]
    """What its methods raise when they fail; anything else raised inside a session is not the ledger's."""

    refusals: tuple[type[Exception], ...]
    """Those failures that one call can cause by what it writes, and others cannot."""

    is_shared: bool
    """Whether other processes may write in it too."""

    def session(self) -> AbstractContextManager[Session]:
        """Open a transaction: durable when it ends well, gone without a trace if anything is raised.

        Where the end of it is not known, since the answer was lost, an UncertainError is raised.
        """

    def scrub(self) -> bool:
        """Leave nothing of what was erased or pruned in any file, between transactions, in the thread that writes.

        False if somebody who reads was in the way; it is tried again then.
        """
