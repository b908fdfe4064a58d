"""An evaluation as one HTML page that opens from disk: values, how they settled, weights, checks, and their limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Final

from armlet.core.intervals import Estimate, Interval
from armlet.evaluation import plots
from armlet.evaluation.checks.check import Check, Word, shown, worst
from armlet.evaluation.plots import Line, Path, Weighed
from armlet.report.document import check_pictures, document, figure
from armlet.report.numbers import show
from armlet.report.pictures import Picture
from armlet.report.tables import Table, table

CLASSES: Final = {Word.FINE: "yes", Word.WARNING: "partly", Word.REFUSED: "no"}
SIGNS: Final = {Word.FINE: "✓", Word.WARNING: "!", Word.REFUSED: "✗"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Valued:
    """What the page tells of one policy."""

    name: str
    value: float
    fixed: Interval | None
    anytime: Interval | None
    rows: int
    ess: float
    estimator: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What a policy gains over the baseline, on the same rows."""

    name: str
    value: float
    interval: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """All that a page tells."""

    title: str
    unit: str  # of rewards, or of costs
    policies: Sequence[Valued]
    baseline: str | None
    differences: Sequence[Difference] = ()
    paths: Sequence[Path] = ()
    weights: Sequence[Weighed] = ()
    checks: tuple[Check, ...] = ()
    rows: int = 0
    manifest: Mapping[str, object] = field(default_factory=dict)


def render(story: Story) -> str:
    """Give the page; the same story gives the same bytes."""
    forest = plots.forest(_lines(story), baseline=story.baseline, xlabel=f"mean {story.unit}")
    paths = [path for path in story.paths if path.rows.size and _word(story, path.name) is not Word.REFUSED]
    weights = [spread for spread in story.weights if spread.rows.sum()]
    drawn: dict[str, Picture] = {"forest": forest}
    if paths:
        drawn["running"] = plots.running(paths, ylabel=f"mean {story.unit}")
    if weights:
        drawn["weights"] = plots.weights(weights)
    check_pictures(list(drawn.values()))
    parts = [
        *([_said(story)] if story.checks else []),
        _section("values", "Values", [figure(forest), table(_values(story))]),
        *_differences(story),
        *([_section("running", "As rows came in", [figure(drawn["running"])])] if paths else []),
        *([_section("weights", "Weights", [figure(drawn["weights"])])] if weights else []),
        _section("checks", "Checks", [_checks(story.checks)]),
        _section("limits", "What this cannot tell", [_list(limits(story))]),
    ]
    return document(story.title, _subtitle(story), parts, story.manifest)


def _word(story: Story, name: str) -> Word:
    return worst(story.checks, name)


def _subtitle(story: Story) -> str:
    many = len(story.policies)
    return f"{many} {'policy' if many == 1 else 'policies'}, valued by {story.rows:,} logged decisions."


def _lines(story: Story) -> list[Line]:
    lines = []
    for each in story.policies:
        word = _word(story, each.name)
        grey = any(check.name == "rows" and check.word is Word.WARNING for check in _of(story, each.name))
        shown_ = word is not Word.REFUSED
        lines.append(
            Line(
                name=each.name,
                value=each.value if shown_ else None,
                fixed=each.fixed if shown_ else None,
                anytime=each.anytime if shown_ else None,
                grey=grey,
            )
        )
    return lines


def _of(story: Story, name: str) -> list[Check]:
    return [check for check in story.checks if check.target == name]


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
    rows = []
    for each in story.policies:
        refused = _word(story, each.name) is Word.REFUSED
        rows.append(
            (
                each.name,
                "refused" if refused else _number(each.value, each.fixed),
                "none" if refused or each.anytime is None else _ends(each.value, each.anytime),
                f"{each.rows:,}",
                f"{each.ess:,.0f}",
                each.estimator,
            )
        )
    head = ("policy", f"mean {story.unit} [at this look]", "at any look", "rows", "effective rows", "estimator")
    return Table(caption="The same in numbers", head=head, rows=tuple(rows))


def _differences(story: Story) -> list[str]:
    kept = [each for each in story.differences if _word(story, each.name) is not Word.REFUSED]
    if not kept or story.baseline is None or _word(story, story.baseline) is Word.REFUSED:
        return []
    rows = tuple((each.name, show(Estimate(each.value, *each.interval)), _side(each.interval)) for each in kept)
    caption = f"What a policy gains over {story.baseline} on the same rows; 95 % for all of them together"
    found = Table(caption=caption, head=("policy", "difference", "which is"), rows=rows)
    return [_section("differences", f"Against {story.baseline}", [table(found)])]


def _side(interval: Interval) -> str:
    return "more" if interval.low > 0 else "less" if interval.high < 0 else "not settled"


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
        told.append("The world changed during this log, so that no value here need hold for its end.")
    return told
