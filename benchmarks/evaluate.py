"""CPU time of valuing a policy from a table in memory, d = K = 20: four estimators, one interval, next to OBP 0.4.1.

    python benchmarks/evaluate.py 1e5 1e6     # rows; prints one line of JSON each, 3 GB of memory for the second

Ours is one call of `armlet.evaluate` on what users have: a pandas or polars frame, an Arrow table, a Parquet file (read
from the disk each time), or arrays as OBP takes them. It checks the log, fits its reward model and says what every
estimator gives; `plain` is that of the Arrow table without checks. OBP is given arrays, and the reward model for
nothing; it builds its arrays, gives four points, and one bootstrap interval of 100 resamples, its default. One thread.
They are measured in turn, three times; medians are printed, and how many times faster than OBP each is.
"""

import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

for name in ("OMP", "OPENBLAS", "MKL"):
    os.environ[f"{name}_NUM_THREADS"] = "1"

import numpy as np  # noqa: E402 - after the number of threads
import pandas as pd  # noqa: E402
import polars as pl  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

import armlet  # noqa: E402
from armlet.evaluation.model import combine, row_sums, solve  # noqa: E402
from armlet.evaluation.sources import open_rows  # noqa: E402
from evaluators import ask  # noqa: E402

DIM, ARMS, SAMPLES, ROUNDS = 20, 20, 100, 3
SAME = ("ips", "snips")  # our reward model leaves each row out


def measure(rows: int) -> dict[str, float]:
    rng = np.random.default_rng(0)
    X, target = rng.normal(size=(rows, DIM)), rng.normal(size=(ARMS, DIM))
    arms = rng.integers(ARMS, size=rows)
    rewards = (rng.random(rows) < 0.3).astype(np.float64)
    feedback = {"context": X, "action": arms, "reward": rewards, "pscore": np.full(rows, 1 / ARMS)}
    log = open_rows(armlet.log.from_obp(feedback))
    theta = solve(combine([row_sums(block, np.ones(len(block), dtype=np.bool_)) for block in log])).theta
    bandit, taken, apart = _bandit(target), [], 0.0
    with tempfile.TemporaryDirectory() as folder:
        doors = _doors(feedback, Path(folder))
        for _ in range(ROUNDS):
            times = {}
            for name, log_of in doors.items():
                started = process_time()
                checks = "none" if name == "plain" else "all"
                result = armlet.evaluate(log_of(), {"it": bandit}, interval="fixed", checks=checks)
                times[name], values = process_time() - started, result.estimates["it"]
            arrays = {name: feedback[name] for name in ("action", "reward", "pscore")}
            theirs = ask("obp", "costs", X=X, **arrays, theta=theta, target=target, samples=SAMPLES)
            apart = max([apart, *(abs(values[word].value - theirs[word]) for word in SAME)])
            taken.append(times | {"obp": sum(theirs[name] for name in ("arrays", "points", "interval"))})
    medians = {name: statistics.median(times[name] for times in taken) for name in taken[0]}
    faster = {f"{name}_faster": medians["obp"] / medians[name] for name in doors}
    return {"rows": rows, **medians, **faster, "apart": apart}


def _doors(feedback: dict[str, np.ndarray], folder: Path) -> dict[str, Callable[[], Any]]:
    """Return logs of all kinds, made when they are called."""
    names = [f"x{i}" for i in range(DIM)]
    columns = {**dict(zip(names, feedback["context"].T, strict=True)), "arm": feedback["action"]}
    frame = pd.DataFrame(columns | {"reward": feedback["reward"]})
    table, path = pa.Table.from_pandas(frame), folder / "table.parquet"
    pq.write_table(table, path)
    tables = {"pandas": frame, "polars": pl.from_pandas(frame), "arrow": table, "parquet": path, "plain": table}
    logs = {name: partial(armlet.Table, each, features=names, propensity=1 / ARMS) for name, each in tables.items()}
    return logs | {"arrays": partial(armlet.log.from_obp, feedback)}


def _bandit(theta: np.ndarray) -> armlet.Bandit:
    """Teach a bandit to prefer what a linear target does."""
    bandit = armlet.Bandit(range(ARMS), DIM, policy=armlet.Greedy(units="as given", ridge=1e-9), seed=1)
    X = np.tile(np.eye(DIM), (ARMS, 1))
    bandit.partial_fit(X, np.repeat(np.arange(ARMS), DIM), theta.ravel())
    return bandit


if __name__ == "__main__":
    for rows in sys.argv[1:] or ["1e5"]:
        print(json.dumps(measure(int(float(rows)))), flush=True)
