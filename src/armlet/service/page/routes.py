"""The routes of pages: a list of loops, a loop, its stream of events, logging in and out, and what pages load."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from armlet.service.http import NO_SNIFF, NO_STORE, Handler, Request, Response, Route
from armlet.service.page.assets import ASSETS, FOLDER
from armlet.service.page.layout import HEADERS, Viewer
from armlet.service.page.login import HOME, log_in, log_out, redirect, show_login, show_problem
from armlet.service.page.render import list_page, loop_page
from armlet.service.page.source import Loops, Source
from armlet.service.problems import NOT_FOUND, UNAVAILABLE, Problem

if TYPE_CHECKING:
    from armlet.service.app import Service

LISTED: Final = 50  # loops whose details are read for the list
FOREVER: Final = (b"cache-control", b"public, max-age=31536000, immutable")
REFRESH: Final = b"armlet-refresh"  # the script's header: what a stream has told will do, of a second ago or so
EVENTS: Final = (b"content-type", b"text/event-stream; charset=utf-8")
UNBUFFERED: Final = (b"x-accel-buffering", b"no")  # nginx would hold events back

SourceOf: TypeAlias = "Callable[[Service], Source]"


def page_routes(source_of: SourceOf) -> tuple[Route, ...]:
    """Return the routes of pages that show what a source has."""

    def bound(handler: Callable[[Source, Service, Request], Awaitable[Response]]) -> Handler:
        async def handle(service: Service, request: Request) -> Response:
            return await handler(source_of(service), service, request)

        return handle

    return (
        Route("GET", "/", None, _home, shows=show_problem),
        Route("GET", HOME, "read", bound(_list), shows=show_problem),
        Route("GET", f"{HOME}/{{name}}", "read", bound(_loop), shows=show_problem),
        Route("GET", f"{HOME}/{{name}}/stream", "read", bound(_stream)),
        Route("GET", "/login", None, show_login, shows=show_problem),
        Route("POST", "/login", None, log_in, shows=show_problem),
        Route("POST", "/logout", None, log_out, shows=show_problem),
        Route("GET", f"{FOLDER}/{{file}}", None, _asset, is_always_served=True),
    )


async def _home(_: Service, __: Request) -> Response:
    return redirect(HOME)


async def _list(source: Source, service: Service, request: Request) -> Response:
    names = [name for name in await source.names() if request.grant.allows("read", name)]
    found, others = [], names[LISTED:]
    for name in names[:LISTED]:
        try:
            found.append(await source.details(name))
        except Problem:  # one that is damaged, or whose policy is not known here; its own page says so
            others.append(name)
    return Response(list_page(found, others, _now(), _viewer(service, request)), 200, HEADERS)


async def _loop(source: Source, service: Service, request: Request) -> Response:
    name = request.parts["name"]
    viewer, streams = _viewer(service, request), service.streams
    # the version is read before the details: a page may be newer than it says, never older
    if REFRESH not in request.headers:
        version = await source.version(name)
        return Response(await _page(source, name, version, viewer), 200, HEADERS)
    version = await streams.version(name, lambda: source.version(name))
    body = await streams.shared.page((name, viewer), version, lambda: _page(source, name, version, viewer))
    return Response(body, 200, HEADERS)


async def _page(source: Source, name: str, version: str, viewer: Viewer) -> bytes:
    return loop_page(await source.details(name), _now(), version, viewer, source.features(name))


def _viewer(service: Service, request: Request) -> Viewer:
    return Viewer(request.grant.allows("admin", request.parts.get("name")), has_key=bool(len(service.keyring)))


async def _stream(source: Source, service: Service, request: Request) -> Response:
    name, streams = request.parts["name"], service.streams
    await source.version(name)  # refuses a loop that is not there, before anything is sent
    if streams.is_full:
        raise Problem(UNAVAILABLE, f"{streams.most} streams are open, and no more may be; close a page")
    events = streams.events(name, lambda: source.version(name), lambda: service.phase != "ready")
    return Response(events, 200, (EVENTS, NO_STORE, NO_SNIFF, UNBUFFERED))


async def _asset(_: Service, request: Request) -> Response:
    asset = ASSETS.get(request.parts["file"])
    if asset is None:
        raise Problem(NOT_FOUND, "there is no such file; pages name those that there are")
    media_type = (b"content-type", asset.media_type.encode())
    return Response(asset.body, 200, (media_type, FOREVER, NO_SNIFF))


def _now() -> int:
    return time.time_ns() // 1000


ROUTES: Final = page_routes(Loops)
