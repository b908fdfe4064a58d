"""The digits table of the Open Bandit Pipeline: how far seven estimators are from the value of a classifier.

examples/multiclass of its repository: digits of scikit-learn; 70 % of the rows are the log; logger and target play a
logistic regression fitted to the other 30 % with probability 0.8 and 0.9, and else any arm; the reward model is a
logistic regression on the context and flags of the arm, cross-fitted in three folds. Relative error |estimate -
truth| / truth, the truth being the target's accuracy on the log's own rows. The constants of the regressions are
those of the package's own example of this data (C = 100); the file that the table was made with is not in its
repository.
"""

from __future__ import annotations

import importlib
from typing import Any, Final

import numpy as np

from armlet.datasets import DatasetTable, load
from armlet.evaluation.estimators import ESTIMATORS, Estimator, Shrunk, Switch, estimate, kernel_constants
from armlet.evaluation.evaluate import evaluate
from armlet.evaluation.rows import HeldBlocks, rows_of
from armlet.kernel import gram, row_features
from armlet.reference.evaluate import Parts
from armlet.types import Float64, Int64

PRINTED: Final = {
    "dm": (0.093439, 0.015391),
    "ips": (0.013286, 0.008496),
    "snips": (0.006797, 0.004094),
    "dr": (0.007780, 0.004492),
    "sndr": (0.007210, 0.004089),
    "switch, 1": (0.173282, 0.020025),
    "switch, 100": (0.007780, 0.004492),
    "shrunk, 1": (0.079629, 0.014008),
    "shrunk, 100": (0.008031, 0.004634),
}
"""Mean and standard deviation of the relative error over 20 splits, as their README prints them."""

OURS: Final = "dr, own model"
EVALUATED, LOGGER, TARGET, FOLDS = 0.7, 0.8, 0.9, 3


def relative_errors(rng: np.random.Generator) -> tuple[dict[str, float], float]:
    """Play one split: give the relative errors, and whether the interval of DR with our own model covers the truth."""
    table = load("sklearn", "digits")
    order = rng.permutation(len(table))
    cut = len(table) - round(EVALUATED * len(table))
    train, test = order[:cut], order[cut:]
    chosen = _logistic().fit(table.X[train], table.y[train]).predict(table.X[test]).astype(np.int64)
    logged, pi = (_softened(chosen, share, table.n_arms) for share in (LOGGER, TARGET))
    arms = (logged.cumsum(axis=1) < rng.random((len(test), 1))).sum(axis=1)
    at = np.arange(len(test))
    rewards = (arms == table.y[test]).astype(np.float64)
    truth = float(pi[at, table.y[test]].mean())
    points = _points(table, table.X[test], arms, rewards, logged[at, arms], pi, rng)
    rows = rows_of(table.X[test], arms, rewards, logged[at, arms], n_arms=table.n_arms)
    log = HeldBlocks(rows, table.labels)
    target = {"it": lambda X, eligible: pi}  # noqa: ARG005
    found = evaluate(log, target, arms=table.labels, estimator="dr", interval="fixed")["it"]
    covers = found.interval is not None and found.interval.low <= truth <= found.interval.high
    values = points | {OURS: found.value}
    return {name: abs(value - truth) / truth for name, value in values.items()}, float(covers)


def _logistic() -> Any:
    linear = importlib.import_module("sklearn.linear_model")
    return linear.LogisticRegression(C=100, solver="newton-cholesky")  # the same optimum as by theirs, sooner


def _softened(chosen: Int64, share: float, n_arms: int) -> Float64:
    """Play the chosen arm with some probability, and else any."""
    law = np.full((len(chosen), n_arms), (1 - share) / n_arms)
    law[np.arange(len(chosen)), chosen] += share
    return law


def _points(
    table: DatasetTable,
    X: Float64,
    arms: Int64,
    rewards: Float64,
    chances: Float64,
    pi: Float64,
    rng: np.random.Generator,
) -> dict[str, float]:
    q = _cross_fitted(X, arms, rewards, table.n_arms, rng)
    found = {}
    for name in PRINTED:
        word, _, constant = name.partition(", ")
        asked = [{"switch": Switch, "shrunk": Shrunk}[word](float(constant))] if constant else []
        found[name] = estimate(word, gram_with(arms, rewards, chances, pi, q, *asked)).value
    return found


def _cross_fitted(X: Float64, arms: Int64, rewards: Float64, n_arms: int, rng: np.random.Generator) -> Float64:
    """Return what is expected of every arm in every row by a model that has not seen the row."""
    flags, q = np.eye(n_arms), np.empty((len(X), n_arms))
    parts = np.array_split(rng.permutation(len(X)), FOLDS)
    for part in parts:
        rest = np.setdiff1d(np.arange(len(X)), part)
        model = _logistic().fit(np.hstack([X[rest], flags[arms[rest]]]), rewards[rest])
        for arm in range(n_arms):
            asked = np.hstack([X[part], np.tile(flags[arm], (len(part), 1))])
            q[part, arm] = model.predict_proba(asked)[:, 1]
    return q


def gram_with(
    arms: Int64, rewards: Float64, propensities: Float64, pi: Float64, q: Float64, *estimators: Estimator
) -> Float64:
    """Return the sums that estimators read, for a target and a reward model given row by row.

    Parameters
    ----------
    arms, rewards, propensities
        (n,): the arm played, its reward and its propensity.
    pi, q
        (n, K): the target's probabilities, and the expected rewards.
    estimators
        Those whose constants are not the usual ones.

    Examples
    --------
    >>> pi, q = np.array([[1.0, 0.0], [0.0, 1.0]]), np.full((2, 2), 0.5)
    >>> sums = gram_with(np.array([0, 0]), np.array([1.0, 0.0]), np.array([0.5, 0.5]), pi, q)
    >>> from armlet.evaluation.estimators import estimate
    >>> estimate("ips", sums).value, estimate("dr", sums).value
    (1.0, 1.0)
    """
    at = np.arange(len(arms))
    mine, played = np.ascontiguousarray(pi[at, arms]), np.ascontiguousarray(q[at, arms])
    direct, ones = (pi * q).sum(axis=1), np.ones(len(arms))
    parts = Parts(mine, direct, rewards, propensities, propensities, ones, played, ones)
    F = row_features(*parts, **kernel_constants((*ESTIMATORS.values(), *estimators)))
    return gram(F, F)
