"""The rows of a loop as events of a log: any reader of an `armlet.Log` reads a `LoopLog`.

Tables of actions are told as logs tell them: before the first decision among their actions, and again if readers need
not keep them any more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Any, Final

from armlet import model_file
from armlet.actions import file as action_file
from armlet.actions.bandit import ActionBandit
from armlet.bandit import Bandit
from armlet.cast.model import read_cast
from armlet.errors import StoreError
from armlet.log.action_tables import KEPT, Tables
from armlet.record.arms import ArmLabels
from armlet.record.contradictions import ACTION_SCHEMA, SCHEMA
from armlet.record.kinds import ARM_CHANGES, FORMAT, OF_TABLES
from armlet.record.rows import INTERNAL, as_events
from armlet.record.values import Event
from armlet.stores.ledger import LedgerReader, LoopRecord, Row
from armlet.stores.rows.decisions import checked, context_of, decision_of, had_of, pair_of, substitute, timed
from armlet.stores.rows.tables import table_of
from armlet.stores.terms import Terms
from armlet.types import Arm, Policy

LONGEST: Final = 19  # digits of a step


class LoopLog(ArmLabels):
    """The events of a loop, the start first; read again, and in bounded memory, each time.

    After rows were pruned or erased, what is left cannot be replayed from the first one on; from the model that the
    loop goes on from, it can: `replayable`.
    """

    def __init__(self, ledger: LedgerReader, record: LoopRecord, policy: Policy | None, after: int = 0) -> None:
        self._ledger, self._record, self._policy, self._after = ledger, record, policy, after
        self._carry = Terms.read(record).carry
        self._changed: Mapping[Arm, str] | None = None  # how an arm changed first; read when it is needed
        self._is_timed: bool | None = None  # whether the start model forgets by time; also

    @property
    def about(self) -> Mapping[str, Any]:
        """The fields of the start: arms, features, policy and the like, but not the seed."""
        head = {"seq": 0, "kind": "start", "at": 0, "format": FORMAT}
        cast = read_cast(self._record.start, policy=self._policy)
        fields: dict[str, Any] = {**_described(cast.live)}
        head |= {"schema": ACTION_SCHEMA if "action_dim" in fields else SCHEMA, "loop": self._record.name}
        if guards := cast.describe():
            fields |= {"guards": guards, "digest": cast.digest()}
        if self._after != self._record.base:  # the rows are older than the model that there is
            fields["digest"] = None
            if "arms" in fields:
                fields |= self._arms_before(fields["arms"], fields["retired"])
            fields.pop("guards", None)  # events say when these came
        return {**head, **fields, "start_model": hashlib.sha256(self._record.start).hexdigest()}

    def _arms_before(self, arms: Iterable[Arm], retired: Iterable[Arm]) -> Mapping[str, list[Arm]]:
        """Return the arms before the first row, by those of the model: the first row about an arm says what it was."""
        if self._changed is None:
            rows = self._ledger.rows(self._record.id, self._after)
            before = takewhile(lambda row: row.seq <= self._record.base, rows)
            changes = [(row.fields["arm"], row.kind) for row in before if row.kind in ARM_CHANGES and checked(row)]
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
        """The model that `replayable` goes on from, for `armlet.audit`; a model file if its policy is alone.

        It holds the seed: keep it to yourself.
        """
        return self._record.start

    def __iter__(self) -> Iterator[Event]:
        yield dict(self.about)
        seq, tables = 0, _Tables(self._ledger, self._record.id)
        for row in self._ledger.rows(self._record.id, self._after):
            named = tables.events(row) if row.kind in OF_TABLES or "table" in row.fields else ()
            for event in (*named, *self._events(row)):
                seq += 1
                yield {**event, "seq": seq}

    def _events(self, row: Row) -> Iterator[Event]:
        if row.kind in OF_TABLES:  # told with the first decision that needs it, if it has no name
            return
        is_before = row.seq <= self._record.base  # then it is told with the features of the start, which come later
        for event in events_of(self._carry.row(row, self._record.base) if is_before else row, row.seq):
            if not (is_before and "features" in event):
                yield self._complete(event, row)

    def _complete(self, event: Event, row: Row) -> Event:
        """Return an event with what a reader that does not have the rows before needs."""
        if row.kind == "correct" and "had" in row.fields:  # a log has all parts in it
            event |= {"old_reward": row.fields["had"], "new_reward": had_of(row.fields, "new_reward")}
        if row.kind == "bill" and "had" in row.fields:  # what it had, should nobody remember
            event |= {"reward": row.fields["had"]} | ({} if "waits" in row.fields else {"weight": 1.0})
        if "played" in event or ("had" in row.fields and row.fields["of"] <= self._after):
            decided = self._ledger.decided(self._record.id, row.t or 0)
            if decided is not None:
                upto = max(row.seq, self._record.base)
                event["decision"] = self._record_of(self._carry.row(decided, upto), row)
        return event

    def _record_of(self, decided: Row, row: Row) -> Mapping[str, Any]:
        """Return the record of a decision that cannot be made again from these events.

        That of the arm that was played instead of the one that was decided; or one whose parts came before them.
        """
        fields, is_correction = row.fields, row.kind in ("correct", "bill")
        had = fields.get("had", fields.get("old_reward"))
        decided = self._with_time(decided)
        played = substitute(decided, fields["played"]) if "played" in fields else decided
        is_expired = "expired" in fields or ("played" in fields and not is_correction)
        waits = not is_correction or "waits" in fields
        marks: dict[str, object] = {"expired": True} if is_expired else {}
        if "billed" in fields:
            marks["billed"] = fields["billed"]
        return decision_of(played, had, waits=waits, **marks).to_dict()

    def _with_time(self, decided: Row) -> Row:
        """Return a decision with its time, which one from before the loop forgot by time does not tell."""
        if self._is_timed is None:
            self._is_timed = read_cast(self._record.start, policy=self._policy).fades_by_time
        return timed(decided) if self._is_timed else decided

    def find(self, decision: str) -> Event | None:
        """Find a decision by its id."""
        step = decision.partition("-")[0]
        row = self._ledger.decided(self._record.id, int(step)) if step.isdecimal() and len(step) < LONGEST else None
        if row is None or checked(row, "decide").fields["id"] != decision:
            return None
        return events_of(self._with_time(self._carry.row(row, self._record.base)), row.seq)[0]


class _Tables:
    """The tables of a loop as events: each when a decision needs it, or it has a name, unless readers keep it."""

    def __init__(self, ledger: LedgerReader, loop: int) -> None:
        self._ledger, self._loop = ledger, loop
        self._kept = Tables()
        self._recent: dict[int, Row] = {}  # the last rows of tables, which the next decisions are about

    def events(self, row: Row) -> Iterator[Event]:
        """Tell the table of a decision, or one that has a name."""
        if row.kind == "actions":
            self._recent[row.seq] = row
            if len(self._recent) > KEPT:
                del self._recent[next(iter(self._recent))]
            if "name" in row.fields:
                yield from self._table_events(row, row.seq, row.fields["hash"], row.fields["name"])
        elif row.kind == "remove_table":
            name = checked(row).fields["name"]
            if name in self._kept.named:  # else its row was pruned, or is before the start
                yield {"seq": row.seq, "kind": row.kind, "at": row.ts, "name": name}
                self._kept.drop(name)
        else:
            yield from self._table_events(row, row.fields["table"], row.fields["actions"])

    def _table_events(self, row: Row, number: int, wanted: str, name: str | None = None) -> Iterator[Event]:
        table = self._kept.find(wanted) or table_of(self._row(number), self._row).table
        fields = self._kept.fields(table, name)
        if fields is not None:
            yield {"seq": row.seq, "kind": "actions", "at": row.ts, **fields}
        self._kept.take(table, name)

    def _row(self, seq: int) -> Row:
        row = self._recent.get(seq) or next(self._ledger.rows(self._loop, seq - 1), None)
        if row is None or row.seq != seq:
            raise StoreError(f"row {seq} of the loop, a table of actions, is missing; go back to a backup")
        return row


def _described(bandit: Bandit) -> Mapping[str, Any]:
    """Describe a bandit of any kind in plain JSON types, without its seed."""
    if isinstance(bandit, ActionBandit):
        return action_file.describe(bandit._model())
    return model_file.describe(bandit._model())


def events_of(row: Row, seq: int) -> list[Event]:
    """Return a row as events with another number; a reward that waits for its window to close is a note.

    Examples
    --------
    >>> events_of(Row(seq=9, ts=5, kind="reward", t=1, fields={"of": 1, "id": "1-0f", "reward": 0.5}), 3)
    [{'seq': 3, 'kind': 'note', 'at': 5, 'id': '1-0f', 'reward': 0.5}]
    """
    head = {"seq": seq, "kind": row.kind, "at": row.ts}
    fields = checked(row).fields
    if row.kind == "decide":
        features = pair_of(row) if "actions" in fields else {"x": context_of(row)}
        head |= {"id": fields["id"], "t": row.t, **features}
    events = as_events({**head, **fields})
    if row.kind == "correct":
        events[0]["weight"] = 1.0  # as loops learn; a log says so, since it may have lost what was learned
    return [{name: value for name, value in event.items() if name not in INTERNAL} for event in events]
