"""Requests that nobody should send: valid HTTP with broken contents, and bytes that are hardly HTTP.

No answer may be a 5xx, not even a 503, since the store is well. The server lives on, and its memory stays flat. What
was answered is counted: the decisions and rewards that are kept must be those, so that refused requests have left
nothing behind.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

import armlet
from armlet.stores import Loop, Store
from soak.environment import make_loops
from soak.inspection import check_replay
from soak.oracle import require
from soak.server.connections import Address
from soak.server.process import LIMITS, Process
from soak.server.requests import Request, frame, make_request, mutate

CLIENTS: Final = 32
WARM: Final = 0.2  # share of requests before memory is looked at
GROWTH: Final = 16 << 20  # bytes
PATIENCE: Final = 30.0  # seconds until the server has closed a connection
WAITS: Final = {**LIMITS, "deadline": 60.0, **dict.fromkeys(("header_seconds", "body_seconds", "idle_seconds"), 0.5)}
STATUS: Final = re.compile(rb"HTTP/1\.1 (\d{3}) ")


@dataclass(slots=True)
class Report:
    """What was sent and answered."""

    sent: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    decisions: int = 0
    grown: int = 0

    def __str__(self) -> str:
        told = ", ".join(f"{n} x {status}" for status, n in sorted(self.statuses.items()))
        return (
            f"{self.sent} fuzzed requests: {told}; {self.decisions} decisions answered and kept, nothing of what was "
            f"refused; memory grew by {self.grown / 2**20:.1f} MiB; state exact"
        )


def soak(folder: Path, requests: int, seed: int = 0) -> Report:
    """Send so many requests; raise LostError for a 5xx, or for a state that the answers do not explain."""
    path = folder.resolve() / "fuzz.db"
    with armlet.open_store(path) as store:
        make_loops(store)
    server = Process(folder, str(path), limits=WAITS)
    fuzzer = Fuzzer(server, seed)
    server.start()
    try:
        asyncio.run(fuzzer.run(requests))
    finally:
        server.close()
    with armlet.open_store(path) as store:
        fuzzer.compare(store)
    return fuzzer.report


class Fuzzer:
    """Sends requests, and remembers which decisions were answered, or may have been forgotten."""

    def __init__(self, server: Process, seed: int) -> None:
        self._server, self._seed, self.report = server, seed, Report()
        self._decided: set[str] = set()  # names of events
        self._learned = 0  # rewards of "still" that count
        self._forgetting: list[bytes] = []  # requests that may have done so
        self._unanswered: list[bytes] = []

    async def run(self, requests: int) -> None:
        """Send so many, from a few clients at once."""
        await self._server.ready()
        for first, last in ((0.0, WARM), (WARM, 1.0)):
            memory = self._server.memory
            numbers = range(round(first * requests), round(last * requests))
            await asyncio.gather(*(self._send_all(numbers[client::CLIENTS]) for client in range(CLIENTS)))
            self.report.grown = self._server.memory - memory
        require(await self._server.status("/readyz") == 200, "the server is not ready any more")
        require(self.report.grown < GROWTH, f"memory has grown: {self.report}")
        await self._server.stop()

    async def _send_all(self, numbers: range) -> None:
        for number in numbers:
            rng = random.Random(f"{self._seed} {number}")
            made = make_request(rng, number)
            raw = frame(rng, made)
            if not made.is_counted and rng.random() < 0.5:
                raw = mutate(rng, raw)
            self._hear(made, raw, await exchange(self._server.address, raw))
            self._server.check_alive()

    def _hear(self, made: Request, raw: bytes, answer: bytes) -> None:
        """Remember what was answered; requests that were run together have several answers."""
        statuses = [int(found) for found in STATUS.findall(answer)]
        self.report.sent += 1
        self.report.statuses.update([str(status) for status in statuses] or ["no answer"])
        require(max(statuses, default=0) < 500, f"{raw[:3000]!r} was answered {answer[:3000]!r}")
        if b"/forget" in raw:
            self._forgetting.append(raw + made.body)  # which may have been sent in chunks
        if not any(status >= 200 for status in statuses):
            self._unanswered.append(raw + made.body)
        for told in _objects(answer):
            items = [item for item in told.get("items", [told]) if isinstance(item, dict)]
            self._decided.update(item["event"] for item in items if {"event", "arm"} <= item.keys())
            if made.is_counted:
                self._learned += sum(item.get("status") == "accepted" for item in items)

    def compare(self, store: Store) -> None:
        """Compare what is kept with what was answered."""
        names = {name: _rows(store.loop(name)) for name in store.loops}
        made = [row.fields for rows in names.values() for row in rows if row.kind == "decide"]
        kept = {fields.get("event", fields["id"]) for fields in made}
        nameless = (kept & {fields["id"] for fields in made}) - self._decided
        unheard = sum(b"/decide" in raw for raw in self._unanswered)  # run, but cut off for what came after them
        require(len(nameless) <= unheard, f"{nameless} are kept, and were not answered")
        for event in kept - self._decided - nameless:
            require(_is_in(event, self._unanswered), f"{event} is kept, and was not answered")
        for event in self._decided - kept:
            require(_is_in(event, self._forgetting), f"{event} was answered, and is not kept")
        learned = sum(row.kind == "learn" for row in names["still"])
        require(learned == self._learned, f"{learned} rewards are learned, and {self._learned} were accepted")
        for name in names:
            loop = store.loop(name)
            check_replay(store, loop)
            require(armlet.audit(loop.log.replayable, loop.log.start).ok, f"{name} cannot be audited")
        self.report.decisions = len(self._decided)


def _rows(loop: Loop) -> list[Any]:
    return list(loop._ledger.rows(loop._runner.id))


def _is_in(event: str, requests: list[bytes]) -> bool:
    return any(msgspec.json.encode(event)[1:-1] in raw for raw in requests)


def _objects(answer: bytes) -> list[dict[str, Any]]:
    """Return the JSON objects that are bodies of answers."""
    found = []
    for part in re.split(rb"(?=HTTP/1\.1 \d{3} )", answer):
        head, _, body = part.partition(b"\r\n\r\n")
        if head.startswith(b"HTTP/1.1 200") and b"application/json" in head and body:
            told = msgspec.json.decode(body)
            found.append(told if isinstance(told, dict) else {})
    return found


async def exchange(address: Address, raw: bytes) -> bytes:
    """Send bytes, and return all that comes back until the server closes the connection."""
    reader, writer = await asyncio.open_connection(*address, limit=1 << 24)
    chunks = []
    try:
        writer.write(raw)
        async with asyncio.timeout(PATIENCE):
            while chunk := await reader.read(1 << 16):
                chunks.append(chunk)
    except ConnectionError:
        pass  # it was closed while there was something to send
    finally:
        writer.close()
    return b"".join(chunks)
