"""What a step costs by the kind of its reward and of its context, next to a float and a float64 row.

    python benchmarks/inputs.py 15          # rounds; prints one line of JSON

A step is one `decide` and one `learn` on a bandit of 6 arms and 3 features. All kinds play the same contexts and
rewards, so they take the same steps; they take turns, so that a busy machine hits all of them. A figure is CPU time a
step over a window, the median over the rounds.
"""

import json
import sys
from collections.abc import Callable
from itertools import cycle, islice
from statistics import median
from time import process_time
from typing import Any

import numpy as np

import armlet

N_ARMS, DIM, WARM, WINDOW = 6, 3, 20_000, 20_000
FEATURES = [f"feature {j}" for j in range(DIM)]

REWARDS: dict[str, Callable[[int], Any]] = {
    "float": float,
    "bool": bool,
    "int": int,
    "np.float64": np.float64,
    "np.float32": np.float32,
    "np.int64": np.int64,
    "np.bool": np.bool_,
}
CONTEXTS: dict[str, Callable[[Any], Any]] = {
    "float64": lambda row: row,
    "list": lambda row: row.tolist(),
    "float32": lambda row: row.astype(np.float32),
    "int64": lambda row: (1000 * row).astype(np.int64),
    "dict": lambda row: dict(zip(FEATURES, row.tolist(), strict=True)),
}


class Run:
    """A bandit on its way through contexts and rewards of one kind."""

    def __init__(self, contexts: list[Any], rewards: list[Any]) -> None:
        policy = armlet.ContextualEpsilonGreedy(p=4 * N_ARMS, units="as given")
        self.bandit = armlet.Bandit(range(N_ARMS), policy=policy, features=FEATURES, seed=1)
        self.rows = cycle(zip(contexts, rewards, strict=True))
        self.play(WARM)

    def play(self, steps: int) -> None:
        """Decide and learn."""
        decide, learn = self.bandit.decide, self.bandit.learn
        for x, reward in islice(self.rows, steps):
            learn(decide(x), reward)

    def step_us(self) -> float:
        """Time a window."""
        started = process_time()
        self.play(WINDOW)
        return (process_time() - started) / WINDOW * 1e6


def measured(rounds: int) -> dict[str, dict[str, float]]:
    """Time every kind of reward with float64 rows, and every kind of context with floats."""
    rng = np.random.default_rng(7)
    X, clicks = list(rng.normal(size=(1000, DIM))), rng.integers(0, 2, size=1000).tolist()
    runs = {("reward", name): Run(X, [kind(r) for r in clicks]) for name, kind in REWARDS.items()}
    runs |= {("context", name): Run([kind(x) for x in X], list(map(float, clicks))) for name, kind in CONTEXTS.items()}
    turns = [{key: run.step_us() for key, run in runs.items()} for _ in range(rounds)]
    out: dict[str, dict[str, float]] = {"reward": {}, "context": {}}
    for part, name in runs:
        out[part][name] = median(turn[part, name] for turn in turns)
    return out


if __name__ == "__main__":
    print(json.dumps(measured(int(sys.argv[1]) if len(sys.argv) > 1 else 15)))
