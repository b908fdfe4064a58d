"""How often all intervals of a Pareto curve hold together: the band of `armlet.evaluate(..., dials=)`.

Requests of two features go to one of four models. "by chance": each with a probability of its own, and nothing else is
known. "rarely": a log that explores at a rate of p / t. "sessions": one to eight decisions share a model, and a mood
that moves the quality of all. Quality is good or bad ("clicks"), or has noise; costs are lognormal.
A bandit that learned from 300 other requests is valued under 20 dials; unrelated policies under five each. What is true
is found by playing every policy on 10^6 other requests.
Run as a module it prints a table: python -m armlet_lab.validation.dials --runs 100
or draws the curve of one log: python -m armlet_lab.validation.dials --figure pareto.svg
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import NormalDist
from typing import Any, Final, Literal, TypeAlias

import numpy as np

import armlet
from armlet.evaluation import ParetoCurve
from armlet.evaluation.rows import HeldBlocks, rows_of
from armlet.parallel import Seeds
from armlet.report.plots import svg
from armlet.types import Float64, Int64

Design: TypeAlias = Literal["by chance", "rarely", "sessions"]
Quality: TypeAlias = Literal["clicks", "noise"]
Valued: TypeAlias = Literal["one bandit", "40 policies"]
DESIGNS: Final[tuple[Design, ...]] = ("by chance", "rarely", "sessions")
NAMES: Final = ("quality", "cost")
ARMS: Final = ("tiny", "small", "medium", "large")
PRICES: Final = np.array([0.001, 0.003, 0.01, 0.03])
CHANCE: Final = np.array([0.4, 0.3, 0.2, 0.1])
EXPLORED: Final = 300.0  # p of a rate of p / t
POLICIES: Final = 40
ONE: Final[Valued] = "one bandit"
MANY: Final[Valued] = "40 policies"
TRUE: Final = 250_000  # requests that say what is true, four times


@dataclass(frozen=True, slots=True)
class DialCase:
    """A kind of log, how quality is judged, and what is valued."""

    design: Design
    quality: Quality
    rows: int
    targets: Valued

    def __str__(self) -> str:
        return f"{self.design:<10} {self.quality:<7} {self.rows:>6,} {self.targets:<12}"


def requests(rng: np.random.Generator, n: int) -> tuple[Float64, Float64]:
    """Return contexts (n, 2) and the mean quality of every model there, (n, 4)."""
    X = rng.standard_normal((n, 2))
    depth = np.clip(0.5 + 0.35 * X[:, :1], 0.0, 1.0)
    return X, 0.35 + np.array([0.0, 0.1, 0.2, 0.45]) * depth + 0.05 * np.tanh(X[:, 1:]) * np.array([1.0, 0, 0, -1.0])


def drawn(rng: np.random.Generator, case: DialCase) -> HeldBlocks:
    """Draw a log."""
    n = case.rows
    X, means = requests(rng, n)
    session = np.repeat(np.arange(n), rng.integers(1, 9, size=n))[:n] if case.design == "sessions" else np.arange(n)
    arm, columns = _played(rng, case.design, n, X)
    arm = arm[np.unique(session, return_index=True)[1]][session] if case.design == "sessions" else arm
    mood = 0.14 * (2.0 * rng.random(n)[session] - 1.0) if case.design == "sessions" else 0.0
    mean = means[np.arange(n), arm] + mood
    quality = rng.random(n) < mean if case.quality == "clicks" else mean + 0.2 * rng.standard_normal(n)
    outcomes = {"quality": quality.astype(np.float64), "cost": PRICES[arm] * np.exp(0.5 * rng.standard_normal(n))}
    if case.design == "sessions":
        columns = {"propensities": CHANCE[arm], "unit": session, "epoch": np.zeros(n, dtype=np.int64)}
    rows = rows_of(X, arm, np.zeros(n), n_arms=len(ARMS), outcomes=outcomes, **columns)
    return HeldBlocks(rows, ARMS)


def log_of(seed: int, case: DialCase) -> HeldBlocks:
    """Return the log of a seed."""
    return drawn(Seeds(seed, "dials").rng("log"), case)


def _played(rng: np.random.Generator, design: Design, n: int, X: Float64) -> tuple[Int64, dict[str, Any]]:
    drawn_arm = rng.choice(len(ARMS), size=n, p=CHANCE)
    if design != "rarely":
        return drawn_arm, {"propensities": CHANCE[drawn_arm]}
    rate = np.minimum(1.0, EXPLORED / np.arange(1, n + 1))
    explored, best = rng.random(n) < rate, np.where(X[:, 0] > 0.5, 3, 1)
    arm = np.where(explored, drawn_arm, best)
    given = CHANCE[arm]
    return arm, {
        "propensities": np.where(arm == best, 1.0 - rate, 0.0) + rate * given,
        "explored": explored.astype(np.int8),
        "greedy": (arm == best).astype(np.int8),
        "exploration_rate": rate,
        "exploration_propensity": given,
        "min_exploration_probability": np.full(n, CHANCE.min()),
    }


def bandit() -> armlet.Bandit:
    """Return a bandit that learned from 300 other requests."""
    rng = Seeds(0, "dials").rng("bandit")
    X, means = requests(rng, 300)
    arm = rng.choice(len(ARMS), size=300, p=CHANCE)
    quality = means[np.arange(300), arm] + 0.2 * rng.standard_normal(300)
    made = armlet.Bandit(ARMS, 2, outcomes={"quality": 1.0, "cost": -5.0}, seed=1)
    costs = PRICES[arm] * np.exp(0.5 * rng.standard_normal(300))
    made.partial_fit(X, [ARMS[each] for each in arm], {"quality": quality, "cost": costs})
    return made


def unrelated() -> Float64:
    """Return linear policies that score qualities and costs in their own ways, (40, 2, 4, 3)."""
    rng = Seeds(0, "dials").rng("policies")
    thetas = 0.3 * rng.standard_normal((POLICIES, 2, len(ARMS), 3))
    thetas[:, 1, :, 0] += PRICES
    return thetas


def targets(which: Valued) -> tuple[Any, list[dict[str, float]]]:
    """Return policies, and their dials."""
    weights = np.concatenate([[0.0], -np.geomspace(0.5, 60.0, 19)]) if which == ONE else -np.arange(5.0)
    dials = [{"quality": 1.0, "cost": float(weight)} for weight in weights]
    return (bandit() if which == ONE else unrelated()), dials


@cache
def true_values(which: Valued) -> Float64:
    """Return what every value is, (P, 2): means over many requests."""
    valued, dials = targets(which)
    sums = np.zeros(2)
    for part in range(4):
        rng = Seeds(part, "dials").rng("truth")
        X, means = requests(rng, TRUE)
        sums = sums + _played_means(valued, dials, X, means)
    return np.asarray(sums / 4)


def _played_means(valued: Any, dials: Sequence[dict[str, float]], X: Float64, means: Float64) -> Float64:
    costs = PRICES * np.exp(0.5**2 / 2)
    found = []
    for arms in _arms(valued, dials, X):
        found.append((means[np.arange(len(X)), arms].mean(), costs[arms].mean()))
    return np.array(found)


def _arms(valued: Any, dials: Sequence[dict[str, float]], X: Float64) -> Iterator[Int64]:
    if isinstance(valued, armlet.Bandit):
        place = {name: index for index, name in enumerate(ARMS)}
        for dial in dials:
            names, inverse = np.unique(valued.predict(X, weights=dial), return_inverse=True)
            yield np.array([place[str(name)] for name in names])[inverse]
        return
    Z = np.column_stack([np.ones(len(X)), X])
    for theta in valued:
        quality, cost = (Z @ part.T for part in theta)
        for dial in dials:
            yield (quality + dial["cost"] * cost).argmax(axis=1)


def covers(found: ParetoCurve, truth: Float64) -> tuple[bool, bool]:
    """Return whether all intervals of policies hold, and whether all of 95 % each would."""
    inside = []
    for shrunk in (1.0, NormalDist().inv_cdf(0.975) / NormalDist().inv_cdf(0.5 + found.each / 2)):
        parts = [np.column_stack([part[name][1:] for name in NAMES]) for part in (found.values, found.low, found.high)]
        values, low, high = parts
        low, high = values - shrunk * (values - low), values + shrunk * (high - values)
        judged = np.isfinite(low)
        inside.append(bool(((low <= truth) & (truth <= high))[judged].all()))
    return inside[0], inside[1]


def coverage(case: DialCase, seeds: Sequence[int]) -> dict[str, float]:
    """Return how often all intervals hold, how often those of 95 % each would, the level of each, and those judged.

    Examples
    --------
    >>> sorted(coverage(DialCase("by chance", "noise", 500, "one bandit"), range(2)))
    ['each', 'judged', 'single', 'together']
    """
    truth, (valued, dials) = true_values(case.targets), targets(case.targets)
    shares = []
    for seed in seeds:
        result = armlet.evaluate(log_of(seed, case), valued, dials=dials, checks="none")
        judged = float(np.mean([word != "not judged" for word in result.standing[1:]]))
        shares.append((*covers(result, truth), result.each, judged))
    return dict(zip(("together", "single", "each", "judged"), np.mean(shares, axis=0).tolist(), strict=True))


def drawing(seed: int) -> str:
    """Return the curve of one log, as SVG."""
    log = log_of(seed, DialCase("by chance", "noise", 5000, ONE))
    found = armlet.evaluate(log, bandit(), dials=20)
    return svg(found.plot(), key="pareto", alt=found.answer)


KINDS: Final[tuple[tuple[Quality, int, Valued], ...]] = (
    ("noise", 1000, ONE),
    ("noise", 5000, ONE),
    ("clicks", 5000, ONE),
    ("noise", 5000, MANY),
)
CASES: Final = tuple(DialCase(design, *kind) for design in DESIGNS for kind in KINDS)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="How often all intervals of a Pareto curve hold together.")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--first", type=int, default=1000, help="the first seed")
    parser.add_argument("--figure", type=Path, help="draw the curve of one log into this file, and print no table")
    a = parser.parse_args()
    if a.figure is not None:
        a.figure.write_text(drawing(a.first))
        return
    seeds = range(a.first, a.first + a.runs)
    print(f"share of {a.runs:,} logs in which all intervals hold, seeds from {a.first}")
    head = f"{'design':<10} {'quality':<7} {'rows':>6} {'valued':<12}"
    print(f"{head} {'together':>8} {'95 % each':>9} {'level':>7} {'judged':>6}")
    for case in CASES:
        found = coverage(case, seeds)
        cells = f"{found['together']:8.3f} {found['single']:9.3f} {found['each']:7.4f} {found['judged']:6.2f}"
        print(f"{case} {cells}", flush=True)


if __name__ == "__main__":
    main()
