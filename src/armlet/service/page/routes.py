"""The routes of pages: a list of loops, a loop, its stream of events, logging in and out, and what pages load."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeAlias
from weakref import WeakKeyDictionary

from armlet.service.http import NO_SNIFF, NO_STORE, Handler, Request, Response, Route
from armlet.service.page.assets import ASSETS, FOLDER
from armlet.service.page.layout import HEADERS
from armlet.service.page.login import HOME, log_in, log_out, redirect, show_login, show_problem
from armlet.service.page.render import list_page, loop_page
from armlet.service.page.source import Loops, Shared, Source
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
    shared: WeakKeyDictionary[Service, Shared] = WeakKeyDictionary()

    def bound(handler: Callable[[Source, Shared, Service, Request], Awaitable[Response]]) -> Handler:
        async def handle(service: Service, request: Request) -> Response:
            return await handler(source_of(service), shared.setdefault(service, Shared()), service, request)

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


async def _list(source: Source, _: Shared, service: Service, request: Request) -> Response:
    names = [name for name in await source.names() if request.grant.allows("read", name)]
    found = [await source.details(name) for name in names[:LISTED]]
    body = list_page(found, names[LISTED:], _now(), has_keys=bool(len(service.keyring)))
    return Response(body, 200, HEADERS)


async def _loop(source: Source, shared: Shared, service: Service, request: Request) -> Response:
    name = request.parts["name"]
    # the version is read before the details: a page may be newer than it says, never older
    if REFRESH in request.headers:
        version = await service.streams.version(name, lambda: source.version(name))
        found = await shared.details(source, name, version)
    else:
        version = await source.version(name)
        found = await source.details(name)
    is_admin = request.grant.allows("admin", name)
    body = loop_page(found, _now(), version=version, is_admin=is_admin, has_keys=bool(len(service.keyring)))
    return Response(body, 200, HEADERS)


async def _stream(source: Source, _: Shared, service: Service, request: Request) -> Response:
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
