"""The runner of a loop, which decides, judges, learns and writes inside a transaction, and the rows that it writes.

What is learned from a row is what would be learned from the decision. The state of a loop is its start model and its
rows, one after the other; a snapshot saves reading the first. Any reader of an `armlet.Log` reads a `LoopLog`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from types import NoneType
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from armlet.bandit import Bandit, from_bytes
from armlet.errors import EventError, LogError, ModelFileError, StoreError
from armlet.inputs.contexts import ContextReader
from armlet.kernel import Decision, coins
from armlet.log.events import FORMAT, SCHEMA, Event
from armlet.log.replaying import PLAYS, replay
from armlet.model_file import describe
from armlet.stores.ledger import Ledger, LoopRecord, Moment, Outcome, Row, Transaction
from armlet.stores.rewards import Reward, RewardRules, Status, counted, judge
from armlet.stores.writer import Chore, Writer
from armlet.types import Arm, Float64, Policy

# ---- rows: decisions as rows and back, rows as events of a log, and the state that they lead to

INTERNAL = ("of",)  # what only a store needs
LONGEST = 19  # digits of a step

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


def decision_of(row: Row, reward: float | None = None, **marks: object) -> Decision:
    """Return the decision of a row: pending, or with what was learned from it; marked as expired if it was."""
    learned = {} if reward is None else {"reward": reward, "weight": 1.0}
    try:
        return Decision.from_dict({**row.fields, "t": row.t, "x": context_of(row), **learned, **marks})
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
        bandit._begin_decision(event["arm"], event["explored"])

    def get(self, event: Event, reward: float | None = None) -> Decision:
        """Return the decision that a row is about, which has learned this reward if one is given."""
        row = self._row or self._tx.row(self._loop, event["of"])
        if row is None:
            raise StoreError(f"row {event['seq']} of the loop is about row {event['of']}, which is missing")
        return decision_of(row, reward, **({"expired": event["expired"]} if "expired" in event else {}))


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


# ---- the runner, where only the thread that writes comes: the bandit acts first and the row follows, so that what it
# refuses is never written. If the transaction then fails, the bandit knows more than the rows; it is marked stale and
# made again from them before its next call

SPACING = 1000  # rows between snapshots, at least
BYTES_A_ROW = 100  # that snapshots may add to the file, on average: the larger a model, the rarer
MARK = 16  # hexadecimal digits in the id of a decision, after its step
WINDOWS, FORGOTTEN, PRUNED = 8, 8, 32  # done in one piece of a chore: about a millisecond each

P = ParamSpec("P")
T = TypeVar("T")


def _undoing(
    method: Callable[Concatenate[LoopRunner, P], T],
) -> Callable[Concatenate[LoopRunner, P], T]:
    """Let the runner go stale if what a method raises finds the bandit changed, since its rows will be undone.

    Armlet's own policies raise before they change anything; nobody knows about others, nor about what ends threads.
    """

    @wraps(method)
    def guarded(self: LoopRunner, /, *args: P.args, **options: P.kwargs) -> T:
        last = self._last
        try:
            return method(self, *args, **options)
        except BaseException as error:
            is_doubtful = self.policy is not None and not isinstance(error, EventError)
            if is_doubtful or self._last != last or not isinstance(error, Exception):
                self.stale()
            raise

    return guarded


class LoopRunner:
    """The bandit of a loop and its rows."""

    def __init__(self, record: LoopRecord, rules: RewardRules, policy: Policy | None, writer: Writer) -> None:
        self.record, self.rules, self.policy, self._writer = record, rules, policy, writer
        self._bandit: Bandit | None = None  # stale
        self._snapshot = self._last = 0  # rows
        self._looked: int | None = None  # when windows that are due were last looked for
        self._is_behind = False  # a chore is closing windows
        self.is_in_use = False  # somebody has the loop

    def reader(self, tx: Transaction) -> ContextReader:
        """Return what reads contexts of the loop, in the callers' threads."""
        bandit = self._awake(tx)
        return ContextReader(bandit.settings.dim, bandit.settings.features)

    def stale(self) -> None:
        """Forget what memory knows; the rows know better."""
        self._bandit = self._looked = None

    def is_ready(self, now: Moment) -> bool:
        """Whether `ready` has nothing to do."""
        return self._bandit is not None and (self.rules.window is None or self._looked == now.steady)

    @_undoing
    def ready(self, tx: Transaction, now: Moment) -> None:
        """Make the bandit again if it is stale, and close windows that are due: as many as there is time for.

        The others are closed between this batch and the next ones. A decision that comes before is a function of the
        rows that were written before it, like any other.
        """
        self._awake(tx)
        self._looked = now.steady
        more = self.rules.window is not None
        while more:
            more = self._close_some(tx, now, now.steady)
            if more and self._writer.budget.is_spent():
                self._catch_up_later()
                return

    def _catch_up_later(self) -> None:
        if not self._is_behind:
            self._is_behind = True
            self._writer.later(self._catching_up())

    def _catching_up(self) -> Chore[None]:
        try:
            yield from self.settling()
        finally:
            self._is_behind = False

    def _awake(self, tx: Transaction) -> Bandit:
        if self._bandit is None:
            self.record = tx.find(self.record.name) or self.record
            self._bandit, self._snapshot, self._last = recover(tx, self.record, self.policy)
        return self._bandit

    def settling(self) -> Chore[None]:
        """Close all windows that are due when it begins."""
        tx, now = yield
        until, more = now.steady, self.rules.window is not None
        while more:
            more = self._close_some(tx, now, until)
            if more:
                tx, now = yield

    def copying(self) -> Chore[Bandit]:
        """Copy the bandit when all windows that are due are closed."""
        yield from self.settling()
        tx, _ = yield
        return self._awake(tx).copy()

    @_undoing
    def decide(
        self, tx: Transaction, now: Moment, x: Float64, event: str | None, eligible: list[Arm] | None
    ) -> Decision:
        """Decide, or return the decision that this event has."""
        known = None if event is None else tx.outcome(self.record.id, event)
        if known is not None:
            return self._again(tx, known, x, eligible)
        bandit = self._awake(tx)
        if event is not None:
            _check_no_id(event, bandit)
        decision = bandit.decide(x, eligible=eligible, t=tx.lease(self.record.id, 1), propensity="marginal")
        event = decision.id if event is None else event
        seq = self._append(tx, now, "decide", decision.t, fields_of(decision, event), x.astype("<f8").tobytes())
        due = None if self.rules.window is None else now.steady + self.rules.window
        tx.put(self.record.id, Outcome(t=decision.t, event=event, seq=seq, phase="open", due=due))
        self._keep_snapshot(tx, bandit)
        return decision

    def _again(self, tx: Transaction, known: Outcome, x: Float64, eligible: list[Arm] | None) -> Decision:
        row = self._decided(tx, known)
        if row.x != x.astype("<f8").tobytes() or not _same_arms(row.fields["eligible"], eligible):
            raise EventError(
                f"event {known.event!r} has been decided for another context or other eligible arms; "
                "give a new decision another name, or repeat the first one as it was"
            )
        return decision_of(row)

    @_undoing
    def reward(self, tx: Transaction, now: Moment, event: str, reward: Reward) -> Status:
        """Judge a reward, and learn it if it is time."""
        outcome = tx.outcome(self.record.id, event)
        if outcome is not None and outcome.due is not None and outcome.due <= now.steady:
            outcome = self._close(tx, now, outcome)  # its turn has not come yet, but it is over
        verdict = judge(self.rules, outcome, reward)
        if outcome is None or verdict.act == "nothing":
            return verdict.status
        known, decided = counted(outcome, reward, verdict), self._decided(tx, outcome)
        if verdict.act == "hold":
            self._append(tx, now, "reward", outcome.t, {**_about(decided), "reward": reward.value})
        elif verdict.act == "learn":
            marks = {"expired": True} if outcome.phase == "expired" else {}
            self._write(tx, now, "learn", {"reward": verdict.value, "weight": 1.0, **marks}, decided)
        elif verdict.act == "correct":
            fields = {"old_reward": outcome.value, "new_reward": verdict.value}
            self._write(tx, now, "correct", fields, decided)
        tx.put(self.record.id, known)
        return verdict.status

    @_undoing
    def _close_some(self, tx: Transaction, now: Moment, until: int) -> bool:
        """Close a few windows, the first ones first; return whether there may be more."""
        due = tx.due(self.record.id, until, WINDOWS)
        for outcome in due:
            self._close(tx, now, outcome)
        return len(due) == WINDOWS

    def _close(self, tx: Transaction, now: Moment, outcome: Outcome) -> Outcome:
        """Learn the reward that came in time, or else the default."""
        came = outcome.value is not None
        value = outcome.value if came else self.rules.default
        fields = {"reward": value, "weight": 1.0, "source": "reward" if came else "default"}
        self._write(tx, now, "learn", fields, self._decided(tx, outcome))
        closed = replace(outcome, phase="learned" if came else "default", value=value, due=None)
        tx.put(self.record.id, closed)
        return closed

    def forgetting(self, events: Sequence[str]) -> Chore[int]:
        """Unlearn decisions and delete all about them but the step, the arm and its probability; return how many."""
        found = 0
        for first in range(0, len(events), FORGOTTEN):
            tx, _ = yield
            found += self._forget(tx, events[first : first + FORGOTTEN])
        return found

    def _forget(self, tx: Transaction, events: Sequence[str]) -> int:
        """Let the bandit go on from what it knows without these; no row is left, nor needed, that says how."""
        bandit, found = self._awake(tx), 0
        try:
            for event in events:
                outcome = tx.outcome(self.record.id, event)
                if outcome is not None:
                    decided = self._decided(tx, outcome)
                    if outcome.phase == "open":
                        bandit.expire(decision_of(decided))
                    elif outcome.value is not None:
                        bandit.forget(decision_of(decided, outcome.value), outcome.value)
                    tx.erase(self.record.id, outcome.t)
                    found += 1
            if found:
                self.rebase(tx)
        except BaseException:
            self.stale()  # it may have unlearned some
            raise
        return found

    def pruning(self, before: int) -> Chore[int]:
        """Delete what is old and did not explore; return how many.

        What still waits for a reward is expired before it goes, by rows that can be replayed, so that the model does
        not count decisions that nobody can reward.
        """
        pruned, waiting = yield from self._prune(before)
        if waiting:
            pruned += (yield from self._prune(before))[0]
        return pruned

    def _prune(self, before: int) -> Chore[tuple[int, int]]:
        """Delete what can go, and expire what waits for a reward; return how many of each."""
        tx, now = yield
        self._awake(tx)
        self.rebase(tx)
        after: int | None = 0
        pruned = waiting = 0
        while after is not None:
            tx, now = yield
            piece = tx.prune(self.record.id, before, after, PRUNED)
            self._expire(tx, now, piece.open)
            pruned, waiting, after = pruned + piece.n, waiting + len(piece.open), piece.after
        return pruned, waiting

    @_undoing
    def _expire(self, tx: Transaction, now: Moment, outcomes: Sequence[Outcome]) -> None:
        for outcome in outcomes:
            self._write(tx, now, "expire", {}, self._decided(tx, outcome))
            tx.put(self.record.id, replace(outcome, phase="expired"))

    def rebase(self, tx: Transaction) -> None:
        """Go on from what has been learned so far, so that no row before is needed to make it again."""
        if self._bandit is not None:
            model = self._bandit.to_bytes()
            tx.rebase(self.record.id, self._last, model)
            self.record = replace(self.record, start=model, base=self._last)
            self._snapshot = self._last

    @_undoing
    def change(self, tx: Transaction, now: Moment, kind: str, arm: Arm) -> None:
        """Add, retire or restore an arm."""
        self._write(tx, now, kind, {"arm": arm})

    @_undoing
    def want(self, tx: Transaction, now: Moment, arms: Iterable[Arm]) -> None:
        """Add, restore and retire arms until those of a list are the ones that are played."""
        bandit = self._awake(tx)
        wanted, known, retired = dict.fromkeys(arms), bandit.arms, set(bandit.arms.retired)
        added = wanted.keys() - set(known)
        changes = [("add_arm", arm) for arm in wanted if arm in added]
        changes += [("restore_arm", arm) for arm in wanted if arm in retired]
        changes += [("retire_arm", arm) for arm in known if arm not in wanted and arm not in retired]
        for kind, arm in changes:
            self._write(tx, now, kind, {"arm": arm})

    def _write(
        self, tx: Transaction, now: Moment, kind: str, fields: Mapping[str, Any], decided: Row | None = None
    ) -> None:
        """Let the bandit do what the row will say, by the same function that replays it, and write it."""
        bandit = self._awake(tx)
        event = {**fields} if decided is None else {**_about(decided), **fields}
        PLAYS[kind](bandit, event, RowPast(tx, self.record.id, decided))
        self._append(tx, now, kind, None if decided is None else decided.t, event)
        self._keep_snapshot(tx, bandit)

    def _decided(self, tx: Transaction, outcome: Outcome) -> Row:
        row = tx.row(self.record.id, outcome.seq)
        if row is None:
            raise StoreError(f"the decision of event {outcome.event!r} is missing; go back to a backup")
        return checked(row, "decide")

    def _append(
        self, tx: Transaction, now: Moment, kind: str, t: int | None, fields: Mapping[str, Any], x: bytes | None = None
    ) -> int:
        self._last = tx.append(self.record.id, now, kind, t, fields, x)
        return self._last

    def _keep_snapshot(self, tx: Transaction, bandit: Bandit) -> None:
        if self._last - self._snapshot >= max(SPACING, bandit.state.nbytes // BYTES_A_ROW):
            self.save(tx)

    def save(self, tx: Transaction) -> None:
        """Keep a snapshot of what has been learned so far."""
        if self._bandit is not None and self._last > self._snapshot:
            tx.keep(self.record.id, self._last, self._bandit.to_bytes())
            self._snapshot = self._last


def _same_arms(record: list[Arm] | None, given: list[Arm] | None) -> bool:
    return record == given if record is None or given is None else set(record) == set(given)


def _about(decided: Row) -> dict[str, Any]:
    """Name the decision that a row is about, but not by its event, which may be personal data."""
    return {"of": decided.seq, "id": decided.fields["id"]}


def _check_no_id(event: str, bandit: Bandit) -> None:
    """Refuse a name that a later decision without a name will have."""
    step, _, mark = event.partition("-")
    is_like_one = len(mark) == MARK and len(step) < MARK and step.isdecimal()
    if is_like_one and int(step) > bandit.t and mark == f"{coins(bandit.seed, int(step)).mark:0{MARK}x}":
        raise EventError(f"event is {event!r}, the id of a decision that is still to come; give another name")
