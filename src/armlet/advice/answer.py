"""The advice: plain data, with words for the terminal and JSON for everything else."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from armlet.advice.others import Comparison
from armlet.advice.pilot import ArmCheck
from armlet.core.intervals import Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one p came to."""

    p: float
    mean: float  # regret, averaged over problems and runs
    interval: Interval  # 95 %, of the mean
    spread: Interval  # 5 to 95 % of single runs on single problems
    runs: int  # in all


@dataclass(frozen=True, slots=True, kw_only=True)
class Regret:
    """What the recommended p will regret."""

    mean: float
    interval: Interval  # 95 %, of the mean
    predictive: Interval  # 95 %, of one run on one problem
    random: float  # of playing at random throughout
    best: float  # if p were chosen for each problem in knowledge of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """What exploration takes."""

    explored: float  # decisions, p (1 + H_T - H_p)
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
    share: float  # of the expected regret


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """How much to explore, and what follows from it; `armlet.advise` makes one."""

    p: float
    horizon: int
    n_arms: int  # the largest, if problems differ
    dim: int
    unit: str
    source: str
    problems: int
    runs: int  # of Algorithm 1, all p of the grid together
    grid: tuple[Row, ...]  # every p on the same problems and seeds; every number below is taken from these runs
    regret: Regret
    bill: Bill
    found_by: int | None  # from here on 95 % of the runs earn 95 % of what is to be gained over random play
    half: Wrong | None  # None if half of p would not try every arm
    double: Wrong | None
    theorem_p: float | None  # what Theorem 2 asks for as printed: the median over problems
    theorem_reason: str  # why there is none, else empty
    sureness: Sureness
    more_data: Saving
    others: Comparison
    checks: tuple[ArmCheck, ...]  # of a pilot with propensities
    notes: tuple[str, ...]  # approximations and warnings

    def to_json(self) -> dict[str, Any]:
        """Give everything as values that JSON can hold."""
        document = asdict(self)
        for check, values in zip(self.checks, document["checks"], strict=True):
            values["agrees"] = check.agrees
        plain: dict[str, Any] = _plain(document)
        return plain

    def lines(self) -> list[str]:
        """Put the advice into words."""
        r, b, s, more, unit = self.regret, self.bill, self.sureness, self.more_data, self.unit
        return [
            f"p = {self.p:g} for {self.horizon:,} decisions",
            f"  from {self.source}; {self.problems} problem{'s' if self.problems > 1 else ''}, {self.runs:,} runs",
            f"expected regret   {_n(r.mean)} {unit} {_ends(r.interval)}",
            f"  one run         {_n(r.predictive[0])} to {_n(r.predictive[1])} with probability 95 %",
            f"  random play     {_n(r.random)}; best p for each problem {_n(r.best)}",
            f"exploration       {_n(b.explored)} decisions, {b.share:.2%} of all, lose {_n(b.lost)} {unit}",
            f"found by          {self._found()}",
            f"half of it        {_wrong(self.half)}",
            f"twice of it       {_wrong(self.double)}",
            f"good enough       p from {s.low:g} to {s.high:g} regrets within 10 % of the best; "
            f"p = {self.p:g} does with probability {s.chance:.0%}",
            f"more data         could save {_n(more.regret)} {unit} at most through p, {more.share:.0%}",
            f"Theorem 2 asks    {self._theorem()}",
            *self._others(),
            *self._checks(),
            *(f"note: {note}" for note in self.notes),
        ]

    def _found(self) -> str:
        if self.found_by is None:
            return "not within the horizon: fewer than 95 % of the runs earn 95 % of what there is to gain"
        return f"step {self.found_by:,}: from then on 95 % of the runs earn 95 % of what there is to gain"

    def _theorem(self) -> str:
        if self.theorem_p is None:
            return f"for no p: {self.theorem_reason}"
        return f"for p = {_n(self.theorem_p)}" + (", beyond the horizon" if self.theorem_p > self.horizon else "")

    def _others(self) -> list[str]:
        o = self.others
        rows = [("Algorithm 1", f"p = {self.p:g}", o.algorithm1, o.interval)]
        rows += [(rival.name, rival.setting, rival.mean, rival.interval) for rival in o.rivals]
        table = [f"  {name:<18}{setting:<24}{_n(mean)} {_ends(ends)}" for name, setting, mean, ends in rows]
        return [f"other policies    {o.note}", *table, f"  {o.sentence}"]

    def _checks(self) -> list[str]:
        return [
            f"  arm {c.arm}: worth {c.model:.4g} by the model, {c.weighted:.4g} "
            f"[{c.interval[0]:.4g} to {c.interval[1]:.4g}] by propensities{'' if c.agrees else ': they disagree'}"
            for c in self.checks
        ]


def _wrong(wrong: Wrong | None) -> str:
    if wrong is None:
        return "lies outside the grid"
    return f"p = {wrong.p:g}: {_n(wrong.mean)}, {wrong.extra:+.0%}"


def _ends(interval: Interval) -> str:
    return f"[{_n(interval[0])} to {_n(interval[1])}]"


def _n(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return None
    return value
