"""A server whose disk is full in traffic: it says so, lives on, and answers again as soon as there is room.

The disk is a small one in memory, which only root can mount; something else fills it up and goes away again.
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import armlet
from soak.environment import make_loops
from soak.kill import FILLED, Report, Say, fill, say_nothing
from soak.oracle import Oracle, require
from soak.server.check import compare, models
from soak.server.clients import Fleet
from soak.server.process import Process

SIZE: Final = 64  # MiB
REFUSED: Final = 50  # requests, while the disk is full
BLOCK: Final = 1 << 12
KILLED: Final = 0.4  # share of full disks


@dataclass(frozen=True, slots=True)
class Full:
    """What was survived."""

    times: int
    refused: int  # tries
    kills: int
    report: Report

    def __str__(self) -> str:
        return (
            f"disk full {self.times} times, {self.kills} of them with a kill -9: {self.refused} tries answered 503, "
            f"all others 200; alive throughout; {self.report}"
        )


def soak(folder: Path, times: int = 6, seed: int = 0, *, filled: int = FILLED, say: Say = say_nothing) -> Full:
    """Fill the disk so often; raise LostError when the server says anything else than it has answered."""
    with small_disk(folder.resolve() / "disk") as disk:
        path, oracle = disk / "soak.db", Oracle()
        with armlet.open_store(path) as store:
            make_loops(store)
            fill(store, oracle, filled)
        server = Process(folder, str(path))
        soaked = Soak(server, path, Fleet([server.address], oracle, seed), random.Random(seed))
        try:
            asyncio.run(soaked.fleet.run(soaked.suffer(times, say)))
        finally:
            server.close()
        report = Report.of(oracle, soaked.kills, *soaked.found)
        return Full(times, soaked.fleet.heard["refused"], soaked.kills, report)


@contextmanager
def small_disk(place: Path) -> Iterator[Path]:
    """Mount a small disk in memory."""
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}m", "tmpfs", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


class Soak:
    """A server, its file and its clients."""

    def __init__(self, server: Process, path: Path, fleet: Fleet, rng: random.Random) -> None:
        self._server, self._path, self.fleet, self._rng = server, path, fleet, rng
        self._ballast = path.with_name("ballast")
        self.kills, self.found = 0, (0, 0)

    async def suffer(self, times: int, say: Say) -> None:
        """Let the disk be full so often."""
        self._server.start()
        await self._server.ready()
        for number in range(times):
            await self.fleet.wait_for_answers(self._rng.randrange(20, 200))
            await self._be_full()
            await self.fleet.wait_for_answers(20)
            await self._check()
            say(f"full {number + 1} of {times} times, {self.fleet.heard['refused']} tries refused")

    async def _be_full(self) -> None:
        """Fill the disk until requests are refused, and for a while; then make room."""
        end = self.fleet.heard["refused"] + REFUSED
        while self.fleet.heard["refused"] < end:  # SQLite's log has room in it for a while
            _fill_up(self._ballast)
            require(await self._server.status("/healthz") == 200, "the server does not answer while the disk is full")
            self._server.check_alive()
            await asyncio.sleep(0.01)
        if self._rng.random() < KILLED:
            await self._kill()
        self._ballast.unlink()
        if not self._server.is_alive:
            self._server.start()
            await self._server.ready()

    async def _kill(self) -> None:
        """Kill it while the disk is full: started again, it is ready, or ends and says why."""
        self._server.kill()
        self.kills += 1
        self._server.start()
        while self._server.is_alive and await self._server.status("/readyz") != 200:
            await asyncio.sleep(0.01)
        require(self._server.is_alive or "disk is full" in self._server.said[-200:], f"it says {self._server.said}")

    async def _check(self) -> None:
        await self.fleet.hold()
        said = await models([self._server.address])
        await self._server.stop()
        with armlet.open_store(self._path) as store:
            self.found = compare(store, self.fleet.oracle, said)
        self._server.start()
        await self._server.ready()
        await self.fleet.go_on()


def _fill_up(file: Path) -> None:
    """Take all that is free on a disk."""
    free = os.statvfs(file.parent).f_bavail * BLOCK
    with file.open("ab") as end:
        try:
            end.write(bytes(free))
            end.flush()
        except OSError:
            pass  # somebody else was faster
