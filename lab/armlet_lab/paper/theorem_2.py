"""Theorem 2, Section 4: regret of Algorithm 1 at the p that the theorem itself asks for.

The formulas are those of `armlet.theory`, to the letter and in the unit of the rewards. The theorem leaves its constant
C open. The proof needs p >= 128 K L^2 / (Delta_min Sigma_min)^2 among others, so C is at least 128, and 128 is what is
used here: the smallest p for which the proof could work. Three claims: the bound where its p is small, the bound and
the growth at that p in an environment of Figure (a), and whether that p is smaller than the figure's horizon.
Runs jump from one exploration to the next: O(p log T) for each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from armlet import theory
from armlet.environments.environment import Constants, FiniteEnvironment, noise_sigma
from armlet.environments.paper import FigureA
from armlet.inference.intervals import band, bootstrap, doubling_ratio, log_slope
from armlet.parallel import Seeds
from armlet.policies import Algorithm1
from armlet.report import plots
from armlet.report.numbers import percent
from armlet.simulation.lab import Arrays, Lab, Scale, as_floats
from armlet.simulation.play import play_table, table_seeds
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
    conclude,
)

C: Final = 128  # the least that the proof's own condition leaves for the theorem's constant
MOST: Final = 10**7  # the largest p that is run
FIGURE_HORIZON: Final = 100_000  # of Section 6
BOUNDED: Final = Criterion("below", 1)
BATCH: Final = 250  # runs of a task where p is small


@dataclass(frozen=True, slots=True)
class KnownEnvironment:
    """An environment that is a table, and what the theorem needs to know of it."""

    name: str
    table: FiniteEnvironment
    known: theory.Problem

    @classmethod
    def of(cls, name: str, table: FiniteEnvironment, theta: Float64) -> KnownEnvironment:
        """Compute the constants of a table whose means are x'theta."""
        return cls(name, table, theory.Problem.of(table, theta, sigma=noise_sigma(table)))

    @property
    def constants(self) -> Constants:
        """The constants of the environment."""
        return self.known.constants

    @property
    def n_arms(self) -> int:
        """The number of arms, K."""
        return self.known.n_arms

    @property
    def dim(self) -> int:
        """The number of features of a context, d."""
        return self.known.dim

    @property
    def p(self) -> float:
        """The printed condition on p with C = 128, primes as in the theorem."""
        return theory.theorem_p(self.constants, n_arms=self.n_arms, C=C)

    def allowed(self, p: float) -> float:
        """Return a C under which p meets the printed condition: 128, or just less than p allows if that is smaller.

        Examples
        --------
        >>> one_context().allowed(256.1), round(one_context().allowed(2), 6)
        (128, 0.999)
        """
        # a thousandth below, so that rounding cannot put the condition above p; the bound itself does not contain C
        return C if p >= self.p else 0.999 * C * p / self.p

    def bound(self, p: float, steps: Int64) -> Float64:
        """Return the printed bound on R(T), were `allowed(p)` the theorem's constant: (steps,)."""
        # The control with p = 2 and runs with a capped p are below the condition with C = 128 on purpose, and there the
        # theorem promises nothing. What is compared is then the bound of a theorem with a smaller C.
        least = self.allowed(p)
        return np.array([theory.theorem_bound(self.known, p=p, horizon=int(T), C=least).total for T in steps])


def one_context() -> KnownEnvironment:
    """Return K = 2, d = 1, x = 1, a gap of 1, and as much noise as p = 256 covers, L = 1.

    Examples
    --------
    >>> round(one_context().p), round(one_context().constants.L, 3)
    (256, 1.0)
    """
    theta = np.array([[0.0], [1.0]])
    sure, means = np.ones(1), np.array([[0.0, 1.0]])
    table = FiniteEnvironment(contexts=sure[:, None], chances=sure, means=means, noise="gaussian", scale=math.sqrt(2.0))
    return KnownEnvironment.of("one context", table, theta)


def two_contexts() -> KnownEnvironment:
    """Return K = 2, d = 2, x one of the two unit vectors, each arm better in one of them.

    Examples
    --------
    >>> round(two_contexts().p)
    1024
    """
    even, means = np.full(2, 0.5), np.eye(2)
    table = FiniteEnvironment(contexts=np.eye(2), chances=even, means=means, noise="gaussian", scale=math.sqrt(2.0))
    return KnownEnvironment.of("two contexts", table, np.eye(2))


def figure_a(rng: np.random.Generator) -> KnownEnvironment:
    """Draw an environment of Figure (a)."""
    environment = FigureA.draw(rng)
    table = environment.table()
    if table is None:
        raise ValueError("the environment of Figure (a) has no table")
    return KnownEnvironment.of("Figure (a)", table, np.array(environment.theta))


def figure_a_that_can_be_run(seeds: Seeds) -> KnownEnvironment:
    """Draw environments of Figure (a) until the theorem's p is at most 10^7: a run costs p log T, and some p are 10^11.

    Examples
    --------
    >>> figure_a_that_can_be_run(Seeds(7)).p <= MOST
    True
    """
    rng = seeds.rng("world that can be run")
    while (problem := figure_a(rng)).p > MOST:
        pass
    return problem


SMALL: Final = (one_context(), two_contexts())
CONTROL, WEAK_P = "control", 2.0  # where the comparison with the bound must fail
ENVIRONMENTS: Final[dict[str, Callable[[Seeds], KnownEnvironment]]] = {  # given seeds, if they are drawn
    "one context": lambda _: one_context(),
    "two contexts": lambda _: two_contexts(),
    "Figure (a)": figure_a_that_can_be_run,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How much to run: the small environments, and Figure (a) with p capped, or at its own p if there is no cap."""

    runs: int = 200
    horizon: int = 10**8
    long_runs: int = 8
    long_horizon: int = 10**12
    cap: int | None = 50_000
    thetas: int = 200


SCALES: Final[dict[Scale, Settings]] = {
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


class Regrets(NamedTuple):
    """All runs in one environment, each (runs, checkpoints)."""

    regret: Float64
    exploiting: Float64  # the part of it that was lost while exploiting


def run(lab: Lab) -> Findings:
    """Run the experiment at the lab's scale."""
    return find(SCALES[lab.scale], lab)


def find(settings: Settings, lab: Lab) -> Findings:
    """Play where the theorem's p is small and at its own p, ask for the p of many environments, and judge.

    Examples
    --------
    >>> tiny = Settings(runs=3, horizon=10**5, long_runs=2, long_horizon=10**6, cap=2_000, thetas=3)
    >>> [verdict.claim.key for verdict in find(tiny, Lab(seed=1)).verdicts]
    ['theorem-2-small', 'theorem-2-own-p', 'theorem-2-size']
    """
    small, own, p = play_small(settings, lab), play_own(settings, lab), ask(settings, lab)
    return judge(settings, lab.seeds, small=small, own=own, p=p)


def play_small(settings: Settings, lab: Lab) -> dict[str, Regrets]:
    """Play both environments whose p is small; and, as a control, the first with p = 2."""
    played = {}
    for name, problem, p in (*((each.name, each, each.p) for each in SMALL), (CONTROL, SMALL[0], WEAK_P)):
        task = Task(seeds=lab.seeds, environment=problem.name, p=p, horizon=settings.horizon, last=settings.runs)
        played[name] = _play(lab, name.replace(" ", "-"), task, BATCH)
    return played


def play_own(settings: Settings, lab: Lab) -> Regrets:
    """Play Figure (a) at the theorem's p, or at the cap."""
    problem, p = _own_p(settings, lab.seeds)
    task = Task(seeds=lab.seeds, environment=problem.name, p=p, horizon=settings.long_horizon, last=settings.long_runs)
    return _play(lab, "own", task, 1)  # a run explores p log T times, and takes that long


def _own_p(settings: Settings, seeds: Seeds) -> tuple[KnownEnvironment, int]:
    problem = ENVIRONMENTS["Figure (a)"](seeds)
    p = math.ceil(problem.p)
    return problem, p if settings.cap is None else min(settings.cap, p)


def ask(settings: Settings, lab: Lab) -> Float64:
    """Return the theorem's p of many environments of Figure (a): (thetas,)."""
    draws, label = Draws(seeds=lab.seeds, thetas=settings.thetas), f"Theorem 2: the p of {settings.thetas} environments"
    (found,) = lab.map("size", ask_all, [draws], label)
    return as_floats(found["p"])


def checkpoints(horizon: int) -> Int64:
    """Return log-spaced steps from 100 on, with every power of ten and T/4, T/2 and T among them."""
    spaced = np.geomspace(100, horizon, 49).round().astype(np.int64)
    tens = 10 ** np.arange(2, int(math.log10(horizon)) + 1)
    steps: Int64 = np.unique(np.concatenate([spaced, tens, [horizon // 4, horizon // 2, horizon]]))
    return steps


def play(task: Task) -> Arrays:
    """Return regret at the checkpoints, and the part of it that was lost while exploiting: (runs, checkpoints) each."""
    table, policy = ENVIRONMENTS[task.environment](task.seeds).table, Algorithm1(p=task.p)
    pairs = [table_seeds(task.seeds, task.environment, run) for run in range(task.first, task.last)]
    runs = [play_table(table, policy, checkpoints(task.horizon), pair, jumps=True) for pair in pairs]
    regret = np.array([run.regret for run in runs])
    return {"regret": regret, "exploiting": regret - np.array([run.exploring for run in runs])}


def ask_all(draws: Draws) -> Arrays:
    """Return the theorem's p of every environment: (thetas,)."""
    rngs = (draws.seeds.rng("worlds", index) for index in range(draws.thetas))
    return {"p": np.array([figure_a(rng).p for rng in rngs])}


def _play(lab: Lab, stage: str, whole: Task, batch: int) -> Regrets:
    """Play all runs of a task in batches."""
    n = whole.last
    tasks = [replace(whole, first=run, last=min(run + batch, n)) for run in range(0, n, batch)]
    label = f"Theorem 2, {whole.environment}: {n} runs of T = {whole.horizon:,} at p = {whole.p:,.0f}"
    found = lab.map(stage, play, tasks, label)
    parts = (np.concatenate([as_floats(each[name]) for each in found]) for name in ("regret", "exploiting"))
    return Regrets(*parts)


def judge(settings: Settings, seeds: Seeds, *, small: Mapping[str, Regrets], own: Regrets, p: Float64) -> Findings:
    """Judge the three claims."""
    return Findings.of(
        [judge_small(settings, small, seeds), judge_own(settings, own, seeds), judge_size(settings, p, seeds)]
    )


def judge_small(settings: Settings, played: Mapping[str, Regrets], seeds: Seeds) -> tuple[Verdict, Section]:
    """Compare regret with the bound in two environments whose p is small; with p = 2 the comparison must fail."""
    steps, rng = checkpoints(settings.horizon), seeds.rng("intervals where p is small")
    statistics: list[Statistic] = []
    pictures, notes = [], []
    for problem in SMALL:
        regret, exploiting = played[problem.name]
        bound = problem.bound(problem.p, steps)
        statistics += _ratios(problem.name, steps, regret / bound, rng)
        pictures.append(_picture(f"theorem-2-small-{problem.dim}", problem, steps, regret, bound, rng))
        notes.append(
            f"{problem.name}, $p = {problem.p:,.0f}$: {np.count_nonzero(exploiting[:, -1] > 1e-6)} of {settings.runs} "
            f"runs lost anything while exploiting; the bound at $T = {settings.horizon:,}$ is {bound[-1]:,.0f}."
        )
    ratio = played[CONTROL].regret[:, -1] / SMALL[0].bound(WEAK_P, steps)[-1]
    name = "one context, $p = 2$ where 256 is asked for: $R(T)$ / bound"
    statistics.append(Statistic(name, _mean(ratio, rng), Criterion("above", 1), Role.CONTROL))
    verdict = Verdict(claim=_small_claim(), statistics=tuple(statistics), explanations=SMALL_WHY)
    heading = "Regret stays below the bound where its $p$ is small"
    return verdict, Section(claim=verdict.claim.key, heading=heading, pictures=tuple(pictures), notes=tuple(notes))


def _ratios(name: str, steps: Int64, ratio: Float64, rng: np.random.Generator) -> list[Statistic]:
    decades = [T for T in (10**4, 10**5, 10**6, 10**7, 10**8) if steps[-1] >= T]
    columns = [(T, ratio[:, int(np.searchsorted(steps, T))]) for T in decades]
    return [
        Statistic(f"{name}: $R(T)$ / bound, $T = 10^{{{round(math.log10(T))}}}$", _mean(column, rng), BOUNDED)
        for T, column in columns
    ]


def judge_own(settings: Settings, played: Regrets, seeds: Seeds) -> tuple[Verdict, Section]:
    """Judge the runs of Figure (a); with a p below the theorem's they are a reading."""
    problem, p = _own_p(settings, seeds)
    role = Role.WRITTEN if p >= problem.p else Role.READING
    (regret, exploiting), steps, rng = played, checkpoints(settings.long_horizon), seeds.rng("intervals at its own p")
    bound, unit = problem.bound(p, steps), p * problem.table.gap
    worst, gap = float(exploiting[:, -1].max()), problem.constants.delta_min
    slope = log_slope(steps, regret, rng, start=10 * p, unit=unit)
    statistics = (
        Statistic("$R(T)$ / bound", _mean(regret[:, -1] / bound[-1], rng), BOUNDED, role),
        Statistic("most lost exploiting in a run", certain(worst), Criterion("below", gap), role),
        Statistic("doubling ratio", doubling_ratio(steps, regret, rng), Criterion("within", 0.8, 1.3), role),
        Statistic(r"slope on $\log t$ / ($p$ gap)", slope, Criterion("within", 0.95, 1.35), role),
    )
    verdict = Verdict(claim=_own_claim(problem, p, settings), statistics=statistics, explanations=OWN_WHY)
    picture = _picture("theorem-2-own", problem, steps, regret, bound, rng)
    heading = "Figure (a) stays below the bound at the theorem's $p$"
    return verdict, Section(claim=verdict.claim.key, heading=heading, pictures=(picture,))


def judge_size(settings: Settings, p: Float64, seeds: Seeds) -> tuple[Verdict, Section]:
    """Compare the theorem's p with the horizon of the paper's own figures, over many draws of theta."""
    rng = seeds.rng("intervals of p")
    ratio = bootstrap(lambda column: np.median(column, axis=-1), p / FIGURE_HORIZON, rng=rng)
    statistic = Statistic("median of $p / T$ at $T = 100,000$", ratio, BOUNDED)
    verdict = Verdict(
        claim=_size_claim(settings), statistics=(statistic,), explanations=SIZE_WHY, conclusions=SIZE_CONCLUSIONS
    )
    quantiles = np.quantile(p, [0.0, 0.25, 0.5, 0.75, 1.0])
    logs = [Estimate(math.log10(q), math.log10(q), math.log10(q)) for q in quantiles]
    names = ("smallest", "first quarter", "median", "third quarter", "largest")
    figure = plots.bars(names, logs, xlabel="log₁₀ of the p that Theorem 2 asks for", marks={"T of Section 6": 5.0})
    alt = (
        f"The p of Theorem 2 over {settings.thetas} environments of Figure (a), and the horizon of the paper's figures."
    )
    picture = plots.picture(figure, key="theorem-2-size", alt=alt, caption=alt)
    share = percent(float(np.mean(p >= FIGURE_HORIZON)))
    notes = (f"In {share} of the environments, a run of $T = 100,000$ at the theorem's $p$ ends inside the warm-up.",)
    heading = "Figure (a) shows the regret that the theorem promises"
    return verdict, Section(claim=verdict.claim.key, heading=heading, pictures=(picture,), notes=notes)


def _mean(column: Float64, rng: np.random.Generator) -> Estimate:
    return bootstrap(lambda each: each.mean(-1), column, rng=rng)


def _picture(
    key: str, problem: KnownEnvironment, steps: Int64, regret: Float64, bound: Float64, rng: np.random.Generator
) -> plots.Picture:
    at = steps.astype(np.float64)
    means, limit = band(regret, rng), np.tile(bound, (3, 1))
    curves = [plots.Curve("regret R(t)", at, means), plots.Curve("printed bound", at, limit)]
    alt = f"{problem.name.capitalize()}: mean regret of {len(regret)} runs and the bound of Theorem 2, against log t."
    return plots.picture(plots.regret(curves), key=key, alt=alt, caption=f"{alt} The band is a 95 % interval.")


SAYS: Final = (
    r"At any $p$ of at least $C K L'^2 / (\Delta'_{\min} \Sigma'_{\min})^2$, regret is at most "
    r"$\Delta_{\max} \sqrt d (p + 14 K e^{Q/4} + p \log T)$."
)
SMALL_WHY: Final = {
    Outcome.HOLDS: "At its own $p$ nearly all regret is the price of exploring, and the bound charges more for that.",
}
OWN_WHY: Final = {
    Outcome.UNDER_READING: (
        "These runs use a smaller $p$ than the theorem's, to be short, and the bound with that $p$ in it; the full run "
        "uses the theorem's."
    ),
    Outcome.HOLDS: "Regret is the price of exploring and nothing else, over all decades after the warm-up.",
}
SIZE_WHY: Final = {
    Outcome.FAILS: (
        "The condition divides by the squares of the smallest gap and of the smallest eigenvalue. With it the policy "
        "never leaves the warm-up within the horizon of the figures, and its regret there is linear: what the "
        "figures show happens at far smaller $p$, which the theorem does not cover."
    ),
}


SIZE_CONCLUSIONS: Final = conclude(
    "the paper's figures have more steps than Theorem 2 asks to explore",
    "Theorem 2 asks for more exploration than the paper's figures have steps",
)


def _small_claim() -> Claim:
    reading = (
        "$C = 128$, from the proof's first condition, since the theorem leaves it open. Two environments with $K = 2$, "
        "gap 1 and gaussian noise of $L = 1$: one context ($p = 256$), and the two unit vectors of the plane "
        "($p = 1,024$)."
    )
    return Claim(key="theorem-2-small", where="Theorem 2", says=SAYS, reading=reading)


def _own_claim(problem: KnownEnvironment, p: int, settings: Settings) -> Claim:
    reading = (
        "The first environment of Figure (a) with a $p$ of at most $10^7$, "
        rf"$\delta_{{\min}} = {problem.constants.delta_min:.3g}$: $C = 128$ gives $p = {problem.p:,.0f}$. "
        f"Run at $p = {p:,}$ up to $T = 10^{{{round(math.log10(settings.long_horizon))}}}$; exploiting must lose "
        "nothing, and the slope is compared with $p$ times the mean gap."
    )
    says = "With that $p$, regret is logarithmic in $T$ and within the bound, in the paper's Figure (a) too."
    return Claim(key="theorem-2-own-p", where="Theorem 2, Figure (a)", says=says, reading=reading)


def _size_claim(settings: Settings) -> Claim:
    says = "Figure (a), over 100,000 steps, illustrates the logarithmic regret that the theorem promises."
    reading = (
        rf"The theorem's $p$ with $C = 128$, over {settings.thetas} draws of $\theta$, is less than the figure's $T$."
    )
    return Claim(key="theorem-2-size", where="Theorem 2, Section 6", says=says, reading=reading)


EXPERIMENT: Final = Experiment("theorem-2", "Theorem 2: the regret bound at its own p", run)
