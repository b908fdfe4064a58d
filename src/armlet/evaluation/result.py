"""What an evaluation found: values with their intervals, differences to the baseline, checks, in words and as data."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from armlet.errors import UnknownNameError
from armlet.evaluation.checks import Check, Word
from armlet.evaluation.monitor import ValuePath, WeightHistogram
from armlet.evaluation.provenance import Provenance
from armlet.inputs.settings import Objective
from armlet.report.numbers import common_places, percent, show, show_interval
from armlet.report.result import WIDTH, Columns, Result, fields_of, plain
from armlet.types import Arm, Estimate, Interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """What a policy would have earned a decision, by one estimator."""

    name: str
    value: float
    """Within the range of rewards, if that is known; NaN if the log does not tell, and `note` says why."""
    se: float
    """Its standard error; NaN if there is no honest one."""
    interval: Interval | None
    """For a fixed sample: right for one look, fixed beforehand; None if none can be trusted, and `note` says why."""
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
        return fields_of(self)


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
        return fields_of(self)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Evaluation(Result):
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
    estimates: Mapping[str, Mapping[str, Point]] = field(default_factory=dict)
    """What every estimator says of every target, whichever was chosen and also beyond the range of rewards:
    `result.estimates["new"]["snips"].value`."""
    units: int | None = None
    """Units, within epochs, that have a reward: decisions of one share a draw and count as one; None without units."""
    paths: tuple[ValuePath, ...] = ()
    spreads: tuple[WeightHistogram, ...] = ()
    made: Provenance | None = None
    """The log, the version and the call that it comes from."""

    def __getitem__(self, name: str) -> Value:
        try:
            return self.values[name]
        except KeyError:
            raise UnknownNameError(f"there is no policy {name!r}; there are {', '.join(self.values)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def answer(self) -> str:
        """Which policies are better or worse than the baseline, and by how much, in a sentence."""
        return sentence_of(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON types."""
        names = ("rows", "rewarded", "units", "explored", "explored_rewarded", "objective", "level", "baseline")
        return {
            "answer": self.answer,
            **{name: getattr(self, name) for name in names},
            "missing": plain(self.missing),
            "values": plain(self.values),
            "differences": plain(self.differences),
            "warnings": list(self.warnings),
            "checks": [
                {"name": each.name, "word": str(each.word), "sentence": each.sentence, "target": each.target}
                for each in self.checks
            ],
            "made": plain(self.made),
        }

    def columns(self) -> Columns:
        """Return a row a policy: its value, and how far it is from the baseline."""
        rows = [
            {**_value_cells(each), **_difference_cells(self.differences.get(each.name))}
            for each in self.values.values()
        ]
        return {name: [row[name] for row in rows] for name in rows[0]}

    def plot(self) -> Figure:
        """Draw values with their intervals, and a line at the baseline's; needs `armlet[plots]`."""
        from armlet.evaluation.page import forest_figure  # which is made of results

        return forest_figure(self)

    @property
    def unit(self) -> str:
        """What is earned: "reward" or "cost"."""
        return "reward" if self.objective == "max" else "cost"

    def counts(self) -> str:
        """Return how many decisions have a reward, and how many explored."""
        of = "" if self.units is None else f", in {self.units:,} units that count as one draw each"
        text = f"{self.rewarded:,} of {self.rows:,} decisions have a reward{of}; "
        if self.explored is None:
            return text + "the log does not say which explored"
        return text + f"{self.explored:,} explored, {self.explored_rewarded:,} of them rewarded"

    def compared(self) -> str:
        """Return what the differences are of."""
        side = "higher" if self.objective == "max" else "lower"
        return (
            f"difference in {self.unit} from {self.baseline} ({side} is better); intervals hold together at "
            f"{percent(self.level)}"
        )

    def basis(self) -> list[str]:
        """Return what the answer rests on: decisions, intervals, checks, and the one thing to know first."""
        sentences = [f"{self.counts()}."]
        if self.differences:
            sentences.append(f"Intervals of differences hold together at {percent(self.level)}.")
        if self.checks:
            sentences.append(_tally(self.checks))
        worst = sorted(self.checks, key=lambda check: list(Word).index(check.word), reverse=True)
        if worst and worst[0].word is not Word.FINE:
            whose = "" if worst[0].target is None else f" of {worst[0].target}"
            does = "refuses" if worst[0].word is Word.REFUSED else "warns"
            sentences.append(f"The check “{worst[0].name}”{whose} {does}: {worst[0].sentence}")
        elif self.warnings:
            sentences.append(f"{self.warnings[0][:1].upper()}{self.warnings[0][1:]}.")
        return sentences

    def notes(self) -> list[str]:
        """Return what values lack, unless a warning says it."""
        notes = [(each.name, each.note) for each in self.values.values() if each.note]
        return [f"{name}: {note}" for name, note in notes if not any(note in warning for warning in self.warnings)]

    def value_rows(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the table of values as text: its head, and a row a policy."""
        shown = list(self.values.values())
        fixed = [each.interval for each in shown if each.interval is not None]
        ends = fixed or [each.anytime for each in shown if each.anytime is not None]
        places = common_places([Estimate(low, low, high) for low, high in ends])
        head = ("policy", f"mean {self.unit}", f"{percent(self.level)} interval", "anytime-valid", "effective rows")
        rows: list[tuple[str, ...]] = [
            (
                *(each.name, _number(each.value, each.interval, places)),
                show_interval(each.interval, places),
                *(show_interval(each.anytime, places), f"{each.ess:,.0f}", each.estimator),
            )
            for each in shown
        ]
        return (*head, "estimator"), rows

    def difference_rows(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the table of differences as text: its head, and a row a policy."""
        differences = list(self.differences.values())
        places = places_of(differences)
        rows: list[tuple[str, ...]] = [
            (each.name, _number(each.value, each.adjusted, places), show_interval(each.adjusted, places), each.verdict)
            for each in differences
        ]
        return ("policy", "difference", "interval", "verdict"), rows

    def __str__(self) -> str:
        lines = [*textwrap.wrap(self.answer, WIDTH), "", self.counts(), *_table(*self.value_rows())]
        if self.differences:
            lines += ["", self.compared(), *_table(*self.difference_rows())]
        lines += ["", *self.notes()] if self.notes() else []
        for warning in self.warnings:
            lines += textwrap.wrap(f"! {warning}", WIDTH, subsequent_indent="  ")
        return "\n".join(lines)

    def _title(self) -> str:
        return self.answer

    def _html(self) -> Iterable[str]:
        from armlet.evaluation.page import notebook_parts

        return notebook_parts(self)

    def _page(self) -> str:
        from armlet.evaluation.page import render

        return render(self)


def _tally(checks: Sequence[Check]) -> str:
    """Return how many checks are fine, warn and refuse."""
    fine, warn, refuse = (sum(check.word is word for check in checks) for word in Word)
    if fine == len(checks):
        return f"All {fine} checks are fine." if fine > 1 else "The only check is fine."
    return (
        f"Of {len(checks)} checks {fine or 'none'} {'are' if fine > 1 else 'is'} fine, {warn or 'none'} "
        f"{'warn' if warn > 1 else 'warns'} and {refuse or 'none'} {'refuse' if refuse > 1 else 'refuses'}."
    )


def _value_cells(value: Value) -> dict[str, Any]:
    low, high = value.interval or (None, None)
    first, last = value.anytime or (None, None)
    words = {"rows": value.rows, "effective_rows": value.ess, "estimator": value.estimator}
    ends = {"low": low, "high": high, "anytime_low": first, "anytime_high": last}
    return {"policy": value.name, **plain({"value": value.value, "se": value.se}), **ends, **words}


def _difference_cells(difference: Difference | None) -> dict[str, Any]:
    if difference is None:
        return dict.fromkeys(("difference", "difference_low", "difference_high", "verdict"))
    low, high = difference.adjusted or (None, None)
    cells = {"difference": plain(difference.value), "difference_low": low, "difference_high": high}
    return {**cells, "verdict": difference.verdict}


def _number(value: float, interval: Interval | None, places: int) -> str:
    """Write a value that has an interval; without one rows do not tell how many of its digits mean anything."""
    return "none" if interval is None or math.isnan(value) else show(value, places)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lay a table out: numbers, in the second column, to the right."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    return [
        "  ".join(
            cell.rjust(width) if place == 1 else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (head, *rows)
    ]


ORDER: Final = ("better", "worse", "not clear", "not judged")
MOST: Final = 4  # policies of a kind that a sentence names


def sentence_of(result: Evaluation) -> str:
    """Return the sentence."""
    differences = sorted(result.differences.values(), key=_place)
    clauses = list(_compared(result, differences) if differences else _alone(result))
    plural = "" if result.rewarded == 1 else "s"
    return f"On {result.rewarded:,} rewarded decision{plural} {'; '.join(clauses)}."


def _place(difference: Difference) -> int:
    return ORDER.index(difference.verdict.partition(":")[0])


def _compared(result: Evaluation, differences: Sequence[Difference]) -> Iterable[str]:
    """Yield a clause for each policy that is better or worse, and one for those of which that cannot be said."""
    base, places = called(result, result.baseline), places_of(differences)
    judged = [each for each in differences if each.verdict in ("better", "worse")]
    shown = [each for word in ORDER[:2] for each in _first_of(judged, word)]
    for number, each in enumerate(shown):
        than, unit = (f" than {base}", " a decision") if number == 0 else ("", "")
        yield _judged(result, each, places, than, unit)
    for word in ORDER[:2]:
        if others := sum(each.verdict == word for each in judged) - len(_first_of(judged, word)):
            yield f"{others:,} {'other is' if others == 1 else 'others are'} {word}"
    unclear = [each for each in differences if each.verdict == "not clear"]
    if unclear and judged:
        yield f"{_names(result, unclear)}: not clear"
    elif unclear:
        amount = f": the difference is {amount_of(unclear[0], places)} a decision" if len(unclear) == 1 else ""
        yield f"it is not clear whether {_names(result, unclear, 'or')} is better or worse than {base}{amount}"
    for verdict, group in groupby((each for each in differences if _place(each) == 3), key=lambda each: each.verdict):
        some = list(group)
        yield f"{_names(result, some)} {'is' if len(some) == 1 else 'are'} {verdict}"


def _first_of(judged: Sequence[Difference], word: str) -> list[Difference]:
    """Return those of a verdict that are farthest from the baseline, as many as a sentence can hold."""
    return sorted((each for each in judged if each.verdict == word), key=lambda each: -abs(each.value))[:MOST]


def _judged(result: Evaluation, difference: Difference, places: int, than: str, unit: str) -> str:
    """Return by how much a policy is better or worse, as a positive number."""
    rises = (difference.verdict == "better") == (result.objective == "max")
    cost = f": it costs {'more' if rises else 'less'}" if result.objective == "min" else ""
    by = amount_of(difference, places, 1.0 if rises else -1.0)
    return f"{called(result, difference.name)} is {difference.verdict}{than}{cost}, by {by}{unit}"


def places_of(differences: Iterable[Difference]) -> int:
    """Return the decimals that differences are written with, in the sentence and in its table."""
    return common_places([Estimate(each.value, *each.adjusted) for each in differences if each.adjusted is not None])


def amount_of(difference: Difference, places: int, sign: float = 1.0) -> str:
    """Return a difference with the interval that its verdict goes by, or that alone where the point is outside of it.

    The point of "own" may be: it learns from more rows than its interval is of.
    """
    value, ends = sign * difference.value, difference.adjusted
    if ends is None:
        return show(value)
    low, high = sorted(sign * end for end in ends)
    return show(Estimate(value, low, high), places) if low <= value <= high else between(Interval(low, high), places)


def between(interval: Interval, places: int | None = None) -> str:
    """Return both ends of an interval, in a sentence.

    Examples
    --------
    >>> between(Interval(0.1134, 0.2266))
    '0.113 to 0.227'
    """
    return show_interval(interval, places).strip("[]")


def _alone(result: Evaluation) -> Iterable[str]:
    """Yield what each policy earned, where there is nothing to compare with."""
    for each in result.values.values():
        name, earned = called(result, each.name), "earned" if result.objective == "max" else "cost"
        if math.isnan(each.value):
            yield f"{name} is not judged: cannot be valued by this log"
        elif each.interval is None:
            yield f"{name} is not judged: {each.doubtful or 'no interval can be trusted'}"
        else:
            yield f"{name} {'' if is_logged(each) else 'would have '}{earned} {valued(each)} a decision"


def valued(value: Value) -> str:
    """Return a value with its fixed-sample interval, if it has one."""
    if value.interval is None:
        return "without an interval"
    return show(Estimate(value.value, *value.interval))


def is_logged(value: Value) -> bool:
    """Return whether a value is that of the log itself, a plain mean."""
    return value.estimator == "mean"


def called(result: Evaluation, name: str) -> str:
    """Return what a policy is called in a sentence."""
    if name in result.values and is_logged(result.values[name]):
        return "what ran"
    return "the baseline" if name == result.baseline == "baseline" else name


def _names(result: Evaluation, several: Sequence[Difference], word: str = "and") -> str:
    names = [called(result, each.name) for each in several]
    if len(names) > MOST + 1:
        names[MOST:] = [f"{len(names) - MOST:,} others"]
    *first, last = names
    return f"{', '.join(first)} {word} {last}" if first else last
