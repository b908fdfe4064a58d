"""A million decisions at once: the kernel's argmax over rows against numpy's GEMM and argmax.

    python benchmarks/batch.py            # prints one line of JSON, 2 GB of memory

Both get the same float64 rows and one thread. Where the arms differ, rational arithmetic says who is right.
"""

import json
import statistics
import sys
from collections.abc import Callable
from fractions import Fraction
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from armlet.kernel import argmax_rows

ROWS = 1_000_000
CHUNK = 1024
SIZES = ((32, 32), (128, 100))
MOST_CHECKED = 200  # an exact score of 100 arms takes about 20 ms

Float64 = NDArray[np.float64]
Arms = NDArray[np.int64]
Method = Callable[[Float64, Float64], Arms]


def whole(X: Float64, theta: Float64) -> Arms:
    arms: Arms = (X @ theta.T).argmax(1)
    return arms


def in_chunks(X: Float64, theta: Float64) -> Arms:
    arms = np.empty(len(X), dtype=np.int64)
    for i in range(0, len(X), CHUNK):
        arms[i : i + CHUNK] = (X[i : i + CHUNK] @ theta.T).argmax(1)
    return arms


METHODS: dict[str, Method] = {"armlet": argmax_rows, "numpy": whole, "numpy in chunks": in_chunks}


def nanoseconds(X: Float64, theta: Float64, repeats: int) -> dict[str, float]:
    """Take the median time per row of each method, called in turn."""
    taken: dict[str, list[float]] = {name: [] for name in METHODS}
    for _ in range(repeats):
        for name, method in METHODS.items():
            started = perf_counter()
            method(X, theta)
            taken[name].append((perf_counter() - started) / len(X) * 1e9)
    return {name: statistics.median(times) for name, times in taken.items()}


def exact_arm(x: Float64, theta: Float64) -> int:
    """Find the first arm with the largest x' theta_a, without rounding."""
    row = [Fraction(value) for value in x.tolist()]
    scores = [sum((a * Fraction(b) for a, b in zip(row, arm, strict=True)), Fraction()) for arm in theta.tolist()]
    return scores.index(max(scores))


def agreement(X: Float64, theta: Float64) -> dict[str, int]:
    """Count the rows in which the two differ, and how often each of them is right there."""
    ours, numpys = argmax_rows(X, theta), whole(X, theta)
    rows = np.flatnonzero(ours != numpys)
    checked = rows[:MOST_CHECKED]
    exact = np.array([exact_arm(X[row], theta) for row in checked], dtype=np.int64)
    return {
        "differ": len(rows),
        "checked": len(checked),
        "armlet_right": int((ours[checked] == exact).sum()),
        "numpy_right": int((numpys[checked] == exact).sum()),
    }


def run(repeats: int) -> dict[str, dict[str, float | int]]:
    report: dict[str, dict[str, float | int]] = {}
    for dim, n_arms in SIZES:
        rng = np.random.default_rng(1)
        X, theta = rng.standard_normal((ROWS, dim)), rng.standard_normal((n_arms, dim))
        report[f"({dim}, {n_arms})"] = {**nanoseconds(X, theta, repeats), **agreement(X, theta)}
    return report


if __name__ == "__main__":
    print(json.dumps(run(repeats=int(sys.argv[1]) if len(sys.argv) > 1 else 5)))
