"""What `armlet simulate` and `armlet compare` do: jobs from names and settings in words, run, ranked and printed."""

from __future__ import annotations

import inspect
import os
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from armlet.environments import ENVIRONMENTS, Environment
from armlet.errors import InvalidValueError, UnknownNameError, choices, load_pyarrow
from armlet.inference.intervals import SHORTEST, growth
from armlet.inputs.named import parse_named
from armlet.inputs.settings import check_seed
from armlet.parallel import Pool, Progress, silent
from armlet.policies import find_policy
from armlet.report import result as report
from armlet.report.numbers import column, show
from armlet.report.plots import require_matplotlib
from armlet.simulation.overview import Place, answer, draw_figure, exact, rank, write_overview
from armlet.simulation.play import Job, Method
from armlet.simulation.results import Result
from armlet.simulation.run import read, simulate_all
from armlet.types import Estimate, Policy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

T = TypeVar("T")


def make_environment(name: str, settings: Mapping[str, object], seed: int) -> Environment:
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


def make_policy(name: str, settings: Mapping[str, object], environment: Environment | None = None) -> Policy:
    """Make a policy by its name; one that must know the truth receives the environment's.

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
            raise InvalidValueError(f"{name} needs {field}; write {name}:{field}=VALUE")
    return kind(**{**known, **settings})


def _find(what: str, name: str, registry: Mapping[str, T]) -> T:
    if name not in registry:
        raise InvalidValueError(f"there is no {what} {name!r}; {choices(name, registry, listed='armlet list')}")
    return registry[name]


def _check_names(name: str, settings: Mapping[str, object], maker: Callable[..., object]) -> None:
    known = [parameter for parameter in inspect.signature(maker).parameters if parameter != "rng"]
    for setting in settings:
        if setting not in known:
            raise InvalidValueError(
                f"{name} has no setting {setting!r}; {choices(setting, known) if known else 'it has none'}"
            )


def _needs(kind: type[Policy], name: str) -> bool:
    parameter = inspect.signature(kind).parameters.get(name)
    return parameter is not None and parameter.default is parameter.empty


USUAL = (
    "OccasionalOptimism",
    "AutoEpsilonGreedy:horizon={horizon}",
    "LinUCB",
    "OFUL",
    "ThompsonSampling:v=1",
    "Uniform",
)
"""What is compared if nothing else is asked for, in so many steps: first the policy of a Bandit that is given none."""


def make_jobs(environment: str, policies: Sequence[str], horizon: int, runs: int, seed: int) -> list[Job]:
    """Make a job for each policy, all of them on the same contexts and noise.

    Examples
    --------
    >>> [type(job.policy).__name__ for job in make_jobs("FigureA", ["LinUCB", "Uniform"], 100, 4, seed=1)]
    ['LinUCB', 'Uniform']
    """
    where = make_environment(*parse_named(environment), seed)
    texts = policies or [text.format(horizon=horizon) for text in USUAL]
    made = [make_policy(*parse_named(text), where) for text in texts]
    # one method for all: within it, contexts and noise are the same for every policy
    return [
        Job(environment=where, policy=each, horizon=horizon, runs=runs, seed=seed, method="python") for each in made
    ]


@dataclass(frozen=True, slots=True, repr=False)
class RegretComparison(report.Result):
    """Policies in the order of their regret, and where the page of it is."""

    environment: Environment
    places: Sequence[Place]
    page: Path

    @property
    def figure(self) -> Path:
        """The file of the figure."""
        return self.page.with_name("regret.svg")

    def columns(self) -> report.Columns:
        """Return the ranking: estimates with the ends of their 95 % intervals."""
        T = int(self.places[0].result.steps[-1])
        return {
            "policy": [place.name for place in self.places],
            **_ends("regret", [place.regret for place in self.places]),
            **_ends("more_than_first", [None, *(place.more for place in self.places[1:])]),
            **_ends("doubling_ratio", [place.ratio for place in self.places]),
            "explored": [float(place.result.explored[:, -1].mean() / T) for place in self.places],
        }

    def plot(self) -> Figure:
        """Draw the mean regret of every policy against log t."""
        return draw_figure([place.result for place in self.places])[0]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _page(self) -> str:
        return self.page.read_text(encoding="utf-8")

    def to_dict(self) -> dict[str, Any]:
        """Return everything in JSON types, the policies ranked."""
        first = self.places[0].result
        return {
            "environment": first.settings["environment"],
            "horizon": int(first.steps[-1]),
            "runs": len(first.runs),
            "answer": answer(self.places),
            "policies": [_as_dict(place) for place in self.places],
            "page": str(self.page),
            "figure": str(self.figure),
        }

    def lines(self, *, theory: bool = False) -> list[str]:
        """Return the ranking and what it says; with `theory` also the environment's constants and rates of growth."""
        lines = [*ranking(self.places), "", *textwrap.wrap(answer(self.places), report.WIDTH)]
        if theory:
            lines += [*rates(self.places), "", *self.environment.describe()]
        return [*lines, "", f"Report: {self.page}", f"Figure: {self.figure}"]


def _ends(name: str, estimates: Sequence[Estimate | None]) -> report.Columns:
    values = [(None, None, None) if each is None else (each.value, each.low, each.high) for each in estimates]
    return dict(zip((name, f"{name}_low", f"{name}_high"), map(list, zip(*values, strict=True)), strict=True))


def _as_dict(place: Place) -> dict[str, object]:
    result, T = place.result, int(place.result.steps[-1])
    return {
        "policy": place.name,
        "settings": result.settings["policy"],
        "regret": asdict(place.regret),
        "more_than_first": None if place.more is None else asdict(place.more),
        "paid_exploring": float(result.exploring[:, -1].mean()),
        "explored": float(result.explored[:, -1].mean() / T),
        "doubling_ratio": None if place.ratio is None else asdict(place.ratio),
    }


def compare(
    jobs: Sequence[Job], *, engine: Pool, out: str | os.PathLike[str], progress: Progress = silent
) -> RegretComparison:
    """Run the jobs, keep them in a folder, and write a page and its figure."""
    require_matplotlib()  # better now than after the computation
    load_pyarrow()
    (folder := Path(out)).mkdir(parents=True, exist_ok=True)
    try:
        with engine:
            results = simulate_all(jobs, engine=engine, store=folder, progress=progress)
    except KeyboardInterrupt:
        print(f"\ninterrupted: finished runs are kept in {folder}; the same command goes on", file=sys.stderr)
        raise
    return RegretComparison(jobs[0].environment, rank(results), write_overview(folder))


def ranking(places: Sequence[Place]) -> list[str]:
    """Describe what each policy regrets, least first, how much more than the first, and how it explored."""
    T = int(places[0].result.steps[-1])
    cells = [
        [f"regret at T = {T:,}", *column(place.regret for place in places)],
        ["more than the first", "", *column(place.more for place in places[1:])],
        ["paid exploring", *(show(exact(float(place.result.exploring[:, -1].mean()))) for place in places)],
        ["explored", *(f"{place.result.explored[:, -1].mean() / T:.2%}" for place in places)],
    ]
    widths = [max(map(len, each)) for each in cells]
    lines = zip(*cells, ["policy", *(place.name for place in places)], strict=True)
    return ["  ".join([*map(str.rjust, line, widths), line[-1]]) for line in lines]


def rates(places: Sequence[Place]) -> list[str]:
    """Describe how fast the regret of each policy grows; nothing of runs too short to say."""
    if places[0].result.steps[-1] < SHORTEST:
        return []
    head = "[R(T) - R(T/2)] / [R(T/2) - R(T/4)] is 1 if regret grows as log t, 1.41 as sqrt t, 2 as t:"
    return ["", head, *(f"  {place.name}: {growth(place.ratio)}" for place in places)]


@dataclass(frozen=True, slots=True)
class Simulation:
    """What a policy paid, and where its runs are kept."""

    job: Job
    result: Result
    folder: Path

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the single runs, which are in the table, in JSON types."""
        result = self.result
        at = [
            {
                "step": step,
                "regret": asdict(result.estimate(step)),
                "paid_exploring": float(result.exploring[:, number].mean()),
                "explored": float(result.explored[:, number].mean()),
            }
            for step, number in checkpoints(self.job, result)
        ]
        names = {name: result.settings[name] for name in ("environment", "policy")}
        runs, method = len(result.runs), self.job.method
        return {**names, "runs": runs, "method": method, "at": at, "results": str(self.folder / "results.parquet")}

    def lines(self, *, theory: bool = False) -> list[str]:
        """Return what the policy paid; with `theory` also the environment's constants."""
        files = f"Written: {self.folder / 'results.parquet'}, {self.folder / 'manifest.json'}"
        constants = ["", *self.job.environment.describe()] if theory else []
        return [*summary(self.job, self.result), *constants, "", files]


def simulate(job: Job, *, engine: Pool, out: str | os.PathLike[str], progress: Progress = silent) -> Simulation:
    """Run a job, and keep it in a folder."""
    folder = Path(out)
    try:
        with engine:
            result = simulate_all([job], engine=engine, store=folder, progress=progress)[0]
    except KeyboardInterrupt:
        finished = sum(len(part.runs) for part in read(folder)) if (folder / "manifest.json").exists() else 0
        print(
            f"\ninterrupted: {finished} of {job.runs} runs are kept in {folder}; the same command goes on",
            file=sys.stderr,
        )
        raise
    return Simulation(job, result, folder)


def make_job(environment: str, policy: str, *, horizon: int, runs: int, seed: int, method: Method) -> Job:
    """Turn what the command line says into a job, or say what is wrong with it."""
    where = make_environment(*parse_named(environment), seed)
    chosen = make_policy(*parse_named(policy), where)
    return Job(environment=where, policy=chosen, horizon=horizon, runs=runs, seed=seed, method=method)


def checkpoints(job: Job, result: Result) -> list[tuple[int, int]]:
    """Return T/4, T/2 and T, each with its place among the steps of a result."""
    steps = sorted({max(1, job.horizon // part) for part in (4, 2, 1)})
    return [(step, int(np.searchsorted(result.steps, step))) for step in steps]


def summary(job: Job, result: Result) -> list[str]:
    """Describe what a policy paid at T/4, T/2 and T."""
    lines = [f"{job.policy}: {job.runs} runs, method {job.method!r}", ""]
    lines.append(f"{'step':>18}{'regret [95 % interval]':>38}{'paid exploring':>20}{'explored':>18}")
    for step, at in checkpoints(job, result):
        regret = f"{result.estimate(step):,.1f}" if job.runs > 1 else f"{result.mean[at]:,.1f}"
        paid, explored = (curve[:, at].mean() for curve in (result.exploring, result.explored))
        lines.append(f"{step:18,}{regret:>38}{paid:20,.1f}{explored:18,.1f}")
    return lines
