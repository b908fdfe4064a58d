"""The rows of a loop: decisions as rows and back, rows as events of a log, and the state that they lead to.

What is learned from a row is what would be learned from the decision. The state of a loop is its start model and its
rows, one after the other; a snapshot saves reading the first. Any reader of an `armlet.Log` reads a `LoopLog`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from types import NoneType
from typing import Any

import numpy as np

from armlet.bandit import Bandit, from_bytes
from armlet.errors import LogError, ModelFileError, StoreError
from armlet.kernel import Decision
from armlet.log.events import FORMAT, SCHEMA, Event
from armlet.log.replaying import replay
from armlet.model_file import describe
from armlet.stores.ledger import Ledger, LoopRecord, Row, Transaction
from armlet.types import Policy

INTERNAL = ("of",)  # what only a store needs
LONGEST = 19  # digits of a step

_ABOUT = {"of": int, "id": str}
_FIELDS: Mapping[str, Mapping[str, type | tuple[type, ...]]] = {
    "decide": {"id": str, "arm": (str, int), "explored": bool, "eligible": (list, NoneType)},
    "reward": {**_ABOUT, "reward": float},
    "learn": {**_ABOUT, "reward": float},
    "forget": {**_ABOUT, "reward": float},
    "expire": _ABOUT,
    "correct": {**_ABOUT, "old_reward": float, "new_reward": float},
    "add_arm": {"arm": (str, int)},
    "retire_arm": {"arm": (str, int)},
    "restore_arm": {"arm": (str, int)},
}


def fields_of(decision: Decision, event: str) -> dict[str, Any]:
    """Return all of a decision but its step and context, which a row has of its own, in plain JSON types."""
    fields = decision.to_dict()
    del fields["t"], fields["x"]
    return {**fields, "event": event}


def checked(row: Row, kind: str | None = None) -> Row:
    """Return a row whose fields are what its kind has; an editor of a file can mend a checksum too.

    Examples
    --------
    >>> checked(Row(seq=9, ts=5, kind="learn", t=1, fields={"of": 1}))
    Traceback (most recent call last):
    armlet.errors.StoreError: row 9 of the loop is not a valid 'learn': id is missing, or is not str; go back ...
    """
    if row.kind not in _FIELDS:
        raise StoreError(
            f"row {row.seq} of the loop is of kind {row.kind!r}, which this version of Armlet does not know"
        )
    for name, types in _FIELDS[kind or row.kind].items():
        if not isinstance(row.fields.get(name, row), types):
            what = getattr(types, "__name__", "such value")
            raise _damaged(row, kind or row.kind, f"{name} is missing, or is not {what}")
    if kind == "decide" and not all(isinstance(arm, (str, int)) for arm in row.fields["eligible"] or ()):
        raise _damaged(row, kind, "eligible has a value that is not an arm")
    return row


def context_of(row: Row) -> list[float] | None:
    """Return the context of a decision, unless it was erased."""
    if row.x is None:
        return None
    try:
        values: list[float] = np.frombuffer(row.x, dtype="<f8").tolist()
    except ValueError as error:
        raise _damaged(row, "decide", error) from error
    return values


def decision_of(row: Row, reward: float | None = None) -> Decision:
    """Return the decision of a row: pending, or with what was learned from it."""
    learned = {} if reward is None else {"reward": reward, "weight": 1.0}
    try:
        return Decision.from_dict({**row.fields, "t": row.t, "x": context_of(row), **learned})
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise _damaged(row, "decide", error) from error


def _damaged(row: Row, kind: str, why: object) -> StoreError:
    return StoreError(f"row {row.seq} of the loop is not a valid {kind!r}: {why}; go back to a backup")


# ---- as a log


class LoopLog:
    """The events of a loop, the start first; read again, and in bounded memory, each time.

    After rows were pruned or erased, what is left cannot be replayed from the first one on; from the model that the
    loop goes on from, it can: `replayable`.
    """

    def __init__(self, ledger: Ledger, record: LoopRecord, policy: Policy | None, after: int = 0) -> None:
        self._ledger, self._record, self._policy, self._after = ledger, record, policy, after

    @property
    def about(self) -> Mapping[str, Any]:
        """The fields of the start: arms, features, policy and the like, but not the seed."""
        head = {"seq": 0, "kind": "start", "at": 0, "format": FORMAT, "schema": SCHEMA, "loop": self._record.name}
        fields = describe(from_bytes(self._record.start, policy=self._policy)._model())
        if self._after != self._record.base:
            fields["digest"] = None  # the rows are older than the model that there is
        return {**head, **fields, "start_model": hashlib.sha256(self._record.start).hexdigest()}

    @property
    def replayable(self) -> LoopLog:
        """The events that go on from the loop's start model, and lead to what it knows."""
        return LoopLog(self._ledger, self._record, self._policy, self._record.base)

    @property
    def start(self) -> bytes:
        """The model that `replayable` goes on from. It holds the seed: keep it to yourself."""
        return self._record.start

    def __iter__(self) -> Iterator[Event]:
        yield dict(self.about)
        for seq, row in enumerate(self._ledger.rows(self._record.id, self._after), 1):
            yield event_of(row, seq)

    def find(self, decision: str) -> Event | None:
        """Find a decision by its id."""
        step = decision.partition("-")[0]
        row = self._ledger.decided(self._record.id, int(step)) if step.isdecimal() and len(step) < LONGEST else None
        return None if row is None or checked(row, "decide").fields["id"] != decision else event_of(row, row.seq)


def event_of(row: Row, seq: int) -> Event:
    """Return a row as an event with another number; a reward that waits for its window to close is a note.

    Examples
    --------
    >>> event_of(Row(seq=9, ts=5, kind="reward", t=1, fields={"of": 1, "id": "1-0f", "reward": 0.5}), 3)
    {'seq': 3, 'kind': 'note', 'at': 5, 'id': '1-0f', 'reward': 0.5}
    """
    head = {"seq": seq, "kind": row.kind, "at": row.ts}
    checked(row)
    fields = {name: value for name, value in row.fields.items() if name not in INTERNAL}
    if row.kind == "reward":
        return {**head, "kind": "note", "id": fields["id"], "reward": fields["reward"]}
    if row.kind == "decide":
        return {**head, "id": fields.pop("id"), "t": row.t, "x": context_of(row), **fields}
    return {**head, **fields}


# ---- replayed


class RowPast:
    """The decisions of a loop, read from its rows; none is decided again, since its context may be erased."""

    def __init__(self, tx: Transaction, loop: int, decided: Row | None = None) -> None:
        self._tx, self._loop, self._row = tx, loop, decided

    def decide(self, bandit: Bandit, event: Event) -> None:
        """Take the step of a decision."""
        if event["t"] is None:
            raise StoreError(f"row {event['seq']} of the loop is a decision without its step")
        bandit.replace(t=event["t"])
        bandit._begin_decision(event["arm"])

    def get(self, event: Event, reward: float | None = None) -> Decision:
        """Return the decision that a row is about, which has learned this reward if one is given."""
        row = self._row or self._tx.row(self._loop, event["of"])
        if row is None:
            raise StoreError(f"row {event['seq']} of the loop is about row {event['of']}, which is missing")
        return decision_of(row, reward)


def recover(tx: Transaction, record: LoopRecord, policy: Policy | None = None) -> tuple[Bandit, int, int]:
    """Return the bandit of a loop, the number of the last row in its snapshot, and that of the last row."""
    found = tx.snapshot(record.id)
    if found is not None and found[0] >= record.base:
        try:
            bandit = from_bytes(found[1], policy=policy)
            return bandit, found[0], _go_on(bandit, tx, record, found[0])
        except ModelFileError:
            pass  # a snapshot is only a cache: the rows say the same
    bandit = from_bytes(record.start, policy=policy)
    return bandit, record.base, _go_on(bandit, tx, record, record.base)


def rebuild(tx: Transaction, record: LoopRecord, policy: Policy | None = None) -> Bandit:
    """Return the bandit of a loop from its rows alone, without a snapshot."""
    bandit = from_bytes(record.start, policy=policy)
    _go_on(bandit, tx, record, record.base)
    return bandit


def _go_on(bandit: Bandit, tx: Transaction, record: LoopRecord, after: int) -> int:
    last = after

    def events() -> Iterator[Event]:
        nonlocal last
        for row in tx.rows(record.id, after):
            _check_next(row.seq - 1, last)
            last = row.seq
            if row.kind != "reward":  # which waits for its window to close
                yield {**checked(row).fields, "seq": row.seq, "kind": row.kind, "t": row.t}

    try:
        replay(events(), bandit, RowPast(tx, record.id))
    except LogError as error:
        why = error.__cause__ or error
        raise StoreError(f"row {error.seq} of the loop cannot be played again: {why}; go back to a backup") from error
    _check_next(tx.last(record.id), last)
    return last


def _check_next(before: int, after: int) -> None:
    if before != after:
        raise StoreError(f"row {after + 1} of the loop is missing; go back to a backup")
