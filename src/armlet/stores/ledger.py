"""What a store is, as a contract: rows in order, outcomes, clocks by lease, snapshots, all in transactions.

A ledger keeps rows and knows nothing of bandits. It is written in one `Transaction` at a time, and what that reads is
what it will overwrite: an event is looked up, a reward judged and a step of the clock leased in the same transaction
that writes the row, regardless of other writers. `armlet.testing.check_store` is the contract as checks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

Phase: TypeAlias = Literal["open", "expired", "default", "learned"]
"""What was learned of a decision: nothing yet, nothing that is waited for, the default of its window, or a reward."""


class Moment(NamedTuple):
    """One moment by both clocks, in microseconds."""

    wall: int  # since 1970, as the wall clock says
    steady: int  # since 1970 or so; never less than before


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopRecord:
    """A loop in a ledger: its name, what it was made with, and the model that its rows go on from."""

    id: int
    name: str
    about: str  # JSON
    start: bytes  # a model, with its seed
    base: int = 0  # the number of the last row that `start` has learned


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Something that changed a loop; numbered 1, 2, ... in the order in which its bandit did it."""

    seq: int
    ts: int  # microseconds since 1970, as the wall clock said
    kind: str
    t: int | None  # the step of the decision that it is about
    fields: Mapping[str, Any]  # plain JSON types
    x: bytes | None = None  # float64, little-endian


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What is known of a decision's reward."""

    t: int
    event: str
    seq: int  # of its row
    phase: Phase
    value: float | None = None  # reported so far, or learned
    due: int | None = None  # when its window closes, if it is open; steady time
    rank: int = 0  # of what was reported so far
    names: tuple[str, ...] = ()  # of the rewards that counted, as far as they have any


@dataclass(frozen=True, slots=True)
class Pruned:
    """The result of pruning some of the old decisions."""

    n: int  # deleted
    after: int | None  # the last step that was looked at, to go on from; None if it was the last of all
    open: tuple[Outcome, ...] = ()  # would have been deleted, but for a reward that is waited for


class Transaction(Protocol):
    """A transaction. Nobody else can change what it reads before it ends."""

    def savepoint(self) -> AbstractContextManager[None]:
        """Undo what is done inside, and only that, if anything is raised there; the transaction goes on."""

    def create(self, name: str, about: str, start: bytes) -> LoopRecord:
        """Write a new loop."""

    def find(self, name: str) -> LoopRecord | None:
        """Find a loop by its name."""

    def lease(self, loop: int, steps: int) -> int:
        """Take the next steps of a loop's clock and return the first; nobody else gets them.

        What was leased and not written is lost, or, where only one process can write, leased again after a restart.
        """

    def append(
        self, loop: int, now: Moment, kind: str, t: int | None, fields: Mapping[str, Any], x: bytes | None
    ) -> int:
        """Write a row and return its number."""

    def last(self, loop: int) -> int:
        """Return the number of the last row that was written, even if it was deleted; 0 if there is none."""

    def row(self, loop: int, seq: int) -> Row | None:
        """Read one row."""

    def rows(self, loop: int, after: int) -> Iterator[Row]:
        """Read all rows with higher numbers, in order."""

    def put(self, loop: int, outcome: Outcome) -> None:
        """Write the outcome of a decision, instead of the one before."""

    def outcome(self, loop: int, event: str) -> Outcome | None:
        """Look an event up."""

    def at(self, loop: int, t: int) -> Outcome | None:
        """Look a step up."""

    def due(self, loop: int, now: int, most: int) -> Sequence[Outcome]:
        """Return open outcomes whose window has closed by now, in steady time, the first ones first."""

    def snapshot(self, loop: int) -> tuple[int, bytes] | None:
        """Return the newest snapshot and the number of the last row that it has learned."""

    def keep(self, loop: int, seq: int, model: bytes) -> None:
        """Write a snapshot instead of the one before."""

    def rebase(self, loop: int, seq: int, model: bytes) -> None:
        """Let the rows after this one go on from another model, so that those before it are no longer needed."""

    def erase(self, loop: int, t: int) -> None:
        """Delete all about a decision but its own row, which stays without its context and event."""

    def prune(self, loop: int, before: int, after: int, most: int) -> Pruned:
        """Look at the next decisions after a step; delete all about those that are older and did not explore.

        Rows of explored decisions stay, of decisions whose window is open, and of those that rows after the loop's base
        are about, since these could not be played again without them. Those whose outcome is "open" stay as well, and
        are returned: once they are expired, and the base is later, they can go.
        """

    def shrink(self, most: int) -> bool:
        """Return so many free pages, or what a ledger has instead, to the system; return whether there are more."""


class Ledger(Protocol):
    """Where loops are kept."""

    failures: tuple[type[Exception], ...]
    """What its methods raise when they fail; anything else raised inside a transaction is not the ledger's."""

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Open the one transaction: durable when it ends well, gone without a trace if anything is raised."""

    def newest(self) -> Moment | None:
        """Return the moment of the newest row, None if there is none."""

    def loops(self) -> Sequence[LoopRecord]:
        """Return all loops, the oldest first."""

    def rows(self, loop: int, after: int = 0) -> Iterator[Row]:
        """Read committed rows, in order and in bounded memory, while others write."""

    def decided(self, loop: int, t: int) -> Row | None:
        """Read the committed row of a decision, by its step."""

    def scrub(self) -> bool:
        """Leave nothing of what was erased or pruned in any file, between transactions, in the thread that writes.

        False if somebody who reads was in the way; it is tried again then.
        """

    def backup(self, path: Path) -> None:
        """Copy everything into a new file, as it is at one moment, while others write."""

    def close(self) -> None:
        """Close it; the next one who opens it finds all that was written."""
