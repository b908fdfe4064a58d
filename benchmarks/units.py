"""What free units cost a late step, next to units as given.

    python benchmarks/units.py 5          # rounds; prints one line of JSON

Every pair meets the same gaussian contexts, which need no other units, and goes on from a state of its own after many
steps; where a step is dear, most are learned from a log of random arms. Free units solve all arms again whenever
rows have grown by a tenth, so a dear window is a tenth of the rows and has one such step in it. A figure is CPU time a
step of the compiled loop over a window, less the copy of the state that each window begins with. The two forms take
turns, so that a busy machine hits both.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from time import process_time
from typing import Any

import numpy as np

import armlet
from armlet import kernel
from armlet.policies import Algorithm1, ContextualEpsilonGreedy, LinUCB, ThompsonSampling
from armlet.types import Float64
from timing import SIZES

FORMS = ("as given", "free")
ROWS = 20_000  # as many as the longest window


@dataclass(frozen=True, slots=True)
class Contest:
    """A policy in both forms; `make` takes the units and K, and counts of steps are for d below 128 and for it."""

    make: Callable[[str, int], Any]
    warm: tuple[int, int]
    window: tuple[int, int]
    logged: tuple[int, int] = (0, 0)  # before those


CONTESTS = {
    "Algorithm 1's family, by steps": Contest(
        lambda units, n_arms: Algorithm1(p=4 * n_arms, units=units),
        warm=(100_000, 100_000),
        window=(20_000, 10_000),
    ),
    "Algorithm 1's family, by evidence": Contest(
        lambda units, n_arms: ContextualEpsilonGreedy(p=4 * n_arms, units=units),
        warm=(100_000, 100_000),
        window=(20_000, 10_000),
    ),
    "LinUCB": Contest(
        lambda units, _: LinUCB(units=units), warm=(20_000, 100), window=(20_000, 2_000), logged=(0, 20_000)
    ),
    "Thompson sampling": Contest(
        lambda units, _: ThompsonSampling(units=units), warm=(20_000, 100), window=(20_000, 2_000), logged=(0, 20_000)
    ),
}


@dataclass(slots=True)
class Run:
    """One form of a policy, on its way through the same rows again and again."""

    policy: Any
    X: Float64
    R: Float64
    state: Any
    t: int = 0

    def learn(self, rows: int) -> None:
        """Learn some rows of a log, in which every arm is as likely as any other."""
        n_arms, dim = self.R.shape[1], self.X.shape[1]
        bandit = armlet.Bandit(range(n_arms), dim, policy=self.policy, seed=1)
        past, arms = np.arange(rows) % ROWS, np.random.default_rng(1).integers(n_arms, size=rows)
        bandit.partial_fit(self.X[past], arms, self.R[past, arms])
        self.state, self.t = bandit.state.copy(), bandit.t - 1

    def play(self, steps: int) -> None:
        """Go on for so many steps."""
        while steps > 0:
            size = min(steps, ROWS)
            self.state, self.t = self.rollout(size), self.t + size
            steps -= size

    def rollout(self, steps: int, seed: int = 1) -> Any:
        """Play some steps from here, on a copy of the state, and give that."""
        X, R = self.X[:steps], self.R[:steps]
        rule = self.policy.rule()
        return kernel.rollout(X, R, start=self.state, rule=rule, seed=seed, t=self.t, propensities="skipped").statistics

    def step_us(self, steps: int) -> float:
        """Measure a late step; the same ones each time."""
        copied = seconds(self.state.copy)
        return 1e6 * (seconds(lambda: self.rollout(steps, seed=2)) - copied) / steps


def seconds(call: Callable[[], object]) -> float:
    started = process_time()
    call()
    return process_time() - started


def gaussian_rows(dim: int, n_arms: int) -> tuple[Float64, Float64]:
    """Draw contexts, and what every arm pays in each."""
    rng = np.random.default_rng(dim)
    theta = rng.standard_normal((n_arms, dim)) / np.sqrt(dim)
    X = rng.standard_normal((ROWS, dim))
    return X, X @ theta.T + rng.standard_normal((ROWS, n_arms))


def figures(contest: Contest, dim: int, n_arms: int, rounds: int) -> dict[str, list[float]]:
    """Measure both forms at one size, round by round."""
    X, R = gaussian_rows(dim, n_arms)
    policies = {form: contest.make(form, n_arms) for form in FORMS}
    runs = {form: Run(policy, X, R, policy.init(n_arms, dim)) for form, policy in policies.items()}
    large = dim >= 128
    for run in runs.values():
        if contest.logged[large]:
            run.learn(contest.logged[large])
        run.play(contest.warm[large])
    turns = [{form: run.step_us(contest.window[large]) for form, run in runs.items()} for _ in range(rounds)]
    return {form: [turn[form] for turn in turns] for form in FORMS}


def run_all(rounds: int) -> dict[str, dict[str, dict[str, list[float]]]]:
    return {
        size.label: {name: figures(contest, size.dim, size.n_arms, rounds) for name, contest in CONTESTS.items()}
        for size in SIZES
    }


if __name__ == "__main__":
    print(json.dumps(run_all(rounds=int(sys.argv[1]) if len(sys.argv) > 1 else 5)))
