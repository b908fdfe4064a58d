"""A transaction in a file, which writes or only reads: a bounded number of statements for any number of calls.

The planner has no statistics, so that of two indexes it may take the one that reads the whole loop: statements name
theirs where there is a choice. A view is a file as it is at one moment, in which others may write on; the log of
SQLite cannot be emptied while it lasts, so that the file grows meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

import apsw

from armlet.errors import StoreError, UnknownNameError
from armlet.stores import encoding
from armlet.stores.encoding import WAY_OUT, read_head
from armlet.stores.ledger import Decided, Early, Entered, Head, LoopRecord, OutcomeRecord, Pruned, Row, Usage, Want
from armlet.stores.transaction import Draft


def fetch(connection: apsw.Connection, sql: str, values: tuple[object, ...] = ()) -> list[Any]:
    """Read all that a statement finds; invalid text is damage like any other."""
    try:
        return connection.execute(sql, values).fetchall()
    except UnicodeDecodeError as error:
        raise StoreError(f"a row of the store holds text that is not UTF-8: {error}; {WAY_OUT}") from error


@cache
def marks(n: int) -> str:
    """Return placeholders for so many values."""
    return ", ".join("?" * n)


PAGE: Final = 1000  # rows read at once
INCREMENTAL: Final = 2  # of PRAGMA auto_vacuum
SIZES: Final = (1, 4, 16, 64, 256)  # of lists of events: few, so that statements stay prepared

LOOP: Final = f"SELECT {', '.join(encoding.LOOP)} FROM loop"
HEAD: Final = f"SELECT {', '.join(encoding.HEAD)} FROM head"
EVENT: Final = f"SELECT {', '.join(encoding.EVENT)} FROM event WHERE loop = ? AND seq"
_JOINED = ", ".join([*(f"outcome.{name}" for name in encoding.OUTCOME), *(f"event.{name}" for name in encoding.EVENT)])
_HEARD = "event AS heard INDEXED BY event_by_step WHERE heard.loop = {} AND heard.t = {} AND heard.kind <> 'decide'"
# an outcome that knows of no reward is believed only if there is no row of one; one without its row is damage
_DECIDED = f"""SELECT outcome.phase = 'open' AND outcome.value IS NULL AND outcome.parts IS NULL
        AND EXISTS (SELECT 1 FROM {_HEARD.format("outcome.loop", "outcome.t")} AND heard.kind <> 'activate'), {_JOINED}
    FROM outcome INDEXED BY {{}} LEFT JOIN event ON event.loop = outcome.loop AND event.seq = outcome.seq
    WHERE outcome.loop = ?"""
BY_EVENT: Final = _DECIDED.format("outcome_by_event") + " AND outcome.event IN ({})"
BY_DUE: Final = _DECIDED.format("outcome_by_due") + " AND outcome.due <= ? ORDER BY outcome.due, outcome.t LIMIT ?"
BY_STEP: Final = f"""SELECT 0, {_JOINED}
    FROM outcome LEFT JOIN event ON event.loop = outcome.loop AND event.seq = outcome.seq
    WHERE outcome.loop = ? AND outcome.t"""
EARLY: Final = f"SELECT {', '.join(encoding.EARLY)} FROM early WHERE loop = ? AND event = ? ORDER BY id"
TALLY: Final = f"SELECT {', '.join(encoding.TALLY)} FROM tally WHERE loop = ?"
SNAPSHOT: Final = f"SELECT {', '.join(encoding.SNAPSHOT)} FROM snapshot WHERE loop = ?"

_NEW_EVENT = f"INSERT INTO event VALUES ({marks(len(encoding.EVENT))})"
_NEW_OUTCOME = f"INSERT INTO outcome VALUES ({marks(len(encoding.OUTCOME))})"
_CHANGED = """
    UPDATE outcome
    SET seq = ?4, phase = ?5, value = ?6, due = ?7, rank = ?8, names = ?9, played = ?10, parts = ?11, crc = ?12
    WHERE loop = ?1 AND t = ?2 AND event = ?3"""
_NEW_EARLY = f"INSERT INTO early ({', '.join(encoding.EARLY)}) VALUES ({marks(len(encoding.EARLY))})"
_NEW_HEAD = f"INSERT OR REPLACE INTO head VALUES ({marks(len(encoding.HEAD))})"
_NEW_SNAPSHOT = f"INSERT OR REPLACE INTO snapshot VALUES ({marks(len(encoding.SNAPSHOT))})"
_NEW_TALLY = f"INSERT OR REPLACE INTO tally VALUES ({marks(len(encoding.TALLY))})"
_NEW_LOOP = f"INSERT INTO loop VALUES ({marks(len(encoding.LOOP))})"
_ABOUT = f"SELECT {', '.join(encoding.EVENT)} FROM {_HEARD.format('?', '?')} ORDER BY seq"
_NEEDED = f"SELECT 1 FROM {_HEARD.format('?', '?')} AND seq > ? LIMIT 1"
_DROP_HEARD = "DELETE FROM event INDEXED BY event_by_step WHERE loop = ? AND t = ? AND kind <> 'decide'"
_DROP_EARLY = """DELETE FROM early WHERE id IN (
    SELECT id FROM early INDEXED BY early_by_time WHERE loop = ? AND until <= ? LIMIT ?)"""
_SOME_EVENTS = "DELETE FROM event WHERE loop = ?1 AND seq IN (SELECT seq FROM event WHERE loop = ?1 LIMIT ?2)"
_SOME_OUTCOMES = "DELETE FROM outcome WHERE loop = ?1 AND t IN (SELECT t FROM outcome WHERE loop = ?1 LIMIT ?2)"

REFUSALS = (apsw.ConstraintError, apsw.TooBigError)  # of one statement; the transaction is as it was before it


def read_rows(connection: apsw.Connection, loop: int, after: int) -> Iterator[Row]:
    """Read rows in order, a page at a time, so that nobody waits for the reader."""
    while page := fetch(connection, f"{EVENT} > ? ORDER BY seq LIMIT ?", (loop, after, PAGE)):
        yield from map(encoding.read_event, page)
        if page[-1][1] <= after:  # or this might never end
            raise StoreError(f"row {after} of the loop is damaged: it stands twice; {WAY_OUT}")
        after = page[-1][1]


def _read_decided(found: Sequence[Any]) -> Decided:
    decided = encoding.read_decided(found[1:])
    if found[0]:
        raise StoreError(
            f"the outcome of step {decided.pending.t} of the loop is older than its rows; go back to a backup"
        )
    return decided


class _Reading:
    """What a session and a view both read."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def _all(self, sql: str, *values: object) -> list[Any]:
        return fetch(self._connection, sql, values)

    def _one(self, sql: str, *values: object) -> Any:
        found = self._all(sql, *values)
        return found[0] if found else None

    def row(self, loop: int, seq: int) -> Row | None:
        found = self._one(f"{EVENT} = ?", loop, seq)
        return None if found is None else encoding.read_event(found)

    def rows(self, loop: int, after: int) -> Iterator[Row]:
        return read_rows(self._connection, loop, after)

    def snapshot(self, loop: int) -> tuple[int, bytes] | None:
        return encoding.read_snapshot(self._one(SNAPSHOT, loop))

    def tally(self, loop: int) -> str | None:
        return encoding.read_tally(self._one(TALLY, loop))


class SQLiteSession(_Reading):
    """A transaction of the connection that writes."""

    def __init__(self, connection: apsw.Connection) -> None:
        super().__init__(connection)
        self._run, self._run_many = connection.execute, connection.executemany
        self._made: dict[int, int] = {}  # check values of the records of loops that were entered

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        self._run("SAVEPOINT piece")
        try:
            yield
        except BaseException as error:
            if isinstance(error, apsw.Error) and not isinstance(error, REFUSALS):
                raise  # of the disk: SQLite may have ended the transaction by itself
            self._run("ROLLBACK TO piece")
            self._run("RELEASE piece")
            if isinstance(error, apsw.Error):
                raise StoreError(f"nothing of this call was kept: {error}") from error
            raise
        self._run("RELEASE piece")

    def enter(self, wants: Sequence[Want]) -> Sequence[Entered | None]:
        return [self._enter(want) for want in wants]  # the file is locked already, by `BEGIN IMMEDIATE`

    def _enter(self, want: Want) -> Entered | None:
        found = self._one(f"{HEAD} WHERE loop = ?", want.loop)
        if found is None:
            return None
        head, self._made[want.loop] = encoding.read_head(found)
        is_behind = want.after is not None and want.after != head.seq
        return Entered(
            head,
            list(self.rows(want.loop, want.after or 0)) if is_behind else (),
            self.decided(want.loop, want.events),
            () if want.due is None else self.due(want.loop, want.due, want.most),
        )

    def write(self, drafts: Sequence[Draft]) -> None:
        for draft in drafts:
            loop = draft.loop
            if draft.rows:
                self._run_many(_NEW_EVENT, [encoding.event_values(loop, row) for row in draft.rows])
            if draft.new:
                self._run_many(_NEW_OUTCOME, [encoding.outcome_values(loop, each) for each in draft.new.values()])
            if draft.changed:
                self._run_many(_CHANGED, [encoding.outcome_values(loop, each) for each in draft.changed.values()])
            if draft.early:
                self._run_many(_NEW_EARLY, [encoding.early_values(loop, each) for each in draft.early])
            for event, _ in draft.arrived:
                self._run("DELETE FROM early INDEXED BY early_by_event WHERE loop = ? AND event = ?", (loop, event))
            if draft.snapshot is not None:
                self._run(_NEW_SNAPSHOT, encoding.snapshot_values(loop, *draft.snapshot))
            if draft.tally is not None:
                self._run(_NEW_TALLY, encoding.tally_values(loop, draft.tally))
            self._run(_NEW_HEAD, encoding.head_values(loop, draft.head, self._made[loop]))

    def find(self, name: str) -> LoopRecord | None:
        found = self._one(f"{LOOP} WHERE name = ?", name)
        return None if found is None else encoding.read_record(found)

    def decided(self, loop: int, events: Sequence[str]) -> Sequence[Decided]:
        found: list[Decided] = []
        for first in range(0, len(events), SIZES[-1]):
            some = events[first : first + SIZES[-1]]
            size = next(size for size in SIZES if size >= len(some))
            padded = (*some, *(None,) * (size - len(some)))
            found += map(_read_decided, self._all(BY_EVENT.format(marks(size)), loop, *padded))
        return found

    def due(self, loop: int, now: int, most: int) -> Sequence[Decided]:
        return [_read_decided(found) for found in self._all(BY_DUE, loop, now, most)]

    def early(self, loop: int, event: str) -> Sequence[Early]:
        return [encoding.read_early(found) for found in self._all(EARLY, loop, event)]

    def pick(self, loop: int, seqs: Sequence[int]) -> Sequence[Row]:
        return [row for seq in seqs if (row := self.row(loop, seq)) is not None]

    def heard(self, loop: int, t: int) -> Sequence[Row]:
        return [encoding.read_event(found) for found in self._all(_ABOUT, loop, t)]

    # ---- maintenance

    def create(self, name: str, about: str, start: bytes, clock: int) -> LoopRecord:
        loop = self._one("SELECT coalesce(max(id), 0) + 1 FROM loop")[0]
        made = self._made[loop] = encoding.made_value(loop, name, about, start, 0)
        self._run(_NEW_LOOP, (loop, name, about, start, 0, made))
        self._run(_NEW_HEAD, encoding.head_values(loop, Head(clock=clock), made))
        return LoopRecord(id=loop, name=name, about=about, start=start)

    def describe(self, loop: int, about: str) -> None:
        record = self._record(loop)
        self._make(loop, record.name, about, record.start, record.base)

    def rebase(self, loop: int, seq: int, model: bytes) -> None:
        record = self._record(loop)
        self._make(loop, record.name, record.about, model, seq)
        self._run("DELETE FROM snapshot WHERE loop = ?", (loop,))

    def _record(self, loop: int) -> LoopRecord:
        return encoding.read_record(self._one(f"{LOOP} WHERE id = ?", loop))

    def _make(self, loop: int, name: str, about: str, start: bytes, base: int) -> None:
        made = encoding.made_value(loop, name, about, start, base)
        sql = "UPDATE loop SET about = ?, start = ?, base = ?, made = ? WHERE id = ?"
        self._run(sql, (about, start, base, made, loop))
        head = self._head(loop)
        self._made[loop] = made
        self._put_head(loop, head._replace(epoch=head.epoch + 1))

    def _head(self, loop: int) -> Head:
        head, self._made[loop] = encoding.read_head(self._one(f"{HEAD} WHERE loop = ?", loop))
        return head

    def _put_head(self, loop: int, head: Head) -> None:
        self._run(_NEW_HEAD, encoding.head_values(loop, head, self._made[loop]))

    def _count(self, loop: int, outcomes: int = 0, early: int = 0) -> None:
        head = self._head(loop)
        self._put_head(loop, head._replace(outcomes=head.outcomes + outcomes, early=head.early + early))

    def erase(self, loop: int, t: int) -> None:
        found = self._one(f"{BY_STEP} = ?", loop, t)
        if found is None:
            raise UnknownNameError(t)
        row = _read_decided(found).row
        fields = {name: value for name, value in row.fields.items() if name != "event"}
        *_, text, x, crc = encoding.event_values(loop, row._replace(fields=fields, x=None))
        sql = "UPDATE event SET fields = ?, x = ?, crc = ? WHERE loop = ? AND seq = ?"
        self._run(sql, (text, x, crc, loop, row.seq))
        self._drop(loop, [t])

    def _drop(self, loop: int, steps: Sequence[int]) -> None:
        """Delete outcomes, and all rows about decisions but their own."""
        self._run_many(_DROP_HEARD, [(loop, t) for t in steps])
        self._run_many("DELETE FROM outcome WHERE loop = ? AND t = ?", [(loop, t) for t in steps])
        self._count(loop, outcomes=-len(steps))

    def drop_early(self, loop: int, until: int, most: int) -> int:
        self._run(_DROP_EARLY, (loop, until, most))
        n = self._connection.changes()
        self._count(loop, early=-n)
        return n

    def prune(self, loop: int, before: int, after: int, most: int) -> Pruned:
        base: int = self._run("SELECT base FROM loop WHERE id = ?", (loop,)).get
        found = [
            _read_decided(each) for each in self._all(f"{BY_STEP} > ? ORDER BY outcome.t LIMIT ?", loop, after, most)
        ]
        spare = [
            each
            for each in found
            if each.pending.due is None
            and each.row.ts < before
            and not each.row.fields.get("explored", True)
            and each.row.seq <= base
            and not self._run(_NEEDED, (loop, each.pending.t, base)).get
        ]
        gone = [each for each in spare if each.pending.phase != "open"]
        if gone:
            self.drop_rows(loop, [each.row.seq for each in gone])
            self._drop(loop, [each.pending.t for each in gone])
        waiting = tuple(each for each in spare if each.pending.phase == "open")
        return Pruned(len(gone), found[-1].pending.t if len(found) == most else None, waiting)

    def drop_rows(self, loop: int, seqs: Sequence[int]) -> None:
        self._run_many("DELETE FROM event WHERE loop = ? AND seq = ?", [(loop, seq) for seq in seqs])

    def delete(self, loop: int, most: int) -> bool:
        for sql in (_SOME_OUTCOMES, _SOME_EVENTS):  # nobody who looks an event up may miss its row
            self._run(sql, (loop, most))
            if gone := self._connection.changes():
                self._count(loop, outcomes=-gone if sql is _SOME_OUTCOMES else 0)
                return True
        for table in ("early", "snapshot", "tally", "head"):
            self._run(f"DELETE FROM {table} WHERE loop = ?", (loop,))
        self._run("DELETE FROM loop WHERE id = ?", (loop,))
        return False

    def shrink(self, most: int) -> bool:
        if self._connection.pragma("auto_vacuum") != INCREMENTAL:
            return False  # somebody has set that: what is free is used again, but not given back
        before: int = self._connection.pragma("freelist_count")
        self._run(f"PRAGMA incremental_vacuum({most})").fetchall()
        free: int = self._connection.pragma("freelist_count")
        return 0 < free < before  # of a damaged file the count may stay


_COLUMNS = ", ".join(
    [
        *(f"outcome.{name}" for name in encoding.OUTCOME),
        *(f"event.{name}" for name in encoding.EVENT),
        *(f"last.{name}" for name in encoding.EVENT),
    ]
)
_OUTCOME_RECORDS: Final = f"""SELECT {_COLUMNS} FROM outcome
    LEFT JOIN event ON event.loop = outcome.loop AND event.seq = outcome.seq
    LEFT JOIN event AS last ON last.loop = outcome.loop AND last.seq = (
        SELECT max(seq) FROM event AS heard INDEXED BY event_by_step
        WHERE heard.loop = outcome.loop AND heard.t = outcome.t AND heard.kind <> 'decide')
    WHERE outcome.loop = ? AND outcome.t > ? ORDER BY outcome.t LIMIT ?"""
_BYTES: Final = """
    SELECT count(*), total(octet_length(fields)) + total(octet_length(x)) FROM event WHERE loop = ?"""


def check_pages(connection: apsw.Connection, name: str) -> None:
    """Refuse a file whose tables or indexes are damaged; reads all of it."""
    if (answer := connection.execute("PRAGMA integrity_check(1)").get) != "ok":
        raise StoreError(f"{name} is damaged: {' '.join(str(answer).split())}; {WAY_OUT}")


def check_counts(connection: apsw.Connection, name: str) -> None:
    """Refuse a file that has lost some of its outcomes, since rewards would count again, or the head of a loop."""
    found = dict(fetch(connection, "SELECT loop, count(*) FROM outcome GROUP BY loop"))
    heads = {each[0]: read_head(each)[0].outcomes for each in fetch(connection, HEAD)}
    if found != {loop: count for loop, count in heads.items() if count}:
        raise StoreError(f"{name} is damaged: outcomes are missing, or there are too many; {WAY_OUT}")
    if heads.keys() != {loop for (loop,) in fetch(connection, "SELECT id FROM loop")}:
        raise StoreError(f"{name} is damaged: the head of a loop is missing; {WAY_OUT}")


class SQLiteView(_Reading):
    """One read transaction of a connection."""

    def __init__(self, connection: apsw.Connection, name: str) -> None:
        super().__init__(connection)
        self._name = name

    def check(self) -> None:
        check_pages(self._connection, self._name)
        check_counts(self._connection, self._name)

    def loops(self) -> Sequence[LoopRecord]:
        return [encoding.read_record(found) for found in self._all(f"{LOOP} ORDER BY id")]

    def head(self, loop: int) -> Head | None:
        found = self._one(f"{HEAD} WHERE loop = ?", loop)
        return None if found is None else encoding.read_head(found)[0]

    def outcomes(self, loop: int) -> Iterator[OutcomeRecord]:
        after = -1
        while page := self._all(_OUTCOME_RECORDS, loop, after, PAGE):
            yield from map(encoding.read_outcome_record, page)
            if page[-1][1] <= after:  # or this might never end
                raise StoreError(f"the outcome of step {after} of the loop stands twice; {WAY_OUT}")
            after = page[-1][1]

    def usage(self, loop: int) -> Usage:
        rows, size = self._one(_BYTES, loop)
        outcomes, early, snapshots = (
            self._one(f"SELECT count(*) FROM {table} WHERE loop = ?", loop)[0]
            for table in ("outcome", "early", "snapshot")
        )
        return Usage(rows, outcomes, early, snapshots, int(size))
