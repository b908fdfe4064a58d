"""Hadad, Hirshberg, Zhan, Wager and Athey, *Confidence intervals for policy evaluation in adaptive experiments* (2021).

Their design: three arms without contexts, rewards uniform within 1 of their means, Thompson sampling with prior N(0, 1)
from 20 draws and a floor of t^-0.7 / K, after five plays of each arm; the mean of each arm is to be found. Augmented
scores with running means, weighted; intervals of level .90 by the normal law. They print curves, not numbers. With it
the same environments logged by Algorithm 1, valued by `armlet.evaluate`: its weights 1 / E w^2 are, for one arm, the
propensities themselves, which are safe where exploring ignores what was learned, and not under Thompson sampling.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from armlet import kernel
from armlet.evaluation.evaluate import evaluate
from armlet.evaluation.rows import HeldBlocks, rows_of
from armlet.policies.algorithm_1 import Algorithm1
from armlet.types import Float64, Int64

MEANS: Final = {"no signal": (1.0, 1.0, 1.0), "low signal": (0.9, 1.0, 1.1), "high signal": (0.5, 1.0, 1.5)}
DECAY, FIRST, DRAWS, LEVEL = 0.7, 5, 20, 0.90
QUANTILE: Final = 1.6448536269514722  # 95 % of a normal lie below
P: Final = 60.0  # of Algorithm 1
WEIGHTS: Final = ("uniform", "constant allocation", "two-point", "propensity (1 / E w^2)")
OURS: Final = "Algorithm 1, armlet.evaluate"


@dataclass(frozen=True, slots=True)
class Logs:
    """What Thompson sampling did in several runs at once."""

    arms: Int64  # (T, runs)
    rewards: Float64  # (T, runs)
    chances: Float64  # (T, runs, K)


def thompson(means: tuple[float, ...], horizon: int, runs: int, rng: np.random.Generator) -> Logs:
    """Log runs of their design."""
    K, at = len(means), np.arange(runs)
    count, total, squares = np.zeros((runs, K)), np.zeros((runs, K)), np.zeros((runs, K))
    arms = np.empty((horizon, runs), dtype=np.int64)
    rewards, chances = np.empty((horizon, runs)), np.empty((horizon, runs, K))
    for t in range(horizon):
        if t < FIRST * K:
            chances[t], arms[t] = 1 / K, t % K
        else:
            chances[t] = _law(count, total, squares, t, rng)
            arms[t] = (chances[t].cumsum(axis=1) < rng.random((runs, 1))).sum(axis=1).clip(max=K - 1)
        rewards[t] = np.take(means, arms[t]) + rng.uniform(-1, 1, runs)
        count[at, arms[t]] += 1
        total[at, arms[t]] += rewards[t]
        squares[at, arms[t]] += rewards[t] ** 2
    return Logs(arms, rewards, chances)


def _law(count: Float64, total: Float64, squares: Float64, t: int, rng: np.random.Generator) -> Float64:
    """Return the share of draws from the posteriors in which each arm is best, mixed with the floor."""
    mean = total / count
    variance = np.maximum(squares / count - mean**2, 1e-12)
    spread, centre = np.sqrt(1 / (count / variance + 1)), count / (variance + count) * mean
    best = (centre + spread * rng.normal(size=(DRAWS, *count.shape))).argmax(axis=2)
    shares = (best[:, :, None] == np.arange(count.shape[1])).mean(axis=0)
    floor = (t + 1) ** -DECAY / count.shape[1]
    return np.asarray(floor + (1 - count.shape[1] * floor) * shares)


def weigh(logs: Logs, means: tuple[float, ...]) -> tuple[Float64, Float64]:
    """Return errors and whether intervals cover, (weights, runs, K) each."""
    scores = _scores(logs)
    found = [_estimated(scores, h) for h in _weights(logs.chances)]
    errors = np.stack([value - np.array(means) for value, _ in found])
    return errors, np.stack([np.abs(e) <= QUANTILE * se for e, (_, se) in zip(errors, found, strict=True)])


def _scores(logs: Logs) -> Float64:
    """Return the augmented scores (T, runs, K), by means of earlier rows."""
    played = logs.arms[:, :, None] == np.arange(logs.chances.shape[2])
    sums, counts = (logs.rewards[:, :, None] * played).cumsum(axis=0), played.cumsum(axis=0)
    model = np.zeros_like(logs.chances)
    model[1:] = sums[:-1] / np.maximum(counts[:-1], 1)
    return np.asarray(model + played / logs.chances * (logs.rewards[:, :, None] - model))


def _weights(chances: Float64) -> list[Float64]:
    return [np.ones_like(chances), np.sqrt(chances), _two_point(chances), chances]


def _two_point(chances: Float64) -> Float64:
    """Return their two-point allocation: between an arm that stays the best and one that stays at the floor."""
    T, _, K = chances.shape
    t, power = np.arange(1.0, T + 1), 1 - DECAY
    now = ((t + 1) ** power - t**power) / (power * K)
    later = ((T + 1) ** power - t**power) / (power * K)
    best, floor = (1 - (K - 1) * now) / (T + 1 - t - (K - 1) * later), now / later
    rate = chances * best[:, None, None] + (1 - chances) * floor[:, None, None]
    left = np.ones_like(rate)
    left[1:] = np.cumprod(1 - rate[:-1], axis=0)
    return np.asarray(np.sqrt(np.maximum(rate * left * chances, 0.0)))


def _estimated(scores: Float64, h: Float64) -> tuple[Float64, Float64]:
    total = h.sum(axis=0)
    value = (h * scores).sum(axis=0) / total
    return value, np.sqrt((h**2 * (scores - value) ** 2).sum(axis=0)) / total


def by_algorithm_1(
    means: tuple[float, ...], horizon: int, runs: int, rng: np.random.Generator
) -> tuple[Float64, Float64]:
    """Return the same for logs of Algorithm 1, (runs, K) each."""
    policy, K = Algorithm1(p=P, warmup="uniform"), len(means)
    rule, X = policy.rule(), np.ones((horizon, 1))
    rate = np.minimum(1.0, P / np.arange(1.0, horizon + 1))
    errors, covered = np.empty((runs, K)), np.empty((runs, K))
    for run in range(runs):
        pays = np.array(means) + rng.uniform(-1, 1, (horizon, K))
        played = kernel.rollout(X, pays, start=policy.init(K, 1), rule=rule, seed=int(rng.integers(2**63)))
        rewards = pays[np.arange(horizon), played.arms]
        known = {"explored": played.explored.astype(np.int8), "exploration_rate": rate}
        known["exploration_propensity"] = np.full(horizon, 1 / K)
        log = HeldBlocks(rows_of(X, played.arms, rewards, played.propensities, n_arms=K, **known), range(K))
        found = evaluate(log, list(range(K)), interval="fixed", level=LEVEL, checks="none")
        for arm, mean in enumerate(means):
            value = found[str(arm)]
            errors[run, arm] = value.value - mean
            covered[run, arm] = value.interval is not None and value.interval.low <= mean <= value.interval.high
    return errors, covered
