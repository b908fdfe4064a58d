"""Run policies in environments, many times, on any engine: the same settings give the same numbers, bit for bit.

A task is a few runs of one job, about two seconds of work. How jobs are cut into tasks follows from the jobs alone, not
from the number of workers, so a store that was filled by one engine can be completed by another.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from armlet.disk import Json, read_model
from armlet.environments.environment import Environment, is_still
from armlet.errors import InvalidValueError, ModelFileError
from armlet.parallel import PoolLike, Progress, WorkerError, opened, silent
from armlet.policies.base import compiled_rule
from armlet.simulation.lab import Arrays, Lab, Manifest, Shelf, read_manifest, versions
from armlet.simulation.play import Curves, Job, Method, play, settings_of
from armlet.simulation.results import Result, joined, read_parquet, stack, write_parquet
from armlet.types import Policy

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

STAGE = "results"
TASK_SECONDS = 2.0
SECONDS = {"steps": 5e-8, "events": 1e-6, "python": 3e-7}  # a step, an exploration, a step; roughly
SECONDS_LEARNING = 3e-7  # a step that is learned from, in the kernel
SECONDS_IN_PYTHON = 2.5e-5  # a step of a policy that is not compiled


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)  # an environment need not be hashable, and no two are alike
class RunTask:
    """Some runs of one job: what a worker is sent."""

    index: int  # of the job
    job: Job
    first: int
    last: int  # not included
    versions: dict[str, Json]  # of the caller: a worker with others would give other numbers


def simulate(
    environment: Environment,
    policy: Policy,
    *,
    horizon: int,
    runs: int,
    seed: int,
    checkpoints: npt.ArrayLike | None = None,
    method: Method = "auto",
    engine: PoolLike = "processes",
    workers: int | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: Progress = silent,
) -> Result:
    """Run one policy in one environment; see `Job` for the settings and `simulate_all` for the rest.

    Examples
    --------
    >>> import armlet
    >>> from armlet.environments import FigureA
    >>> environment = FigureA.draw(np.random.default_rng(1))
    >>> policy = armlet.Algorithm1(p=60)
    >>> result = simulate(environment, policy, horizon=1000, runs=4, seed=1, engine="serial")
    >>> result.regret.shape == (4, len(result.steps)), int(result.steps[-1])
    (True, 1000)
    """
    steps = () if checkpoints is None else tuple(np.asarray(checkpoints).tolist())
    job = Job(
        environment=environment, policy=policy, horizon=horizon, runs=runs, seed=seed, checkpoints=steps, method=method
    )
    return simulate_all([job], engine=engine, workers=workers, store=store, progress=progress)[0]


def simulate_all(
    jobs: Sequence[Job],
    *,
    engine: PoolLike = "processes",
    workers: int | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: Progress = silent,
) -> list[Result]:
    """Run several jobs, the tasks of all of them side by side.

    Parameters
    ----------
    jobs
        What to run.
    engine
        The name of an engine (see `armlet.parallel.make_pool`), an engine, or any
        `concurrent.futures.Executor`. It does not change the results.
    workers
        How many, if the engine is given by name.
    store
        A folder that keeps every finished task, and the table of all at the end. The same call goes on where an
        interrupted one stopped.
    progress
        Receives how many runs are done; `armlet.parallel.reporter` prints it.

    Returns
    -------
    list of Result
        One for each job, in order.

    Examples
    --------
    >>> import armlet
    >>> from armlet.environments import FigureA
    >>> environment = FigureA.draw(np.random.default_rng(1))
    >>> settings = {"environment": environment, "horizon": 1000, "runs": 4, "seed": 1}
    >>> jobs = [Job(policy=policy, **settings) for policy in (armlet.Algorithm1(p=60), armlet.Uniform())]
    >>> greedy, uniform = simulate_all(jobs, engine="serial")
    >>> bool((greedy.at(1000) < uniform.at(1000)).all())
    True
    """
    if not jobs:
        raise InvalidValueError("jobs is empty; give at least one")
    shelf = None if store is None else RunShelf(Path(store))
    with opened(engine, workers=workers) as where, _recorded(store, jobs, where.name):
        lab = Lab(seed=jobs[0].seed, where=where, shelf=shelf, progress=lambda _: progress)
        tasks = [task for index, job in enumerate(jobs) for task in split(index, job)]
        return gather(tasks, lab.map(STAGE, run_task, tasks, amount=lambda task: task.last - task.first))


@contextmanager
def _recorded(store: str | os.PathLike[str] | None, jobs: Sequence[Job], engine: str) -> Iterator[None]:
    """Describe in the folder's manifest what is being done and how it ended."""
    if store is None:
        yield
        return
    manifest = Manifest(Path(store), jobs, engine=engine)
    try:
        yield
    except BaseException:
        manifest.stop("interrupted")
        raise
    manifest.stop("finished")


def split(index: int, job: Job) -> list[RunTask]:
    """Cut a job into tasks of about two seconds each.

    Examples
    --------
    >>> import armlet
    >>> from armlet.environments import FigureA
    >>> environment = FigureA.draw(np.random.default_rng(1))
    >>> job = Job(environment=environment, policy=armlet.Uniform(), horizon=10**6, runs=20, seed=1, method="python")
    >>> [(task.first, task.last) for task in split(0, job)]
    [(0, 7), (7, 14), (14, 20)]
    """
    size, needed = _runs_a_task(job), versions()
    return [
        RunTask(index=index, job=job, first=first, last=min(first + size, job.runs), versions=needed)
        for first in range(0, job.runs, size)
    ]


def run_task(task: RunTask) -> Arrays:
    """Play the runs of a task; this is what workers do."""
    if task.versions != versions():
        raise WorkerError(f"this worker has {versions()}, the task comes from {task.versions}; install the same")
    return stack(play(task.job, run) for run in range(task.first, task.last))._asdict()


def _runs_a_task(job: Job) -> int:
    units, each = float(job.horizon), SECONDS[job.method]
    if job.method == "events":
        p = float(getattr(job.policy, "p", 1.0))
        units = p * (1 + math.log(max(job.horizon / p, 1.0)))
    elif compiled_rule(job.policy) is None or not is_still(job.environment):
        each = SECONDS_IN_PYTHON
    elif job.policy.learns_from == "every step":
        each = SECONDS_LEARNING
    return max(1, min(job.runs, math.ceil(TASK_SECONDS / (units * each))))


def gather(tasks: Sequence[RunTask], results: Sequence[Arrays]) -> list[Result]:
    """Put together what tasks of several jobs found: a result for each job, in order."""
    parts: dict[int, list[Curves]] = {}
    for task, arrays in zip(tasks, results, strict=True):
        parts.setdefault(task.index, []).append(as_curves(arrays))
    jobs = {task.index: task.job for task in tasks}
    return [_result(job, joined(parts[index])) for index, job in jobs.items()]


def _result(job: Job, curves: Curves) -> Result:
    return Result(
        settings=settings_of(job),
        runs=np.arange(job.runs),
        steps=np.array(job.checkpoints, dtype=np.int64),
        curves=curves,
    )


class RunShelf(Shelf):
    """A shelf whose table is for people: a row for each job, run and checkpoint, however jobs were cut into tasks."""

    def _write_table(self, stage: str, tasks: Sequence[DataclassInstance], results: Sequence[Arrays]) -> None:
        write_parquet(self._table(stage), gather(cast("Sequence[RunTask]", tasks), results))

    def _read_table(self, stage: str, tasks: Sequence[DataclassInstance]) -> dict[int, Arrays]:
        results, sent = read_parquet(self._table(stage)), cast("Sequence[RunTask]", tasks)
        jobs = {task.index: task.job for task in sent}
        if [result.settings for result in results] != [settings_of(job) for job in jobs.values()]:
            return {}  # somebody else's table
        whole = [result.curves._asdict() for result in results]
        return {
            index: {name: curve[task.first : task.last] for name, curve in whole[task.index].items()}
            for index, task in enumerate(sent)
        }


def read(folder: str | os.PathLike[str]) -> list[Result]:
    """Read the results in a folder: of all jobs, or of the runs that were finished before an interrupt.

    Jobs of which no run is finished are left out.
    """
    manifest, table = read_manifest(folder), Path(folder) / f"{STAGE}.parquet"
    if table.exists():
        return read_parquet(table)
    tasks = sorted(_finished(Path(folder) / STAGE), key=lambda task: task[:2])
    results = []
    for job, settings in enumerate(manifest["jobs"]):
        mine = [(np.arange(first, first + len(curves.regret)), curves) for j, first, curves in tasks if j == job]
        if mine:
            runs = np.concatenate([numbers for numbers, _ in mine])
            steps = np.array(settings["checkpoints"], dtype=np.int64)
            results.append(Result(settings=settings, runs=runs, steps=steps, curves=joined([c for _, c in mine])))
    return results


def as_curves(arrays: Mapping[str, Any]) -> Curves:
    """Return what a task found as the curves that it was."""
    return Curves(arrays["regret"], arrays["exploring"], arrays["explored"])


def _finished(folder: Path) -> Iterator[tuple[int, int, Curves]]:
    for path in folder.glob("*.armlet"):
        try:
            header, arrays = read_model(path)
        except ModelFileError:
            continue
        task = json.loads(str(header["task"]))
        yield task["index"], task["first"], as_curves(arrays)
