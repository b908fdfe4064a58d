"""CPU time of valuing a policy from 10^6 rows, d = K = 20: four estimators with intervals, next to OBP 0.4.1.

    python benchmarks/evaluate.py 1e6     # rows; prints one line of JSON, 2 GB of memory

Both have the rows in memory as arrays, and one thread. Ours is one call of `armlet.evaluate`, which checks the log,
fits its reward model and says what each estimator gives; `plain` is the same without checks. OBP is given the reward
model for nothing; it builds its arrays, gives four points, and one bootstrap interval of 100 resamples, its default.
They are measured in turn, three times; medians are printed.
"""

import json
import os
import statistics
import sys
from time import process_time

for name in ("OMP", "OPENBLAS", "MKL"):
    os.environ[f"{name}_NUM_THREADS"] = "1"

import numpy as np  # noqa: E402 - after the number of threads

import armlet  # noqa: E402
from armlet.evaluation.model import combine, row_sums, solve  # noqa: E402
from armlet_lab.validation.printed_tables.arrays import ArrayBlocks  # noqa: E402
from evaluators import ask  # noqa: E402

DIM, ARMS, SAMPLES, ROUNDS = 20, 20, 100, 3
SAME = ("ips", "snips")  # our reward model leaves each row out


def measure(rows: int) -> dict[str, float]:
    rng = np.random.default_rng(0)
    X, target = rng.normal(size=(rows, DIM)), rng.normal(size=(ARMS, DIM))
    arms = rng.integers(ARMS, size=rows)
    rewards = (rng.random(rows) < 0.3).astype(np.float64)
    chances = np.full(rows, 1 / ARMS)
    log = ArrayBlocks(X, arms, rewards, chances, labels=range(ARMS))
    theta = solve(combine([row_sums(block, np.ones(len(block), dtype=np.bool_)) for block in log])).theta
    arrays = {"X": X, "action": arms, "reward": rewards, "pscore": chances, "theta": theta, "target": target}
    bandit, taken, apart = _bandit(target), [], 0.0
    for _ in range(ROUNDS):
        times = {}
        for name, checks in (("ours", "all"), ("plain", "none")):
            started = process_time()
            log = ArrayBlocks(X, arms, rewards, chances, labels=range(ARMS))
            values = armlet.evaluate(log, {"it": bandit}, interval="fixed", checks=checks).estimates["it"]
            times[name] = process_time() - started
        theirs = ask("obp", "costs", **arrays, samples=SAMPLES)
        apart = max([apart, *(abs(values[word].value - theirs[word]) for word in SAME)])
        taken.append(times | {name: theirs[name] for name in ("arrays", "points", "interval")})
    medians = {name: statistics.median(times[name] for times in taken) for name in taken[0]}
    return medians | {"apart": apart, "rows": rows}


def _bandit(theta: np.ndarray) -> armlet.Bandit:
    """Teach a bandit to prefer what a linear target does."""
    bandit = armlet.Bandit(range(ARMS), DIM, policy=armlet.Greedy(units="as given", ridge=1e-9), seed=1)
    X = np.tile(np.eye(DIM), (ARMS, 1))
    bandit.partial_fit(X, np.repeat(np.arange(ARMS), DIM), theta.ravel())
    return bandit


if __name__ == "__main__":
    print(json.dumps(measure(int(float(sys.argv[1]) if len(sys.argv) > 1 else 1e6))))
