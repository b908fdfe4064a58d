"""What an experiment is: a run in a lab that ends in claims with their statistics, verdicts, and sections of a page.

A statistic meets a criterion that is written down before the runs. Outcome and reason of a verdict are functions
of its statistics, never typed. A criterion has three answers, because an interval that is too wide refutes nothing.

Every experiment is one module of one shape: its docstring has the claim and how it is read; `SCALES` has `Settings`,
quick and full; a task carries seeds and plain data; `run` takes the settings of the lab's scale, `find` plays their
tasks and hands the numbers to `judge`, which returns the `Findings`; `EXPERIMENT` names `run`.
Texts mark formulas, `$O(K d^2)$` (`formulas.py`); a heading says what is claimed, and no two on a page are alike.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, Self

from armlet.report.document import Table
from armlet.report.numbers import show
from armlet.report.plots import Picture
from armlet.simulation.lab import Lab
from armlet.types import Estimate

SEED = 12073024
"""The seed of every published figure: the paper's number on arXiv. It was fixed, with every criterion, before anything
was run with it; the experiments were written and tried on other seeds."""


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
        """Return whether the interval meets the condition, contradicts it, or neither."""
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


def certain(value: float) -> Estimate:
    """Return a number that nothing is uncertain about, such as a count, as an estimate."""
    return Estimate(value, value, value)


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
    A control that does not pass leaves it unsettled regardless of the others.
    `explanations` say why an outcome comes about, for outcomes that need it; `conclusions` are what a claim adds to the
    main conclusion of a page, a clause for each outcome, if it bears on it. Only those of the outcome are printed.

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
    conclusions: Mapping[Outcome, str] = field(default_factory=dict)

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


def conclude(holds: str, fails: str) -> dict[Outcome, str]:
    """Return what a claim adds to the conclusion of a page, a clause for each outcome, from two of them.

    Examples
    --------
    >>> conclude("memory stays constant", "memory grows")[Outcome.UNSETTLED]
    'these runs leave open whether memory stays constant'
    """
    return {
        Outcome.HOLDS: holds,
        Outcome.UNDER_READING: f"{holds}, under a stated reading",
        Outcome.FAILS: fails,
        Outcome.UNSETTLED: f"these runs leave open whether {holds}",
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """What the page shows of one claim besides its verdict."""

    claim: str  # the key of the claim
    heading: str
    pictures: tuple[Picture, ...] = ()
    notes: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True, slots=True)
class Findings:
    """One section of the report for each verdict, in the same order."""

    verdicts: tuple[Verdict, ...]
    sections: tuple[Section, ...]

    @classmethod
    def of(cls, parts: Iterable[tuple[Verdict, Section]]) -> Self:
        """Put claims together, each with its section."""
        verdicts, sections = zip(*parts, strict=True)
        return cls(verdicts, sections)


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment by name: `run` simulates in a lab, at its scale and seed, and analyses what was found."""

    name: str
    title: str
    run: Callable[[Lab], Findings]
