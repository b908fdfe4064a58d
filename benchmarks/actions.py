"""CPU time of decisions among 100,000 actions with features, next to numpy's float32 product of the same size.

    python benchmarks/actions.py                    # all sizes, about 2 minutes, 1 GB
    python benchmarks/actions.py --sizes 3x32       # one: features of contexts x features of actions
    python benchmarks/actions.py --rows 100000      # learned before, 10,000 by default

One thread. A table is prepared once; models have learned from the best of 50 random actions of it at each step. Rounds
are interleaved, and medians of CPU time are printed: `Z @ v`, numpy's product alone; a greedy decision, which finds the
exact best action, and its ratio to the product; an optimistic one, and how many widths it computed exactly (median and
most); 20 draws from the posterior; the mean and the longest time of learning one row. Exits with 1 if a greedy decision
takes over 1.5 times as long as the product.
"""

import argparse
import os
import statistics
import sys
from time import thread_time

for name in ("OMP", "OPENBLAS", "MKL"):
    os.environ[f"{name}_NUM_THREADS"] = "1"

import numpy as np  # noqa: E402 - after the number of threads

from armlet.kernel import ActionRows, PairModel  # noqa: E402

SIZES = ("8x16", "1x32", "3x32", "2x64", "1x128")
BAR = 1.5
N_DRAWS = 20


def learn(
    Z: np.ndarray, keys: np.ndarray, dx: int, rows: int, rng: np.random.Generator
) -> tuple[PairModel, list[float]]:
    """Return a model of the best of 50 random actions of every step, and what each row took."""
    dz = Z.shape[1]
    products = np.array([(i, j) for i in range(1, dx + 1) for j in range(1, dz + 1)])
    model, slopes = PairModel(dx, dz, products, intercepts=True), rng.normal(size=(dx + 1, dz)) / np.sqrt(dz * (dx + 1))
    spent = []
    for _ in range(rows):
        x, some = rng.normal(size=dx), rng.integers(len(Z), size=50)
        values = Z[some] @ (np.concatenate([[1.0], x]) @ slopes)
        a, reward = int(some[values.argmax()]), float(values.max() + rng.normal())
        start = thread_time()
        model.add(int(keys[a]), x, Z[a], reward, 1.0)
        spent.append(thread_time() - start)
    return model, spent


def measure(size: str, n: int, rows: int, rounds: int, seed: int) -> float:
    """Print the line of one size; return the ratio of a greedy decision to the product."""
    rng = np.random.default_rng(seed)
    dx, dz = map(int, size.split("x"))
    Z, keys = rng.normal(size=(n, dz)), rng.permutation(n).astype(np.uint64)
    model, learning = learn(Z, keys, dx, rows, rng)
    table, Z32 = ActionRows(Z, keys), Z.astype(np.float32)
    spent: dict[str, list[float]] = {name: [] for name in ("product", "greedy", "optimistic", "draws")}
    widths = []
    for at in range(rounds):
        x, v = rng.normal(size=dx), rng.normal(size=dz).astype(np.float32)
        moments = [thread_time()]
        _ = Z32 @ v
        moments.append(thread_time())
        model.greedy(x, table, None)
        moments.append(thread_time())
        model.optimistic(x, table, rows, None)
        moments.append(thread_time())
        if at % 5 == 0:
            model.draws(x, table, at, seed, N_DRAWS, 1.0, None)
            moments.append(thread_time())
        for name, before, after in zip(spent, moments, moments[1:], strict=False):
            spent[name].append(1e3 * (after - before))
        widths.append(model.last_exact_widths)
    product, greedy, optimistic, draws = (statistics.median(values) for values in spent.values())
    print(
        f"{dz:4} {dx:3} {model.n_terms:4} {model.n_items:6} {product:8.2f} {greedy:7.2f} {greedy / product:6.2f} "
        f"{optimistic:10.2f} {statistics.median(widths):7.0f} {max(widths):5} {draws:9.1f} "
        f"{1e6 * statistics.mean(learning):9.0f} {1e3 * max(learning):11.0f}",
        flush=True,
    )
    return greedy / product


def main() -> int:
    """Measure all sizes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", default=SIZES)
    parser.add_argument("--actions", type=int, default=100_000)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=51)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print(
        f"{given.actions:,} actions, {given.rows:,} rows learned; medians of CPU milliseconds in {given.rounds} rounds"
    )
    print("  dz  dx    D  items    Z @ v  greedy  ratio optimistic  widths  most  20 draws  learn us  longest ms")
    ratios = [measure(size, given.actions, given.rows, given.rounds, given.seed) for size in given.sizes]
    print(f"greedy over product: {max(ratios):.2f} at most; the bar is {BAR}")
    return int(max(ratios) > BAR)


if __name__ == "__main__":
    sys.exit(main())
