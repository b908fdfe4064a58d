"""How often intervals of coefficients and contrasts cover, and anytime ones: one run of a small environment.

K = d = 3, contexts normal, and a constant; rewards linear with normal noise, or 0 and 1. Run as a module it
plays some thousand runs and prints a table: python -m armlet_lab.validation.coverage.coefficients --runs 2000
O(T) a run, a hundredth of a second for T = 2000.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from armlet.bandit import Bandit
from armlet.parallel import Seeds
from armlet.policies import Algorithm1, AutoEpsilonGreedy, ContextualEpsilonGreedy
from armlet.types import Bool, Float64, Policy

Environment: TypeAlias = Literal["equal arms", "gaps", "0/1"]

ENVIRONMENTS: Final[tuple[Environment, ...]] = ("equal arms", "gaps", "0/1")
POLICIES: Final[dict[str, Policy]] = {
    "p/t": Algorithm1(p=60, warmup="uniform", units="free"),
    "evidence": ContextualEpsilonGreedy(p=60),
    "evidence, late rewards": ContextualEpsilonGreedy(p=60),
    "auto": AutoEpsilonGreedy(),
    "Algorithm 1": Algorithm1(p=60),
}
HORIZON: Final = 2000
LOOKS: Final = (100, 200, 400, 800, 1400, 2000)
DIM: Final = 3


@dataclass(frozen=True, slots=True)
class Covered:
    """What one run's intervals covered at its end; anytime ones at all looks."""

    coefficients: Bool  # (K, D)
    contrasts: Bool  # (3,): of each pair of arms
    anytime: Bool  # (K, D)


def truth(environment: Environment) -> Float64:
    """Return constants and slopes, (K, 1 + d)."""
    if environment == "equal arms":
        return np.tile([0.2, 0.4, -0.3, 0.1], (3, 1))
    if environment == "gaps":
        return np.array([[0.5, 0.4, -0.3, 0.1], [0.2, -0.4, 0.3, 0.1], [0.0, 0.1, 0.1, -0.5]])
    return np.array([[0.5, 0.08, -0.06, 0.02], [0.4, -0.08, 0.06, 0.02], [0.3, 0.02, 0.02, -0.1]])


def run(environment: Environment, policy: Policy, seed: int, *, delay: int = 0) -> Covered:
    """Play one run, rewards coming so many steps late, and look at its intervals."""
    rng, theta = Seeds(seed, "coefficients").rng("rows and noise"), truth(environment)
    X = rng.uniform(-1, 1, (HORIZON, DIM)) if environment == "0/1" else rng.standard_normal((HORIZON, DIM))
    noise = rng.random(HORIZON) if environment == "0/1" else rng.standard_normal(HORIZON)
    bandit = Bandit(range(len(theta)), DIM, policy=policy, seed=seed)
    true = theta if bandit.settings.units == "free" else theta[:, 1:]
    anytime = np.ones(true.shape, dtype=np.bool_)
    pending = []
    for t in range(HORIZON):
        decision = bandit.decide(X[t])
        constant, *slopes = theta[int(decision.arm)]
        mean = (constant if bandit.settings.units == "free" else 0.0) + float(X[t] @ slopes)
        reward = float(noise[t] < mean) if environment == "0/1" else mean + 0.5 * noise[t]
        pending.append((decision, reward))
        if len(pending) > delay:
            bandit.learn(*pending.pop(0))
        if t + 1 in LOOKS:
            anytime &= _hits(bandit, true, "anytime")
    return Covered(_hits(bandit, true, "fixed"), _contrasts(bandit, theta), anytime)


def _hits(bandit: Bandit, true: Float64, interval: Literal["fixed", "anytime"]) -> Bool:
    """Return which coefficients lie in their intervals; none is given before there are enough rows: that is no miss."""
    rows = bandit.inference.intervals(interval=interval)
    hits = [
        row.low is None or row.high is None or row.low <= value <= row.high
        for row, value in zip(rows, true.reshape(-1), strict=True)
    ]
    return np.array(hits).reshape(true.shape)


def _contrasts(bandit: Bandit, theta: Float64) -> Bool:
    """Compare pairs on average over contexts, whose mean is zero; in units as given at a context of its own."""
    hits = []
    for a, b in ((0, 1), (0, 2), (1, 2)):
        x = None if bandit.settings.units == "free" else np.array([1.0, -1.0, 0.5])
        found = bandit.inference.contrast(a, b, x)
        gap = theta[a] - theta[b]
        value = float(gap[0] if x is None else x @ gap[1:])
        hits.append(found.low is not None and found.high is not None and found.low <= value <= found.high)
    return np.array(hits)


@dataclass(frozen=True, slots=True)
class Coverage:
    """Shares of runs, of one environment and one policy."""

    environment: str
    policy: str
    runs: int
    coefficients: float  # mean over all coefficients
    worst: float  # the coefficient that is covered least often
    contrasts: float
    anytime: float  # all looks, the coefficient that is covered least often


def coverage(environment: Environment, policy: str, seeds: Iterable[int]) -> Coverage:
    """Play a run for every seed, and count.

    Examples
    --------
    >>> found = coverage("gaps", "evidence", range(3))
    >>> found.runs, 0 <= found.worst <= found.coefficients <= 1
    (3, True)
    """
    delay = 40 if "late" in policy else 0
    runs = [run(environment, POLICIES[policy], seed, delay=delay) for seed in seeds]
    single = np.mean([each.coefficients for each in runs], axis=0)
    return Coverage(
        environment,
        policy,
        len(runs),
        float(single.mean()),
        float(single.min()),
        float(np.mean([each.contrasts for each in runs])),
        float(np.mean([each.anytime for each in runs], axis=0).min()),
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="How often intervals of coefficients cover.")
    parser.add_argument("--runs", type=int, default=400, help="runs of each environment and policy")
    arguments = parser.parse_args()
    print(f"{'environment':<12} {'policy':<24} runs  coefficients  worst  contrasts  anytime, all looks")
    for environment in ENVIRONMENTS:
        for policy in POLICIES:
            if policy == "Algorithm 1" and environment == "0/1":
                continue  # it has no constant, and clicks need one
            c = coverage(environment, policy, range(arguments.runs))
            print(
                f"{environment:<12} {policy:<24} {c.runs:>4} {c.coefficients:>13.3f} {c.worst:>6.3f} "
                f"{c.contrasts:>10.3f} {c.anytime:>19.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
