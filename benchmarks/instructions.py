"""How many instructions a step takes in two trees, each with an environment of its own.

    python benchmarks/instructions.py OLD/.venv/bin/python NEW/.venv/bin/python

Valgrind counts them, so that a busy machine changes nothing. A step is a decide and a learn of a bandit, without a log
and with one that is flushed in blocks, or a decide and a reward of a loop in memory or in SQLite. A figure is the
difference of a long and a short run, divided by the steps between them; threads of the store are counted too.
"""

import argparse
import os
import re
import subprocess
import sys
from itertools import product

WORKER = """
import sys, tempfile
from pathlib import Path

import numpy as np
import armlet
import armlet.stores

kind, steps, dim, n_arms = sys.argv[1], *map(int, sys.argv[2:])
rng = np.random.default_rng(1)
contexts, rewards = list(rng.standard_normal((2000, dim))), rng.uniform(-1.0, 1.0, 2000).tolist()
arms = list(range(n_arms))
with tempfile.TemporaryDirectory() as folder:
    if kind.startswith("loop"):
        in_memory = kind == "loop in memory"
        ledger = armlet.stores.Store(armlet.stores.Memory()) if in_memory else armlet.open_store(f"{folder}/loops.db")
        with ledger as store:
            loop = store.loop("a", arms=arms, dim=dim, seed=1)
            for i in range(steps):
                loop.reward(loop.decide(contexts[i % 2000]).id, rewards[i % 2000])
    else:
        log = armlet.Log(Path(folder) / "a.jsonl", flush="block") if kind.endswith("logged") else None
        policy = armlet.Algorithm1(p=4 * n_arms) if kind.startswith("Algorithm 1") else None
        bandit = armlet.Bandit(arms, dim, policy=policy, seed=1, log=log)
        decide, learn = bandit.decide, bandit.learn
        for i in range(steps):
            learn(decide(contexts[i % 2000]), rewards[i % 2000])
        if log is not None:
            log.close()
"""
KINDS = ("Algorithm 1", "default", "Algorithm 1, logged", "default, logged", "loop in memory", "loop in SQLite")
SIZES = ((3, 6), (32, 32))
SHORT, LONG = 1000, 3000  # steps
COLLECTED = re.compile(r"Collected : (\d+)")


def instructions(python: str, kind: str, steps: int, size: tuple[int, int]) -> int:
    """Count the instructions of a run."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", python, "-c", WORKER, kind, str(steps)]
    environment = {**os.environ, "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
    run = subprocess.run([*command, *map(str, size)], check=True, capture_output=True, text=True, env=environment)
    found = COLLECTED.search(run.stderr)
    if found is None:
        raise SystemExit(f"valgrind counted nothing: {run.stderr[-2000:]}")
    return int(found[1])


def main() -> None:
    """Print a row for each kind of step and size."""
    parser = argparse.ArgumentParser(description="Count the instructions of a step in two trees.")
    parser.add_argument("old", help="the Python of the environment of the old tree")
    parser.add_argument("new", nargs="?", default=sys.executable, help="that of the new one (default: this one)")
    parser.add_argument("--only", choices=KINDS, action="append", help="a kind of step; several are possible")
    options = parser.parse_args()
    print("| step | features, arms | old | new | new to old |\n|---|---|--:|--:|--:|")
    for kind, size in product(options.only or KINDS, SIZES):
        old, new = (
            (instructions(python, kind, LONG, size) - instructions(python, kind, SHORT, size)) / (LONG - SHORT)
            for python in (options.old, options.new)
        )
        print(f"| {kind} | {size[0]}, {size[1]} | {old:,.0f} | {new:,.0f} | {new / old:.3f} |", flush=True)


if __name__ == "__main__":
    main()
