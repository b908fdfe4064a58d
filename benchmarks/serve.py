"""What a request costs: `armlet serve` on SQLite and on PostgreSQL, next to bare uvicorn, FastAPI, and MABWiser in it.

    python benchmarks/serve.py                # five rounds, about ten minutes; a table on stderr, then a line of JSON
    python benchmarks/serve.py --rounds 1 --servers raw,sqlite --connections 64     # some of it, in half a minute
    python benchmarks/serve.py --quick        # once, a little of everything: does it run

Contexts have d = 16 named features, loops K = 10 arms and the default policy. Clients send decisions with events of
their own making, then the rewards of these events, over 1, 16 and 64 connections that are kept open, each of which
waits for its answer. CPU time is that of the whole server process, user and system; what clients spend is not counted,
and what PostgreSQL's own processes spend is printed next to it. Every round starts all servers and serves them in
turns, a share of the requests each, so that those that are compared meet the same machine; figures are medians over
rounds, and so are ratios, which are taken within a round.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import uvloop

from goals import serve_goals
from serve_client import Connection, batches, connected, decisions, rewards, run
from serve_report import BATCH, ServeReport, ServeRow, serve_table
from startup import one_thread
from store import Server as Database
from store import running_server
from store_worker import VARIABLE

CONNECTIONS = (1, 16, 64)
TURNS = 3  # a round, of every server
REQUESTS = 2000  # of a kind in a turn, at most, over 64 connections
SECONDS = 1.0  # of them, at most
WARM = 300  # requests of a kind, before
WORKER = Path(__file__).with_name("serve_worker.py")


@dataclass(frozen=True, slots=True)
class Setting:
    """A server that is measured."""

    name: str
    worker: str
    is_store: bool = False
    is_database: bool = False


SETTINGS = {
    "bare": Setting("bare uvicorn", "bare"),
    "raw": Setting("raw ASGI, json.loads", "raw"),
    "echo": Setting("FastAPI echo", "echo"),
    "mabwiser": Setting("FastAPI + MABWiser in memory", "mabwiser"),
    "sqlite": Setting("armlet serve, SQLite FULL", "ours", is_store=True),
    "postgresql": Setting("armlet serve, PostgreSQL", "ours", is_store=True, is_database=True),
}


class Asked(NamedTuple):
    """What to measure, and how much of it."""

    servers: Sequence[str]
    connections: Sequence[int]
    rounds: int
    turns: int
    share: float  # of the requests of a turn


class Cell(NamedTuple):
    """A server, at so many connections, and a kind of request."""

    server: str
    connections: int
    kind: str


class Spent(NamedTuple):
    """CPU seconds of a server and of its database, and for how many decisions or rewards."""

    cpu: float
    database: float
    items: int


# ---- one server


class Served:
    """A server process and the events that were sent to it."""

    def __init__(self, key: str, place: str, database: Database) -> None:
        setting = SETTINGS[key]
        variables = {VARIABLE: database.conninfo} if setting.is_database else {}
        self.key, self.setting, self._database = key, setting, database
        self._process = subprocess.Popen(
            [sys.executable, str(WORKER), setting.worker, place],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**{name: value for name, value in one_thread().items() if name != VARIABLE}, **variables},
        )
        said = b"" if self._process.stdout is None else self._process.stdout.readline()
        if not said:
            self._process.communicate()
            raise SystemExit(f"the server of {setting.name!r} has ended")
        self.port = int(said)
        self._sent = 0

    def _events(self, count: int) -> list[str]:
        """Return events by names that grow, as those of orders do."""
        self._sent += count
        return [f"order-{n:09d}" for n in range(self._sent - count, self._sent)]

    def cpu(self) -> float:
        """Return the CPU seconds of all its threads so far, by its clock, which Linux has for every process."""
        return time.clock_gettime((~self._process.pid << 3) | 2)

    async def measure(self, connections: int, requests: int) -> dict[str, Spent]:
        """Send requests of every kind that it takes, and return what they cost."""
        accepted = b"accepted" if self.setting.is_store else b""
        async with connected(self.port, connections) as opened:
            events, found = self._events(requests), {}
            found["decide"] = await self._take(opened, decisions(events), 1, b"arm-")
            found["reward"] = await self._take(opened, rewards(events[: found["decide"].items]), 1, accepted)
            if self.setting.is_store:
                events = self._events(max(requests // BATCH, connections) * BATCH)
                found["batch"] = await self._take(opened, batches(events, BATCH), BATCH, b"arm-")
                told = rewards(events[: found["batch"].items], BATCH)
                found["rewards"] = await self._take(opened, told, BATCH, accepted)
        return found

    async def _take(self, opened: Sequence[Connection], sent: Sequence[bytes], items: int, expected: bytes) -> Spent:
        """Send requests of so many items each."""
        before, of_database = self.cpu(), self._database.cpu() or 0.0
        answered = await run(opened, sent, expected, SECONDS)
        cpu, spent = self.cpu() - before, (self._database.cpu() or 0.0) - of_database
        return Spent(cpu, spent if self.setting.is_database else 0.0, answered * items)

    def __enter__(self) -> Served:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._process.kill()
        self._process.communicate()


# ---- rounds


async def take_turns(servers: Sequence[Served], asked: Asked) -> dict[Cell, Spent]:
    """Return what all servers spend in one round."""
    spent: dict[Cell, list[Spent]] = defaultdict(list)
    for connections in asked.connections:
        requests = int(asked.share * REQUESTS * min(1.0, (connections + 8) / 64))
        for server in servers:
            await server.measure(connections, WARM)
        for turn in range(asked.turns):
            for server in servers if turn % 2 == 0 else reversed(servers):
                for kind, each in (await server.measure(connections, requests)).items():
                    spent[Cell(server.key, connections, kind)].append(each)
    return {cell: total(each) for cell, each in spent.items()}


def total(spent: Sequence[Spent]) -> Spent:
    cpu, database = sum(each.cpu for each in spent), sum(each.database for each in spent)
    return Spent(cpu, database, sum(each.items for each in spent))


def one_round(database: Database, folder: Path, asked: Asked) -> dict[Cell, Spent]:
    """Start all servers, measure them, and end them."""
    with ExitStack() as stack:
        files = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=folder)))
        schema = stack.enter_context(database.schema())
        servers = [
            stack.enter_context(Served(key, schema if SETTINGS[key].is_database else str(files / "bench.db"), database))
            for key in asked.servers
        ]
        return uvloop.run(take_turns(servers, asked))


def row_of(cell: Cell, taken: Sequence[Spent]) -> ServeRow:
    """Return the figures of a cell, round by round."""
    setting = SETTINGS[cell.server]
    return {
        "server": cell.server,
        "name": setting.name,
        "kind": cell.kind,
        "connections": cell.connections,
        "us": [1e6 * each.cpu / max(each.items, 1) for each in taken],
        "database_us": [1e6 * each.database / max(each.items, 1) for each in taken if setting.is_database],
    }


def report_of(rounds: Sequence[dict[Cell, Spent]], asked: Asked) -> ServeReport:
    """Return what is printed, in the order of servers."""
    cells = sorted(rounds[0], key=lambda cell: (asked.servers.index(cell.server), cell.connections))
    return {"rows": [row_of(cell, [each[cell] for each in rounds]) for cell in cells]}


def read_arguments(arguments: Sequence[str]) -> Asked:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--servers", default=",".join(SETTINGS), help="some of them; default: %(default)s")
    parser.add_argument("--connections", default=",".join(map(str, CONNECTIONS)), help="default: %(default)s")
    parser.add_argument("--quick", action="store_true", help="one round of one short turn")
    a = parser.parse_args(arguments)
    servers, connections = a.servers.split(","), [int(count) for count in a.connections.split(",")]
    return Asked(servers, connections, 1, 1, 0.1) if a.quick else Asked(servers, connections, a.rounds, TURNS, 1.0)


def main(asked: Asked) -> None:
    rounds = []
    with running_server() as database, tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:  # /tmp may be memory
        for turn in range(asked.rounds):
            rounds.append(one_round(database, Path(folder), asked))
            print(f"round {turn + 1}/{asked.rounds}", file=sys.stderr, flush=True)
    report = report_of(rounds, asked)
    goals = [goal.line for goal in serve_goals(report)]
    print("", *serve_table(report), *goals, sep="\n", file=sys.stderr)
    print(json.dumps(report))


if __name__ == "__main__":
    main(read_arguments(sys.argv[1:]))
