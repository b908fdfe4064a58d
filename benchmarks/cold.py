"""What the first steps of the default cost with long contexts, decide and learn apart, and a log learned at once.

    python benchmarks/cold.py 5          # rounds; prints one line of JSON

A new bandit of 16 arms and 384 features plays 1,000 steps of gaussian contexts; and a log of random arms is learned by
the default and by LinUCB in turns, so that a busy machine hits both. All figures are CPU time.
"""

import json
import sys
from time import process_time_ns

import numpy as np

import armlet
from armlet.types import Float64
from report import COLD_STEPS, Batches, ColdReport, ColdRound
from units import gaussian_rows

DIM, N_ARMS, STEPS = 384, 16, 1_000
BATCH_DIM, BATCH_ARMS, BATCH_ROWS = 128, 100, 20_000


def solve_us(X: Float64) -> float:
    """Measure a solve of one arm, as it is made when units change: the median of twenty."""
    state, taken = armlet.OccasionalOptimism().init(1, DIM), []
    for i, x in enumerate(X[:40]):
        state.add(0, x, float(i % 3))
        started = process_time_ns()
        state.renew()
        state.scores(x)
        taken.append((process_time_ns() - started) / 1e3)
    return float(np.median(taken[20:]))


def life(X: Float64, R: Float64, units: str) -> ColdRound:
    """Play from the first step on."""
    policy = armlet.OccasionalOptimism(units=units)  # type: ignore[arg-type]
    bandit = armlet.Bandit(range(N_ARMS), DIM, policy=policy, seed=1)
    decides, learns = np.empty(STEPS), np.empty(STEPS)
    for t in range(STEPS):
        start = process_time_ns()
        decision = bandit.decide(X[t])
        decided = process_time_ns()
        bandit.learn(decision, float(R[t, int(decision.arm)]))
        decides[t], learns[t] = decided - start, process_time_ns() - decided
    parts = {"decide": decides / 1e3, "learn": learns / 1e3}
    windows = {"first": slice(0, COLD_STEPS), "after": slice(COLD_STEPS, STEPS)}
    return {
        name: {part: (float(us[window].mean()), float(us[window].max())) for part, us in parts.items()}
        for name, window in windows.items()
    }


def batches(rounds: int) -> Batches:
    """Measure a row of a log that is learned at once, on top of another, by two policies in turns."""
    X, R = gaussian_rows(BATCH_DIM, BATCH_ARMS)
    arms = np.random.default_rng(1).integers(BATCH_ARMS, size=BATCH_ROWS)
    rewards = R[np.arange(BATCH_ROWS), arms]
    policies = {"default": armlet.OccasionalOptimism(), "LinUCB": armlet.LinUCB()}
    bandits = {name: armlet.Bandit(range(BATCH_ARMS), BATCH_DIM, policy=policies[name], seed=1) for name in policies}
    out: Batches = {name: [] for name in policies}
    for _ in range(1 + rounds):
        for name, bandit in bandits.items():
            started = process_time_ns()
            bandit.partial_fit(X[:BATCH_ROWS], arms, rewards)
            out[name].append((process_time_ns() - started) / 1e3 / BATCH_ROWS)
    return out


def measured(rounds: int) -> ColdReport:
    """Take turns: a solve, a life in free units, one in units as given."""
    X, R = gaussian_rows(DIM, N_ARMS)
    turns = [(solve_us(X), life(X, R, "free"), life(X, R, "as given")) for _ in range(rounds)]
    return {
        "size": f"({DIM}, {N_ARMS})",
        "solve_us": [turn[0] for turn in turns],
        "free": [turn[1] for turn in turns],
        "as given": [turn[2] for turn in turns],
        "batch": {"size": f"({BATCH_DIM}, {BATCH_ARMS})", "us": batches(rounds)},
    }


if __name__ == "__main__":
    print(json.dumps(measured(int(sys.argv[1]) if len(sys.argv) > 1 else 5)))
