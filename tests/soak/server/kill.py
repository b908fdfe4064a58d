"""Kill a server in traffic, or ask it to stop, and start it again; what it has answered is what must be there, once."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import armlet
from soak.environment import make_loops
from soak.kill import FILLED, Report, Say, fill, say_nothing
from soak.oracle import Call, Oracle
from soak.server.check import compare, models
from soak.server.clients import SLOW, Fleet
from soak.server.process import Process

CHECK_EVERY: Final = 10  # kills
STOP_EVERY: Final = 4  # kills: it is asked to stop
EARLY: Final = 0.1  # share of servers that are killed before they are ready


def soak(
    folder: Path,
    kills: int,
    seed: int = 0,
    *,
    filled: int = FILLED,
    patches: Sequence[str] = (),
    say: Say = say_nothing,
) -> Report:
    """Kill a server so often; raise LostError when it says anything else than it has answered."""
    oracle = Oracle()
    path = folder.resolve() / "soak.db"
    with armlet.open_store(path) as store:
        make_loops(store)
        fill(store, oracle, filled)
    server = Process(folder, str(path), patches=patches)
    soaked = Soak(server, path, Fleet([server.address], oracle, seed), random.Random(seed), say)
    try:
        asyncio.run(soaked.fleet.run(soaked.suffer(kills)))
    finally:
        server.close()
    return Report.of(oracle, kills, *soaked.found)


class Soak:
    """A server, its file, its clients, and how often it was killed."""

    def __init__(self, server: Process, path: Path, fleet: Fleet, rng: random.Random, say: Say) -> None:
        self._server, self._path, self.fleet, self._rng, self._say = server, path, fleet, rng, say
        self.found = (0, 0)

    async def suffer(self, kills: int) -> None:
        """Kill it so often, and compare now and then."""
        for number in range(kills):
            if number % STOP_EVERY == STOP_EVERY - 1:
                await self._stop()
            self._server.start()
            if self._rng.random() < EARLY:
                await asyncio.sleep(0.5 * self._rng.random())
            else:
                await self._server.ready()
                await self._wait()
            self._server.kill()
            if number % CHECK_EVERY == CHECK_EVERY - 1 or number == kills - 1:
                await self._check()
                self._tell(number + 1, kills)

    async def _stop(self) -> None:
        """Ask it to stop in traffic, which it does by itself once all that is under way is answered."""
        self._server.start()
        await self._server.ready()
        await self.fleet.wait_for_answers(20)
        await self._server.stop()

    async def _wait(self) -> None:
        """Wait for some answers, or until something slow is asked."""
        slow = asyncio.Event()

        def sent(call: Call) -> None:
            if call[0] in SLOW:
                slow.set()

        if self._rng.random() < 0.4:
            self.fleet.sent = sent
            await slow.wait()
            await asyncio.sleep(0.01 * self._rng.random())
            self.fleet.sent = lambda _: None
        else:
            await self.fleet.wait_for_answers(self._rng.randrange(1, 400))

    async def _check(self) -> None:
        """Let a fresh server answer what is left, end it well or badly, and compare everything."""
        self._server.start()
        await self._server.ready()
        await self.fleet.hold()
        said = await models([self._server.address])
        if self._rng.random() < 0.5:
            await self._server.stop()
        else:
            self._server.kill()
        with armlet.open_store(self._path) as store:
            self.found = compare(store, self.fleet.oracle, said)
        await self.fleet.go_on()

    def _tell(self, number: int, kills: int) -> None:
        statuses = dict(sorted(self.fleet.statuses.items()))
        decided, learned = len(self.fleet.oracle.decided), self.found[0]
        self._say(f"{number} of {kills} kills, {decided} decisions, {learned} rewards learned, statuses {statuses}")
