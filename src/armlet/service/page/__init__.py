"""Pages of loops, rendered on the server: a list of all, one for each, its stream of events, and logging in.

A page is the list of its parts, O(arms x features) however many decisions there are. A key is kept in a cookie that is
sent to pages and to nothing else, not to scripts, and not with requests that other sites make. What changes something
takes a header, so that a cookie can only show.

A stream sends an event when what its page shows has changed, every two seconds at most: the version of a loop, a few
bytes; the page then asks for itself again. While nothing changes, a stream sends a comment now and then, and looking
costs one row of a table a second, for all streams of a loop together.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Hashable, Sequence
from html import escape
from http.cookies import SimpleCookie
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, quote

from armlet.service.http import NO_SNIFF, NO_STORE, Header, Request, Response, Route
from armlet.service.keys import COOKIE
from armlet.service.page import answers, tables, words
from armlet.service.page.html import (
    FOLDER,
    HEADERS,
    HOME,
    SCRIPT,
    STYLE,
    Column,
    Page,
    View,
    Viewer,
    card,
    document,
    html_text,
    loop_url,
    table,
    text,
)
from armlet.service.problems import NOT_FOUND, UNAUTHORIZED, UNAVAILABLE, Problem
from armlet.types import __version__

if TYPE_CHECKING:
    from armlet.service.app import Service
    from armlet.stores.overview import Details

SECOND: Final = 1_000_000  # microseconds
LISTED: Final = 50  # loops whose details are read for the list
FORM: Final = 4096  # bytes
FOREVER: Final = (b"cache-control", b"public, max-age=31536000, immutable")
REFRESH: Final = b"armlet-refresh"  # the script's header: what a stream has told will do, of a second ago or so
EVENTS: Final = (b"content-type", b"text/event-stream; charset=utf-8")
UNBUFFERED: Final = (b"x-accel-buffering", b"no")  # nginx would hold events back
PERIOD: Final = 2.0  # seconds between two events
AGE: Final = 1.0  # seconds for which a version that was read will do for others too
LISTENING: Final = 0.5  # seconds until a stream notices that the server is about to stop
BEAT: Final = 15.0  # seconds between comments, by which proxies see that the stream is alive
LONGEST: Final = 3600.0  # seconds of a stream: then the browser asks again, and its key is looked at again
RETRY: Final = b"retry: 3000\n\n"  # milliseconds until a browser asks again
BEATING: Final = b":\n\n"
SHARED: Final = 64  # pages that are kept

PARTS: Final[tuple[Callable[[View], str], ...]] = (
    answers.notice,
    answers.answers,
    answers.chart,
    tables.outcomes,
    tables.budget,
    answers.exploring,
    answers.missing,
    tables.features,
    tables.arms,
    answers.health,
    tables.changes,
    tables.last_decisions,
    tables.settings,
)
"""What the page of a loop consists of, in order; a part that has nothing to say is empty."""
FOOTER: Final = (
    "<p>Intervals on this page are anytime-valid confidence sequences at 95 %: look as often as you like, and stop "
    "when you like. There are no p-values, no intervals for a fixed sample, and no regret, which is unknown.</p>"
    f"<p>Made by Armlet {__version__} from the rows of this loop, each folded in when it was committed.</p>"
)


# ---- a loop


def loop_page(view: View, version: str) -> bytes:
    """Return the page of a loop; the script asks for it again when the stream sends another version."""
    name = view.loop.name
    page = Page(
        title=f"{words.shorten(words.visible(name), 60)} · Armlet",
        crumbs=[("Loops", HOME)],
        parts=[_title(view), '<main id="main">\n', *(part(view) for part in PARTS), "</main>\n"],
        footer=FOOTER,
        stream=f"{loop_url(name)}/stream",
        version=version,
        now=view.now // SECOND,
        may_log_out=view.viewer.has_key,
    )
    return document(page)


def _title(view: View) -> str:
    loop = view.loop
    facts = [f"<strong>{words.count(loop.decisions)}</strong> decisions"]
    if loop.last_decision is not None:
        facts.append(f"the last one {words.when(loop.last_decision, view.now)}")
    arms = f"{len(loop.arms)} arms" if loop.action_dim is None else "actions with each decision"
    facts += [arms, f"<code>{words.label(tables.policy_words(loop.policy), 80)}</code>"]
    line = html_text(" · ".join(["<strong>Frozen</strong>", *facts] if loop.guards.is_frozen else facts))
    return f'<header class="title" id="title" data-part><h1>{words.label(loop.name, 80)}</h1>{line}</header>\n'


async def show_loop(service: Service, request: Request) -> Response:
    """Show a loop; those who refresh a page share one."""
    name, viewer, streams = request.parts["name"], _viewer(service, request), service.streams
    # the version is read before the details: a page may be newer than it says, never older
    if REFRESH not in request.headers:
        return Response(await _page(service, name, await service.version(name), viewer), 200, HEADERS)
    version = await streams.version(name, lambda: service.version(name))
    body = await streams.shared.page((name, viewer), version, lambda: _page(service, name, version, viewer))
    return Response(body, 200, HEADERS)


async def _page(service: Service, name: str, version: str, viewer: Viewer) -> bytes:
    return loop_page(View(await service.details(name), _now(), viewer, service.features.get(name)), version)


def _viewer(service: Service, request: Request) -> Viewer:
    return Viewer(request.grant.allows("admin", request.parts.get("name")), has_key=bool(len(service.keyring)))


def _now() -> int:
    return time.time_ns() // 1000


# ---- streams of events


class Shared:
    """Pages that are made once for all who refresh them: what they show takes the time of the thread that decides."""

    def __init__(self) -> None:
        self._found: dict[Hashable, tuple[str, asyncio.Future[bytes]]] = {}

    async def page(self, key: Hashable, version: str, make: Callable[[], Coroutine[object, object, bytes]]) -> bytes:
        """Return a page of a version, or a newer one; one that cannot be made is tried again."""
        entry = self._found.get(key)
        if entry is None or entry[0] != version:
            while len(self._found) >= SHARED:
                del self._found[next(iter(self._found))]
            entry = self._found[key] = (version, asyncio.ensure_future(make()))
        try:
            return await asyncio.shield(entry[1])  # one of those who wait may go away
        except Problem:
            self._found.pop(key, None)
            raise


class Streams:
    """The streams of a server: how many are open, and the versions of loops that they tell.

    Parameters
    ----------
    most
        That may be open at once.
    period, age
        Seconds between two looks of a stream, and for which one look will do for all.
    """

    def __init__(self, most: int, *, period: float = PERIOD, age: float = AGE) -> None:
        self.most, self.period, self.age = most, period, age
        self.open = 0
        self.shared = Shared()
        self._versions: dict[str, tuple[float, str]] = {}

    @property
    def is_full(self) -> bool:
        """Whether no other stream may be opened."""
        return self.open >= self.most

    async def events(
        self, name: str, read: Callable[[], Awaitable[str]], is_ending: Callable[[], bool]
    ) -> AsyncGenerator[bytes]:
        """Yield events of a loop until the server is about to stop, or an hour is over.

        Parameters
        ----------
        name
            Of the loop.
        read
            Reads a short text that differs if anything has changed. The first one is sent at once.
        is_ending
            Whether the server is about to stop.
        """
        started = sent_at = time.monotonic()
        last: str | None = None
        self.open += 1
        try:
            yield RETRY
            while not is_ending() and time.monotonic() - started < LONGEST:
                try:
                    version = await self.version(name, read)
                except Problem:  # the loop is gone, or the store is busy: the browser asks again, and gets the reason
                    return
                if version != last or time.monotonic() - sent_at >= BEAT:
                    yield BEATING if version == last else b"event: version\ndata: %s\n\n" % version.encode()
                    last, sent_at = version, time.monotonic()
                await self._pause(is_ending)
        finally:
            self.open -= 1

    async def version(self, name: str, read: Callable[[], Awaitable[str]]) -> str:
        """Return the version of a loop as of now, or of a second ago if another stream has read it then."""
        now = time.monotonic()
        at, version = self._versions.get(name, (-math.inf, ""))
        if now - at >= self.age:
            version = await read()
            fresh = {each: old for each, old in self._versions.items() if now - old[0] < self.age}
            self._versions = {**fresh, name: (now, version)}
        return version

    async def _pause(self, is_ending: Callable[[], bool]) -> None:
        end = time.monotonic() + self.period
        while not is_ending() and (left := end - time.monotonic()) > 0.0:
            await asyncio.sleep(min(LISTENING, left))


async def stream(service: Service, request: Request) -> Response:
    """Send an event when a loop has changed."""
    name, streams = request.parts["name"], service.streams
    await service.version(name)  # refuses a loop that is not there, before anything is sent
    if streams.is_full:
        raise Problem(UNAVAILABLE, f"{streams.most} streams are open, and no more may be; close a page")
    events = streams.events(name, lambda: service.version(name), lambda: service.phase != "ready")
    return Response(events, 200, (EVENTS, NO_STORE, NO_SNIFF, UNBUFFERED))


# ---- the list


def list_page(loops: Sequence[Details], others: Sequence[str], now: int, viewer: Viewer) -> bytes:
    """Return the list of loops: some with what there is to see, and the names of others."""
    n = len(loops) + len(others)
    columns = (
        Column("loop", "name"),
        Column("decisions", "n"),
        Column("last decision"),
        Column("better than random?"),
        Column("than the control?"),
        Column("health"),
    )
    body = [table(columns, [_line(each, now) for each in loops])]
    if not n:
        body = [text("There is no loop yet, or none that this key may see.", "soft")]
    if others:
        links = ", ".join(f'<a href="{loop_url(name)}">{words.label(name)}</a>' for name in others)
        body.append(html_text(f"And {words.count(len(others))} more: {links}"))
    loops_card = card("loops", "1 loop" if n == 1 else f"{words.count(n)} loops", body)
    header = '<header class="title"><h1>Loops</h1></header>\n<main id="main">\n'
    return document(
        Page(title="Loops · Armlet", crumbs=[], parts=[header, loops_card, "</main>\n"], may_log_out=viewer.has_key)
    )


def _line(loop: Details, now: int) -> tuple[str, ...]:
    brief = {gain.against: answers.in_short(gain) for gain in loop.gains}
    return (
        f'<a href="{loop_url(loop.name)}">{words.label(loop.name)}</a>',
        words.count(loop.decisions),
        "never" if loop.last_decision is None else words.when(loop.last_decision, now),
        brief.get("uniform", "–"),
        brief.get("control", "–"),
        f"{len(loop.alarms)} to look at" if loop.alarms else "in order",
    )


async def show_list(service: Service, request: Request) -> Response:
    """Show the loops that a key may see."""
    names = [name for name in await service.names() if request.grant.allows("read", name)]
    loops, others = [], names[LISTED:]
    for name in names[:LISTED]:
        try:
            loops.append(await service.details(name))
        except Problem:  # one that is damaged, or whose policy is not known here; its own page says so
            others.append(name)
    return Response(list_page(loops, others, _now(), _viewer(service, request)), 200, HEADERS)


# ---- logging in


async def show_login(_: Service, request: Request) -> Response:
    """Ask for a key."""
    return _login(_local(request.query.get("next", "")))


async def log_in(service: Service, request: Request) -> Response:
    """Take a key, and keep it in a cookie."""
    body = (await request.body(FORM)).decode("latin-1")
    fields = dict(parse_qsl(body, keep_blank_values=True, max_num_fields=8))
    key, target = fields.get("key", "").strip(), _local(fields.get("next", ""))
    if not key.isascii() or service.keyring.find(key) is None:
        return _login(target, "This is not a key of the server, or it has expired.", 401)
    return _redirect(target, _cookie(key, request))


async def log_out(_: Service, request: Request) -> Response:
    """Delete the cookie."""
    return _redirect("/login", _cookie("", request))


def _login(target: str, refusal: str = "", status: int = 200) -> Response:
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
    login = card("login", "Log in with a key", parts, kind="narrowly")
    page = Page(title="Log in · Armlet", crumbs=[], parts=['<main id="main">', login, "</main>"])
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


def _redirect(target: str, *headers: Header) -> Response:
    return Response(b"", 303, ((b"location", target.encode("ascii")), (b"cache-control", b"no-store"), *headers))


def _cookie(key: str, request: Request) -> Header:
    """Return the header that keeps a key until the browser is closed, or deletes it if it is empty."""
    cookie: SimpleCookie = SimpleCookie({COOKIE: key})
    morsel = cookie[COOKIE]
    morsel["path"], morsel["httponly"], morsel["samesite"] = HOME, True, "Strict"
    if request.is_secure or request.headers.get(b"x-forwarded-proto") == b"https":  # at worst it is not sent again
        morsel["secure"] = True
    if not key:
        morsel["max-age"] = 0
    return b"set-cookie", morsel.OutputString().encode("ascii")


def show_problem(request: Request | None, problem: Problem) -> Response:
    """Show a refusal as a page, or the form to log in where a key is missing."""
    if problem.kind == UNAUTHORIZED and request is not None:
        name = request.parts.get("name")
        target = HOME if name is None else loop_url(name)
        return _redirect(f"/login?next={quote(target, safe='')}")
    parts = [card("problem", problem.kind.title, [text(problem.detail)], kind="narrowly")]
    page = Page(title=problem.kind.title, crumbs=[("Loops", HOME)], parts=["<main id=main>", *parts, "</main>"])
    return Response(document(page), problem.status, (*HEADERS, *problem.headers))


# ---- routes


async def show_home(_: Service, __: Request) -> Response:
    """Lead to the list."""
    return _redirect(HOME)


async def asset(_: Service, request: Request) -> Response:
    """Return a file that pages load."""
    for each in (STYLE, SCRIPT):
        if each.url == f"{FOLDER}/{request.parts['file']}":
            return Response(each.body, 200, ((b"content-type", each.media_type.encode()), FOREVER, NO_SNIFF))
    raise Problem(NOT_FOUND, "there is no such file; pages name those that there are")


ROUTES: Final = (
    Route("GET", "/", None, show_home, shows=show_problem),
    Route("GET", HOME, "read", show_list, shows=show_problem),
    Route("GET", f"{HOME}/{{name}}", "read", show_loop, shows=show_problem),
    Route("GET", f"{HOME}/{{name}}/stream", "read", stream),
    Route("GET", "/login", None, show_login, shows=show_problem),
    Route("POST", "/login", None, log_in, shows=show_problem),
    Route("POST", "/logout", None, log_out, shows=show_problem),
    Route("GET", f"{FOLDER}/{{file}}", None, asset, is_always_served=True),
)
