"""What a step of Algorithm 1 costs in two trees, each with an environment of its own.

    python benchmarks/before.py OLD/.venv/bin/python NEW/.venv/bin/python 5          # rounds

Both play the same contexts from Python; where `armlet.Algorithm1` is not there yet, `ContextualEpsilonGreedy` is it.
They take turns, so that a busy machine hits both. A figure is CPU time for a decide and learn, late in the run, the
least of the rounds.
"""

import json
import subprocess
import sys

from timing import SIZES, Size

WORKER = """
import json, sys, time
import numpy as np
import armlet

dim, n_arms, warm, steps = map(int, sys.argv[1:])
policy = getattr(armlet, "Algorithm1", armlet.ContextualEpsilonGreedy)(p=4 * n_arms)
bandit = armlet.Bandit(list(range(n_arms)), dim, policy=policy, seed=1)
rng = np.random.default_rng(1)
contexts, rewards = list(rng.standard_normal((2000, dim))), rng.standard_normal(2000).tolist()

def play(n):
    decide, learn = bandit.decide, bandit.learn
    for i in range(n):
        learn(decide(contexts[i % 2000]), rewards[i % 2000])

play(warm)
times = []
for _ in range(5):
    started = time.process_time()
    play(steps)
    times.append(1e9 * (time.process_time() - started) / steps)
print(json.dumps(min(times)))
"""
STEPS = {3: (100_000, 50_000), 32: (100_000, 50_000), 128: (20_000, 10_000)}  # before the window and in it


def step_ns(python: str, size: Size) -> float:
    """Measure one tree once."""
    asked = (size.dim, size.n_arms, *STEPS[size.dim])
    run = subprocess.run(
        [python, "-c", WORKER, *map(str, asked)], check=True, capture_output=True, text=True, timeout=900
    )
    return float(json.loads(run.stdout))


def compared(pythons: tuple[str, str], rounds: int) -> dict[str, dict[str, float]]:
    report: dict[str, dict[str, float]] = {}
    for size in SIZES:
        turns = [[step_ns(python, size) for python in pythons] for _ in range(rounds)]
        old, new = (min(turn[i] for turn in turns) for i in (0, 1))
        report[size.label] = {"old ns": old, "new ns": new, "new / old": new / old}
    return report


if __name__ == "__main__":
    before, after, *more = sys.argv[1:]
    print(json.dumps(compared((before, after), int(more[0]) if more else 5)))
