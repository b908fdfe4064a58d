"""Whether a budget is kept, and what it costs: ten environments, next to the best fixed price in hindsight.

    python benchmarks/budgets.py                      # 20 seeds of 100,000 decisions: ten minutes of two cores
    python benchmarks/budgets.py --seeds 0-9          # those by which the constants of reference/pacer.py were chosen
    python benchmarks/budgets.py --decisions 10000 --only late "heavy tails"
    python benchmarks/budgets.py --speed              # what a budget adds to a step, in CPU time

Four models, the best of which costs thirty times as much as the cheapest; quality is linear in four features, with
noise of the size of the differences. The bandit is the default one, with a budget, and learns everything from scratch.
The fixed price knows the true means of qualities and costs, and is the lowest under which its decisions on the same
rows cost no more than the budget: no bandit with a fixed price that has to learn can do better on average. Rewards are
worths under the weights of the bandit, without the price. Intervals are 95 %, of the mean over seeds.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from time import process_time

import numpy as np

import armlet
from armlet.inference.intervals import t_quantile
from armlet.types import Float64, Int64

ARMS = ("small", "medium", "large", "best")
PRICES = 0.001 * 30.0 ** (np.arange(4) / 3)
FEATURES = ("code", "language", "depth", "length")
SPEND, REWARD = 0.02, 0.97  # the bars: spend within 2 % of the budget, reward at least .97 of the best fixed price's


@dataclass(frozen=True, slots=True)
class Environment:
    """What is spent on whom; the budget is a share of the way from what the cheapest arm costs to what is best."""

    share: float = 0.4
    known: bool = False  # prices
    late: int = 0  # decisions until a cost is reported
    correlation: float = 0.0  # of the noise of cost with that of quality
    by_length: bool = False  # cost goes with the length of a prompt, which is a feature
    tail: float = 0.3  # deviation of the logarithm of costs
    second_half: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0)  # what prices are multiplied by half-way
    periods: int = 1
    weight: float = 0.0  # of cost, in the worth of a decision


ENVIRONMENTS = {
    "known prices": Environment(known=True, tail=0.0),
    "late": Environment(late=200),
    "correlated": Environment(correlation=0.7, weight=-3.0),
    "long prompts": Environment(by_length=True),
    "tight": Environment(share=0.05),
    "ample": Environment(share=math.inf),
    "price falls": Environment(known=True, tail=0.0, second_half=(1.0, 3.0, 1.0, 0.2)),
    "price rises": Environment(known=True, tail=0.0, second_half=(1.0, 1.0, 1.0, 5.0)),
    "heavy tails": Environment(tail=1.5),
    "ten periods": Environment(by_length=True, periods=10),
}


@dataclass(frozen=True, slots=True)
class Rows:
    """What happens, whatever is decided: contexts, and quality and cost of every arm, (T, K), with their means."""

    X: Float64
    prices: tuple[Float64, Float64]  # (K,): in the first half and in the second
    means: tuple[Float64, Float64]
    quality: Float64
    cost: Float64

    @classmethod
    def draw(cls, environment: Environment, seed: int, n: int) -> Rows:
        """Draw n rows."""
        rng = np.random.default_rng([29, seed])
        X = rng.standard_normal((n, len(FEATURES)))
        X[:, 3] = np.exp(0.7 * X[:, 3] - 0.245)  # lengths, 1 on average
        slopes = np.column_stack([0.08 * rng.standard_normal((len(ARMS), 3)), np.zeros(len(ARMS))])
        quality = 0.4 + 0.35 * np.arange(4) / 3 + X @ slopes.T
        prices = PRICES, PRICES * environment.second_half
        half = np.arange(n)[:, None] < n // 2
        cost = np.where(half, *prices) * (X[:, 3:] if environment.by_length else 1.0)
        shock, own = rng.standard_normal((2, n, 1))
        tail, rho = environment.tail, environment.correlation
        noise = np.exp(tail * (rho * shock + math.sqrt(1.0 - rho * rho) * own) - tail * tail / 2)
        return cls(X, prices, (quality, cost), quality + 0.3 * shock, cost * noise)

    def play(self, price: float, weight: float) -> Int64:
        """Return the arms that are best by their means at a price."""
        quality, cost = self.means
        return np.argmax(quality + (weight - price) * cost, axis=1)

    def totals(self, arms: Int64, weight: float) -> tuple[float, float]:
        """Return the reward and the spend of the arms played."""
        at = np.arange(len(arms)), arms
        spend = float(self.cost[at].sum())
        return float(self.quality[at].sum()) + weight * spend, spend

    def budget(self, environment: Environment) -> float:
        """Return the total that may be spent; with an infinite share three tenths more than what is best costs."""
        least, most = (self.totals(self.play(price, environment.weight), 0.0)[1] for price in (1e9, 0.0))
        return 1.3 * most if math.isinf(environment.share) else least + environment.share * (most - least)

    def best_fixed(self, budget: float, weight: float) -> float:
        """Return the reward of the lowest price at which no more than the budget is spent, to a thousandth."""
        low, high = 1e-3, 1e6
        if self.totals(self.play(0.0, weight), weight)[1] <= budget:
            return self.totals(self.play(0.0, weight), weight)[0]
        while high / low > 1.001:
            price = math.sqrt(low * high)
            low, high = (low, price) if self.totals(self.play(price, weight), weight)[1] <= budget else (price, high)
        return self.totals(self.play(high, weight), weight)[0]


@dataclass(frozen=True, slots=True)
class Played:
    """One environment on one seed, as shares of the budget and of the best fixed price's reward."""

    spend: float
    reward: float
    worst_period: float  # the share of its budget that lies furthest from 1, after the first
    price: float  # at the end
    unpaced: float  # what the same bandit without a budget spends; nan if it was not asked

    @property
    def is_kept(self) -> bool:
        """Whether the spend is within the bars: less is fine where nothing more was to be bought, at a price of 0."""
        if not math.isnan(self.unpaced):
            return self.spend <= self.unpaced * (1.0 + SPEND)
        return self.spend <= 1.0 + SPEND and (self.spend >= 1.0 - SPEND or self.price == 0.0)


def play(
    rows: Rows, environment: Environment, seed: int, budget: armlet.Budget | None
) -> tuple[Int64, list[float], float]:
    """Return the arms that a bandit plays, what it spends in every period, and the price at the end."""

    def priced(prices: Float64) -> dict[str, dict[str | int, float]]:
        return {"cost": dict(zip(ARMS, prices.tolist(), strict=True))}

    bandit = armlet.Bandit(
        ARMS,
        features=FEATURES,
        outcomes={"quality": 1.0, "cost": environment.weight},
        known=priced(rows.prices[0]) if environment.known else None,
        budget=budget,
        seed=seed,
    )
    n, places = len(rows.X), {arm: k for k, arm in enumerate(ARMS)}
    arms, late, spent = np.empty(n, dtype=np.int64), deque[tuple[armlet.Decision, float]](), [0.0] * environment.periods
    for t, x in enumerate(rows.X):
        if environment.known and t == n // 2:
            bandit.replace(known=priced(rows.prices[1]))
        decision = bandit.decide(x)
        arms[t] = arm = places[str(decision.arm)]
        quality, cost = float(rows.quality[t, arm]), float(rows.cost[t, arm])
        spent[t * environment.periods // n] += cost
        if environment.known:
            bandit.learn(decision, {"quality": quality})
        elif not environment.late:
            bandit.learn(decision, {"quality": quality, "cost": cost})
        else:
            bandit.learn(decision, {"quality": quality})
            late.append((decision, cost))
            if len(late) > environment.late:
                first, reported = late.popleft()
                bandit.learn(first, {"cost": reported})
    return arms, spent, 0.0 if bandit.budget is None else bandit.budget.price


def judge(task: tuple[str, int], n: int) -> Played:
    """Play one environment on one seed."""
    name, seed = task
    environment = ENVIRONMENTS[name]
    rows, weight = Rows.draw(environment, seed, n), environment.weight
    total = rows.budget(environment)
    size, each = n // environment.periods, total / environment.periods
    period = {"horizon": n} if environment.periods == 1 else {"period": size}
    arms, spent, price = play(rows, environment, seed, armlet.Budget("cost", total=each, **period))
    reward, spend = rows.totals(arms, weight)
    shares = [one / each for one in spent[1:]] or [spend / total]
    unpaced = math.nan
    if math.isinf(environment.share):
        unpaced = rows.totals(play(rows, environment, seed, None)[0], weight)[1]
    worst = max(shares, key=lambda share: abs(share - 1.0))
    return Played(spend / total, reward / rows.best_fixed(total, weight), worst, price, unpaced / total)


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return a mean and its 95 % interval by Student's t."""
    mean = float(np.mean(values))
    half = t_quantile(0.975, len(values) - 1) * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return mean, mean - half, mean + half


def line(name: str, played: Sequence[Played]) -> str:
    """Return the row of an environment, and whether it is within the bars on every seed."""
    spends, rewards = [one.spend for one in played], [one.reward for one in played]
    spend, reward = ("{:.4f} [{:.4f}, {:.4f}]".format(*interval(values)) for values in (spends, rewards))
    kept, earned = all(one.is_kept for one in played), min(rewards) >= REWARD
    notes = [f"spend {'kept' if kept else 'NOT KEPT'}, reward {'reached' if earned else 'NOT REACHED'}"]
    if math.isinf(ENVIRONMENTS[name].share):
        notes.append(f"without a budget {np.mean([one.unpaced for one in played]):.4f}")
    elif ENVIRONMENTS[name].periods > 1:
        worst = max((one.worst_period for one in played), key=lambda share: abs(share - 1.0))
        notes.append(f"worst period {worst:.4f}")
    elif ample := sum(one.price == 0.0 for one in played):
        notes.append(f"price 0 at the end on {ample}")
    ranges = f"{min(spends):.4f} to {max(spends):.4f}", f"{min(rewards):.4f}"
    return f"| {name} | {spend} | {ranges[0]} | {reward} | {ranges[1]} | {'; '.join(notes)} |"


def step_us(outcomes: dict[str, float] | None, budget: armlet.Budget | None, n: int = 20_000) -> float:
    """Return the CPU time of a decision and its reward, six arms and eight features, in microseconds."""
    rng = np.random.default_rng(1)
    X, arms = rng.standard_normal((n, 8)), list(range(6))
    bandit = armlet.Bandit(arms, 8, outcomes=outcomes, budget=budget, seed=1)
    started = process_time()
    for x in X:
        decision = bandit.decide(x)
        quality, cost = float(x[decision.arm]), 1.0 + int(decision.arm)
        bandit.learn(decision, quality if outcomes is None else {"quality": quality, "cost": cost})
    return 1e6 * (process_time() - started) / n


def speed(rounds: int = 9) -> None:
    """Print what outcomes and a budget add to a step; they take turns, so that a busy machine hits all."""
    weights, budget = {"quality": 1.0, "cost": -0.1}, armlet.Budget("cost", total=50_000.0, horizon=20_000)
    kinds = {"one reward": (None, None), "two outcomes": (weights, None), "with a budget": (weights, budget)}
    turns = [{name: step_us(*kind) for name, kind in kinds.items()} for _ in range(rounds)]
    for name in kinds:
        values = [turn[name] for turn in turns]
        ratios = [turn[name] / turn["two outcomes"] for turn in turns]
        print(f"{name:14} {np.median(values):6.2f} us a step, {np.median(ratios):.2f} times that of two outcomes")


def spread(
    work: Callable[[tuple[str, int]], Played], tasks: Sequence[tuple[str, int]], processes: int
) -> Iterator[Played]:
    """Work on tasks, in processes if they are several."""
    if processes == 1:
        yield from map(work, tasks)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(work, tasks)


def seeds_of(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=seeds_of, default=seeds_of("100-119"), metavar="FIRST-LAST")
    parser.add_argument("--decisions", type=int, default=100_000, metavar="N")
    parser.add_argument("--only", nargs="+", choices=ENVIRONMENTS, default=list(ENVIRONMENTS), metavar="NAME")
    parser.add_argument("--processes", type=int, default=min(os.cpu_count() or 1, 8), metavar="N")
    parser.add_argument("--speed", action="store_true")
    given = parser.parse_args(arguments)
    if given.speed:
        speed()
        return
    seeds: range = given.seeds
    if len(seeds) < 2:
        parser.error("--seeds: give at least two, such as 100-119")
    print(f"{given.decisions:,} decisions, seeds {seeds[0]} to {seeds[-1]}\n")
    print("| environment | spend / budget | least to most | reward / best fixed price | least | bars, on every seed |")
    print("|---|---|---|---|---|---|", flush=True)
    for done, name in enumerate(given.only, 1):
        played = []
        for one in spread(partial(judge, n=given.decisions), [(name, seed) for seed in seeds], given.processes):
            played.append(one)
            progress = f"{name}: seed {len(played)} of {len(seeds)}, environment {done} of {len(given.only)}"
            print(progress, end="\r", file=sys.stderr, flush=True)
        print(line(name, played), flush=True)


if __name__ == "__main__":
    main()
