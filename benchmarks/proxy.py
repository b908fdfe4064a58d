"""A proxy now and the truth later: what a provisional reward saves when rewards are late, and what it leaves behind.

    python benchmarks/proxy.py               # 24 seeds of 10,000 steps, six environments: five minutes of one core
    python benchmarks/proxy.py --steps 2000 --only scheduling
    python benchmarks/proxy.py --state       # how far the state at the end is from one that never saw a proxy

The truth of a step comes a tenth of the run later. A proxy comes at once, is learned, and the truth replaces it by
`bandit.correct`. Four proxies, each with R2 = .5:

part      half of what chance adds to a reward is seen at once: the mean of the reward and of another draw like it.
          It explains half of the variance of rewards in a context, and is right on average
noise     the reward, and as much noise again: the same share in a context, with twice the variance
spread    the reward, and as much noise as rewards spread over all contexts and arms: half of all variance. Where
          rewards depend on contexts and arms more than on chance, it says much less about an arm than a reward does
taste     the reward, and a constant for each arm that spreads as much, as of a judge that likes long answers: wrong
          about which arm is best, until the truth comes

Environments are the library's families; the policy is the default with nothing set, and nothing was chosen on any seed.
Regret is by true means. Ratios are of means over seeds, with 95 % intervals by bootstrap over seeds.
"""

from __future__ import annotations

import argparse
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

import armlet
from armlet.environments.families import FAMILIES
from armlet.stores import Memory, Store
from armlet.types import Float64, Int64
from armlet_lab.contests.contest import ratio
from budgets import seeds_of

Kind = Literal["part", "noise", "spread", "taste"]
KINDS: tuple[Kind, ...] = get_args(Kind)
LATE = 0.1  # of the steps
BAR = 1.2
QUICK = [name for name in FAMILIES if name != "gaussian d = 30"]  # which takes as long as all others; --only has it
EXAMPLES = 10_000  # rows that say how rewards spread


@dataclass(frozen=True, slots=True)
class Rows:
    """What happens, whatever is decided: contexts, rewards and means of every arm, and its proxies."""

    X: Float64
    rewards: Float64  # (T, K)
    means: Float64  # (T, K)
    proxies: dict[Kind, Float64]  # (T, K) each

    @classmethod
    def draw(cls, family: str, seed: int, n: int) -> Rows:
        """Draw n rows of an environment of its own."""
        which, contexts, noise, other = (np.random.default_rng([29, 3, seed, part]) for part in range(4))
        environment = FAMILIES[family](which)
        X = environment.contexts(contexts, n)
        rewards, means, again = environment.rewards(noise, X), environment.means(X), environment.rewards(other, X)
        spread = float(environment.rewards(other, environment.contexts(other, EXAMPLES)).std())
        taste = other.standard_normal(environment.n_arms)
        proxies: dict[Kind, Float64] = {
            "part": (rewards + again) / 2.0,
            "noise": rewards + again - means,
            "spread": rewards + spread * other.standard_normal(rewards.shape),
            "taste": rewards + spread / taste.std() * taste,
        }
        return cls(X, rewards, means, proxies)

    def regret(self, arms: Int64) -> float:
        """Return what was lost against the best arms, over all steps."""
        return float((self.means.max(axis=1) - self.means[np.arange(len(arms)), arms]).sum())


def play(rows: Rows, late: int, proxy: Float64 | None, seed: int) -> tuple[Int64, armlet.Bandit]:
    """Decide, learn what there is, and put the truth in its place when it comes; all truths have come at the end."""
    bandit = armlet.Bandit(range(rows.rewards.shape[1]), rows.X.shape[1], seed=seed)
    arms, waiting = np.empty(len(rows.X), dtype=np.int64), deque[tuple[int, armlet.Decision]]()

    def settle() -> None:
        t, decision = waiting.popleft()
        truth = float(rows.rewards[t, arms[t]])
        if proxy is None:
            bandit.learn(decision, truth)
        else:
            bandit.correct(decision, float(proxy[t, arms[t]]), truth)

    for t, x in enumerate(rows.X):
        decision = bandit.decide(x)
        arms[t] = arm = int(decision.arm)
        waiting.append((t, decision))
        if proxy is not None:
            bandit.learn(decision, float(proxy[t, arm]))
        if len(waiting) > late:
            settle()
    while waiting:
        settle()
    return arms, bandit


def regrets(family: str, seed: int, n: int) -> list[float]:
    """Return the regret without delay, waiting, and with each proxy."""
    rows, late = Rows.draw(family, seed, n), round(LATE * n)
    proxies: list[tuple[int, Float64 | None]] = [(0, None), (late, None), *((late, rows.proxies[k]) for k in KINDS)]
    return [rows.regret(play(rows, each, proxy, seed)[0]) for each, proxy in proxies]


def line(family: str, found: Float64) -> str:
    """Write the row of an environment from (seeds, 2 + kinds): regret at once, and ratios to it."""
    once, others = found[:, 0], found.T[1:]
    rng = np.random.default_rng(1)
    ratios = [ratio(each, once, rng) for each in others]
    cells = [f"{one.value:.2f} [{one.low:.2f}, {one.high:.2f}]" for one in ratios]
    met = ", ".join(kind for kind, one in zip(KINDS, ratios[1:], strict=True) if one.value <= BAR) or "none"
    return f"| {family} | {once.mean():.0f} | {' | '.join(cells)} | {met} |"


def sums_of(bandit: armlet.Bandit) -> Float64:
    return np.asarray(bandit.state.arrays()["records"])


def apart(one: Float64, other: Float64) -> float:
    """Return how far two arrays are apart, in units of the largest entry."""
    return float(np.abs(one - other).max() / np.abs(other).max())


def relearned(rows: Rows, arms: Int64, seed: int) -> armlet.Bandit:
    """Return a bandit that learned the truth of the same rows in their order, and nothing else."""
    bandit = armlet.Bandit(range(rows.rewards.shape[1]), rows.X.shape[1], seed=seed)
    for t, x in enumerate(rows.X):
        bandit.learn(bandit.decide(x, eligible=[int(arms[t])]), float(rows.rewards[t, arms[t]]))
    return bandit


def play_loop(rows: Rows, late: int, proxy: Float64) -> tuple[Int64, armlet.Bandit]:
    """Do as `play` does in a durable loop: proxies have rank 0, truths rank 1, which outranks them."""
    arms = np.empty(len(rows.X), dtype=np.int64)
    both = np.array([rows.rewards, proxy])
    ends = float(both.min()), float(both.max())
    with Store(Memory()) as store:
        loop = store.loop("proxy", arms=range(rows.rewards.shape[1]), dim=rows.X.shape[1], reward_range=ends, seed=1)
        for t in range(len(rows.X) + late):
            if t < len(rows.X):
                arms[t] = arm = int(loop.decide(rows.X[t], event=str(t)).arm)
                loop.reward(str(t), float(proxy[t, arm]), name="proxy")
            if (then := t - late) >= 0:
                loop.reward(str(then), float(rows.rewards[then, arms[then]]), name="truth", rank=1)
        return arms, loop.model()


def compare_states(family: str, seed: int, n: int) -> Iterator[str]:
    """Say how states after proxies and truths differ from one that never saw a proxy; all solved again at the end."""
    rows, late = Rows.draw(family, seed, n), round(LATE * n)
    proxy = rows.proxies["noise"]
    for name, (arms, corrected) in {
        "bandit": play(rows, late, proxy, seed),
        "loop": play_loop(rows, late, proxy),
    }.items():
        plain = relearned(rows, arms, seed)
        for bandit in (corrected, plain):
            bandit.state.renew()  # units and the ridge are found when rows have doubled: now, for both
        same = all(np.array_equal(getattr(corrected.state, sums), getattr(plain.state, sums)) for sums in ("n", "A"))
        records, found = (
            apart(*(take(one) for one in (corrected, plain)))
            for take in (sums_of, lambda b: b.predict_expectations(rows.X[:1000]))
        )
        yield f"| {family} | {name} | {'equal' if same else 'NOT EQUAL'} | {records:.0e} | {found:.0e} |"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=seeds_of, default=seeds_of("200-223"), metavar="FIRST-LAST")
    parser.add_argument("--steps", type=int, default=10_000, metavar="T")
    parser.add_argument("--only", nargs="+", choices=FAMILIES, default=QUICK, metavar="NAME")
    parser.add_argument("--state", action="store_true")
    given = parser.parse_args(arguments)
    if len(given.seeds) < 2:
        parser.error("--seeds: give at least two, such as 200-223")
    late, (first, *_, last) = round(LATE * given.steps), given.seeds
    seeds = f"seed {first}" if given.state else f"seeds {first} to {last}"
    print(f"{given.steps:,} steps, the truth after {late:,}; {seeds}\n")
    if given.state:
        print("| environment | | counts and A, bit for bit | sums, apart | estimates, apart |\n|---|---|---|---|---|")
        for family in given.only:
            for row in compare_states(family, given.seeds[0], given.steps):
                print(row, flush=True)
        return
    print("| environment | regret without delay | waiting / that | " + " | ".join(KINDS) + f" | at most {BAR} |")
    print("|---" * (4 + len(KINDS)) + "|", flush=True)
    for family in given.only:
        found = []
        for seed in given.seeds:
            print(f"{family}: seed {seed}", end="\r", file=sys.stderr, flush=True)
            found.append(regrets(family, seed, given.steps))
        print(line(family, np.array(found)), flush=True)


if __name__ == "__main__":
    main()
