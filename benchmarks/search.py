"""CPU time of valuing many policies, and many dials of each, by one log, next to the same in numpy.

    python benchmarks/search.py             # both, medians of interleaved rounds; about 2 minutes, 1 GB
    python benchmarks/search.py search      # 1,000 policies race on 10,240 rows, d = K = 20, of noise: none drops out
    python benchmarks/search.py dials       # 100 policies with 100 dials each on 10^6 rows, d = 10, K = 5: sums alone
    python benchmarks/search.py pareto      # the same by armlet.evaluate(log, policies, dials=...), 2 outcomes

One thread. numpy has one product of matrices an arm, sequences of all policies at once and a look every 1,024 rows, as
the search itself had before it was compiled; for dials a product for every outcome and one for all dials, on a part of
the rows and policies. Rows are in memory, for `pareto` also in a Parquet log, which is read twice: `reading_seconds` is
that alone. `apart` is the largest difference of what both find. Prints lines of JSON.
"""

import json
import os
import statistics
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

for name in ("OMP", "OPENBLAS", "MKL"):
    os.environ[f"{name}_NUM_THREADS"] = "1"

import numpy as np  # noqa: E402 - after the number of threads

from armlet import Bandit, ContextualEpsilonGreedy, Log  # noqa: E402
from armlet.evaluation.dials.sums import DialSums, sum_dials  # noqa: E402
from armlet.evaluation.evaluate import evaluate  # noqa: E402
from armlet.evaluation.rows import (  # noqa: E402
    BLOCK,
    HeldBlocks,
    Rows,
    rows_of,
)
from armlet.evaluation.search import HEAT, search  # noqa: E402
from armlet.evaluation.sources import open_rows  # noqa: E402
from armlet.inference.sequences import GammaExponential  # noqa: E402
from armlet.log import compact  # noqa: E402

ROUNDS = 5
LEVEL = 0.95


def noise(n: int, dim: int, n_arms: int) -> Rows:
    rng = np.random.default_rng(0)
    X, arms = rng.standard_normal((n, dim)), rng.integers(n_arms, size=n)
    return rows_of(X, arms, (rng.random(n) < 0.5).astype(np.float64), np.full(n, 1 / n_arms), n_arms=n_arms)


def search_in_numpy(rows: Rows, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the policies that are left, and their values."""
    left, each = np.arange(len(thetas)), (1.0 - LEVEL) / (2 * len(thetas))
    below, above = GammaExponential(each), GammaExponential(each)
    for start in range(0, len(rows), HEAT):
        some = rows.take(slice(start, start + HEAT))
        w = (_arms(some, thetas[left]) == some.arm[:, np.newaxis]) / some.propensity[:, np.newaxis]
        below.add(w * some.reward[:, np.newaxis])
        above.add(w * (1.0 - some.reward)[:, np.newaxis])
        stays = 1.0 - above.bound() >= below.bound().max()
        if not stays.all():
            left, below, above = left[stays], below.of(stays), above.of(stays)
    return left, (1.0 + (below.sums.total - above.sums.total) / len(rows)) / 2


def _arms(rows: Rows, thetas: np.ndarray) -> np.ndarray:
    best, arms = np.full((len(rows), len(thetas)), -np.inf), np.zeros((len(rows), len(thetas)), int)
    for arm in range(thetas.shape[1]):
        scores = np.where(rows.eligible[:, arm, np.newaxis], rows.X @ thetas[:, arm].T, -np.inf)
        arms = np.where(scores > best, arm, arms)
        best = np.maximum(best, scores)
    return arms


def measure_search(n: int = 10 * HEAT, policies: int = 1000, dim: int = 20, n_arms: int = 20) -> dict[str, float]:
    rows, thetas = noise(n, dim, n_arms), np.random.default_rng(1).standard_normal((policies, n_arms, dim))
    log, taken, apart = HeldBlocks(rows, range(n_arms)), [], 0.0
    for _ in range(ROUNDS):
        started = process_time()
        left, values = search_in_numpy(rows, thetas)
        between = process_time()
        found = search(log, thetas, reward_range=(0, 1), level=LEVEL)
        taken.append((between - started, process_time() - between))
        if not np.array_equal(found.left, left):
            raise AssertionError(f"{len(found.left)} policies are left, in numpy {len(left)}")
        apart = max(apart, float(np.abs(found.values - values).max()))
    ours, theirs = _compared(taken, n * policies, n * policies)
    shape = {"rows": n, "policies": policies, "dim": dim, "arms": n_arms}
    return shape | _said(ours, theirs, taken) | {"left": len(left), "apart": apart}


def dials_in_numpy(
    rows: Rows, weights: np.ndarray, outcomes: np.ndarray, thetas: np.ndarray, dials: np.ndarray
) -> np.ndarray:
    """Return sums of weights and weighted outcomes, and of their products, (J, D, 1 + q + (1 + q)^2)."""
    wy = weights[:, np.newaxis] * np.column_stack([np.ones(len(rows)), outcomes])
    columns = np.column_stack([wy, (wy[:, :, np.newaxis] * wy[:, np.newaxis, :]).reshape(len(rows), -1)])
    sums = []
    for theta in thetas:  # (m, K, d)
        m, K, d = theta.shape
        scores = (rows.X @ theta.reshape(-1, d).T).reshape(len(rows), m, K)
        best = (np.swapaxes(scores, 1, 2) @ dials.T).argmax(axis=1)  # (n, D)
        sums.append((best == rows.arm[:, np.newaxis]).T.astype(np.float64) @ columns)
    return np.array(sums)


def measure_dials(n: int, outcomes: int, policies: int = 100, dials: int = 100) -> dict[str, float]:
    part, few = min(n, 4096), min(policies, 5)
    rows, rng = noise(n, 10, 5), np.random.default_rng(2)
    thetas, weighed = rng.standard_normal((policies, outcomes, 5, 10)), _curve(dials, outcomes)
    values, w = rng.random((n, outcomes)), 1.0 / rows.propensity
    some, taken, apart = rows.take(slice(0, part)), [], 0.0
    for _ in range(ROUNDS if n < 10**5 else 3):
        started = process_time()
        plain = dials_in_numpy(some, w[:part], values[:part], thetas[:few], weighed)
        between = process_time()
        _all_blocks(rows, w, values, thetas, weighed)
        taken.append((between - started, process_time() - between))
    first = sum_dials(some, w[:part], values[:part], thetas[:few], weighed)
    found = np.concatenate([first.totals, first.squares.reshape(few, dials, -1)], axis=2)
    apart = float(np.abs(found / plain - 1.0).max())
    ours, theirs = _compared(taken, part * few * dials, n * policies * dials)
    shape = {"rows": n, "policies": policies, "dials": dials, "outcomes": outcomes, "dim": 10, "arms": 5}
    return (
        shape
        | {"seconds": round(statistics.median(t for _, t in taken), 2)}
        | _said(ours, theirs, taken)
        | {"apart": apart}
    )


def measure_pareto(n: int, policies: int = 100, dials: int = 100) -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng(2)
    thetas, names = rng.standard_normal((policies, 2, 5, 10)), ("quality", "cost")
    given = [dict(zip(names, map(float, dial), strict=True)) for dial in _curve(dials, 2)]
    shape = {"rows": n, "policies": policies, "dials": dials, "outcomes": 2, "dim": 10, "arms": 5}
    rows = noise(n, 10, 5)
    held = HeldBlocks(replace(rows, outcomes={name: rng.random(n) for name in names}), range(5))
    with TemporaryDirectory() as folder:
        for where, log in (("memory", held), ("parquet", _written(n, Path(folder)))):
            started = process_time()
            found = evaluate(log, thetas, dials=given)
            between = process_time()
            for _ in range(2):
                sum(len(block) for block in open_rows(log))
            taken = {"seconds": round(between - started, 2), "reading_seconds": round(process_time() - between, 2)}
            yield shape | {"log": where} | taken | {"values": len(found)}


def _written(n: int, folder: Path) -> Path:
    """Write a log of a bandit that explores always, and compact it."""
    rng, policy = np.random.default_rng(3), ContextualEpsilonGreedy(p=float(n))
    with Log(folder / "log.jsonl") as log:
        bandit = Bandit(range(5), 10, policy=policy, outcomes={"quality": 1.0, "cost": -1.0}, seed=1, log=log)
        for x, (quality, cost) in zip(rng.standard_normal((n, 10)), rng.random((n, 2)).tolist(), strict=True):
            bandit.learn(bandit.decide(x), {"quality": quality, "cost": cost})
    return compact(folder / "log.jsonl", folder / "log.parquet")


def _curve(dials: int, outcomes: int) -> np.ndarray:
    """Weights from quality alone to cost alone; a third outcome costs, too."""
    angle = np.linspace(0.0, np.pi / 2, dials)
    return np.column_stack([np.cos(angle), *[-np.sin(angle) / (outcomes - 1)] * (outcomes - 1)])


def _all_blocks(rows: Rows, w: np.ndarray, values: np.ndarray, thetas: np.ndarray, dials: np.ndarray) -> DialSums:
    parts = [slice(start, start + BLOCK) for start in range(0, len(rows), BLOCK)]
    sums = [sum_dials(rows.take(part), w[part], values[part], thetas, dials) for part in parts]
    return sum(sums[1:], start=sums[0])


def _compared(taken: list[tuple[float, float]], theirs: int, ours: int) -> tuple[float, float]:
    """Return the median nanoseconds of ours and of numpy for one row and policy, or dial."""
    return (
        statistics.median(t for _, t in taken) / ours * 1e9,
        statistics.median(t for t, _ in taken) / theirs * 1e9,
    )


def _said(ours: float, theirs: float, taken: list[tuple[float, float]]) -> dict[str, float]:
    return {
        "numpy_ns": round(theirs, 2),
        "ours_ns": round(ours, 3),
        "ratio": round(theirs / ours, 1),
        "rounds": len(taken),
    }


if __name__ == "__main__":
    wanted = sys.argv[1:2] or ["search", "dials", "pareto"]
    size = int(float(sys.argv[2])) if len(sys.argv) > 2 else 10**6
    if "search" in wanted:
        print(json.dumps({"search": measure_search()}), flush=True)
    if "dials" in wanted:
        for m in (2, 3):
            print(json.dumps({"dials": measure_dials(size, m)}), flush=True)
    if "pareto" in wanted:
        for found in measure_pareto(size):
            print(json.dumps({"pareto": found}), flush=True)
