"""Clients that are slow on purpose: each is cut off in time, others are answered meanwhile, and memory stays small.

When a connection ends is seen at the server, by the connections of its port: a client that does not read does not see
the end either.
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
from soak.server.clients import meanwhile
from soak.server.connections import Address, Connection, request
from soak.server.process import LIMITS, Process

SLACK: Final = 12.0  # seconds: a refused client may go on for two, and the machine may do other things too
MOST: Final = 64 << 20  # bytes that a client sends which is not cut off
GROWTH: Final = 64 << 20  # bytes: a log that is read takes about two million, and allocators keep them
AGAIN: Final = 16 << 20  # bytes, of all clients once more
FILLED: Final = 6000  # decisions, so that a few logs do not fit into the buffers of a socket
WAITS: Final = ("header_seconds", "body_seconds", "write_seconds")
IDLE: Final = 4.0  # times longer: who decides meanwhile may have to wait for this process
HEAD: Final = b"POST /v1/loops/plain/decide HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
BUFFER: Final = 1 << 16


@dataclass(slots=True)
class Report:
    """What was survived: clients of each kind and when the last was cut off, and how others fared."""

    seconds: float  # that the server waits for anything
    kinds: dict[str, tuple[int, float]] = field(default_factory=dict)
    largest: int = 0  # bytes that a client could send
    took: list[float] = field(default_factory=list)  # seconds, of decisions meanwhile
    grown: list[int] = field(default_factory=list)  # bytes, after each round

    def __str__(self) -> str:
        told = ", ".join(f"{n} x {kind} (gone after {seconds:.1f} s)" for kind, (n, seconds) in self.kinds.items())
        grown = " and ".join(f"{each / 2**20:.1f} MiB" for each in self.grown)
        return (
            f"slow clients, limits of {self.seconds:g} s: {told}; {len(self.took)} decisions answered meanwhile, the "
            f"slowest in {max(self.took):.3f} s; the most that one could send was {self.largest:,} bytes; memory grew "
            f"by {grown} in {len(self.grown)} rounds"
        )


def soak(folder: Path, scale: float = 1.0, seconds: float = 2.0, rounds: int = 2) -> Report:
    """Be slow in all ways, so often; `scale` is the share of the clients of each."""
    path = folder.resolve() / "slow.db"
    with armlet.open_store(path) as store:
        make_loops(store)
        fill(store, Oracle(), FILLED)
    server = Process(
        folder, str(path), limits={**LIMITS, **dict.fromkeys(WAITS, seconds), "idle_seconds": IDLE * seconds}
    )
    server.start()
    try:
        return asyncio.run(_soak(server, scale, rounds, Report(seconds)))
    finally:
        server.close()


async def _soak(server: Process, scale: float, rounds: int, report: Report) -> Report:
    await server.ready()
    async with meanwhile(_decide_on(server.address, report.took)):
        await asyncio.sleep(0.2)
        for _ in range(rounds):
            before = server.memory
            for kind, (n, be_slow) in KINDS.items():
                await _suffer(server, kind, [be_slow] * max(1, round(n * scale)), report)
            report.grown.append(server.memory - before)
    first, *others = report.grown
    require(first < GROWTH and max(others, default=0) < AGAIN, f"memory has grown: {report}")
    return report


async def _suffer(server: Process, kind: str, clients: list[Slow], report: Report) -> None:
    """Let clients be slow, and wait until the server has closed all of their connections."""
    started, patience = monotonic(), IDLE * report.seconds + SLACK
    held = await asyncio.gather(*(be_slow(server.address, patience) for be_slow in clients))
    while (left := server.connections - 1) > 0:  # one decides
        server.check_alive()
        require(monotonic() < started + patience, f"{kind}: {left} are connected still")
        await asyncio.sleep(0.05)
    for client, sent in held:
        client.close()
        report.largest = max(report.largest, sent)
    report.kinds[kind] = len(clients), monotonic() - started


# ---- those who are not slow


async def _decide_on(address: Address, took: list[float]) -> None:
    connection = Connection(address)
    try:
        for i in range(10**9):
            took.append(await _decide(connection, i))
            await asyncio.sleep(0.005)
    finally:
        connection.close()


async def _decide(connection: Connection, i: int) -> float:
    event, started = f"meanwhile {i}", monotonic()
    content = {"context": named_context(event, 0), "event": event}
    answer = await connection.ask("POST", "/v1/loops/plain/decide", content)
    require(answer.status == 200, f"a decision was answered {answer.status} meanwhile: {answer.body!r}")
    return monotonic() - started


# ---- ways to be slow

Slow: TypeAlias = Callable[[Address, float], Awaitable[tuple[socket.socket, int]]]


async def _connect(address: Address) -> socket.socket:
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
    client.setblocking(False)
    await asyncio.get_running_loop().sock_connect(client, address)
    return client


def _stop_after(data: bytes) -> Slow:
    """Send something, and then nothing."""

    async def be_slow(address: Address, _: float) -> tuple[socket.socket, int]:
        client = await _connect(address)
        await asyncio.get_running_loop().sock_sendall(client, data)
        return client, len(data)

    return be_slow


def _go_on_with(data: bytes, more: bytes, pause: float = 0.0) -> Slow:
    """Send the same again and again until the connection ends, or as much as nobody should take."""

    async def be_slow(address: Address, patience: float) -> tuple[socket.socket, int]:
        client, sent = await _connect(address), len(data)
        loop, end = asyncio.get_running_loop(), monotonic() + patience
        with suppress(OSError, TimeoutError):
            await loop.sock_sendall(client, data)
            while sent < MOST and monotonic() < end:
                async with asyncio.timeout(patience):
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
    "chunks without end": (
        5,
        _go_on_with(HEAD + b"transfer-encoding: chunked\r\n\r\n", b"1000\r\n" + 4096 * b" " + b"\r\n"),
    ),
    "answers never read": (10, _stop_after(20 * request("GET", "/v1/loops/plain/log"))),
    "many answers never read": (5, _go_on_with(b"", 20 * request("GET", "/metrics"), 0.02)),
    "idle after an answer": (50, _stop_after(request("GET", "/healthz"))),
}
