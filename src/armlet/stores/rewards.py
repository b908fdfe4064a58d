"""Whether a reward counts, and what becomes of it: its parts are held, given to the bandit, or corrected.

A reward has parts, one for each outcome of the loop; a number is a reward with the one part `REWARD`. Each part is
judged by itself, by its own values, names and rank so far. A name tells a retry from another reward of the same value;
a rank tells the truth from a provisional reward. Only rewards of the highest rank so far count, by the loop's
aggregation. What counts is held until the window closes; only a part that has a budget is given to the bandit at once,
since the price has to know of it.

The bandit learns a row when it has all parts, of which a number is one. It learns first, then rows say which parts came
and which it had before, so that what is refused leaves no row, and each row can be played without those before it. The
last row of a call says what its caller was answered, and all is one transaction, so that a reward counts once, no
matter how often it is reported. Where another arm was played than decided, its reward is learned as of a decision that
no coin has made.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from armlet.actions.bandit import ActionBandit
from armlet.bandit import Bandit
from armlet.errors import EventError, InvalidTypeError, InvalidValueError, StoreError
from armlet.inputs.ask import HIGHEST
from armlet.inputs.settings import Range, settle, whole
from armlet.kernel import Decision
from armlet.stores.ledger import REWARD, Moment, Part, PartPhase, Pending, Row
from armlet.stores.rows.decisions import bytes_of, decision_of, substitute
from armlet.stores.transaction import Draft, Recent
from armlet.types import Arm

if TYPE_CHECKING:
    from armlet.stores.runner import LoopRunner

Status: TypeAlias = Literal[
    "accepted",
    "duplicate",
    "conflict",
    "outranked",
    "replaced",
    "late",
    "counted",
    "early",
    "unknown",
    "out_of_range",
]
"""What became of a reward.

accepted: it counts. duplicate: it was reported before. conflict: another value was reported before, which stays.
outranked: a reward of a higher rank was reported before, which stays. replaced: it counts instead of an earlier one.
late: its window had closed; it counts instead of what was learned then. counted: another arm was played than decided,
and the policy cannot learn it. early: there is no such event yet, and it waits for its decision. unknown: there is no
such event. out_of_range: the loop does not take such values.
"""

Aggregation: TypeAlias = Literal["first", "last", "sum"]
"""Which of several rewards of one decision and one rank counts: the first, the last, or all of them added."""

Value: TypeAlias = float | Mapping[str, float]
"""A reward, or several parts of one by outcome."""

Act: TypeAlias = Literal["nothing", "note", "hold", "correct"]

ORDER: Final[tuple[Status, ...]] = (
    "out_of_range",
    "accepted",
    "late",
    "replaced",
    "conflict",
    "outranked",
    "duplicate",
)
"""Of the statuses of several parts, the first of these is what a caller is answered."""

_RANKS: Final = {status: rank for rank, status in enumerate(ORDER)}
FEWEST: Final = 4  # fields of a row about a number: what it is about, the number and its weight
MOST_NAMES = 1000  # of one decision
_new = tuple.__new__  # quicker than the call of a class


@dataclass(frozen=True, slots=True)
class Reward:
    """A reward as a caller reports it."""

    value: Value
    name: str | None = None
    rank: int = 0
    played: Arm | None = None  # if that was not the arm that was decided

    def __post_init__(self) -> None:
        if type(self.rank) is not int or self.rank:
            settle(self, rank=whole(0, HIGHEST))

    def to_dict(self) -> Mapping[str, Any]:
        """Return it in plain JSON types."""
        value = self.value if isinstance(self.value, float) else dict(self.value)
        return {"value": value, "name": self.name, "rank": self.rank, "played": self.played}

    @property
    def parts(self) -> Mapping[str, float]:
        """The values of its parts, by name."""
        return {REWARD: self.value} if isinstance(self.value, float) else self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRules:
    """Which values of a part a loop learns."""

    reward_range: Range
    default: float | None = None  # of windows that close, also of those that were opened before there were none
    binary: bool = False
    is_spent: bool = False  # it has a budget, which is to know of it at once

    def takes(self, value: float) -> bool:
        """Whether the loop's bandit can learn a value."""
        low, high = self.reward_range
        return low <= value <= high and (not self.binary or value in (0.0, 1.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardRules:
    """When a loop learns a reward, and which."""

    parts: Mapping[str, PartRules]  # by outcome that is learned
    is_number: bool = True  # rewards are numbers, with the one part `REWARD`
    window: int | None = None  # microseconds
    early: int | None = None  # microseconds that a reward may wait for its decision
    aggregation: Aggregation = "first"

    def value(self, parts: Mapping[str, float]) -> Value:
        """Return parts as the bandit has them, and rows: a number if rewards are numbers."""
        return parts[REWARD] if self.is_number else dict(parts)

    def check(self, value: Value, known: Mapping[str, object], name: str) -> None:
        """Refuse a number where a loop has outcomes, parts where it has none, and parts that it does not learn."""
        if self.is_number:
            if isinstance(value, Mapping):
                raise InvalidTypeError(f"value is {value!r}, but loop {name!r} has one reward; give a number")
            return
        names = list(self.parts)
        if not isinstance(value, Mapping):
            advice = f"give them by name, such as {{{names[0]!r}: {value!r}}}"
            raise InvalidTypeError(f"value is {value!r}, but loop {name!r} has outcomes; {advice}")
        for part in value:
            if part in known:
                raise InvalidValueError(f"value has {part!r}, whose price of every arm is known; leave it out")
            if part not in self.parts:
                raise InvalidValueError(
                    f"value has {part!r}, which is no outcome of loop {name!r}; those that are learned are {names}"
                )


class Verdict(NamedTuple):
    """What to answer, what to do with a part, and the value that it then has."""

    status: Status
    act: Act
    value: float | None = None


class Judgement(NamedTuple):
    """What to answer, and what to do with each part that counts."""

    status: Status
    parts: Mapping[str, Verdict]
    is_moved: bool = False  # to another arm than the one of which the defaults were learned
    bill: tuple[str, float] | None = None  # what is spent although nothing is learned, and of which part


DUPLICATE: Final = Verdict("duplicate", "nothing")
OUTRANKED: Final = Verdict("outranked", "nothing")
CONFLICT: Final = Verdict("conflict", "nothing")
OUT_OF_RANGE: Final = Verdict("out_of_range", "nothing")
UNKNOWN: Final = Part(0.0, "held")


def judge(rules: RewardRules, pending: Pending, reward: Reward) -> Judgement:
    """Judge each part by itself; if the loop does not take one of them, none counts.

    Examples
    --------
    >>> rules = RewardRules(parts={"reward": PartRules(reward_range=(-1.0, 1.0))})
    >>> judge(rules, Pending(t=1, event="order-17", seq=1, phase="open"), Reward(1.0))[:2]
    ('accepted', {'reward': Verdict(status='accepted', act='hold', value=1.0)})
    >>> judge(rules, Pending(t=1, event="order-17", seq=1, phase="learned", value=1.0), Reward(0.0))[:2]
    ('conflict', {})
    >>> several = RewardRules(parts={name: PartRules(reward_range=(0.0, 1.0)) for name in ("quality", "cost")})
    >>> pending = Pending(t=1, event="order-17", seq=1, phase="open", parts={"cost": Part(0.25, "learned")})
    >>> judge(several, pending, Reward({"quality": 0.5, "cost": 0.25}))[:2]
    ('accepted', {'quality': Verdict(status='accepted', act='hold', value=0.5)})
    >>> judge(several, pending, Reward({"quality": 0.5, "cost": 2.0}, rank=1)).status
    'out_of_range'
    """
    known, each = pending.each, rules.parts
    verdicts: dict[str, Verdict] = {}
    status = ORDER[-1]
    for name, value in reward.parts.items():
        part, limits = known.get(name), each[name]
        if part is None and limits.takes(value):
            verdict = _new(Verdict, ("accepted", "hold", value))
        else:
            verdict = _judge_part(rules, limits, part, value, reward, pending)
        if _RANKS[verdict.status] < _RANKS[status]:
            status = verdict.status
        if verdict.act != "nothing":
            verdicts[name] = verdict
    if status == "out_of_range":
        return Judgement("out_of_range", {}, bill=_cost(rules, pending, reward))
    return _new(Judgement, (status, verdicts, False, None))


def _cost(rules: RewardRules, pending: Pending, reward: Reward) -> tuple[str, float] | None:
    """Return the part that has a budget and what it costs then, if it would count whatever the range says."""
    for name, value in reward.parts.items():
        if rules.parts[name].is_spent:
            free = replace(rules.parts[name], reward_range=(-math.inf, math.inf))
            verdict = _judge_part(rules, free, pending.each.get(name), value, reward, pending)
            return (name, verdict.value) if verdict.value is not None and verdict.act != "note" else None
    return None


def _judge_part(
    rules: RewardRules, limits: PartRules, part: Part | None, value: float, reward: Reward, pending: Pending
) -> Verdict:
    is_sum = rules.aggregation == "sum"
    if part is None or (part.phase == "billed" and not is_sum):
        return _new(Verdict, ("accepted", "hold", value)) if limits.takes(value) else OUT_OF_RANGE
    if reward.name is not None and reward.name in part.names:
        return DUPLICATE
    if part.phase == "default":
        return Verdict("late", "correct", value) if limits.takes(value) else OUT_OF_RANGE
    if reward.rank < part.rank:
        return OUTRANKED
    act: Act = "hold" if part.phase in ("held", "billed") else "correct"
    if is_sum and reward.rank == part.rank:
        total = (part.value if part.billed is None else part.billed) + value
        is_late = rules.window is not None and not pending.is_open
        return Verdict("late" if is_late else "accepted", act, total) if limits.takes(total) else OUT_OF_RANGE
    known = part.value if part.billed is None or not is_sum else part.billed
    if reward.rank == part.rank:
        if value == known and (reward.name is None or rules.aggregation == "first"):
            return DUPLICATE
        if limits.takes(value) and rules.aggregation == "first":
            return CONFLICT
    if not limits.takes(value):
        return OUT_OF_RANGE
    if value == known and part.billed is None:
        return Verdict("replaced", "note", value)  # nothing to learn, but what counts has another name and rank
    return Verdict("replaced", act, value)


def counted(
    rules: RewardRules, pending: Pending, known: Mapping[str, Part], reward: Reward, verdicts: Mapping[str, Verdict]
) -> tuple[dict[str, Part], dict[str, float]]:
    """Return the parts of a decision once those of a reward count, and the values of `to_give`.

    What the bandit has not been given is held.
    """
    rank, report = reward.rank, reward.name
    parts, fresh = dict(known), {}
    for name, (_, act, value) in verdicts.items():
        before = known.get(name, UNKNOWN)
        phase: PartPhase = "learned" if act == "correct" else "held" if before[1] == "billed" else before[1]
        names = before[3] if report is None else with_name(before[3], report)
        now = before[0] if value is None else value
        parts[name] = _new(Part, (now, phase, rank, names, None))
        fresh[name] = now
    is_open = pending.due is not None or pending.phase == "deferred"
    return parts, to_give(rules, parts, is_open=is_open) if known or is_open else fresh


def to_give(rules: RewardRules, parts: Mapping[str, Part], *, is_open: bool) -> dict[str, float]:
    """Return the parts that wait and may be given to the bandit: all, or while rewards wait what is spent.

    Examples
    --------
    >>> each, spent = (PartRules(reward_range=(0.0, 1.0), is_spent=spent) for spent in (False, True))
    >>> rules = RewardRules(parts={"quality": each, "cost": spent}, is_number=False)
    >>> parts = {"quality": Part(0.5, "held"), "cost": Part(0.25, "held")}
    >>> to_give(rules, parts, is_open=True), to_give(rules, parts, is_open=False)
    ({'cost': 0.25}, {'quality': 0.5, 'cost': 0.25})
    """
    fresh: dict[str, float] = {}  # a loop is quicker than a comprehension
    for name, part in parts.items():
        if part[1] == "held" and (not is_open or rules.parts[name].is_spent):
            fresh[name] = part[0]
    return fresh


def still_taken(rules: RewardRules, parts: Mapping[str, Part]) -> dict[str, Part]:
    """Return parts but for those that wait and are out of a range that has changed since."""
    return {name: part for name, part in parts.items() if part.phase != "held" or rules.parts[name].takes(part.value)}


def closed(rules: RewardRules, pending: Pending) -> tuple[dict[str, Part], list[str]] | None:
    """Return the parts of a decision whose window closes, with defaults, and which these are; None if one is missing.

    A part that waits and is out of a range that has changed since counts as not reported.
    """
    before = pending.each
    parts = still_taken(rules, before)
    if any(part.phase == "billed" for part in parts.values()):  # outside of its range: there is no row to learn
        return None
    defaults = [name for name in rules.parts if name not in parts]
    for name in defaults:
        default = rules.parts[name].default
        if default is None:
            return None
        parts[name] = Part(default, "held", names=before[name].names if name in before else ())
    return parts, defaults


def has_room(pending: Pending, reward: Reward) -> bool:
    """Whether each part of a reward can have one more name."""
    known = pending.each
    return all(len(known[name].names) < MOST_NAMES for name in reward.parts if name in known)


def with_name(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    """Return the names of rewards that count, with one more."""
    if len(names) == MOST_NAMES:
        raise InvalidValueError(
            f"name is {name!r}, but the decision has {MOST_NAMES} rewards with names, the most; add up first"
        )
    return (*names, name)


# ---- what becomes of a reward


def judged(runner: LoopRunner, known: Recent, reward: Reward) -> Judgement:
    """Judge a reward, which may be of another arm than the one that was decided."""
    rules, pending = runner.rules, known.pending
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
    source: Literal["", "default", "reward"] = "",
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
    value = fresh[REWARD] if is_number else dict(fresh)
    fields = {"of": pending.seq, "id": decision.id, "reward": value, "weight": 1.0}
    if source:
        fields["source"] = source
    had: Mapping[str, float] = {}
    if not is_number:
        fields |= billed_of(decision)
        had = given_of(decision)
    runner.cast.learn(decision, value)
    is_whole = decision.learned
    if expired or not is_number:
        fields |= _state_of(had, is_whole=is_whole, expired=expired, played=pending.played)
    runner.append_about(draft, now, known, "learn", fields)
    if not is_number:  # whose phase is that of its decision
        phases: dict[str, PartPhase] = {name: "default" if name in defaults else "learned" for name in fresh}
        parts = {name: part._replace(phase=phases.get(name, part.phase)) for name, part in parts.items()}
    if not is_whole:
        return pending.having(parts, pending.phase, pending.due, is_number=is_number)
    is_default = bool(defaults) and (is_number or all(part.phase == "default" for part in parts.values()))
    return pending.having(parts, "default" if is_default else "learned", None, is_number=is_number)


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
        source: Literal["default", "reward"] = "default" if len(defaults) == len(parts) else "reward"
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
    """Whether the policy learns from steps that no coin has chosen."""
    return bandit.policy.learns_from != "explored steps"
