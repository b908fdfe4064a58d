"""What it costs to turn the dial between quality and cost: one scalar reward, a model an outcome by hand, outcomes.

    python benchmarks/dial.py                     # 20 seeds of 8,000 requests: two minutes of one core
    python benchmarks/dial.py --seeds 0-9 --tune  # how much the one by hand explores, chosen on seeds not shown

Ten models by price, five kinds of requests; quality is judged 200 requests late, the cost is known at once, and
half-way a dollar weighs ten times as much. Regret is in worth, quality less dollars by their weight of the moment, by
true means.

scalar      one bandit, whose reward is quality - weight * cost, by the weight of the moment at which it is learned
by hand     a greedy bandit for each outcome, whose scores are added by weight; epsilon and the propensity by hand
outcomes    armlet.Bandit(outcomes=...), and decide(x, weights=...) from the turn on, with marginal propensities

All are as they come, but for the epsilon of the second, the best of five on seeds 0 to 9. Intervals are 95 %, of the
mean over seeds.
"""

from __future__ import annotations

import argparse
import sys
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import process_time

import numpy as np

import armlet
from armlet.policies import Greedy
from armlet.types import Float64, Int64
from budgets import interval, seeds_of

MODELS, KINDS, LATE = 10, 5, 200
PRICES = 0.0005 * 60.0 ** (np.arange(MODELS) / (MODELS - 1))  # dollars a request, on average
BEFORE, AFTER = 10.0, 100.0  # what a dollar weighs
EPSILONS = (0.01, 0.02, 0.05, 0.1, 0.2)
EPSILON = 0.02  # by --tune, on seeds 0 to 9


@dataclass(frozen=True, slots=True)
class Requests:
    """What comes, whatever is decided."""

    X: Float64  # (T, 5): one-hot kinds
    quality: Float64  # (T, 10), as judged
    cost: Float64  # (T, 10), in dollars
    worth: Float64  # (T, 10): true means at the weight of the moment

    @classmethod
    def draw(cls, seed: int, n: int) -> Requests:
        """Draw n requests: dear models answer better, kinds differ in which model is worth it, and in length."""
        rng = np.random.default_rng([29, 2, seed])
        ability = 0.4 + 0.45 * np.sqrt(np.arange(MODELS) / (MODELS - 1))
        means = ability + 0.08 * rng.standard_normal((KINDS, MODELS))
        costs = PRICES * np.exp(0.3 * rng.standard_normal((KINDS, 1)))
        kinds = rng.integers(KINDS, size=n)
        noise, length = rng.standard_normal((n, 1)), np.exp(0.3 * rng.standard_normal((n, 1)) - 0.045)
        weights = np.where(np.arange(n) < n // 2, BEFORE, AFTER)[:, None]
        worth = means[kinds] - weights * costs[kinds]
        return cls(np.eye(KINDS)[kinds], means[kinds] + 0.2 * noise, costs[kinds] * length, worth)

    def __len__(self) -> int:
        return len(self.X)

    def weight(self, t: int) -> float:
        """Return what a dollar weighs at a step."""
        return BEFORE if t < len(self) // 2 else AFTER

    def regret(self, arms: Int64) -> Float64:
        """Return how far the worth of what was played lies below the best, (T,)."""
        return self.worth.max(axis=1) - self.worth[np.arange(len(self)), arms]


def play_scalar(given: Requests, seed: int) -> Int64:
    """One bandit and one reward."""
    bandit = armlet.Bandit(range(MODELS), KINDS, seed=seed)
    arms, late = np.empty(len(given), dtype=np.int64), deque[tuple[armlet.Decision, float, float]]()
    for t, x in enumerate(given.X):
        decision = bandit.decide(x)
        arms[t] = arm = int(decision.arm)
        late.append((decision, float(given.quality[t, arm]), float(given.cost[t, arm])))
        if len(late) > LATE:
            first, quality, cost = late.popleft()
            bandit.learn(first, quality - given.weight(t) * cost)
    return arms


def play_by_hand(given: Requests, seed: int, epsilon: float = EPSILON) -> Int64:
    """A model for each outcome; the propensity, kept as a log would need it, is not used further."""
    quality, cost = (armlet.Bandit(range(MODELS), KINDS, policy=Greedy(), seed=seed) for _ in range(2))
    rng, arms = np.random.default_rng(seed), np.empty(len(given), dtype=np.int64)
    late: deque[tuple[int, int]] = deque()
    propensities = np.empty(len(given))
    for t, x in enumerate(given.X):
        row = x[None]
        scores = quality.predict_expectations(row)[0] - given.weight(t) * cost.predict_expectations(row)[0]
        best = int(scores.argmax())
        arms[t] = arm = int(rng.integers(MODELS)) if rng.random() < epsilon else best
        propensities[t] = epsilon / MODELS + (1.0 - epsilon) * (arm == best)
        cost.partial_fit(row, [arm], [given.cost[t, arm]])
        late.append((t, arm))
        if len(late) > LATE:
            then, played = late.popleft()
            quality.partial_fit(given.X[then][None], [played], [given.quality[then, played]])
    return arms


def play_outcomes(given: Requests, seed: int) -> Int64:
    """One bandit, two outcomes, and the dial."""
    bandit = armlet.Bandit(range(MODELS), KINDS, outcomes={"quality": 1.0, "cost": -BEFORE}, seed=seed)
    arms, late = np.empty(len(given), dtype=np.int64), deque[tuple[armlet.Decision, float]]()
    for t, x in enumerate(given.X):
        decision = bandit.decide(x, weights={"cost": -given.weight(t)}, propensity="marginal")
        arms[t] = arm = int(decision.arm)
        bandit.learn(decision, {"cost": float(given.cost[t, arm])})
        late.append((decision, float(given.quality[t, arm])))
        if len(late) > LATE:
            first, quality = late.popleft()
            bandit.learn(first, {"quality": quality})
    return arms


PLAYERS: dict[str, Callable[[Requests, int], Int64]] = {
    "scalar": play_scalar,
    "by hand": play_by_hand,
    "outcomes": play_outcomes,
}


def measure(play: Callable[[Requests, int], Int64], seed: int, n: int) -> Float64:
    """Return regret a step before the turn, in a tenth of the run after it, and then; and CPU a step in us."""
    given = Requests.draw(seed, n)
    started = process_time()
    regret = given.regret(play(given, seed))
    spent = 1e6 * (process_time() - started) / n
    half, soon = n // 2, n // 2 + n // 10
    return np.array([regret[:half].mean(), regret[half:soon].mean(), regret[soon:].mean(), spent])


def cells(found: Float64) -> str:
    """Write the columns of a player, (seeds, 4)."""
    regrets = ["{:.4f} [{:.4f}, {:.4f}]".format(*interval(list(column))) for column in found.T[:3]]
    return " | ".join([*regrets, f"{np.median(found[:, 3]):.0f}"])


def compared(found: dict[str, Float64]) -> str:
    """Say by how much outcomes are below the one by hand after the turn, seed by seed."""
    after = [found["outcomes"][:, column] - found["by hand"][:, column] for column in (1, 2)]
    words = ["{:.4f} [{:.4f}, {:.4f}]".format(*interval(list(each))) for each in after]
    return f"outcomes less by hand: {words[0]} in the first tenth after the turn, {words[1]} then"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=seeds_of, default=seeds_of("100-119"), metavar="FIRST-LAST")
    parser.add_argument("--requests", type=int, default=8_000, metavar="N")
    parser.add_argument("--tune", action="store_true", help="the one by hand, with every epsilon")
    given = parser.parse_args(arguments)
    if len(given.seeds) < 2:
        parser.error("--seeds: give at least two, such as 100-119")
    players = PLAYERS
    if given.tune:
        players = {f"by hand, {e:g}": lambda rows, seed, e=e: play_by_hand(rows, seed, e) for e in EPSILONS}
    print(f"{given.requests:,} requests, seeds {given.seeds[0]} to {given.seeds[-1]}; regret a request\n")
    print("| | before the turn | first tenth after | then | CPU a request, us |\n|---|---|---|---|---|")
    runs: dict[str, list[Float64]] = {name: [] for name in players}
    for seed in given.seeds:  # in turns, so that a busy machine hits all
        print(f"seed {seed}", end="\r", file=sys.stderr, flush=True)
        for name, play in players.items():
            runs[name].append(measure(play, seed, given.requests))
    found = {name: np.array(each) for name, each in runs.items()}
    for name, each in found.items():
        print(f"| {name} | {cells(each)} |")
    if not given.tune:
        print(f"\n{compared(found)}")


if __name__ == "__main__":
    main()
