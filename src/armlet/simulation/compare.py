"""The command `armlet compare`: several policies on the same runs of one world, and how far apart they are."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from armlet.core.intervals import Estimate, paired_difference
from armlet.parallel.pool import Engine
from armlet.parallel.progress import reporter
from armlet.report.numbers import show
from armlet.simulation.commands import make_policy, make_world, parse_settings
from armlet.simulation.overview import describe, write_overview
from armlet.simulation.play import Job
from armlet.simulation.results import Result
from armlet.simulation.run import simulate_all

USUAL = (
    "ContextualEpsilonGreedy:p=auto,horizon={horizon}",
    "OptimisticEpsilonGreedy",
    "LinUCB",
    "OFUL",
    "ThompsonSampling:v=1",
    "Uniform",
)
"""What is compared if nothing else is asked for, in so many steps."""


def parse_policy(text: str) -> tuple[str, dict[str, object]]:
    """Read NAME or NAME:KEY=VALUE,KEY=VALUE.

    Examples
    --------
    >>> parse_policy("LinUCB:alpha=0.5,ridge=2")
    ('LinUCB', {'alpha': 0.5, 'ridge': 2})
    """
    name, _, settings = text.partition(":")
    return name, parse_settings(settings.split(",") if settings else [])


def make_jobs(
    world: str, world_settings: Sequence[str], policies: Sequence[str], horizon: int, runs: int, seed: int
) -> list[Job]:
    """Make a job for each policy, all of them on the same contexts and noise.

    Examples
    --------
    >>> [type(job.policy).__name__ for job in make_jobs("FigureA", [], ["LinUCB", "Uniform"], 100, 4, seed=1)]
    ['LinUCB', 'Uniform']
    """
    where = make_world(world, parse_settings(world_settings), seed)
    asked = policies or [text.format(horizon=horizon) for text in USUAL]
    made = [make_policy(*parse_policy(text), where) for text in asked]
    # one method for all: within it, contexts and noise are the same whatever the policy
    return [Job(world=where, policy=each, horizon=horizon, runs=runs, seed=seed, method="python") for each in made]


def compare(jobs: Sequence[Job], *, engine: Engine, out: str | os.PathLike[str]) -> None:
    """Run the jobs, keep them in a folder, print the ranking and write a page."""
    folder = Path(out)
    print(*jobs[0].world.describe(), sep="\n", flush=True)
    try:
        with engine:
            results = simulate_all(jobs, engine=engine, store=folder, progress=reporter("runs"))
    except KeyboardInterrupt:
        print(f"\ninterrupted: finished runs are kept in {folder}; the same command goes on", file=sys.stderr)
        raise
    print("", *ranking(results, jobs[0].seed), f"Report: {write_overview(folder)}", sep="\n")


def ranking(results: Sequence[Result], seed: int) -> list[str]:
    """Say what each policy regrets, least first, and how much more than the first, run by run."""
    rng, ordered = np.random.default_rng(seed), sorted(results, key=lambda each: float(each.mean[-1]))
    first, T = ordered[0], int(ordered[0].steps[-1])
    lines = [f"{'regret at T = ' + format(T, ','):>42}{'more than the first, paired':>34}  policy"]
    for each in ordered:
        if len(each.runs) > 1:
            regret, more = each.estimate(T, rng), paired_difference(each.at(T), first.at(T), rng)
        else:
            regret, more = _exact(float(each.mean[-1])), _exact(float(each.mean[-1] - first.mean[-1]))
        shown = "" if each is first else show(more)
        lines.append(f"{show(regret):>42}{shown:>34}  {describe(each.settings['policy'])}")
    return lines


def _exact(value: float) -> Estimate:
    return Estimate(value, value, value)
