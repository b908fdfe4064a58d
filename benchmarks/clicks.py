"""Clicks earned by default settings: two kinds of customer, two actions, clicks of 4 % against 3 %.

    python benchmarks/clicks.py 10        # so many environments; prints one line of JSON; about eight minutes

The kinds like different actions. Random play earns 3.5 % and knowing everything 4 %, and 100,000 customers bring
fewer than 4,000 clicks to learn from. Every row meets the same customers, who would click on the same actions, and has
a seed of its own in each environment. What a row earns is the mean click probability of the actions that it played:
clicks would add the same luck to all rows. Speed is not measured, so environments are played side by side.
"""

import json
import os
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import armlet
from armlet.environments import Customers
from armlet.types import Policy
from peers import VOWPAL_WABBIT
from timing import WorkerError, call
from venvs import InstallError, environment

STEPS = 100_000
ARMLET: dict[str, Policy] = {  # the first is held against the peers
    "Armlet, Algorithm 1, AutoEpsilonGreedy": armlet.AutoEpsilonGreedy(horizon=STEPS),
    "Armlet, Algorithm 1, p = 1000": armlet.Algorithm1(p=1000),
    "Armlet, Algorithm 1 on all data, p = 1000": armlet.ScheduledEpsilonGreedy(p=1000),
    "random play": armlet.Uniform(),
}
# defaults, and with the products of customer and action (-q ca), without which adf cannot tell the kinds apart
VOWPAL = {
    "vowpalwabbit adf epsilon": "--cb_explore_adf --epsilon 0.05",
    "vowpalwabbit adf epsilon, -q ca": "--cb_explore_adf --epsilon 0.05 -q ca",
    "vowpalwabbit adf squarecb": "--cb_explore_adf --squarecb",
    "vowpalwabbit adf squarecb, -q ca": "--cb_explore_adf --squarecb -q ca",
    "vowpalwabbit cb_explore epsilon": "--cb_explore 2 --epsilon 0.05",
}
TUNED = {  # the best learning rate of 0.5 (its default), 0.05 and 0.005, chosen on other environments
    "vowpalwabbit adf epsilon, -q ca -l 0.005": "--cb_explore_adf --epsilon 0.05 -q ca -l 0.005",
    "vowpalwabbit adf squarecb, -q ca -l 0.005": "--cb_explore_adf --squarecb -q ca -l 0.005",
}


class Draws(NamedTuple):
    """One environment, all drawn."""

    seed: int
    X: NDArray[np.float64]  # (T, 2): one-hot customers
    clicks: NDArray[np.float64]  # (T, 2): whether each action would be clicked on
    means: NDArray[np.float64]  # (T, 2): its probability


def draw(seed: int) -> Draws:
    which, contexts, noise = (np.random.default_rng([seed, part]) for part in range(3))
    environment = Customers.draw(which)
    X = environment.contexts(contexts, STEPS)
    return Draws(seed, X, environment.rewards(noise, X), environment.means(X))


def play(policy: Policy, draws: Draws) -> float:
    """Let one of our policies decide and learn, customer by customer."""
    bandit = armlet.Bandit(arms=[0, 1], dim=2, policy=policy, seed=draws.seed)
    earned = 0.0
    for x, clicks, means in zip(draws.X, draws.clicks.tolist(), draws.means.tolist(), strict=True):
        decision = bandit.decide(x)
        arm = int(decision.arm)
        bandit.learn(decision, clicks[arm])
        earned += means[arm]
    return earned / STEPS


def save(draws: Draws, folder: Path) -> Path:
    """Write an environment down for an environment that does not know it."""
    path = folder / f"{draws.seed}.npz"
    np.savez(path, kinds=draws.X.argmax(axis=1), clicks=draws.clicks, means=draws.means)
    return path


def peer_rates(python: Path, options: str, environments: Iterable[Path]) -> list[float]:
    def rate(path: Path) -> float:
        job = json.dumps({"options": options, "rows": str(path), "seed": int(path.stem)})
        return float(str(call(python, "clicks_worker.py", job)["rate"]))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(rate, environments))


def peers(environments: list[Draws]) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Measure the peers in their own environment, and say why for those that cannot be measured."""
    rates: dict[str, list[float]] = {}
    failed: dict[str, str] = {}
    try:
        python = environment(VOWPAL_WABBIT).python
    except InstallError as error:
        return rates, {VOWPAL_WABBIT.name: str(error)}
    with tempfile.TemporaryDirectory() as folder:
        paths = [save(draws, Path(folder)) for draws in environments]
        for label, options in (VOWPAL | TUNED).items():
            try:
                rates[label] = peer_rates(python, options, paths)
            except WorkerError as error:
                failed[label] = str(error)
    return rates, failed


def report(n_environments: int) -> dict[str, object]:
    environments = [draw(seed) for seed in range(1, n_environments + 1)]
    ours = {label: [play(policy, draws) for draws in environments] for label, policy in ARMLET.items()}
    theirs, failed = peers(environments)
    least, most = (float(np.mean([how(draws.means) for draws in environments])) for how in (np.mean, best))
    tuned = {label: theirs.pop(label) for label in TUNED if label in theirs}
    frame = {"steps": STEPS, "random": least, "best": most}
    return {**frame, "ours": ours, "peers": theirs, "tuned": tuned, "failed": failed}


def best(means: NDArray[np.float64]) -> float:
    return float(means.max(axis=1).mean())


if __name__ == "__main__":
    print(json.dumps(report(n_environments=int(sys.argv[1]) if len(sys.argv) > 1 else 10)))
