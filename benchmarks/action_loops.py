"""What a decision among actions and its reward cost a loop, in memory, and how many bytes its rows have in a file.

    python benchmarks/action_loops.py 5    # rounds

CPU time of the process, in microseconds a call: contexts of 5 numbers, actions of 6, batches of 64 of which each is
rewarded before the next. "by name": of a table that was prepared; "a table each": of one that no other decision has,
and that is written with it. The kinds take turns; a figure is the median of the rounds, after a first batch.
"""

import argparse
import statistics
import time
from typing import Any

import numpy as np

from armlet import ActionTable
from armlet.stores import Loop, Memory, Store

X_DIM, Z_DIM, BATCH, BATCHES = 5, 6, 64, 8
KINDS = (("by name", 10), ("by name", 200), ("by name", 10_000), ("a table each", 10), ("a table each", 200))


def tables(kind: str, n: int, rng: np.random.Generator, loop: Loop) -> Any:
    """Return what a batch of decisions chooses from."""
    labels = [f"a{i}" for i in range(n)]
    if kind == "by name":
        if "all" not in loop.tables():
            loop.prepare("all", (labels, rng.normal(size=(n, Z_DIM))))
        return "all"
    return [ActionTable(labels, rng.normal(size=(n, Z_DIM))) for _ in range(BATCH)]


def measure(kind: str, n: int) -> tuple[float, float, float]:
    """Return what a decision and a reward take, in microseconds, and the bytes of the rows of both."""
    rng = np.random.default_rng(1)
    took = [0.0, 0.0]
    with Store(Memory()) as store:
        loop = store.loop("films", dim=X_DIM, action_dim=Z_DIM, seed=1)
        for batch in range(BATCHES + 1):
            X, names = rng.normal(size=(BATCH, X_DIM)), [f"{batch} {i}" for i in range(BATCH)]
            rewards = list(zip(names, rng.random(BATCH).tolist(), strict=True))
            actions = tables(kind, n, rng, loop)
            start = time.process_time()
            loop.decide_many(X, actions=actions, events=names)
            between = time.process_time()
            loop.reward_many(rewards)
            if batch:
                took[0] += between - start
                took[1] += time.process_time() - between
        with store._ledger.view() as view:
            size = view.usage(1).bytes
    decide, reward = (1e6 * each / (BATCH * BATCHES) for each in took)
    return decide, reward, size / (BATCH * (BATCHES + 1))


def main() -> None:
    """Print a line for each kind of tables."""
    parser = argparse.ArgumentParser(description="What a decision among actions and its reward cost a loop.")
    parser.add_argument("rounds", type=int, nargs="?", default=5)
    rounds = [{kind: measure(*kind) for kind in KINDS} for _ in range(parser.parse_args().rounds)]
    print(f"{'tables':16}{'actions':>10}{'decide':>10}{'reward':>10}   us, medians {'bytes of rows':>16}")
    for kind in KINDS:
        decide, reward, size = (statistics.median(one[kind][k] for one in rounds) for k in (0, 1, 2))
        print(f"{kind[0]:16}{kind[1]:10,}{decide:10.1f}{reward:10.1f}{size:29,.0f}")


if __name__ == "__main__":
    main()
