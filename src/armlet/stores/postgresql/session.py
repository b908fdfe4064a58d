"""A transaction in PostgreSQL: what is written is gathered, and sent with the next question or with COMMIT.

So a batch of calls is two round trips: one that locks its loops and reads what is wanted of them, one that writes all
and commits. READ COMMITTED gives every statement after the lock a view of what was committed before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import psycopg

from armlet.errors import StoreError, UncertainError, UnknownNameError
from armlet.stores import encoding
from armlet.stores.ledger import Decided, Early, Entered, Head, LoopRecord, Pruned, Row, Want
from armlet.stores.postgresql.connection import Connection, Rows
from armlet.stores.postgresql.schema import BEGIN, COMMIT, ROLLBACK, VERSION, check_version
from armlet.stores.postgresql.statements import (
    ARRAYS,
    BYTES,
    REAL,
    TEXT,
    WHOLE,
    Query,
    Statement,
    Type,
    insert,
    unnest,
)
from armlet.stores.transaction import Draft

PAGE: Final = 1000  # rows read at once
MOST: Final = 10_000  # rows of others that are read on entering; the rest is read in pages
REFUSALS: Final = (psycopg.DataError, psycopg.IntegrityError, psycopg.errors.ProgramLimitExceeded)

_TYPES = {
    "event": (WHOLE, WHOLE, WHOLE, TEXT, WHOLE, TEXT, BYTES, WHOLE),
    "outcome": (WHOLE, WHOLE, TEXT, WHOLE, TEXT, REAL, WHOLE, WHOLE, TEXT, TEXT, TEXT, WHOLE),
    "head": (WHOLE,) * 11,
    "early": (WHOLE, TEXT, WHOLE, TEXT, WHOLE),
    "snapshot": (WHOLE, WHOLE, BYTES, WHOLE),
    "tally": (WHOLE, TEXT, WHOLE),
    "loop": (WHOLE, TEXT, TEXT, BYTES, WHOLE, WHOLE),
}


def _columns(names: Sequence[str], table: str = "") -> str:
    return ", ".join(f"{table}.{name}" if table else name for name in names)


def _replacing(names: Sequence[str], key: str) -> str:
    """Return what an INSERT does with rows that are there; it finds them by their key, whatever the planner knows."""
    columns = ", ".join(f"{name} = excluded.{name}" for name in names if name not in key.split(", "))
    return f"ON CONFLICT ({key}) DO UPDATE SET {columns}"


# ---- reading: a subquery with a limit for each wanted row is looked up in the one index that fits, never joined

_EVENT = f"SELECT {_columns(encoding.EVENT)} FROM event WHERE loop = $1 AND seq"
_OUTCOME = f"SELECT {_columns(encoding.OUTCOME)} FROM outcome"
_OWN_ROW = f"""LEFT JOIN LATERAL (
        SELECT {_columns(encoding.EVENT)} FROM event WHERE loop = o.loop AND seq = o.seq LIMIT 1) AS e ON true"""
_BOTH = f"SELECT {_columns(encoding.OUTCOME, 'o')}, {_columns(encoding.EVENT, 'e')} FROM"

ENTER: Final = Statement(
    f"""SELECT (SELECT number FROM version), {_columns(encoding.HEAD)} FROM head
    WHERE loop = ANY ($1) ORDER BY loop FOR UPDATE""",
    ARRAYS[WHOLE],
)
ROWS_OF_OTHERS: Final = Statement(
    f"""SELECT {_columns(encoding.EVENT, "e")} FROM {unnest(WHOLE, WHOLE)} AS w (loop, after)
    CROSS JOIN LATERAL (
        SELECT {_columns(encoding.EVENT)} FROM event
        WHERE loop = w.loop AND seq > w.after ORDER BY seq LIMIT {MOST}) AS e
    ORDER BY e.loop, e.seq""",
    ARRAYS[WHOLE],
    ARRAYS[WHOLE],
)
BY_EVENT: Final = Statement(
    f"""{_BOTH} {unnest(WHOLE, TEXT)} AS w (loop, event)
    CROSS JOIN LATERAL ({_OUTCOME} WHERE loop + 0 = w.loop AND event = w.event LIMIT 1) AS o {_OWN_ROW}""",
    ARRAYS[WHOLE],
    ARRAYS[TEXT],
)
BY_DUE: Final = Statement(
    f"""{_BOTH} {unnest(WHOLE, WHOLE, WHOLE)} AS w (loop, due, most)
    CROSS JOIN LATERAL (
        {_OUTCOME} WHERE loop + 0 = w.loop AND due <= w.due ORDER BY loop + 0, due, t LIMIT w.most) AS o {_OWN_ROW}
    ORDER BY o.loop, o.due, o.t""",
    *(ARRAYS[WHOLE],) * 3,
)
BY_STEP: Final = Statement(f"{_BOTH} ({_OUTCOME} WHERE loop = $1 AND t = $2) AS o {_OWN_ROW}", WHOLE, WHOLE)
NEXT_STEPS: Final = Statement(
    f"{_BOTH} ({_OUTCOME} WHERE loop = $1 AND t > $2 ORDER BY loop, t LIMIT $3) AS o {_OWN_ROW} ORDER BY o.t",
    *(WHOLE,) * 3,
)
ROW: Final = Statement(f"{_EVENT} = $2", WHOLE, WHOLE)
PICKED: Final = Statement(
    f"""SELECT {_columns(encoding.EVENT, "e")} FROM {unnest(WHOLE)} AS w (seq)
    CROSS JOIN LATERAL (SELECT {_columns(encoding.EVENT)} FROM event WHERE loop = $2 AND seq = w.seq LIMIT 1) AS e""",
    ARRAYS[WHOLE],
    WHOLE,
)
HEARD: Final = Statement(
    f"SELECT {_columns(encoding.EVENT)} FROM event WHERE loop + 0 = $1 AND t = $2 AND kind <> 'decide' ORDER BY seq",
    WHOLE,
    WHOLE,
)
ROWS: Final = Statement(f"{_EVENT} > $2 ORDER BY loop, seq LIMIT $3", WHOLE, WHOLE, WHOLE)
EARLY: Final = Statement(
    f"SELECT {_columns(encoding.EARLY)} FROM early WHERE loop = $1 AND event = $2 ORDER BY id", WHOLE, TEXT
)
SNAPSHOT: Final = Statement(f"SELECT {_columns(encoding.SNAPSHOT)} FROM snapshot WHERE loop = $1", WHOLE)
TALLY: Final = Statement(f"SELECT {_columns(encoding.TALLY)} FROM tally WHERE loop = $1", WHOLE)
HEAD: Final = Statement(f"SELECT {_columns(encoding.HEAD)} FROM head WHERE loop = $1", WHOLE)
_BY_NAME = Statement(f"SELECT {_columns(encoding.LOOP)} FROM loop WHERE name = $1", TEXT)
_BY_ID = Statement(f"SELECT {_columns(encoding.LOOP)} FROM loop WHERE id = $1", WHOLE)
_BASE = Statement("SELECT base FROM loop WHERE id = $1", WHOLE)
_VERSION = Statement("SELECT number FROM version")
NEEDED: Final = Statement(
    f"""SELECT w.t FROM {unnest(WHOLE)} AS w (t) CROSS JOIN LATERAL (
        SELECT FROM event WHERE loop + 0 = $2 AND t = w.t AND kind <> 'decide' AND seq > $3 LIMIT 1) AS e""",
    ARRAYS[WHOLE],
    WHOLE,
    WHOLE,
)

# ---- writing

NEW_EVENTS: Final = insert("event", encoding.EVENT, _TYPES["event"])
NEW_OUTCOMES: Final = insert("outcome", encoding.OUTCOME, _TYPES["outcome"])
CHANGED: Final = insert("outcome", encoding.OUTCOME, _TYPES["outcome"], _replacing(encoding.OUTCOME, "loop, t"))
NEW_EARLY: Final = insert("early", encoding.EARLY, _TYPES["early"])
NEW_HEADS: Final = insert("head", encoding.HEAD, _TYPES["head"], _replacing(encoding.HEAD, "loop"))
NEW_SNAPSHOTS: Final = insert("snapshot", encoding.SNAPSHOT, _TYPES["snapshot"], _replacing(encoding.SNAPSHOT, "loop"))
NEW_TALLIES: Final = insert("tally", encoding.TALLY, _TYPES["tally"], _replacing(encoding.TALLY, "loop"))
_NEW_LOOP = Statement(f"INSERT INTO loop ({_columns(encoding.LOOP)}) VALUES ($1, $2, $3, $4, $5, $6)", *_TYPES["loop"])
_REMAKE = Statement(
    "UPDATE loop SET about = $2, start = $3, base = $4, made = $5 WHERE id = $1", WHOLE, TEXT, BYTES, WHOLE, WHOLE
)
ERASE = Statement(
    "UPDATE event SET fields = $3, x = NULL, crc = $4 WHERE loop = $1 AND seq = $2", WHOLE, WHOLE, TEXT, WHOLE
)


def _deleting(table: str, found: str, n: int) -> Statement:
    """Return the statement that deletes the rows whose places a query of n numbers finds."""
    return Statement(f"DELETE FROM {table} WHERE ctid = ANY (ARRAY({found})) RETURNING loop", *(WHOLE,) * n)


def _deleting_each(table: str, where: str, *types: Type) -> Statement:
    """Return the statement that deletes the rows of each of some keys."""
    keys = types or (WHOLE,)
    names = "loop, event" if types else "key"
    return Statement(
        f"""DELETE FROM {table} WHERE ctid = ANY (ARRAY(
            SELECT found.ctid FROM {unnest(*keys)} AS w ({names})
            CROSS JOIN LATERAL (SELECT ctid FROM {table} WHERE {where} OFFSET 0) AS found))""",
        *(ARRAYS[each] for each in keys),
        *(() if types else (WHOLE,)),
    )


ARRIVED: Final = _deleting_each("early", "loop = w.loop AND event = w.event", WHOLE, TEXT)
DROP_EARLY: Final = _deleting(
    "early", "SELECT ctid FROM early WHERE loop + 0 = $1 AND until <= $2 ORDER BY loop + 0, until, id LIMIT $3", 3
)
DROP_HEARD: Final = _deleting_each("event", "loop + 0 = $2 AND t = w.key AND kind <> 'decide'")
DROP_OUTCOMES: Final = _deleting_each("outcome", "loop = $2 AND t = w.key")
DROP_EVENTS: Final = _deleting_each("event", "loop = $2 AND seq = w.key")
SOME: Final = {  # of a loop's rows, in slices
    table: _deleting(table, f"SELECT ctid FROM {table} WHERE loop = $1 ORDER BY loop, {key} LIMIT $2", 2)
    for table, key in (("event", "seq"), ("outcome", "t"), ("early", "event"))
}
_REST = tuple(
    Statement(f"DELETE FROM {table} WHERE {key} = $1", WHOLE)
    for table, key in (("snapshot", "loop"), ("tally", "loop"), ("head", "loop"), ("loop", "id"))
)
_DROP_SNAPSHOT = _REST[0]

# who has not found a name may make it, with this number, and nobody else meanwhile
_CLAIM = Statement(
    """SELECT CASE WHEN NOT EXISTS (SELECT FROM loop WHERE name = $1)
        THEN pg_advisory_xact_lock(hashtextextended('armlet: ' || current_schema() || ' ' || $1, 0)) END""",
    TEXT,
)
_NEW_ID = Statement("SELECT nextval('loop_id_seq') WHERE NOT EXISTS (SELECT FROM loop WHERE name = $1)", TEXT)
_ANY_ID = Statement("SELECT nextval('loop_id_seq')")
# whoever was stopped while the server was writing to him, or after half of what he had to say, is not idle, so that the
# server does not end his session
_END_STOPPED = Statement(
    """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE pid IN (SELECT pid FROM pg_locks WHERE relation = 'head'::regclass) AND pid <> pg_backend_pid()
        AND state = 'active' AND wait_event IN ('ClientRead', 'ClientWrite') AND usename = current_user
        AND query_start < now() - current_setting('idle_in_transaction_session_timeout')::interval"""
)
_SAVEPOINT = Statement("SAVEPOINT piece")
_BACK = Statement("ROLLBACK TO piece")
_RELEASE = Statement("RELEASE piece")
_CONTROL = (BEGIN, _SAVEPOINT, _BACK, _RELEASE)


def read_page(connection: Connection, loop: int, after: int) -> list[Row]:
    """Read the next rows, a bounded number."""
    [found] = connection.run([ROWS(loop, after, PAGE)])
    return [encoding.read_event(each) for each in found]


def _by_loop(found: Rows) -> dict[int, Rows]:
    return {loop: list(each) for loop, each in groupby(found, key=itemgetter(0))}


class PostgreSQLSession:
    """A transaction of one connection."""

    def __init__(self, connection: Connection, schema: str) -> None:
        self._connection, self._schema = connection, schema
        self._waiting: list[Query] = [BEGIN()]  # is sent with the next question
        self._has_begun = self._has_written = self._is_locked_out = False
        self._ids: list[int] = []  # for loops that were not found
        self._made: dict[int, int] = {}  # check values of the records of loops that were entered

    def _ask(self, *queries: Query) -> list[Rows]:
        """Send what waits and then questions, in one round trip; return what the questions have found."""
        waiting, self._waiting = self._waiting, []
        self._has_begun = True
        try:
            return self._connection.run([*waiting, *queries])[len(waiting) :]
        except (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled):
            self._is_locked_out = True
            raise

    def _one(self, query: Query) -> Any:
        [found] = self._ask(query)
        return found[0] if found else None

    def _put(self, *queries: Query) -> None:
        """Write with the next question."""
        self._has_written = True
        self._waiting += queries

    # ---- its end

    def commit(self) -> None:
        """Write what waits and end the transaction; if its answer is lost, nobody knows how it ended."""
        if not self._has_begun and not self._has_written:
            return
        if self._connection.is_stale:
            raise psycopg.OperationalError("the database has ended the connection before anything was committed")
        try:
            self._ask(COMMIT())
        except psycopg.Error as error:
            if self._connection.is_broken and self._has_written:
                raise UncertainError(
                    f"the database has not answered whether this was kept ({error}); repeat it with the same event"
                ) from error
            raise

    def roll_back(self) -> None:
        """Undo everything; who has waited for a loop in vain ends the session of anyone who was stopped with it."""
        if self._has_begun and not self._connection.is_broken:
            try:
                self._connection.run([ROLLBACK(), *([_END_STOPPED()] if self._is_locked_out else [])])
            except psycopg.Error:
                self._connection.close()  # which undoes it as well

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        if self._has_unsent():
            self._ask()  # or what is refused of it would be refused inside
        piece = _SAVEPOINT()
        self._waiting.append(piece)
        try:
            yield
            self._waiting.append(_RELEASE())
            if self._has_unsent():
                self._ask()
        except BaseException as error:
            self._undo(piece)
            if isinstance(error, REFUSALS):
                raise StoreError(f"nothing of this call was kept: {error}") from error
            raise

    def _has_unsent(self) -> bool:
        return any(statement not in _CONTROL for statement, _ in self._waiting)

    def _undo(self, piece: Query) -> None:
        is_unsent = [each is piece for each in self._waiting]
        if any(is_unsent):
            del self._waiting[is_unsent.index(True) :]
        else:
            self._waiting = [_BACK(), _RELEASE()]

    # ---- what a batch needs

    def enter(self, wants: Sequence[Want]) -> Sequence[Entered | None]:
        behind = [want for want in wants if want.after is not None]
        named = [(want.loop, event) for want in wants for event in want.events]
        due = [want for want in wants if want.due is not None]
        found = iter(
            self._ask(
                ENTER([want.loop for want in wants]),
                *([_rows_of_others(behind)] if behind else []),
                *([_by_event(named)] if named else []),
                *([_by_due(due)] if due else []),
            )
        )
        heads = {each[1]: each for each in next(found)}
        rows, decided, over = (_by_loop(next(found)) if asked else {} for asked in (behind, named, due))
        return [
            self._found(
                heads.get(want.loop), rows.get(want.loop, []), decided.get(want.loop, []), over.get(want.loop, [])
            )
            for want in wants
        ]

    def _found(self, found: Sequence[Any] | None, rows: Rows, decided: Rows, due: Rows) -> Entered | None:
        if found is None:
            return None
        check_version(found[0], self._schema, {VERSION})
        head, self._made[found[1]] = encoding.read_head(found[1:])
        return Entered(
            head,
            [encoding.read_event(each) for each in rows],
            [encoding.read_decided(each) for each in decided],
            [encoding.read_decided(each) for each in due],
        )

    def write(self, drafts: Sequence[Draft]) -> None:
        events, new, changed, early, heads, snapshots, tallies = _values(drafts, self._made)
        writes = (
            (NEW_EVENTS, events),
            (NEW_OUTCOMES, new),
            (CHANGED, changed),
            (ARRIVED, [(draft.loop, event) for draft in drafts for event, _ in draft.arrived]),
            (NEW_EARLY, early),
            (NEW_SNAPSHOTS, snapshots),
            (NEW_TALLIES, tallies),
            (NEW_HEADS, heads),
        )
        self._put(*(statement(*zip(*rows, strict=True)) for statement, rows in writes if rows))

    # ---- reading

    def find(self, name: str) -> LoopRecord | None:
        [(version,)], _, found, new = self._ask(_VERSION(), _CLAIM(name), _BY_NAME(name), _NEW_ID(name))
        check_version(version, self._schema, {VERSION})
        self._ids += [each[0] for each in new]
        return encoding.read_record(found[0]) if found else None

    def decided(self, loop: int, events: Sequence[str]) -> Sequence[Decided]:
        [found] = self._ask(_by_event([(loop, event) for event in events]))
        return [encoding.read_decided(each) for each in found]

    def due(self, loop: int, now: int, most: int) -> Sequence[Decided]:
        [found] = self._ask(BY_DUE([loop], [now], [most]))
        return [encoding.read_decided(each) for each in found]

    def early(self, loop: int, event: str) -> Sequence[Early]:
        [found] = self._ask(EARLY(loop, event))
        return [encoding.read_early(each) for each in found]

    def row(self, loop: int, seq: int) -> Row | None:
        found = self._one(ROW(loop, seq))
        return None if found is None else encoding.read_event(found)

    def pick(self, loop: int, seqs: Sequence[int]) -> Sequence[Row]:
        [found] = self._ask(PICKED(seqs, loop))
        return [encoding.read_event(each) for each in found]

    def heard(self, loop: int, t: int) -> Sequence[Row]:
        [found] = self._ask(HEARD(loop, t))
        return [encoding.read_event(each) for each in found]

    def rows(self, loop: int, after: int) -> Iterator[Row]:
        self._ask()
        while page := read_page(self._connection, loop, after):
            yield from page
            after = page[-1].seq

    def snapshot(self, loop: int) -> tuple[int, bytes] | None:
        return encoding.read_snapshot(self._one(SNAPSHOT(loop)))

    def tally(self, loop: int) -> str | None:
        return encoding.read_tally(self._one(TALLY(loop)))

    # ---- maintenance

    def create(self, name: str, about: str, start: bytes, clock: int) -> LoopRecord:
        loop = self._ids.pop() if self._ids else self._one(_ANY_ID())[0]
        made = self._made[loop] = encoding.made_value(loop, name, about, start, 0)
        self._put(_NEW_LOOP(loop, name, about, start, 0, made), self._new_head(loop, Head(clock=clock)))
        return LoopRecord(id=loop, name=name, about=about, start=start)

    def describe(self, loop: int, about: str) -> None:
        [found], head = self._ask(_BY_ID(loop), HEAD(loop))
        self._remake(replace(encoding.read_record(found), about=about), self._read_head(loop, head))

    def rebase(self, loop: int, seq: int, model: bytes) -> None:
        [found], head = self._ask(_BY_ID(loop), HEAD(loop))
        self._remake(replace(encoding.read_record(found), start=model, base=seq), self._read_head(loop, head))
        self._put(_DROP_SNAPSHOT(loop))

    def _remake(self, record: LoopRecord, head: Head) -> None:
        loop = record.id
        made = encoding.made_value(loop, record.name, record.about, record.start, record.base)
        self._made[loop] = made
        self._put(_REMAKE(loop, record.about, record.start, record.base, made))
        self._put(self._new_head(loop, head._replace(epoch=head.epoch + 1)))

    def _read_head(self, loop: int, found: Rows) -> Head:
        head, self._made[loop] = encoding.read_head(found[0] if found else None)
        return head

    def _new_head(self, loop: int, head: Head) -> Query:
        values = encoding.head_values(loop, head, self._made[loop])
        return NEW_HEADS(*([value] for value in values))

    def _count(self, loop: int, head: Head, outcomes: int = 0, early: int = 0) -> None:
        self._put(self._new_head(loop, head._replace(outcomes=head.outcomes + outcomes, early=head.early + early)))

    def erase(self, loop: int, t: int) -> None:
        found, head = self._ask(BY_STEP(loop, t), HEAD(loop))
        if not found:
            raise UnknownNameError(t)
        row = encoding.read_decided(found[0]).row
        fields = {name: value for name, value in row.fields.items() if name != "event"}
        *_, text, _, crc = encoding.event_values(loop, row._replace(fields=fields, x=None))
        self._put(ERASE(loop, row.seq, text, crc))
        self._drop(loop, self._read_head(loop, head), [t])

    def _drop(self, loop: int, head: Head, steps: Sequence[int]) -> None:
        """Delete outcomes, and all rows about decisions but their own."""
        self._put(DROP_HEARD(steps, loop), DROP_OUTCOMES(steps, loop))
        self._count(loop, head, outcomes=-len(steps))

    def drop_early(self, loop: int, until: int, most: int) -> int:
        self._has_written = True
        gone, head = self._ask(DROP_EARLY(loop, until, most), HEAD(loop))
        self._count(loop, self._read_head(loop, head), early=-len(gone))
        return len(gone)

    def prune(self, loop: int, before: int, after: int, most: int) -> Pruned:
        [(base,)], rows, head = self._ask(_BASE(loop), NEXT_STEPS(loop, after, most), HEAD(loop))
        found = [encoding.read_decided(each) for each in rows]
        spare = self._spare(loop, base, [each for each in found if _is_old(each, before, base)])
        gone = [each for each in spare if each.pending.phase != "open"]
        if gone:
            self.drop_rows(loop, [each.row.seq for each in gone])
            self._drop(loop, self._read_head(loop, head), [each.pending.t for each in gone])
        waiting = tuple(each for each in spare if each.pending.phase == "open")
        return Pruned(len(gone), found[-1].pending.t if len(found) == most else None, waiting)

    def _spare(self, loop: int, base: int, old: Sequence[Decided]) -> list[Decided]:
        """Leave out decisions that rows after the base are about."""
        if not old:
            return []
        [needed] = self._ask(NEEDED([each.pending.t for each in old], loop, base))
        return [each for each in old if (each.pending.t,) not in needed]

    def drop_rows(self, loop: int, seqs: Sequence[int]) -> None:
        self._put(DROP_EVENTS(seqs, loop))

    def delete(self, loop: int, most: int) -> bool:
        self._has_written = True
        outcomes, early, head = self._ask(SOME["outcome"](loop, most), SOME["early"](loop, most), HEAD(loop))
        if outcomes or early:  # before the rows that they are about: others may look meanwhile
            self._count(loop, self._read_head(loop, head), outcomes=-len(outcomes), early=-len(early))
            return True
        if self._ask(SOME["event"](loop, most))[0]:
            return True
        self._put(*(statement(loop) for statement in _REST))
        return False

    def shrink(self, most: int) -> bool:
        return most < 0  # never: the database uses what is free again, and gives it back by itself


def _rows_of_others(wants: Sequence[Want]) -> Query:
    return ROWS_OF_OTHERS([want.loop for want in wants], [want.after for want in wants])


def _by_event(named: Sequence[tuple[int, str]]) -> Query:
    named = sorted(set(named))  # grouped by loop, and in the order of the index
    return BY_EVENT([loop for loop, _ in named], [event for _, event in named])


def _by_due(wants: Sequence[Want]) -> Query:
    return BY_DUE([want.loop for want in wants], [want.due for want in wants], [want.most for want in wants])


def _values(drafts: Sequence[Draft], made: dict[int, int]) -> tuple[list[encoding.Values], ...]:
    """Return what drafts write: events, new outcomes, changed ones, early rewards, heads, snapshots, tallies."""
    return (
        [encoding.event_values(draft.loop, row) for draft in drafts for row in draft.rows],
        [encoding.outcome_values(draft.loop, each) for draft in drafts for each in draft.new.values()],
        [encoding.outcome_values(draft.loop, each) for draft in drafts for each in draft.changed.values()],
        [encoding.early_values(draft.loop, each) for draft in drafts for each in draft.early],
        [encoding.head_values(draft.loop, draft.head, made[draft.loop]) for draft in drafts],
        [encoding.snapshot_values(draft.loop, *draft.snapshot) for draft in drafts if draft.snapshot is not None],
        [encoding.tally_values(draft.loop, draft.tally) for draft in drafts if draft.tally is not None],
    )


def _is_old(decided: Decided, before: int, base: int) -> bool:
    outcome, row = decided
    return outcome.due is None and row.ts < before and not row.fields.get("explored", True) and row.seq <= base
