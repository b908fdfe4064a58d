"""An HTML page that opens from disk, with its figures, tables and numbers.

Nothing is loaded: styles and figures are inside, and the page's own policy forbids the rest. Every text is escaped; a
figure, which cannot be, is checked first. The same input gives the same bytes.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final
from xml.etree import ElementTree

from armlet.errors import InvalidValueError
from armlet.report.plots import Picture
from armlet.types import Estimate

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
a:focus-visible { outline: 2px solid var(--link); outline-offset: 2px }
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
figure { margin: 1.5rem 0; max-width: 36rem }
figure svg { display: block; width: 100%; height: auto; color: var(--ink) }
.outcome { border-left: 4px solid currentColor; padding-left: .8rem; margin: 1.25rem 0 }
.outcome p { color: var(--ink); margin: .2rem 0 0 }
@media (min-width: 40rem) { dl { grid-template-columns: 9rem minmax(0, 1fr) } dd { margin: 0 0 .3rem }
  .number { white-space: nowrap } }
@media (max-width: 39.99rem) { .stack thead { position: absolute; left: -999rem }
  .stack :is(tr, th, td) { display: block; border: 0; padding: 0 } .stack tr { border-bottom: 1px solid var(--line);
  padding: .6rem 0 } .stack td[data-name]::before { content: attr(data-name) ": "; color: var(--soft) } }
@media print { body { max-width: none } section { break-inside: avoid } }
"""


def document(title: str, subtitle: str, parts: Iterable[str], manifest: Mapping[str, object]) -> str:
    """Return a whole page around parts that are HTML already; title, subtitle and manifest are escaped.

    Examples
    --------
    >>> "&lt;b&gt;" in document("<b>", "", ["<p>text</p>"], {})
    True
    """
    body = [
        f"<header><h1>{escape(title)}</h1><p>{escape(subtitle)}</p></header>",
        f"<main>{lines(parts)}",
        f"{_manifest(manifest)}</main>",
    ]
    return "\n".join([_head(title), *body, "</body>", "</html>", ""])


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


def _manifest(manifest: Mapping[str, object]) -> str:
    rows = [f"<dt>{escape(name)}</dt><dd>{escape(_value(value))}</dd>" for name, value in manifest.items()]
    return f'<section aria-labelledby="made"><h2 id="made">How this was made</h2><dl>\n{lines(rows)}\n</dl></section>'


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


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


def table(given: Table) -> str:
    """Return a table as HTML; on a narrow screen its cells stack, and roles keep it a table for those who hear it."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in given.head)
    rows = [
        f'<tr role="row"><th scope="row" role="rowheader">{escape(name)}</th>'
        + "".join(
            f'<td role="cell" class="number" data-name="{escape(column)}">{escape(cell)}</td>'
            for column, cell in zip(given.head[1:], cells, strict=True)
        )
        + "</tr>"
        for name, *cells in given.rows
    ]
    body = "\n".join(rows)
    return (
        f'<div class="wide"><table class="stack" role="table"><caption>{escape(given.caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>"
    )


def show(estimate: Estimate | None) -> str:
    """Write an estimate with as many digits as can be read, and its interval unless it is exact.

    Examples
    --------
    >>> show(Estimate(1.0512, 0.97, 1.118)), show(Estimate(20501.0, 20501.0, 20501.0)), show(None)
    ('1.05 [0.97 to 1.12]', '20,501', 'not defined')
    """
    if estimate is None:
        return "not defined"
    size = max(abs(estimate.value), abs(estimate.low), abs(estimate.high))
    spec = f",.{max(0, 2 - math.floor(math.log10(size)))}f" if 1e-3 <= size < 1e9 else ".3g"
    return f"{estimate.value:{spec}}" if estimate.low == estimate.high else f"{estimate:{spec}}"


def section(key: str, heading: str, parts: Iterable[str]) -> str:
    """Return a part of a page with its heading."""
    return "\n".join([f'<section aria-labelledby="{key}"><h2 id="{key}">{escape(heading)}</h2>', *parts, "</section>"])
