"""A server that starts with a mountain of windows that are due: it says at once that it lives, and when it is ready."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import armlet
from soak.oracle import require
from soak.server.connections import Connection
from soak.server.process import Process

BATCH: Final = 10_000
HOUR: Final = 3600.0
MOST: Final = 0.100  # CPU seconds from ready to the answer of the first decision
LOOPS: Final = 4


@dataclass(frozen=True, slots=True)
class Started:
    """How it went; all in seconds."""

    windows: int
    alive: float  # from the start of the process to the first 200 of /healthz
    not_ready: int  # answers of /readyz before it was 200
    ready: float
    cpu: float  # until then
    first: float  # CPU, from ready to the answer of the first decision

    def __str__(self) -> str:
        return (
            f"{self.windows} windows due at the start: /healthz 200 after {self.alive:.2f} s, /readyz 503 "
            f"{self.not_ready} times and 200 after {self.ready:.2f} s ({self.cpu:.2f} s CPU); first decision "
            f"{1e3 * self.first:.1f} ms CPU after that; all windows closed once"
        )


def soak(folder: Path, windows: int = 100_000) -> Started:
    """Start a server with so many windows due."""
    path = folder.resolve() / "due.db"
    _make(path, windows)
    server = Process(folder, str(path))
    try:
        return asyncio.run(_start(server, windows))
    finally:
        server.close()


def _make(path: Path, windows: int) -> None:
    """Decide an hour ago, in loops with windows of a minute."""
    with armlet.open_store(path, wall=lambda: time.time() - HOUR) as store:
        for number in range(LOOPS):
            loop = store.loop(
                f"loop {number}",
                arms=["a", "b"],
                dim=2,
                policy=armlet.Algorithm1(p=10),
                window=60.0,
                default_reward=0.0,
            )
            for first in range(0, windows // LOOPS, BATCH):
                n = min(BATCH, windows // LOOPS - first)
                loop.decide_many([[1.0, 0.5]] * n, events=[f"{first + i}" for i in range(n)])


async def _start(server: Process, windows: int) -> Started:
    started, connection = time.monotonic(), Connection(server.address)
    server.start()
    while await server.status("/healthz") != 200:
        server.check_alive()
        await asyncio.sleep(0.002)
    alive, not_ready = time.monotonic() - started, 0
    while (status := await server.status("/readyz")) != 200:
        require(status == 503, f"/readyz is answered {status}")
        not_ready += 1
        await asyncio.sleep(0.02)
    ready, cpu = time.monotonic() - started, server.cpu
    content = {"context": [1.0, 0.5], "event": "first"}
    answer = await connection.ask("POST", "/v1/loops/loop%200/decide", content)
    first = server.cpu - cpu
    require(answer.status == 200, f"the first decision is answered {answer.status}: {answer.body!r}")
    found = Started(windows, alive, not_ready, ready, cpu, first)
    require(not_ready > 0, f"/readyz was never 503: {found}")
    for number in range(LOOPS):
        stats = (await connection.ask("GET", f"/v1/loops/loop%20{number}/stats")).json
        is_done = (stats["defaults"], stats["open"]) == (windows // LOOPS, int(number == 0))
        require(is_done, f"windows were not closed when it was ready: {stats}")
    connection.close()
    require(first <= MOST, f"the first decision took too long: {found}")
    return found
