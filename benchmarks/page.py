"""What a refresh of a loop's page costs as the loop grows: CPU of reading details, of rendering, of asking for news.

    python benchmarks/page.py                       # up to 10^6 decisions, a minute or two
    python benchmarks/page.py --most 1e7            # a quarter of an hour, 4 GB of disk

One loop in a file, SQLite with synchronous=NORMAL, four arms, two features, a floor of 10 %, a control of 10 % and
rewards without a window; medians of nine rounds of ten refreshes each. A browser asks for news every two seconds, and
for the page only if there are some.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import armlet
from armlet.cli.command import count
from armlet.service.page import loop_page
from armlet.service.page.html import View, Viewer
from armlet.stores import Control, Loop, SQLite, Store

ARMS = ("sale", "new", "classics", "none")
RATES = {"sale": 0.2, "new": 0.25, "classics": 0.3, "none": 0.1}
BATCH, ROUNDS, EACH = 1000, 9, 10


def grow(loop: Loop, rng: np.random.Generator, first: int, last: int) -> None:
    """Decide and reward, from one number of decisions to another."""
    for at in range(first, last, BATCH):
        names = [f"e{at + i:09d}" for i in range(BATCH)]
        decisions = loop.decide_many(rng.normal(size=(BATCH, 2)), events=names)
        clicks = rng.random(BATCH)
        loop.reward_many(
            [(name, float(u < RATES[str(each.arm)])) for name, u, each in zip(names, clicks, decisions, strict=True)]
        )


def milliseconds(call: Callable[[], object]) -> float:
    def once() -> float:
        start = time.process_time()
        for _ in range(EACH):
            call()
        return (time.process_time() - start) / EACH * 1e3

    return statistics.median(once() for _ in range(ROUNDS))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=count, default=10**6, help="decisions")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng, done, size = np.random.default_rng(given.seed), 0, BATCH
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder, Store(_file(folder)) as store:
        loop = store.loop(
            "home",
            arms=ARMS,
            features=["age", "basket"],
            policy=armlet.OccasionalOptimism(floor=0.1),
            reward_range=(0.0, 1.0),
            control=Control(arm="sale", share=0.1),
            seed=given.seed,
        )
        print(f"{'decisions':>12}{'details, ms':>14}{'render, ms':>14}{'news, ms':>14}{'bytes':>10}")
        while size <= given.most:
            grow(loop, rng, done, size)
            done, viewer = size, Viewer(True, False)
            details = loop.details()
            page = loop_page(View(details, 1, viewer), "1")
            costs = [
                milliseconds(loop.details),
                milliseconds(lambda: loop_page(View(details, 1, viewer), "1")),  # noqa: B023 (called at once)
                milliseconds(loop.version),
            ]
            print(f"{size:12,}{costs[0]:14.2f}{costs[1]:14.2f}{costs[2]:14.2f}{len(page):10,}", flush=True)
            size *= 10


def _file(folder: str) -> SQLite:
    return SQLite(Path(folder) / "page.db", synchronous="NORMAL")


if __name__ == "__main__":
    main()
