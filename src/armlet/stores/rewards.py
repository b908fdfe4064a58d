"""Whether a reward counts: judged against what is known of its decision, by the reward rules of its loop.

A function of its arguments alone. A loop calls it in the transaction that writes what it decides, so that a reward
counts once, no matter how often it is reported. A name tells a retry from another reward of the same value; a rank
tells the truth from a provisional reward. Only rewards of the highest rank so far count, by the loop's aggregation.
Where a reward has several parts, each of them is judged like this by itself: `stores/parts/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from armlet.errors import InvalidTypeError, InvalidValueError
from armlet.inputs.ask import HIGHEST
from armlet.inputs.settings import Range, settle, whole
from armlet.stores.ledger import Outcome, Phase
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

Act: TypeAlias = Literal["nothing", "note", "hold", "learn", "correct", "move"]

MOST_NAMES = 1000  # of one decision


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
    def number(self) -> float:
        """The value of a reward without parts."""
        if isinstance(self.value, float):
            return self.value
        raise InvalidTypeError(f"value is {self.value!r}, but the loop has one reward; give a number")


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardRules:
    """When a loop learns a reward, and which."""

    window: int | None = None  # microseconds
    default: float | None = None  # of windows that close, also of those that were opened before there were none
    early: int | None = None  # microseconds that a reward may wait for its decision
    aggregation: Aggregation = "first"
    reward_range: Range
    binary: bool = False
    parts: Mapping[str, RewardRules] | None = None  # by outcome that is learned, where there are several
    is_spent: bool = False  # of a part: it has a budget, which is to know of it at once

    def takes(self, value: float) -> bool:
        """Whether the loop's bandit can learn a value."""
        low, high = self.reward_range
        return low <= value <= high and (not self.binary or value in (0.0, 1.0))


class Verdict(NamedTuple):
    """What to answer, what to do, and the value that the decision then has."""

    status: Status
    act: Act
    value: float | None = None


def judge(rules: RewardRules, outcome: Outcome | None, reward: Reward) -> Verdict:
    """Judge a reward.

    Examples
    --------
    >>> rules = RewardRules(reward_range=(-1.0, 1.0))
    >>> judge(rules, Outcome(t=1, event="order-17", seq=1, phase="open"), Reward(1.0))
    Verdict(status='accepted', act='learn', value=1.0)
    >>> judge(rules, Outcome(t=1, event="order-17", seq=1, phase="learned", value=1.0), Reward(0.0))
    Verdict(status='conflict', act='nothing', value=None)
    """
    if outcome is None:
        return Verdict("unknown", "nothing")
    if reward.name is not None and reward.name in outcome.names:
        return Verdict("duplicate", "nothing")
    if outcome.value is None or outcome.phase == "default":
        return _first(rules, outcome, reward.number)
    if reward.rank < outcome.rank:
        return Verdict("outranked", "nothing")
    if reward.rank > outcome.rank:
        return _instead(rules, outcome, reward.number)
    return _further(rules, outcome, outcome.value, reward)


def _first(rules: RewardRules, outcome: Outcome, value: float) -> Verdict:
    if not rules.takes(value):
        return Verdict("out_of_range", "nothing")
    if outcome.phase == "default":
        return Verdict("late", "correct", value)
    is_held = outcome.due is not None or outcome.phase == "deferred"
    return Verdict("accepted", "hold" if is_held else "learn", value)


def _instead(rules: RewardRules, outcome: Outcome, value: float) -> Verdict:
    if not rules.takes(value):
        return Verdict("out_of_range", "nothing")
    if value == outcome.value:
        return Verdict("replaced", "note", value)  # nothing to learn, but what counts has another name and rank
    is_held = outcome.due is not None or outcome.phase == "deferred"
    return Verdict("replaced", "hold" if is_held else "correct", value)


def _further(rules: RewardRules, outcome: Outcome, known: float, reward: Reward) -> Verdict:
    """Judge one more reward of the rank that counts."""
    is_open, value = outcome.due is not None or outcome.phase == "deferred", reward.number
    if rules.aggregation == "sum":
        total = known + value
        if not rules.takes(total):
            return Verdict("out_of_range", "nothing")
        is_late = rules.window is not None and not is_open
        return Verdict("late" if is_late else "accepted", "hold" if is_open else "correct", total)
    if value == known and (reward.name is None or rules.aggregation == "first"):
        return Verdict("duplicate", "nothing")
    if rules.takes(value) and rules.aggregation == "first":
        return Verdict("conflict", "nothing")
    return _instead(rules, outcome, value)


def counted(outcome: Outcome, reward: Reward, verdict: Verdict) -> Outcome:
    """Return the outcome of a decision once a reward counts."""
    names = with_name(outcome.names, reward.name)
    phase: Phase = "learned" if verdict.act in ("learn", "correct", "move") else outcome.phase
    played = outcome.played if reward.played is None else reward.played
    return Outcome(outcome.t, outcome.event, outcome.seq, phase, verdict.value, outcome.due, reward.rank, names, played)


def with_name(names: tuple[str, ...], name: str | None) -> tuple[str, ...]:
    """Return the names of rewards that count, with one more if it has one."""
    if name is None:
        return names
    if len(names) == MOST_NAMES:
        raise InvalidValueError(
            f"name is {name!r}, but the decision has {MOST_NAMES} rewards with names, the most; add up first"
        )
    return (*names, name)
