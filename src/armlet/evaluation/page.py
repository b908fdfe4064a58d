"""An evaluation as one HTML page that opens from disk: values, how they settled, weights, checks, and their limits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Final

from armlet.evaluation import plots
from armlet.evaluation.checks.check import Check, Word, shown
from armlet.evaluation.plots import Line, Path, Weighed
from armlet.inference.intervals import LEVEL, Estimate, Interval
from armlet.report.document import Table, check_pictures, document, figure, show, table
from armlet.report.plots import Picture

CLASSES: Final = {Word.FINE: "yes", Word.WARNING: "partly", Word.REFUSED: "no"}
SIGNS: Final = {Word.FINE: "✓", Word.WARNING: "!", Word.REFUSED: "✗"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Valued:
    """What the page tells of one policy."""

    name: str
    value: float  # NaN where the log does not tell
    fixed: Interval | None
    anytime: Interval | None
    rows: int
    ess: float
    estimator: str
    doubtful: str = ""  # why it is grey


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """How far a policy is from the baseline, on the same rows, and which of the two is better."""

    name: str
    value: float  # NaN where the log does not tell
    interval: Interval | None
    verdict: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """All that a page tells."""

    title: str
    counts: str  # of decisions
    unit: str  # of rewards, or of costs
    policies: Sequence[Valued]
    baseline: str | None
    differences: Sequence[Compared] = ()
    compared: str = ""  # what differences are of
    notes: Sequence[str] = ()  # what values lack
    paths: Sequence[Path] = ()
    weights: Sequence[Weighed] = ()
    checks: tuple[Check, ...] = ()
    level: float = LEVEL
    manifest: Mapping[str, object] = field(default_factory=dict)


def render(story: Story) -> str:
    """Give the page; the same story gives the same bytes."""
    forest = plots.forest(_lines(story), baseline=story.baseline, xlabel=f"mean {story.unit}", level=story.level)
    paths = [path for path in story.paths if path.rows.size]
    weights = [spread for spread in story.weights if spread.rows.sum()]
    drawn: dict[str, Picture] = {"forest": forest}
    if paths:
        drawn["running"] = plots.running(paths, ylabel=f"mean {story.unit}")
    if weights:
        drawn["weights"] = plots.weights(weights)
    check_pictures(list(drawn.values()))
    parts = [
        *([_said(story)] if story.checks else []),
        _section("values", "Values", [figure(forest), table(_values(story)), *_notes(story)]),
        *_differences(story),
        *([_section("running", "As rows came in", [figure(drawn["running"])])] if paths else []),
        *([_section("weights", "Weights", [figure(drawn["weights"])])] if weights else []),
        _section("checks", "Checks", [_checks(story.checks)]),
        _section("limits", "What this cannot tell", [_list(limits(story))]),
    ]
    return document(story.title, _subtitle(story), parts, story.manifest)


def _subtitle(story: Story) -> str:
    many = len(story.policies)
    return f"{many} {'policy' if many == 1 else 'policies'}. {story.counts}."


def _lines(story: Story) -> list[Line]:
    return [
        Line(
            name=each.name,
            value=None if math.isnan(each.value) else each.value,
            fixed=each.fixed,
            anytime=each.anytime,
            grey=each.doubtful,
        )
        for each in story.policies
    ]


def _notes(story: Story) -> list[str]:
    return [_list(story.notes)] if story.notes else []


def _said(story: Story) -> str:
    counts = {word: sum(check.word is word for check in story.checks) for word in Word}
    bad = [check for check in story.checks if check.word is Word.REFUSED]
    told = f"{counts[Word.FINE]} checks are fine, {counts[Word.WARNING]} warn and {counts[Word.REFUSED]} refuse."
    first = f" {bad[0].sentence}" if bad else ""
    word = next((word for word in reversed(Word) if counts[word]), Word.FINE)
    return (
        f'<div class="outcome {CLASSES[word]}">{_badge(word)}<p>{escape(told + first)}</p></div>'
        if story.checks
        else ""
    )


def _section(key: str, heading: str, parts: Iterable[str]) -> str:
    return "\n".join([f'<section aria-labelledby="{key}"><h2 id="{key}">{escape(heading)}</h2>', *parts, "</section>"])


def _values(story: Story) -> Table:
    rows = [
        (
            each.name,
            "none" if math.isnan(each.value) else _number(each.value, each.fixed),
            "none" if each.anytime is None else _ends(each.value, each.anytime),
            f"{each.rows:,}",
            f"{each.ess:,.0f}",
            each.estimator,
        )
        for each in story.policies
    ]
    head = ("policy", f"mean {story.unit} [at this look]", "at any look", "rows", "effective rows", "estimator")
    return Table(caption="The same in numbers", head=head, rows=tuple(rows))


def _differences(story: Story) -> list[str]:
    if not story.differences or story.baseline is None:
        return []
    rows = tuple(
        (each.name, "none" if math.isnan(each.value) else _number(each.value, each.interval), each.verdict)
        for each in story.differences
    )
    caption = story.compared[:1].upper() + story.compared[1:]
    found = Table(caption=caption, head=("policy", "difference", "verdict"), rows=rows)
    return [_section("differences", f"Against {story.baseline}", [table(found)])]


def _number(value: float, interval: Interval | None) -> str:
    if interval is None:
        return f"{show(Estimate(value, value, value))}, no interval"
    return show(Estimate(value, *interval))


def _ends(value: float, interval: Interval) -> str:
    whole = show(Estimate(value, *interval))
    return whole[whole.index("[") :] if "[" in whole else whole


def _checks(checks: Sequence[Check]) -> str:
    """Tell the worst ones first."""
    order = list(reversed(Word))
    rows = [
        f'<tr role="row"><th scope="row" role="rowheader">{escape(_whose(check))}'
        f"<small>{escape(check.sentence)}</small></th>"
        f'<td role="cell" class="number">{escape(_measured(check))}</td><td role="cell">{_badge(check.word)}</td></tr>'
        for check in sorted(checks, key=lambda check: order.index(check.word))
    ]
    names = "".join(f'<th scope="col">{name}</th>' for name in ("Check", "Number", "Word"))
    body = "\n".join(rows)
    return (
        '<table class="stack" role="table"><caption>What was looked at before any value was believed</caption>'
        f"<thead><tr>{names}</tr></thead><tbody>\n{body}\n</tbody></table>"
    )


def _whose(check: Check) -> str:
    name = check.name[0].upper() + check.name[1:]
    return name if check.target is None else f"{name}, {check.target}"


def _measured(check: Check) -> str:
    first = check.unit in ("p-value", "share")
    return f"{check.unit} {shown(check.number)}" if first else f"{shown(check.number)} {check.unit}"


def _badge(word: Word) -> str:
    sign = f'<span class="sign" aria-hidden="true">{SIGNS[word]}</span>'
    return f'<span class="verdict {CLASSES[word]}">{sign}{escape(word)}</span>'


def _list(sentences: Iterable[str]) -> str:
    return "<ul>\n" + "\n".join(f"<li>{escape(sentence)}</li>" for sentence in sentences) + "\n</ul>"


def limits(story: Story) -> list[str]:
    """Say what a value does not say: what holds of every log, and what holds of this one."""
    told = [
        "A value is of the contexts and rewards of this log, in its time. Nothing here says that they stay.",
        "A policy that would change who comes, or what they expect, is valued as if it did not.",
        "An interval “at this look” is right for one look that was fixed beforehand. To look again and again, "
        "and to stop when it suits, take the one “at any look”.",
        "Intervals are about chance alone. Rewards that were measured wrongly are valued wrongly.",
    ]
    if story.differences:
        told.append(
            "Differences hold together. The highest of several values is too high on average, because it was chosen."
        )
    if not any(each.anytime for each in story.policies):
        told.append("No range of rewards was declared, so there is no interval that holds at any look.")
    if any(check.name.startswith("drift") and check.word is not Word.FINE for check in story.checks):
        told.append("The environment changed during this log, so that no value here need hold for its end.")
    return told
