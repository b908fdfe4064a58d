"""A load generator: so many connections that send their next request as soon as the last one is answered.

It speaks just enough HTTP/1.1 for the servers of `serve_worker.py`: requests are bytes that are made beforehand, and of
an answer only its status, its length and a word of its body are looked at, so that a generator on one core keeps up
with a server on another.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import cast

DIM, N_ARMS = 16, 10
LOOP = "bench"
KEY = "armlet_bench"  # of the decisions and rewards of all loops
FEATURES = [f"feature_{i:02d}" for i in range(DIM)]
ARMS = [f"arm-{i}" for i in range(N_ARMS)]
DECIDE, BATCH, REWARD = f"/v1/loops/{LOOP}/decide", f"/v1/loops/{LOOP}/decide/batch", "/v1/rewards"
_END = b"\r\n\r\n"
_LENGTH = b"content-length:"

_random = random.Random(1)
_CONTEXTS = [json.dumps({name: round(_random.gauss(0, 1), 3) for name in FEATURES}) for _ in range(256)]


class RefusedError(Exception):
    """A server answered something else than was expected."""


# ---- requests


def post(path: str, body: str) -> bytes:
    """Return a request."""
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {KEY}\r\ncontent-type: application/json"
    return f"{head}\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode()


def decisions(events: Sequence[str]) -> list[bytes]:
    """Return requests for a decision each."""
    return [post(DECIDE, _decision(i, event)) for i, event in enumerate(events)]


def batches(events: Sequence[str], size: int) -> list[bytes]:
    """Return requests for `size` decisions each."""
    return [
        post(BATCH, f'{{"items": [{", ".join(_decision(i, event) for i, event in enumerate(group, first))}]}}')
        for first, group in _groups(events, size)
    ]


def rewards(events: Sequence[str], size: int = 1) -> list[bytes]:
    """Return requests that reward `size` events each."""
    return [
        post(REWARD, f'{{"items": [{", ".join(_reward(i, event) for i, event in enumerate(group, first))}]}}')
        for first, group in _groups(events, size)
    ]


def _decision(i: int, event: str) -> str:
    return f'{{"context": {_CONTEXTS[i % len(_CONTEXTS)]}, "event": "{event}"}}'


def _reward(i: int, event: str) -> str:
    return f'{{"loop": "{LOOP}", "event": "{event}", "value": {0.25 * (i % 4)}}}'


def _groups(events: Sequence[str], size: int) -> Iterator[tuple[int, Sequence[str]]]:
    return ((first, events[first : first + size]) for first in range(0, len(events), size))


# ---- connections


class Traffic:
    """Requests that several connections share, and what became of them."""

    def __init__(self, requests: Sequence[bytes], expected: bytes, until: float) -> None:
        self._requests, self.expected, self._until = iter(requests), expected, until
        self.answered = 0
        self.is_over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._loop = asyncio.get_running_loop()
        self._open = 0

    def next(self) -> bytes | None:
        """Return a request that is to be sent; None if there are no more, or time is up."""
        request = next(self._requests, None) if self._loop.time() < self._until else None
        if request is not None:
            self._open += 1
        elif self._open == 0 and not self.is_over.done():
            self.is_over.set_result(None)
        return request

    def done(self) -> None:
        """Count an answer."""
        self.answered += 1
        self._open -= 1

    def fail(self, error: Exception) -> None:
        """Give up."""
        if not self.is_over.done():
            self.is_over.set_exception(error)


class Connection(asyncio.Protocol):
    """One connection that is kept open; it has one request under way at most."""

    def __init__(self) -> None:
        self._received = bytearray()
        self._traffic: Traffic | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to write to."""
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell who waits for an answer."""
        if self._traffic is not None:
            self._traffic.fail(RefusedError(f"the server has closed a connection: {exc}"))

    def begin(self, traffic: Traffic) -> None:
        """Send requests until there are no more."""
        self._traffic = traffic
        self._send()

    def close(self) -> None:
        """End it."""
        self._traffic = None
        if self._transport is not None:
            self._transport.close()

    def _send(self) -> None:
        request = None if self._traffic is None else self._traffic.next()
        if request is None:
            self._traffic = None
        elif self._transport is not None:
            self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        """Take a piece of an answer; where that was the last one, ask for more."""
        self._received += data
        end = self._received.find(_END)
        if end < 0 or self._traffic is None:
            return
        head = bytes(self._received[:end]).lower()
        length = int(head[head.index(_LENGTH) + len(_LENGTH) :].partition(b"\r\n")[0])
        if len(self._received) < end + len(_END) + length:
            return
        if not head.startswith(b"http/1.1 200") or self._traffic.expected not in self._received:
            self._traffic.fail(RefusedError(self._received.decode(errors="replace")))
            return
        self._received.clear()
        self._traffic.done()
        self._send()


@asynccontextmanager
async def connected(port: int, count: int) -> AsyncIterator[list[Connection]]:
    """Open connections, and close them at the end."""
    loop = asyncio.get_running_loop()
    opened: list[Connection] = []
    try:
        for _ in range(count):
            opened.append((await loop.create_connection(Connection, "127.0.0.1", port))[1])
        yield opened
    finally:
        for connection in opened:
            connection.close()
        await asyncio.sleep(0)  # they are closed in the next turn


async def run(connections: Sequence[Connection], requests: Sequence[bytes], expected: bytes, seconds: float) -> int:
    """Send requests over connections, for so many seconds at most; return how many were answered."""
    traffic = Traffic(requests, expected, asyncio.get_running_loop().time() + seconds)
    for connection in connections:
        connection.begin(traffic)
    await traffic.is_over
    return traffic.answered
