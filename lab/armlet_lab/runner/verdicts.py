"""What the paper claims, what was measured, and what follows: verdicts by rule, never by hand.

A statistic meets a criterion that is written down before the runs. Outcome and reason of a verdict are functions
of its statistics. A criterion has three answers, because an interval that is too wide refutes nothing.
"""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Literal

from armlet.inference.means import Estimate
from armlet.report.document import show


class Outcome(StrEnum):
    """What can be said of a claim."""

    HOLDS = "holds"
    UNDER_READING = "holds only under a stated reading"
    FAILS = "does not hold"
    UNSETTLED = "not settled by these runs"


class Finding(StrEnum):
    """What can be said of one criterion."""

    PASSES = "passes"
    FAILS = "fails"
    OPEN = "open"  # the interval is too wide, or the statistic is not defined


class Role(StrEnum):
    """What a statistic bears on."""

    WRITTEN = "as written"
    READING = "our reading"
    CONTROL = "control"  # shows that the check can fail: without it, the check says nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One claim, of the paper unless another source is named.

    Examples
    --------
    >>> Claim(key="Fig A", where="Figure (a)", says="Regret grows as log t.", reading="At p = 600.")
    Traceback (most recent call last):
    ValueError: key is 'Fig A' but must be of small letters, digits and dashes
    """

    key: str  # a short name
    where: str  # its place in the paper
    says: str  # what it says, in our words
    reading: str  # how we read what it leaves open
    source: str = "The paper"  # who says so

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", self.key):
            raise ValueError(f"key is {self.key!r} but must be of small letters, digits and dashes")


@dataclass(frozen=True, slots=True)
class Criterion:
    """A condition on an interval: passed when all of it meets the condition, failed when none of it does.

    "within" and "outside" take two bounds, the others one. An interval that is wide passes "contains" easily:
    ask for "within" as well.

    Examples
    --------
    >>> rule = Criterion("within", 0.8, 1.3)
    >>> print(rule, rule.judge(Estimate(1.0, 0.9, 1.1)), rule.judge(Estimate(1.2, 1.1, 1.4)), sep="; ")
    the interval lies within 0.8 to 1.3; passes; open
    >>> print(Criterion("above", 0).judge(Estimate(0.0, 0.0, 0.0)))
    fails
    """

    relation: Literal["within", "outside", "above", "below", "contains"]
    low: float
    high: float | None = None

    def __str__(self) -> str:
        verb = "contains" if self.relation == "contains" else f"lies {self.relation}"
        return f"the interval {verb} {self.low:g}" + ("" if self.high is None else f" to {self.high:g}")

    def judge(self, found: Estimate) -> Finding:
        """Say whether the interval meets the condition, contradicts it, or neither."""
        low, high = self.low, self.low if self.high is None else self.high
        inside, apart = low <= found.low and found.high <= high, found.high < low or found.low > high
        passes, fails = {
            "within": (inside, apart),
            "outside": (apart, inside),
            "above": (found.low > low, found.high <= low),
            "below": (found.high < low, found.low >= low),
            "contains": (not apart, apart),
        }[self.relation]
        return Finding.PASSES if passes else Finding.FAILS if fails else Finding.OPEN


@dataclass(frozen=True, slots=True)
class Statistic:
    """A measured number, None if it is not defined, and the criterion it has to meet.

    Examples
    --------
    >>> slope = Statistic("slope / (p gap)", Estimate(1.1, 1.0, 1.2), Criterion("within", 0.95, 1.35))
    >>> slope.passed, slope.passes_if
    (True, 'the interval lies within 0.95 to 1.35')
    """

    name: str
    estimate: Estimate | None
    criterion: Criterion
    role: Role = Role.WRITTEN

    def __post_init__(self) -> None:
        found = self.estimate
        if found is not None and not all(map(math.isfinite, (found.value, found.low, found.high))):
            raise ValueError(f"{self.name} is {found} but must be finite; give None if it is not defined")

    @property
    def passes_if(self) -> str:
        """The criterion in words."""
        return str(self.criterion)

    @property
    def finding(self) -> Finding:
        """What the criterion says of the number."""
        return Finding.OPEN if self.estimate is None else self.criterion.judge(self.estimate)

    @property
    def passed(self) -> bool:
        """Whether the criterion is met."""
        return self.finding is Finding.PASSES


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A claim and the statistics that decide it.

    The claim holds if every statistic of it as written passes; it holds only under our reading if every statistic
    of the reading does; it does not hold if both are contradicted, as far as there are any; else it is not settled.
    A control that does not pass leaves it unsettled whatever the others say.
    `explanations` say why an outcome comes about, for outcomes that need it; only that of the one that came is told.

    Examples
    --------
    >>> claim = Claim(key="fig-a", where="Figure (a)", says="Regret grows as log t.", reading="At p = 600.")
    >>> ratio = Statistic("doubling ratio", Estimate(1.9, 1.7, 2.1), Criterion("within", 0.8, 1.3))
    >>> print(Verdict(claim=claim, statistics=(ratio,)).outcome)
    does not hold
    """

    claim: Claim
    statistics: tuple[Statistic, ...]
    explanations: Mapping[Outcome, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not any(statistic.role is not Role.CONTROL for statistic in self.statistics):
            raise ValueError(f"claim {self.claim.key} has no statistic to be judged by; controls alone decide nothing")

    @property
    def outcome(self) -> Outcome:
        """What follows from the statistics."""
        written, reading, control = (self._together(role) for role in Role)
        if control not in (None, Finding.PASSES):
            return Outcome.UNSETTLED
        if written is Finding.PASSES:
            return Outcome.HOLDS
        if reading is Finding.PASSES:
            return Outcome.UNDER_READING
        return Outcome.FAILS if {written, reading} <= {None, Finding.FAILS} else Outcome.UNSETTLED

    @property
    def reason(self) -> str:
        """The statistics behind the outcome, and its explanation if there is one."""
        facts = [self._fact(role) for role in Role if self._together(role)]
        return " ".join([*facts, self.explanations.get(self.outcome, "")]).strip()

    def _together(self, role: Role) -> Finding | None:
        """Judge all statistics of one role at once: one that fails decides, one that is open leaves it open."""
        found = {statistic.finding for statistic in self.statistics if statistic.role is role}
        return next((finding for finding in (Finding.FAILS, Finding.OPEN, Finding.PASSES) if finding in found), None)

    def _fact(self, role: Role) -> str:
        ours, worst = [each for each in self.statistics if each.role is role], self._together(role)
        passed = sum(statistic.passed for statistic in ours)
        first = next(statistic for statistic in ours if statistic.finding is worst)
        start = f"{role.value.capitalize()}, {passed} of {len(ours)} {'check' if len(ours) == 1 else 'checks'} passed"
        but = "" if worst is Finding.PASSES else f", but passes if {first.passes_if}"
        return f"{start}: {first.name} is {show(first.estimate)}{but}."


def table(verdicts: Sequence[Verdict], width: int = 100) -> str:
    """Lay the verdicts out for a terminal: a line each, what it rests on below it, and a count at the end.

    Examples
    --------
    >>> claim = Claim(key="fig-a", where="Figure (a)", says="Regret grows as log t.", reading="At p = 600.")
    >>> ratio = Statistic("doubling ratio", Estimate(1.9, 1.7, 2.1), Criterion("within", 0.8, 1.3))
    >>> print(table([Verdict(claim=claim, statistics=(ratio,))], width=60))
    fig-a  Figure (a)  does not hold
        Regret grows as log t.
        As written, 0 of 1 check passed: doubling ratio is 1.90
        [1.70 to 2.10], but passes if the interval lies within
        0.8 to 1.3.
    <BLANKLINE>
    Claims: 1; does not hold: 1
    """
    keys = max((len(verdict.claim.key) for verdict in verdicts), default=0)
    places = max((len(verdict.claim.where) for verdict in verdicts), default=0)
    lines = []
    for verdict in verdicts:
        lines.append(f"{verdict.claim.key:{keys}}  {verdict.claim.where:{places}}  {verdict.outcome}")
        for text in (verdict.claim.says, verdict.reason):
            lines += textwrap.wrap(text, width, initial_indent=" " * 4, subsequent_indent=" " * 4)
    return "\n".join([*lines, "", count(verdicts)])


def count(verdicts: Sequence[Verdict]) -> str:
    """Say how many claims had each outcome.

    Examples
    --------
    >>> count([])
    'Claims: 0'
    """
    found = Counter(verdict.outcome for verdict in verdicts)
    parts = [f"{outcome}: {found[outcome]}" for outcome in Outcome if found[outcome]]
    return "; ".join([f"Claims: {len(verdicts)}", *parts])


def to_markdown(verdicts: Sequence[Verdict]) -> str:
    """Give the verdicts as a table in Markdown.

    Examples
    --------
    >>> print(to_markdown([]))
    | claim | where | what it says | verdict | reason |
    |---|---|---|---|---|
    """
    rows = [(v.claim.key, v.claim.where, v.claim.says, v.outcome, v.reason) for v in verdicts]
    head = ["| claim | where | what it says | verdict | reason |", "|---|---|---|---|---|"]
    return "\n".join([*head, *(f"| {' | '.join(map(_cell, row))} |" for row in rows)])


def to_json(verdicts: Sequence[Verdict]) -> str:
    """Give the verdicts and every number behind them as JSON, the same bytes for the same verdicts.

    Examples
    --------
    >>> to_json([])
    '[]'
    """
    return json.dumps([_record(verdict) for verdict in verdicts], indent=1, sort_keys=True, allow_nan=False)


def _record(verdict: Verdict) -> dict[str, object]:
    numbers = [_numbers(statistic) for statistic in verdict.statistics]
    return {**asdict(verdict.claim), "outcome": verdict.outcome, "reason": verdict.reason, "statistics": numbers}


def _numbers(statistic: Statistic) -> dict[str, object]:
    return {
        "name": statistic.name,
        "role": statistic.role,
        "estimate": None if statistic.estimate is None else asdict(statistic.estimate),
        "passes_if": statistic.passes_if,
        "finding": statistic.finding,
        "passed": statistic.passed,
    }


def _cell(text: str) -> str:
    """Keep a text inside its cell, and its signs from being markup."""
    return re.sub(r"([\\`*_|<>\[\]#])", r"\\\1", " ".join(text.split()))
