"""What becomes of a reward: its parts are held, given to the bandit, or corrected.

The bandit learns a row when it has all parts, of which a number is one. It learns first, then rows say which parts came
and which it had before, so that what is refused leaves no row, and each row can be played without those before it. The
last row of a call says what its caller was answered. Where another arm was played than decided, its reward is learned
as of a decision that nobody's coin has made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from armlet.actions.bandit import ActionBandit
from armlet.bandit import Bandit
from armlet.errors import EventError, InvalidValueError, StoreError
from armlet.kernel import Decision
from armlet.stores.draft import Draft
from armlet.stores.ledger import REWARD, Moment, Part, Pending, Row
from armlet.stores.rewards import Judgement, Reward, Status, closed, counted, judge, still_taken, to_give
from armlet.stores.rows.decisions import bytes_of, decision_of, substitute
from armlet.types import Arm

if TYPE_CHECKING:
    from armlet.stores.runner import LoopRunner

FEWEST: Final = 4  # fields of a row about a number: what it is about, the number and its weight
_new = tuple.__new__  # quicker than the call of a class


class Recent:
    """A decision in memory, its row, and what is known of its reward."""

    __slots__ = ("decision", "pending", "row")

    def __init__(self, decision: Decision, pending: Pending, row: Row) -> None:
        self.decision, self.pending, self.row = decision, pending, row

    @property
    def arm(self) -> Arm:
        """The arm that was played."""
        return self.decision.arm if self.pending.played is None else self.pending.played


def judged(runner: LoopRunner, known: Recent, reward: Reward) -> Judgement:
    """Judge a reward, which may be of another arm than the one that was decided."""
    rules, pending = runner.rules, known.pending
    if reward.played is None and pending.phase != "expired":
        return judge(rules, pending, reward)
    if reward.played is not None:
        check_played(runner, reward.played)
    if pending.phase == "expired" and pending.each:
        taken = still_taken(rules, pending.each)
        known.pending = pending = pending.having(taken, "expired", pending.due, is_number=rules.is_number)
    if reward.played is None or reward.played == known.arm or not pending.each:
        return judge(rules, pending, reward)
    if pending.phase != "default":
        return Judgement("conflict", {})
    unknown = pending._replace(phase="expired", value=None, parts=None)
    fresh = judge(rules, unknown, reward)
    return Judgement("late", fresh.parts, is_moved=True) if fresh.parts else fresh


def check_played(runner: LoopRunner, arm: Arm) -> None:
    """Refuse an arm that the loop does not have."""
    if isinstance(runner.bandit, ActionBandit):
        raise EventError(
            f"played is {arm!r}, but the actions of loop {runner.name!r} come with each decision; say what is played "
            "when it is decided, with baseline"
        )
    if arm not in runner.bandit.arms:
        raise EventError(f"played is {arm!r}, which is not an arm of loop {runner.name!r}; give the arm that was shown")


def count(runner: LoopRunner, draft: Draft, now: Moment, known: Recent, reward: Reward, judgement: Judgement) -> Status:
    """Let the parts of a reward count that do: they are held, corrected, or given to the bandit."""
    rules, start, status, verdicts = runner.rules, draft.seq, judgement.status, judgement.parts
    defaults: list[str] = []
    each = known.pending.each
    is_first = not each
    if judgement.is_moved:
        defaults = [name for name in each if name not in verdicts]
        _take_back(runner, draft, now, known)
        each = known.pending.each
    before = after = known.pending
    parts, fresh = counted(rules, before, each, reward, verdicts)
    if before.phase == "default" and any(part.phase == "learned" for part in parts.values()):
        after = after._replace(phase="learned")
    if reward.played is not None and (before.played is not None or reward.played != known.decision.arm):
        after = after._replace(played=reward.played)
    if status == "replaced" and all(each.act == "note" for each in verdicts.values()):
        fresh = {}
    changed: dict[str, float] = {}
    held: dict[str, float] = {}
    for name, (_, act, _) in verdicts.items():
        if act == "correct":
            changed[name] = parts[name].value
        elif act == "hold" and name not in fresh:
            held[name] = reward.parts[name]
    if held:
        fields = {"of": before.seq, "id": known.decision.id, "reward": rules.value(held)}
        runner.append_about(draft, now, known, "reward", fields)
    if changed:
        _correct(runner, draft, now, known, changed)
    if not fresh:
        after = after.having(parts, after.phase, after.due, is_number=rules.is_number)
    else:
        after = give(runner, draft, now, known, after, parts, fresh, defaults)
        if after.phase == "expired" and to_give(rules, after.each, is_open=False):
            status = "counted"
    if draft.seq == start:
        runner.answer(status, now)
    elif rules.is_number and len(runner.last_fields) <= FEWEST:
        runner.last_fields["status"] = status
    else:
        _answer(runner, status, is_first=is_first)
    known.pending = after
    draft.change(after)
    if after.phase == "learned" and rules.aggregation == "first":
        runner.settled.append(after.event)
    return status


def _answer(runner: LoopRunner, status: Status, *, is_first: bool) -> None:
    """Let the last row say what the caller is answered; of later parts, no delay is counted."""
    fields = runner.last_fields
    if not runner.rules.is_number:
        fields |= {"status": status} if is_first else {"status": status, "later": True}
        return
    fields["status"] = status
    for name in ("expired", "played"):  # behind the status
        if name in fields:
            fields[name] = fields.pop(name)


def give(
    runner: LoopRunner,
    draft: Draft,
    now: Moment,
    known: Recent,
    pending: Pending,
    parts: Mapping[str, Part],
    fresh: Mapping[str, float],
    defaults: Sequence[str] = (),
    **marks: str,
) -> Pending:
    """Let the bandit learn parts, of the arm that was played; return what is known then, expired if the policy cannot.

    `parts` are all that count, `fresh` those that the bandit does not have; `defaults` are those of a window.
    """
    is_number = runner.rules.is_number
    if pending.played is not None and known.decision.arm != pending.played:
        if not known.decision.expired:
            expire(runner, draft, now, known)
        if not learns_any(runner.bandit):
            return pending.having(parts, "expired", None, is_number=is_number)
        known.decision = substituted(known, pending.played)
    decision, expired = known.decision, known.decision.expired
    had, billed = ({}, {}) if is_number else (given_of(decision), billed_of(decision))
    value = fresh[REWARD] if is_number else dict(fresh)
    fields = {"of": pending.seq, "id": decision.id, "reward": value, "weight": 1.0, **marks, **billed}
    runner.cast.learn(decision, value)
    is_whole = decision.learned
    if expired or not is_number:
        fields |= _state_of(had, is_whole=is_whole, expired=expired, played=pending.played)
    runner.append_about(draft, now, known, "learn", fields)
    after = dict(parts)
    for name in fresh:
        given, _, rank, names, cost = parts[name]
        after[name] = _new(Part, (given, "default" if name in defaults else "learned", rank, names, cost))
    if not is_whole:
        return pending.having(after, pending.phase, pending.due, is_number=is_number)
    is_default = bool(defaults) and all(part.phase == "default" for part in after.values())
    return pending.having(after, "default" if is_default else "learned", None, is_number=is_number)


def expire(runner: LoopRunner, draft: Draft, now: Moment, known: Recent) -> None:
    """Wait no longer for the reward of a decision."""
    decision, pending = known.decision, known.pending
    runner.cast.expire(decision)
    fields: dict[str, Any] = {"of": pending.seq, "id": decision.id, **billed_of(decision)}
    if pending.given:
        fields["had"] = pending.given
    runner.append_about(draft, now, known, "expire", fields)


def billed_of(decision: Decision) -> dict[str, float]:
    """Return what a row says of a decision that was billed."""
    billed = getattr(decision, "billed", None)  # a decision among actions has no budget
    return {} if billed is None else {"billed": billed}


def given_of(decision: Decision) -> dict[str, float]:
    """Return the parts that the bandit has of a decision, by outcome."""
    return dict(decision.reward) if isinstance(decision.reward, Mapping) else {}


def learned_elsewhere(known: Recent) -> bool:
    """Whether somebody who was given the decision has let another bandit learn it."""
    decision, pending = known.decision, known.pending
    if decision.learned != (pending.phase in ("learned", "default")):
        return True
    return pending.parts is not None and given_of(decision) != pending.given


def substituted(known: Recent, played: Arm) -> Decision:
    """Return the decision as if the arm that was played had been chosen."""
    fields = known.decision.to_dict()
    x = bytes_of(known.decision.x)
    row = Row(known.pending.seq, known.row.ts, "decide", known.pending.t, fields, x)
    return decision_of(substitute(row, played), expired=True)


def _state_of(had: Mapping[str, float], *, is_whole: bool, expired: bool, played: Arm | None) -> dict[str, Any]:
    """Return what a row says of a decision besides: the parts that the bandit had, and whether it waits for more."""
    state: dict[str, Any] = {"had": dict(had)} if had else {}
    if not is_whole:
        state["waits"] = True
    if expired:
        state["expired"] = True
    return state if played is None else {**state, "played": played}


def _correct(runner: LoopRunner, draft: Draft, now: Moment, known: Recent, new: Mapping[str, float]) -> None:
    """Let the bandit have other values of parts instead of those that it was given."""
    rules, pending, decision = runner.rules, known.pending, known.decision
    had, old = given_of(decision), {name: pending.each[name].value for name in new}
    # of a number, a row says who played, and that is enough
    is_whole, expired = decision.learned, decision.expired and not rules.is_number
    before, after = rules.value(old), rules.value(new)
    fields = {"of": pending.seq, "id": decision.id, "old_reward": before, "new_reward": after, **billed_of(decision)}
    runner.noting_losses(lambda: runner.cast.correct(decision, before, after))
    fields |= _state_of(had, is_whole=is_whole, expired=expired, played=pending.played)
    runner.append_about(draft, now, known, "correct", fields)
    same = [name for name in new if rules.parts[name].is_spent and new[name] == old[name]]
    if same and decision.billed is not None:  # what was billed until now is not what it costs
        _bill(runner, draft, now, known, new[same[0]])


def _take_back(runner: LoopRunner, draft: Draft, now: Moment, known: Recent) -> None:
    """Unlearn the defaults of a window, of an arm that was not played; they count for the other one."""
    rules, pending, decision = runner.rules, known.pending, known.decision
    value = rules.value(pending.given)
    fields = {"of": pending.seq, "id": decision.id, "reward": value, **billed_of(decision)}
    runner.noting_losses(lambda: runner.cast.forget(decision, value))
    runner.append_about(draft, now, known, "forget", fields)
    parts = {
        name: part._replace(phase="held", billed=decision.billed if rules.parts[name].is_spent else None)
        for name, part in pending.each.items()
    }
    known.pending = pending.having(parts, "expired", pending.due, is_number=rules.is_number)


# ---- bills


def _bill(runner: LoopRunner, draft: Draft, now: Moment, known: Recent, cost: float, **marks: object) -> None:
    """Let the bandit count what a decision costs, and learn nothing from it."""
    pending, decision = known.pending, known.decision
    fields = {"of": pending.seq, "id": decision.id, "cost": cost, **marks, **billed_of(decision)}
    fields |= _state_of(given_of(decision), is_whole=decision.learned, expired=decision.expired, played=pending.played)
    runner.cast.bill(decision, cost)
    runner.append_about(draft, now, known, "bill", fields)


def bill_part(runner: LoopRunner, draft: Draft, now: Moment, known: Recent, cost: float, **marks: object) -> None:
    """Bill a decision, and remember it until its cost is learned."""
    name = spent_part(runner)
    _bill(runner, draft, now, known, cost, **marks)
    part = known.pending.each.get(name, Part(cost, "billed"))
    billed = part._replace(billed=cost, value=cost if part.phase == "billed" else part.value)
    known.pending = known.pending._replace(parts={**known.pending.each, name: billed})
    draft.change(known.pending)


def spent_part(runner: LoopRunner) -> str:
    """Return the part that has a budget."""
    for name, rules in runner.rules.parts.items():
        if rules.is_spent:
            return name
    raise InvalidValueError(f"loop {runner.name!r} has no budget of a cost that is learned, so nothing can be billed")


# ---- windows


def close(runner: LoopRunner, draft: Draft, now: Moment, known: Recent) -> None:
    """Give the bandit what came in time and the defaults of the rest, or wait no longer where there is none.

    What came stays with the decision: should the missing part come late, the row is learned after all.
    """
    rules, before = runner.rules, known.pending
    found = closed(rules, before)
    if found is not None:
        parts, defaults = found
        source = "default" if len(defaults) == len(parts) else "reward"
        over, fresh = before._replace(due=None), to_give(rules, parts, is_open=False)
        known.pending = give(runner, draft, now, known, over, parts, fresh, defaults, source=source)
        budget = runner.bandit._settings.budget
        if budget is not None and budget.hard and budget.outcome in defaults and known.decision.learned:
            bill_part(runner, draft, now, known, rules.parts[budget.outcome].reward_range[1])
    elif rules.is_number:
        raise StoreError(f"a window of loop {runner.name!r} closes without a default reward; go back to a backup")
    else:
        if not known.decision.expired:
            expire(runner, draft, now, known)
        known.pending = before.having(still_taken(rules, before.each), "expired", None, is_number=False)
    draft.change(known.pending)


def learns_any(bandit: Bandit) -> bool:
    """Whether the policy learns from steps that nobody's coin has chosen."""
    return bandit.policy.learns_from != "explored steps"
