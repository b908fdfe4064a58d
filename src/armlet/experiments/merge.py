"""What merging costs: several workers that share what they learn, against one that sees every step.

Algorithm 1 keeps sums over explored steps, so states of different workers add up. Every worker has a clock of its own:
of T steps it counts T/W, and explores as much as one policy on all of them only if it is given p/W.
Workers play from the state merged last, and merge whenever their clocks have grown by a factor.
O(T (K + d)) for each run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from armlet.core import kernel
from armlet.core.kernel import Statistics
from armlet.core.types import Float64, Int64
from armlet.environments import FigureA
from armlet.experiments import plots
from armlet.experiments.experiment import Experiment, Findings, Scale
from armlet.experiments.plots import Curve
from armlet.experiments.rates import Estimate, band, bootstrap
from armlet.experiments.report import Picture, Section
from armlet.experiments.verdicts import Claim, Criterion, Outcome, Role, Statistic, Verdict, show
from armlet.policies import ContextualEpsilonGreedy

KEY: Final = 10  # of this experiment's streams
WORLD, STEPS, COINS, INTERVALS = range(4)
POINTS: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is run, and how often."""

    workers: int = 4
    p: float = 600.0
    horizon: int  # steps of all workers together, a multiple of their number
    factor: float = 1.1  # workers merge when their clocks have grown by it
    runs: int


QUICK: Final = Settings(horizon=100_000, runs=40)
FULL: Final = Settings(horizon=1_000_000, runs=100)


@dataclass(frozen=True, slots=True)
class Steps:
    """What the world brings in one run, whoever plays it."""

    contexts: Float64  # (T, d)
    rewards: Float64  # (T, K)
    losses: Float64  # (T, K)


@dataclass(frozen=True, slots=True)
class Played:
    """What one run came to."""

    regret: Float64  # (T,): cumulative, in the order of the steps
    explored: int
    error: float  # largest difference of estimates from one state fed every explored row


def run(scale: Scale, seed: int, say: Callable[[str], None]) -> Findings:
    """Compare merged workers with one policy."""
    return analyse(FULL if scale == "full" else QUICK, seed, say)


def analyse(settings: Settings, seed: int, say: Callable[[str], None]) -> Findings:
    """Compare merged workers with one policy, with given settings."""
    W, T = settings.workers, settings.horizon
    cases = {"one, p": (1, settings.p), f"{W} workers, p/{W}": (W, settings.p / W), f"{W} workers, p": (W, settings.p)}
    at = np.union1d(np.geomspace(100, T, POINTS).astype(np.int64), [T])
    curves = np.empty((len(cases), settings.runs, len(at)))
    explored, errors = np.empty((2, len(cases), settings.runs))
    for index in range(settings.runs):
        if index % 10 == 0:
            say(f"Merging: run {index + 1} of {settings.runs}, {T:,} steps each")
        steps = _draw(settings, seed, index)
        for place, (workers, p) in enumerate(cases.values()):
            played = share(steps, p, settings.factor, _coins(seed, index, place, workers))
            curves[place, index] = played.regret[at - 1]
            explored[place, index], errors[place, index] = played.explored, played.error
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(KEY, INTERVALS)))
    pictured = [Curve(name, at.astype(np.float64), band(found, rng)) for name, found in zip(cases, curves, strict=True)]
    ratios = [_ratio(found[:, -1], curves[0, :, -1], rng) for found in curves[1:]]
    more = [_ratio(found, explored[0], rng) for found in explored[1:]]
    return _judge(settings, float(errors[1:].max()), ratios, more, pictured)


def share(steps: Steps, p: float, factor: float, seeds: list[int]) -> Played:
    """Play worker w, one for each seed, on steps w, w + W, w + 2 W, ... from what all have learned so far."""
    (T, n_arms), workers = steps.rewards.shape, len(seeds)
    policy = ContextualEpsilonGreedy(p=p)
    merged, everything = (policy.init(n_arms, steps.contexts.shape[1]) for _ in range(2))
    losses, explored = np.empty(T), 0
    for start, end in pairwise(_meetings(T // workers, p, factor)):
        news = []
        for worker, seed in enumerate(seeds):
            mine = slice(start * workers + worker, end * workers, workers)
            X, rewards = np.ascontiguousarray(steps.contexts[mine]), np.ascontiguousarray(steps.rewards[mine])
            played = kernel.rollout(X, rewards, start=merged, schedule=policy.schedule(), seed=seed, t=start)
            rows = np.arange(len(X))
            losses[mine] = steps.losses[mine][rows, played.arms]
            kept = rows[played.explored]
            learned = policy.init(n_arms, X.shape[1])
            for state in (learned, everything):
                _learn(state, played.arms[kept], X[kept], rewards[kept, played.arms[kept]])
            news.append(learned)
            explored += len(kept)
        for learned in news:
            merged.merge(learned, range(n_arms))
    error = float(np.abs(merged.estimates() - everything.estimates()).max())
    return Played(np.cumsum(losses), explored, error)


def _meetings(steps: int, p: float, factor: float) -> list[int]:
    """Give the local clocks at which workers merge: after the warm-up, then ever more rarely.

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


def _draw(settings: Settings, seed: int, index: int) -> Steps:
    if settings.horizon % settings.workers:
        raise ValueError(f"horizon is {settings.horizon} but must be a multiple of workers, {settings.workers}")
    world = FigureA.draw(np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(KEY, WORLD, index))))
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(KEY, STEPS, index)))
    X = world.contexts(rng, settings.horizon)
    means = world.means(X)
    return Steps(X, world.rewards(rng, X), means.max(axis=1, keepdims=True) - means)


def _coins(seed: int, index: int, place: int, n: int) -> list[int]:
    """Seeds of the workers' coins; those of different workers must differ, or they would explore in step."""
    return [int(bits) for bits in np.random.SeedSequence(seed, spawn_key=(KEY, COINS, index, place)).generate_state(n)]


def _ratio(ours: Float64, theirs: Float64, rng: np.random.Generator) -> Estimate:
    return bootstrap(lambda a, b: a.mean(-1) / b.mean(-1), ours, theirs, rng=rng)


def _judge(
    settings: Settings, error: float, ratios: list[Estimate], more: list[Estimate], curves: list[Curve]
) -> Findings:
    known, regret = _judge_state(settings, error), _judge_regret(settings, ratios, more)
    alt = "Regret of one policy, of workers with p shared among them, and of workers with p each, against log t"
    picture = Picture(
        plots.svg(plots.regret(curves), key=regret.claim.key, alt=alt), "Mean regret with 95 % intervals."
    )
    notes = (
        f"W workers with p each explore W (1 + log(T / (W p))) / (1 + log(T / p)) times as much as one: "
        f"{_expected(settings):.2f} times here, measured {show(more[1])}.",
    )
    figure = plots.bars(["p shared", "p each"], more, xlabel="explored steps against one policy", marks={"one": 1.0})
    alt = "Explored steps of the workers as multiples of those of one policy"
    counts = Picture(plots.svg(figure, key=known.claim.key, alt=alt), "How many rows the merged states hold.")
    sections = (
        Section(claim=known.claim.key, heading="What merged workers know", pictures=(counts,)),
        Section(claim=regret.claim.key, heading="What merged workers regret", pictures=(picture,), notes=notes),
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
    rule = Statistic("largest difference of estimates", Estimate(error, error, error), Criterion("below", 1e-10))
    return Verdict(claim=claim, statistics=(rule,))


def _judge_regret(settings: Settings, ratios: list[Estimate], more: list[Estimate]) -> Verdict:
    W, (fair, unfair) = settings.workers, ratios
    claim = Claim(
        key="merge-regret",
        where="Section 4, a consequence",
        says="Workers that share what they learn regret no more together than one policy on all steps.",
        reading="Ours: the paper speaks of one policy. "
        f"{W} workers share T = {settings.horizon:,} steps of the world of Figure (a), p = {settings.p:g}, and "
        f"merge whenever their clocks have grown by a factor of {settings.factor:g}; each has p/{W}, as its clock is "
        f"{W} times slower. With p each, which is the control, they must be seen to explore too much.",
    )
    rules = (
        Statistic(f"regret, p/{W} each, against one", fair, Criterion("within", 0.9, 1.1)),
        Statistic(f"explored steps, p/{W} each, against one", more[0], Criterion("within", 0.95, 1.05)),
        Statistic(f"explored steps, {W} times p, against one", more[1], Criterion("above", W / 2), Role.CONTROL),
        Statistic(f"regret, {W} times p, against one", unfair, Criterion("above", 1.1), Role.CONTROL),
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
