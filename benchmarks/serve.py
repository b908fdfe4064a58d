"""What a request costs: `armlet serve` on SQLite and on PostgreSQL, next to bare uvicorn, FastAPI, and MABWiser in it.

    python benchmarks/serve.py                # five rounds, about ten minutes; a table on stderr, then a line of JSON
    python benchmarks/serve.py --rounds 1     # one of them
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
import statistics
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

from report import aligned
from serve_client import batches, connect, decisions, rewards, run
from startup import one_thread
from store import Server as Database
from store import running_server
from store_worker import VARIABLE

TURNS = 4  # a round, of every server
REQUESTS = {1: 400, 16: 1500, 64: 3000}  # of a kind in a turn, at most
SECONDS = 1.5  # of them, at most
WARM = 300  # requests of a kind, before
BATCH = 64
WORKER = Path(__file__).with_name("serve_worker.py")


@dataclass(frozen=True, slots=True)
class Setting:
    """A server that is measured."""

    name: str
    worker: str
    is_store: bool = False
    is_database: bool = False


BARE = Setting("bare uvicorn", "bare")
RAW = Setting("raw ASGI, json.loads", "raw")
ECHO = Setting("FastAPI echo", "echo")
PEER = Setting("FastAPI + MABWiser in memory", "mabwiser")
SQLITE = Setting("armlet serve, SQLite FULL", "ours", is_store=True)
POSTGRESQL = Setting("armlet serve, PostgreSQL", "ours", is_store=True, is_database=True)
SETTINGS = {"bare": BARE, "raw": RAW, "echo": ECHO, "mabwiser": PEER, "sqlite": SQLITE, "postgresql": POSTGRESQL}
KINDS = ("decide", "reward", "batch", "rewards")
WORDS = dict(zip(KINDS, ("decide", "reward", f"decide, {BATCH} at once", f"reward, {BATCH} at once"), strict=True))


class Asked(NamedTuple):
    """What to measure, and how much of it."""

    settings: Sequence[Setting]
    counts: Sequence[int]  # of connections
    rounds: int
    turns: int
    share: float  # of the requests of a turn


class Cell(NamedTuple):
    """A figure of the table: of a server, at so many connections, of a kind of request."""

    setting: Setting
    connections: int
    kind: str


class Spent(NamedTuple):
    """CPU seconds of a server and of its database, and for how many decisions or rewards."""

    cpu: float
    database: float
    items: int


class Bar(NamedTuple):
    """What is to be shown: a figure of ours by another one."""

    text: str
    most: float
    of: Cell
    by: Cell


BARS = (
    Bar("a decision, by a raw request", 2.75, Cell(SQLITE, 64, "decide"), Cell(RAW, 64, "decide")),
    Bar("a reward, by a raw request", 3.0, Cell(SQLITE, 64, "reward"), Cell(RAW, 64, "reward")),
    Bar("a decision, by one of FastAPI + MABWiser", 0.25, Cell(SQLITE, 64, "decide"), Cell(PEER, 64, "decide")),
    Bar("a reward, by one of FastAPI + MABWiser", 0.25, Cell(SQLITE, 64, "reward"), Cell(PEER, 64, "reward")),
    Bar(f"a decision in a batch of {BATCH}, by a raw request", 1.0, Cell(SQLITE, 64, "batch"), Cell(RAW, 64, "decide")),
)


# ---- one server


class Served:
    """A server process and the events that were sent to it."""

    def __init__(self, setting: Setting, place: str, database: Database) -> None:
        variables = {VARIABLE: database.conninfo} if setting.is_database else {}
        self.setting, self._database = setting, database
        self._process = subprocess.Popen(
            [sys.executable, str(WORKER), setting.worker, place],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**{name: value for name, value in one_thread().items() if name != VARIABLE}, **variables},
        )
        said = b"" if self._process.stdout is None else self._process.stdout.readline()
        if not said:
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
        """Send requests of every kind that it takes."""
        opened = await connect(self.port, connections)
        accepted = b"accepted" if self.setting.is_store else b""

        async def take(sent: Sequence[bytes], items: int, expected: bytes) -> Spent:
            before, of_database = self.cpu(), self._database.cpu() or 0.0
            answered = await run(opened, sent, expected, SECONDS)
            cpu, spent = self.cpu() - before, (self._database.cpu() or 0.0) - of_database
            return Spent(cpu, spent if self.setting.is_database else 0.0, answered * items)

        found = {}
        events = self._events(requests)
        found["decide"] = await take(decisions(events), 1, b"arm-")
        found["reward"] = await take(rewards(events[: found["decide"].items]), 1, accepted)
        if self.setting.is_store:
            events = self._events(max(requests // BATCH, connections) * BATCH)
            found["batch"] = await take(batches(events, BATCH), BATCH, b"arm-")
            found["rewards"] = await take(rewards(events[: found["batch"].items], BATCH), BATCH, accepted)
        for connection in opened:
            connection.close()
        return found

    def __enter__(self) -> Served:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._process.kill()
        self._process.communicate()


# ---- rounds


async def take_turns(servers: Sequence[Served], counts: Sequence[int], turns: int, share: float) -> dict[Cell, Spent]:
    """Return what all servers spend in one round."""
    spent: dict[Cell, list[Spent]] = defaultdict(list)
    for connections in counts:
        for server in servers:
            await server.measure(connections, WARM)
        for turn in range(turns):
            for server in servers if turn % 2 == 0 else reversed(servers):
                found = await server.measure(connections, max(int(share * REQUESTS[connections]), 64))
                for kind, each in found.items():
                    spent[Cell(server.setting, connections, kind)].append(each)
    return {cell: total(each) for cell, each in spent.items()}


def total(spent: Sequence[Spent]) -> Spent:
    cpu, database = sum(each.cpu for each in spent), sum(each.database for each in spent)
    return Spent(cpu, database, sum(each.items for each in spent))


def one_round(database: Database, folder: Path, asked: Asked) -> dict[Cell, Spent]:
    """Start all servers, measure them, and end them."""
    with ExitStack() as stack:
        files = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=folder)))
        schema = stack.enter_context(database.schema())
        places = [schema if setting.is_database else str(files / "bench.db") for setting in asked.settings]
        servers = [
            stack.enter_context(Served(setting, place, database))
            for setting, place in zip(asked.settings, places, strict=True)
        ]
        return uvloop.run(take_turns(servers, asked.counts, asked.turns, asked.share))


# ---- what is printed


def figure(rounds: Sequence[dict[Cell, Spent]], cell: Cell, by: Cell | None = None) -> list[float]:
    """Return the CPU microseconds of an item in all rounds, or their ratio to another one's within each."""
    return [us(each[cell]) / (1.0 if by is None else us(each[by])) for each in rounds]


def us(spent: Spent) -> float:
    return 1e6 * spent.cpu / max(spent.items, 1)


def table(rounds: Sequence[dict[Cell, Spent]], asked: Asked) -> list[str]:
    """Lay out CPU time of every server by connections, with its ratio to a raw request of the same kind."""
    counts = asked.counts
    rows = [["server", "request", *(f"at {count}" for count in counts), *(f"by raw, {count}" for count in counts)]]
    for setting in asked.settings:
        for kind in KINDS:
            cells = [Cell(setting, count, kind) for count in counts]
            if cells[0] in rounds[0]:
                figures = [f"{statistics.median(figure(rounds, cell)):.0f}{beside(rounds, cell)}" for cell in cells]
                rows.append([setting.name, WORDS[kind], *figures, *(by_raw(rounds, cell) for cell in cells)])
    return aligned(rows)


def by_raw(rounds: Sequence[dict[Cell, Spent]], cell: Cell) -> str:
    """Return a figure by that of a raw request."""
    raw = Cell(RAW, cell.connections, "decide" if cell.kind in ("decide", "batch") else "reward")
    return f"{statistics.median(figure(rounds, cell, raw)):.2f}" if raw in rounds[0] else "-"


def beside(rounds: Sequence[dict[Cell, Spent]], cell: Cell) -> str:
    """Return what the database spends."""
    if not cell.setting.is_database:
        return ""
    return f" + {statistics.median(1e6 * each[cell].database / max(each[cell].items, 1) for each in rounds):.0f}"


def judged(rounds: Sequence[dict[Cell, Spent]]) -> list[str]:
    """Return whether the bars are met."""
    lines = []
    for text, most, of, by in BARS:
        if of in rounds[0] and by in rounds[0]:
            found = figure(rounds, of, by)
            median = statistics.median(found)
            verdict = "met" if median <= most else "MISSED"
            lines.append(f"- {verdict}: {text}: {median:.2f} ({min(found):.2f} to {max(found):.2f}), at most {most:g}")
    return lines


def read_arguments(arguments: Sequence[str]) -> Asked:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--servers", default=",".join(SETTINGS), help="some of them; default: %(default)s")
    parser.add_argument("--connections", default="1,16,64", help="default: %(default)s")
    parser.add_argument("--quick", action="store_true", help="one round of one short turn")
    a = parser.parse_args(arguments)
    settings, counts = [SETTINGS[name] for name in a.servers.split(",")], [int(n) for n in a.connections.split(",")]
    return Asked(settings, counts, 1, 1, 0.1) if a.quick else Asked(settings, counts, a.rounds, TURNS, 1.0)


def main(asked: Asked) -> None:
    rounds = []
    with running_server() as database, tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:  # /tmp may be memory
        for turn in range(asked.rounds):
            rounds.append(one_round(database, Path(folder), asked))
            print(f"round {turn + 1}/{asked.rounds}", file=sys.stderr, flush=True)
    title = "## A request over HTTP, d = 16, K = 10: CPU microseconds of the server, by connections"
    print("", title, "", *table(rounds, asked), "", *judged(rounds), sep="\n", file=sys.stderr)
    print(
        json.dumps(
            {f"{cell.setting.name}, {cell.kind}, {cell.connections}": figure(rounds, cell) for cell in rounds[0]}
        )
    )


if __name__ == "__main__":
    main(read_arguments(sys.argv[1:]))
