"""The page of an experiment: its answer, all verdicts in a table, then each claim with its verdict and a figure.

What a claim was read as, what was measured, and further figures and tables are folded; in print they are open.
Formulas are marked in the texts, and become MathML here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Final

from armlet.report.document import Section as Part
from armlet.report.document import check_pictures, document, figure, fold, lines
from armlet.report.document import table as html_table
from armlet.report.numbers import column
from armlet_lab.runner.experiment import Finding, Outcome, Section, Statistic, Verdict
from armlet_lab.runner.formulas import typeset
from armlet_lab.runner.verdicts import PHRASES, answer

SIGNS: Final = {Outcome.HOLDS: "✓", Outcome.UNDER_READING: "◐", Outcome.FAILS: "✗", Outcome.UNSETTLED: "?"}
CLASSES: Final = {Outcome.HOLDS: "yes", Outcome.UNDER_READING: "partly", Outcome.FAILS: "no", Outcome.UNSETTLED: "open"}
MARKS: Final = {Finding.PASSES: "yes", Finding.FAILS: "no", Finding.OPEN: "open"}


def render(title: str, sections: Sequence[Section], verdicts: Sequence[Verdict], manifest: Mapping[str, object]) -> str:
    """Return the page.

    Parameters
    ----------
    title
        Of the page.
    sections
        One for each verdict, in the order of the page.
    verdicts
        What was found.
    manifest
        How it was found: seed, versions, settings, machine, duration; any values that JSON can hold.

    Examples
    --------
    >>> from armlet.types import Estimate
    >>> from armlet_lab.runner.experiment import Claim, Criterion
    >>> claim = Claim(key="fig-a", where="Figure (a)", says="Regret grows as log t.", reading="At p = 600.")
    >>> ratio = Statistic("doubling ratio", Estimate(1.0, 0.9, 1.1), Criterion("within", 0.8, 1.3))
    >>> verdict = Verdict(claim=claim, statistics=(ratio,))
    >>> page = render("The paper", [Section(claim="fig-a", heading="Figure (a)")], [verdict], {"seed": 7})
    >>> '<a href="#claim-fig-a">' in page and "✓" in page
    True
    """
    found = _match(sections, verdicts)
    ordered = [found[section.claim] for section in sections]
    check_pictures([picture for section in sections for picture in section.pictures])
    claims = [_claim(section, verdict) for section, verdict in zip(sections, ordered, strict=True)]
    parts = [
        Part("verdicts", "Verdicts", _overview(sections, ordered)),
        Part("claims", "Claim by claim", f'<div id="claims">{lines(claims)}</div>'),
    ]
    page, made, manifest_html = document(title, answer(verdicts), parts, manifest).rpartition('<section id="made"')
    return f"{typeset(page)}{made}{manifest_html}"  # what made it may hold any text


def _match(sections: Sequence[Section], verdicts: Sequence[Verdict]) -> dict[str, Verdict]:
    """Find every section's verdict; refuse a page that would leave one out, tell one twice, or name two alike."""
    shown, judged = Counter(section.claim for section in sections), Counter(verdict.claim.key for verdict in verdicts)
    if shown != judged or max(shown.values(), default=1) > 1:
        raise ValueError(
            f"sections are {sorted(shown.elements())} but verdicts {sorted(judged.elements())}; give one each"
        )
    headings = Counter(section.heading for section in sections)
    if alike := [heading for heading, times in headings.items() if times > 1]:
        raise ValueError(f"two claims have the heading {alike[0]!r}; give each its own")
    return {verdict.claim.key: verdict for verdict in verdicts}


def _overview(sections: Sequence[Section], verdicts: Sequence[Verdict]) -> str:
    rows = [
        f'<tr><th scope="row"><a href="#claim-{verdict.claim.key}">{escape(section.heading)}</a></th>'
        f'<td class="where">{escape(verdict.claim.where)}</td><td>{_badge(verdict.outcome)}</td></tr>'
        for section, verdict in zip(sections, verdicts, strict=True)
    ]
    return (
        f'<div id="verdicts">{_chips(verdicts)}<table class="verdicts"><caption>Every claim and its verdict</caption>'
        '<thead><tr><th scope="col">Claim</th><th scope="col" class="where">Where</th>'
        '<th scope="col">Verdict</th></tr></thead>'
        f"<tbody>\n{lines(rows)}\n</tbody></table></div>"
    )


def _chips(verdicts: Sequence[Verdict]) -> str:
    """Return how many claims had each outcome, none left out."""
    found = Counter(verdict.outcome for verdict in verdicts)
    chips = [
        f'<li class="{CLASSES[each]}"><span aria-hidden="true">{SIGNS[each]}</span> <strong>{found[each]}</strong> '
        f"{escape(PHRASES[each][found[each] != 1])}</li>"
        for each in Outcome
    ]
    return f'<ul class="chips">{"".join(chips)}</ul>'


def _claim(section: Section, verdict: Verdict) -> str:
    claim, first = verdict.claim, section.pictures[:1]
    return lines(
        [
            f'<section class="claim" id="claim-{claim.key}" aria-labelledby="heading-{claim.key}">',
            '<p class="back"><a href="#verdicts">Back to the verdicts</a></p>',
            f'<h2 id="heading-{claim.key}">{escape(section.heading)}</h2>',
            f'<p class="where">{escape(claim.where)}. {escape(claim.source)} says: {escape(claim.says)}</p>',
            f'<div class="{"beside" if first else "alone"}">',
            f'<div class="outcome {CLASSES[verdict.outcome]}">{_badge(verdict.outcome)}',
            f"<p>{escape(verdict.reason)}</p></div>",
            *(figure(picture) for picture in first),
            "</div>",
            fold("How it was read and measured", _details(section, verdict)),
            "</section>",
        ]
    )


def _details(section: Section, verdict: Verdict) -> Iterable[str]:
    yield f"<p><strong>Our reading.</strong> {escape(verdict.claim.reading)}</p>"
    yield from (f"<p>{escape(note)}</p>" for note in section.notes)
    yield from map(figure, section.pictures[1:])
    yield from map(html_table, section.tables)
    yield _statistics(verdict.statistics)


def _statistics(statistics: Sequence[Statistic]) -> str:
    # on a narrow screen the cells stack; the roles keep it a table for those who hear it
    rows = [
        f'<tr role="row"><th scope="row" role="rowheader">{escape(each.name)}<small>{escape(each.role)}</small></th>'
        f'<td role="cell" class="number" data-name="measured">{escape(number)}</td>'
        f'<td role="cell" data-name="passes if">{escape(each.passes_if)}</td>'
        f'<td role="cell" class="{MARKS[each.finding]}"><strong>{escape(each.finding)}</strong></td></tr>'
        for each, number in zip(statistics, _numbers(statistics), strict=True)
    ]
    names = "".join(f'<th scope="col">{name}</th>' for name in ("Statistic", "Measured", "Passes if", "Result"))
    return (
        '<table class="stack" role="table"><caption>What was measured, with 95 % intervals</caption>'
        f"<thead><tr>{names}</tr></thead><tbody>\n{lines(rows)}\n</tbody></table>"
    )


def _numbers(statistics: Sequence[Statistic]) -> list[str]:
    """Write what was measured; what is held against one bound has the same decimals."""
    alike: dict[object, list[int]] = {}
    for at, each in enumerate(statistics):
        alike.setdefault((each.role, each.criterion), []).append(at)
    written: dict[int, str] = {}
    for places in alike.values():
        written |= zip(places, column(statistics[at].estimate for at in places), strict=True)
    return [written[at] for at in range(len(statistics))]


def _badge(outcome: Outcome) -> str:
    sign = f'<span class="sign" aria-hidden="true">{SIGNS[outcome]}</span>'
    return f'<span class="verdict {CLASSES[outcome]}">{sign}{escape(outcome)}</span>'
