"""Clients that are slow on purpose: each is cut off in time, others are answered meanwhile, and memory stays small.

When a connection ends is seen at the server, by the sockets that its process holds: a client that does not read does
not see the end either.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Final, TypeAlias

import armlet
from soak.environment import make_loops, named_context
from soak.kill import fill
from soak.oracle import Oracle, require
from soak.server.connections import Address, Connection, request
from soak.server.process import LIMITS, Process

SECONDS: Final = 2.0  # that the server waits for anything
SLACK: Final = 8.0  # seconds: a refused client may go on for two, and the machine may do other things too
LARGEST: Final = 24 << 20  # bytes that one client may send, and that memory may grow by
FILLED: Final = 6000  # decisions, so that the log does not fit into the buffers of a socket
WAITS: Final[Mapping[str, object]] = {
    **LIMITS,
    **dict.fromkeys(("header_seconds", "body_seconds", "write_seconds", "idle_seconds"), SECONDS),
}
HEAD: Final = b"POST /v1/loops/plain/decide HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
BUFFER: Final = 1 << 16


@dataclass(slots=True)
class Report:
    """What was survived: clients of each kind and when the last was cut off, and how others fared."""

    kinds: dict[str, tuple[int, float]] = field(default_factory=dict)
    largest: int = 0  # bytes that a client could send
    answered: int = 0
    slowest: float = 0.0
    grown: int = 0

    def __str__(self) -> str:
        told = ", ".join(f"{n} x {kind} (gone after {seconds:.1f} s)" for kind, (n, seconds) in self.kinds.items())
        return (
            f"slow clients, limits of {SECONDS:g} s: {told}; {self.answered} decisions answered meanwhile, the slowest "
            f"in {self.slowest:.3f} s; the most that one could send was {self.largest:,} bytes; memory grew by "
            f"{self.grown / 2**20:.1f} MiB"
        )


def soak(folder: Path, scale: float = 1.0) -> Report:
    """Be slow in all ways; `scale` is the share of the clients of each."""
    path = folder / "slow.db"
    with armlet.open_store(path) as store:
        make_loops(store)
        fill(store, Oracle(), FILLED)
    server = Process(folder, str(path), limits=WAITS)
    server.start()
    try:
        return asyncio.run(_soak(server, scale))
    finally:
        server.close()


async def _soak(server: Process, scale: float) -> Report:
    await server.ready()
    report, took = Report(), [await _decide(Connection(server.address), -1)]
    async with asyncio.TaskGroup() as group:
        others = group.create_task(_decide_on(server.address, took))
        await asyncio.sleep(0.2)
        before, sockets = server.memory, server.sockets
        for kind, (n, be_slow) in KINDS.items():
            clients = max(1, round(n * scale))
            report.kinds[kind] = clients, await _suffer(server, kind, [be_slow] * clients, sockets, report)
        others.cancel()
    report.answered, report.slowest, report.grown = len(took), max(took), server.memory - before
    require(report.grown < LARGEST, f"memory has grown: {report}")
    require(report.largest < LARGEST, f"a client could send on and on: {report}")
    return report


async def _suffer(server: Process, kind: str, clients: list[Slow], sockets: int, report: Report) -> float:
    """Let clients be slow, wait until the server has closed all of their connections, and return the seconds."""
    started = monotonic()
    held = await asyncio.gather(*(be_slow(server.address) for be_slow in clients))
    while server.sockets > sockets:
        server.check_alive()
        require(monotonic() < started + SECONDS + SLACK, f"{kind}: {server.sockets - sockets} are connected still")
        await asyncio.sleep(0.05)
    for client, sent in held:
        client.close()
        report.largest = max(report.largest, sent)
    return monotonic() - started


# ---- those who are not slow


async def _decide_on(address: Address, took: list[float]) -> None:
    connection = Connection(address)
    for i in range(10**9):
        took.append(await _decide(connection, i))


async def _decide(connection: Connection, i: int) -> float:
    event, started = f"meanwhile {i}", monotonic()
    content = {"context": named_context(event, 0), "event": event}
    answer = await connection.ask("POST", "/v1/loops/plain/decide", content)
    require(answer.status == 200, f"a decision was answered {answer.status} meanwhile: {answer.body!r}")
    return monotonic() - started


# ---- ways to be slow

Slow: TypeAlias = Callable[[Address], Awaitable[tuple[socket.socket, int]]]


async def _connect(address: Address) -> socket.socket:
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
    client.setblocking(False)
    await asyncio.get_running_loop().sock_connect(client, address)
    return client


def _stop_after(data: bytes) -> Slow:
    """Send something, and then nothing."""

    async def be_slow(address: Address) -> tuple[socket.socket, int]:
        client = await _connect(address)
        await asyncio.get_running_loop().sock_sendall(client, data)
        return client, len(data)

    return be_slow


def _go_on_with(data: bytes, more: bytes, pause: float = 0.0) -> Slow:
    """Send the same again and again until the connection ends, or as much as nobody should take."""

    async def be_slow(address: Address) -> tuple[socket.socket, int]:
        client, sent = await _connect(address), len(data)
        loop, end = asyncio.get_running_loop(), monotonic() + SECONDS + SLACK
        with suppress(OSError, TimeoutError):
            await loop.sock_sendall(client, data)
            while sent < LARGEST and monotonic() < end:
                async with asyncio.timeout(SECONDS + SLACK):
                    await loop.sock_sendall(client, more)
                sent += len(more)
                await asyncio.sleep(pause)
        return client, sent

    return be_slow


KINDS: Final[Mapping[str, tuple[int, Slow]]] = {
    "nothing sent": (50, _stop_after(b"")),
    "half of the headers": (300, _stop_after(HEAD)),
    "a header a while": (20, _go_on_with(HEAD, b"a: b\r\n", 0.1)),
    "half of the body": (50, _stop_after(HEAD + b'content-length: 100\r\n\r\n{"context": ')),
    "a byte of the body a while": (20, _go_on_with(HEAD + b"content-length: 200000\r\n\r\n", b" ", 0.1)),
    "headers without end": (5, _go_on_with(HEAD, b"a: " + 1000 * b"b" + b"\r\n")),
    "one header without end": (5, _go_on_with(HEAD + b"a: ", 4096 * b"b")),
    "a path without end": (5, _go_on_with(b"GET /", 4096 * b"b")),
    "chunks without end": (5, _go_on_with(HEAD + b"transfer-encoding: chunked\r\n\r\n", b"1000\r\n" + 4096 * b" " + b"\r\n")),
    "answers never read": (20, _stop_after(request("GET", "/v1/loops/plain/log"))),
    "many answers never read": (5, _go_on_with(b"", 20 * request("GET", "/metrics"), 0.02)),
    "idle after an answer": (50, _stop_after(request("GET", "/healthz"))),
}
