"""What an evaluation found: values with their intervals, differences to the baseline, checks, in words and as data."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from armlet.errors import UnknownNameError
from armlet.evaluation.checks import Check
from armlet.evaluation.monitor import ValuePath, WeightHistogram
from armlet.inputs.settings import Objective
from armlet.types import Arm, Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """What a policy would have earned a decision, by one estimator."""

    name: str
    value: float
    """Within the range of rewards, if that is known; NaN if the log does not tell, and `note` says why."""
    se: float
    """Its standard error; NaN if there is no honest one."""
    interval: Interval | None
    """At this look, if nobody looked before; None if there is none that can be trusted, and `note` says why."""
    anytime: Interval | None
    """Anytime-valid; None if no range of rewards was declared."""
    rows: int
    """Decisions with a reward that were read."""
    ess: float
    """Effective rows: so many on which the policy itself decides would tell about as much."""
    estimator: str
    why: str
    """Why this estimator."""
    largest_weight: float
    note: str = ""
    """Why there is no value or no interval, or what they are of."""
    doubtful: str = ""
    """Why the value is drawn in grey and gets no verdict: "trained on these rows" or "too few effective rows"."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON types."""
        words, numbers = ("name", "rows", "estimator", "why", "note", "doubtful"), ("value", "se", "ess")
        return _plain(self, *words, *numbers, "largest_weight", "interval", "anytime")


class Point(NamedTuple):
    """What one estimator says."""

    value: float
    se: float
    interval: Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How far a policy is from the baseline on the same rows: its value less the baseline's, costs as they are."""

    name: str
    baseline: str
    value: float
    se: float
    """NaN for "own", whose interval is that of what was learned from earlier rows."""
    interval: Interval | None
    """For this difference alone."""
    adjusted: Interval | None
    """For all differences of the evaluation together, by Bonferroni."""
    verdict: str
    """"better", "worse" or "not clear", by the adjusted interval and the objective; or "not judged: " and why."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON types."""
        return _plain(self, "name", "baseline", "verdict", "value", "se", "interval", "adjusted")


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
    explored: int | None
    """Those that explored, with or without a reward; None if the log does not say."""
    explored_rewarded: int | None
    """Those of them that have a reward."""
    missing: Mapping[Arm, int]
    """Decisions of each arm without a reward."""
    level: float
    warnings: tuple[str, ...]
    checks: tuple[Check, ...] = ()
    """What was looked at before these values are believed, with a word and a sentence each."""
    estimates: Mapping[str, Mapping[str, Point]] = field(default_factory=dict, repr=False)
    """What every estimator says of every target, whichever was chosen and also beyond the range of rewards:
    `result.estimates["new"]["snips"].value`."""
    paths: tuple[ValuePath, ...] = field(default=(), repr=False)
    spreads: tuple[WeightHistogram, ...] = field(default=(), repr=False)

    def __getitem__(self, name: str) -> Value:
        try:
            return self.values[name]
        except KeyError:
            raise UnknownNameError(f"there is no policy {name!r}; there are {', '.join(self.values)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON types."""
        names = ("rows", "rewarded", "explored", "explored_rewarded", "objective", "level", "baseline")
        return {
            **{name: getattr(self, name) for name in names},
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
        """Write a page: values next to each other, how they settled, weights, checks, and what it cannot tell."""
        from armlet.evaluation.page import render  # which is made of results

        Path(path).write_text(render(self), encoding="utf-8")

    @property
    def unit(self) -> str:
        """What is earned: "reward" or "cost"."""
        return "reward" if self.objective == "max" else "cost"

    def counts(self) -> str:
        """Return how many decisions have a reward, and how many explored."""
        text = f"{self.rewarded:,} of {self.rows:,} decisions have a reward; "
        if self.explored is None:
            return text + "the log does not say which explored"
        return text + f"{self.explored:,} explored, {self.explored_rewarded:,} of them rewarded"

    def compared(self) -> str:
        """Return what the differences are of."""
        side = "higher" if self.objective == "max" else "lower"
        return (
            f"difference in {self.unit} from {self.baseline} ({side} is better); intervals hold together at "
            f"{self.level:.0%}"
        )

    def notes(self) -> list[str]:
        """Return what values lack, unless a warning says it."""
        found = [(each.name, each.note) for each in self.values.values() if each.note]
        return [f"{name}: {note}" for name, note in found if not any(note in warning for warning in self.warnings)]

    def __str__(self) -> str:
        lines = [self.counts()]
        lines += _table(
            ("policy", "value", f"{self.level:.0%} interval", "anytime-valid", "effective rows", "estimator"),
            [
                (e.name, _shown(e.value), _span(e.interval), _span(e.anytime), f"{e.ess:,.0f}", e.estimator)
                for e in self.values.values()
            ],
        )
        if self.differences:
            lines += ["", self.compared()]
            lines += _table(
                ("policy", "difference", "interval", "verdict"),
                [(e.name, _shown(e.value), _span(e.adjusted), e.verdict) for e in self.differences.values()],
            )
        lines += ["", *self.notes()] if self.notes() else []
        lines += [f"! {warning}" for warning in self.warnings]
        return "\n".join(lines)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in (head, *rows)
    ]


def _shown(value: float) -> str:
    return "none" if math.isnan(value) else f"{value:.4g}"


def _span(interval: Interval | None) -> str:
    return "none" if interval is None else f"[{interval.low:.4g}, {interval.high:.4g}]"


def _plain(what: object, *names: str) -> dict[str, Any]:
    """Return fields as JSON types: intervals as lists, None for what is not finite."""
    return {name: _jsonable(getattr(what, name)) for name in names}


def _jsonable(value: Any) -> Any:
    if isinstance(value, Interval):
        return [_jsonable(end) for end in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
