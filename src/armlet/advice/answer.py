"""The advice: plain data, with words for the terminal and JSON for everything else."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from armlet.advice import words
from armlet.advice.comparison import Comparison
from armlet.advice.pilot import ArmCheck
from armlet.inference.intervals import Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one p came to."""

    p: float
    mean: float  # regret, averaged over problems and runs
    interval: Interval  # 95 %, of the mean over such problems: what more simulation would narrow
    spread: Interval  # 5 to 95 % of single runs on single problems
    runs: int  # in all


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """What exploration takes."""

    explored: float  # decisions, on average over runs
    share: float  # of the horizon
    lost: float  # reward, in the user's units


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """What another p would cost."""

    p: float
    mean: float
    extra: float  # relative to the recommended p: 0.2 is 20 % more regret


@dataclass(frozen=True, slots=True, kw_only=True)
class Sureness:
    """How sure the recommendation is."""

    low: float  # p from here
    high: float  # to here regret within 10 % of the best on the grid
    chance: float  # bootstrap probability that the recommended p does


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """The most that knowing the problem could save through another p of the grid, from an eighth to twice."""

    regret: float
    share: float  # of what the recommended p loses


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Which policy to take, what it loses, and how much to explore by p; `armlet.advise` makes one."""

    policies: Comparison  # the policy to take among them
    p: float  # of ContextualEpsilonGreedy, for a log to evaluate other policies from
    horizon: int
    n_arms: int  # the largest, if problems differ
    dim: int
    unit: str
    source: str
    problems: int
    runs: int  # all p of the grid together
    grid: tuple[Row, ...]  # every p on the same problems and seeds; every number below is taken from these runs
    bill: Bill
    found_by: int | None  # from here on 95 % of the runs earn 95 % of what is to be gained over random play
    half: Wrong | None  # None if half of p would not try every arm
    double: Wrong | None
    theorem_p: float | None  # what Theorem 2 asks for as printed: the median over problems
    theorem_reason: str  # why there is none, else empty
    sureness: Sureness
    more_data: Saving
    checks: tuple[ArmCheck, ...]  # of a pilot with propensities
    notes: tuple[str, ...]  # approximations and warnings

    def to_json(self) -> dict[str, Any]:
        """Give everything as values that JSON can hold, with the answer in the words of the terminal and the page."""
        document = {"answer": words.headline(self), "for_a_log": words.for_a_log(self), **asdict(self)}
        for check, values in zip(self.checks, document["checks"], strict=True):
            values["agrees"] = check.agrees
        plain: dict[str, Any] = _plain(document)
        return plain

    @property
    def row(self) -> Row:
        """The recommended p on all problems and runs."""
        return next(row for row in self.grid if row.p == self.p)

    def lines(self, per_day: int | None = None) -> list[str]:
        """Put the advice into words; with traffic, times are told in days too."""
        return words.lines(self, per_day)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return None
    return value
