"""What a step of the default policy costs, next to LinUCB, and the memory that it takes.

    python benchmarks/default.py 5                # rounds; prints one line of JSON
    python benchmarks/default.py --marginal 5     # what it costs decide to report the propensity over the coin

All begin with so many rows of a log of random arms, and then go on by themselves; all are in free units. They take
turns, so that a busy machine hits all of them. A figure is CPU time a step of the compiled loop over a window, which
for a dear policy is a tenth as long.
"""

import json
import sys
from time import thread_time_ns

import numpy as np

import armlet
from armlet.policies import LinUCB, OccasionalOptimism
from report import DefaultStage
from timing import SIZES, Size
from units import Run, gaussian_rows

STAGES = ((3, 100_000, 20_000), (32, 100_000, 10_000), (128, 2_000, 1_000), (128, 20_000, 2_000), (128, 100_000, 5_000))
POLICIES = {"default": OccasionalOptimism(), "LinUCB": LinUCB()}
DEAR = 10  # times
MARGINAL = ((3, 5, 3_000), (10, 10, 5_000), (16, 32, 10_000), (100, 128, 20_000))  # arms, features, rows to begin with
TURN = 500  # steps of a turn


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


def marginal_cost(n_arms: int, dim: int, rows: int, rounds: int) -> str:
    """Let twins decide and learn in turns, one of which reports marginal propensities: both play the same arms."""
    rng = np.random.default_rng(71_000)
    theta = rng.normal(size=(n_arms, dim)) / np.sqrt(dim)
    logged, arms = rng.normal(size=(rows, dim)), rng.integers(n_arms, size=rows)
    noise = rng.normal(size=rows)
    one = armlet.Bandit(range(n_arms), dim, seed=1)
    one.partial_fit(logged, arms, (logged * theta[arms]).sum(axis=1) + noise)
    twins, spent = {"as it comes": (one, {}), "marginal": (one.copy(), {"propensity": "marginal"})}, []
    for _ in range(rounds):
        X, noise = rng.normal(size=(TURN, dim)), rng.normal(size=TURN)
        spent.append([_turn(bandit, asked, X, X @ theta.T + noise[:, None]) for bandit, asked in twins.values()])
    us = np.array(spent).min(axis=0)  # (2, 3): the quickest round
    cells = "".join(f"{plain:9.2f}{both:9.2f}{both / plain:7.2f}" for plain, both in us.T)
    return f"({n_arms}, {dim})".ljust(12) + cells


def _turn(bandit: armlet.Bandit, asked: dict[str, str], X: np.ndarray, rewards: np.ndarray) -> list[float]:
    """Return microseconds of CPU time a decision: of all steps, of greedy and of optimistic ones."""
    spent: dict[bool, list[int]] = {False: [], True: []}
    looks = []  # what it takes to look at the clock
    for x, paid in zip(X, rewards, strict=True):
        begin = thread_time_ns()
        decision = bandit.decide(x, **asked)
        end = thread_time_ns()
        looks.append(thread_time_ns() - end)
        spent[decision.optimistic].append(end - begin)
        bandit.learn(decision, float(paid[int(decision.arm)]))
    look = float(np.median(looks))
    return [(float(np.mean(each)) - look) / 1e3 for each in (spent[False] + spent[True], spent[False], spent[True])]


def print_marginal(rounds: int) -> None:
    """Print a line for every size: microseconds of decide as it comes, marginal, and how many times that is."""
    print("".ljust(12) + "".join(f"{kind:>25}" for kind in ("all steps", "greedy", "optimistic")))
    for n_arms, dim, rows in MARGINAL:
        print(marginal_cost(n_arms, dim, rows, rounds))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--marginal"]:
        print_marginal(int(sys.argv[2]) if len(sys.argv) > 2 else 5)
        sys.exit()
    asked = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    sizes = {size.dim: size for size in SIZES}
    print(json.dumps([measured(sizes[dim], rows, window, asked) for dim, rows, window in STAGES]))
