"""What merging costs: several workers that share what they learn, against one that sees every step.

Algorithm 1 keeps sums over explored steps, so states of different workers add up. Every worker has a clock of its own:
of T steps it counts T/W, and explores as much as one policy on all of them only if it is given p/W.
Workers play from the state merged last, and merge whenever their clocks have grown by a factor.
O(T (K + d)) for each run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np

from armlet.environments import FigureA
from armlet.inference.intervals import band, bootstrap
from armlet.kernel import Statistics
from armlet.parallel import Seeds
from armlet.policies import Algorithm1
from armlet.report import plots
from armlet.report.numbers import show
from armlet.report.plots import Curve
from armlet.simulation.lab import Arrays, Lab, Scale, as_floats
from armlet.simulation.play import InKernel, draw, run_streams
from armlet.types import Estimate, Float64, Int64
from armlet_lab.runner.experiment import (
    Claim,
    Criterion,
    Experiment,
    Findings,
    Outcome,
    Role,
    Section,
    Statistic,
    Verdict,
    certain,
)

POINTS: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Each run is played by one policy on all steps, and by `workers` who share them and merge now and then."""

    workers: int = 4
    p: float = 600.0
    horizon: int  # steps of all workers together, a multiple of their number
    factor: float = 1.1  # workers merge when their clocks have grown by it
    runs: int

    def __post_init__(self) -> None:
        if self.horizon % self.workers:
            raise ValueError(f"horizon is {self.horizon} but must be a multiple of workers, {self.workers}")


SCALES: Final[dict[Scale, Settings]] = {
    "quick": Settings(horizon=100_000, runs=40),
    "full": Settings(horizon=1_000_000, runs=100),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One run, played by one policy and by the workers."""

    seeds: Seeds
    run: int
    horizon: int
    factor: float
    cases: tuple[tuple[int, float], ...]  # workers, and the p of each


@dataclass(frozen=True, slots=True)
class Steps:
    """What the environment brings in one run, for every player."""

    contexts: Float64  # (T, d)
    rewards: Float64  # (T, K)
    losses: Float64  # (T, K)


@dataclass(frozen=True, slots=True)
class SharedRun:
    """What one run came to."""

    regret: Float64  # (T,): cumulative, in the order of the steps
    explored: int
    error: float  # largest difference of estimates from one state fed every explored row


def run(lab: Lab) -> Findings:
    """Run the experiment at the lab's scale."""
    return find(SCALES[lab.scale], lab)


def find(settings: Settings, lab: Lab) -> Findings:
    """Play every case on the same runs and compare them.

    Examples
    --------
    >>> tiny = Settings(p=60.0, horizon=1_000, runs=3)
    >>> [verdict.claim.key for verdict in find(tiny, Lab(seed=1)).verdicts]
    ['merge-state', 'merge-regret']
    """
    W, T, n = settings.workers, settings.horizon, settings.runs
    cases = {"one, p": (1, settings.p), f"{W} workers, p/{W}": (W, settings.p / W), f"{W} workers, p": (W, settings.p)}
    one = Task(seeds=lab.seeds, run=0, horizon=T, factor=settings.factor, cases=tuple(cases.values()))
    tasks = [replace(one, run=index) for index in range(n)]
    found = lab.map("play", play, tasks, f"Merging: {n} runs, {T:,} steps each")
    curves, explored, errors = (_stack(found, name) for name in ("regret", "explored", "error"))
    rng, at = lab.rng("intervals"), _checkpoints(T).astype(np.float64)
    pictured = [Curve(name, at, band(each, rng)) for name, each in zip(cases, curves, strict=True)]
    ratios = [_ratio(each[:, -1], curves[0, :, -1], rng) for each in curves[1:]]
    more = [_ratio(each, explored[0], rng) for each in explored[1:]]
    return judge(settings, float(errors[1:].max()), ratios, more, pictured)


def play(task: Task) -> Arrays:
    """Play every case on the steps of one run."""
    steps, at = _draw(task), _checkpoints(task.horizon)
    played = [
        share(steps, p, task.factor, _coins(task, place, workers)) for place, (workers, p) in enumerate(task.cases)
    ]
    return {
        "regret": np.array([each.regret[at - 1] for each in played]),
        "explored": np.array([each.explored for each in played]),
        "error": np.array([each.error for each in played]),
    }


def share(steps: Steps, p: float, factor: float, seeds: list[int]) -> SharedRun:
    """Play worker w, one for each seed, on steps w, w + W, w + 2 W, ... from what all have learned so far."""
    (T, n_arms), workers = steps.rewards.shape, len(seeds)
    policy = Algorithm1(p=p)
    merged, everything = (policy.init(n_arms, steps.contexts.shape[1]) for _ in range(2))
    losses, explored = np.empty(T), 0
    for start, end in pairwise(_meetings(T // workers, p, factor)):
        news = []
        for worker, seed in enumerate(seeds):
            mine = slice(start * workers + worker, end * workers, workers)
            X, rewards = np.ascontiguousarray(steps.contexts[mine]), np.ascontiguousarray(steps.rewards[mine])
            arms, tried = InKernel(policy.rule(), merged, seed, t=start).play(X, rewards)
            rows = np.arange(len(X))
            losses[mine] = steps.losses[mine][rows, arms]
            kept = rows[tried]
            learned = policy.init(n_arms, X.shape[1])
            for state in (learned, everything):
                _learn(state, arms[kept], X[kept], rewards[kept, arms[kept]])
            news.append(learned)
            explored += len(kept)
        for learned in news:
            merged.merge(learned, range(n_arms))
    error = float(np.abs(merged.estimates() - everything.estimates()).max())
    return SharedRun(np.cumsum(losses), explored, error)


def _meetings(steps: int, p: float, factor: float) -> list[int]:
    """Return the local clocks at which workers merge: after the warm-up, then ever more rarely.

    Examples
    --------
    >>> _meetings(200, 100.0, 1.5)
    [0, 100, 150, 200]
    """
    clocks = [0, min(int(np.ceil(p)), steps)]
    while clocks[-1] < steps:
        clocks.append(min(max(int(clocks[-1] * factor), clocks[-1] + 1), steps))
    return clocks


def _learn(state: Statistics, arms: Int64, X: Float64, rewards: Float64) -> None:
    for arm, x, reward in zip(arms.tolist(), X, rewards.tolist(), strict=True):
        state.add(arm, x, reward)


def _checkpoints(horizon: int) -> Int64:
    return np.union1d(np.geomspace(100, horizon, POINTS).astype(np.int64), [horizon])


def _draw(task: Task) -> Steps:
    environment, run = FigureA.draw(task.seeds.rng("worlds", task.run)), run_streams(task.seeds, task.run)
    whole = next(draw(environment, run.contexts, run.noise, task.horizon, size=task.horizon))
    return Steps(whole.X, whole.rewards, whole.losses)


def _coins(task: Task, place: int, n: int) -> list[int]:
    """Seeds of the workers' coins; those of different workers must differ, or they would explore in step."""
    return [task.seeds.seed("workers", task.run, place, worker) for worker in range(n)]


def _stack(found: Sequence[Arrays], name: str) -> Float64:
    """Put one array of every run side by side: (cases, runs, ...)."""
    return np.stack([as_floats(each[name]) for each in found], axis=1)


def _ratio(ours: Float64, theirs: Float64, rng: np.random.Generator) -> Estimate:
    return bootstrap(lambda a, b: a.mean(-1) / b.mean(-1), ours, theirs, rng=rng)


def judge(
    settings: Settings, error: float, ratios: list[Estimate], more: list[Estimate], curves: list[Curve]
) -> Findings:
    """Judge what merged workers know, and what they regret."""
    known, regret = _judge_state(settings, error), _judge_regret(settings, ratios, more)
    alt = "Regret of one policy, of workers with p shared among them, and of workers with p each, against log t"
    said = "Mean regret with 95 % intervals."
    picture = plots.picture(plots.regret(curves), key=regret.claim.key, alt=alt, caption=said)
    notes = (
        r"$W$ workers with $p$ each explore $W (1 + \log(T / (W p))) / (1 + \log(T / p))$ times as much as one: "
        f"{_expected(settings):.2f} times here, measured {show(more[1])}.",
    )
    figure = plots.bars(["p shared", "p each"], more, xlabel="explored steps against one policy", marks={"one": 1.0})
    alt = "Explored steps of the workers as multiples of those of one policy"
    said = "How many rows the merged states hold."
    counts = plots.picture(figure, key=known.claim.key, alt=alt, caption=said)
    sections = (
        Section(claim=known.claim.key, heading="Merged workers know what one policy would know", pictures=(counts,)),
        Section(
            claim=regret.claim.key,
            heading="Merged workers regret no more than one policy",
            pictures=(picture,),
            notes=notes,
        ),
    )
    return Findings((known, regret), sections)


def _judge_state(settings: Settings, error: float) -> Verdict:
    claim = Claim(
        key="merge-state",
        where="Section 4, what Algorithm 1 keeps",
        says="What the policy knows is a sum over explored steps, so it can be gathered piece by piece.",
        reading="Ours: the paper speaks of one policy. "
        f"{settings.workers} workers that merge their states know what one state fed all their rows knows.",
    )
    rule = Statistic("largest difference of estimates", certain(error), Criterion("below", 1e-10))
    return Verdict(claim=claim, statistics=(rule,))


def _judge_regret(settings: Settings, ratios: list[Estimate], more: list[Estimate]) -> Verdict:
    W, (fair, unfair) = settings.workers, ratios
    claim = Claim(
        key="merge-regret",
        where="Section 4, a consequence",
        says="Workers that share what they learn regret no more together than one policy on all steps.",
        reading="Ours: the paper speaks of one policy. "
        f"{W} workers share $T = {settings.horizon:,}$ steps of the environment of Figure (a), $p = {settings.p:g}$, "
        f"and merge whenever their clocks have grown by a factor of {settings.factor:g}; each has $p/{W}$, as its "
        f"clock is {W} times slower. With $p$ each, which is the control, they must be seen to explore too much.",
    )
    rules = (
        Statistic(f"regret, $p/{W}$ each, against one", fair, Criterion("within", 0.9, 1.1)),
        Statistic(f"explored steps, $p/{W}$ each, against one", more[0], Criterion("within", 0.95, 1.05)),
        Statistic(f"explored steps, {W} times $p$, against one", more[1], Criterion("above", W / 2), Role.CONTROL),
        Statistic(f"regret, {W} times $p$, against one", unfair, Criterion("above", 1.1), Role.CONTROL),
    )
    why = {
        Outcome.HOLDS: "Merging often enough leaves no worker behind.",
        Outcome.FAILS: "A worker plays without what the others have learned since the last merge.",
    }
    return Verdict(claim=claim, statistics=rules, explanations=why)


def _expected(settings: Settings) -> float:
    W, ratio = settings.workers, settings.horizon / settings.p
    return float(W * (1 + np.log(ratio / W)) / (1 + np.log(ratio)))


EXPERIMENT: Final = Experiment("merge", "Merging: several workers against one", run)
