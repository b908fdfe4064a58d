"""What becomes of a reward: judged against what is known of its decision, by the terms of its loop.

A function of its arguments alone. A loop calls it in the transaction that writes what it decides, so that a reward
counts once, whoever tells it how often.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from armlet.core.rewards import Range
from armlet.stores.ledger import Outcome

Status: TypeAlias = Literal["accepted", "duplicate", "conflict", "replaced", "late", "unknown", "out_of_range"]
"""What became of a reward.

accepted: it counts. duplicate: it was told before. conflict: another value was told before, which stays. replaced: it
counts instead of what was told before. late: its window had closed; it counts instead of what was learned then.
unknown: there is no such event. out_of_range: the loop does not take such values.
"""

Aggregation: TypeAlias = Literal["first", "last", "sum"]
"""Which of several rewards of one decision counts: the first, the last, or all of them added."""

Act: TypeAlias = Literal["nothing", "hold", "learn", "correct"]


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


def judge(terms: Terms, outcome: Outcome | None, value: float) -> Verdict:
    """Say what becomes of a reward.

    Parameters
    ----------
    terms
        Of the loop.
    outcome
        How things stand with the decision; None if there is none. If its window has closed, that is known already.
    value
        The reward.

    Examples
    --------
    >>> terms = Terms(reward_range=(-1.0, 1.0))
    >>> judge(terms, Outcome(t=1, event="order-17", seq=1, phase="open"), 1.0)
    Verdict(status='accepted', act='learn', value=1.0)
    >>> judge(terms, Outcome(t=1, event="order-17", seq=1, phase="learned", value=1.0), 0.0)
    Verdict(status='conflict', act='nothing', value=None)
    """
    if outcome is None:
        return Verdict("unknown", "nothing")
    if outcome.value is None or outcome.phase == "default":
        return _first(terms, outcome, value)
    return _further(terms, outcome, outcome.value, value)


def _first(terms: Terms, outcome: Outcome, value: float) -> Verdict:
    if not terms.takes(value):
        return Verdict("out_of_range", "nothing")
    if outcome.phase == "default":
        return Verdict("late", "correct", value)
    return Verdict("accepted", "hold" if outcome.due is not None else "learn", value)


def _further(terms: Terms, outcome: Outcome, told: float, value: float) -> Verdict:
    is_open = outcome.due is not None
    if terms.aggregation == "sum":
        total = told + value
        if not terms.takes(total):
            return Verdict("out_of_range", "nothing")
        is_late = terms.window is not None and not is_open
        return Verdict("late" if is_late else "accepted", "hold" if is_open else "correct", total)
    if value == told:
        return Verdict("duplicate", "nothing")
    if not terms.takes(value):
        return Verdict("out_of_range", "nothing")
    if terms.aggregation == "first":
        return Verdict("conflict", "nothing")
    return Verdict("replaced", "hold" if is_open else "correct", value)
