"""Logging in: a key in a cookie, for pages alone.

The cookie is sent to pages and to nothing else, not to scripts, and not with requests that other sites make. What
changes something takes a header, so that a cookie can only show.
"""

from __future__ import annotations

from html import escape
from http.cookies import SimpleCookie
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, quote

from armlet.service.http import Header, Request, Response
from armlet.service.keys import COOKIE
from armlet.service.page.layout import HEADERS, Page, card, document, text
from armlet.service.problems import UNAUTHORIZED, Problem

if TYPE_CHECKING:
    from armlet.service.app import Service

HOME: Final = "/loops"
FORM: Final = 4096  # bytes
WRONG: Final = "This is not a key of the server, or it has expired."


async def show_login(_: Service, request: Request) -> Response:
    """Ask for a key."""
    return _ask(_local(request.query.get("next", "")))


async def log_in(service: Service, request: Request) -> Response:
    """Take a key, and keep it in a cookie."""
    body = (await request.body(FORM)).decode("latin-1")
    fields = dict(parse_qsl(body, keep_blank_values=True, max_num_fields=8))
    key, target = fields.get("key", "").strip(), _local(fields.get("next", ""))
    if not key.isascii() or service.keyring.find(key) is None:
        return _ask(target, WRONG, 401)
    return redirect(target, _cookie(key, request))


async def log_out(_: Service, request: Request) -> Response:
    """Delete the cookie."""
    return redirect("/login", _cookie("", request))


def redirect(target: str, *headers: Header) -> Response:
    """Send a browser to another page of this server."""
    return Response(b"", 303, ((b"location", target.encode("ascii")), (b"cache-control", b"no-store"), *headers))


def loop_url(name: str) -> str:
    """Return the address of a loop's page.

    Examples
    --------
    >>> loop_url("home page/a")
    '/loops/home%20page%2Fa'
    """
    return f"{HOME}/{quote(name, safe='')}"


def show_problem(request: Request | None, problem: Problem) -> Response:
    """Show a refusal as a page; whoever has no key is asked for one."""
    if problem.kind == UNAUTHORIZED and request is not None:
        name = request.parts.get("name")
        target = HOME if name is None else loop_url(name)
        return redirect(f"/login?next={quote(target, safe='')}")
    parts = [card("problem", problem.kind.title, [text(problem.detail)], kind="narrowly")]
    body = document(
        Page(title=problem.kind.title, crumbs=[("Loops", HOME)], parts=["<main id=main>", *parts, "</main>"])
    )
    return Response(body, problem.status, (*HEADERS, *problem.headers))


def _ask(target: str, refusal: str = "", status: int = 200) -> Response:
    alert = f'<p class="refused" id="refused" role="alert">{escape(refusal)}</p>' if refusal else ""
    about = ' aria-describedby="refused" aria-invalid="true"' if refusal else ""
    form = (
        '<form method="post" action="/login">'
        '<input name="user" value="armlet" autocomplete="username" hidden>'  # by which browsers remember keys
        '<label for="key">Key</label>'
        f'<input id="key" name="key" type="password" required autocomplete="current-password" autofocus{about}>'
        f'<input name="next" type="hidden" value="{escape(target)}">{alert}<button>Log in</button></form>'
    )
    parts = [
        text("Pages show what a key with the scope “read” may see; contexts of decisions need “admin”.", "soft"),
        form,
        f'<p class="small soft">Logged in already, and here by a link? <a href="{escape(target)}">Continue</a>.</p>',
    ]
    asked = card("login", "Log in with a key", parts, kind="narrowly")
    page = Page(title="Log in · Armlet", crumbs=[], parts=['<main id="main">', asked, "</main>"])
    return Response(document(page), status, HEADERS)


def _local(target: str) -> str:
    r"""Return a page of this server: what a link says may lead anywhere.

    Examples
    --------
    >>> _local("/loops/home"), _local("//evil.example"), _local("/loops/a\r\nx"), _local("/loops/../login")
    ('/loops/home', '/loops', '/loops', '/loops')
    """
    is_page = target == HOME or (target.startswith(f"{HOME}/") and target.isascii() and target.isprintable())
    return target if is_page and "\\" not in target and ".." not in target.split("/") else HOME


def _cookie(key: str, request: Request) -> Header:
    """Return the header that keeps a key until the browser is closed, or deletes it if it is empty."""
    cookie: SimpleCookie = SimpleCookie({COOKIE: key})
    found = cookie[COOKIE]
    found["path"], found["httponly"], found["samesite"] = HOME, True, "Strict"
    if request.is_secure or request.headers.get(b"x-forwarded-proto") == b"https":  # at worst it is not sent again
        found["secure"] = True
    if not key:
        found["max-age"] = 0
    return b"set-cookie", found.OutputString().encode("ascii")
