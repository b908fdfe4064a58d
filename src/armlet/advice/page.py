"""An advice as one HTML page that opens from disk: which policy to take, what it loses, and what p to explore with."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from armlet.advice import Advice, plots, words
from armlet.advice.words import exact, interval, number
from armlet.report.document import check_pictures, document, figure
from armlet.report.tables import Table, table
from armlet.types import __version__


def render(advice: Advice, *, per_day: int | None = None, seed: int) -> str:
    """Give the page; the same advice gives the same bytes.

    Parameters
    ----------
    advice
        What `armlet.advise` found.
    per_day
        Decisions a day, to tell times in days.
    seed
        That it was found with.
    """
    drawn = [
        plots.policies(advice),
        plots.regret_by_p(advice),
        plots.bill_over_time(advice, per_day),
    ]
    check_pictures(drawn)
    policies, by_p, bill = map(figure, drawn)
    about_p = _said(words.about_p(advice, per_day))
    parts = [
        f"<p>{escape(words.for_a_log(advice))}</p>",
        _section("policies", "Policies", [table(words.policies(advice)), policies, _said(words.sentences(advice))]),
        _section("choice", "For a log to evaluate from: p", [table(words.choices(advice)), about_p, by_p]),
        _section("bill", "The bill of exploring by p", [bill, table(_grid(advice))]),
        *([_section("checks", "Does the model fit the log?", [table(words.checks(advice))])] if advice.checks else []),
        _section("use", "How to use it", [f'<div class="wide"><pre><code>{escape(_code(advice))}</code></pre></div>']),
        *([_section("notes", "Notes", [f"<p>{escape(note)}.</p>" for note in advice.notes])] if advice.notes else []),
    ]
    return document(words.headline(advice), words.basis(advice), parts, _manifest(advice, per_day, seed))


def _said(sentences: Iterable[tuple[str, str]]) -> str:
    rows = [f"<dt>{escape(label)}</dt><dd>{escape(_capital(text))}</dd>" for label, text in sentences]
    return "\n".join(["<dl>", *rows, "</dl>"])


def _capital(text: str) -> str:
    return text if text.startswith("p = ") else text[0].upper() + text[1:]


def _section(key: str, heading: str, parts: Iterable[str]) -> str:
    return "\n".join([f'<section aria-labelledby="{key}"><h2 id="{key}">{escape(heading)}</h2>', *parts, "</section>"])


def _grid(advice: Advice) -> Table:
    scale = advice.row.mean or 1.0
    rows = [
        (
            f"p = {exact(row.p)}",
            f"{number(row.mean / scale)} {interval([end / scale for end in row.interval])}",
            interval([end / scale for end in row.spread]),
            f"{row.runs:,}",
        )
        for row in advice.grid
    ]
    head = ("p", "loss [95 % interval of the mean]", "nine of ten runs", "runs")
    caption = f"Every p that was tried: losses as multiples of the mean of p = {exact(advice.p)}"
    return Table(caption=caption, head=head, rows=tuple(rows))


def _code(advice: Advice) -> str:
    return "\n".join(["import armlet", "", *words.usage(advice)])


def _manifest(advice: Advice, per_day: int | None, seed: int) -> dict[str, object]:
    traffic = {} if per_day is None else {"decisions a day": per_day}
    return {
        "made by": f"armlet {__version__}, armlet advise",
        "from": advice.source,
        "arms": advice.n_arms,
        "values in a context": advice.dim,
        "decisions": advice.horizon,
        **traffic,
        "problems": advice.problems,
        "runs": advice.runs,
        "seed": seed,
    }
