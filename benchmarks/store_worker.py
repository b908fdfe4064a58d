"""One replica in a process of its own: callers decide and reward in a store until it is told to stop counting.

`store.py` starts it with a job, waits for the line "ready", and answers with a line of two numbers: when to begin to
count, by the clock that all processes of a machine share, and for how many seconds. It prints what it had done at the
beginning and after each quarter of that time, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from armlet.stores import Loop, SQLite, Status, Store

DIM, N_ARMS = 32, 8
QUARTERS = 4
DEADLINE = 10.0  # seconds, as `armlet.open_store` has it for a database
VARIABLE = "ARMLET_POSTGRESQL"  # where the database is: not in the arguments, which others can read

Door: TypeAlias = Literal["threads", "async"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a replica is asked for."""

    ledger: str  # "FULL" or "NORMAL" of SQLite, or "PostgreSQL"
    place: str  # a file, or a schema of the database
    loop: str
    replica: int
    door: Door
    callers: int


class Mark(NamedTuple):
    """What a replica has done at one moment."""

    at: float  # seconds
    cpu: float  # seconds, of the whole process
    pairs: int
    commits: int
    calls: int
    trips: int  # to the database


class Trips:
    """Counts the round trips of all connections of a process."""

    def __init__(self) -> None:
        self.n = 0

    def count(self, kind: type) -> None:
        """Count each call of its `run`, which is one round trip."""
        run = kind.run  # type: ignore[attr-defined]

        def counted(connection: object, queries: object) -> object:
            self.n += 1
            return run(connection, queries)

        kind.run = counted  # type: ignore[attr-defined]


class Traffic:
    """Callers that decide and reward as soon as they have their answers."""

    def __init__(self, loop: Loop, job: Job) -> None:
        self._loop, self._job = loop, job
        self._contexts = list(np.random.default_rng(1 + job.replica).normal(size=(256, DIM)))
        self._counts = [0] * job.callers
        self._is_over = False

    @property
    def pairs(self) -> int:
        """How many decisions were made and rewarded so far."""
        return sum(self._counts)

    @contextmanager
    def going(self) -> Iterator[None]:
        """Let callers call meanwhile; raise what any of them has raised."""
        work = self._threads() if self._job.door == "threads" else [lambda: asyncio.run(self._gather())]
        with ThreadPoolExecutor(len(work)) as pool:
            futures = [pool.submit(each) for each in work]
            try:
                yield
            finally:
                self._is_over = True
        for future in futures:
            future.result()

    def _threads(self) -> list[Callable[[], None]]:
        return [lambda caller=caller: self._call(caller) for caller in range(self._job.callers)]  # type: ignore[misc]

    def _events(self, caller: int) -> Iterator[tuple[int, str]]:
        """Return events by names that grow, as those of orders do."""
        while not self._is_over:
            n = self._counts[caller]
            yield n, f"{n:09d}-{self._job.replica}-{caller}"
            self._counts[caller] += 1

    def _call(self, caller: int) -> None:
        for n, event in self._events(caller):
            self._loop.decide(self._contexts[n % 256], event=event)
            _check(self._loop.reward(event, _reward(n)))

    async def _acall(self, caller: int) -> None:
        for n, event in self._events(caller):
            await self._loop.adecide(self._contexts[n % 256], event=event)
            _check(await self._loop.areward(event, _reward(n)))

    async def _gather(self) -> None:
        await asyncio.gather(*(self._acall(caller) for caller in range(self._job.callers)))


def _reward(n: int) -> float:
    return 0.25 * (n % 4)


def _check(status: Status) -> None:
    if status != "accepted":
        raise RuntimeError(f"a reward was answered {status!r}")


def open_job(job: Job, trips: Trips) -> Store:
    """Open the store that a job names."""
    if job.ledger == "PostgreSQL":
        from armlet.stores.postgresql import PostgreSQL
        from armlet.stores.postgresql.connection import Connection

        trips.count(Connection)
        return Store(PostgreSQL(os.environ[VARIABLE], schema=job.place), deadline=DEADLINE)
    return Store(SQLite(Path(job.place), synchronous="FULL" if job.ledger == "FULL" else "NORMAL"))


def count(store: Store, traffic: Traffic, trips: Trips, start: float, seconds: float) -> list[Mark]:
    """Look at the counters at the start and after every quarter."""
    marks: list[Mark] = []
    for quarter in range(QUARTERS + 1):
        time.sleep(max(0.0, start + quarter * seconds / QUARTERS - time.monotonic()))
        done = store._writer.counts
        now, cpu = time.monotonic(), time.process_time()
        marks.append(Mark(now, cpu, traffic.pairs, done.commits, done.calls, trips.n))
    return marks


def main(job: Job) -> list[Mark]:
    """Open the store, wait for the word, and let callers call."""
    trips = Trips()
    with open_job(job, trips) as store:
        loop = store.loop(job.loop, arms=list(range(N_ARMS)), dim=DIM, seed=1)
        traffic = Traffic(loop, job)
        print("ready", flush=True)
        start, seconds = map(float, sys.stdin.readline().split())
        with traffic.going():
            return count(store, traffic, trips, start, seconds)


if __name__ == "__main__":
    print(json.dumps(main(Job(**json.loads(sys.argv[1])))))
