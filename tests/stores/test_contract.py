"""The contract of stores over Armlet's own, and its own power to refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from armlet.stores import Ledger, LoopRecord, Memory, Pending, Row, SQLite
from armlet.stores.ledger import Decided, Early, Entered, Want
from armlet.stores.memory import MemorySession, _Book
from armlet.stores.transaction import Draft
from armlet.testing import STORE_CHECKS, check_store
from armlet.testing.stores import Place, StoreCheck

pytestmark = pytest.mark.spread


def in_memory(_: Path) -> Place:
    ledger = Memory()
    return lambda: ledger


def in_a_file(folder: Path) -> Place:
    return lambda: SQLite(folder / "shop.db")


@pytest.mark.parametrize("check", STORE_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("new", [in_memory, in_a_file])
def test_stores_keep_the_contract(new: Callable[[Path], Place], check: StoreCheck, tmp_path: Path) -> None:
    check(new(tmp_path))


# --- the contract refuses ledgers ------------------------------------------------------------------------------------


class KeepsWhatWasBrokenOff(Memory):
    @contextmanager
    def session(self) -> Iterator[MemorySession]:
        error = None
        with super().session() as session:
            try:
                yield session
            except Exception as raised:
                error = raised
        if error is not None:
            raise error


class ShowsHalf(Memory):
    def rows(self, loop: int, after: int = 0):  # type: ignore[no-untyped-def]
        return iter([row for seq, row in self._books[loop].rows.items() if seq > after])


class LosesAllOnClosing(Memory):
    def close(self) -> None:
        self._books.clear()


@pytest.mark.parametrize(
    ("kind", "promise"),
    [
        (KeepsWhatWasBrokenOff, "a transaction that was broken off left something behind"),
        (ShowsHalf, r"a reader saw \[1\] rows of a transaction of 2"),
        (LosesAllOnClosing, "loop 'homepage' is gone"),
    ],
)
def test_faulty_ledgers_are_refused(kind: type[Memory], promise: str) -> None:
    with pytest.raises(AssertionError, match=promise):
        check_store(lambda: opening(kind()))


def opening(ledger: Ledger) -> Place:
    return lambda: ledger


# --- and their sessions ----------------------------------------------------------------------------------------------


class WithSessions(Memory):
    """A ledger whose transactions are of another kind."""

    def __init__(self, kind: type[MemorySession]) -> None:
        super().__init__()
        self._kind = kind

    @contextmanager
    def session(self) -> Iterator[MemorySession]:
        with super().session() as sound:
            session = self._kind(self._books, self._ids)
            session._undo = sound._undo
            yield session


class KeepsTheClock(MemorySession):
    """Lets a step of the clock be decided twice."""

    def write(self, drafts: Sequence[Draft]) -> None:
        before = {draft.loop: self._books[draft.loop].head.clock for draft in drafts}
        super().write(drafts)
        for loop, clock in before.items():
            self._set(self._books[loop], "head", self._books[loop].head._replace(clock=clock))


class ForgetsEvents(MemorySession):
    def decided(self, loop: int, events: Sequence[str]) -> Sequence[Decided]:
        return super().decided(loop, [f"not {event}" for event in events])


class ForgetsEventsOnEntering(MemorySession):
    def _found(self, want: Want) -> Entered | None:
        return super()._found(want._replace(events=()))


class ClosesEarly(MemorySession):
    def due(self, loop: int, now: int, most: int) -> Sequence[Decided]:
        return super().due(loop, now + 1_000_000, most)


class NeverCloses(MemorySession):
    def due(self, loop: int, now: int, most: int) -> Sequence[Decided]:
        return super().due(loop, now, most)[:0]


class NeverClosesOnEntering(MemorySession):
    def _found(self, want: Want) -> Entered | None:
        return super()._found(want._replace(due=None))


class SnapshotsOffByOne(MemorySession):
    def write(self, drafts: Sequence[Draft]) -> None:
        super().write(drafts)
        for draft in drafts:
            if draft.snapshot is not None:
                seq, model = draft.snapshot
                self._set(self._books[draft.loop], "snapshot", (seq - 1, model))


class ForgetsTheEpoch(MemorySession):
    def _count_up(self, book: _Book) -> None:
        pass


class HidesTheRowsOfOthers(MemorySession):
    def _found(self, want: Want) -> Entered | None:
        return super()._found(want._replace(after=None))


class LosesEarlyRewards(MemorySession):
    def early(self, loop: int, event: str) -> Sequence[Early]:
        return super().early(loop, event)[:1]


class KeepsEarlyRewards(MemorySession):
    """Lets early rewards wait on when their decision has come, so that they count again."""

    def write(self, drafts: Sequence[Draft]) -> None:
        before = {draft.loop: self._books[draft.loop].early for draft in drafts}
        super().write(drafts)
        for draft in drafts:
            self._set(self._books[draft.loop], "early", (*before[draft.loop], *draft.early))


class LosesTheTally(MemorySession):
    def tally(self, loop: int) -> str | None:
        return super().tally(loop) and None


def leaving(what: str) -> type[MemorySession]:
    """Return sessions that leave a part of a loop that is deleted to the next one, which has its number."""
    left: list[object] = []

    class Leaves(MemorySession):
        def delete(self, loop: int, most: int) -> bool:
            left.append(getattr(self._books[loop], what))
            return super().delete(loop, most)

        def create(self, name: str, about: str, start: bytes, clock: int) -> LoopRecord:
            record = super().create(name, about, start, clock)
            if left:
                self._set(self._books[record.id], what, left[0])
            return record

    return Leaves


class DeletesAllAtOnce(MemorySession):
    def delete(self, loop: int, most: int) -> bool:  # noqa: ARG002
        return super().delete(loop, 10**9) and super().delete(loop, 10**9)


class UndoesTooLittle(MemorySession):
    @contextmanager
    def savepoint(self) -> Iterator[None]:
        done = len(self._undo)
        try:
            yield
        except BaseException:
            self.roll_back(done + 1)
            raise


class UndoesTooMuch(MemorySession):
    @contextmanager
    def savepoint(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.roll_back()
            raise


class LosesParts(MemorySession):
    """Keeps what was told first of several outcomes."""

    def write(self, drafts: Sequence[Draft]) -> None:
        super().write(drafts)
        for draft in drafts:
            for pending in (*draft.new.values(), *draft.changed.values()):
                some = dict(list((pending.parts or {}).items())[:1]) or None
                self._put(self._books[draft.loop].outcomes, pending.t, pending._replace(parts=some))


def without(field: str, value: Any) -> type[MemorySession]:
    """Return sessions that lose a field of each part."""

    class Loses(MemorySession):
        def decided(self, loop: int, events: Sequence[str]) -> Sequence[Decided]:
            return [each._replace(pending=_without(each.pending)) for each in super().decided(loop, events)]

    def _without(pending: Pending) -> Pending:
        parts = {name: part._replace(**{field: value}) for name, part in (pending.parts or {}).items()}
        return pending._replace(parts=parts or None)

    return Loses


class KeepsPartsThatAreDropped(MemorySession):
    def write(self, drafts: Sequence[Draft]) -> None:
        known = {draft.loop: dict(self._books[draft.loop].outcomes) for draft in drafts}
        super().write(drafts)
        for draft in drafts:
            for t, outcome in draft.changed.items():
                parts = outcome.parts or known[draft.loop][t].parts
                self._put(self._books[draft.loop].outcomes, t, outcome._replace(parts=parts))


class MixesUpWhatWasHeard(MemorySession):
    def heard(self, loop: int, t: int) -> Sequence[Row]:
        return [*super().heard(loop, t), *super().heard(loop, t + 1)]


class CountsWhatIsGone(MemorySession):
    def _drop(self, book: _Book, old: set[int]) -> None:
        before = book.head.outcomes
        super()._drop(book, old)
        self._set(book, "head", book.head._replace(outcomes=before))


class DropsAllUpToARow(MemorySession):
    def drop_rows(self, loop: int, seqs: Sequence[int]) -> None:
        super().drop_rows(loop, range(max(seqs, default=0) + 1))


class KeepsTables(MemorySession):
    def drop_rows(self, loop: int, seqs: Sequence[int]) -> None:
        pass


class ActivatesAll(MemorySession):
    """Forgets that a decision is to wait."""

    def write(self, drafts: Sequence[Draft]) -> None:
        super().write(drafts)
        for draft in drafts:
            outcomes = self._books[draft.loop].outcomes
            for pending in (*draft.new.values(), *draft.changed.values()):
                if pending.phase == "deferred":
                    self._put(outcomes, pending.t, pending._replace(phase="open"))


@pytest.mark.parametrize(
    ("kind", "promise"),
    [
        (DropsAllUpToARow, r"rows \[4\] of .* are left without \[2, 3\]"),
        (KeepsTables, r"rows .* are left without \[2, 3\]"),
        (ActivatesAll, "a decision was not activated once"),
        (KeepsTheClock, "kept its step of the clock"),
        (ForgetsEvents, "an outcome is not found by its event"),
        (ForgetsEventsOnEntering, "an event is not found on entering"),
        (ClosesEarly, "an outcome is due before its time"),
        (NeverCloses, "what is due is not found, the first one first"),
        (NeverClosesOnEntering, "what is due is not found on entering"),
        (SnapshotsOffByOne, "a restart is not the replay"),
        (ForgetsTheEpoch, r"epochs are \[0, 0, 0\] after new rules"),
        (HidesTheRowsOfOthers, "does not get the rows of others"),
        (LosesEarlyRewards, "early rewards are not found in their order"),
        (KeepsEarlyRewards, "an early reward that has arrived still waits"),
        (LosesTheTally, "counts of calls are not kept"),
        (leaving("rows"), "a new loop has the rows of one that was deleted"),
        (leaving("tally"), "a new loop has .*decisions.* of one that was deleted"),
        (leaving("early"), r"a new loop has .*Early.* of one that was deleted"),
        (leaving("snapshot"), "a new loop has .*another model.* of one that was deleted"),
        (DeletesAllAtOnce, "was deleted in 1 pieces"),
        (UndoesTooLittle, "a loop was kept whose savepoint was undone"),
        (UndoesTooMuch, "what was raised at a savepoint left something behind"),
        (LosesParts, r"a reward has the parts \['cost'\], not \['cost', 'quality', 'late'\]"),
        (without("rank", 0), "the rank of a part is 0, not 2"),
        (without("names", ()), r"the names of a part is \(\), not \('a', 'ü'\)"),
        (without("phase", "learned"), "the phase of a part is 'learned', not 'held'"),
        (KeepsPartsThatAreDropped, "parts are left that were dropped"),
        (MixesUpWhatWasHeard, "the rows about step 3 are others"),
        (CountsWhatIsGone, "outcomes that are gone are still counted"),
    ],
)
def test_faulty_sessions_are_refused(kind: type[MemorySession], promise: str) -> None:
    with pytest.raises(AssertionError, match=promise):
        check_store(lambda: opening(WithSessions(kind)))


def test_the_ledger_that_is_made_faulty_is_sound() -> None:
    check_store(lambda: opening(WithSessions(MemorySession)))
