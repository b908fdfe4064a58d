"""The paper's claims with their verdicts as one HTML page that opens from disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from armlet.report.document import Table, check_pictures, document, figure, lines, show, table
from armlet.report.plots import Picture
from armlet_lab.runner.verdicts import Finding, Outcome, Statistic, Verdict, count

SIGNS: Final = {Outcome.HOLDS: "✓", Outcome.UNDER_READING: "◐", Outcome.FAILS: "✗", Outcome.UNSETTLED: "?"}
CLASSES: Final = {Outcome.HOLDS: "yes", Outcome.UNDER_READING: "partly", Outcome.FAILS: "no", Outcome.UNSETTLED: "open"}
MARKS: Final = {Finding.PASSES: "yes", Finding.FAILS: "no", Finding.OPEN: "open"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """What the page shows of one claim besides its verdict."""

    claim: str  # the key of the claim
    heading: str
    pictures: tuple[Picture, ...] = ()
    notes: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()


def render(title: str, sections: Sequence[Section], verdicts: Sequence[Verdict], manifest: Mapping[str, object]) -> str:
    """Give the page: all verdicts in a table, then a section for each claim, then how it was made.

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
    >>> from armlet.inference.means import Estimate
    >>> from armlet_lab.runner.verdicts import Claim, Criterion
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
    told = [_section(section, verdict) for section, verdict in zip(sections, ordered, strict=True)]
    return document(title, f"{count(verdicts)}.", [_overview(sections, ordered), *told], manifest)


def _match(sections: Sequence[Section], verdicts: Sequence[Verdict]) -> dict[str, Verdict]:
    """Find every section's verdict, and refuse a page that would leave one out or tell one twice."""
    told, judged = (
        Counter(section.claim for section in sections),
        Counter(verdict.claim.key for verdict in verdicts),
    )
    if told != judged or max(told.values(), default=1) > 1:
        raise ValueError(
            f"sections are {sorted(told.elements())} but verdicts {sorted(judged.elements())}; give one each"
        )
    return {verdict.claim.key: verdict for verdict in verdicts}


def _overview(sections: Sequence[Section], verdicts: Sequence[Verdict]) -> str:
    rows = [
        f'<tr><th scope="row"><a href="#claim-{verdict.claim.key}">{escape(section.heading)}</a>'
        f"<small>{escape(verdict.claim.says)}</small></th><td>{_badge(verdict.outcome)}</td></tr>"
        for section, verdict in zip(sections, verdicts, strict=True)
    ]
    return (
        "<table><caption>Every claim and its verdict</caption><thead>"
        '<tr><th scope="col">Claim</th><th scope="col">Verdict</th></tr></thead>'
        f"<tbody>\n{lines(rows)}\n</tbody></table>"
    )


def _section(section: Section, verdict: Verdict) -> str:
    claim = verdict.claim
    return lines(
        [
            f'<section id="claim-{claim.key}" aria-labelledby="heading-{claim.key}">',
            f'<h2 id="heading-{claim.key}">{escape(section.heading)}</h2><p class="where">{escape(claim.where)}</p>',
            f"<dl><dt>{escape(claim.source)} says</dt><dd>{escape(claim.says)}</dd>",
            f"<dt>Our reading</dt><dd>{escape(claim.reading)}</dd></dl>",
            *(f"<p>{escape(note)}</p>" for note in section.notes),
            *(figure(picture) for picture in section.pictures),
            *map(table, section.tables),
            _statistics(verdict.statistics),
            f'<div class="outcome {CLASSES[verdict.outcome]}">{_badge(verdict.outcome)}',
            f"<p>{escape(verdict.reason)}</p></div>",
            "</section>",
        ]
    )


def _statistics(statistics: Iterable[Statistic]) -> str:
    # on a narrow screen the cells stack; the roles keep it a table for those who hear it
    rows = [
        f'<tr role="row"><th scope="row" role="rowheader">{escape(each.name)}<small>{escape(each.role)}</small></th>'
        f'<td role="cell" class="number" data-name="measured">{escape(show(each.estimate))}</td>'
        f'<td role="cell" data-name="passes if">{escape(each.passes_if)}</td>'
        f'<td role="cell" class="{MARKS[each.finding]}"><strong>{escape(each.finding)}</strong></td></tr>'
        for each in statistics
    ]
    names = "".join(f'<th scope="col">{name}</th>' for name in ("Statistic", "Measured", "Passes if", "Result"))
    return (
        '<table class="stack" role="table"><caption>What was measured, with 95 % intervals</caption>'
        f"<thead><tr>{names}</tr></thead><tbody>\n{lines(rows)}\n</tbody></table>"
    )


def _badge(outcome: Outcome) -> str:
    sign = f'<span class="sign" aria-hidden="true">{SIGNS[outcome]}</span>'
    return f'<span class="verdict {CLASSES[outcome]}">{sign}{escape(outcome)}</span>'
