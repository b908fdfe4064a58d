"""The environment that every policy of the benchmark meets: the same contexts and rewards, row by row.

A linear bandit with 0/1 rewards, the kind of reward that every peer accepts: x and theta_a are non-negative
unit vectors, and arm a pays 1 with probability x' theta_a. Their entries are cubes of normal variables, so that
contexts point in different directions and most arms are poor: a policy has to try them all, and one that learns
earns more than one that does not. The rows are drawn before any clock runs.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROWS = 1024  # few enough to stay in the cache at d = 128, so that the loop itself costs little

Contexts = list[NDArray[np.float64]]
Rewards = list[list[float]]
Block = tuple[Contexts, Rewards]


@dataclass(frozen=True, slots=True)
class Stream:
    """Contexts, and next to each the reward that every arm would pay."""

    contexts: Contexts  # ROWS arrays of shape (d,), float64
    rewards: Rewards  # ROWS lists of K floats

    def take(self, start: int, size: int) -> Block:
        """Take `size` steps (at most ROWS) from position `start` on, round and round."""
        i = start % ROWS
        rest = max(0, i + size - ROWS)
        return self.contexts[i : i + size] + self.contexts[:rest], self.rewards[i : i + size] + self.rewards[:rest]

    def blocks(self, size: int) -> list[Block]:
        """Cut all rows into blocks of `size` steps; a short rest is left out."""
        return [self.take(i, size) for i in range(0, ROWS - size + 1, size)]


def unit_rows(rng: np.random.Generator, n_rows: int, dim: int) -> NDArray[np.float64]:
    rows = np.abs(rng.standard_normal((n_rows, dim))) ** 3
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def make_stream(dim: int, n_arms: int, seed: int = 1) -> Stream:
    rng = np.random.default_rng(seed)
    X = unit_rows(rng, ROWS, dim)
    theta = unit_rows(rng, n_arms, dim)
    paid = rng.random((ROWS, n_arms)) < X @ theta.T
    return as_stream(X, paid.astype(np.float64))


def as_stream(X: NDArray[np.float64], rewards: NDArray[np.float64]) -> Stream:
    return Stream([row.copy() for row in X], rewards.tolist())


def save_stream(path: Path, X: NDArray[np.float64], rewards: NDArray[np.float64]) -> None:
    """Write ROWS steps of another environment down, (ROWS, d) and (ROWS, K), for environments that do not know it."""
    np.savez(path, X=X, rewards=rewards)


def load_stream(path: Path) -> Stream:
    with np.load(path) as held:
        return as_stream(held["X"], held["rewards"])
