"""What a step costs in two trees, each with an environment of its own, and what outcomes and a dial add to it.

    python benchmarks/before.py OLD/.venv/bin/python NEW/.venv/bin/python 5          # rounds

All play the same contexts from Python: Algorithm 1 and the default with one reward in both trees, without a log and
with one that is flushed in blocks, and in the new one the default with three outcomes, whose weights may be others at
every decision. They take turns, in another order each round, so that a busy machine hits all. A figure is CPU time for
a decide and learn, in the first 1,000 steps or late; a ratio is the median over rounds of that within a round.
"""

import argparse
import json
import random
import subprocess
import sys
from dataclasses import dataclass, field
from statistics import median

from timing import SIZES, Size

WORKER = """
import json, sys, tempfile, time
from pathlib import Path

import numpy as np
import armlet

kind, dim, n_arms, warm, steps, fresh = sys.argv[1], *map(int, sys.argv[2:])
kind, _, logged = kind.partition(", ")
outcomes = {"quality": 1.0, "cost": -2.0, "delay": -0.5}
policy = armlet.Algorithm1(p=4 * n_arms) if kind == "Algorithm 1" else None
more = {"outcomes": outcomes} if kind in ("outcomes", "dial") else {}
rng = np.random.default_rng(1)
contexts, values = list(rng.standard_normal((2000, dim))), rng.standard_normal((2000, 3))
dials = [{"cost": -float(w)} for w in rng.uniform(1.0, 4.0, 2000)]
rewards = [dict(zip(outcomes, row, strict=True)) for row in values.tolist()] if more else values[:, 0].tolist()

def made(number):
    log = armlet.Log(Path(folder.name) / f"{number}.jsonl", flush="block") if logged else None
    return armlet.Bandit(list(range(n_arms)), dim, policy=policy, seed=1, log=log, **more)

def play(bandit, n):
    decide, learn = bandit.decide, bandit.learn
    if kind == "dial":
        for i in range(n):
            learn(decide(contexts[i % 2000], weights=dials[i % 2000]), rewards[i % 2000])
    else:
        for i in range(n):
            learn(decide(contexts[i % 2000]), rewards[i % 2000])

folder = tempfile.TemporaryDirectory()
bandit, times = made("warm"), []
play(bandit, warm)
for number in range(fresh):
    if not warm:
        bandit = made(number)
    started = time.process_time()
    play(bandit, steps)
    times.append(1e6 * (time.process_time() - started) / steps)
print(json.dumps(sorted(times)[len(times) // 2]))
"""
FIRST = (0, 1_000, 9)  # steps before, in a window, and windows
LATE = {3: (100_000, 20_000, 9), 32: (100_000, 10_000, 9), 128: (20_000, 4_000, 5)}


@dataclass(slots=True)
class Cell:
    """A kind of bandit of one tree, at one size and time, with the microseconds of each round."""

    tree: str
    kind: str
    size: Size
    window: str
    us: list[float] = field(default_factory=list)

    def measure(self, python: str) -> None:
        """Add a round."""
        asked = (self.size.dim, self.size.n_arms, *(FIRST if self.window == "first" else LATE[self.size.dim]))
        run = subprocess.run(
            [python, "-c", WORKER, self.kind, *map(str, asked)], check=True, capture_output=True, text=True, timeout=900
        )
        self.us.append(float(json.loads(run.stdout)))


KINDS = (
    ("old", "Algorithm 1"),
    ("new", "Algorithm 1"),
    ("old", "default"),
    ("new", "default"),
    ("old", "Algorithm 1, logged"),
    ("new", "Algorithm 1, logged"),
    ("old", "default, logged"),
    ("new", "default, logged"),
    ("new", "outcomes"),
    ("new", "dial"),
)
RATIOS = (
    ("Algorithm 1, new to old", ("new", "Algorithm 1"), ("old", "Algorithm 1")),
    ("the default, new to old", ("new", "default"), ("old", "default")),
    ("Algorithm 1, logged, new to old", ("new", "Algorithm 1, logged"), ("old", "Algorithm 1, logged")),
    ("the default, logged, new to old", ("new", "default, logged"), ("old", "default, logged")),
    ("three outcomes to one reward", ("new", "outcomes"), ("new", "default")),
    ("a dial at every decision to one reward", ("new", "dial"), ("new", "default")),
)


def table(cells: list[Cell]) -> str:
    """Lay out microseconds and ratios, a column for every size and window."""
    by = {(cell.tree, cell.kind, cell.size, cell.window): cell.us for cell in cells}
    places = list(dict.fromkeys((cell.size, cell.window) for cell in cells))
    lines = [["", *(f"{size.label} {window}" for size, window in places)]]
    for tree, kind in KINDS:
        lines.append([f"{kind}, {tree}, µs", *(f"{median(by[tree, kind, *place]):.3g}" for place in places)])
    for name, above, below in RATIOS:
        ratios = [
            median(a / b for a, b in zip(by[*above, *place], by[*below, *place], strict=True)) for place in places
        ]
        lines.append([name, *(f"{ratio:.2f}" for ratio in ratios)])
    lines.insert(1, ["---", *("--:" for _ in places)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure a step in two trees, and what outcomes add to it.")
    parser.add_argument("old", help="the Python of the environment of the old tree")
    parser.add_argument("new", nargs="?", default=sys.executable, help="that of the new one (default: this one)")
    parser.add_argument("rounds", nargs="?", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    given = parse()
    pythons = {"old": given.old, "new": given.new}
    cells = [Cell(tree, kind, size, window) for size in SIZES for window in ("first", "late") for tree, kind in KINDS]
    for turn in range(given.rounds):
        for cell in random.Random(turn).sample(cells, len(cells)):
            cell.measure(pythons[cell.tree])
        print(f"round {turn + 1} of {given.rounds}", file=sys.stderr, flush=True)
    print(table(cells))
