"""The command `armlet simulate`: a job from words, run and told."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from armlet.parallel.pool import Pool
from armlet.parallel.progress import reporter
from armlet.simulation.folder import read
from armlet.simulation.named import make_policy, make_world, parse_settings
from armlet.simulation.play import Job, Method
from armlet.simulation.results import Result
from armlet.simulation.run import simulate_all


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
    steps = sorted({max(1, job.horizon // part) for part in (4, 2, 1)})
    lines = [f"{job.policy}: {job.runs} runs, method {job.method!r}", ""]
    lines.append(f"{'step':>18}{'regret [95 % interval]':>38}{'paid exploring':>20}{'explored':>18}")
    for step in steps:
        at = int(np.searchsorted(result.steps, step))
        regret = f"{result.estimate(step):,.1f}" if job.runs > 1 else f"{result.mean[at]:,.1f}"
        paid, explored = (curve[:, at].mean() for curve in (result.exploring, result.explored))
        lines.append(f"{step:18,}{regret:>38}{paid:20,.1f}{explored:18,.1f}")
    return lines
