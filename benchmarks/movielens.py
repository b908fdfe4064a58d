"""MovieLens 100k as a catalogue: find the film that somebody rated best among 20 that they rated.

    python benchmarks/movielens.py           # 10 seeds: writes results/catalogue/movielens.md
    python benchmarks/movielens.py --tune    # LinUCB's alpha, on other seeds

At every step a random person and 20 random films that they rated; what is played pays its rating, from 1 to 5. The
ratings of all 20 are known, so regret is exact. Contexts are age, its square, sex and being a student, films have their
year and 19 genres. GroupLens' terms allow research only: the data is fetched, and nothing of it is kept here.
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
from catalogue import OUT, Answer, Draws
from router_report import table

STEPS, OFFERED = 10_000, 20
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


def draw(seed: int) -> Draws:
    """Draw people and films; what a film pays is what they thought of it."""
    (found, X), rng = ratings(), np.random.default_rng([100, seed])
    rows = [np.flatnonzero(found.users == user) for user in range(len(X))]
    users = rng.integers(len(X), size=STEPS)
    chosen = np.array([rng.choice(rows[user], OFFERED, replace=False) for user in users])
    paid = found.ratings[chosen]
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
    places, started = np.empty(STEPS, dtype=np.int64), thread_time()
    for t, (x, films) in enumerate(zip(draws.X, draws.offered.tolist(), strict=True)):
        decision = decide(x, films)
        places[t] = place = films.index(decision.arm)
        bandit.learn(decision, float(draws.rewards[t, place]))
    return places, 1e6 * (thread_time() - started) / STEPS


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


def lost(play: Callable[[Draws], Answer], seeds: Sequence[int]) -> Lost:
    found = []
    for seed in seeds:
        draws = draw(seed)
        places, us = play(draws)
        got = np.take_along_axis(draws.means, places[:, None], axis=1)[:, 0]
        found.append((float((draws.means.max(axis=1) - got).sum()), us))
    regrets, times = np.array(found).T
    return Lost(regrets, float(np.median(times)))


def tune() -> None:
    """Print the mean regret of each alpha on the seeds that choose."""
    for alpha in ALPHAS:
        print(
            f"{lost(per_film(armlet.LinUCB(alpha=alpha)), FIRST).regrets.mean():9.0f}  LinUCB(alpha={alpha})",
            flush=True,
        )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=seeds_of, default=seeds_of("100-109"), metavar="FIRST-LAST")
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--out", type=Path, default=OUT, metavar="FOLDER")
    given = parser.parse_args(arguments)
    datasets.fetch(datasets.COLLECTIONS["movielens"])
    if given.tune:
        tune()
        return
    rows: dict[str, list[str]] = {}
    ours: Float64 = np.zeros(0)
    for name, play in PLAYERS.items():
        found = lost(play, given.seeds)
        ours = found.regrets if name == OURS else ours
        mean, low, high = interval(found.regrets.tolist())
        paired = (
            "" if name == OURS else "{:+,.0f} [{:+,.0f}, {:+,.0f}]".format(*interval((ours - found.regrets).tolist()))
        )
        rows[name] = [f"{mean:,.0f} ± {(high - low) / 2:,.0f}", paired, f"{found.us:,.0f}" if found.us else ""]
        print(f"    {name}: {' | '.join(rows[name])}", flush=True)
    seeds = f"{len(given.seeds)} seeds, {given.seeds[0]} to {given.seeds[-1]}, {STEPS:,} steps; intervals are 95 %."
    text = f"{seeds}\n\n{table('', ['regret', 'shared model less it', 'CPU a step, us'], rows)}"
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "movielens.md").write_text(f"{text}\n")
    print(f"\n{text}")


if __name__ == "__main__":
    main()
