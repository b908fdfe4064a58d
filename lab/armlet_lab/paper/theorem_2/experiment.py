"""Theorem 2, Section 4: regret of Algorithm 1 at the p that the theorem itself asks for.

Runs jump from one exploration to the next: O(p log T) for each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from armlet.inference.means import Estimate, band, bootstrap
from armlet.parallel.seeds import Seeds
from armlet.policies import Algorithm1
from armlet.report import plots
from armlet.simulation.lab import Arrays, Lab, Scale, as_floats
from armlet.simulation.play import table_seeds
from armlet.simulation.results import doubling_ratio, log_slope
from armlet.types import Float64, Int64
from armlet_lab.paper.theorem_2.environments import ENVIRONMENTS, KnownEnvironment, figure_a, one_context, two_contexts
from armlet_lab.runner import events
from armlet_lab.runner.experiment import Experiment, Findings
from armlet_lab.runner.page import Section
from armlet_lab.runner.verdicts import Claim, Criterion, Outcome, Role, Statistic, Verdict

FIGURE_HORIZON: Final = 100_000  # of Section 6
BOUNDED: Final = Criterion("below", 1)
BATCH: Final = 250  # runs of a task where p is small


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How much to run: the small environments, and Figure (a) with p capped, or at its own p if there is no cap."""

    runs: int = 200
    horizon: int = 10**8
    long_runs: int = 8
    long_horizon: int = 10**12
    cap: int | None = 50_000
    thetas: int = 200


SCALES: dict[Scale, Settings] = {
    "quick": Settings(),
    "full": Settings(runs=2_000, long_runs=4, cap=None, thetas=1_000),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Runs of Algorithm 1 in one environment, by their numbers."""

    seeds: Seeds
    environment: str  # a key of ENVIRONMENTS
    p: float
    horizon: int
    first: int = 0
    last: int  # not included


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """Environments of Figure (a) whose p is asked for."""

    seeds: Seeds
    thetas: int


def checkpoints(horizon: int) -> Int64:
    """Give log-spaced steps from 100 on, with every power of ten and T/4, T/2 and T among them."""
    spaced = np.geomspace(100, horizon, 49).round().astype(np.int64)
    tens = 10 ** np.arange(2, int(math.log10(horizon)) + 1)
    steps: Int64 = np.unique(np.concatenate([spaced, tens, [horizon // 4, horizon // 2, horizon]]))
    return steps


def play(task: Task) -> Arrays:
    """Give regret at the checkpoints, and the part of it that was lost while exploiting: (runs, checkpoints) each."""
    table, policy = ENVIRONMENTS[task.environment](task.seeds).table, Algorithm1(p=task.p)
    pairs = (table_seeds(task.seeds, task.environment, run) for run in range(task.first, task.last))
    played = events.play(table, policy, checkpoints(task.horizon), pairs)
    return {"regret": played.regret, "exploiting": played.regret - played.exploring}


def _play(lab: Lab, stage: str, whole: Task, batch: int) -> tuple[Float64, Float64]:
    """Play all runs of a task in batches."""
    n = whole.last
    tasks = [replace(whole, first=run, last=min(run + batch, n)) for run in range(0, n, batch)]
    label = f"Theorem 2, {whole.environment}: {n} runs of T = {whole.horizon:.0e} at p = {whole.p:,.0f}"
    found = lab.map(stage, play, tasks, label)
    regret, exploiting = (
        np.concatenate([as_floats(each[name]) for each in found]) for name in ("regret", "exploiting")
    )
    return regret, exploiting


def find_small(settings: Settings, lab: Lab) -> tuple[Verdict, Section]:
    """Compare regret with the bound in two environments whose p is small."""
    steps, rng = checkpoints(settings.horizon), lab.rng("intervals where p is small")
    statistics: list[Statistic] = []
    pictures, notes = [], []
    for problem in (one_context(), two_contexts()):
        task = Task(
            seeds=lab.seeds, environment=problem.name, p=problem.p, horizon=settings.horizon, last=settings.runs
        )
        regret, exploiting = _play(lab, problem.name.replace(" ", "-"), task, BATCH)
        bound = problem.bound(problem.p, steps)
        statistics += _ratios(problem.name, steps, regret / bound, rng)
        pictures.append(_picture(f"theorem-2-small-{problem.dim}", problem, steps, regret, bound, rng))
        notes.append(
            f"{problem.name}, p = {problem.p:,.0f}: {np.count_nonzero(exploiting[:, -1] > 1e-6)} of {settings.runs} "
            f"runs lost anything while exploiting; the bound at T = {settings.horizon:,} is {bound[-1]:,.0f}."
        )
    statistics.append(_control(settings, lab, rng))
    verdict = Verdict(claim=_small_claim(), statistics=tuple(statistics), explanations=SMALL_WHY)
    heading = "The bound where its p is small"
    return verdict, Section(claim=verdict.claim.key, heading=heading, pictures=tuple(pictures), notes=tuple(notes))


def _ratios(name: str, steps: Int64, ratio: Float64, rng: np.random.Generator) -> list[Statistic]:
    decades = [T for T in (10**4, 10**5, 10**6, 10**7, 10**8) if steps[-1] >= T]
    columns = [(T, ratio[:, int(np.searchsorted(steps, T))]) for T in decades]
    return [Statistic(f"{name}: R(T) / bound, T = {T:.0e}", _mean(column, rng), BOUNDED) for T, column in columns]


def _control(settings: Settings, lab: Lab, rng: np.random.Generator) -> Statistic:
    """Break the bound with p = 2 in the first environment: the comparison is able to fail."""
    problem, p = one_context(), 2.0
    task = Task(seeds=lab.seeds, environment=problem.name, p=p, horizon=settings.horizon, last=settings.runs)
    regret, _ = _play(lab, "control", task, BATCH)
    ratio = regret[:, -1] / problem.bound(p, checkpoints(settings.horizon))[-1]
    name = "one context, p = 2 where 256 is asked for: R(T) / bound"
    return Statistic(name, _mean(ratio, rng), Criterion("above", 1), Role.CONTROL)


def find_own(settings: Settings, lab: Lab) -> tuple[Verdict, Section]:
    """Run Figure (a) at the theorem's p, or at the cap, which is then a reading."""
    problem, T = ENVIRONMENTS["Figure (a)"](lab.seeds), settings.long_horizon
    p = math.ceil(problem.p) if settings.cap is None else min(settings.cap, math.ceil(problem.p))
    role = Role.WRITTEN if p >= problem.p else Role.READING
    steps, rng = checkpoints(T), lab.rng("intervals at its own p")
    task = Task(seeds=lab.seeds, environment=problem.name, p=p, horizon=T, last=settings.long_runs)
    regret, exploiting = _play(lab, "own", task, 1)  # a run explores p log T times, and takes that long
    bound, unit = problem.bound(p, steps), p * problem.table.gap
    worst, gap = float(exploiting[:, -1].max()), problem.constants.delta_min
    slope = log_slope(steps, regret, rng, start=10 * p, unit=unit)
    statistics = (
        Statistic("R(T) / bound", _mean(regret[:, -1] / bound[-1], rng), BOUNDED, role),
        Statistic("most lost exploiting in a run", Estimate(worst, worst, worst), Criterion("below", gap), role),
        Statistic("doubling ratio", doubling_ratio(steps, regret, rng), Criterion("within", 0.8, 1.3), role),
        Statistic("slope on log t / (p gap)", slope, Criterion("within", 0.95, 1.35), role),
    )
    verdict = Verdict(claim=_own_claim(problem, p, settings), statistics=statistics, explanations=OWN_WHY)
    picture = _picture("theorem-2-own", problem, steps, regret, bound, rng)
    heading = "Figure (a), run long enough for the theorem"
    return verdict, Section(claim=verdict.claim.key, heading=heading, pictures=(picture,))


def find_size(settings: Settings, lab: Lab) -> tuple[Verdict, Section]:
    """Compare the theorem's p with the horizon of the paper's own figures, over many draws of theta."""
    draws, label = Draws(seeds=lab.seeds, thetas=settings.thetas), f"Theorem 2: the p of {settings.thetas} environments"
    (found,) = lab.map("size", ask, [draws], label)
    p, rng = as_floats(found["p"]), lab.rng("intervals of p")
    ratio = bootstrap(lambda column: np.median(column, axis=-1), p / FIGURE_HORIZON, rng=rng)
    statistic = Statistic("median of p / T at T = 100,000", ratio, BOUNDED)
    verdict = Verdict(claim=_size_claim(settings), statistics=(statistic,), explanations=SIZE_WHY)
    quantiles = np.quantile(p, [0.0, 0.25, 0.5, 0.75, 1.0])
    logs = [Estimate(math.log10(q), math.log10(q), math.log10(q)) for q in quantiles]
    names = ("smallest", "first quarter", "median", "third quarter", "largest")
    figure = plots.bars(names, logs, xlabel="log10 of the p that Theorem 2 asks for", marks={"T of Section 6": 5.0})
    alt = (
        f"The p of Theorem 2 over {settings.thetas} environments of Figure (a), and the horizon of the paper's figures."
    )
    picture = plots.picture(figure, key="theorem-2-size", alt=alt, caption=alt)
    share = np.mean(p >= FIGURE_HORIZON)
    notes = (f"In {share:.1%} of the environments, a run of T = 100,000 at the theorem's p ends inside the warm-up.",)
    heading = "How large the theorem's p is"
    return verdict, Section(claim=verdict.claim.key, heading=heading, pictures=(picture,), notes=notes)


def ask(draws: Draws) -> Arrays:
    """Give the theorem's p of every environment: (thetas,)."""
    rngs = (draws.seeds.rng("worlds", index) for index in range(draws.thetas))
    return {"p": np.array([figure_a(rng).p for rng in rngs])}


def _mean(column: Float64, rng: np.random.Generator) -> Estimate:
    return bootstrap(lambda each: each.mean(-1), column, rng=rng)


def _picture(
    key: str, problem: KnownEnvironment, steps: Int64, regret: Float64, bound: Float64, rng: np.random.Generator
) -> plots.Picture:
    at = steps.astype(np.float64)
    means, limit = band(regret, rng), np.tile(bound, (3, 1))
    curves = [plots.Curve("regret R(t)", at, means), plots.Curve("printed bound", at, limit)]
    alt = f"{problem.name}: mean regret of {len(regret)} runs and the bound of Theorem 2, against log t."
    return plots.picture(plots.regret(curves), key=key, alt=alt, caption=f"{alt} The band is a 95 % interval.")


SAYS: Final = (
    "At any p of at least C K L'^2 / (Delta'_min Sigma'_min)^2, regret is at most "
    "Delta_max sqrt(d) (p + 14 K e^(Q/4) + p log T)."
)
SMALL_WHY: Final = {
    Outcome.HOLDS: "At its own p nearly all regret is the price of exploring, and the bound charges more for that.",
}
OWN_WHY: Final = {
    Outcome.UNDER_READING: (
        "These runs use a smaller p than the theorem's, to be short, and the bound with that p in it; the full run "
        "uses the theorem's."
    ),
    Outcome.HOLDS: "Regret is the price of exploring and nothing else, over all decades after the warm-up.",
}
SIZE_WHY: Final = {
    Outcome.FAILS: (
        "The condition divides by the squares of the smallest gap and of the smallest eigenvalue. With it the policy "
        "never leaves the warm-up within the horizon of the figures, and its regret there is linear: what the "
        "figures show happens at far smaller p, which the theorem does not cover."
    ),
}


def _small_claim() -> Claim:
    reading = (
        "C = 128, from the proof's first condition, since the theorem leaves it open. Two environments with K = 2, "
        "gap 1 and gaussian noise of L = 1: one context (p = 256), and the two unit vectors of the plane (p = 1,024)."
    )
    return Claim(key="theorem-2-small", where="Theorem 2", says=SAYS, reading=reading)


def _own_claim(problem: KnownEnvironment, p: int, settings: Settings) -> Claim:
    reading = (
        "The first environment of Figure (a) with a p of at most 10^7, "
        f"delta_min = {problem.constants.delta_min:.3g}: C = 128 gives p = {problem.p:,.0f}. "
        f"Run at p = {p:,} up to T = {settings.long_horizon:.0e}; exploiting must lose nothing, and the slope is "
        "compared with p times the mean gap."
    )
    says = "With that p, regret is logarithmic in T and within the bound, on the problem of the paper's Figure (a) too."
    return Claim(key="theorem-2-own-p", where="Theorem 2, Figure (a)", says=says, reading=reading)


def _size_claim(settings: Settings) -> Claim:
    says = "Figure (a), over 100,000 steps, illustrates the logarithmic regret that the theorem promises."
    reading = f"The theorem's p with C = 128, over {settings.thetas} draws of theta, is less than the figure's T."
    return Claim(key="theorem-2-size", where="Theorem 2, Section 6", says=says, reading=reading)


def find(settings: Settings, lab: Lab) -> Findings:
    """Judge Theorem 2 where its p is small, at its own p, and by the size of that p.

    Examples
    --------
    >>> tiny = Settings(runs=3, horizon=10**5, long_runs=2, long_horizon=10**6, cap=2_000, thetas=3)
    >>> [verdict.claim.key for verdict in find(tiny, Lab(seed=1)).verdicts]
    ['theorem-2-small', 'theorem-2-own-p', 'theorem-2-size']
    """
    found = [part(settings, lab) for part in (find_small, find_own, find_size)]
    return Findings(tuple(verdict for verdict, _ in found), tuple(section for _, section in found))


def run(lab: Lab) -> Findings:
    """Judge Theorem 2 with the settings of the lab's scale."""
    return find(SCALES[lab.scale], lab)


EXPERIMENT = Experiment("theorem-2", "Theorem 2: the regret bound at its own p", run)
