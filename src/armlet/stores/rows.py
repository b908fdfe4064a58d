"""The rows of a loop: decisions as rows and back, and rows as events of a log.

What is learned from a row is what would be learned from the decision. Any reader of an `armlet.Log` reads a `LoopLog`;
`stores/replay.py` has the state that rows lead to.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import product, takewhile
from types import NoneType
from typing import Any, Final, NamedTuple

import numpy as np

from armlet.errors import StoreError
from armlet.kernel import Decision
from armlet.log.events import CONTROL, FORMAT, SCHEMA, SHADOW, Event
from armlet.log.guarded import guards_of, read_guarded
from armlet.model_file import describe
from armlet.stores.ledger import LedgerReader, LoopRecord, Row
from armlet.stores.terms import Terms
from armlet.types import Arm, Float64, Policy, Reward

# ---- decisions as rows, and back

ARMS: Final = ("add_arm", "retire_arm", "restore_arm")  # kinds of rows
INTERNAL: Final = ("of", "status", "later", "had", "waits")  # what only a store needs
REWARD: Final = (float, dict)  # one, or several parts by outcome
LONGEST: Final = 19  # digits of a step
BYTES: Final = np.dtype("<f8")

_ABOUT = {"of": int, "id": str}
_FIELDS: Mapping[str, Mapping[str, type | tuple[type, ...]]] = {
    "decide": {"id": str, "arm": (str, int), "explored": bool, "optimistic": bool, "eligible": (list, NoneType)},
    "reward": {**_ABOUT, "reward": REWARD},
    "learn": {**_ABOUT, "reward": REWARD},
    "forget": {**_ABOUT, "reward": REWARD},
    "expire": _ABOUT,
    "correct": {**_ABOUT, "old_reward": REWARD, "new_reward": REWARD},
    "add_arm": {"arm": (str, int)},
    "retire_arm": {"arm": (str, int)},
    "restore_arm": {"arm": (str, int)},
    "change": {"rules": dict, "replaces": list},
}


class _Shapes(NamedTuple):
    """What a row of a kind has: the names of its fields, and which types these have together."""

    names: tuple[str, ...]
    types: frozenset[tuple[type, ...]]


def _shapes(fields: Mapping[str, type | tuple[type, ...]]) -> _Shapes:
    kinds = (types if isinstance(types, tuple) else (types,) for types in fields.values())
    return _Shapes(tuple(fields), frozenset(product(*kinds)))


_SHAPES = {kind: _shapes(fields) for kind, fields in _FIELDS.items()}


def fields_of(decision: Decision, event: str) -> dict[str, Any]:
    """Return all of a decision but its step and context, which a row has of its own, in plain JSON types."""
    fields = decision.to_dict()
    del fields["t"], fields["x"]
    fields["event"] = event
    return fields


def bytes_of(x: Float64) -> bytes:
    """Return a context as a row has it."""
    return x.tobytes() if sys.byteorder == "little" else x.astype(BYTES).tobytes()


def checked(row: Row, kind: str | None = None) -> Row:
    """Return a row whose fields are what its kind has; an editor of a table can mend a checksum too.

    Examples
    --------
    >>> checked(Row(seq=9, ts=5, kind="learn", t=1, fields={"of": 1}))
    Traceback (most recent call last):
    armlet.errors.StoreError: row 9 of the loop is not a valid 'learn': id is missing, or is not str; go back ...
    """
    fields, shapes = row.fields, _SHAPES.get(kind or row.kind)
    if shapes is None or row.kind not in _SHAPES:
        raise StoreError(
            f"row {row.seq} of the loop is of kind {row.kind!r}, which this version of Armlet does not know"
        )
    if "control" in fields or "shadow" in fields:
        _check_guards(row)
    is_fit = tuple(map(type, map(fields.get, shapes.names))) in shapes.types
    if is_fit and not (kind == "decide" and fields.get("eligible", row)):  # not even None if it is missing
        return row
    for name, types in _FIELDS[kind or row.kind].items():
        if not isinstance(fields.get(name, row), types):
            what = getattr(types, "__name__", "such value")
            raise _damaged(row, kind or row.kind, f"{name} is missing, or is not {what}")
    if kind == "decide" and not all(isinstance(arm, (str, int)) for arm in fields["eligible"] or ()):
        raise _damaged(row, kind, "eligible has a value that is not an arm")
    return row


def _check_guards(row: Row) -> None:
    for name, check in (("control", CONTROL), ("shadow", SHADOW)):
        if name in row.fields and not check.holds(row.fields[name]):
            raise _damaged(row, row.kind, f"{name} is not {check.words}")


def context_of(row: Row) -> list[float] | None:
    """Return the context of a decision, unless it was erased."""
    if row.x is None:
        return None
    try:
        values: list[float] = np.frombuffer(row.x, dtype=BYTES).tolist()
    except ValueError as error:
        raise _damaged(row, "decide", error) from error
    return values


def decision_of(row: Row, reward: Reward | None = None, *, waits: bool = False, **marks: object) -> Decision:
    """Return the decision of a row: pending, or with what was learned from it; marked as expired if it was.

    If it `waits` for more parts, the reward has those that the bandit was given.
    """
    learned: dict[str, object] = {} if reward is None else {"reward": reward}
    if reward is not None and not waits:
        learned["weight"] = 1.0
    try:
        return Decision.from_dict({**row.fields, "t": row.t, "x": context_of(row), **learned, **marks})
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise _damaged(row, "decide", error) from error


def substitute(row: Row, played: Arm) -> Row:
    """Return the row of a decision as if another arm had been chosen, by nobody's coin."""
    unknown = dict.fromkeys(("exploration_propensity", "exploration_rate", "min_exploration_probability", "greedy"))
    fields = {**row.fields, **unknown, "arm": played, "propensity": 1.0, "explored": False, "probabilities": None}
    return row._replace(fields=fields)


def known_of(decided: Row, heard: Iterable[Row]) -> Decision | None:
    """Return a decision as rows about it leave it: learned, or waited for; None if a model knows nothing of it.

    Examples
    --------
    >>> fields = {"id": "1-00ff00ff00ff00ff", "arm": "a", "explored": False, "propensity": 1.0, "eligible": None}
    >>> decided = Row(seq=1, ts=5, kind="decide", t=1, fields=fields, x=bytes(8))
    >>> learned = Row(seq=2, ts=6, kind="learn", t=1, fields={"of": 1, "id": fields["id"], "reward": 0.5})
    >>> known_of(decided, [learned]).reward, known_of(decided, []).reward
    (0.5, None)
    """
    row, is_waited_for, is_part = decided, True, False
    value: Reward | None = None
    for each in heard:
        fields = checked(each).fields
        if each.kind == "learn":
            row = substitute(decided, fields["played"]) if "played" in fields else decided
            value, is_part = had_of(fields, "reward"), "waits" in fields
        elif each.kind == "correct":
            value = had_of(fields, "new_reward")
        elif each.kind in ("expire", "forget"):
            value, is_waited_for = (None if each.kind == "forget" else value), False
    is_known = is_waited_for or (value is not None and not is_part)
    return decision_of(row, value, waits=is_part) if is_known else None


def had_of(fields: Mapping[str, Any], name: str | None = None) -> Reward | None:
    """Return what the bandit had been given of a decision before a row, and, with a name, what that field added."""
    told = None if name is None else fields[name]
    if "had" not in fields:
        return told
    return {**fields["had"], **(told or {})}


def _damaged(row: Row, kind: str, why: object) -> StoreError:
    return StoreError(f"row {row.seq} of the loop is not a valid {kind!r}: {why}; go back to a backup")


# ---- as a log


class LoopLog:
    """The events of a loop, the start first; read again, and in bounded memory, each time.

    After rows were pruned or erased, what is left cannot be replayed from the first one on; from the model that the
    loop goes on from, it can: `replayable`.
    """

    def __init__(self, ledger: LedgerReader, record: LoopRecord, policy: Policy | None, after: int = 0) -> None:
        self._ledger, self._record, self._policy, self._after = ledger, record, policy, after
        self._carry = Terms.read(record).carry
        self._changed: Mapping[Arm, str] | None = None  # how an arm changed first; read when it is needed

    @property
    def about(self) -> Mapping[str, Any]:
        """The fields of the start: arms, features, policy and the like, but not the seed."""
        head = {"seq": 0, "kind": "start", "at": 0, "format": FORMAT, "schema": SCHEMA, "loop": self._record.name}
        start = read_guarded(self._record.start, policy=self._policy)
        fields: dict[str, Any] = {**describe(start._model())}
        if guards := guards_of(start):
            fields |= {"guards": guards, "digest": start.digest()}
        if self._after != self._record.base:  # the rows are older than the model that there is
            fields |= {"digest": None, **self._arms_before(fields["arms"], fields["retired"])}
            fields.pop("guards", None)  # events say when these came
        return {**head, **fields, "start_model": hashlib.sha256(self._record.start).hexdigest()}

    def _arms_before(self, arms: Iterable[Arm], retired: Iterable[Arm]) -> Mapping[str, list[Arm]]:
        """Return the arms before the first row, by those of the model: the first row about an arm says what it was."""
        if self._changed is None:
            rows = self._ledger.rows(self._record.id, self._after)
            told = takewhile(lambda row: row.seq <= self._record.base, rows)
            changes = [(row.fields["arm"], row.kind) for row in told if row.kind in ARMS and checked(row)]
            self._changed = dict(reversed(changes))
        known, gone = self._changed, set(retired)
        there = [arm for arm in arms if known.get(arm) != "add_arm"]
        were_gone = [arm for arm in there if known.get(arm, "restore_arm" if arm in gone else "") == "restore_arm"]
        return {"arms": there, "retired": were_gone}

    @property
    def replayable(self) -> LoopLog:
        """The events that go on from the loop's start model, and lead to what it knows."""
        return LoopLog(self._ledger, self._record, self._policy, self._record.base)

    @property
    def start(self) -> bytes:
        """The model that `replayable` goes on from, for `armlet.audit`; a model file, unless the loop has guards.

        It holds the seed: keep it to yourself.
        """
        return self._record.start

    def __iter__(self) -> Iterator[Event]:
        yield dict(self.about)
        seq = 0
        for row in self._ledger.rows(self._record.id, self._after):
            for event in self._events(row):
                seq += 1
                yield {**event, "seq": seq}

    def _events(self, row: Row) -> Iterator[Event]:
        is_before = row.seq <= self._record.base  # then it is told with the features of the start, which come later
        if row.kind == "change":
            head = {"seq": row.seq, "kind": "replace", "at": row.ts}
            told = (each for each in checked(row).fields["replaces"] if not (is_before and "features" in each))
            yield from ({**head, **fields} for fields in told)
            return
        event = dict(event_of(self._carry.row(row, self._record.base) if is_before else row, row.seq))
        if row.kind == "correct" and "had" in row.fields:  # a log has all parts in it
            event |= {"old_reward": row.fields["had"], "new_reward": had_of(row.fields, "new_reward")}
        if "played" in event or ("had" in row.fields and row.fields["of"] <= self._after):
            decided = self._ledger.decided(self._record.id, row.t or 0)
            if decided is not None:
                upto = max(row.seq, self._record.base)
                event["decision"] = self._record_of(self._carry.row(decided, upto), row)
        yield event

    def _record_of(self, decided: Row, row: Row) -> Mapping[str, Any]:
        """Return the record of a decision that nobody can make again from these events.

        That of the arm that was played instead of the one that was decided; or one whose parts came before them.
        """
        fields, is_correction = row.fields, row.kind == "correct"
        had = fields.get("had", fields["old_reward"] if is_correction else None)
        played = substitute(decided, fields["played"]) if "played" in fields else decided
        is_expired = "expired" in fields or ("played" in fields and not is_correction)
        waits = not is_correction or "waits" in fields
        return decision_of(played, had, waits=waits, **({"expired": True} if is_expired else {})).to_dict()

    def find(self, decision: str) -> Event | None:
        """Find a decision by its id."""
        step = decision.partition("-")[0]
        row = self._ledger.decided(self._record.id, int(step)) if step.isdecimal() and len(step) < LONGEST else None
        if row is None or checked(row, "decide").fields["id"] != decision:
            return None
        return event_of(self._carry.row(row, self._record.base), row.seq)


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
        return {**head, "kind": "note", **fields}
    if row.kind == "decide":
        return {**head, "id": fields.pop("id"), "t": row.t, "x": context_of(row), **fields}
    if row.kind == "correct":
        fields["weight"] = 1.0  # as loops learn; a log says so, since it may have lost what was learned
    return {**head, **fields}
