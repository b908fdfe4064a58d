"""Dudik, Langford and Li, *Doubly Robust Policy Evaluation and Learning* (ICML 2011), on UCI tables.

Half of a table teaches a linear classifier; the other half is the environment: rows are drawn from it, arms uniformly,
and the accuracy of the classifier is to be found from the log. They print their biases and errors as bars, not as
numbers, and no coverage; the tables are five of their nine. What differs here: the classifier is ridge regression on
the classes, not direct loss minimisation; the reward model of DM and DR is fitted to the log itself, without the row in
question; and rows are drawn with replacement, so that the truth is the accuracy on the half and intervals should cover
it as often as they say.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from armlet.datasets import DatasetTable
from armlet.evaluation.evaluate import evaluate
from armlet.evaluation.rows import HeldBlocks, rows_of
from armlet.types import Bool, Float64, Int64

TABLES: Final = {
    "letter": "balanced/letter",
    "optdigits": "balanced/optdigits",
    "pendigits": "balanced/penbased",
    "satimage": "balanced/satimage",
    "vehicle": "balanced/vehicle",
}
"""Those of their nine tables that KEEL's wheel has, and what it calls them; not ecoli, glass, page-blocks and yeast."""
MOST: Final = 2000  # rows of a log
WORDS: Final[tuple[str, ...]] = ("dm", "ips", "snips", "dr")


def errors(table: DatasetTable, rng: np.random.Generator, runs: int) -> tuple[Float64, Float64, float]:
    """Return the errors of the estimators, (runs, 4), whether their intervals cover (NaN: none), and the truth."""
    order = rng.permutation(len(table))
    train, test = np.array_split(order, 2)
    X = table.standardised()
    right = classify(X[train], table.y[train], X[test], table.n_arms)
    pays = right == table.y[test]
    truth = float(pays.mean())
    found, covered = np.empty((runs, len(WORDS))), np.full((runs, len(WORDS)), np.nan)
    for run in range(runs):
        rows = rng.integers(len(test), size=min(len(test), MOST))
        arms = rng.integers(table.n_arms, size=len(rows))
        rewards = (arms == table.y[test][rows]).astype(np.float64)
        chances = np.full(len(rows), 1.0 / table.n_arms)
        log = HeldBlocks(rows_of(X[test][rows], arms, rewards, chances, n_arms=table.n_arms), table.labels)
        law = np.eye(table.n_arms)[right[rows]]
        target = {"it": lambda X, eligible: law}  # noqa: ARG005, B023
        points = evaluate(log, target, arms=table.labels, interval="fixed", checks="none").estimates["it"]
        for place, word in enumerate(WORDS):
            found[run, place] = points[word].value - truth
            if (span := points[word].interval) is not None:
                covered[run, place] = span.low <= truth <= span.high
    return found, covered, truth


def classify(X: Float64, y: Int64, asked: Float64, n_arms: int) -> Int64:
    """Return the classes of rows by ridge regression on flags of the classes of others."""
    Y, ones = np.eye(n_arms)[y], np.ones((len(X), 1))
    Z = np.hstack([ones, X])
    theta = np.linalg.solve(Z.T @ Z + np.eye(Z.shape[1]), Z.T @ Y)
    return np.asarray((np.hstack([np.ones((len(asked), 1)), asked]) @ theta).argmax(axis=1), dtype=np.int64)


def share(covered: Float64) -> float | None:
    """Return how often intervals covered; None if there were none."""
    some: Bool = ~np.isnan(covered)
    return float(covered[some].mean()) if some.any() else None
