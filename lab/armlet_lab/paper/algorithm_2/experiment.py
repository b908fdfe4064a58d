"""Section 7, Algorithm 2: what Contextual UCB remembers, what its search costs, and what it regrets.

Three questions. Does the estimate of a rare context get lost in Algorithm 1, and does the best subset of the history
bring it back? How close does a search that takes little time come to the best subset, and does it decide alike? And
what does it all do to regret, beside Algorithm 1 with both ridges, LinUCB, Thompson sampling and the OLS bandit?
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from armlet.environments import FigureA, FigureB, LinearArms, Section7, Section7Growing
from armlet.parallel.seeds import Seeds
from armlet.policies import Algorithm1, ContextualUCB, LinUCB, OLSBandit, ThompsonSampling
from armlet.policies.subset_search import Past, Subset, counts, estimate, exact, relaxed
from armlet.simulation import play as playing
from armlet.simulation.lab import Arrays, Lab, as_floats
from armlet.types import Float64, Policy
from armlet_lab.paper.algorithm_2 import report
from armlet_lab.runner.arena import Brief, brief
from armlet_lab.runner.experiment import Experiment, Findings

RARE, COMMON = np.array([1.0, 1.0]), np.array([1.0, 0.0])

FAMILIES: Final[dict[str, Callable[[np.random.Generator, int], Float64]]] = {  # the last two are longer than 1
    "gaussian, d = 3": lambda rng, n: _unit(rng.standard_normal((n, 3))),
    "gaussian, d = 5": lambda rng, n: _unit(rng.standard_normal((n, 5))),
    "bits, d = 3": lambda rng, n: rng.integers(0, 2, (n, 3)) / np.sqrt(3.0),
    "Section 7": lambda rng, n: np.column_stack([np.ones(n), rng.random(n) < 0.2]) / np.sqrt(2.0),
    "one direction rare": lambda rng, n: _unit(rng.standard_normal((n, 3)) * np.array([5.0, 1.0, 0.2])),
    "gaussian, not scaled": lambda rng, n: rng.standard_normal((n, 3)),
    "uneven, not scaled": lambda rng, n: rng.standard_normal((n, 3)) * np.array([5.0, 1.0, 0.2]),
}
SHORT: Final = 5  # of them, with contexts of length at most 1, as the paper assumes

ENVIRONMENTS: Final[dict[str, Callable[[np.random.Generator], LinearArms]]] = {
    "I = 10": lambda rng: Section7.draw(rng, I=10),
    "I = 2 + log^2 t": lambda rng: Section7Growing.draw(rng, rate="log2"),
    "I = 2 + sqrt t": lambda rng: Section7Growing.draw(rng, rate="sqrt"),
    "Figure (a)": FigureA.draw,
    "Figure (b), I = 10": lambda rng: FigureB.draw(rng, I=10),
}

POLICIES: Final[dict[str, Callable[[Brief], Policy]]] = {
    "Algorithm 1": lambda b: Algorithm1(p=10 * b.n_arms),
    "Algorithm 1, ridge 1/n": lambda b: Algorithm1(p=10 * b.n_arms, ridge="1/n"),
    "Contextual UCB": lambda _: ContextualUCB(search="counts"),
    "Contextual UCB, scaled": lambda b: ContextualUCB(search="counts", alpha=b.noise),
    "LinUCB": lambda b: LinUCB(alpha=2 * b.noise, units="as given"),
    "Thompson sampling": lambda b: ThompsonSampling(v=b.noise, units="as given"),
    "OLS bandit": lambda b: OLSBandit(q=5, h=b.noise, units="as given"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """In this order: what is forgotten, how good a search is on small histories, regret, and the time of a search."""

    rare: tuple[int, ...] = (10, 30, 100, 300, 1000)  # rows of the rare context, among as many squared
    rows: int = 10  # in a small history
    histories: int = 40  # of each family
    horizon: int = 600
    runs: int = 5
    lengths: tuple[int, ...] = (100, 1000, 10_000)  # of the histories that are timed
    doubling: tuple[int, int] = (9, 13)  # rows between which the exact search is timed


QUICK: Final = Settings()
FULL: Final = Settings(rows=12, histories=100, horizon=3000, runs=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Small:
    """Small histories of one family."""

    seeds: Seeds
    family: str
    rows: int
    histories: int


def search_small(task: Small) -> Arrays:
    """Return the ratio of the relaxed search to the exact one for every past, and whether it chose the same arm."""
    rng = task.seeds.rng("histories", task.family)
    ratios, agreed = [], []
    for _ in range(task.histories):
        pasts = [Past.of(FAMILIES[task.family](rng, task.rows), rng.standard_normal(task.rows)) for _ in range(3)]
        x = FAMILIES[task.family](rng, 1)[0]
        if not x.any():
            x[0] = 1.0  # every subset is as good for a context of zeros
        best = [exact(x, past) for past in pasts]
        found = [relaxed(x, past) for past in pasts]
        ratios += [one.value / other.value for one, other in zip(found, best, strict=True)]
        agreed.append(_choice(x, pasts, found) == _choice(x, pasts, best))
    return {"ratios": np.array(ratios), "agreed": np.array(agreed)}


def _choice(x: Float64, pasts: Sequence[Past], found: Sequence[Subset]) -> int:
    """Play Algorithm 2 at t = 100 with what a search found for each arm."""
    indices = [
        float(x @ estimate(past, subset)) + np.sqrt(np.log(100) * subset.value)
        for past, subset in zip(pasts, found, strict=True)
    ]
    return int(np.argmax(indices))


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """One policy on some problems of one kind."""

    seeds: Seeds
    environment: str
    policy: str
    horizon: int
    first: int
    runs: int


def play(task: Play) -> Arrays:
    """Give the regret at T of every run, each another theta, the same for all policies."""
    regret = []
    for run in range(task.first, task.first + task.runs):
        environment = ENVIRONMENTS[task.environment](task.seeds.rng("worlds", task.environment, run))
        policy = POLICIES[task.policy](brief(environment, task.horizon))
        seed = task.seeds.seed("runs", task.environment, run)
        job = playing.Job(
            environment=environment, policy=policy, horizon=task.horizon, runs=1, seed=seed, method="python"
        )
        regret.append(playing.play(job, 0).regret[-1])
    return {"regret": np.array(regret)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """One search of a history of one length."""

    seeds: Seeds
    search: str
    rows: int
    dim: int


def measure(task: Timing) -> Arrays:
    """Time a search of random rows, several times, in processor time: other work on the machine is not counted."""
    rng = task.seeds.rng("timed rows", task.rows)
    past, x = Past.of(rng.standard_normal((task.rows, task.dim))), rng.standard_normal(task.dim)
    search = {"relaxed": relaxed, "exact": exact}[task.search]
    seconds = []
    for _ in range(5):
        began = time.process_time()
        search(x, past)
        seconds.append(time.process_time() - began)
    return {"seconds": np.array(seconds)}


def remembered(m: int) -> dict[str, float]:
    """Give what is estimated for (1, 1), which pays 1, after m rows of it among m^2 rows of (1, 0), which pays 0.

    Examples
    --------
    >>> found = remembered(100)
    >>> round(found["Algorithm 1"], 2), found["Contextual UCB"] > 0.85
    (0.5, True)
    """
    common = m * m - m
    A = m * np.outer(RARE, RARE) + common * np.outer(COMMON, COMMON)
    b, n = m * RARE, m + common
    past = Past.of([RARE, COMMON], rewards=[float(m), 0.0], counts=[m, common])
    chosen = counts(RARE, past)
    rows = np.array([RARE, COMMON])
    kept = (rows.T * chosen.weights) @ rows
    paid = rows.T @ (chosen.weights * np.array([1.0, 0.0]))
    ridged = {
        "Algorithm 1": (A, b, np.sqrt(n)),
        "Algorithm 1, ridge 1/n": (A, b, 1.0),
        "Contextual UCB": (kept, paid, np.sqrt(chosen.n)),
    }
    return {
        name: float(RARE @ np.linalg.solve(gram + shift * np.eye(2), paid))
        for name, (gram, paid, shift) in ridged.items()
    }


def find(settings: Settings, lab: Lab) -> Findings:
    """Search, play, time and judge."""
    small = [Small(seeds=lab.seeds, family=name, rows=settings.rows, histories=settings.histories) for name in FAMILIES]
    searched = lab.map("small", search_small, small, "Algorithm 2: searches against brute force")
    plays = [
        Play(seeds=lab.seeds, environment=environment, policy=policy, horizon=settings.horizon, first=first, runs=5)
        for environment in ENVIRONMENTS
        for policy in POLICIES
        for first in range(0, settings.runs, 5)
    ]
    found = lab.map("play", play, plays, f"Algorithm 2: {len(POLICIES)} policies in {len(ENVIRONMENTS)} environments")
    timings = [
        *(Timing(seeds=lab.seeds, search="relaxed", rows=n, dim=10) for n in settings.lengths),
        *(Timing(seeds=lab.seeds, search="exact", rows=n, dim=3) for n in settings.doubling),
    ]
    timed = lab.alone("time", measure, timings, "Algorithm 2: time of a search")
    return report.judge(
        memory={m: remembered(m) for m in settings.rare},
        ratios={task.family: as_floats(arrays["ratios"]) for task, arrays in zip(small, searched, strict=True)},
        agreed={task.family: as_floats(arrays["agreed"]) for task, arrays in zip(small, searched, strict=True)},
        short=SHORT,
        regret=_regret(plays, found),
        seconds={
            (task.search, task.rows): float(as_floats(arrays["seconds"]).min())
            for task, arrays in zip(timings, timed, strict=True)
        },
        horizon=settings.horizon,
        rng=lab.rng("intervals"),
    )


def _regret(tasks: Sequence[Play], found: Sequence[Arrays]) -> dict[str, dict[str, Float64]]:
    out: dict[str, dict[str, list[Float64]]] = {
        environment: {name: [] for name in POLICIES} for environment in ENVIRONMENTS
    }
    for task, arrays in zip(tasks, found, strict=True):
        out[task.environment][task.policy].append(as_floats(arrays["regret"]))
    return {
        environment: {name: np.concatenate(parts) for name, parts in mine.items()} for environment, mine in out.items()
    }


def _unit(rows: Float64) -> Float64:
    scaled: Float64 = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return scaled


def _run(lab: Lab) -> Findings:
    return find(FULL if lab.scale == "full" else QUICK, lab)


EXPERIMENT: Final = Experiment("contextual-ucb", "Algorithm 2: memory, search and regret of Contextual UCB", _run)
