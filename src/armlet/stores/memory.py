"""A ledger in memory: for tests and for trying things out. What it keeps ends with the process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from armlet.errors import StoreError
from armlet.stores.ledger import LoopRecord, Moment, Outcome, Pruned, Row


@dataclass(slots=True)
class _Book:
    """One loop."""

    record: LoopRecord
    rows: dict[int, Row] = field(default_factory=dict)
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    events: dict[str, int] = field(default_factory=dict)
    clock: int = 0
    seq: int = 0
    newest: Moment | None = None
    snapshot: tuple[int, bytes] | None = None


class MemoryTransaction:
    """A transaction over dictionaries: every change leaves behind how to undo it."""

    def __init__(self, books: dict[int, _Book]) -> None:
        self._books = books
        self.undo: list[Callable[[], object]] = []

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        done = len(self.undo)
        try:
            yield
        except BaseException:
            self.roll_back(done)
            raise

    def roll_back(self, done: int = 0) -> None:
        while len(self.undo) > done:
            self.undo.pop()()

    def create(self, name: str, about: str, start: bytes) -> LoopRecord:
        record = LoopRecord(id=len(self._books) + 1, name=name, about=about, start=start)
        self._books[record.id] = _Book(record)
        self.undo.append(lambda: self._books.pop(record.id))
        return record

    def find(self, name: str) -> LoopRecord | None:
        return next((book.record for book in self._books.values() if book.record.name == name), None)

    def lease(self, loop: int, steps: int) -> int:
        book = self._books[loop]
        self._set(book, "clock", book.clock + steps)
        return book.clock - steps + 1

    def append(
        self, loop: int, now: Moment, kind: str, t: int | None, fields: Mapping[str, Any], x: bytes | None
    ) -> int:
        book = self._books[loop]
        self._set(book, "seq", book.seq + 1)
        self._set(book, "newest", now)
        self._put(book.rows, book.seq, Row(seq=book.seq, ts=now.wall, kind=kind, t=t, fields=dict(fields), x=x))
        return book.seq

    def last(self, loop: int) -> int:
        return self._books[loop].seq

    def row(self, loop: int, seq: int) -> Row | None:
        return self._books[loop].rows.get(seq)

    def rows(self, loop: int, after: int) -> Iterator[Row]:
        return iter([row for seq, row in self._books[loop].rows.items() if seq > after])

    def put(self, loop: int, outcome: Outcome) -> None:
        book = self._books[loop]
        self._put(book.outcomes, outcome.t, outcome)
        self._put(book.events, outcome.event, outcome.t)

    def outcome(self, loop: int, event: str) -> Outcome | None:
        book = self._books[loop]
        return book.outcomes.get(book.events.get(event, 0))

    def at(self, loop: int, t: int) -> Outcome | None:
        return self._books[loop].outcomes.get(t)

    def due(self, loop: int, now: int, most: int) -> Sequence[Outcome]:
        waiting = [each for each in self._books[loop].outcomes.values() if each.due is not None and each.due <= now]
        return sorted(waiting, key=lambda each: (each.due, each.t))[:most]

    def snapshot(self, loop: int) -> tuple[int, bytes] | None:
        return self._books[loop].snapshot

    def keep(self, loop: int, seq: int, model: bytes) -> None:
        self._set(self._books[loop], "snapshot", (seq, model))

    def rebase(self, loop: int, seq: int, model: bytes) -> None:
        book = self._books[loop]
        self._set(book, "record", replace(book.record, start=model, base=seq))
        self._set(book, "snapshot", None)

    def erase(self, loop: int, t: int) -> None:
        book = self._books[loop]
        row = book.rows[book.outcomes[t].seq]
        fields = {name: value for name, value in row.fields.items() if name != "event"}
        left = {seq: each for seq, each in book.rows.items() if each.t != t or each.kind == "decide"}
        self._set(book, "rows", left | {row.seq: replace(row, x=None, fields=fields)})
        self._drop(book, {t})

    def prune(self, loop: int, before: int, after: int, most: int) -> Pruned:
        book = self._books[loop]
        steps = sorted(t for t in book.outcomes if t > after)[:most]
        needed = {row.t for seq, row in book.rows.items() if seq > book.record.base}
        spare = [book.outcomes[t] for t in steps if t not in needed and _is_spare(book, book.outcomes[t], before)]
        old = {outcome.t for outcome in spare if outcome.phase != "open"}
        self._set(book, "rows", {seq: row for seq, row in book.rows.items() if row.t not in old})
        self._drop(book, old)
        waiting = tuple(outcome for outcome in spare if outcome.phase == "open")
        return Pruned(len(old), steps[-1] if len(steps) == most else None, waiting)

    def shrink(self, most: int) -> bool:
        return most < 0  # never: what is deleted is free at once

    def _set(self, book: _Book, name: str, value: object) -> None:
        before = getattr(book, name)
        setattr(book, name, value)
        self.undo.append(lambda: setattr(book, name, before))

    def _put(self, table: dict[Any, Any], key: object, value: object) -> None:
        known, before = key in table, table.get(key)
        table[key] = value
        self.undo.append(lambda: table.update({key: before}) if known else table.pop(key))

    def _drop(self, book: _Book, old: set[int]) -> None:
        self._set(book, "outcomes", {t: outcome for t, outcome in book.outcomes.items() if t not in old})
        self._set(book, "events", {event: t for event, t in book.events.items() if t not in old})


def _is_spare(book: _Book, outcome: Outcome, before: int) -> bool:
    row = book.rows[outcome.seq]
    return outcome.due is None and row.ts < before and not row.fields["explored"]


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

    def __init__(self) -> None:
        self._books: dict[int, _Book] = {}
        self._lock = threading.RLock()  # a reader sees whole transactions

    @contextmanager
    def transaction(self) -> Iterator[MemoryTransaction]:
        with self._lock:
            tx = MemoryTransaction(self._books)
            try:
                yield tx
            except BaseException:
                tx.roll_back()
                raise

    def newest(self) -> Moment | None:
        with self._lock:
            found = [book.newest for book in self._books.values() if book.newest is not None]
            return max(found, key=lambda moment: moment.steady, default=None)

    def loops(self) -> Sequence[LoopRecord]:
        with self._lock:
            return [book.record for book in self._books.values()]

    def rows(self, loop: int, after: int = 0) -> Iterator[Row]:
        with self._lock:
            return iter([row for seq, row in self._books[loop].rows.items() if seq > after])

    def decided(self, loop: int, t: int) -> Row | None:
        with self._lock:
            book = self._books[loop]
            outcome = book.outcomes.get(t)
            return None if outcome is None else book.rows[outcome.seq]

    def scrub(self) -> bool:
        return True

    def backup(self, path: Path) -> None:
        raise StoreError(
            f"a store in memory has no file to copy to {path}; open one on disk: armlet.open_store('shop.db')"
        )

    def close(self) -> None:
        pass
