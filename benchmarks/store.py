"""Durable decisions a second: one file, a commit on disk before every answer, against commits that the system may lose.

    python benchmarks/store.py 3          # rounds; prints one line of JSON

A round measures every number of threads with synchronous=FULL and NORMAL in turn, each for a second, in a fresh file
where the others are; contexts are of d = 32 for K = 8 arms. The rate is the median over rounds.
"""

import json
import statistics
import sys
import tempfile
import threading
from pathlib import Path
from time import perf_counter

import numpy as np

import armlet
from armlet.stores import SQLite, Store
from armlet.stores.sqlite import Synchronous

DIM, N_ARMS = 32, 8
THREADS = (1, 16)
SECONDS = 1.0
MODES: tuple[Synchronous, ...] = ("FULL", "NORMAL")


def decisions_a_second(path: Path, threads: int, synchronous: Synchronous) -> float:
    """Let threads decide for a while, each as soon as it has its answer."""
    contexts = np.random.default_rng(1).normal(size=(256, DIM))
    counts = [0] * threads
    with Store(SQLite(path, synchronous=synchronous)) as store:
        policy = armlet.ContextualEpsilonGreedy(p=1000)
        loop = store.loop("bench", arms=list(range(N_ARMS)), dim=DIM, policy=policy, seed=1)
        end = perf_counter() + SECONDS

        def run(thread: int) -> None:
            while perf_counter() < end:
                loop.decide(contexts[counts[thread] % 256], event=f"{thread}-{counts[thread]}")
                counts[thread] += 1

        started = perf_counter()
        runners = [threading.Thread(target=run, args=(thread,)) for thread in range(threads)]
        for runner in runners:
            runner.start()
        for runner in runners:
            runner.join()
        return sum(counts) / (perf_counter() - started)


def measure(rounds: int, folder: Path) -> dict[str, dict[str, list[float]]]:
    """Measure everything once a round, in another order each time."""
    rates: dict[str, dict[str, list[float]]] = {str(n): {mode: [] for mode in MODES} for n in THREADS}
    for turn in range(rounds):
        for threads in THREADS:
            for mode in MODES if turn % 2 else reversed(MODES):
                path = folder / f"{turn}-{threads}-{mode}.db"
                rates[str(threads)][mode].append(decisions_a_second(path, threads, mode))
    return rates


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:  # on a disk: /tmp may be memory
        taken = measure(int(sys.argv[1]) if len(sys.argv) > 1 else 3, Path(name))
    print(json.dumps({n: {mode: statistics.median(r) for mode, r in by.items()} for n, by in taken.items()}))
