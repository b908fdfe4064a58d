"""MovieLens 100k as a catalogue: find the film that somebody rated best among those that they rated.

    python benchmarks/movielens.py           # 10 seeds: writes results/catalogue/movielens.md and liked.md
    python benchmarks/movielens.py --tune    # settings of rivals, on other seeds

Ratings: at every step a random person and 20 random films that they rated; what is played pays its rating, from 1 to 5.
Liked: 10 films, and a film pays 1 if it was rated 4 or 5. All ratings are known, so regret is exact. Contexts are age,
its square, sex and being a student, films have their year and 19 genres. GroupLens' terms allow research only: the data
is fetched, and nothing of it is kept here.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from time import thread_time
from typing import NamedTuple

import numpy as np

import armlet
from armlet import datasets
from armlet.types import Float64, Policy
from budgets import interval, seeds_of
from catalogue import OUT, PRODUCTS, VW, Answer, Draws, Products, Vowpal
from router_report import table


class Task(NamedTuple):
    """What is asked of players: for how many steps, among how many films, and what a film pays."""

    key: str
    steps: int
    offered: int
    liked: bool  # whether a film pays 1 for a rating of 4 or 5, or its rating
    vowpal: str  # Vowpal Wabbit's settings: the best of those that --tune tries
    products: float  # alpha of LinUCB over the products, too


REGCB = "-q xi --regcbopt --mellowness 0.001 --cb_min_cost {} --cb_max_cost {} -l {}"
TASKS = (
    Task("movielens", 10_000, 20, liked=False, vowpal=REGCB.format(-5, -1, 5), products=0.3),
    Task("liked", 8_000, 10, liked=True, vowpal="-q xi --squarecb --gamma_scale 1000 -l 0.5", products=0.03),
)


FIRST = range(1, 3)  # seeds that choose
ALPHAS = (0.03, 0.1, 0.3, 1.0)
TUNED = 0.03


@cache
def ratings() -> tuple[datasets.Ratings, Float64]:
    """Return the ratings, and what is known of people."""
    found = datasets.movielens()
    column = {name: found.X[:, place] for place, name in enumerate(found.features)}
    age = column["age"]
    return found, np.column_stack([age, np.square(age), column["sex=F"], column["occupation=student"]])


def draw(task: Task, seed: int) -> Draws:
    """Draw people and films; what a film pays is what they thought of it."""
    (found, X), rng = ratings(), np.random.default_rng([100, seed])
    rows = [np.flatnonzero(found.users == user) for user in range(len(X))]
    users = rng.integers(len(X), size=task.steps)
    chosen = np.array([rng.choice(rows[user], task.offered, replace=False) for user in users])
    paid = (found.ratings[chosen] >= 4).astype(np.float64) if task.liked else found.ratings[chosen]
    return Draws(X[users], found.Z, found.items[chosen], paid, paid, seed)


def shared(policy: armlet.SharedOptimism | armlet.SharedThompson) -> Callable[[Draws], Answer]:
    """Return a player with one model for all films, which are a prepared table."""

    def play(draws: Draws) -> Answer:
        bandit = armlet.ActionBandit(draws.X.shape[1], draws.Z.shape[1], policy=policy, seed=draws.seed)
        bandit.prepare("films", (range(len(draws.Z)), draws.Z))
        return played(draws, bandit, lambda x, films: bandit.decide(x, "films", eligible=films))

    return play


def per_film(policy: Policy) -> Callable[[Draws], Answer]:
    """Return a player with a model for each film."""

    def play(draws: Draws) -> Answer:
        bandit = armlet.Bandit(range(len(draws.Z)), draws.X.shape[1], policy=policy, seed=draws.seed)
        return played(draws, bandit, lambda x, films: bandit.decide(x, eligible=films))

    return play


def played(draws: Draws, bandit: armlet.Bandit | armlet.ActionBandit, decide: Callable[..., object]) -> Answer:
    places, started = np.empty(len(draws.X), dtype=np.int64), thread_time()
    for t, (x, films) in enumerate(zip(draws.X, draws.offered.tolist(), strict=True)):
        decision = decide(x, films)
        places[t] = place = films.index(decision.arm)
        bandit.learn(decision, float(draws.rewards[t, place]))
    return places, 1e6 * (thread_time() - started) / len(draws.X)


def uniform(draws: Draws) -> Answer:
    """Play any of them: they are in a random order."""
    return np.zeros(len(draws.X), dtype=np.int64), 0.0


OURS = "shared model"
PLAYERS: dict[str, Callable[[Draws], Answer]] = {
    OURS: shared(armlet.SharedOptimism()),
    "without intercepts": shared(armlet.SharedOptimism(intercepts=False)),
    "concatenation": shared(armlet.SharedOptimism(interactions="none")),
    "concatenation without intercepts": shared(armlet.SharedOptimism(interactions="none", intercepts=False)),
    "greedy": shared(armlet.SharedOptimism(share=0.0)),
    "draws": shared(armlet.SharedThompson()),
    "LinUCB for each film": per_film(armlet.LinUCB(alpha=1.0)),
    "LinUCB for each film, tuned": per_film(armlet.LinUCB(alpha=TUNED)),
    "the default for each film": per_film(armlet.OccasionalOptimism()),
    "uniform": uniform,
}


class Lost(NamedTuple):
    """What a player lost on each seed, and its CPU time."""

    regrets: Float64  # (seeds,)
    us: float


def lost(task: Task, play: Callable[[Draws], Answer], seeds: Sequence[int]) -> Lost:
    found = []
    for seed in seeds:
        draws = draw(task, seed)
        places, us = play(draws)
        got = np.take_along_axis(draws.means, places[:, None], axis=1)[:, 0]
        found.append((float((draws.means.max(axis=1) - got).sum()), us))
    regrets, times = np.array(found).T
    return Lost(regrets, float(np.median(times)))


def tune(task: Task) -> None:
    """Print the mean regret of settings on the seeds that choose."""
    ends = (-1, 0) if task.liked else (-5, -1)
    tried: dict[str, Callable[[Draws], Answer]] = {}
    for alpha in ALPHAS:
        tried |= {f"LinUCB(alpha={alpha})": per_film(armlet.LinUCB(alpha=alpha))}
        tried |= {f"over the products, alpha={alpha}": Products("", alpha).play}
    for rate in (0.1, 0.5, 2, 5, 10):
        for options in (REGCB.format(*ends, rate), f"-q xi --squarecb --gamma_scale 1000 -l {rate}"):
            tried |= {options: Vowpal("", options, ids=True).play}
    for name, play in tried.items():
        print(f"{task.key:10} {lost(task, play, FIRST).regrets.mean():9.0f}  {name}", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=seeds_of, default=seeds_of("100-109"), metavar="FIRST-LAST")
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--out", type=Path, default=OUT, metavar="FOLDER")
    given = parser.parse_args(arguments)
    datasets.fetch(datasets.COLLECTIONS["movielens"])
    for task in TASKS:
        tune(task) if given.tune else judge(task, given.seeds, given.out)


def judge(task: Task, seeds: Sequence[int], out: Path) -> None:
    """Play all, and write the table."""
    rows: dict[str, list[str]] = {}
    ours: Float64 = np.zeros(0)
    rivals = {PRODUCTS: Products("", task.products).play, VW: Vowpal("", task.vowpal, ids=True).play}
    for name, play in (PLAYERS | rivals).items():
        found = lost(task, play, seeds)
        ours = found.regrets if name == OURS else ours
        mean, low, high = interval(found.regrets.tolist())
        paired = (
            "" if name == OURS else "{:+,.0f} [{:+,.0f}, {:+,.0f}]".format(*interval((ours - found.regrets).tolist()))
        )
        rows[name] = [f"{mean:,.0f} ± {(high - low) / 2:,.0f}", paired, f"{found.us:,.0f}" if found.us else ""]
        print(f"    {name}: {' | '.join(rows[name])}", flush=True)
    said = f"{len(seeds)} seeds, {seeds[0]} to {seeds[-1]}, {task.steps:,} steps; intervals are 95 %."
    text = f"{said}\n\n{table('', ['regret', 'shared model less it', 'CPU a step, us'], rows)}"
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{task.key}.md").write_text(f"{text}\n")
    print(f"\n{text}")


if __name__ == "__main__":
    main()
