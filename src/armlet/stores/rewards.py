"""Whether a reward counts: judged against what is known of its decision, by the reward rules of its loop.

A reward has parts, one for each outcome of the loop; a number is a reward with the one part `REWARD`. Each part is
judged by itself, by its own values, names and rank so far. A name tells a retry from another reward of the same value;
a rank tells the truth from a provisional reward. Only rewards of the highest rank so far count, by the loop's
aggregation.

Functions of their arguments alone. A loop calls them in the transaction that writes what they decide, so that a reward
counts once, no matter how often it is reported. What counts is held until the window closes; only a part that has a
budget is given to the bandit at once, since the price has to know of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from armlet.errors import InvalidTypeError, InvalidValueError
from armlet.inputs.ask import HIGHEST
from armlet.inputs.settings import Range, settle, whole
from armlet.stores.ledger import REWARD, Part, PartPhase, Pending
from armlet.types import Arm

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
        return Judgement("out_of_range", {}, bill=_bill(rules, pending, reward))
    return _new(Judgement, (status, verdicts, False, None))


def _bill(rules: RewardRules, pending: Pending, reward: Reward) -> tuple[str, float] | None:
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
    parts = dict(known)
    for name, (_, act, value) in verdicts.items():
        before = known.get(name, UNKNOWN)
        phase: PartPhase = "learned" if act == "correct" else "held" if before[1] == "billed" else before[1]
        names = before[3] if report is None else with_name(before[3], report)
        parts[name] = _new(Part, (before[0] if value is None else value, phase, rank, names, None))
    return parts, to_give(rules, parts, is_open=pending.due is not None or pending.phase == "deferred")


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
