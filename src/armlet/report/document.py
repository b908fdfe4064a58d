"""An HTML page that opens from disk: its answer in a sentence, a picture, a paragraph, the rest folded, what made it.

Nothing is loaded: styles and figures are inside, and the page's own policy forbids the rest. Every text is escaped; a
figure, which cannot be, is checked first. What is folded is open in print. The same input gives the same bytes.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final, NamedTuple
from xml.etree import ElementTree

from armlet.errors import InvalidValueError
from armlet.report.plots import Picture
from armlet.types import __version__

FORBIDDEN: Final = {"script", "foreignobject", "image", "style", "a"}  # in a figure
POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

STYLE: Final = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1f2328; --soft: #59636e; --line: #d1d9e0; --link: #0b5cad;
  --yes: #0f6b4f; --partly: #7a5200; --no: #b3261e; --open: #59636e }
@media (prefers-color-scheme: dark) { :root { --paper: #15171a; --ink: #e6e8ea; --soft: #a3abb4; --line: #3a4047;
  --link: #79b8ff; --yes: #56c596; --partly: #e3b341; --no: #ff8a80; --open: #a3abb4 } }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 1rem 1rem 4rem; max-width: 52rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; overflow-wrap: break-word }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 1rem 0 }
h2 { font-size: 1.3rem; line-height: 1.3; margin: 0 0 .25rem }
section { border-top: 1px solid var(--line); margin-top: 2.5rem; padding-top: 1.5rem }
a { color: var(--link) }
:is(a, summary):focus-visible { outline: 2px solid var(--link); outline-offset: 2px }
.skip { position: absolute; left: -999rem }
.skip:focus { left: 1rem; top: .5rem; padding: .25rem .5rem; background: var(--paper) }
.answer { font-size: 1.15rem; line-height: 1.45; margin: .75rem 0 }
nav ul { list-style: none; margin: 1rem 0; padding: 0; display: flex; flex-wrap: wrap; gap: .25rem 1.25rem }
summary { cursor: pointer; padding: .25rem 0 }
summary h2 { display: inline }
details > summary + * { margin-top: 1rem }
section > details + * { margin-top: 1rem }
section.folded { margin-top: 0; padding-top: .75rem }
pre { white-space: pre-wrap; font-size: .85rem; line-height: 1.4 }
.where, small, caption, figcaption { color: var(--soft); font-size: .9rem }
small { display: block }
.where { margin: 0 0 1rem }
table { border-collapse: collapse; width: 100%; font-size: .95rem; line-height: 1.4 }
caption { text-align: left; padding-bottom: .4rem }
th, td { text-align: left; vertical-align: top; padding: .5rem .75rem .5rem 0; border-bottom: 1px solid var(--line) }
tbody th { font-weight: 400 }
.verdict { font-weight: 600 }
td .verdict { display: inline-block; padding-left: 1.3em; text-indent: -1.3em }
.sign { display: inline-block; width: 1.3em; text-indent: 0 }
.yes { color: var(--yes) } .partly { color: var(--partly) } .no { color: var(--no) } .open { color: var(--open) }
.number { font-variant-numeric: tabular-nums }
.wide { overflow-x: auto; margin: 1rem 0 }
dl { margin: 1rem 0; display: grid; grid-template-columns: minmax(0, 1fr); gap: 0 1rem }
dt { color: var(--soft); font-size: .9rem }
dd { margin: 0 0 .6rem }
figure { margin: 1.5rem 0; max-width: 42rem }
figure svg { display: block; width: 100%; height: auto; color: var(--ink) }
.outcome { border-left: 4px solid currentColor; padding-left: .8rem; margin: 1.25rem 0 }
.outcome p { color: var(--ink); margin: .2rem 0 0 }
.chips { list-style: none; margin: 1rem 0; padding: 0; display: flex; flex-wrap: wrap; gap: .5rem }
.chips li { border: 1px solid currentColor; border-radius: 1rem; padding: .1rem .75rem }
.claim { position: relative; margin-top: 1.75rem }
.back { position: absolute; top: .2rem; right: 0; margin: 0; font-size: .85rem }
.beside > * { margin: .5rem 0 }
.claim details figure { max-width: 27rem }
@media print, (min-width: 52rem) { .beside { display: grid; gap: 0 1.5rem;
  grid-template-columns: repeat(2, minmax(0, 1fr)) } }
@media (min-width: 40rem) { dl { grid-template-columns: 9rem minmax(0, 1fr) } dd { margin: 0 0 .3rem }
  .number { white-space: nowrap } }
@media (max-width: 39.99rem) { .verdicts .where { display: none } .stack thead { position: absolute; left: -999rem }
  .stack :is(tr, th, td) { display: block; border: 0; padding: 0 } .stack tr { border-bottom: 1px solid var(--line);
  padding: .6rem 0 } .stack td:empty { display: none }
  .stack td[data-name]::before { content: attr(data-name) ": "; color: var(--soft) } }
@page { margin: 14mm }
@media print { html { font-size: 10pt } body { max-width: none; padding: 0 }
  :is(nav, .skip, .back) { display: none }
  details::details-content { content-visibility: visible; display: block } summary { list-style: none }
  :is(figure, tr, .beside) { break-inside: avoid }
  :is(h1, h2, summary, .where) { break-after: avoid } }
"""


class Section(NamedTuple):
    """A part of a page that its navigation leads to."""

    key: str
    heading: str
    html: str


def section(key: str, heading: str, parts: Iterable[str]) -> Section:
    """Return a part of a page with its heading."""
    opening = f'<section id="{key}" aria-labelledby="{key}-heading"><h2 id="{key}-heading">{escape(heading)}</h2>'
    return Section(key, heading, lines([opening, *parts, "</section>"]))


def folded_section(key: str, heading: str, parts: Iterable[str]) -> Section:
    """Return a part of which only the heading shows until a reader opens it, follows a link to it or prints."""
    summary = f'<summary><h2 id="{key}-heading">{escape(heading)}</h2></summary>'
    opening = f'<section class="folded" aria-labelledby="{key}-heading"><details>{summary}<div id="{key}">'
    return Section(key, heading, lines([opening, *parts, "</div></details></section>"]))


def fold(summary: str, parts: Iterable[str]) -> str:
    """Return details that show on demand, and in print.

    Examples
    --------
    >>> print(fold("How", ["<p>So.</p>"]))
    <details><summary>How</summary>
    <p>So.</p>
    </details>
    """
    return lines([f"<details><summary>{escape(summary)}</summary>", *parts, "</details>"])


def document(
    title: str, answer: str | Sequence[str], parts: Iterable[str | Section], made: Mapping[str, object]
) -> str:
    """Return a whole page around parts that are HTML already; all the rest is escaped.

    Parameters
    ----------
    title
        What the page is about.
    answer
        What it found, in a sentence or a few.
    parts
        HTML, or sections, to which the page gets a navigation.
    made
        What made it: log and digest, period, seed, command; lists and mappings are folded. Armlet's version is added.

    Examples
    --------
    >>> page = document("<b>", "It holds.", [section("one", "One", []), section("rest", "The rest", [])], {})
    >>> "&lt;b&gt;" in page, '<p class="answer">It holds.</p>' in page, '<a href="#rest">The rest</a>' in page
    (True, True, True)
    """
    content = list(parts)
    sentences = [answer] if isinstance(answer, str) else answer
    body = [
        '<a class="skip" href="#content">Skip to the content</a>',
        f"<header><h1>{escape(title)}</h1>",
        *(f'<p class="answer">{escape(sentence)}</p>' for sentence in sentences),
        f"</header>{_navigation([part for part in content if isinstance(part, Section)])}",
        f'<main id="content">{lines(part.html if isinstance(part, Section) else part for part in content)}',
        f"{_provenance({'version': f'Armlet {__version__}', **made})}</main>",
    ]
    return "\n".join([_head(title), *body, "</body>", "</html>", ""])


def _navigation(sections: Sequence[Section]) -> str:
    links = [f'<li><a href="#{each.key}">{escape(each.heading)}</a></li>' for each in sections]
    return f'\n<nav aria-label="Sections"><ul>{"".join(links)}</ul></nav>' if len(links) > 1 else ""


def check_pictures(pictures: Sequence[Picture]) -> None:
    """Refuse figures that are not still and whole, or have names in common: the second would borrow shapes."""
    for picture in pictures:
        _check(picture.svg)
    roots = [ElementTree.fromstring(picture.svg) for picture in pictures]
    names = Counter(element.get("id") for root in roots for element in root.iter() if "id" in element.attrib)
    if shared := [name for name, times in names.items() if times > 1]:
        raise InvalidValueError(f"pictures share the name {shared[0]!r}; draw each with a key of its own")


def _head(title: str) -> str:
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            '<head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>",
            f"<style>{STYLE}</style></head>",
            "<body>",
        ]
    )


def figure(picture: Picture) -> str:
    """Return a picture with its caption."""
    return f"<figure>{picture.svg}<figcaption>{escape(picture.caption)}</figcaption></figure>"


def _check(svg: str) -> None:
    """Refuse a figure that could run or load something, or that says nothing to those who cannot see it."""
    if not svg.startswith("<svg ") or "<!" in svg or "<?" in svg:
        raise InvalidValueError(f"a picture must be one <svg> element; got {svg[:40]!r}")
    root = ElementTree.fromstring(svg)
    if not root.get("aria-label"):
        raise InvalidValueError("a picture needs an aria-label that says what it shows; plots.svg takes it as alt")
    for element in root.iter():
        tag = element.tag.rpartition("}")[2].lower()
        if tag in FORBIDDEN or any(_reaches_out(name.lower(), value) for name, value in element.items()):
            raise InvalidValueError(f"a picture must be still and whole, but its <{tag}> could run or load something")


def _reaches_out(name: str, value: str) -> bool:
    elsewhere = name.endswith("href") and not value.startswith("#")
    return elsewhere or name.startswith("on") or re.search(r"url\((?!#)", value) is not None


def _provenance(made: Mapping[str, object]) -> str:
    rows = [f"<dt>{escape(_spaced(name))}</dt><dd>{_value(value)}</dd>" for name, value in made.items()]
    return section("made", "What made this", [f"<dl>\n{lines(rows)}\n</dl>"]).html


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _value(value: object) -> str:
    """Write a value; what has parts is folded, a line a part."""
    if isinstance(value, str):
        return escape(value)
    if isinstance(value, Mapping | list | tuple) and value:
        items = value.items() if isinstance(value, Mapping) else enumerate(value, 1)
        parts = [f"{_spaced(str(name))}: {each if isinstance(each, str) else _json(each)}" for name, each in items]
        return fold(f"{len(parts)} {'entry' if len(parts) == 1 else 'entries'}", [f"<pre>{escape(lines(parts))}</pre>"])
    return escape(_json(value))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def lines(parts: Iterable[str]) -> str:
    """Return each part a line of its own."""
    return "\n".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Words and numbers in columns; the first column names the row.

    Examples
    --------
    >>> print(Table(caption="Costs", head=("policy", "regret"), rows=(("LinUCB", "12"),)).markdown())
    | policy | regret |
    |---|---|
    | LinUCB | 12 |
    """

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        """Return it as a table in Markdown."""
        lines = [" | ".join(cell.replace("|", "\\|") for cell in cells) for cells in (self.head, *self.rows)]
        ruler = "|".join("---" for _ in self.head)
        return "\n".join([f"| {lines[0]} |", f"|{ruler}|", *(f"| {line} |" for line in lines[1:])])


def table(content: Table) -> str:
    """Return a table as HTML; on a narrow screen its cells stack, and roles keep it a table for those who hear it."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in content.head)
    rows = [
        f'<tr role="row"><th scope="row" role="rowheader">{escape(name)}</th>'
        + "".join(
            f'<td role="cell" class="number" data-name="{escape(column)}">{escape(cell)}</td>'
            for column, cell in zip(content.head[1:], cells, strict=True)
        )
        + "</tr>"
        for name, *cells in content.rows
    ]
    body = "\n".join(rows)
    return (
        f'<div class="wide"><table class="stack" role="table"><caption>{escape(content.caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>"
    )
