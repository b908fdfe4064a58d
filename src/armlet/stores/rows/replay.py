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
from armlet.bandit import Bandit
from armlet.errors import LogError, ModelFileError, StoreError
from armlet.inputs.feature_change import FeatureChange
from armlet.kernel import Decision, json_bytes
from armlet.log.guarded import guards_of, has_order, is_compiled, read_guarded
from armlet.lost_digits import keeping_rows
from armlet.policies.discounts import fades_by_time, reach_time
from armlet.record.replay import is_unplayable, play
from armlet.record.rows import PASSIVE, as_events
from armlet.record.values import Event
from armlet.stores.ledger import Head, LoopRecord, Row, Session, View
from armlet.stores.rows.decisions import BYTES, checked, decision_of, substitute, timed
from armlet.stores.tally import Tally
from armlet.stores.tally.comparisons import Scale
from armlet.stores.terms import USUAL, Carry
from armlet.types import Arm, Policy, Reward

MARKS: Final = ("expired", "billed")  # of a decision, in the rows about it
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
        self._is_compiled, self._is_timed = is_compiled(bandit), fades_by_time(bandit)
        # a few rows now and then are quicker one by one; parts come one by one; the price of a budget goes by the order
        has_parts, has_actions = bandit._settings.outcomes is not None, isinstance(bandit, ActionBandit)
        is_one_by_one = has_parts or has_actions or decided is not None or has_order(bandit)
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
                if "unit" in fields and not self._bandit._is_in_epoch(fields["epoch"]):
                    self.settle()
                    self._bandit._begin_epoch(fields["epoch"], t or 0)
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
            self._tally.outcomes.several = self._bandit._settings.outcomes

    @property
    def _has_columns(self) -> bool:
        """Whether rows are learned by columns: those are read with the ranges of now, and decisions may be older."""
        return self._can_have_columns and self._bandit._settings.feature_range is None

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
                play(self._bandit, event, self._past)
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

    def _reach(self, bandit: Bandit, minutes: int) -> None:
        """Let the bandit learn rows of a time, which was checked when they were decided."""
        reach_time(bandit, minutes)

    def decided(self, seq: int) -> Row | None:
        """Return the row of a decision."""
        row = self._decided.get(seq) or self._find(seq)
        if row is not None and self._is_timed:
            row = timed(row)
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
                if self._is_timed:
                    self._reach(self._bandit, max(learned[-1] for learned in self._learned))
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


class RowPast:
    """The decisions of a loop, read from its rows."""

    def __init__(self, find: Find, reach: Callable[[Bandit, int], None] = reach_time) -> None:
        self._find, self.reach = find, reach

    def decide(self, bandit: Bandit, event: Event) -> None:
        """Take the step of a decision."""
        if "unit" in event:
            bandit._begin_epoch(event["epoch"], event["t"])
        bandit.replace(t=event["t"])
        bandit._begin_decision(event["arm"], event["explored"])

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

    def on_table(self, bandit: Bandit, event: Event) -> None:
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
) -> tuple[Bandit, Tally, int]:
    """Return the bandit of a loop, its tally, and the number of the last row in the model that they are made from."""
    counts = session.tally(record.id)
    if counts is None:
        return _recount(session, record, head, policy, carry)
    bandit, last = _newest(record, session.snapshot(record.id), policy)
    tally = Tally.from_json(counts)
    replay = Replay(bandit, partial(session.row, record.id), carry, tally, head.tallied)
    _go_on(replay, session, record.id, last, head.seq)
    if tally.comparisons.scale is None:  # of a version that did not compare
        _compare(tally, bandit, head.seq, head.ts)
    return bandit, tally, last


def _recount(
    session: Session | View, record: LoopRecord, head: Head, policy: Policy | None, carry: Carry
) -> tuple[Bandit, Tally, int]:
    """Count all rows that are left, and play those after the start model: there is no tally.

    Answers without a row are lost, and the values of decisions that were erased or pruned. Decisions are compared from
    the start model on.
    """
    bandit, tally, find = read_guarded(record.start, policy=policy), Tally(), partial(session.row, record.id)
    tally.outcomes.several = bandit._settings.outcomes
    seq = ts = 0
    try:
        for row in takewhile(lambda each: each.seq <= record.base, session.rows(record.id, 0)):
            (seq, ts, *_), of = checked(row), row.fields.get("of")
            tally.see(row, None if of is None else find(of))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _refused(seq, error) from error
    _compare(tally, bandit, record.base, ts)
    _go_on(Replay(bandit, find, carry, tally, record.base), session, record.id, record.base, head.seq)
    return bandit, tally, record.base


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


def rebuild(session: Session | View, record: LoopRecord, last: int, policy: Policy | None, carry: Carry) -> Bandit:
    """Return the bandit of a loop from its rows alone, without a snapshot."""
    bandit = read_guarded(record.start, policy=policy)
    _go_on(Replay(bandit, lambda seq: session.row(record.id, seq), carry), session, record.id, record.base, last)
    return bandit


def _go_on(replay: Replay, session: Session | View, loop: int, after: int, last: int) -> None:
    found = replay.play(session.rows(loop, after), after)
    if found != last:
        raise _missing(found + 1)
