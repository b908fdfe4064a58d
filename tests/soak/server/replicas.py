"""Two servers of one database, and faults: they die or stand still, the database crashes or is cut off.

Server 1 reaches the database through a proxy, which cuts its connections. Clients ask any of the two. After each fault
both have to answer, and after a few of them clients are held, so that the servers can be compared with each other and
the database with all that was answered.
"""

from __future__ import annotations

import asyncio
import random
import signal
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from psycopg.conninfo import conninfo_to_dict, make_conninfo

import armlet
from armlet.stores.postgresql.schema import COMMIT
from soak.environment import make_loops
from soak.kill import FILLED, Report, Say, fill, say_nothing
from soak.oracle import Oracle
from soak.server.check import compare, models
from soak.server.clients import Fleet
from soak.server.process import LIMITS, Process
from support.postgresql import Proxy, Server

CHECK_EVERY: Final = 5  # faults
DEADLINE: Final = 2.0  # seconds, of a server for its database
STOPPED: Final = DEADLINE + 0.5  # seconds that a server stands still
KEEPER: Final = ThreadPoolExecutor(1)  # never ends: a cluster is interrupted when the thread that started it is gone


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What was survived."""

    faults: Counter[str]
    heard: Counter[str]  # tries by how they ended, but for those that were answered
    statuses: Counter[int]
    report: Report

    def __str__(self) -> str:
        told, heard = (", ".join(f"{n} x {kind}" for kind, n in each.items()) for each in (self.faults, self.heard))
        return (
            f"two servers, {self.faults.total()} faults ({told}); tries that were repeated or given up: {heard}; "
            f"statuses {dict(sorted(self.statuses.items()))}; {self.report}; servers equal, audits ok"
        )


def soak(
    server: Server,
    folder: Path,
    faults: int,
    seed: int = 0,
    *,
    filled: int = FILLED,
    patches: Sequence[str] = (),
    say: Say = say_nothing,
) -> Faults:
    """Let so much happen; raise LostError when the servers say anything else than they have answered."""
    with _database(server) as conninfo:
        soaked = Soak(server, conninfo, folder, random.Random(seed), patches, filled)
        try:
            asyncio.run(soaked.fleet.run(soaked.suffer(faults, say)))
        finally:
            soaked.close()
        fleet = soaked.fleet
        report = Report.of(fleet.oracle, soaked.faults["kill -9"], *soaked.found)
        return Faults(faults=soaked.faults, heard=fleet.heard, statuses=fleet.statuses, report=report)


@contextmanager
def _database(server: Server) -> Iterator[str]:
    """Make a database of its own, which `armlet serve` has for itself, and drop it at the end."""
    name = f"armlet_{uuid.uuid4().hex[:12]}"
    server.run(f"CREATE DATABASE {name}")
    try:
        yield make_conninfo(server.conninfo, dbname=name, application_name=name)
    finally:
        server.run(f"DROP DATABASE {name} WITH (FORCE)")


def _url(conninfo: str) -> str:
    return f"postgresql:///?{urlencode(conninfo_to_dict(conninfo))}"


class Soak:
    """A database, two servers, their clients, and what can happen to them."""

    def __init__(
        self, server: Server, conninfo: str, folder: Path, rng: random.Random, patches: Sequence[str], filled: int
    ) -> None:
        self._database, self._rng, self._url = server, rng, _url(conninfo)
        self._name = str(conninfo_to_dict(conninfo)["dbname"])
        oracle = Oracle()
        with armlet.open_store(self._url) as store:
            make_loops(store)
            fill(store, oracle, filled)
        self._proxy = Proxy(conninfo)
        limits = {**LIMITS, "deadline": DEADLINE}
        places = (self._url, _url(self._proxy.conninfo))
        self._servers = [Process(folder, place, limits=limits, patches=patches) for place in places]
        self.fleet = Fleet([each.address for each in self._servers], oracle, rng.randrange(2**32))
        self.faults: Counter[str] = Counter()
        self.found = (0, 0)

    async def suffer(self, faults: int, say: Say) -> None:
        """Let so much happen, and compare now and then."""
        kinds: dict[str, Callable[[], Awaitable[None]]] = {
            "kill -9": self._kill,
            "database crashed": self._crash,
            "connections cut": self._cut,
            "answer of COMMIT lost": self._lose_answer,
            "session ended": self._end_session,
            "server stopped": self._stop,
        }
        for each in self._servers:
            each.start()
            await each.ready()
        for number in range(faults):
            kind = list(kinds)[number % len(kinds)]
            await self._wait(self._rng.randrange(5, 120))
            await kinds[kind]()
            await self._wait(5)
            self.faults[kind] += 1
            if number % CHECK_EVERY == CHECK_EVERY - 1 or number == faults - 1:
                await self._check()
                decided = len(self.fleet.oracle.decided)
                say(f"{number + 1} of {faults} faults, {decided} decisions, {self.found[0]} learned")

    async def _wait(self, answers: int) -> None:
        """Wait until both have answered so often."""
        for each in self._servers:
            await self.fleet.wait_for_answers(answers, each.address)

    async def _kill(self) -> None:
        server = self._rng.choice(self._servers)
        server.kill()
        server.start()
        await server.ready()

    async def _crash(self) -> None:
        await asyncio.get_running_loop().run_in_executor(KEEPER, self._database.restart, self._name)

    async def _cut(self) -> None:
        self._proxy.refuse()
        await self.fleet.wait_for_answers(20, self._servers[0].address)
        self._proxy.accept()

    async def _lose_answer(self) -> None:
        """Let a commit through, but not its answer."""
        before = self._proxy.cuts
        self._proxy.cuts_after = COMMIT.name
        while self._proxy.cuts == before:
            await self.fleet.wait_for_answers(1, self._servers[0].address)
        self._proxy.cuts_after = None

    async def _end_session(self) -> None:
        self._database.run(
            """SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s
            ORDER BY random() LIMIT 1""",
            self._name,
        )

    async def _stop(self) -> None:
        """Let a server stand still for longer than its deadline; the other one goes on meanwhile."""
        stopped, other = self._rng.sample(self._servers, 2)
        stopped.send(signal.SIGSTOP)
        try:
            await asyncio.sleep(STOPPED)
            await self.fleet.wait_for_answers(5, other.address)
        finally:
            stopped.send(signal.SIGCONT)

    async def _check(self) -> None:
        """Hold all clients, and compare the servers and the database."""
        await self.fleet.hold()
        said = await models([each.address for each in self._servers])
        with armlet.open_store(self._url) as store:
            self.found = compare(store, self.fleet.oracle, said)
        await self.fleet.go_on()

    def close(self) -> None:
        """Kill both servers."""
        for each in self._servers:
            each.close()
        self._proxy.close()
