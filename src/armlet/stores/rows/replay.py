"""The state that the rows of a loop lead to: its start model and its rows, one after the other.

What is learned from a row is what was learned from the decision, bit for bit. A snapshot saves reading the first rows;
without one, a state is rebuilt from all of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import takewhile
from typing import Any, Final

import numpy as np

from armlet.actions.bandit import ActionBandit
from armlet.cast.cast import Cast
from armlet.cast.model import read_cast
from armlet.errors import LogError, ModelFileError, StoreError
from armlet.inputs.feature_change import FeatureChange
from armlet.kernel import Decision, json_bytes
from armlet.log.replaying import Restoring
from armlet.lost_digits import keeping_rows
from armlet.record.replay import is_unplayable, play
from armlet.record.rows import PASSIVE, as_events
from armlet.record.values import Event
from armlet.stores.folds import Tally
from armlet.stores.folds.comparisons import Scale
from armlet.stores.ledger import Head, LoopRecord, Row, Session, View
from armlet.stores.rows.decisions import BYTES, checked, decision_of, substitute, timed
from armlet.stores.terms import USUAL, Carry
from armlet.types import Arm, Policy, Reward

MARKS: Final = ("expired", "billed")  # of a decision, in the rows about it
KEPT: Final = 2**13  # decisions that a replay remembers; older ones are read again
PAGE: Final = 5000  # learned at once

Find = Callable[[int], Row | None]
_Learned = tuple[int | None, bytes | None, Arm, float, float, float, bool, int]


class Replay:
    """Plays rows again on a cast; none is decided again, since its context may be erased.

    What was learned is learned by columns, many rows at once, where a rule is compiled: bit for bit the same. A replay
    that goes on with the decisions of another one is of the few rows that a replica has written meanwhile: there one by
    one takes 4 us a row, and columns 6 to 60.
    """

    def __init__(
        self,
        cast: Cast,
        find: Find,
        carry: Carry,
        tally: Tally | None = None,
        counted: int = 0,
        decided: dict[int, Row] | None = None,
    ) -> None:
        self._cast, self._find, self._carry = cast, find, carry
        self._tally, self._counted = tally, counted  # which rows the tally has
        self._is_compiled, self._is_timed = cast.is_compiled, cast.fades_by_time
        # a few rows now and then are quicker one by one; parts come one by one; the price of a budget goes by the order
        has_parts, has_actions = cast.live._settings.outcomes is not None, isinstance(cast.live, ActionBandit)
        is_one_by_one = has_parts or has_actions or decided is not None or cast.has_order
        self._can_have_columns = self._is_compiled and not is_one_by_one
        self._decided = {} if decided is None else decided  # the last ones; it goes on with those of another replay
        self._begun: dict[int, Row] = {}  # since the columns were learned; no reward of theirs has come
        self._learned: list[_Learned] = []
        self._ended: list[Row] = []  # decisions under way whose reward is in the columns
        self._past = RowPast(self.decided, self._reach)
        self._clock: int | None = None
        self._last = 0
        self._value_parts()

    def play(self, rows: Iterable[Row], last: int, *, is_whole: bool = True) -> int:
        """Play rows, the ones after a number; return the number of the last one. `is_whole`: none may be missing."""
        try:
            return keeping_rows(lambda: self._play(rows, last, is_whole))
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
                tally.see(checked(row), self._about(row))
            if kind == "decide":
                if "unit" in fields and not self._cast.is_in_epoch(fields["epoch"]):
                    self.settle()
                    self._cast.begin_epoch(fields["epoch"], t or 0)
                self._decided[seq] = self._begun[seq] = row
                self._clock = t
                if len(self._begun) >= KEPT or not compiled:
                    self.settle()
            elif kind == "learn" and has_columns and "expired" not in fields:
                self._learn(row)
                if len(learned) >= PAGE:
                    self.settle()
            elif kind not in PASSIVE:
                self.settle()
                self._act(checked(row))
                has_columns = self._has_columns
        self.settle()
        return last

    def _value_parts(self) -> None:
        if self._tally is not None:
            self._tally.outcomes.several = self._cast.live._settings.outcomes

    @property
    def _has_columns(self) -> bool:
        """Whether rows are learned by columns: those are read with the ranges of now, and decisions may be older."""
        return self._can_have_columns and self._cast.live._settings.feature_range is None

    def _learn(self, row: Row) -> None:
        rewarded = row.fields
        decided = self._begun.pop(rewarded["of"], None)
        if decided is None:
            decided = self._get(row)
            self._ended.append(decided)
        elif self._is_timed:
            decided = timed(decided)
        _, _, _, t, fields, x = decided
        weight, tag = rewarded.get("weight", 1.0), fields.get("tag", 0)
        columns = (t, x, fields["arm"], rewarded["reward"], weight, fields["propensity"], fields["explored"], tag)
        self._learned.append(columns)

    def _get(self, row: Row) -> Row:
        decided = self.decided(row.fields["of"])
        if decided is None or decided.x is None:
            raise StoreError(f"row {row.seq} of the loop is about row {row.fields['of']}, which is missing")
        return checked(decided, "decide")

    def _act(self, row: Row) -> None:
        try:
            for event in self._events(row):
                play(self._cast, event, self._past)
            if row.kind == "change":
                self._value_parts()
        except (LogError, StoreError):
            raise
        except Exception as error:
            raise _unplayable(row.seq, error) from error

    def _events(self, row: Row) -> list[Event]:
        return plays_of(row)

    def _about(self, row: Row) -> Row | None:
        of = row.fields.get("of")
        return None if of is None else self._decided.get(of) or self._find(of)

    def _reach(self, cast: Cast, minutes: int) -> None:
        """Let the bandit learn rows of a time, which was checked when they were decided."""
        cast.reach_time(minutes)

    def decided(self, seq: int) -> Row | None:
        """Return the row of a decision."""
        row = self._decided.get(seq) or self._find(seq)
        if row is not None and self._is_timed:
            row = timed(row)
        return None if row is None else self._carry.row(row, self._last)

    def settle(self) -> None:
        """Let the bandit know all that was played so far."""
        if self._clock is not None:
            self._cast.advance(self._clock)
            self._clock = None
        try:
            for row in self._begun.values():
                self._cast.begin_decision(row.fields["arm"], row.fields["explored"])
            if self._learned:
                if self._is_timed:
                    self._reach(self._cast, max(learned[-1] for learned in self._learned))
                self._cast.partial_fit(_table(self._learned))
            for row in self._ended:
                self._cast.expire(decision_of(row))
        except Exception as error:
            raise _unplayable(self._last, error) from error
        for gathered in (self._begun, self._learned, self._ended):
            gathered.clear()
        if len(self._decided) > KEPT:
            for seq in list(self._decided)[: -KEPT // 2]:
                del self._decided[seq]


def plays_of(row: Row) -> list[Event]:
    """Return what a row does to a bandit, as events of a log; a change of rules alone does nothing."""
    return as_events({**row.fields, "seq": row.seq, "kind": row.kind, "at": row.ts, "t": row.t})


def written(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a row as they are read back once they are written."""
    read: dict[str, Any] = json.loads(json_bytes(fields))
    return read


def _table(learned: list[_Learned]) -> Mapping[str, Any]:
    """Return decisions and their rewards as a table of `partial_fit`."""
    t, x, arm, reward, weight, propensity, explored, tag = zip(*learned, strict=True)
    contexts = np.frombuffer(b"".join(x), dtype=BYTES).reshape(len(t), -1)
    columns = {"t": t, "arm": arm, "reward": reward, "weight": weight, "propensity": propensity}
    return {"x": contexts, **columns, "explored": explored, "tag": tag}


class RowPast(Restoring):
    """The decisions of a loop, read from its rows."""

    def __init__(self, find: Find, reach: Callable[[Cast, int], None] = Cast.reach_time) -> None:
        self._find, self._reach = find, reach

    def reach(self, cast: Cast, minutes: int) -> None:
        """Let the bandits learn rows of a time."""
        self._reach(cast, minutes)

    def decide(self, cast: Cast, event: Event) -> None:
        """Take the step of a decision."""
        if "unit" in event:
            cast.begin_epoch(event["epoch"], event["t"])
        cast.advance(event["t"])
        cast.begin_decision(event["arm"], event["explored"])

    def get(self, event: Event, reward: Reward | None = None) -> Decision:
        """Return the decision that a row is about, which has learned this reward if one is given."""
        row = self._find(event["of"])
        if row is None or (row.x is None and event["kind"] == "learn"):
            raise StoreError(f"row {event['seq']} of the loop is about row {event['of']}, which is missing")
        row = checked(row, "decide")
        if "played" in event:
            row = substitute(row, event["played"])
        had, waits = event.get("had", reward), "waits" in event or event["kind"] in ("learn", "expire")
        return decision_of(row, had, waits=waits, **{name: event[name] for name in MARKS if name in event})

    def on_table(self, cast: Cast, event: Event) -> None:
        """Leave tables to the loop: each is a row, which decisions name."""

    def on_change(self, t: int, change: FeatureChange) -> None:
        """Leave contexts as they are: `find` carries them."""


def _unplayable(seq: int, error: Exception) -> Exception:
    return _refused(seq, error) if is_unplayable(error) else error


def _refused(seq: int, error: Exception) -> StoreError:
    return StoreError(f"row {seq} of the loop cannot be played again: {error}; go back to a backup")


def _missing(seq: int) -> StoreError:
    return StoreError(f"row {seq} of the loop is missing; go back to a backup")


def recover(
    session: Session | View, record: LoopRecord, head: Head, policy: Policy | None, carry: Carry
) -> tuple[Cast, Tally, int]:
    """Return the cast of a loop, its tally, and the number of the last row in the model that they are made from."""
    counts = session.tally(record.id)
    if counts is None:
        return _recount(session, record, head, policy, carry)
    cast, last = _newest(record, session.snapshot(record.id), policy)
    tally = Tally.from_json(counts)
    replay = Replay(cast, partial(session.row, record.id), carry, tally, head.tallied)
    _go_on(replay, session, record.id, last, head.seq)
    if tally.comparisons.scale is None:  # of a version that did not compare
        _compare(tally, cast, head.seq, head.ts)
    return cast, tally, last


def _recount(
    session: Session | View, record: LoopRecord, head: Head, policy: Policy | None, carry: Carry
) -> tuple[Cast, Tally, int]:
    """Count all rows that are left, and play those after the start model: there is no tally.

    Answers without a row are lost, and the values of decisions that were erased or pruned. Decisions are compared from
    the start model on.
    """
    cast, tally, find = read_cast(record.start, policy=policy), Tally(), partial(session.row, record.id)
    tally.outcomes.several = cast.live._settings.outcomes
    seq = ts = 0
    try:
        for row in takewhile(lambda each: each.seq <= record.base, session.rows(record.id, 0)):
            (seq, ts, *_), of = checked(row), row.fields.get("of")
            tally.see(row, None if of is None else find(of))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _refused(seq, error) from error
    _compare(tally, cast, record.base, ts)
    _go_on(Replay(cast, find, carry, tally, record.base), session, record.id, record.base, head.seq)
    return cast, tally, record.base


def _newest(record: LoopRecord, snapshot: tuple[int, bytes] | None, policy: Policy | None) -> tuple[Cast, int]:
    """Return the newest model of a loop, and the last row that it has learned."""
    if snapshot is not None and snapshot[0] >= record.base:
        try:
            return read_cast(snapshot[1], policy=policy), snapshot[0]
        except ModelFileError:
            pass  # a snapshot is only a cache: the rows say the same
    return read_cast(record.start, policy=policy), record.base


def _compare(tally: Tally, cast: Cast, seq: int, ts: int) -> None:
    """Let a tally compare decisions after a row."""
    settings = cast.live.settings
    tally.comparisons.guards = cast.describe()
    tally.comparisons.begin(Scale(*(settings.reward_range or USUAL), settings.objective == "min"), seq, ts)


def rebuild(session: Session | View, record: LoopRecord, last: int, policy: Policy | None, carry: Carry) -> Cast:
    """Return the cast of a loop from its rows alone, without a snapshot."""
    cast = read_cast(record.start, policy=policy)
    _go_on(Replay(cast, lambda seq: session.row(record.id, seq), carry), session, record.id, record.base, last)
    return cast


def _go_on(replay: Replay, session: Session | View, loop: int, after: int, last: int) -> None:
    reached = replay.play(session.rows(loop, after), after)
    if reached != last:
        raise _missing(reached + 1)
