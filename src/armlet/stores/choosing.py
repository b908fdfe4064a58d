"""How a loop decides among the actions of a table: tables and their names, baselines, and decisions that wait.

Each function takes the runner of the loop, inside a transaction, as those of `stores/rewards.py` do. A table that no
row has is written before the decision; a decision has what it takes to learn, so that its table may change or go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

import numpy as np

from armlet.actions.bandit import ActionBandit
from armlet.actions.decision import ActionDecision
from armlet.actions.table import ActionTable
from armlet.errors import (
    EventError,
    InternalError,
    InvalidTypeError,
    LoopStateError,
    StoreError,
    UnknownNameError,
    choices,
)
from armlet.inputs.actions import dense, read_context
from armlet.inputs.ask import Ask
from armlet.stores.ledger import Moment, Pending, Row
from armlet.stores.rewards import give, to_give
from armlet.stores.rows.decisions import action_bytes_of, action_fields_of, bytes_of, decision_of
from armlet.stores.rows.replay import written
from armlet.stores.rows.tables import KeptTable, fields_of_table, table_of
from armlet.stores.runner import LoopRunner, check_no_id
from armlet.stores.transaction import Draft, Recent, Transaction, Work
from armlet.types import Arm, Context, Contexts, Float64

if TYPE_CHECKING:
    from armlet.actions.settings import ActionSettings
    from armlet.kernel import Decision

EMPTY: Final[Float64] = np.empty(0)

Actions: TypeAlias = ActionTable | str
"""A table, or the name of one that was prepared."""


class Choice(NamedTuple):
    """A decision for a context, among the actions of a table, with its options."""

    x: Float64
    actions: Actions
    ask: Ask

    def is_like(self, row: Row, table: str | None) -> bool:
        """Whether a decision was made for the same context and actions, in the same way; by the hash of the table."""
        fields, x, ask = row.fields, row.x, self.ask
        if x is None or x[: 8 * fields["dim"]] != bytes_of(self.x):
            return False
        is_named = isinstance(self.actions, str) and fields.get("prepared") == self.actions
        given = ask.get("eligible")
        eligible, known = [None if each is None else set(each) for each in (given, fields["eligible"])]
        baseline = fields["arm"] if "shadow" in fields else None
        is_same_way = (eligible, ask.get("baseline"), "defer" in ask) == (known, baseline, "deferred" in fields)
        return (is_named or fields["actions"] == table) and is_same_way


# ---- what callers give, read in their threads


def context_of(settings: ActionSettings, x: Context | None) -> Float64:
    """Read a context; None where a loop has none."""
    if x is None and settings.dim == 0:
        return EMPTY
    return read_context(x, settings.reader, settings.action_reader).copy()


def contexts_of(settings: ActionSettings, X: Contexts) -> Float64:
    """Read contexts, one a row."""
    return settings.reader.matrix(dense(X)).copy()


# ---- deciding


def decide(runner: LoopRunner, tx: Transaction, draft: Draft, now: Moment, choice: Choice) -> ActionDecision:
    """Decide among the actions of a table, or return the decision that this event has."""
    ask, given = choice.ask, choice.actions
    event, is_deferred = ask.get("event"), "defer" in ask
    if event is not None:
        known = runner.find(tx, event)
        if known is not None:
            return _again(runner, tx, draft, known, choice)
        check_no_id(event, runner.bandit)
    table = _named(runner, tx, draft, given).table if isinstance(given, str) else given
    decision, shadow = _chosen(action_bandit(runner), table, choice, draft.clock + 1)
    name = decision.id if event is None else event
    fields = {**action_fields_of(decision, name), "table": _row(runner, tx, draft, now, given), **shadow}
    if isinstance(given, str):
        fields["prepared"] = given
    if is_deferred:
        fields["deferred"] = True
    row = runner.append(draft, now, "decide", decision.t, fields, action_bytes_of(decision))
    window = runner.rules.window
    due = None if window is None or is_deferred else now.steady + window
    outcome = Pending(decision.t, name, row.seq, "deferred" if is_deferred else "open", None, due)
    alike = cast("Decision", decision)  # it is learned like any other
    runner.wait_for(tx, draft, now, Recent(alike, outcome, row))
    return decision if "probabilities" not in ask else _with_probabilities(decision, table)


def _with_probabilities(decision: ActionDecision, table: ActionTable) -> ActionDecision:
    """Add the probability of every row of the table, from those that the decision has by label."""
    some = table.labels if decision.eligible is None else decision.eligible
    chances = decision.support or dict.fromkeys(some, decision.propensity)
    decision.probabilities = np.array([chances.get(label, 0.0) for label in table.labels])
    return decision


def _again(runner: LoopRunner, tx: Transaction, draft: Draft, known: Recent, choice: Choice) -> ActionDecision:
    row = runner.row(tx, draft, known)
    if not choice.is_like(row, _hash(runner, choice.actions)):
        raise EventError(
            f"event {known.pending.event!r} has been decided for another context, other actions or eligible ones, "
            "another baseline, or as deferred or not; give a new decision another name, or repeat the first one as it "
            "was"
        )
    decision = cast("ActionDecision", decision_of(row))
    if "probabilities" not in choice.ask:
        return decision
    return _with_probabilities(decision, read_table(runner, tx, draft, row.fields["table"]).table)


def _chosen(
    bandit: ActionBandit, table: ActionTable, choice: Choice, t: int
) -> tuple[ActionDecision, Mapping[str, Mapping[str, Arm]]]:
    """Return what is played, and what the policy would have played if its caller says what that is."""
    eligible, baseline = choice.ask.get("eligible"), choice.ask.get("baseline")
    among = table.labels if eligible is None else [*eligible]
    if baseline is not None and (baseline not in table or baseline not in among):
        hint = choices(str(baseline), map(str, among))
        raise UnknownNameError(f"baseline is {baseline!r}, which is not an action that could be played; {hint}")
    decision = bandit.decide(choice.x, table, eligible=eligible, t=t, propensity="marginal")
    if baseline is None:
        return decision, {}
    return decision.instead(baseline, table[baseline]), {"shadow": {"arm": decision.arm}}


def action_bandit(runner: LoopRunner) -> ActionBandit:
    """Return the bandit of a loop whose actions come with each decision."""
    bandit: Any = runner.bandit
    if not isinstance(bandit, ActionBandit):
        raise InvalidTypeError(
            f"actions are given, but loop {runner.name!r} has arms; leave them out, or make a loop with action_features"
        )
    return bandit


# ---- tables


def prepare(runner: LoopRunner, tx: Transaction, draft: Draft, now: Moment, name: str, table: ActionTable) -> None:
    """Give a table a name, by a row, unless it has that already."""
    action_bandit(runner)
    catalogue = runner.tally.catalogue
    found = None if catalogue is None else catalogue.prepared.get(name)
    if found is not None and found.hash == table.hash:
        return
    base = None if found is None else _named(runner, tx, draft, name)
    seq = _write(runner, draft, now, table, name, base)
    try:
        runner.tables[name] = runner.last_table = read_table(runner, tx, draft, seq)  # as others will, from its row
    except StoreError as error:
        raise InternalError(f"nothing of this call was kept: {error}") from error


def remove_table(runner: LoopRunner, draft: Draft, now: Moment, name: str) -> None:
    """Take its name from a table, by a row."""
    found = {} if runner.tally.catalogue is None else runner.tally.catalogue.prepared
    if name not in found:
        hint = choices(name, found) if found else "there is none"
        raise UnknownNameError(f"name is {name!r}, which no prepared table of the loop has; {hint}")
    runner.append(draft, now, "remove_table", None, written({"name": name}))
    runner.tables.pop(name, None)


def named_tables(runner: LoopRunner, tx: Transaction, draft: Draft) -> dict[str, ActionTable]:
    """Return the tables that were prepared, by name."""
    found = {} if runner.tally.catalogue is None else runner.tally.catalogue.prepared
    return {name: _named(runner, tx, draft, name).table for name in found}


def _row(runner: LoopRunner, tx: Transaction, draft: Draft, now: Moment, actions: Actions) -> int:
    """Return the row of a table, which is written if there is none."""
    if isinstance(actions, str):
        return _named(runner, tx, draft, actions).seq
    catalogue = runner.tally.catalogue
    seq = None if catalogue is None else catalogue.find(actions.hash)
    return _write(runner, draft, now, actions, None, runner.last_table) if seq is None else seq


def _write(
    runner: LoopRunner, draft: Draft, now: Moment, table: ActionTable, name: str | None, base: KeptTable | None
) -> int:
    content = fields_of_table(table, name, base)
    if name is not None:
        content = content._replace(fields=written(content.fields))
    seq = runner.append(draft, now, "actions", None, content.fields, content.Z).seq
    runner.last_table = KeptTable(seq, content.depth, table)
    return seq


def _named(runner: LoopRunner, tx: Transaction, draft: Draft, name: str) -> KeptTable:
    """Return a table that was prepared, by this process or another."""
    found = {} if runner.tally.catalogue is None else runner.tally.catalogue.prepared
    if name not in found:
        hint = choices(name, found) if found else "there is none yet"
        raise UnknownNameError(f"actions is {name!r}, the name of no table of the loop: prepare it first; {hint}")
    kept = runner.tables.get(name)
    if kept is None or kept.seq != found[name].seq:
        kept = runner.tables[name] = read_table(runner, tx, draft, found[name].seq)
    return kept


def read_table(runner: LoopRunner, tx: Transaction, draft: Draft, seq: int) -> KeptTable:
    """Read a table from its row, which may not be written yet."""
    unwritten = {row.seq: row for row in draft.rows if row.kind == "actions"}

    def find(number: int) -> Row | None:
        return unwritten.get(number) or tx.session.row(runner.id, number)

    row = find(seq)
    if row is None:
        raise StoreError(f"row {seq} of the loop, a table of actions, is missing; go back to a backup")
    return table_of(row, find)


def _hash(runner: LoopRunner, actions: Actions) -> str | None:
    """Return the hash of a table, also of one that was prepared; None if there is none of this name now."""
    if not isinstance(actions, str):
        return actions.hash
    catalogue = runner.tally.catalogue
    found = None if catalogue is None else catalogue.prepared.get(actions)
    return None if found is None else found.hash


# ---- decisions that wait to be activated


def activating(runner: LoopRunner, event: str) -> Work[bool]:
    """Return what lets a deferred decision count from now on; whether it was deferred until now."""

    def work(tx: Transaction, draft: Draft, now: Moment) -> bool:
        known = runner.find(tx, event)
        if known is None:
            raise EventError(f"event is {event!r}, of which there is no decision; decide it first, with defer=True")
        if known.pending.phase != "deferred":
            return False
        _activate(runner, draft, now, known)
        return True

    return work


def _activate(runner: LoopRunner, draft: Draft, now: Moment, known: Recent) -> None:
    """Begin the window of a decision, or learn the reward that waits if there is none."""
    before, window, first = known.pending, runner.rules.window, len(draft.rows)
    runner.append_about(draft, now, known, "activate", {"of": before.seq, "id": known.decision.id})
    known.pending = before._replace(phase="open", due=None if window is None else now.steady + window)
    parts = known.pending.each
    fresh = to_give(runner.rules, parts, is_open=window is not None)
    if fresh and all(runner.rules.parts[name].takes(value) for name, value in fresh.items()):
        known.pending = give(runner, draft, now, known, known.pending, parts, fresh, source="reward")
    draft.change(known.pending)
    runner.see(draft, known, first)


# ---- what a loop with actions is not for


def check_has_arms(runner: LoopRunner, what: str) -> None:
    """Refuse what is for loops with arms."""
    if isinstance(cast("object", runner.bandit), ActionBandit):
        raise LoopStateError(
            f"{what} is for loops with arms, but the actions of loop {runner.name!r} come with each decision; see "
            "loop.prepare for tables of them, and baseline= of loop.decide for what else could be played"
        )
