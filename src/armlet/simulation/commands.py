"""The command `armlet simulate`: from words to worlds, policies and tables."""

from __future__ import annotations

import ast
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from armlet.core.settings import check_seed
from armlet.core.types import Policy
from armlet.environments import ENVIRONMENTS, World
from armlet.parallel.pool import Pool
from armlet.parallel.progress import reporter
from armlet.policies import POLICIES
from armlet.simulation.folder import read
from armlet.simulation.play import Job, Method
from armlet.simulation.results import Result
from armlet.simulation.run import simulate_all

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
            raise ValueError(f"{pair!r} is no setting; write NAME=VALUE, as in p=120")
        try:
            found[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            found[name] = text
    return found


def make_world(name: str, settings: Mapping[str, Any], seed: int) -> World:
    """Draw a world by its name: the first draw from the seed.

    Examples
    --------
    >>> make_world("FigureA", {"n_arms": 4}, seed=1).n_arms
    4
    """
    check_seed(seed)
    kind = _find("world", name, ENVIRONMENTS)
    _check_names(name, settings, kind.draw)
    world: World = kind.draw(np.random.default_rng(seed), **settings)
    return world


def make_policy(name: str, settings: Mapping[str, Any], world: World | None = None) -> Policy:
    """Make a policy by its name; one that must know the truth is told the world's.

    Examples
    --------
    >>> make_policy("Algorithm1", {"p": 60}, make_world("FigureA", {}, seed=1))
    Algorithm1(p=60, ridge='paper', warmup='round-robin')
    """
    kind = _find("policy", name, POLICIES)
    _check_names(name, settings, kind)
    known = {"theta": world.theta} if world is not None and _needs(kind, "theta") and hasattr(world, "theta") else {}
    missing = [field for field in inspect.signature(kind).parameters if _needs(kind, field)]
    for field in missing:
        if field not in {**known, **settings}:
            raise ValueError(f"{name} needs {field}; give it with --set {field}=VALUE")
    return kind(**{**known, **settings})


def simulate(job: Job, *, engine: Pool, out: str | os.PathLike[str]) -> None:
    """Run a job, keep it in a folder, and print what was found."""
    folder = Path(out)
    print(*job.world.describe(), sep="\n", flush=True)
    try:
        with engine:
            result = simulate_all([job], engine=engine, store=folder, progress=reporter("runs"))[0]
    except KeyboardInterrupt:
        kept = sum(len(part.runs) for part in read(folder)) if (folder / "manifest.json").exists() else 0
        print(
            f"\ninterrupted: {kept} of {job.runs} runs are kept in {folder}; the same command goes on", file=sys.stderr
        )
        raise
    print("", *summary(job, result), f"Written: {folder / 'results.parquet'}, {folder / 'manifest.json'}", sep="\n")


def make_job(
    *,
    world: str,
    world_settings: Sequence[str],
    policy: str,
    policy_settings: Sequence[str],
    horizon: int,
    runs: int,
    seed: int,
    method: Method,
) -> Job:
    """Turn what the command line says into a job, or say what is wrong with it."""
    where = make_world(world, parse_settings(world_settings), seed)
    chosen = make_policy(policy, parse_settings(policy_settings), where)
    return Job(world=where, policy=chosen, horizon=horizon, runs=runs, seed=seed, method=method)


def summary(job: Job, result: Result) -> list[str]:
    """Say what a policy paid at T/4, T/2 and T."""
    rng, steps = np.random.default_rng(job.seed), sorted({max(1, job.horizon // part) for part in (4, 2, 1)})
    lines = [f"{job.policy}: {job.runs} runs, method {job.method!r}", ""]
    lines.append(f"{'step':>18}{'regret [95 % interval]':>38}{'paid exploring':>20}{'explored':>18}")
    for step in steps:
        at = int(np.searchsorted(result.steps, step))
        regret = f"{result.estimate(step, rng):,.1f}" if job.runs > 1 else f"{result.mean[at]:,.1f}"
        paid, explored = (curve[:, at].mean() for curve in (result.exploring, result.explored))
        lines.append(f"{step:18,}{regret:>38}{paid:20,.1f}{explored:18,.1f}")
    return lines


def _find(what: str, name: str, registry: Mapping[str, T]) -> T:
    if name not in registry:
        raise ValueError(f"{what} is {name!r}; choose one of {', '.join(registry)}")
    return registry[name]


def _check_names(name: str, settings: Mapping[str, Any], maker: Callable[..., object]) -> None:
    known = [parameter for parameter in inspect.signature(maker).parameters if parameter != "rng"]
    for given in settings:
        if given not in known:
            raise ValueError(f"{name} has no setting {given!r}; it has {', '.join(known) or 'none'}")


def _needs(kind: type[Policy], name: str) -> bool:
    parameter = inspect.signature(kind).parameters.get(name)
    return parameter is not None and parameter.default is parameter.empty
