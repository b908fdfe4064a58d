"""What `armlet simulate` and `armlet compare` do: jobs from names and settings in words, run, ranked and printed."""

from __future__ import annotations

import ast
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from armlet.environments import ENVIRONMENTS, Environment
from armlet.errors import InvalidValueError, UnknownNameError, choices, load_pyarrow
from armlet.inference.intervals import SHORTEST, growth
from armlet.inputs.settings import check_seed
from armlet.parallel import Pool, reporter
from armlet.policies import find_policy
from armlet.report.numbers import column, show
from armlet.report.plots import require_matplotlib
from armlet.simulation.overview import Place, answer, exact, rank, write_overview
from armlet.simulation.play import Job, Method
from armlet.simulation.results import Result
from armlet.simulation.run import read, simulate_all
from armlet.types import Policy

T = TypeVar("T")


def parse_settings(given: Iterable[str]) -> dict[str, Any]:
    """Read NAME=VALUE pairs; a value that is no Python literal is a word.

    Examples
    --------
    >>> parse_settings(["p=120", "ridge=1/n", "warmup=uniform"])
    {'p': 120, 'ridge': '1/n', 'warmup': 'uniform'}
    """
    found = {}
    for pair in given:
        name, equals, text = pair.partition("=")
        if not (name and equals):
            raise InvalidValueError(f"{pair!r} is no setting; write NAME=VALUE, as in p=120")
        try:
            found[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            found[name] = text
    return found


def make_environment(name: str, settings: Mapping[str, Any], seed: int) -> Environment:
    """Draw an environment by its name, as FigureA.draw(np.random.default_rng(seed)) would.

    Examples
    --------
    >>> make_environment("FigureA", {"n_arms": 4}, seed=1).n_arms
    4
    """
    check_seed(seed)
    kind = _find("environment", name, ENVIRONMENTS)
    _check_names(name, settings, kind.draw)
    environment: Environment = kind.draw(np.random.default_rng(seed), **settings)
    return environment


def make_policy(name: str, settings: Mapping[str, Any], environment: Environment | None = None) -> Policy:
    """Make a policy by its name; one that must know the truth is told the environment's.

    Examples
    --------
    >>> make_policy("Algorithm1", {"p": 60}, make_environment("FigureA", {}, seed=1))
    Algorithm1(p=60, ridge='paper', warmup='round-robin', units='as given', origin=None)
    """
    try:
        kind = find_policy(name)
    except UnknownNameError as error:
        raise InvalidValueError(str(error)) from None
    _check_names(name, settings, kind)
    known = (
        {"theta": environment.theta}
        if environment is not None and _needs(kind, "theta") and hasattr(environment, "theta")
        else {}
    )
    missing = [field for field in inspect.signature(kind).parameters if _needs(kind, field)]
    for field in missing:
        if field not in {**known, **settings}:
            raise InvalidValueError(f"{name} needs {field}; give it with --set {field}=VALUE")
    return kind(**{**known, **settings})


def _find(what: str, name: str, registry: Mapping[str, T]) -> T:
    if name not in registry:
        raise InvalidValueError(f"{what} is {name!r}; {choices(name, registry)}")
    return registry[name]


def _check_names(name: str, settings: Mapping[str, Any], maker: Callable[..., object]) -> None:
    known = [parameter for parameter in inspect.signature(maker).parameters if parameter != "rng"]
    for given in settings:
        if given not in known:
            raise InvalidValueError(
                f"{name} has no setting {given!r}; {choices(given, known) if known else 'it has none'}"
            )


def _needs(kind: type[Policy], name: str) -> bool:
    parameter = inspect.signature(kind).parameters.get(name)
    return parameter is not None and parameter.default is parameter.empty


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
    environment: str, environment_settings: Sequence[str], policies: Sequence[str], horizon: int, runs: int, seed: int
) -> list[Job]:
    """Make a job for each policy, all of them on the same contexts and noise.

    Examples
    --------
    >>> [type(job.policy).__name__ for job in make_jobs("FigureA", [], ["LinUCB", "Uniform"], 100, 4, seed=1)]
    ['LinUCB', 'Uniform']
    """
    where = make_environment(environment, parse_settings(environment_settings), seed)
    asked = policies or [text.format(horizon=horizon) for text in USUAL]
    made = [make_policy(*parse_policy(text), where) for text in asked]
    # one method for all: within it, contexts and noise are the same for every policy
    return [
        Job(environment=where, policy=each, horizon=horizon, runs=runs, seed=seed, method="python") for each in made
    ]


def compare(jobs: Sequence[Job], *, engine: Pool, out: str | os.PathLike[str]) -> None:
    """Run the jobs, keep them in a folder, print the ranking and write a page and its figure."""
    require_matplotlib()  # better now than after the computation
    load_pyarrow()
    (folder := Path(out)).mkdir(parents=True, exist_ok=True)
    print(*jobs[0].environment.describe(), sep="\n", flush=True)
    try:
        with engine:
            results = simulate_all(jobs, engine=engine, store=folder, progress=reporter("simulating"))
    except KeyboardInterrupt:
        print(f"\ninterrupted: finished runs are kept in {folder}; the same command goes on", file=sys.stderr)
        raise
    page = write_overview(folder)
    print("", *report(results), f"Report: {page}", f"Figure: {folder / 'regret.svg'}", sep="\n")


def report(results: Sequence[Result]) -> list[str]:
    """Return who regrets least and whether the runs can tell, and how fast the regret of each grows."""
    places = rank(results)
    lines = ranking(places)
    if all(place.is_told for place in places):
        lines += ["", answer(places), *rates(places)]
    return lines


def ranking(places: Sequence[Place]) -> list[str]:
    """Describe what each policy regrets, least first, how much more than the first, and how it explored."""
    T = int(places[0].result.steps[-1])
    head = f"{'regret at T = ' + format(T, ','):>36}{'more than the first, paired':>32}"
    lines = [f"{head}{'paid exploring':>17}{'explored':>10}  policy"]
    regrets, more = column(place.regret for place in places), column(place.more for place in places[1:])
    for place, regret, shown in zip(places, regrets, ["", *more], strict=True):
        found = place.result
        paid, share = show(exact(float(found.exploring[:, -1].mean()))), found.explored[:, -1].mean() / T
        lines.append(f"{regret:>36}{shown:>32}{paid:>17}{share:>10.2%}  {place.name}")
    return lines


def rates(places: Sequence[Place]) -> list[str]:
    """Describe how fast the regret of each policy grows; nothing of runs too short to say."""
    if places[0].result.steps[-1] < SHORTEST:
        return []
    head = "[R(T) - R(T/2)] / [R(T/2) - R(T/4)] is 1 if regret grows as log t, 1.41 as sqrt t, 2 as t:"
    return ["", head, *(f"  {place.name}: {growth(place.ratio)}" for place in places)]


def simulate(job: Job, *, engine: Pool, out: str | os.PathLike[str]) -> None:
    """Run a job, keep it in a folder, and print what was found."""
    folder = Path(out)
    print(*job.environment.describe(), sep="\n", flush=True)
    try:
        with engine:
            result = simulate_all([job], engine=engine, store=folder, progress=reporter("simulating"))[0]
    except KeyboardInterrupt:
        kept = sum(len(part.runs) for part in read(folder)) if (folder / "manifest.json").exists() else 0
        print(
            f"\ninterrupted: {kept} of {job.runs} runs are kept in {folder}; the same command goes on", file=sys.stderr
        )
        raise
    print("", *summary(job, result), f"Written: {folder / 'results.parquet'}, {folder / 'manifest.json'}", sep="\n")


def make_job(
    environment: str,
    environment_settings: Sequence[str],
    policy: str,
    policy_settings: Sequence[str],
    *,
    horizon: int,
    runs: int,
    seed: int,
    method: Method,
) -> Job:
    """Turn what the command line says into a job, or say what is wrong with it."""
    where = make_environment(environment, parse_settings(environment_settings), seed)
    chosen = make_policy(policy, parse_settings(policy_settings), where)
    return Job(environment=where, policy=chosen, horizon=horizon, runs=runs, seed=seed, method=method)


def summary(job: Job, result: Result) -> list[str]:
    """Describe what a policy paid at T/4, T/2 and T."""
    steps = sorted({max(1, job.horizon // part) for part in (4, 2, 1)})
    lines = [f"{job.policy}: {job.runs} runs, method {job.method!r}", ""]
    lines.append(f"{'step':>18}{'regret [95 % interval]':>38}{'paid exploring':>20}{'explored':>18}")
    for step in steps:
        at = int(np.searchsorted(result.steps, step))
        regret = f"{result.estimate(step):,.1f}" if job.runs > 1 else f"{result.mean[at]:,.1f}"
        paid, explored = (curve[:, at].mean() for curve in (result.exploring, result.explored))
        lines.append(f"{step:18,}{regret:>38}{paid:20,.1f}{explored:18,.1f}")
    return lines
