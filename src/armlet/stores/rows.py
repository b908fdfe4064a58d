"""The rows of a loop: decisions as rows and back, rows as events of a log, and the state that they lead to.

What is learned from a row is what would be learned from the decision. The state of a loop is its start model and its
rows, one after the other; a snapshot saves reading the first. Any reader of an `armlet.Log` reads a `LoopLog`.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product, takewhile
from types import NoneType, SimpleNamespace
from typing import Any, Final, NamedTuple, cast

import numpy as np

from armlet.bandit import Bandit
from armlet.errors import LogError, ModelFileError, StoreError
from armlet.kernel import Decision
from armlet.log.events import CONTROL, FORMAT, SCHEMA, SHADOW, Event
from armlet.log.guarded import guards_of, is_compiled, read_guarded
from armlet.log.replaying import PLAYS, is_unplayable
from armlet.model_file import describe
from armlet.stores.ledger import Head, LedgerReader, LoopRecord, Row, Session, View
from armlet.stores.tally import CHANGING, Tally
from armlet.stores.tally.comparisons import Scale, coins_of
from armlet.stores.terms import USUAL, Carry, Terms
from armlet.types import Arm, Float64, Policy

# ---- decisions as rows, and back

ARMS: Final = ("add_arm", "retire_arm", "restore_arm")  # kinds of rows
INTERNAL: Final = ("of", "status")  # what only a store needs
LONGEST: Final = 19  # digits of a step
BYTES: Final = np.dtype("<f8")

_ABOUT = {"of": int, "id": str}
_FIELDS: Mapping[str, Mapping[str, type | tuple[type, ...]]] = {
    "decide": {"id": str, "arm": (str, int), "explored": bool, "optimistic": bool, "eligible": (list, NoneType)},
    "reward": {**_ABOUT, "reward": float},
    "learn": {**_ABOUT, "reward": float},
    "forget": {**_ABOUT, "reward": float},
    "expire": _ABOUT,
    "correct": {**_ABOUT, "old_reward": float, "new_reward": float},
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


def decision_of(row: Row, reward: float | None = None, **marks: object) -> Decision:
    """Return the decision of a row: pending, or with what was learned from it; marked as expired if it was."""
    learned = {} if reward is None else {"reward": reward, "weight": 1.0}
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
    row, value, is_waited_for = decided, None, True
    for each in heard:
        fields = checked(each).fields
        if each.kind == "learn":
            row = substitute(decided, fields["played"]) if "played" in fields else decided
            value = fields["reward"]
        elif each.kind == "correct":
            value = fields["new_reward"]
        elif each.kind in ("expire", "forget"):
            value, is_waited_for = None, False
    return decision_of(row, value) if is_waited_for or value is not None else None


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
        if "played" in event:
            decided = self._ledger.decided(self._record.id, row.t or 0)
            if decided is not None:
                upto = max(row.seq, self._record.base)
                event["decision"] = self._record_of(self._carry.row(decided, upto), event)
        yield event

    def _record_of(self, decided: Row, event: Event) -> Mapping[str, Any]:
        """Return the record of a decision that was never made: that of the arm that was played instead."""
        row = substitute(decided, event["played"])
        if event["kind"] == "correct":
            return decision_of(row, event["old_reward"]).to_dict()
        return decision_of(row, expired=True).to_dict()

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


# ---- the state that rows lead to

KEPT: Final = 2**13  # decisions that a replay remembers; older ones are read again
PAGE: Final = 5000  # learned at once

Find = Callable[[int], Row | None]
_Learned = tuple[int | None, bytes | None, Arm, float, float, float, bool, int]


class Replay:
    """Plays rows again on a bandit; none is decided again, since its context may be erased.

    What was learned is learned by columns, many rows at once, where a rule is compiled: bit for bit the same. A replay
    that goes on with the decisions of another one is of the few rows that a replica has written meanwhile: there one by
    one takes 4 us a row, and columns 6 to 60.
    """

    def __init__(
        self,
        bandit: Bandit,
        find: Find,
        carry: Carry,
        tally: Tally | None = None,
        counted: int = 0,
        decided: dict[int, Row] | None = None,
    ) -> None:
        self._bandit, self._find, self._carry = bandit, find, carry
        self._tally, self._counted = tally, counted  # which rows the tally has
        self._is_compiled = is_compiled(bandit)
        self._has_columns = self._is_compiled and decided is None  # a few rows now and then are quicker one by one
        self._decided = {} if decided is None else decided  # the last ones; it goes on with those of another replay
        self._begun: dict[int, Row] = {}  # since the columns were learned; no reward of theirs has come
        self._learned: list[_Learned] = []
        self._ended: list[Row] = []  # decisions under way whose reward is in the columns
        self._clock: int | None = None
        self._last = 0

    def play(self, rows: Iterable[Row], last: int, *, is_whole: bool = True) -> int:
        """Play rows, the ones after a number; return the number of the last one. `is_whole`: none may be missing."""
        try:
            return self._play(rows, last, is_whole)
        except (KeyError, TypeError, ValueError, AttributeError) as error:  # of fields that are not what they should be
            raise _refused(self._last, error) from error

    def _play(self, rows: Iterable[Row], last: int, is_whole: bool) -> int:
        tally, learned, compiled, has_columns = self._tally, self._learned, self._is_compiled, self._has_columns
        for row in rows:
            seq, _, kind, t, fields, _ = row
            if seq != last + 1 and is_whole:
                raise _missing(last + 1)
            self._last = last = seq
            if tally is not None and seq > self._counted:
                self._count(tally, row)
            if kind == "decide":
                self._decided[seq] = self._begun[seq] = row
                self._clock = t
                if len(self._begun) >= KEPT or not compiled:
                    self.settle()
            elif kind == "learn" and compiled and "expired" not in fields:
                if not has_columns:
                    self._learn_alone(row)
                    continue
                self._learn(row)
                if len(learned) >= PAGE:
                    self.settle()
            elif kind != "reward":  # which waits for its window to close
                self.settle()
                self._act(checked(row))
        self.settle()
        return last

    def _learn(self, row: Row) -> None:
        told = row.fields
        decided = self._begun.pop(told["of"], None)
        if decided is None:
            decided = self._get(row)
            self._ended.append(decided)
        _, _, _, t, fields, x = decided
        weight, tag = told.get("weight", 1.0), fields.get("tag", 0)
        columns = (t, x, fields["arm"], told["reward"], weight, fields["propensity"], fields["explored"], tag)
        self._learned.append(columns)

    def _learn_alone(self, row: Row) -> None:
        told = row.fields
        if self._clock is not None:
            self.settle()
        self._bandit.learn(decision_of(self._get(row)), told["reward"], weight=told.get("weight", 1.0))

    def _get(self, row: Row) -> Row:
        decided = self.decided(row.fields["of"])
        if decided is None or decided.x is None:
            raise StoreError(f"row {row.seq} of the loop is about row {row.fields['of']}, which is missing")
        return checked(decided, "decide")

    def _act(self, row: Row) -> None:
        try:
            for event in self._events(row):
                PLAYS[event["kind"]](self._bandit, event, RowPast(self.decided))
        except (LogError, StoreError):
            raise
        except Exception as error:
            raise _unplayable(row.seq, error) from error

    def count(self, rows: Iterable[Row]) -> Tally:
        """Count rows, of which some may be missing, and play none."""
        tally = Tally()
        try:
            for row in rows:
                self._last = row.seq
                self._count(tally, row)
                if row.kind == "decide" and row.x is None:
                    tally.forgotten(row.fields["arm"], None)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _refused(self._last, error) from error
        return tally

    def _count(self, tally: Tally, row: Row) -> None:
        """Count what a row says, as it was counted when it was written."""
        fields = checked(row).fields
        if row.kind == "decide":
            tally.decided(cast("Decision", SimpleNamespace(**fields)), row.ts, row.seq)
            return
        if row.kind in CHANGING:
            tally.changed(row.seq, row.ts, row.kind, fields)
            return
        of = fields.get("of", 0)
        decided = self._decided.get(of) or self._find(of)
        if decided is None:  # a row about no decision
            return
        arm, explored = decided.fields["arm"], decided.fields["explored"]
        if "played" in fields:
            arm, explored = fields["played"], False
        if row.kind == "expire":
            tally.expired(arm)
        elif row.kind == "correct":
            old, new = fields["old_reward"], fields["new_reward"]
            tally.corrected(arm, old, new, explored=explored, decided_at=decided.ts)
        elif row.kind == "forget":
            tally.forgotten(arm, fields["reward"])
        elif row.kind == "learn":
            coins = None
            if "expired" in fields:
                tally.revived(arm)
            else:
                coins = coins_of(decided.fields)
            source = fields.get("source", "reward")
            tally.learned(arm, fields["reward"], explored, decided.ts, row.ts, source, coins, of)
        if "status" in fields:
            tally.answered(fields["status"], row.ts, decided.ts)

    def _events(self, row: Row) -> list[Event]:
        return plays_of(row)

    def decided(self, seq: int) -> Row | None:
        """Return the row of a decision."""
        row = self._decided.get(seq) or self._find(seq)
        return None if row is None else self._carry.row(row, self._last)

    def settle(self) -> None:
        """Let the bandit know all that was played so far."""
        if self._clock is not None:
            self._bandit.replace(t=self._clock)
            self._clock = None
        try:
            for row in self._begun.values():
                self._bandit._begin_decision(row.fields["arm"], row.fields["explored"])
            if self._learned:
                self._bandit.partial_fit(_table(self._learned))
            for row in self._ended:
                self._bandit.expire(decision_of(row))
        except Exception as error:
            raise _unplayable(self._last, error) from error
        for gathered in (self._begun, self._learned, self._ended):
            gathered.clear()
        if len(self._decided) > KEPT:
            for seq in list(self._decided)[: -KEPT // 2]:
                del self._decided[seq]


def plays_of(row: Row) -> list[Event]:
    """Return what a row does to a bandit, as events of a log; a change of rules alone does nothing."""
    event = {**row.fields, "seq": row.seq, "kind": row.kind, "t": row.t}
    if row.kind != "change":
        return [event]
    return [{**each, "seq": row.seq, "kind": "replace"} for each in row.fields["replaces"]]


def _table(learned: list[_Learned]) -> Mapping[str, Any]:
    """Return decisions and their rewards as a table of `partial_fit`."""
    t, x, arm, reward, weight, propensity, explored, tag = zip(*learned, strict=True)
    contexts = np.frombuffer(b"".join(x), dtype=BYTES).reshape(len(t), -1)
    columns = {"t": t, "arm": arm, "reward": reward, "weight": weight, "propensity": propensity}
    return {"x": contexts, **columns, "explored": explored, "tag": tag}


class RowPast:
    """The decisions of a loop, read from its rows."""

    def __init__(self, find: Find) -> None:
        self._find = find

    def decide(self, bandit: Bandit, event: Event) -> None:
        """Take the step of a decision."""
        bandit.replace(t=event["t"])
        bandit._begin_decision(event["arm"], event["explored"])

    def get(self, event: Event, reward: float | None = None) -> Decision:
        """Return the decision that a row is about, which has learned this reward if one is given."""
        row = self._find(event["of"])
        if row is None:
            raise StoreError(f"row {event['seq']} of the loop is about row {event['of']}, which is missing")
        if "played" in event:
            row = substitute(row, event["played"])
        return decision_of(row, reward, **({"expired": event["expired"]} if "expired" in event else {}))


def _unplayable(seq: int, error: Exception) -> Exception:
    return _refused(seq, error) if is_unplayable(error) else error


def _refused(seq: int, error: Exception) -> StoreError:
    return StoreError(f"row {seq} of the loop cannot be played again: {error}; go back to a backup")


def _missing(seq: int) -> StoreError:
    return StoreError(f"row {seq} of the loop is missing; go back to a backup")


def recover(
    session: Session | View, record: LoopRecord, head: Head, policy: Policy | None, carry: Carry
) -> tuple[Bandit, Tally, int]:
    """Return the bandit of a loop, its tally, and the number of the last row in the model that they are made from."""
    found, counts = session.snapshot(record.id), session.tally(record.id)
    tally, tallied = Tally() if counts is None else Tally.from_json(counts), head.tallied
    if counts is None and (found is not None or record.base):  # of a version that did not count
        tally, tallied = _counted(session, record, policy, carry), head.seq
    elif counts is None:
        _compare(tally, read_guarded(record.start, policy=policy), 0, 0)
    bandit, last = _newest(record, found, policy)
    replay = Replay(bandit, lambda seq: session.row(record.id, seq), carry, tally, tallied)
    _go_on(replay, session, record.id, last, head.seq)
    if tally.comparisons.scale is None:  # of a version that did not compare
        _compare(tally, bandit, head.seq, head.ts)
    return bandit, tally, last


def _newest(record: LoopRecord, found: tuple[int, bytes] | None, policy: Policy | None) -> tuple[Bandit, int]:
    """Return the newest model of a loop, and the last row that it has learned."""
    if found is not None and found[0] >= record.base:
        try:
            return read_guarded(found[1], policy=policy), found[0]
        except ModelFileError:
            pass  # a snapshot is only a cache: the rows say the same
    return read_guarded(record.start, policy=policy), record.base


def _compare(tally: Tally, bandit: Bandit, seq: int, ts: int) -> None:
    """Let a tally compare decisions after a row."""
    settings = bandit.settings
    tally.comparisons.guards = guards_of(bandit)
    tally.comparisons.begin(Scale(*(settings.reward_range or USUAL), settings.objective == "min"), seq, ts)


def _counted(session: Session | View, record: LoopRecord, policy: Policy | None, carry: Carry) -> Tally:
    """Count all rows that are left of a loop; what was answered without a row is not known."""
    bandit = read_guarded(record.start, policy=policy)
    return Replay(bandit, lambda seq: session.row(record.id, seq), carry).count(session.rows(record.id, 0))


def rebuild(session: Session | View, record: LoopRecord, last: int, policy: Policy | None, carry: Carry) -> Bandit:
    """Return the bandit of a loop from its rows alone, without a snapshot."""
    bandit = read_guarded(record.start, policy=policy)
    _go_on(Replay(bandit, lambda seq: session.row(record.id, seq), carry), session, record.id, record.base, last)
    return bandit


def _go_on(replay: Replay, session: Session | View, loop: int, after: int, last: int) -> None:
    found = replay.play(session.rows(loop, after), after)
    if found != last:
        raise _missing(found + 1)
