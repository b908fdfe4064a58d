"""What an evaluation found: values with their intervals, differences to the baseline, checks, in words and as data."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path as Place
from typing import Any, Literal

from armlet.core.intervals import Interval
from armlet.core.settings import Objective
from armlet.core.types import Arm
from armlet.evaluation.checks import Check
from armlet.evaluation.page import Difference as Gain
from armlet.evaluation.page import Story, Valued, render
from armlet.evaluation.plots import Path, Weighed

Verdict = Literal["better", "worse", "not clear"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """What a policy would have earned a decision, by one estimator."""

    name: str
    value: float
    se: float
    """Its standard error; NaN if there is no honest one."""
    interval: Interval | None
    """At this look, if nobody looked before; None if there is none that can be trusted, and `note` says why."""
    anytime: Interval | None
    """At any look; None if no range of rewards was declared."""
    rows: int
    """Decisions with a reward that were read."""
    ess: float
    """So many rows on which the policy itself decides would tell about as much."""
    estimator: str
    why: str
    """Why this estimator."""
    largest_weight: float
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Give it as plain JSON types."""
        ends = {name: _ends(getattr(self, name)) for name in ("interval", "anytime")}
        numbers = {name: _number(getattr(self, name)) for name in ("value", "se", "ess", "largest_weight")}
        words = {name: getattr(self, name) for name in ("name", "rows", "estimator", "why", "note")}
        return words | numbers | ends


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What a policy gains over the baseline on the same rows."""

    name: str
    baseline: str
    value: float
    se: float
    interval: Interval | None
    """For this difference alone."""
    adjusted: Interval | None
    """For all differences of the evaluation together, by Bonferroni."""
    verdict: Verdict
    """By the adjusted interval and the objective."""

    def to_dict(self) -> dict[str, Any]:
        """Give it as plain JSON types."""
        ends = {name: _ends(getattr(self, name)) for name in ("interval", "adjusted")}
        words = {name: getattr(self, name) for name in ("name", "baseline", "verdict")}
        return words | {"value": _number(self.value), "se": _number(self.se)} | ends


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The answer of `armlet.evaluate`: `result["new"].value`, `result.differences["new"].interval`, `print(result)`."""

    values: Mapping[str, Value]
    differences: Mapping[str, Difference]
    baseline: str
    objective: Objective
    rows: int
    """Decisions in the log."""
    rewarded: int
    """Those that have a reward; the others are left out, never taken for 0."""
    explored: int
    missing: Mapping[Arm, int]
    """Decisions of each arm without a reward."""
    level: float
    warnings: tuple[str, ...]
    checks: tuple[Check, ...] = ()
    """What was looked at before these values are believed, with a word and a sentence each."""
    paths: tuple[Path, ...] = field(default=(), repr=False)
    spreads: tuple[Weighed, ...] = field(default=(), repr=False)

    def __getitem__(self, name: str) -> Value:
        try:
            return self.values[name]
        except KeyError:
            raise KeyError(f"there is no policy {name!r}; there are {', '.join(self.values)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain JSON types."""
        return {
            "rows": self.rows,
            "rewarded": self.rewarded,
            "explored": self.explored,
            "objective": self.objective,
            "level": self.level,
            "baseline": self.baseline,
            "missing": {str(arm): count for arm, count in self.missing.items()},
            "values": {name: value.to_dict() for name, value in self.values.items()},
            "differences": {name: each.to_dict() for name, each in self.differences.items()},
            "warnings": list(self.warnings),
            "checks": [
                {"name": each.name, "word": str(each.word), "sentence": each.sentence, "target": each.target}
                for each in self.checks
            ],
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a page: values beside each other, how they settled, weights, checks, and what it cannot tell."""
        Place(path).write_text(render(self._story()), encoding="utf-8")

    def _story(self) -> Story:
        return Story(
            title="What would have happened",
            unit="reward" if self.objective == "max" else "cost",
            policies=[
                Valued(
                    name=each.name,
                    value=each.value,
                    fixed=_finite(each.interval),
                    anytime=_finite(each.anytime),
                    rows=each.rows,
                    ess=each.ess,
                    estimator=each.estimator,
                )
                for each in self.values.values()
            ],
            baseline=self.baseline,
            differences=[
                Gain(name=each.name, value=each.value, interval=each.adjusted)
                for each in self.differences.values()
                if each.adjusted is not None and _finite(each.adjusted) is not None
            ],
            paths=self.paths,
            weights=self.spreads,
            checks=self.checks,
            rows=self.rows,
            manifest={"rewarded": self.rewarded, "explored": self.explored, "level": self.level},
        )

    def __str__(self) -> str:
        lines = [f"{self.rewarded:,} of {self.rows:,} decisions have a reward; {self.explored:,} of these explored"]
        lines += _table(
            ("policy", "value", f"{self.level:.0%} interval", "at any look", "effective rows", "estimator"),
            [
                (
                    each.name,
                    _shown(each.value),
                    _span(each.interval),
                    _span(each.anytime),
                    f"{each.ess:,.0f}",
                    each.estimator,
                )
                for each in self.values.values()
            ],
        )
        if self.differences:
            lines += ["", f"against {self.baseline}, all together at {self.level:.0%}"]
            found = self.differences.values()
            lines += _table(
                ("policy", "difference", "interval", "which is"),
                [(each.name, _shown(each.value), _span(each.adjusted), each.verdict) for each in found],
            )
        lines += [f"! {warning}" for warning in self.warnings]
        return "\n".join(lines)


def _finite(interval: Interval | None) -> Interval | None:
    return interval if interval is not None and all(map(math.isfinite, interval)) else None


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in (head, *rows)
    ]


def _shown(value: float) -> str:
    return "none" if math.isnan(value) else f"{value:.4g}"


def _span(interval: Interval | None) -> str:
    return "none" if interval is None else f"[{interval.low:.4g}, {interval.high:.4g}]"


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _ends(interval: Interval | None) -> list[float | None] | None:
    return None if interval is None else [_number(interval.low), _number(interval.high)]
