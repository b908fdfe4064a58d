"""The proof of a loop: its rows are read and played again from its start model, and compared with all that is kept.

It reads one moment of a ledger, while others write, in bounded memory: O(rows) time, less than three times that of a
replay. What is found is named by its row; a loop that is proved has the digest of its state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Final, TypeVar

from armlet.cast.cast import Cast
from armlet.cast.model import read_cast
from armlet.errors import ModelFileError, StoreError, UnknownNameError, choices
from armlet.parallel import Progress, silent
from armlet.stores.folds import Tally
from armlet.stores.ledger import Head, LedgerReader, LoopRecord, OutcomeRecord, Pending, Row, Usage, View
from armlet.stores.rows.decisions import checked, had_of
from armlet.stores.rows.replay import Replay
from armlet.stores.rows.tables import table_of
from armlet.stores.terms import Terms
from armlet.types import Policy

WAY_OUT: Final = "go back to a backup"
OFTEN: Final = 5000  # rows between two reports of progress

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """A loop whose rows are whole and lead to what it knows.

    Examples
    --------
    >>> print(Verified(name="homepage", digest="0a1b", rows=12, replayed=10, outcomes=6, early=0, snapshot=8))
    homepage: ok, 12 rows, 10 of them played again, 6 outcomes, the snapshot at row 8 is the same, digest 0a1b
    """

    name: str
    digest: str  # of the state that the rows lead to
    rows: int
    replayed: int  # rows after the loop's start model; those before are only read
    outcomes: int
    early: int
    snapshot: int | None  # the row at which it was compared with the replay; None if there is none

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain JSON types."""
        return asdict(self)

    def __str__(self) -> str:
        snapshot = "no snapshot" if self.snapshot is None else f"the snapshot at row {self.snapshot:,} is the same"
        return (
            f"{self.name}: ok, {self.rows:,} rows, {self.replayed:,} of them played again, {self.outcomes:,} outcomes, "
            f"{snapshot}, digest {self.digest}"
        )


def find_record(records: Iterable[LoopRecord], name: str) -> LoopRecord:
    """Return the loop of a name, or refuse one that is not there.

    Examples
    --------
    >>> find_record([], "homepage")
    Traceback (most recent call last):
    armlet.errors.UnknownNameError: there is no loop 'homepage': the store is empty
    """
    by_name = {record.name: record for record in records}
    if name not in by_name:
        fix = f"; {choices(name, by_name)}" if by_name else ": the store is empty"
        raise UnknownNameError(f"there is no loop {name!r}{fix}")
    return by_name[name]


def verify(ledger: LedgerReader, name: str, progress: Progress = silent, *, policy: Policy | None = None) -> Verified:
    """Prove a loop by a full replay, next to a process that writes; raise a StoreError that says what is damaged.

    Parameters
    ----------
    ledger
        Where the loop is kept.
    name
        Its name.
    progress
        Told how many rows and outcomes are read, of how many.
    policy
        The policy, if it is not one of Armlet's own.

    Examples
    --------
    >>> import armlet
    >>> from pathlib import Path
    >>> from armlet.stores.sqlite import SQLiteReader
    >>> with armlet.open_store("shop.db") as store:
    ...     loop = store.loop("homepage", arms=["a", "b"], dim=1, policy=armlet.Algorithm1(p=8), seed=1)
    ...     _ = loop.decide([1.0], event="order-17")
    ...     verify(SQLiteReader(Path("shop.db")), "homepage").digest == loop.model().digest()
    True
    """
    with ledger.view() as view:
        view.check()
        return verify_loop(view, find_record(view.loops(), name), progress, policy=policy)


def verify_loop(
    view: View, record: LoopRecord, progress: Progress = silent, *, policy: Policy | None = None
) -> Verified:
    """Prove one loop of a view, whose tables were checked."""
    head, usage = view.head(record.id), view.usage(record.id)
    if head is None:
        raise StoreError(f"the head of loop {record.name!r} is missing; {WAY_OUT}")
    _check_counts(head, usage)
    if (tally := view.tally(record.id)) is not None:
        Tally.from_json(tally)
    reading, tables = _Reading(progress, usage.rows + usage.outcomes), _Tables(view, record.id)
    _check_before(tables.through(reading.through(_upto(view.rows(record.id, 0), record.base))))
    cast, snapshot = _replay(view, record, head, lambda rows: tables.through(reading.through(rows)), policy)
    if cast.live.t != head.clock:
        raise StoreError(f"the clock stands at {head.clock}, but rows lead to step {cast.live.t}; {WAY_OUT}")
    for outcome in reading.through(view.outcomes(record.id)):
        _check_outcome(outcome)
    reading.end()
    return Verified(
        name=record.name,
        digest=cast.digest(),
        rows=usage.rows,
        replayed=head.seq - record.base,
        outcomes=usage.outcomes,
        early=usage.early,
        snapshot=snapshot,
    )


class _Reading:
    """How much of a loop has been read."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0
        progress(0, total)

    def through(self, items: Iterable[T]) -> Iterator[T]:
        """Yield what is read, and report it now and then."""
        for each in items:
            yield each
            self._done += 1
            if self._done % OFTEN == 0 and self._done < self._total:
                self._progress(self._done, self._total)

    def end(self) -> None:
        """Report that all is read."""
        self._progress(self._total, self._total)


def _check_counts(head: Head, usage: Usage) -> None:
    for what in ("outcomes", "early"):
        expected, found = getattr(head, what), getattr(usage, what)
        if expected != found:
            words = "outcomes" if what == "outcomes" else "early rewards"
            raise StoreError(f"there are {found:,} {words}, but {expected:,} were written; {WAY_OUT}")
    if head.tallied > head.seq:
        raise StoreError(f"{head.tallied:,} rows are counted, but {head.seq:,} were written; {WAY_OUT}")


def _upto(rows: Iterable[Row], last: int) -> Iterator[Row]:
    for row in rows:
        if row.seq > last:
            return
        yield row


def _check_before(rows: Iterable[Row]) -> None:
    """Check the rows that the start model has learned; some of these may be erased or pruned."""
    for row in rows:
        checked(row)


def _replay(
    view: View,
    record: LoopRecord,
    head: Head,
    through: Callable[[Iterable[Row]], Iterator[Row]],
    policy: Policy | None,
) -> tuple[Cast, int | None]:
    """Play all rows after the start model; return where that leads, and the row of the snapshot on the way."""
    loop, last = record.id, record.base
    cast = read_cast(record.start, policy=policy)
    replay = Replay(cast, lambda seq: view.row(loop, seq), Terms.read(record).carry)
    snapshot = _snapshot(view, record, head)
    if snapshot is not None:
        rows = through(_upto(view.rows(loop, last), snapshot[0]))
        last = replay.play(_as_wide(rows, cast), last)
        _check_last(last, snapshot[0])
        _compare(cast, snapshot, policy)
    last = replay.play(_as_wide(through(view.rows(loop, last)), cast), last)
    _check_last(last, head.seq)
    return cast, None if snapshot is None else snapshot[0]


def _as_wide(rows: Iterable[Row], cast: Cast) -> Iterator[Row]:
    """Yield rows whose contexts have a value for each feature that the bandit has when they come."""
    live = cast.live
    wide = getattr(live.settings, "action_dim", 0)  # the features of an action follow those of a context
    for row in rows:
        if row.x is not None and row.kind != "actions" and len(row.x) != 8 * (live.settings.dim + wide):
            values = len(row.x) // 8
            raise StoreError(
                f"row {row.seq} of the loop has a context of {values} values, where there are "
                f"{live.settings.dim + wide} features; {WAY_OUT}"
            )
        yield row


class _Tables:
    """The tables of a loop, and whether all that rows name are there."""

    def __init__(self, view: View, loop: int) -> None:
        self._find = partial(view.row, loop)
        self._hashes: dict[int, str] = {}  # by row

    def through(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield rows; each table is read whole, and each decision is made among the actions of one."""
        for row in rows:
            if row.kind == "actions":
                self._hashes[row.seq] = table_of(row, self._find).table.hash
            elif row.kind == "decide" and "table" in row.fields:
                reference = row.fields["table"], row.fields["actions"]
                if self._hashes.get(reference[0]) != reference[1]:
                    raise StoreError(
                        f"row {row.seq} of the loop names row {reference[0]}, which is not its table; {WAY_OUT}"
                    )
            yield row


def _snapshot(view: View, record: LoopRecord, head: Head) -> tuple[int, bytes] | None:
    found = view.snapshot(record.id)
    if found is None and view.usage(record.id).snapshots:
        raise StoreError("the snapshot is damaged: its checksum is wrong; rows are read in its place, but see the disk")
    if found is not None and not record.base <= found[0] <= head.seq:
        raise StoreError(
            f"the snapshot is of row {found[0]}, but rows are from {record.base + 1} to {head.seq}; {WAY_OUT}"
        )
    return found


def _check_last(last: int, expected: int) -> None:
    if last < expected:
        raise StoreError(f"row {last + 1} of the loop is missing; {WAY_OUT}")
    if last > expected:
        raise StoreError(f"row {last} of the loop is not one that was written: {expected} is the last; {WAY_OUT}")


def _compare(cast: Cast, snapshot: tuple[int, bytes], policy: Policy | None) -> None:
    try:
        kept = read_cast(snapshot[1], policy=policy).digest()
    except ModelFileError as error:
        raise StoreError(f"the snapshot at row {snapshot[0]} is damaged: {error}") from error
    if kept != cast.digest():
        raise StoreError(
            f"the snapshot at row {snapshot[0]} has digest {kept}, but the rows up to it lead to {cast.digest()}; "
            f"{WAY_OUT}"
        )


# ---- outcomes

_PHASES: Final = {
    "reward": ("open", "deferred"),
    "learn": ("learned", "default"),
    "correct": ("learned",),
    "expire": ("expired",),
    "activate": ("open",),
}
_VALUES: Final = {"learn": "reward", "correct": "new_reward"}


def _check_outcome(outcome: OutcomeRecord) -> None:
    """Compare what is known of a decision's reward with the last row that says so: a reward would count again."""
    pending, row, last = outcome
    checked(row, "decide")
    if last is None:
        phase = "deferred" if "deferred" in row.fields else "open"
        holds = pending.phase == phase and pending.value is None and pending.parts is None
    elif pending.parts is not None or isinstance(last.fields.get(_VALUES.get(last.kind, "reward")), dict):
        holds = pending.value is None and _holds_parts(pending, checked(last))
    else:
        checked(last)
        value = last.fields[_VALUES[last.kind]] if last.kind in _VALUES else pending.value
        holds = pending.phase in _PHASES.get(last.kind, (pending.phase,)) and pending.value == value
    if not holds:
        what = "no row says so" if last is None else f"row {last.seq} is a {last.kind!r}"
        raise StoreError(
            f"the outcome of step {pending.t} of the loop is {pending.phase!r} with the value {pending.reward}, but "
            f"{what}; {WAY_OUT}"
        )


def _holds_parts(pending: Pending, last: Row) -> bool:
    """Whether the parts of an outcome are those that the bandit has after the last row, or wait for it."""
    fields, parts = last.fields, pending.parts or {}
    if last.kind == "reward":
        held = {name for name, part in parts.items() if part.phase == "held"}
        return pending.phase == "open" and held >= fields["reward"].keys()
    if last.kind == "bill":
        return bool(pending.given == fields.get("had", {})) and _holds_bill(pending, fields["cost"])
    given = {} if last.kind == "forget" else had_of(fields, _VALUES.get(last.kind)) or {}
    if last.kind in ("expire", "forget"):
        return pending.phase == "expired" and pending.given == given
    is_part, is_late = "waits" in fields, "expired" in fields
    phases = ("expired", "open") if is_part and is_late else ("open",) if is_part else ("learned", "default")
    return pending.phase in phases and pending.given == given


def _holds_bill(pending: Pending, cost: float) -> bool:
    """Whether an outcome has a bill: as such, as the cost that the bandit has, or until a cost that is held counts."""
    if pending.billed is not None:
        return pending.billed == cost
    return any(
        part.phase == "held" or (part.phase == "learned" and part.value == cost)
        for part in (pending.parts or {}).values()
    )
