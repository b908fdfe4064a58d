"""Durable decisions a second and what they cost: SQLite and PostgreSQL, one replica and two, by the number of callers.

    python benchmarks/store.py --rounds 3     # about ten minutes; a table on stderr, then one line of JSON
    python benchmarks/store.py --quick        # once, half a second each: does it run

A caller decides, then reports the reward, then does it again; both are durable when they are answered. Contexts are of
d = 32 for K = 8 arms, the policy is the default. Callers are threads, or tasks of one event loop ("async"). With two
replicas, each is a process with as many callers as the row says, and the figures are of both together. CPU time is that
of the processes that decide, and of all of PostgreSQL's own; its first and its last quarter show whether a pair gets
costlier as tables grow. Every cell has a fresh file or schema. A round measures all cells, those that are compared next
to each other; figures are medians over rounds, ratios those of ratios within a round.

PostgreSQL is a private cluster in the temporary folder (TMPDIR), or what the variable ARMLET_POSTGRESQL leads to, whose
CPU time is seen if it runs on this machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, NamedTuple

import psycopg
from psycopg.sql import SQL, Identifier

from startup import one_thread
from store_report import StoreReport, StoreRow, store_table
from store_worker import QUARTERS, VARIABLE, Door, Job, Mark

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))
from postgresql import private_cluster

CALLERS = (1, 16, 64)
DOORS: tuple[Door, ...] = ("threads", "async")
SECONDS, WARM = 4.0, 0.5  # a cell, and before it
QUICK_SECONDS, QUICK_WARM = 0.5, 0.1
TICK = 1.0 / os.sysconf("SC_CLK_TCK")  # seconds
WORKER = Path(__file__).with_name("store_worker.py")


@dataclass(frozen=True, slots=True)
class Setting:
    """Where loops are kept, and who serves them."""

    name: str
    ledger: str
    replicas: int = 1
    loops: int = 1
    callers: tuple[int, ...] = CALLERS


ONE = Setting("PostgreSQL, one replica", "PostgreSQL", callers=(*CALLERS, 2 * CALLERS[-1]))
ONE_LOOP = Setting("PostgreSQL, two replicas, one loop", "PostgreSQL", 2)
TWO_LOOPS = Setting("PostgreSQL, two replicas, two loops", "PostgreSQL", 2, 2)
SETTINGS = (Setting("SQLite FULL", "FULL"), Setting("SQLite NORMAL", "NORMAL"), ONE, ONE_LOOP, TWO_LOOPS)


class Cell(NamedTuple):
    """One row of the table."""

    setting: Setting
    door: Door
    callers: int


class Figures(NamedTuple):
    """What one round has measured of a cell; CPU time in microseconds a pair."""

    rate: float  # pairs a second
    pairs: int
    client_us: float
    server_us: float | None
    first_us: float  # of both, in the first quarter
    last_us: float
    batch: float  # calls a commit
    trips: float  # round trips a commit


# ---- the server


class Server:
    """A database, and the CPU time of its processes if they are of this machine."""

    def __init__(self, conninfo: str) -> None:
        self.conninfo = conninfo
        self._postmaster = find_postmaster(conninfo)

    def cpu(self) -> float | None:
        """Return the seconds that all its processes have taken, also those that have ended."""
        if self._postmaster is None:
            return None
        ticks = sum(_ticks(self._postmaster)) + sum(sum(_ticks(each)[:2]) for each in _children(self._postmaster))
        return TICK * ticks

    @contextmanager
    def schema(self) -> Iterator[str]:
        """Give the name of a schema that is not there, and drop it at the end."""
        name = f"bench_{uuid.uuid4().hex[:12]}"
        try:
            yield name
        finally:
            with psycopg.connect(self.conninfo, autocommit=True) as connection:
                connection.execute(SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(Identifier(name)))


def find_postmaster(conninfo: str) -> int | None:
    """Return the process that all others of the server come from; None if it is of another machine."""
    with psycopg.connect(conninfo) as connection:
        host, pid = connection.info.host, connection.info.backend_pid
        is_here = host.startswith("/") or host in ("localhost", "127.0.0.1", "::1")
        if not is_here or not _is_postgres(pid):
            return None
        parent = int(_stat(pid)[1])
        return parent if _is_postgres(parent) else None


def _is_postgres(pid: int) -> bool:
    name = Path(f"/proc/{pid}/comm")
    return name.exists() and name.read_text().strip() == "postgres"


def _stat(pid: int) -> list[str]:
    """Return what Linux says of a process, from its state on: the name before that may have spaces."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _ticks(pid: int) -> list[int]:
    """Return CPU time in ticks: of the user, of the system, and both of children that have ended; 0 if it has ended."""
    try:
        return [int(each) for each in _stat(pid)[11:15]]
    except (FileNotFoundError, ProcessLookupError):
        return [0, 0, 0, 0]


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@contextmanager
def running_server() -> Iterator[Server]:
    """Give the database that the environment names, or a private cluster."""
    if given := os.environ.get(VARIABLE):
        yield Server(given)
        return
    with private_cluster() as cluster:
        yield Server(cluster.conninfo)


# ---- one cell


class Replica:
    """A process that runs `store_worker.py`."""

    def __init__(self, job: Job, conninfo: str, errors: IO[str]) -> None:
        self._errors = errors
        self._process = subprocess.Popen(
            [sys.executable, str(WORKER), json.dumps(asdict(job))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**one_thread(), VARIABLE: conninfo},
        )

    def line(self) -> str:
        """Return the next line that it prints; raise what it said last if there is none."""
        said = self._process.stdout.readline() if self._process.stdout is not None else ""
        if not said:
            self._process.wait()
            self._errors.seek(0)
            raise SystemExit(f"a replica has ended: {self._errors.read()}")
        return said

    def tell(self, words: str) -> None:
        """Send it a line."""
        if self._process.stdin is not None:
            self._process.stdin.write(f"{words}\n")
            self._process.stdin.flush()

    def __enter__(self) -> Replica:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._process.kill()
        self._process.communicate()


def jobs_of(cell: Cell, place: str) -> list[Job]:
    """Return what each replica of a cell is asked for."""
    setting, door, callers = cell
    return [
        Job(
            ledger=setting.ledger,
            place=place,
            loop=f"loop-{replica % setting.loops}",
            replica=replica,
            door=door,
            callers=callers,
        )
        for replica in range(setting.replicas)
    ]


def run_cell(cell: Cell, server: Server, folder: Path, seconds: float, warm: float) -> Figures:
    """Measure a cell once, in a fresh file or schema."""
    with ExitStack() as stack:
        is_file = cell.setting.ledger != "PostgreSQL"
        path = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=folder))) / "bench.db"
        place = str(path) if is_file else stack.enter_context(server.schema())
        errors = stack.enter_context(tempfile.TemporaryFile("w+"))
        jobs = jobs_of(cell, place)
        replicas = [stack.enter_context(Replica(job, server.conninfo, errors)) for job in jobs]
        for replica in replicas:
            replica.line()
        start = time.monotonic() + warm
        for replica in replicas:
            replica.tell(f"{start} {seconds}")
        spent = [None] * (QUARTERS + 1) if is_file else server_marks(server, start, seconds)
        found = [[Mark(*mark) for mark in json.loads(replica.line())] for replica in replicas]
    return figures(found, spent)


def server_marks(server: Server, start: float, seconds: float) -> list[float | None]:
    """Return the server's CPU time at the start and after every quarter."""
    marks: list[float | None] = []
    for quarter in range(QUARTERS + 1):
        time.sleep(max(0.0, start + quarter * seconds / QUARTERS - time.monotonic()))
        marks.append(server.cpu())
    return marks


def figures(replicas: Sequence[Sequence[Mark]], server: Sequence[float | None]) -> Figures:
    """Return figures of all replicas together, by their marks and those of the server."""
    pairs = done(replicas, "pairs", 0, QUARTERS)
    commits = max(done(replicas, "commits", 0, QUARTERS), 1)
    last = QUARTERS - 1
    return Figures(
        rate=sum((marks[-1].pairs - marks[0].pairs) / (marks[-1].at - marks[0].at) for marks in replicas),
        pairs=int(pairs),
        client_us=1e6 * done(replicas, "cpu", 0, QUARTERS) / max(pairs, 1),
        server_us=None if server[0] is None else 1e6 * between(server, 0, QUARTERS) / max(pairs, 1),
        first_us=both_us(replicas, server, 0, 1),
        last_us=both_us(replicas, server, last, QUARTERS),
        batch=done(replicas, "calls", 0, QUARTERS) / commits,
        trips=done(replicas, "trips", 0, QUARTERS) / commits,
    )


def done(replicas: Sequence[Sequence[Mark]], what: str, begin: int, end: int) -> float:
    """Return what all replicas have done between two marks."""
    return float(sum(getattr(marks[end], what) - getattr(marks[begin], what) for marks in replicas))


def between(server: Sequence[float | None], begin: int, end: int) -> float:
    """Return the server's CPU time between two marks; 0 where it is not seen."""
    return (server[end] or 0.0) - (server[begin] or 0.0)


def both_us(replicas: Sequence[Sequence[Mark]], server: Sequence[float | None], begin: int, end: int) -> float:
    """Return the CPU time of a pair between two marks, of replicas and server."""
    spent = done(replicas, "cpu", begin, end) + between(server, begin, end)
    return 1e6 * spent / max(done(replicas, "pairs", begin, end), 1)


# ---- all cells


def cells() -> list[Cell]:
    """Return all cells, those that are compared next to each other."""
    most = sorted({callers for setting in SETTINGS for callers in setting.callers})
    return [
        Cell(setting, door, callers)
        for door in DOORS
        for callers in most
        for setting in SETTINGS
        if callers in setting.callers
    ]


def measure(rounds: int, server: Server, folder: Path, seconds: float, warm: float) -> dict[Cell, list[Figures]]:
    """Measure every cell once a round, backwards in every second one."""
    taken: dict[Cell, list[Figures]] = {cell: [] for cell in cells()}
    for turn in range(rounds):
        order = list(taken) if turn % 2 == 0 else list(reversed(taken))
        for i, cell in enumerate(order, 1):
            found = run_cell(cell, server, folder, seconds, warm)
            taken[cell].append(found)
            where = f"round {turn + 1}/{rounds} {i:2d}/{len(order)}"
            words = f"{cell.setting.name:36} {cell.callers:3d} {cell.door:8} {found.rate:8,.0f} pairs a second"
            print(f"{where}  {words}", file=sys.stderr, flush=True)
    return taken


def row_of(cell: Cell, taken: Sequence[Figures]) -> StoreRow:
    """Return the medians of a cell over the rounds."""
    servers = [each.server_us for each in taken if each.server_us is not None]
    return {
        "name": cell.setting.name,
        "door": cell.door,
        "callers": cell.callers,
        "rates": [each.rate for each in taken],
        "rate": statistics.median(each.rate for each in taken),
        "pairs": round(statistics.median(each.pairs for each in taken)),
        "client_us": statistics.median(each.client_us for each in taken),
        "server_us": statistics.median(servers) if servers else None,
        "first_us": statistics.median(each.first_us for each in taken),
        "last_us": statistics.median(each.last_us for each in taken),
        "batch": statistics.median(each.batch for each in taken),
        "trips": statistics.median(each.trips for each in taken) if cell.setting.ledger == "PostgreSQL" else None,
    }


def ratios(taken: dict[Cell, list[Figures]], setting: Setting, times: int = 1) -> dict[str, list[float]]:
    """Return the rates of two replicas by those of one with as many callers as each, or times as many, by round."""
    return {
        f"{cell.callers} {cell.door}": [
            two.rate / one.rate
            for two, one in zip(found, taken[cell._replace(setting=ONE, callers=callers)], strict=True)
        ]
        for cell, found in taken.items()
        if cell.setting is setting and (callers := times * cell.callers) in ONE.callers
    }


def report_of(taken: dict[Cell, list[Figures]], seconds: float) -> StoreReport:
    """Return what is printed."""
    ordered = sorted(taken, key=lambda cell: (SETTINGS.index(cell.setting), cell.callers, DOORS.index(cell.door)))
    return {
        "seconds": seconds,
        "rows": [row_of(cell, taken[cell]) for cell in ordered],
        "one_loop": ratios(taken, ONE_LOOP),
        "one_loop_equal_load": ratios(taken, ONE_LOOP, 2),
        "two_loops": ratios(taken, TWO_LOOPS),
    }


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one round, half a second a cell")
    asked = parser.parse_args(arguments)
    rounds, seconds, warm = (1, QUICK_SECONDS, QUICK_WARM) if asked.quick else (asked.rounds, SECONDS, WARM)
    with running_server() as server, tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:  # /tmp may be memory
        report = report_of(measure(rounds, server, Path(folder), seconds, warm), seconds)
    print("", *store_table(report), sep="\n", file=sys.stderr)
    print(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1:])
