"""The command `armlet compare`: several policies on the same runs of one world, and how far apart they are."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from armlet.log.tables import load_pyarrow
from armlet.parallel.pool import Pool
from armlet.parallel.progress import reporter
from armlet.report.numbers import show
from armlet.report.pictures import require_matplotlib
from armlet.simulation.growth import SHORTEST, growth
from armlet.simulation.named import make_policy, make_world, parse_settings
from armlet.simulation.overview import write_overview
from armlet.simulation.play import Job
from armlet.simulation.ranking import Place, exact, rank
from armlet.simulation.results import Result
from armlet.simulation.run import simulate_all

USUAL = (
    "OccasionalOptimism",
    "AutoEpsilonGreedy:horizon={horizon}",
    "OptimisticEpsilonGreedy",
    "LinUCB",
    "OFUL",
    "ThompsonSampling:v=1",
    "Uniform",
)
"""What is compared if nothing else is asked for, in so many steps: first the policy of a Bandit that is given none."""


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


def compare(jobs: Sequence[Job], *, engine: Pool, out: str | os.PathLike[str]) -> None:
    """Run the jobs, keep them in a folder, print the ranking and write a page and its figure."""
    require_matplotlib()  # better now than after the computation
    load_pyarrow()
    (folder := Path(out)).mkdir(parents=True, exist_ok=True)
    print(*jobs[0].world.describe(), sep="\n", flush=True)
    try:
        with engine:
            results = simulate_all(jobs, engine=engine, store=folder, progress=reporter("runs"))
    except KeyboardInterrupt:
        print(f"\ninterrupted: finished runs are kept in {folder}; the same command goes on", file=sys.stderr)
        raise
    page = write_overview(folder)
    print("", *report(results), f"Report: {page}", f"Figure: {folder / 'regret.svg'}", sep="\n")


def report(results: Sequence[Result]) -> list[str]:
    """Say who regrets least and whether the runs can tell, and how fast the regret of each grows."""
    places = rank(results)
    lines = ranking(places)
    if all(place.is_told for place in places):
        lines += ["", *verdict(places), *rates(places)]
    return lines


def ranking(places: Sequence[Place]) -> list[str]:
    """Say what each policy regrets, least first, how much more than the first, and how it explored."""
    T = int(places[0].result.steps[-1])
    head = f"{'regret at T = ' + format(T, ','):>36}{'more than the first, paired':>32}"
    lines = [f"{head}{'paid exploring':>17}{'explored':>10}  policy"]
    for number, place in enumerate(places):
        found, shown = place.result, show(place.more) if number else ""
        paid, share = show(exact(float(found.exploring[:, -1].mean()))), found.explored[:, -1].mean() / T
        lines.append(f"{show(place.regret):>36}{shown:>32}{paid:>17}{share:>10.2%}  {place.name}")
    return lines


def verdict(places: Sequence[Place]) -> list[str]:
    """Say which policy had the least regret at T, and whether the runs tell it from the next."""
    lines = [f"Least mean regret at T: {places[0].name}."]
    for second in places[1:2]:
        tell = "tell" if second.more is not None and second.more.low > 0 else "cannot tell"
        lines.append(f"{second.name} paid {show(second.more)} more: these runs {tell} the two apart.")
    return lines


def rates(places: Sequence[Place]) -> list[str]:
    """Say how fast the regret of each policy grows; nothing of runs too short to say."""
    if places[0].result.steps[-1] < SHORTEST:
        return []
    head = "[R(T) - R(T/2)] / [R(T/2) - R(T/4)] is 1 if regret grows as log t, 1.41 as sqrt t, 2 as t:"
    return ["", head, *(f"  {place.name}: {growth(place.ratio)}" for place in places)]
