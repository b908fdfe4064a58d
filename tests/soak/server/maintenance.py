"""A server at 64 connections while decisions are forgotten and a million of them is pruned.

Quiet rounds, in which clients only decide and reward, take turns with others; how long decisions take is compared
between the two, in the same run. No request may fail, but for a 503, and memory stays flat.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np

import armlet
from armlet.stores import Loop
from soak.environment import ARMS, DIM, context, reward
from soak.inspection import check_replay
from soak.oracle import require
from soak.server.clients import meanwhile
from soak.server.connections import Answer, Connection, ask
from soak.server.process import LIMITS, Process

CONNECTIONS: Final = 64
BATCH: Final = 10_000
QUIET: Final = 10.0  # seconds of a quiet round
RATIO: Final = 5.0  # of the time that 99 % of decisions take, to that in quiet rounds
GROWTH: Final = 64 << 20  # bytes
WARM: Final = 1000  # decisions in small batches: where nothing was learned, all of a batch explore, and are kept
LONGEST: Final = 3600.0  # seconds of a prune
LOOP: Final = "/v1/loops/home"


class SlowError(AssertionError):
    """Those who decide wait too long for maintenance."""


@dataclass(slots=True)
class Report:
    """What was done, and how long decisions took, in seconds."""

    rows: int
    quiet: list[float] = field(default_factory=list)
    busy: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    forgotten: int = 0
    pruned: int = 0
    seconds: float = 0.0  # of maintenance
    grown: int = 0

    @property
    def ratio(self) -> float:
        """How many times longer 99 % of decisions take where there is maintenance."""
        return float(np.quantile(self.busy, 0.99) / np.quantile(self.quiet, 0.99))

    def check(self) -> None:
        """Refuse a server that lets those who decide wait."""
        if self.ratio > RATIO:
            raise SlowError(str(self))

    def __str__(self) -> str:
        quiet, busy = (
            "{} decisions, p50 {:.1f} ms, p99 {:.1f} ms".format(len(took), *1e3 * np.quantile(took, [0.5, 0.99]))
            for took in (self.quiet, self.busy)
        )
        return (
            f"{CONNECTIONS} connections while {self.forgotten} decisions were forgotten and {self.pruned} of "
            f"{self.rows} pruned in {self.seconds:.1f} s: {busy}; quiet: {quiet} ({self.ratio:.2f} times); statuses "
            f"{dict(self.statuses)}; memory grew by {self.grown / 2**20:.1f} MiB; state exact"
        )


def soak(folder: Path, rows: int = 1_000_000, forgets: int = 1000, quiet: float = QUIET) -> Report:
    """Forget and prune in traffic, after a quiet round and before another; `Report.check` judges how long all took."""
    path = folder.resolve() / "maintenance.db"
    make(path, rows)
    server = Process(folder, str(path), limits=LIMITS)
    server.start()
    soaked = Soak(server, Report(rows))
    try:
        asyncio.run(soaked.run(forgets, quiet))
    finally:
        server.close()
    with armlet.open_store(path) as store:
        _compare(store.loop("home"), soaked.report)
        check_replay(store, store.loop("home"))
    return soaked.report


def _compare(loop: Loop, report: Report) -> None:
    """Count decisions: all are kept that were not deleted, and at the end each client may have asked for one more.

    What remains of a decision that was forgotten has no event.
    """
    rows = loop._ledger.rows(loop._runner.id)
    kept = sum(row.kind == "decide" and "event" in row.fields for row in rows)
    more = kept - (report.rows + len(report.quiet) + len(report.busy) - report.forgotten - report.pruned)
    most = CONNECTIONS + report.statuses[503]
    require(0 <= more <= most, f"{kept} decisions are kept, {more} more than should be: {report}")


def make(path: Path, rows: int) -> None:
    """Make a loop with so many decisions, of which hardly any has explored; a few have rewards."""
    with armlet.open_store(path) as store:
        loop = store.loop("home", arms=ARMS, dim=DIM, policy=armlet.Algorithm1(p=10), reward_range=(0, 1), seed=11)
        for first, last in pairwise([*range(0, min(rows, WARM), WARM // 10), *range(WARM, rows, BATCH), rows]):
            events = [f"old {i}" for i in range(first, last)]
            loop.decide_many([context(event) for event in events], events=events)
            loop.reward_many([(event, reward(event)) for event in events[::10]])


class Soak:
    """A server and its clients."""

    def __init__(self, server: Process, report: Report) -> None:
        self._server, self.report = server, report
        self._took = report.quiet  # where clients note how long decisions take

    async def run(self, forgets: int, quiet: float) -> None:
        """Let clients decide, without and with maintenance."""
        await self._server.ready()
        async with meanwhile(*(self._decide(i) for i in range(CONNECTIONS))):
            await asyncio.sleep(quiet)
            memory, started, self._took = self._server.memory, time.monotonic(), self.report.busy
            await self._maintain(forgets)
            self.report.seconds = time.monotonic() - started
            self.report.grown = self._server.memory - memory
            self._took = self.report.quiet
            await asyncio.sleep(quiet)
        await self._server.stop()
        require(self.report.grown < GROWTH, f"memory has grown: {self.report}")

    async def _decide(self, client: int) -> None:
        connection = Connection(self._server.address)
        try:
            for i in range(10**9):
                await self._decide_once(connection, f"new {client} {i}")
        finally:
            connection.close()

    async def _decide_once(self, connection: Connection, event: str) -> None:
        started = time.perf_counter()
        answer = await self._ask(connection, f"{LOOP}/decide", {"context": context(event), "event": event})
        if answer.status != 200:
            return
        self._took.append(time.perf_counter() - started)
        item = {"loop": "home", "event": event, "value": reward(event)}
        await self._ask(connection, "/v1/rewards", {"items": [item]})

    async def _ask(self, connection: Connection, path: str, content: object) -> Answer:
        answer = await connection.ask("POST", path, content)
        self.report.statuses[answer.status] += 1
        require(answer.status in (200, 503), f"{path} is answered {answer.status}: {answer.body!r}")
        return answer

    async def _maintain(self, forgets: int) -> None:
        """Forget decisions one by one, and prune all others meanwhile."""
        await asyncio.gather(self._prune(), self._forget(forgets))

    async def _prune(self) -> None:
        answer = await ask(self._server.address, "POST", "/v1/prune", {"before": time.time()}, seconds=LONGEST)
        require(answer.status == 200, f"prune is answered {answer.status}: {answer.body!r}")
        self.report.pruned = answer.json["pruned"]

    async def _forget(self, forgets: int) -> None:
        connection, ahead = Connection(self._server.address), self.report.rows - 1
        for i in range(forgets):  # those that are pruned last
            answer = await self._ask(connection, f"{LOOP}/forget", {"events": [f"old {ahead - i}"]})
            self.report.forgotten += answer.status == 200 and answer.json["forgotten"]
        connection.close()
