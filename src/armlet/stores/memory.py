"""A ledger in memory: for tests and for trying things out. What it keeps ends with the process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from armlet.errors import StoreError
from armlet.stores.ledger import (
    Decided,
    Early,
    Entered,
    Head,
    LoopRecord,
    Moment,
    OutcomeRecord,
    Pending,
    Pruned,
    Row,
    Usage,
    Want,
)
from armlet.stores.transaction import Draft


@dataclass(slots=True)
class _Book:
    """One loop."""

    record: LoopRecord
    head: Head
    rows: dict[int, Row] = field(default_factory=dict)
    outcomes: dict[int, Pending] = field(default_factory=dict)
    events: dict[str, int] = field(default_factory=dict)
    early: tuple[Early, ...] = ()
    snapshot: tuple[int, bytes] | None = None
    tally: str | None = None

    def decided(self, t: int) -> Decided:
        return Decided(self.outcomes[t], self.rows[self.outcomes[t].seq])


class MemorySession:
    """A transaction over dictionaries: every change leaves behind how to undo it."""

    def __init__(self, books: dict[int, _Book], ids: Iterator[int]) -> None:
        self._books, self._ids = books, ids
        self._undo: list[Callable[[], object]] = []

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        done = len(self._undo)
        try:
            yield
        except BaseException:
            self.roll_back(done)
            raise

    def roll_back(self, done: int = 0) -> None:
        while len(self._undo) > done:
            self._undo.pop()()

    def enter(self, wants: Sequence[Want]) -> Sequence[Entered | None]:
        return [self._found(want) for want in wants]

    def _found(self, want: Want) -> Entered | None:
        book = self._books.get(want.loop)
        if book is None:
            return None
        rows = () if want.after in (None, book.head.seq) else tuple(self.rows(want.loop, want.after or 0))
        due = () if want.due is None else self.due(want.loop, want.due, want.most)
        return Entered(book.head, rows, self.decided(want.loop, want.events), due)

    def write(self, drafts: Sequence[Draft]) -> None:
        for draft in drafts:
            book = self._books[draft.loop]
            for row in draft.rows:
                self._put(book.rows, row.seq, row._replace(fields=dict(row.fields)))
            for pending in (*draft.new.values(), *draft.changed.values()):
                self._put(book.outcomes, pending.t, pending)
                self._put(book.events, pending.event, pending.t)
            arrived = {event for event, _ in draft.arrived}
            left = (each for each in book.early if each.event not in arrived)
            self._set(book, "early", (*left, *draft.early))
            self._set(book, "head", draft.head)
            if draft.snapshot is not None:
                self._set(book, "snapshot", draft.snapshot)
            if draft.tally is not None:
                self._set(book, "tally", draft.tally)

    def create(self, name: str, about: str, start: bytes, clock: int) -> LoopRecord:
        record = LoopRecord(id=next(self._ids), name=name, about=about, start=start)
        self._books[record.id] = _Book(record, Head(clock=clock))
        self._undo.append(lambda: self._books.pop(record.id))
        return record

    def find(self, name: str) -> LoopRecord | None:
        return next((book.record for book in self._books.values() if book.record.name == name), None)

    def describe(self, loop: int, about: str) -> None:
        book = self._books[loop]
        self._set(book, "record", replace(book.record, about=about))
        self._count_up(book)

    def decided(self, loop: int, events: Sequence[str]) -> Sequence[Decided]:
        book = self._books[loop]
        return [book.decided(book.events[event]) for event in events if event in book.events]

    def due(self, loop: int, now: int, most: int) -> Sequence[Decided]:
        book = self._books[loop]
        waiting = [(each.due, t) for t, each in book.outcomes.items() if each.due is not None and each.due <= now]
        return [book.decided(t) for _, t in sorted(waiting)[:most]]

    def early(self, loop: int, event: str) -> Sequence[Early]:
        return [each for each in self._books[loop].early if each.event == event]

    def row(self, loop: int, seq: int) -> Row | None:
        return self._books[loop].rows.get(seq)

    def pick(self, loop: int, seqs: Sequence[int]) -> Sequence[Row]:
        return [row for seq in seqs if (row := self.row(loop, seq)) is not None]

    def heard(self, loop: int, t: int) -> Sequence[Row]:
        return [row for row in self._books[loop].rows.values() if row.t == t and row.kind != "decide"]

    def rows(self, loop: int, after: int) -> Iterator[Row]:
        return iter([row for seq, row in self._books[loop].rows.items() if seq > after])

    def snapshot(self, loop: int) -> tuple[int, bytes] | None:
        return self._books[loop].snapshot

    def tally(self, loop: int) -> str | None:
        return self._books[loop].tally

    def rebase(self, loop: int, seq: int, model: bytes) -> None:
        book = self._books[loop]
        self._set(book, "record", replace(book.record, start=model, base=seq))
        self._set(book, "snapshot", None)
        self._count_up(book)

    def erase(self, loop: int, t: int) -> None:
        book = self._books[loop]
        row = book.rows[book.outcomes[t].seq]
        fields = {name: value for name, value in row.fields.items() if name != "event"}
        left = {seq: each for seq, each in book.rows.items() if each.t != t or each.kind == "decide"}
        self._set(book, "rows", left | {row.seq: row._replace(x=None, fields=fields)})
        self._drop(book, {t})

    def drop_early(self, loop: int, until: int, most: int) -> int:
        book = self._books[loop]
        old = [each for each in book.early if each.until <= until][:most]
        self._set(book, "early", tuple(each for each in book.early if each not in old))
        self._set(book, "head", book.head._replace(early=len(book.early)))
        return len(old)

    def prune(self, loop: int, before: int, after: int, most: int) -> Pruned:
        book = self._books[loop]
        steps = sorted(t for t in book.outcomes if t > after)[:most]
        needed = {row.t for seq, row in book.rows.items() if seq > book.record.base}
        spare = [t for t in steps if t not in needed and _is_spare(book.decided(t), before)]
        waiting = tuple(book.decided(t) for t in spare if book.outcomes[t].phase == "open")
        old = {t for t in spare if book.outcomes[t].phase != "open"}
        self._set(book, "rows", {seq: row for seq, row in book.rows.items() if row.t not in old})
        self._drop(book, old)
        return Pruned(len(old), steps[-1] if len(steps) == most else None, waiting)

    def drop_rows(self, loop: int, seqs: Sequence[int]) -> None:
        book, gone = self._books[loop], set(seqs)
        self._set(book, "rows", {seq: row for seq, row in book.rows.items() if seq not in gone})

    def delete(self, loop: int, most: int) -> bool:
        book = self._books[loop]
        some = list(book.rows)[:most]
        if not some:
            del self._books[loop]
            self._undo.append(lambda: self._books.update({loop: book}))
            return False
        self._set(book, "rows", {seq: row for seq, row in book.rows.items() if seq not in some})
        self._drop(book, set(book.outcomes))
        return True

    def shrink(self, most: int) -> bool:
        return most < 0  # never: what is deleted is free at once

    def _set(self, book: _Book, name: str, value: object) -> None:
        before = getattr(book, name)
        setattr(book, name, value)
        self._undo.append(lambda: setattr(book, name, before))

    def _put(self, table: dict[Any, Any], key: object, value: object) -> None:
        known, before = key in table, table.get(key)
        table[key] = value
        self._undo.append(lambda: table.update({key: before}) if known else table.pop(key))

    def _drop(self, book: _Book, old: set[int]) -> None:
        self._set(book, "outcomes", {t: pending for t, pending in book.outcomes.items() if t not in old})
        self._set(book, "events", {event: t for event, t in book.events.items() if t not in old})
        self._set(book, "head", book.head._replace(outcomes=len(book.outcomes)))

    def _count_up(self, book: _Book) -> None:
        self._set(book, "head", book.head._replace(epoch=book.head.epoch + 1))


def _is_spare(decided: Decided, before: int) -> bool:
    return decided.pending.due is None and decided.row.ts < before and not decided.row.fields["explored"]


class MemoryView:
    """Dictionaries as they were at one moment."""

    def __init__(self, books: dict[int, _Book]) -> None:
        self._books = books

    def check(self) -> None:
        pass

    def loops(self) -> Sequence[LoopRecord]:
        return [book.record for book in self._books.values()]

    def head(self, loop: int) -> Head | None:
        return self._books[loop].head if loop in self._books else None

    def row(self, loop: int, seq: int) -> Row | None:
        return self._books[loop].rows.get(seq)

    def rows(self, loop: int, after: int) -> Iterator[Row]:
        return (row for seq, row in self._books[loop].rows.items() if seq > after)

    def outcomes(self, loop: int) -> Iterator[OutcomeRecord]:
        book = self._books[loop]
        last = {row.t: row for row in book.rows.values() if row.kind != "decide"}
        for t in sorted(book.outcomes):
            yield OutcomeRecord(*book.decided(t), last.get(t))

    def snapshot(self, loop: int) -> tuple[int, bytes] | None:
        return self._books[loop].snapshot

    def tally(self, loop: int) -> str | None:
        return self._books[loop].tally

    def usage(self, loop: int) -> Usage:
        book = self._books[loop]
        size = sum(len(str(row.fields)) + len(row.x or b"") for row in book.rows.values())
        return Usage(len(book.rows), len(book.outcomes), len(book.early), int(book.snapshot is not None), size)


class Memory:
    """A ledger in memory, which can be closed and opened again as long as the object lives.

    Examples
    --------
    >>> from armlet.stores import Memory, Store
    >>> with Store(Memory()) as store:
    ...     store.loops
    []
    """

    failures: tuple[type[Exception], ...] = ()
    refusals: tuple[type[Exception], ...] = ()
    is_shared = False

    def __init__(self) -> None:
        self._books: dict[int, _Book] = {}
        self._ids = count(1)
        self._lock = threading.RLock()  # a reader sees whole transactions

    @contextmanager
    def session(self) -> Iterator[MemorySession]:
        with self._lock:
            session = MemorySession(self._books, self._ids)
            try:
                yield session
            except BaseException:
                session.roll_back()
                raise

    @contextmanager
    def view(self) -> Iterator[MemoryView]:
        with self._lock:
            copies = {
                loop: replace(book, rows=dict(book.rows), outcomes=dict(book.outcomes), events=dict(book.events))
                for loop, book in self._books.items()
            }
        yield MemoryView(copies)

    def newest(self) -> Moment | None:
        with self._lock:
            heads = [book.head for book in self._books.values() if book.head.seq]
        head = max(heads, key=lambda each: each.steady, default=None)
        return None if head is None else Moment(head.ts, head.steady)

    def loops(self) -> Sequence[LoopRecord]:
        with self._lock:
            return [book.record for book in self._books.values()]

    def head(self, loop: int) -> Head | None:
        with self._lock:
            return self._books[loop].head if loop in self._books else None

    def rows(self, loop: int, after: int = 0) -> Iterator[Row]:
        with self._lock:
            return iter([row for seq, row in self._books[loop].rows.items() if seq > after])

    def decided(self, loop: int, t: int) -> Row | None:
        with self._lock:
            book = self._books[loop]
            return book.decided(t).row if t in book.outcomes else None

    def size(self) -> int:
        return 0

    def scrub(self) -> bool:
        return True

    def backup(self, path: Path) -> None:
        raise StoreError(
            f"a store in memory has no file to copy to {path}; open one on disk: armlet.open_store('shop.db')"
        )

    def close(self) -> None:
        pass
