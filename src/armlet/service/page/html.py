"""What all pages share: head, bar, footer, headers of the answer, the files they load; cards, tables and signs.

Everything that comes from outside is escaped where it is put in; functions that return HTML take HTML only where their
argument is called `html`, `parts` or `cells`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias
from urllib.parse import quote

from armlet.service.page.words import label

if TYPE_CHECKING:
    from armlet.service.personalizer import FeatureCounts
    from armlet.stores.overview import Details

HOME: Final = "/loops"
FOLDER: Final = "/static"
MEDIA_TYPES: Final = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}
DIGITS: Final = 16  # of the hash in an address: enough that no two versions share one

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS: Final = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-security-policy", POLICY.encode()),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
ICON: Final = (  # a browser asks for one in any case; this one costs no request
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cpath "
    "d='M2 11a6 6 0 0 1 12 0' fill='none' stroke='%230069aa' stroke-width='3' stroke-linecap='round'/%3E%3C/svg%3E"
)


class Asset(NamedTuple):
    """A file that pages load. Its content determines its address, so a browser may cache it forever."""

    url: str
    media_type: str
    body: bytes


def _asset(stem: str, ending: str) -> Asset:
    body = files(__package__).joinpath("static", f"{stem}.{ending}").read_bytes()
    name = f"{stem}.{hashlib.sha256(body).hexdigest()[:DIGITS]}.{ending}"
    return Asset(f"{FOLDER}/{name}", MEDIA_TYPES[ending], body)


STYLE: Final = _asset("page", "css")
SCRIPT: Final = _asset("page", "js")

Width: TypeAlias = Literal["", "half"]
Sign: TypeAlias = Literal["yes", "open", "no", "none", "fault"]

_SIGNS: Final[dict[Sign, str]] = {
    "yes": '<path d="M4 12.5l5.5 5.5L20 6.5"/>',
    "no": '<path d="M6 6l12 12M18 6L6 18"/>',
    "open": '<circle cx="12" cy="12" r="8.5"/><path d="M12 7v5.4l3.4 2"/>',
    "none": '<path d="M5 12h14"/>',
    "fault": '<path d="M12 4v10M12 19v.5"/>',
}


class Viewer(NamedTuple):
    """Who looks at a page."""

    is_admin: bool  # may see events and contexts
    has_key: bool  # has logged in, and so can log out


class View(NamedTuple):
    """A loop as one viewer sees it."""

    loop: Details
    now: int  # microseconds since 1970
    viewer: Viewer
    features: FeatureCounts | None = None  # how often features did not fit, where that is known


class Page(NamedTuple):
    """A page before it is put together."""

    title: str
    crumbs: Sequence[tuple[str, str]]  # text and address of what is above it
    parts: Iterable[str]
    footer: str = ""
    stream: str | None = None  # where its events come from
    version: str = ""  # what it shows
    now: int = 0  # seconds since 1970
    may_log_out: bool = False


def loop_url(name: str) -> str:
    """Return the address of a loop's page.

    Examples
    --------
    >>> loop_url("home page/a")
    '/loops/home%20page%2Fa'
    """
    return f"{HOME}/{quote(name, safe='')}"


def document(page: Page) -> bytes:
    """Return a page as it is sent."""
    live = light = status = ""
    if page.stream is not None:
        live = f' data-stream="{escape(page.stream)}" data-version="{escape(page.version)}" data-now="{page.now}"'
        light = '<span class="live" id="live" hidden></span>'
        status = '<p class="hidden" id="said" role="status"></p>'
    crumbs = " / ".join(f'<a href="{escape(url)}">{label(text, 40)}</a>' for text, url in page.crumbs)
    out = '<form method="post" action="/logout"><button>Log out</button></form>' if page.may_log_out else ""
    text = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{escape(page.title)}</title><link rel="icon" href="{ICON}">'
        f'<link rel="stylesheet" href="{STYLE.url}"><script src="{SCRIPT.url}" defer></script></head>\n'
        f'<body{live}><a class="skip" href="#main">Skip to the page</a>\n'
        f'<header class="bar"><a class="brand" href="{HOME}">Armlet</a><nav aria-label="Above">{crumbs}</nav>'
        f"{light}{out}</header>\n{''.join(page.parts)}<footer>{page.footer}{status}</footer></body></html>\n"
    )
    return text.encode()


# ---- parts


def card(key: str, heading: str, parts: Iterable[str], *, width: Width = "", kind: str = "") -> str:
    """Return a part of the page with its heading; the script replaces it when it has changed."""
    classes = " ".join(filter(None, ("card", width, kind)))
    return (
        f'<section class="{classes}" id="{key}" data-part aria-labelledby="{key}-head">'
        f'<h2 id="{key}-head">{escape(heading)}</h2>{"".join(parts)}</section>\n'
    )


def absent(key: str) -> str:
    """Return the place of a part that has nothing to say now; the script may replace it later."""
    return f'<div id="{key}" data-part hidden></div>'


def sign(which: Sign) -> str:
    """Return a small picture that repeats what a word next to it says."""
    return f'<svg viewBox="0 0 24 24" aria-hidden="true" focusable="false">{_SIGNS[which]}</svg>'


def text(words: str, classes: str = "") -> str:
    """Return a paragraph of plain words."""
    return html_text(escape(words), classes)


def html_text(html: str, classes: str = "") -> str:
    """Return a paragraph."""
    return f'<p class="{classes}">{html}</p>' if classes else f"<p>{html}</p>"


class Column(NamedTuple):
    """The head of a column, and the class of its cells."""

    name: str
    kind: str = ""


def table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are HTML; the first cell of a row is its head. A phone stacks the cells."""
    # a table whose cells are laid out in another way is one to those who hear it by its roles alone
    return f'<table class="stack" role="table">{_rows(columns, rows)}</table>'


def _rows(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col"{_class(each.kind)}>{escape(each.name)}</th>' for each in columns)
    body = "\n".join(_row(columns, cells) for cells in rows)
    return f'<thead role="rowgroup"><tr role="row">{head}</tr></thead><tbody role="rowgroup">{body}</tbody>'


def _row(columns: Sequence[Column], cells: Sequence[str]) -> str:
    first, *rest = cells
    html = [f'<th scope="row" role="rowheader"{_class(columns[0].kind)}>{first}</th>']
    html += [
        f'<td role="cell"{_class(column.kind)} data-name="{escape(column.name)}">{cell}</td>'
        for column, cell in zip(columns[1:], rest, strict=True)
    ]
    return f'<tr role="row">{"".join(html)}</tr>'


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def wide_table(caption: str, columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> str:
    """Return a table that is moved sideways where it is too wide; the keyboard reaches it too."""
    return (
        f'<div class="scroll" role="region" aria-label="{escape(caption)}" tabindex="0">'
        f"<table>{_rows(columns, rows)}</table></div>"
    )


def terms(pairs: Iterable[tuple[str, str]]) -> str:
    """Return names with what they stand for, which is HTML."""
    items = "".join(f"<dt>{escape(name)}</dt><dd>{html}</dd>" for name, html in pairs)
    return f'<dl class="terms">{items}</dl>'


def more(key: str, summary: str, parts: Iterable[str]) -> str:
    """Return what is shown on demand."""
    return f'<details id="{key}"><summary>{escape(summary)}</summary>{"".join(parts)}</details>'
