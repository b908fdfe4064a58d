"""A server whose wall clock jumps in traffic, and while it is down: windows close once, and on time.

The server runs with a clock that is ahead of the true one by what a file says. Windows go by the time that passes, so
that a jump neither closes them nor keeps them open.
"""

from __future__ import annotations

import asyncio
import random
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import armlet
from armlet.stores import Store
from armlet.stores.writer import ClockWarning
from soak.environment import make_loops, named_context
from soak.kill import Report, Say, fill, say_nothing
from soak.oracle import Oracle, require
from soak.server.check import compare, models
from soak.server.clients import Fleet
from soak.server.connections import ask
from soak.server.patched import CLOCK
from soak.server.process import Process

DAY: Final = 86_400.0
# a start up to a week later is believed, and closes windows at once: a store cannot tell that from time that passed
JUMPS: Final = {"+1 day": DAY, "-1 day": -DAY, "restart at -3 days": -3 * DAY, "restart at +9 days": 9 * DAY}
WINDOW: Final = 1.0  # seconds, of a loop of its own
LATEST: Final = 20.0  # seconds until a window must be closed, on a machine that does other things too


@dataclass(frozen=True, slots=True)
class Jumped:
    """What was survived; `closed` has the seconds after which windows closed, first of all those open at a jump."""

    jumps: list[str]
    closed: list[float]
    report: Report

    def __str__(self) -> str:
        closed = ", ".join(f"{each:.2f}" for each in self.closed)
        return (
            f"{len(self.jumps)} jumps of the clock ({', '.join(self.jumps)}): windows of {WINDOW:g} s, open at a jump, "
            f"closed after {closed} s, once; {self.report}"
        )


def soak(
    folder: Path, jumps: Sequence[str] = tuple(JUMPS), seed: int = 0, *, filled: int = 600, say: Say = say_nothing
) -> Jumped:
    """Let the clock jump; raise LostError when a window closes early, late or twice."""
    folder = folder.resolve()
    soaked = Soak(folder, seed)
    with soaked.open_store() as store:
        make_loops(store)
        store.loop("timed", arms=["a", "b"], dim=4, policy=armlet.LinUCB(), window=WINDOW, default_reward=0.0)
        fill(store, soaked.oracle, filled)
    try:
        asyncio.run(soaked.fleet.run(soaked.suffer(jumps, say)))
    finally:
        soaked.server.close()
    return Jumped(soaked.jumps, soaked.closed, Report.of(soaked.oracle, 0, *soaked.found))


class Soak:
    """A server with a clock of its own, its file and its clients."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._clock, self._path = folder / "clock", folder / "soak.db"
        self._ahead = 0.0
        self._jump(0.0)
        told = {CLOCK: str(self._clock)}
        self.server = Process(folder, str(self._path), patches=["clock from a file"], variables=told)
        self.oracle = Oracle()
        self.fleet = Fleet([self.server.address], self.oracle, seed)
        self._rng = random.Random(seed)
        self.jumps: list[str] = []
        self.closed: list[float] = []
        self.found = (0, 0)

    def _jump(self, seconds: float) -> None:
        self._ahead += seconds
        new = self._clock.with_name("clock.new")
        new.write_text(str(self._ahead))
        new.rename(self._clock)

    def open_store(self) -> Store:
        """Open the store by the clock of the server."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ClockWarning)
            return armlet.open_store(self._path, wall=lambda: time.time() + self._ahead)

    async def suffer(self, jumps: Sequence[str], say: Say) -> None:
        """Let the clock jump, with windows that are open."""
        self.server.start()
        await self.server.ready()
        for name in jumps:
            await self.fleet.wait_for_answers(self._rng.randrange(50, 200))
            started = await self._open_window()
            await self._suffer(name)
            self.closed.append(await self._wait_until_closed(len(self.closed) + 1) - started)
            await self.fleet.wait_for_answers(50)
            require(self.closed[-1] >= WINDOW, f"{name}: a window has closed after {self.closed[-1]} s")
            self.jumps.append(name)
            await self._check()
            say(f"{name}: a window closed after {self.closed[-1]:.2f} s")

    async def _suffer(self, name: str) -> None:
        if name.startswith("restart"):
            self.server.kill()
            self._jump(JUMPS[name])
            self.server.start()
            await self.server.ready()
        else:
            self._jump(JUMPS[name])

    async def _open_window(self) -> float:
        event, started = f"timed {len(self.closed)}", time.monotonic()
        content = {"context": list(named_context(event, 0).values()), "event": event}
        answer = await ask(self.server.address, "POST", "/v1/loops/timed/decide", content)
        require(answer.status == 200, f"{event} was answered {answer.status}: {answer.body!r}")
        return started

    async def _wait_until_closed(self, defaults: int) -> float:
        """Wait until so many windows have closed, all by default; return when."""
        end = time.monotonic() + LATEST
        while True:
            found = (await ask(self.server.address, "GET", "/v1/loops/timed/stats")).json
            require(found["defaults"] <= defaults, f"windows have closed twice: {found}")
            if found["defaults"] == defaults:
                return time.monotonic()
            require(time.monotonic() < end, f"a window is open after {LATEST:g} s: {found}")
            await asyncio.sleep(0.02)

    async def _check(self) -> None:
        await self.fleet.hold()
        said = await models([self.server.address])
        self.server.kill()
        with self.open_store() as store:
            self.found = compare(store, self.oracle, said)
            kinds = [row.kind for row in store.loop("timed")._ledger.rows(store.loop("timed")._runner.id)]
            require(kinds == len(self.closed) * ["decide", "learn"], f"windows have closed as {kinds} say")
        self.server.start()
        await self.server.ready()
        await self.fleet.go_on()
