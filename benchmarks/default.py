"""What a step of the default policy costs, next to optimistic epsilon-greedy and LinUCB, and the memory that it takes.

    python benchmarks/default.py 5          # rounds; prints one line of JSON

All begin with so many rows of a log of random arms, and then go on by themselves; all are in free units. They take
turns, so that a busy machine hits all of them. A figure is CPU time a step of the compiled loop over a window, which
for a dear policy is a tenth as long.
"""

import json
import sys

from armlet.policies import LinUCB, OccasionalOptimism, OptimisticEpsilonGreedy
from report import DefaultStage
from timing import SIZES, Size
from units import Run, gaussian_rows

STAGES = ((3, 100_000, 20_000), (32, 100_000, 10_000), (128, 2_000, 1_000), (128, 20_000, 2_000), (128, 100_000, 5_000))
POLICIES = {"default": OccasionalOptimism(), "optimistic": OptimisticEpsilonGreedy(), "LinUCB": LinUCB()}
DEAR = 10  # times


def sums_bytes(values: int, n_arms: int) -> int:
    """Count the bytes of n, of two sums of rewards, of b and of the packed A of every arm."""
    return 8 * n_arms * (values * (values + 1) // 2 + values + 3)


def measured(size: Size, rows: int, window: int, rounds: int) -> DefaultStage:
    """Take all of them that far, then time them in turns."""
    X, R = gaussian_rows(size.dim, size.n_arms)
    runs = {name: Run(policy, X, R, None) for name, policy in POLICIES.items()}
    for run in runs.values():
        run.learn(rows)
        run.play(50)
    turns = [
        {name: run.step_us(window // DEAR if name == "LinUCB" else window) for name, run in runs.items()}
        for _ in range(rounds)
    ]
    memory = runs["default"].state.nbytes / sums_bytes(size.dim + 1, size.n_arms)
    us = {name: [turn[name] for turn in turns] for name in runs}
    return {"size": size.label, "rows": rows, "us": us, "memory": memory}


if __name__ == "__main__":
    asked = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    sizes = {size.dim: size for size in SIZES}
    print(json.dumps([measured(sizes[dim], rows, window, asked) for dim, rows, window in STAGES]))
