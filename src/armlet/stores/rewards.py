"""What becomes of a reward: judged against what is known of its decision, by the terms of its loop.

A function of its arguments alone. A loop calls it in the transaction that writes what it decides, so that a reward
counts once, no matter how often it is told. A name tells a retry from another reward of the same value; a rank tells
the truth from a provisional reward. Only rewards of the highest rank told so far count, by the loop's aggregation.
"""

from __future__ import annotations

import reprlib
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from armlet.errors import InvalidValueError
from armlet.inputs.settings import Range, settle, whole
from armlet.stores.ledger import Outcome, Phase

Status: TypeAlias = Literal[
    "accepted", "duplicate", "conflict", "outranked", "replaced", "late", "unknown", "out_of_range"
]
"""What became of a reward.

accepted: it counts. duplicate: it was told before. conflict: another value was told before, which stays. outranked: a
reward of a higher rank was told before, which stays. replaced: it counts instead of what was told before. late: its
window had closed; it counts instead of what was learned then. unknown: there is no such event. out_of_range: the loop
does not take such values.
"""

Aggregation: TypeAlias = Literal["first", "last", "sum"]
"""Which of several rewards of one decision and one rank counts: the first, the last, or all of them added."""

Act: TypeAlias = Literal["nothing", "note", "hold", "learn", "correct"]

LONGEST = 256  # characters of a name
MOST_NAMES = 1000  # of one decision
HIGHEST = 1_000_000  # rank


@dataclass(frozen=True, slots=True)
class Told:
    """A reward as somebody tells it."""

    value: float
    name: str | None = None
    rank: int = 0

    def __post_init__(self) -> None:
        if self.name is not None:
            check_text("name", self.name, LONGEST)
        settle(self, rank=whole(0, HIGHEST))


def check_text(argument: str, value: object, longest: int) -> str:
    """Return a name of something.

    Examples
    --------
    >>> check_text("event", "", 256)
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: event is ''; give text of 1 to 256 characters
    """
    if not isinstance(value, str) or not 1 <= len(value) <= longest:
        raise InvalidValueError(f"{argument} is {reprlib.repr(value)}; give text of 1 to {longest} characters")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidValueError(f"{argument} is {value!r}; give text that can be written as UTF-8") from error
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """When a loop learns a reward, and which."""

    window: int | None = None  # microseconds
    default: float | None = None
    aggregation: Aggregation = "first"
    reward_range: Range
    binary: bool = False

    def takes(self, value: float) -> bool:
        """Tell whether the loop's bandit can learn a value."""
        low, high = self.reward_range
        return low <= value <= high and (not self.binary or value in (0.0, 1.0))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to answer, what to do, and the value that the decision then has."""

    status: Status
    act: Act
    value: float | None = None


def judge(terms: Terms, outcome: Outcome | None, told: Told) -> Verdict:
    """Say what becomes of a reward.

    Parameters
    ----------
    terms
        Of the loop.
    outcome
        How things stand with the decision; None if there is none. If its window has closed, that is known already.
    told
        The reward.

    Examples
    --------
    >>> terms = Terms(reward_range=(-1.0, 1.0))
    >>> judge(terms, Outcome(t=1, event="order-17", seq=1, phase="open"), Told(1.0))
    Verdict(status='accepted', act='learn', value=1.0)
    >>> judge(terms, Outcome(t=1, event="order-17", seq=1, phase="learned", value=1.0), Told(0.0))
    Verdict(status='conflict', act='nothing', value=None)
    """
    if outcome is None:
        return Verdict("unknown", "nothing")
    if told.name is not None and told.name in outcome.names:
        return Verdict("duplicate", "nothing")
    if outcome.value is None or outcome.phase == "default":
        return _first(terms, outcome, told.value)
    if told.rank < outcome.rank:
        return Verdict("outranked", "nothing")
    if told.rank > outcome.rank:
        return _instead(terms, outcome, told.value)
    return _further(terms, outcome, outcome.value, told)


def _first(terms: Terms, outcome: Outcome, value: float) -> Verdict:
    if not terms.takes(value):
        return Verdict("out_of_range", "nothing")
    if outcome.phase == "default":
        return Verdict("late", "correct", value)
    return Verdict("accepted", "hold" if outcome.due is not None else "learn", value)


def _instead(terms: Terms, outcome: Outcome, value: float) -> Verdict:
    if not terms.takes(value):
        return Verdict("out_of_range", "nothing")
    if value == outcome.value:
        return Verdict("replaced", "note", value)  # nothing to learn, but what counts has another name and rank
    return Verdict("replaced", "hold" if outcome.due is not None else "correct", value)


def _further(terms: Terms, outcome: Outcome, known: float, told: Told) -> Verdict:
    """Judge one more reward of the rank that counts."""
    is_open = outcome.due is not None
    if terms.aggregation == "sum":
        total = known + told.value
        if not terms.takes(total):
            return Verdict("out_of_range", "nothing")
        is_late = terms.window is not None and not is_open
        return Verdict("late" if is_late else "accepted", "hold" if is_open else "correct", total)
    if told.value == known and (told.name is None or terms.aggregation == "first"):
        return Verdict("duplicate", "nothing")
    if terms.takes(told.value) and terms.aggregation == "first":
        return Verdict("conflict", "nothing")
    return _instead(terms, outcome, told.value)


def counted(outcome: Outcome, told: Told, verdict: Verdict) -> Outcome:
    """Give how things stand with a decision once a reward counts."""
    if told.name is not None and len(outcome.names) == MOST_NAMES:
        raise InvalidValueError(
            f"name is {told.name!r}, but the decision has {MOST_NAMES} rewards with names, the most; add up first"
        )
    names = outcome.names if told.name is None else (*outcome.names, told.name)
    phase: Phase = "learned" if verdict.act in ("learn", "correct") else outcome.phase
    return replace(outcome, phase=phase, value=verdict.value, rank=told.rank, names=names)
