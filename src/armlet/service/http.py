"""HTTP as the handlers see it: requests, responses and routes over raw ASGI.

A route is found by one look-up of the path, once it was found before; a body is read only after its sender was
allowed to send it, up to a limit and within a time.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar
from urllib.parse import parse_qsl, unquote

import msgspec

from armlet.service.keys import Grant, Scope
from armlet.service.problems import (
    INVALID,
    MALFORMED,
    MEDIA_TYPE,
    NOT_ALLOWED,
    NOT_FOUND,
    TOO_LARGE,
    TOO_SLOW,
    UNSUPPORTED,
    Kind,
    Problem,
)

if TYPE_CHECKING:
    from armlet.service.app import Service

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Method: TypeAlias = Literal["GET", "POST", "PUT", "DELETE"]
Header: TypeAlias = tuple[bytes, bytes]
T = TypeVar("T")

NO_STORE: Final[Header] = (b"cache-control", b"no-store")
NO_SNIFF: Final[Header] = (b"x-content-type-options", b"nosniff")
CLOSE: Final[Header] = (b"connection", b"close")
JSON: Final[Header] = (b"content-type", b"application/json")
ANY: Final = "{}"  # stands for a part of a path
REST: Final = "*"  # at the end of a path, for any further parts
MOST_FIELDS: Final = 32  # of a query
REMEMBERED, SHORT = 1024, 256  # paths, and their letters


UNKNOWN: Final = Grant(name="unknown", scopes=frozenset())  # until the key was looked up


class DisconnectedError(Exception):
    """The client has disconnected."""


class Patience:
    """Ends waits that take too long, with one timer for all of them: most are over at once, and cost none.

    Parameters
    ----------
    seconds
        How long each may take; a TimeoutError is raised then.

    Examples
    --------
    >>> async def wait():
    ...     with Patience(0.01):
    ...         await asyncio.Event().wait()
    >>> asyncio.run(wait())
    Traceback (most recent call last):
    TimeoutError
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._begun: dict[asyncio.Task[Any], float] = {}  # the oldest first, since all may take as long
        self._timed: asyncio.AbstractEventLoop | None = None  # the event loop that has a timer

    def __enter__(self) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("there is no task to wait in")
        loop = task.get_loop()
        self._begun[task] = loop.time()
        if self._timed is not loop:
            self._timed = loop
            loop.call_later(self.seconds, self._look, loop)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        task = asyncio.current_task()
        if task is None or self._begun.pop(task, None) is not None:
            return
        if kind is asyncio.CancelledError and not task.uncancel():
            raise TimeoutError

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """End those whose time is over, and come back when that of the next one is."""
        while self._begun:
            task, begun = next(iter(self._begun.items()))
            left = begun + self.seconds - loop.time()
            if left > 0:
                loop.call_later(left, self._look, loop)
                return
            del self._begun[task]
            task.cancel()
        self._timed = None


class Request:
    """One request; its body is read on demand.

    Attributes
    ----------
    method
        As it was sent; HEAD is served by a GET route.
    parts
        What stands in the path for the names of the route's pattern.
    headers
        By lower-case name; of a name that came twice, the last one.
    grant
        What its sender may do.
    is_secure
        Whether it came by https, as far as the server knows.
    """

    __slots__ = ("_patience", "_receive", "grant", "headers", "is_secure", "method", "parts", "query_string")

    def __init__(
        self, scope: Mapping[str, Any], receive: Receive, parts: Mapping[str, str], patience: Patience
    ) -> None:
        self.method: str = scope["method"]
        self.headers: Mapping[bytes, bytes] = dict(scope["headers"])
        self.query_string: bytes = scope["query_string"]
        self.is_secure: bool = scope.get("scheme") == "https"
        self.parts = parts
        self.grant = UNKNOWN
        self._receive, self._patience = receive, patience

    @property
    def query(self) -> Mapping[str, str]:
        """The fields of the query string; each may be there once."""
        try:
            text = self.query_string.decode("ascii")
            pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS)
        except ValueError as error:
            raise Problem(MALFORMED, "the query string cannot be read") from error
        fields = dict(pairs)
        if len(fields) < len(pairs):
            raise Problem(MALFORMED, "the query string has a field more than once; give each once")
        return fields

    async def body(self, limit: int) -> bytes:
        """Return the body; refuse one of more than `limit` bytes, or one that takes too long."""
        length = self.headers.get(b"content-length")
        if length is not None and (not length.isdigit() or len(length) > 18 or int(length) > limit):
            raise _too_large(limit)
        if self._has_come:
            return await self._read(limit)
        try:
            with self._patience:
                return await self._read(limit)
        except TimeoutError as error:
            raise Problem(
                TOO_SLOW, f"send the body within {self._patience.seconds:g} seconds", headers=(CLOSE,)
            ) from error

    @property
    def _has_come(self) -> bool:
        """Whether all of the body is there, as far as uvicorn says: then no timer is needed, which costs as much."""
        return getattr(getattr(self._receive, "__self__", None), "more_body", True) is False

    async def _read(self, limit: int) -> bytes:
        message = await self._receive()
        body: bytes = _chunk(message, limit)
        if not message.get("more_body", False):
            return body
        chunks, size = [body], len(body)
        while message.get("more_body", False):
            message = await self._receive()
            chunks.append(_chunk(message, limit - size))
            size += len(chunks[-1])
        return b"".join(chunks)


async def drain(scope: Mapping[str, Any], receive: Receive, patience: Patience, limit: int) -> bool:
    """Read the rest of a body that no handler wants; return whether the connection can take another request.

    A body of more than `limit` bytes, one that is late, and one that the client will send only if asked are left.
    """
    cycle = getattr(receive, "__self__", None)  # uvicorn's, which says whether all has come
    if not getattr(cycle, "more_body", False):
        return True
    length = dict(scope["headers"]).get(b"content-length", b"0")
    if getattr(cycle, "waiting_for_100_continue", False) or not length.isdigit() or int(length[:18]) > limit:
        return False
    size = 0
    try:
        with patience:
            message = await receive()
            while message.get("more_body", False) and size <= limit:
                size += len(message.get("body", b""))
                message = await receive()
    except TimeoutError:
        return False
    return message["type"] == "http.request" and not message.get("more_body", False)


def _chunk(message: Message, room: int) -> bytes:
    if message["type"] == "http.disconnect":
        raise DisconnectedError
    chunk: bytes = message.get("body", b"")
    if len(chunk) > room:
        raise _too_large(None)
    return chunk


def _too_large(limit: int | None) -> Problem:
    bound = "" if limit is None else f" of at most {limit:,} bytes"
    return Problem(TOO_LARGE, f"send a smaller body{bound}", headers=(CLOSE,))


_PLACE: Final = re.compile(r"(?s)(.*?)(?: - at `(?:key in )?\$\.?(.*)`)?\Z")  # of msgspec's errors


def decode(decoder: msgspec.json.Decoder[T], body: bytes, request: Request) -> T:
    """Return a body as what a route takes, or refuse it."""
    media_type = request.headers.get(b"content-type", b"")
    if media_type != b"application/json" and media_type.partition(b";")[0].strip().lower() != b"application/json":
        raise Problem(UNSUPPORTED, "send Content-Type: application/json")
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise _invalid(str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Problem(MALFORMED, f"the body is not JSON: {error}") from None


def _invalid(text: str) -> Problem:
    place = _PLACE.match(text)
    what, where = (text, None) if place is None else place.groups()
    return Problem(INVALID, what, field=where and where.removesuffix("[...]"))  # it names no key of an object


@dataclass(slots=True)
class Response:
    """What is answered; a body that is an iterator is sent piece by piece."""

    body: bytes | AsyncIterator[bytes] = b""
    status: int = 200
    headers: tuple[Header, ...] = (JSON, NO_STORE, NO_SNIFF)

    async def send(self, receive: Receive, send: Send, *, without_body: bool = False) -> None:
        """Send it; `without_body` for a HEAD request."""
        body = self.body
        if isinstance(body, bytes):
            headers = [*self.headers, (b"content-length", b"%d" % len(body))]
            await send({"type": "http.response.start", "status": self.status, "headers": headers})
            await send({"type": "http.response.body", "body": b"" if without_body else body})
            return
        await send({"type": "http.response.start", "status": self.status, "headers": list(self.headers)})
        try:
            if without_body or await _stream(body, receive, send):
                await send({"type": "http.response.body", "body": b""})
        finally:
            if isinstance(body, AsyncGenerator):
                await body.aclose()


async def _stream(body: AsyncIterator[bytes], receive: Receive, send: Send) -> bool:
    """Send pieces until there are no more, or the client disconnects; return whether all were sent."""
    gone = asyncio.ensure_future(_disconnected(receive))
    try:
        while True:
            step = asyncio.ensure_future(anext(body, None))
            try:
                await asyncio.wait((step, gone), return_when=asyncio.FIRST_COMPLETED)
            finally:
                if not step.done():
                    step.cancel()
                    await asyncio.wait((step,))
            if step.cancelled():
                return False
            chunk = step.result()
            if chunk is None or gone.done():
                return chunk is None
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    finally:
        gone.cancel()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class NoContent(Response):
    """An answer without a body, which has no length either (RFC 9110)."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(b"", 204, (NO_STORE,))

    async def send(self, _: Receive, send: Send, *, without_body: bool = False) -> None:  # noqa: ARG002
        """Send it."""
        await send({"type": "http.response.start", "status": self.status, "headers": list(self.headers)})
        await send({"type": "http.response.body", "body": b""})


def json_response(value: object, status: int = 200) -> Response:
    """Return a response that says a value in JSON."""
    return Response(msgspec.json.encode(value), status)


def problem_response(_: Request | None, problem: Problem) -> Response:
    """Return a problem as JSON."""
    media_type = (b"content-type", MEDIA_TYPE)
    return Response(problem.body, problem.status, (media_type, NO_STORE, NO_SNIFF, *problem.headers))


# ---- routes

Handler: TypeAlias = "Callable[[Service, Request], Awaitable[Response]]"
Shown: TypeAlias = Callable[[Request | None, Problem], Response]


@dataclass(frozen=True, slots=True)
class Route:
    """Where a handler is found, and who may call it.

    Parameters
    ----------
    method
        GET, which serves HEAD as well, POST, PUT or DELETE.
    path
        Its pattern, such as "/v1/loops/{name}/decide"; a name in braces stands for one part, a star at the end for any
        further parts, where no other route has them.
    scope
        What a key must allow, for the loop that `{name}` says if the path has it; None where no key is asked for.
    handler
        Answers, or raises a Problem.
    takes, returns
        What a request and an answer say, for OpenAPI: a type, or a media type. A route that returns None, such as a
        page, is not listed there.
    status
        Of an answer that is not a problem.
    refuses
        Kinds of problems that are special to it.
    shows
        How its problems are shown; as JSON if left out.
    is_always_served
        Whether it is served while loops are being opened.
    key_header
        Another header than Authorization that may bring the key, in small letters.
    """

    method: Method
    path: str
    scope: Scope | None
    handler: Handler
    takes: type[Any] | None = None
    returns: type[Any] | str | None = None
    status: int = 200
    refuses: tuple[Kind, ...] = ()
    shows: Shown = problem_response
    is_always_served: bool = False
    key_header: bytes | None = None

    @property
    def is_once(self) -> bool:
        """Whether its paths are asked for but once, as those of events are."""
        return "{event}" in self.path

    @property
    def has_rest(self) -> bool:
        """Whether it has all paths that begin like its own."""
        return self.path.endswith(f"/{REST}")


class PathRoutes:
    """What a path leads to: routes by method, and the names of its parts."""

    __slots__ = ("methods", "places")

    def __init__(self, places: Mapping[str, int]) -> None:
        self.methods: dict[str, Route] = {}
        self.places = places

    @property
    def allow(self) -> bytes:
        """The methods, as the header Allow lists them."""
        names = set(self.methods) | ({"HEAD"} if "GET" in self.methods else set())
        return ", ".join(sorted(names)).encode()


class Router:
    """Finds routes by method and path.

    Examples
    --------
    >>> async def hello(service, request): return Response(b"hello")
    >>> router = Router([Route("GET", "/hello/{name}", None, hello)])
    >>> router.find({"method": "GET", "path": "/hello/you", "raw_path": b"/hello/you"})[1]
    {'name': 'you'}
    """

    def __init__(self, routes: Iterable[Route]) -> None:
        self._found: dict[tuple[str, ...], PathRoutes] = {}
        self._rest: dict[tuple[str, ...], PathRoutes] = {}  # of paths that end with a star, without it
        for route in routes:
            parts = route.path.removesuffix(f"/{REST}").split("/")
            places = {part[1:-1]: at for at, part in enumerate(parts) if part.startswith("{")}
            key = tuple(ANY if at in places.values() else part for at, part in enumerate(parts[1:], 1))
            known = self._rest if route.has_rest else self._found
            routes_of_path = known.setdefault(key, PathRoutes(places))
            if route.method in routes_of_path.methods or routes_of_path.places != places:
                raise ValueError(f"route {route.method} {route.path} is there twice")
            routes_of_path.methods[route.method] = route
        self._known: dict[tuple[str, str, bytes], tuple[Route, Mapping[str, str]]] = {}  # of requests before
        self._masks, self._rest_masks = _masks(self._found), _masks(self._rest)
        self._rest_lengths = sorted({len(key) + 1 for key in self._rest}, reverse=True)

    def find(self, scope: Mapping[str, Any]) -> tuple[Route, Mapping[str, str]]:
        """Return the route of a request and the parts of its path; refuse one that there is not."""
        request = scope["method"], scope["path"], scope.get("raw_path") or b""
        known = self._known.get(request)
        if known is None:
            known = self._find(*request)
            if len(self._known) == REMEMBERED:
                self._known.clear()
            # others could fill the memory with names that do not exist, or are used once
            if len(request[1]) <= SHORT and not known[0].is_once:
                self._known[request] = known
        return known

    def _find(self, method: str, path: str, raw: bytes) -> tuple[Route, Mapping[str, str]]:
        parts = path.split("/") if b"%" not in raw else _unquoted(raw)
        path_routes = _look_up(parts, self._found, self._masks) or self._begins(parts)
        if path_routes is None:
            raise Problem(NOT_FOUND, "there is no route of this path; /openapi.json lists all")
        route = path_routes.methods.get("GET" if method == "HEAD" else method)
        if route is None:
            raise Problem(NOT_ALLOWED, "use one of the methods in Allow", headers=((b"allow", path_routes.allow),))
        named = {name: parts[at] for name, at in path_routes.places.items()}
        if route.has_rest:
            named[REST] = "/".join(parts[route.path.count("/") :])
        return route, named

    def _begins(self, parts: list[str]) -> PathRoutes | None:
        """Return what has all paths that begin like this one."""
        for n in self._rest_lengths:
            path_routes = _look_up(parts[:n], self._rest, self._rest_masks) if n < len(parts) else None
            if path_routes is not None:
                return path_routes
        return None


def _masks(by_key: Mapping[tuple[str, ...], PathRoutes]) -> tuple[tuple[int, ...], ...]:
    return tuple({tuple(each.places.values()) for each in by_key.values() if each.places})


def _look_up(
    parts: list[str], known: Mapping[tuple[str, ...], PathRoutes], masks: tuple[tuple[int, ...], ...]
) -> PathRoutes | None:
    for mask in masks:
        if mask[-1] < len(parts):
            key = parts[1:]
            for at in mask:
                key[at - 1] = ANY if parts[at] else ""
            path_routes = known.get(tuple(key))
            if path_routes is not None:
                return path_routes
    return known.get(tuple(parts[1:]))


def _unquoted(raw: bytes) -> list[str]:
    """Split a path before its parts are unquoted: a loop's name may have a slash in it."""
    try:
        return [unquote(part, errors="strict") for part in raw.partition(b"?")[0].decode("ascii").split("/")]
    except UnicodeDecodeError as error:
        raise Problem(NOT_FOUND, "the path is not UTF-8") from error
