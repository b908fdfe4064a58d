"""What a store takes as it grows: a loop of 10^6 rows, its restart and its full replay, and 10^4 loops in one store.

    python benchmarks/growth.py                    # some minutes, 0.6 GB of disk; a table on stderr, then JSON
    python benchmarks/growth.py --pairs 5000 --loops 200      # does it run

500,000 decisions and as many rewards by 64 callers of one event loop, SQLite with synchronous=NORMAL, d = 8, K = 5, the
default policy and memory. Memory is what the process has in RAM. Each part runs in a process of its own: all rows; a
start from the snapshot, after which the digest is the same; a replay of all rows without it, too. Then many loops, in
each of which a few decisions are made and rewarded, one loop after the other, twice: the second time wakes those that
were let go.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import ParamSpec, TypeVar

import numpy as np

from armlet.stores import Loop, SQLite, Store
from armlet.stores.rows.replay import rebuild
from armlet.stores.sqlite.ledger import SQLiteReader
from armlet.stores.terms import Terms
from store_report import Grown, GrowthReport, ManyLoops, Started, growth_table

DIM, N_ARMS = 8, 5
PAIRS, LOOPS = 500_000, 10_000
CALLERS = 64
SAMPLES = 10
EACH = 4  # decisions of each of many loops, each time
NAME = "bench"

P = ParamSpec("P")
T = TypeVar("T")


def status(name: str) -> float:
    """Return a figure of this process in megabytes: VmRSS is its memory now, VmHWM the most there was."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) / 1e3


def megabytes(path: Path) -> float:
    return path.stat().st_size / 1e6 if path.exists() else 0.0


def opened(path: Path) -> Store:
    return Store(SQLite(path, synchronous="NORMAL"))


def made(store: Store, name: str) -> Loop:
    return store.loop(name, arms=list(range(N_ARMS)), dim=DIM, seed=1)


# ---- one loop


async def serve(loop: Loop, contexts: Sequence[np.ndarray], first: int, last: int) -> None:
    """Decide and reward events of these numbers, by several callers."""
    numbers = iter(range(first, last))

    async def caller() -> None:
        for n in numbers:
            event = f"order-{n:09d}"
            await loop.adecide(contexts[n % len(contexts)], event=event)
            if await loop.areward(event, 0.25 * (n % 4)) != "accepted":
                raise RuntimeError(f"the reward of {event} was not accepted")

    await asyncio.gather(*(caller() for _ in range(CALLERS)))


def fill(path: Path, pairs: int) -> tuple[list[Grown], str]:
    """Decide and reward so many times; return what it took on the way, and the digest of the model."""
    contexts = list(np.random.default_rng(1).normal(size=(512, DIM)))
    samples: list[Grown] = []
    with opened(path) as store:
        loop = made(store, NAME)
        for k in range(SAMPLES):
            first, last = k * pairs // SAMPLES, (k + 1) * pairs // SAMPLES
            started, cpu = time.perf_counter(), time.process_time()
            asyncio.run(serve(loop, contexts, first, last))
            seconds, spent = time.perf_counter() - started, time.process_time() - cpu
            samples.append(sample(path, last, (last - first) / seconds, 1e6 * spent / (last - first)))
        return samples, loop.model().digest()


def sample(path: Path, pairs: int, rate: float, cpu_us: float) -> Grown:
    """Return what a store takes now, and print it."""
    found: Grown = {
        "rows": 2 * pairs,
        "rss_mb": status("VmRSS"),
        "file_mb": megabytes(path),
        "wal_mb": megabytes(Path(f"{path}-wal")),
        "rate": rate,
        "cpu_us": cpu_us,
    }
    words = f"{2 * pairs:9,} rows  {found['rss_mb']:6.0f} MB  {cpu_us:5.1f} us a pair  {rate:7,.0f} pairs a second"
    print(f"{words}  file {found['file_mb']:.0f} MB, WAL {found['wal_mb']:.1f}", file=sys.stderr, flush=True)
    return found


def start(path: Path) -> tuple[Started, str]:
    """Open the store and its loop, which goes on from its snapshot; return what that takes, and the digest."""
    watch = Watch()
    with opened(path) as store:
        watch.ready()
        loop = store.loop(NAME)
        return watch.done(), loop.model().digest()


def replay(path: Path) -> tuple[Started, str]:
    """Play all rows again, from the first one on; return what that takes, and the digest."""
    watch = Watch()
    with SQLiteReader(path).view() as view:
        record = next(each for each in view.loops() if each.name == NAME)
        head = view.head(record.id)
        if head is None:
            raise RuntimeError("the loop has no head")
        watch.ready()
        cast = rebuild(view, record, head.seq, None, Terms.read(record).carry)
        return watch.done(), cast.digest()


class Watch:
    """Measures what it takes to have a model again: first until the file is open, then the rest."""

    def __init__(self) -> None:
        self._before = status("VmRSS")
        self._began = self._ready = time.perf_counter()
        self._cpu = 0.0

    def ready(self) -> None:
        """Begin with the rest."""
        self._ready, self._cpu = time.perf_counter(), time.process_time()

    def done(self) -> Started:
        """Return what it took."""
        return {
            "check_seconds": self._ready - self._began,
            "seconds": time.perf_counter() - self._ready,
            "cpu_seconds": time.process_time() - self._cpu,
            "rss_mb": status("VmRSS"),
            "most_mb": status("VmHWM"),
            "before_mb": self._before,
        }


# ---- many loops


def many(path: Path, loops: int) -> ManyLoops:
    """Use many loops, one after the other, twice; return memory on the way, and CPU time of a pair."""
    memory: list[float] = []
    costs: list[float] = []
    with opened(path) as store:
        handles = [made(store, f"loop-{n:05d}") for n in range(loops)]
        made_mb = status("VmRSS")
        for turn in range(2):
            cpu = time.process_time()
            for n, loop in enumerate(handles):
                use(loop, turn)
                if (n + 1) % max(loops // 5, 1) == 0:
                    memory.append(status("VmRSS"))
            costs.append(1e6 * (time.process_time() - cpu) / (EACH * loops))
    closed = time.perf_counter()
    with opened(path) as store:
        names = len(store.loops)
    if names != loops:
        raise RuntimeError(f"there are {names} loops, not {loops}")
    return {
        "loops": loops,
        "made_mb": made_mb,
        "rss_mb": memory,
        "most_mb": status("VmHWM"),
        "cpu_us": costs,
        "open_seconds": time.perf_counter() - closed,
        "file_mb": megabytes(path),
    }


def use(loop: Loop, turn: int) -> None:
    contexts = np.random.default_rng(turn).normal(size=(EACH, DIM))
    events = [f"{turn}-{i}" for i in range(EACH)]
    loop.decide_many(contexts, events=events)
    if set(loop.reward_many([(event, 0.5) for event in events])) != {"accepted"}:
        raise RuntimeError(f"a reward of {loop!r} was not accepted")


# ---- all of it


def alone(work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Call a function in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *args, **options).result()


def measure(folder: Path, pairs: int, loops: int) -> GrowthReport:
    """Run all parts; refuse if they do not come to the same model."""
    grown, digest = alone(fill, folder / "grown.db", pairs)
    started, first = alone(start, folder / "grown.db")
    replayed, second = alone(replay, folder / "grown.db")
    if not digest == first == second:
        raise SystemExit(f"digests differ: {digest}, {first} after a start, {second} after a replay")
    found = alone(many, folder / "many.db", loops) if loops else None
    return {"grown": grown, "started": started, "replayed": replayed, "many": found}


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--loops", type=int, default=None, help="as many as pairs / 50, unless told; 0 for none")
    asked = parser.parse_args(arguments)
    loops = asked.pairs * LOOPS // PAIRS if asked.loops is None else asked.loops
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:  # on a disk: /tmp may be memory
        report = measure(Path(folder), asked.pairs, loops)
    print("", *growth_table(report), sep="\n", file=sys.stderr)
    print(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1:])
