"""What becomes of the parts of a reward: they are held, given to the bandit, or corrected.

The bandit learns a row when it has all parts. A row of the loop says which of them came, and which it had before, so
that it can be played without those before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from armlet.bandit import Bandit
from armlet.errors import InvalidTypeError, InvalidValueError
from armlet.inputs.outcomes import Outcomes
from armlet.kernel import Decision
from armlet.stores.draft import Draft
from armlet.stores.learning import Recent, billed_of, check_played, expire, learns_any, substituted
from armlet.stores.ledger import Moment, Outcome, Part, Phase
from armlet.stores.parts.judging import (
    PartsVerdict,
    closed_parts,
    counted_parts,
    judge_parts,
    parts_of,
    still_taken,
    to_give,
)
from armlet.stores.rewards import Reward, Status
from armlet.types import Arm

if TYPE_CHECKING:
    from armlet.stores.runner import LoopRunner


def outcomes_of(bandit: Bandit) -> Outcomes:
    """Return the outcomes of a bandit that has several."""
    outcomes = bandit._settings.outcomes
    if outcomes is None:
        raise InvalidTypeError("the loop has one reward, and no outcomes")
    return outcomes


def judged_parts(runner: LoopRunner, known: Recent, told: Reward) -> PartsVerdict:
    """Judge the parts of a reward, which may be of another arm than the one that was decided."""
    if told.played is not None:
        check_played(runner, told.played)
    if known.outcome.phase == "expired" and known.outcome.parts:
        known.outcome = known.outcome._replace(parts=still_taken(runner.rules, known.outcome) or None)
    outcome = known.outcome
    if told.played is None or told.played == known.arm or not outcome.parts:
        return judge_parts(runner.rules, outcome, told)
    if outcome.phase != "default":
        return PartsVerdict("conflict", {})
    fresh = judge_parts(runner.rules, outcome._replace(phase="expired", parts=None), told)
    return PartsVerdict("late", fresh.parts, is_moved=True) if fresh.parts else fresh


def count_parts(
    runner: LoopRunner, draft: Draft, now: Moment, known: Recent, told: Reward, verdict: PartsVerdict
) -> Status:
    """Let parts count: they are held, corrected, or given to the bandit."""
    start, status, is_first = draft.seq, verdict.status, not known.outcome.parts
    defaults: list[str] = []
    if verdict.is_moved:
        defaults = [name for name in known.outcome.parts or () if name not in verdict.parts]
        _take_parts_back(runner, draft, now, known)
    before = known.outcome
    after = counted_parts(before, told, verdict)
    if before.played is None and after.played == known.decision.arm:
        after = after._replace(played=None)
    fresh = to_give(runner.rules, after)
    waiting = {name for name, each in verdict.parts.items() if each.act == "hold"}.difference(fresh)
    if held := {name: value for name, value in parts_of(told).items() if name in waiting}:
        fields = {"of": before.seq, "id": known.decision.id, "reward": held}
        runner.append_about(draft, now, known, "reward", fields)
    if changed := {name: each.value for name, each in verdict.parts.items() if each.act == "correct"}:
        _correct_parts(runner, draft, now, known, changed)
    if fresh:
        after = _give(runner, draft, now, known, after, fresh, defaults)
        status = "counted" if after.phase == "expired" and to_give(runner.rules, after) else status
    if draft.seq == start:
        runner.answer(status, now)
    else:
        last = draft.rows[-1]
        answer = {"status": status} if is_first else {"status": status, "later": True}  # of which no delay is counted
        draft.rows[-1] = last._replace(fields={**last.fields, **answer})
    known.outcome = after
    draft.change(after)
    if after.phase == "learned" and runner.rules.aggregation == "first":
        runner.settled.append(after.event)
    return status


def _give(
    runner: LoopRunner,
    draft: Draft,
    now: Moment,
    known: Recent,
    outcome: Outcome,
    fresh: Mapping[str, float],
    defaults: Iterable[str] = (),
    **marks: str,
) -> Outcome:
    """Let the bandit learn parts, of the arm that was played; return the outcome then, expired if the policy cannot.

    `known` has the outcome as it was, `outcome` is that with all parts that count; `defaults` are those of a window.
    """
    if outcome.played is not None and known.decision.arm != outcome.played:
        if not known.decision.expired:
            expire(runner, draft, now, known)
        if not learns_any(runner.bandit):
            return outcome._replace(phase="expired", due=None)
        known.decision = substituted(known, outcome.played)
    decision, expired = known.decision, known.decision.expired
    had = given_of(decision)
    fields = {"of": outcome.seq, "id": decision.id, "reward": dict(fresh), "weight": 1.0, **marks}
    fields |= billed_of(decision)
    runner.cast.learn(decision, fresh)
    fields |= _state_of(had, is_whole=decision.learned, expired=expired, played=outcome.played)
    runner.append_about(draft, now, known, "learn", fields)
    parts = dict(outcome.parts or {})
    for name in fresh:
        parts[name] = parts[name]._replace(phase="default" if name in defaults else "learned")
    if not decision.learned:
        return outcome._replace(parts=parts)
    is_default = all(part.phase == "default" for part in parts.values())
    phase: Phase = "default" if is_default else "learned"
    return outcome._replace(parts=parts, phase=phase, due=None)


def given_of(decision: Decision) -> dict[str, float]:
    """Return the parts that the bandit has of a decision."""
    return dict(decision.reward) if isinstance(decision.reward, Mapping) else {}


def is_told_elsewhere(known: Recent) -> bool:
    """Whether somebody who was given the decision has let another bandit learn it."""
    decision, outcome = known.decision, known.outcome
    if decision.learned != (outcome.phase in ("learned", "default")):
        return True
    return outcome.parts is not None and given_of(decision) != outcome.given


def _state_of(had: Mapping[str, float], *, is_whole: bool, expired: bool, played: Arm | None) -> dict[str, Any]:
    """Return what a row says of a decision besides: the parts that the bandit had, and whether it waits for more."""
    told: dict[str, Any] = {"had": dict(had)} if had else {}
    if not is_whole:
        told["waits"] = True
    if expired:
        told["expired"] = True
    return told if played is None else {**told, "played": played}


def _correct_parts(
    runner: LoopRunner, draft: Draft, now: Moment, known: Recent, changed: Mapping[str, float | None]
) -> None:
    outcome, decision = known.outcome, known.decision
    had, new = given_of(decision), {name: value for name, value in changed.items() if value is not None}
    old = {name: had[name] for name in new}
    expired, is_whole = decision.expired, decision.learned
    fields = {"of": outcome.seq, "id": decision.id, "old_reward": old, "new_reward": new, **billed_of(decision)}
    runner.noting_losses(lambda: runner.cast.correct(decision, old, new))
    fields |= _state_of(had, is_whole=is_whole, expired=expired, played=outcome.played)
    runner.append_about(draft, now, known, "correct", fields)
    same = [name for name in new if runner.rules.parts and runner.rules.parts[name].is_spent and new[name] == old[name]]
    if same and decision.billed is not None:  # what was billed until now is not what it costs
        _bill(runner, draft, now, known, new[same[0]])


def _bill(runner: LoopRunner, draft: Draft, now: Moment, known: Recent, cost: float, **marks: object) -> None:
    """Let the bandit count what a decision costs, and learn nothing from it."""
    outcome, decision = known.outcome, known.decision
    fields = {"of": outcome.seq, "id": decision.id, "cost": cost, **marks, **billed_of(decision)}
    fields |= _state_of(given_of(decision), is_whole=decision.learned, expired=decision.expired, played=outcome.played)
    runner.cast.bill(decision, cost)
    runner.append_about(draft, now, known, "bill", fields)


def bill_part(runner: LoopRunner, draft: Draft, now: Moment, known: Recent, cost: float, **marks: object) -> None:
    """Bill a decision, and remember it until its cost is learned."""
    name = spent_part(runner)
    _bill(runner, draft, now, known, cost, **marks)
    parts = dict(known.outcome.parts or {})
    part = parts.get(name, Part(cost, "billed"))
    parts[name] = part._replace(billed=cost, value=cost if part.phase == "billed" else part.value)
    known.outcome = known.outcome._replace(parts=parts)
    draft.change(known.outcome)


def spent_part(runner: LoopRunner) -> str:
    """Return the part that has a budget."""
    for name, rules in (runner.rules.parts or {}).items():
        if rules.is_spent:
            return name
    raise InvalidValueError(f"loop {runner.name!r} has no budget of a cost that is learned, so nothing can be billed")


def _take_parts_back(runner: LoopRunner, draft: Draft, now: Moment, known: Recent) -> None:
    """Unlearn the defaults of a window, of an arm that was not played; they count for the other one."""
    outcome, decision = known.outcome, known.decision
    given = outcome.given
    fields = {"of": outcome.seq, "id": decision.id, "reward": given, **billed_of(decision)}
    runner.noting_losses(lambda: runner.cast.forget(decision, given))
    runner.append_about(draft, now, known, "forget", fields)
    parts = {
        name: part._replace(phase="held", billed=decision.billed if runner.rules.parts[name].is_spent else None)
        for name, part in (outcome.parts or {}).items()
        if runner.rules.parts is not None
    }
    known.outcome = outcome._replace(phase="expired", parts=parts)


def close_parts(runner: LoopRunner, draft: Draft, now: Moment, known: Recent) -> Outcome:
    """Give the bandit what came in time and the defaults of the rest, or wait no longer where there is none.

    What came stays with the decision: should the missing part come late, the row is learned after all.
    """
    before = known.outcome
    closed = closed_parts(runner.rules, before)
    if closed is None:
        if not known.decision.expired:
            expire(runner, draft, now, known)
        return before._replace(phase="expired", due=None, parts=still_taken(runner.rules, before) or None)
    parts, defaults = closed
    after = before._replace(parts=parts, due=None)
    source = "default" if len(defaults) == len(parts) else "reward"
    known.outcome = _give(runner, draft, now, known, after, to_give(runner.rules, after), defaults, source=source)
    budget = runner.bandit._settings.budget
    if budget is not None and budget.hard and budget.outcome in defaults and known.decision.learned:
        bill_part(runner, draft, now, known, outcomes_of(runner.bandit).ranges[budget.outcome][1])
    return known.outcome
