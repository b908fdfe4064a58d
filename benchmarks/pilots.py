"""How often the loss that `armlet advise` predicts from a pilot is right: simulated pilots, and the run that follows.

    python benchmarks/pilots.py            # 200 pilots, the default's interval; about a minute of one core
    python benchmarks/pilots.py --whole    # through armlet.advise itself, all policies; about a quarter of an hour

Four arms and six features: clicks at 2 to 5 %, or rewards with gaussian noise and contexts without end; pilots of 1,000
or 10,000 rows. A pilot counts as covered if one fresh run in its true environment loses what was predicted for one run.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import armlet
from armlet.advice import Pilot, Prior
from armlet.advice.comparison import DEFAULT, StepTask, play_steps
from armlet.advice.pilot import as_source
from armlet.advice.runs import Sample, mean_interval, predictive
from armlet.environments.environment import FiniteEnvironment
from armlet.simulation.play import play_table
from armlet.types import Interval

ARMS, DIM, ENVIRONMENTS = 4, 6, 40
CLICKS = Prior(n_arms=ARMS, dim=DIM, effect=(0.003, 0.01), rewards="clicks", mean=(0.02, 0.05))


def draw_environment(kind: str, seed: int) -> FiniteEnvironment:
    """Draw a true environment."""
    if kind == "clicks":
        return CLICKS.sample(1, seed)[0].table
    rng = np.random.default_rng([seed, 1])
    X = np.column_stack([np.ones(4096), rng.standard_normal((4096, DIM - 1))])
    means = X @ rng.standard_normal((DIM, ARMS))
    effect = 0.1 * 5 ** rng.random()
    means *= effect / (means.max(axis=1) - means.mean(axis=1)).mean()
    chances = np.full(len(X), 1 / len(X))
    return FiniteEnvironment(
        contexts=X, chances=chances, means=np.ascontiguousarray(means), noise="gaussian", scale=1.0
    )


def draw_pilot(environment: FiniteEnvironment, rows: int, seed: int) -> Pilot:
    """Play at random for a while."""
    rng = np.random.default_rng([seed, 2])
    at, arms = rng.choice(len(environment.chances), size=rows, p=environment.chances), rng.integers(ARMS, size=rows)
    means = environment.means[at, arms]
    noise = rng.random(rows) < means if environment.noise == "bernoulli" else means + rng.standard_normal(rows)
    return Pilot(environment.contexts[at][:, 1:], arms, noise.astype(float))


def by_parts(pilot: Pilot, horizon: int, seed: int) -> Mapping[str, tuple[object, Interval, Interval | None]]:
    """Return the default's interval as `armlet.advise` finds it, and that of its mean, without the search for p."""
    problems = as_source(pilot, horizon, "max").sample(ENVIRONMENTS, seed)
    at = np.array([horizon])
    tasks = [StepTask(problem.table, DEFAULT, at, (seed, i)) for i, problem in enumerate(problems)]
    sample = Sample(np.concatenate([play_steps(task) for task in tasks]), np.arange(len(tasks)))
    one = predictive(sample, horizon * max(problem.table.gap for problem in problems))
    return {"the default": (DEFAULT, one, mean_interval(sample))}


def whole(pilot: Pilot, horizon: int, seed: int) -> Mapping[str, tuple[object, Interval, Interval | None]]:
    """Return the intervals of all policies, as a user gets them; that of the mean is known for exploring by p."""
    with ThreadPoolExecutor(1) as pool:
        found = armlet.advise(pilot, horizon=horizon, seed=seed, problems=20, runs=2, executor=pool)
    o = found.policies
    return {
        f"{row.name}, with a floor" if "floor" in row.setting else row.name: (
            eval(row.code),
            row.lost_range,
            found.row.interval if row is o.exploring else None,
        )
        for row in o.rows
    }


def main(arguments: list[str] | None = None) -> None:
    """Print how many pilots were covered."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pilots", type=int, default=200)
    parser.add_argument("--horizon", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--whole", action="store_true")
    given = parser.parse_args(arguments)
    covered: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for i in range(given.pilots):
        kind, rows, seed = ("clicks", "numbers")[i % 2], (1_000, 10_000)[i // 2 % 2], 10_000 * given.seed + i
        environment = draw_environment(kind, seed)
        found = (whole if given.whole else by_parts)(draw_pilot(environment, rows, seed), given.horizon, seed)
        for name, (policy, one, mean) in found.items():
            steps = np.array([given.horizon])
            lost = float(play_table(environment, policy, steps, (seed, 10**6), jumps=False).regret[-1])  # type: ignore[arg-type]
            hits = float(one.low <= lost <= one.high), np.nan if mean is None else float(mean.low <= lost <= mean.high)
            covered[name, f"{kind}, {rows:,} rows"].append(hits)
            covered[name, "all"].append(hits)
    for (name, which), pairs in sorted(covered.items()):
        one_run, of_mean = np.mean(pairs, axis=0)
        beside = "" if np.isnan(of_mean) else f", {of_mean:.1%} within that of the mean"
        print(f"{name}, {which}: {one_run:.1%} within the interval of one run{beside}, {len(pairs)} pilots")


if __name__ == "__main__":
    main()
