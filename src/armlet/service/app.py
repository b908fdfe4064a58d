"""The ASGI application: it finds the route, asks whose key it is, and answers; handlers know nothing of ASGI.

A request costs one look-up of its route and one of its key. Decisions and rewards are awaited in the event loop; all
else that waits for the store runs in a few threads, so that a page or a change never delays them.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any, Final, Literal, ParamSpec, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

from armlet.errors import ArmletError, trace_of
from armlet.service import problems
from armlet.service.config import Limits, PersonalizerConfig
from armlet.service.http import (
    CLOSE,
    DisconnectedError,
    Message,
    Patience,
    Receive,
    Request,
    Response,
    Route,
    Router,
    Send,
    drain,
    problem_response,
)
from armlet.service.keys import COOKIE, Grant, Keyring, is_local
from armlet.service.page import ROUTES as PAGES
from armlet.service.page import Streams
from armlet.service.personalizer import ROUTES as PERSONALIZER
from armlet.service.personalizer import FeatureCounts
from armlet.service.problems import Problem, no_loop
from armlet.service.routes import ROUTES
from armlet.types import Arm

if TYPE_CHECKING:
    from armlet.stores import Loop, Store
    from armlet.stores.overview import Details

Phase: TypeAlias = Literal["starting", "ready", "draining"]
Application: TypeAlias = Callable[[Mapping[str, object], Receive, Send], Awaitable[None]]

WAITING: Final = 64  # calls that may wait for a thread, or have one

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger("armlet.service")
log.addHandler(logging.NullHandler())  # silent, unless the application listens


class Service:
    """What handlers work with: a store, its loops that are in use, keys and limits.

    Parameters
    ----------
    store
        Open; the caller closes it.
    keyring
        The keys. Without any, everyone on this machine may do everything.
    limits
        How much a client may take.
    loops
        Those to begin with; others of the store are opened when they are first asked for.
    phase
        "starting" until all loops are ready, when only the server's own state is served; "draining" once the server is
        about to stop, when all is served but /readyz says so, for proxies.
    personalizer
        Which loops answer Personalizer's routes.
    """

    def __init__(
        self,
        store: Store,
        *,
        keyring: Keyring | None = None,
        limits: Limits | None = None,
        loops: Iterable[Loop] = (),
        phase: Phase = "ready",
        personalizer: PersonalizerConfig | None = None,
    ) -> None:
        self.store = store
        self.keyring = Keyring({}) if keyring is None else keyring
        self.limits = Limits() if limits is None else limits
        self.loops: dict[str, Loop] = {loop.name: loop for loop in loops}
        self.arms: WeakKeyDictionary[Loop, tuple[Arm, ...]] = WeakKeyDictionary()  # as far as they are known
        self.phase: Phase = phase
        self.personalizer = PersonalizerConfig() if personalizer is None else personalizer
        self.features: defaultdict[str, FeatureCounts] = defaultdict(FeatureCounts)  # that do not fit, by loop
        self.answers: Counter[tuple[str, str, int]] = Counter()  # by method, route and status
        self.patience = Patience(self.limits.body_seconds)
        self.streams = Streams(self.limits.streams)
        self._threads = ThreadPoolExecutor(self.limits.threads, thread_name_prefix="armlet-service")
        self._waiting = 0

    async def loop(self, name: str) -> Loop:
        """Return a loop by its name; another replica may have made it."""
        loop = self.loops.get(name)
        if loop is None:
            if name not in await self.names():
                raise no_loop(name)
            loop = self.loops[name] = await self.ask(self.store.loop, name)
        return loop

    async def names(self) -> Sequence[str]:
        """Return the names of all loops, the oldest first."""
        return await self.ask(lambda: self.store.loops)

    async def details(self, name: str) -> Details:
        """Return what there is to see of a loop."""
        loop = await self.loop(name)
        return await self.ask(loop.details)

    async def version(self, name: str) -> str:
        """Return a short text that is another one if the loop has changed."""
        loop = await self.loop(name)
        seq, epoch = await self.ask(loop.version)
        return f"{seq}.{epoch}"

    async def ask(self, call: Callable[P, T], /, *args: P.args, **options: P.kwargs) -> T:
        """Run what waits for the store in a thread; what the library refuses is raised as a problem."""
        try:
            return await self.run(call, *args, **options)
        except ArmletError as error:
            raise problems.refusal(error) from error

    async def run(self, call: Callable[P, T], /, *args: P.args, **options: P.kwargs) -> T:
        """Run what waits for the store in a thread, as it is."""
        if self._waiting >= WAITING:
            raise Problem(problems.UNAVAILABLE, "too many requests of this kind are pending; try again")
        self._waiting += 1
        try:
            work = partial(call, *args, **options)
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """End its threads, which finish what they have begun; the store stays open."""
        self._threads.shutdown()


# ---- who asks


def grant_of(service: Service, request: Request, route: Route) -> Grant | None:
    """Return what the sender may do; None if that is not known. Only what changes nothing may come with a cookie."""
    token = _bearer(request.headers.get(b"authorization"))
    anonymous = service.keyring.anonymous
    if token is None and route.method == "GET":
        token = _cookie(request.headers.get(b"cookie"))
    if token is None and route.key_header is not None and anonymous is None:
        token = request.headers.get(route.key_header, b"").decode("latin-1")
    if token is not None:
        return service.keyring.find(token)
    return anonymous if anonymous is not None and is_local(request.headers) else None


def _bearer(header: bytes | None) -> str | None:
    if header is None:
        return None
    scheme, _, token = header.decode("latin-1").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _cookie(header: bytes | None) -> str | None:
    if header is None:
        return None
    try:
        cookie = SimpleCookie(header.decode("latin-1")).get(COOKIE)
    except CookieError:
        return None
    return None if cookie is None else cookie.value


def authorize(service: Service, request: Request, route: Route) -> None:
    """Reject a sender that may not call a route, before the body is read."""
    grant = grant_of(service, request, route)
    if grant is None:
        challenge = ((b"www-authenticate", b"Bearer"),)
        what = "send a key: Authorization: Bearer ..."
        if route.key_header is not None:
            what = f"send a key: {route.key_header.decode().title()}: ..."
        raise Problem(problems.UNAUTHORIZED, what, headers=challenge)
    request.grant = grant
    if route.scope is None:
        return
    name = request.parts.get("name")
    allowed = grant.has(route.scope) if name is None else grant.allows(route.scope, name)
    if not allowed:
        what = "" if name is None else f" for loop {name!r}"
        raise Problem(problems.FORBIDDEN, f"the key lacks the scope {route.scope!r}{what}")


# ---- the application


def create_app(service: Service, routes: Iterable[Route] = (*ROUTES, *PAGES, *PERSONALIZER)) -> Application:
    """Return the ASGI application of a service; it has all routes unless some are given."""
    router = Router(routes)

    async def app(scope: Mapping[str, object], receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await _answer(service, router, scope, receive, send)
        elif scope["type"] == "lifespan":
            await _live(receive, send)
        else:  # a websocket, which there is none of
            await send({"type": "websocket.close", "code": 1003})

    return app


async def _answer(service: Service, router: Router, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    request: Request | None = None
    route: Route | None = None
    try:
        route, parts = router.find(scope)
        request = Request(scope, receive, parts, service.patience)
        if route.scope is not None:
            authorize(service, request, route)
        if service.phase == "starting" and not route.is_always_served:
            raise Problem(problems.UNAVAILABLE, "the loops are being opened")
        response = await route.handler(service, request)
        if route.scope == "admin":
            log.info("key %s: %s %s %r", request.grant.name, route.method, route.path, request.parts.get("name", ""))
    except Problem as problem:
        if problem.kind is problems.NOT_FOUND and request is not None:
            service.loops.pop(request.parts.get("name", ""), None)  # it may be made again, perhaps by another replica
        shows = problem_response if route is None else route.shows
        response = shows(request, problem)
    except DisconnectedError:
        return
    except Exception as error:
        response = _failed(scope["method"], route, request, error)
    if CLOSE not in response.headers and not await drain(scope, receive, service.patience, service.limits.body):
        response.headers = (*response.headers, CLOSE)
    path = "" if route is None else route.path
    service.answers[scope["method"] if route is not None else "", path, response.status] += 1
    try:
        await response.send(receive, send, without_body=scope["method"] == "HEAD")
    except Exception as error:  # the client sees that the rest is missing
        log.error("%s %s broke off: %s at %s", scope["method"], path, type(error).__name__, trace_of(error))


def _failed(method: str, route: Route | None, request: Request | None, error: Exception) -> Response:
    """Handle an unexpected exception: the log gets the place, not the message, which may contain a context."""
    log.error("%s %s failed: %s at %s", method, route and route.path, type(error).__name__, trace_of(error))
    problem = Problem(problems.INTERNAL, "this is a fault of the server; its log says where")
    return (problem_response if route is None else route.shows)(request, problem)


async def _live(receive: Receive, send: Send) -> None:
    """Take part in the server's start and end; the maker of the service opens and closes the store."""
    message: Message = await receive()
    while message["type"] != "lifespan.shutdown":
        await send({"type": "lifespan.startup.complete"})
        message = await receive()
    await send({"type": "lifespan.shutdown.complete"})
