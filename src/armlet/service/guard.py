"""Limits on connections, which uvicorn lacks: bytes and seconds of headers, bytes of a request, idle and stuck clients.

A protocol of uvicorn's that keeps a phase and when it began. Nothing is timed by request: the server calls `sweep` for
every connection ten times a second, which closes those that are late, so that a request pays for a few attributes.
A client that is refused gets its answer: the connection is closed for writing first, and what still comes is thrown
away for a while, since closing with unread bytes would take the answer away from it.
"""

from __future__ import annotations

import json
import math
from asyncio import AbstractEventLoop, Transport
from enum import Enum
from http import HTTPStatus
from typing import Final

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from armlet.service.config import Limits

LINGER: Final = 2.0  # seconds that a refused client may still send
PIPELINED: Final = 64  # requests of a connection that wait for the answer before
RETRY: Final = (b"retry-after", b"1")


class Phase(Enum):
    """What a connection waits for."""

    NEW = "its first byte"
    HEAD = "the end of the headers"
    ANSWER = "the end of the body, or the answer"
    IDLE = "the next request"
    REFUSED = "its end"


NEW, HEAD, ANSWER, IDLE, REFUSED = Phase  # to look a member up in its class costs more than all else here


class Lingering:
    """What an answer writes to before its request was read to the end: closing it leaves time to read the answer."""

    def __init__(self, protocol: GuardedProtocol) -> None:
        self._protocol = protocol
        self.write, self.is_closing = protocol.transport.write, protocol.transport.is_closing

    def close(self) -> None:
        """Close for writing, and throw away what still comes."""
        self._protocol.linger()


class GuardedProtocol(HttpToolsProtocol):
    """HTTP/1.1 within limits."""

    limits: Limits

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, object],
        _loop: AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._phase, self._since = NEW, self.loop.time()
        self._bytes = self._chunk = 0  # of the request, but for those that came with its first; and of the last read
        self._is_lingering = False
        self._stuck_since: float | None = None  # the client does not read
        self._patience = {
            NEW: self.limits.header_seconds,
            HEAD: self.limits.header_seconds,
            ANSWER: math.inf,  # the application's own
            IDLE: self.limits.idle_seconds,
            REFUSED: LINGER,
        }
        # bytes of a request, with the frames of chunks
        self._most = self.limits.headers + 2 * max(self.limits.body, self.limits.batch_body)

    # ---- what comes

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Take a connection, unless there are too many."""
        super().connection_made(transport)
        self._lingering = Lingering(self)
        if len(self.connections) > self.limits.connections:
            self._phase = REFUSED
            transport.write(error_response(HTTPStatus.SERVICE_UNAVAILABLE, "there are too many connections; try again"))
            transport.close()

    def data_received(self, data: bytes) -> None:
        """Parse what has come, unless the request is too large or was refused."""
        if self._phase is REFUSED:
            return
        self._chunk = len(data)
        self._bytes += self._chunk
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # it is answered as a request that asks for no other protocol
        except httptools.HttpParserError:
            self._fail_to_parse()
            return
        if self._phase is HEAD and self._bytes > self.limits.headers:
            self._refuse_headers()
        elif self._bytes > self._most:
            self.refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the request has more than {self._most} bytes")

    def _fail_to_parse(self) -> None:
        if self._phase is not REFUSED:  # by a callback, below
            self.refuse(HTTPStatus.BAD_REQUEST, "this is not a valid HTTP request")

    def on_message_begin(self) -> None:
        """Begin a request."""
        if self._phase is not NEW:  # a new connection has begun already
            self._since = self.loop.time()
        self._phase, self._bytes = HEAD, 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; trailers, which come after the body, are not read."""
        if self._phase is not HEAD:
            return
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Start the request, unless its headers are too large or too many wait already."""
        if self._bytes + self._chunk > self.limits.headers and self._size() > self.limits.headers:
            self._refuse_headers()
            raise ValueError  # which stops the parser
        if len(self.pipeline) >= PIPELINED:
            self.refuse(HTTPStatus.TOO_MANY_REQUESTS, f"more than {PIPELINED} requests wait for an answer")
            raise ValueError
        self._phase = ANSWER
        super().on_headers_complete()
        self.cycle.transport = self._lingering  # type: ignore[assignment]

    def on_message_complete(self) -> None:
        """End the body."""
        self.cycle.transport = self.transport
        super().on_message_complete()

    def _size(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _refuse_headers(self) -> None:
        limit = self.limits.headers
        self.refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"the headers have more than {limit} bytes")

    # ---- answers

    def on_response_complete(self) -> None:
        """Continue with the next request, or wait for one; a client answered before it sent all is cut off."""
        if self.pipeline or self.transport.is_closing():
            super().on_response_complete()
            return
        self.server_state.total_requests += 1
        self.flow.resume_reading()
        if self._phase is REFUSED or self.cycle.more_body:
            self.linger()
        elif self._phase is ANSWER:
            self._phase, self._since = IDLE, self.loop.time()

    def refuse(self, status: HTTPStatus, detail: str) -> None:
        """Answer with an error, unless an answer is being sent, and end the connection."""
        self._phase = REFUSED
        if self.pipeline or (self.cycle is not None and not self.cycle.response_complete):
            self.transport.abort()  # this would be taken for the pending answer
            return
        self.transport.write(error_response(status, detail))
        self.linger()

    def linger(self) -> None:
        """End the connection, but leave time to read the last answer."""
        if self._is_lingering:
            return
        self._phase, self._since, self._is_lingering = REFUSED, self.loop.time(), True
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        else:
            self.transport.close()

    def pause_writing(self) -> None:
        """Stop answers: the client does not read."""
        self._stuck_since = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Resume answers."""
        self._stuck_since = None
        super().resume_writing()

    # ---- time

    def sweep(self, now: float) -> None:
        """Close the connection if its client is late."""
        if self._stuck_since is None and self.transport.is_closing():
            self._stuck_since = now
        if self._stuck_since is not None and now - self._stuck_since > self.limits.write_seconds:
            self.transport.abort()
        elif now - self._since <= self._patience[self._phase]:
            return
        elif self._phase is HEAD:
            self.refuse(HTTPStatus.REQUEST_TIMEOUT, f"the headers took more than {self._patience[HEAD]:g} seconds")
        elif self._phase is REFUSED:
            self.transport.abort()
        else:
            self.transport.close()


def error_response(status: HTTPStatus, detail: str) -> bytes:
    """Return a whole answer, as the application would say it."""
    headers, body = error_parts(status, detail)
    lines = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
    return f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() + lines + b"\r\n" + body


def error_parts(status: HTTPStatus, detail: str) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """Return the headers and the body of an answer that ends its connection."""
    problem = {"type": "about:blank", "title": status.phrase, "status": status.value, "detail": detail}
    body = json.dumps(problem).encode()
    headers = [
        (b"content-type", b"application/problem+json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    return [*headers, RETRY] if status == HTTPStatus.SERVICE_UNAVAILABLE else headers, body


def guarded(limits: Limits) -> type[GuardedProtocol]:
    """Return the protocol with these limits."""
    return type("LimitedProtocol", (GuardedProtocol,), {"limits": limits})
