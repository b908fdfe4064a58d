"""Section 4.2, first paragraph: p from a law of problems, by the theorem and by simulation, and from a small pilot.

The theorem's p is that which all but 5 % of the law's problems ask for at most. The advisor (`armlet.advise`, without
its look at other policies and with fewer runs) sees the law, or a pilot of the very problem; then every choice plays
the same fresh contexts and noise as a grid of fixed p, the best of which is known only in hindsight.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from armlet.advice import Pilot
from armlet.advice.ask import prepare
from armlet.advice.pilot import Posterior, as_source
from armlet.advice.problem import Source
from armlet.advice.runs import predictive
from armlet.environments.environment import LinearArms
from armlet.environments.families import FAMILIES, draw_problem
from armlet.inference.intervals import bootstrap
from armlet.parallel import Seeds
from armlet.policies import Algorithm1, ContextualEpsilonGreedy
from armlet.report import plots
from armlet.report.document import Table
from armlet.report.numbers import percent
from armlet.simulation.lab import Arrays, Lab, Scale, as_floats
from armlet.theory import required_p
from armlet.types import Estimate, Float64
from armlet_lab.runner import hindsight, together
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
)
from armlet_lab.runner.formulas import two_digits
from armlet_lab.runner.hindsight import ratio_of_means

SURE: Final = 0.95  # of the law's problems ask for no more than the theorem's p
BOUND: Final = 1.3
COVERED: Final = 0.9
WHY: Final = {
    Outcome.HOLDS: "The theorem's $p$ for a distribution of environments is nearly as good as the best $p$ of each.",
    Outcome.UNDER_READING: (
        "The constants are quickly computed and the $p$ does satisfy the theorem, but it lies beyond any horizon in "
        "use or does not exist, so that every step explores. The same knowledge is enough for a good $p$ when "
        "environments drawn from it are simulated, and so is a short pilot."
    ),
    Outcome.FAILS: "Neither the theorem's $p$ nor that of simulation comes near the best $p$.",
    Outcome.UNSETTLED: "Some interval crosses its bound: more environments are needed, or some family misses it.",
}

Choice: TypeAlias = Literal["law", "pilot", "theorem"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Problems of each family: what is advised before and after a pilot, next to a grid of p at each horizon."""

    families: tuple[str, ...] = ("Figure (a)", "display ads", "clicks 3 % or 4 %")
    problems: int = 6
    horizons: tuple[int, ...] = (10_000,)
    runs: tuple[int, ...] = (16,)  # of a problem, at each horizon; half of them choose the best p in hindsight
    ratio: float = 2.0  # between two values of p
    rows: int = 2000  # of the pilot
    budget: float = 1e6  # of a search, in microseconds by its own estimate


SCALES: Final[dict[Scale, Settings]] = {
    "quick": Settings(),
    "full": Settings(families=tuple(FAMILIES), problems=20, horizons=(10_000, 100_000), runs=(16, 8)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemLaw:
    """One question to the advisor: which p for this law of problems."""

    seeds: Seeds
    family: str
    horizon: int
    budget: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Task(ProblemLaw):
    """A pilot on one problem of the law, advice from it, and fresh runs."""

    problem: int
    runs: int
    ratio: float
    rows: int
    law_p: float
    theorem_p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Mean regret on each problem of a family, in units of what random play loses on it, and what was promised."""

    name: str
    horizon: int
    best: Float64  # (problems,): with the best fixed p of each problem, chosen in hindsight
    law: Float64  # (problems,): with the p advised for the law of problems
    pilot: Float64  # with the p advised after a pilot on the very problem
    theorem: Float64
    law_p: float
    pilot_p: Float64  # (problems,)
    theorem_p: float  # inf if there is none
    law_covered: Float64  # (problems,): the share of fresh runs inside the interval predicted for one run
    pilot_covered: Float64

    def ratio(self, choice: Choice, rng: np.random.Generator) -> Estimate:
        """Regret of a choice over that of the best p in hindsight, summed over problems, which are resampled."""
        above: Float64 = {"law": self.law, "pilot": self.pilot, "theorem": self.theorem}[choice]
        return bootstrap(ratio_of_means, above, self.best, rng=rng)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratios:
    """The three choices on one family, relative to the best p in hindsight."""

    law: Estimate
    pilot: Estimate
    theorem: Estimate


def run(lab: Lab) -> Findings:
    """Run the experiment at the lab's scale."""
    return find(SCALES[lab.scale], lab)


def find(settings: Settings, lab: Lab) -> Findings:
    """Ask, play, then compare."""
    s = settings
    laws = [ProblemLaw(seeds=lab.seeds, family=f, horizon=T, budget=s.budget) for T in s.horizons for f in s.families]
    advised = lab.map("laws", ask_law, laws, f"p from the law: {len(s.families)} families")
    tasks = [
        Task(
            seeds=law.seeds,
            family=law.family,
            horizon=law.horizon,
            budget=law.budget,
            problem=i,
            runs=s.runs[s.horizons.index(law.horizon)],
            ratio=s.ratio,
            rows=s.rows,
            law_p=float(advice["p"]),
            theorem_p=float(advice["theorem"]),
        )
        for law, advice in zip(laws, advised, strict=True)
        for i in range(s.problems)
    ]
    found = lab.map("pilots", play, tasks, f"p from pilots of {s.rows:,} steps: {len(tasks)} problems")
    n = s.problems
    families = [
        _family(law, advice, found[i * n : (i + 1) * n])
        for i, (law, advice) in enumerate(zip(laws, advised, strict=True))
    ]
    return judge(families, s.rows, lab.rng("advice intervals"))


def ask_law(task: ProblemLaw) -> Arrays:
    """Return the advisor's p, (1,), the interval it predicts for one run, (2,), and the theorem's p, (1,)."""
    source = as_source(FAMILIES[task.family], task.horizon, "max")
    p, ends = _advise(source, task)
    required = [_required_p(draw_problem(task.family, task.seeds, "asked", i)) for i in range(100)]
    return {"p": np.array(p), "ends": ends, "theorem": np.array(np.quantile(required, SURE, method="higher"))}


def play(task: Task) -> Arrays:
    """Return regret of every p of the grid, (runs, grid), of three choices, (runs,), and what the pilot promised."""
    T, environment = task.horizon, draw_problem(task.family, task.seeds, task.problem)
    which = (task.family, task.problem, T)
    pilot = _pilot(environment, task.rows, task.seeds.rng("pilots", *which))
    p, ends = _advise(Posterior.of(pilot, "max"), task, task.problem)
    grid = hindsight.grid_of_p(environment.n_arms, T, task.ratio)
    # p = T explores every step up to T, as any larger p does; the theorem is about Algorithm 1 as printed
    theorem = Algorithm1(p=min(task.theorem_p, float(T)))
    policies = [*(ContextualEpsilonGreedy(p=each) for each in (*grid, task.law_p, p)), theorem]
    entries = [together.Entry.of(policy, environment) for policy in policies]
    runs = [together.play(environment, entries, T, task.seeds, *which, run) for run in range(task.runs)]
    regret = np.array([run.regret for run in runs])
    return {
        "grid": regret[:, :-3].copy(),
        "law": regret[:, -3].copy(),
        "pilot": regret[:, -2].copy(),
        "theorem": regret[:, -1].copy(),
        "random": np.array([run.random for run in runs]),
        "p": np.array(p),
        "ends": ends,
    }


def _advise(source: Source, task: ProblemLaw, *problem: int) -> tuple[float, Float64]:
    """Return the recommended p and the ends of the interval predicted for one run."""
    seed = task.seeds.seed("advice", task.family, task.horizon, *problem)
    with ThreadPoolExecutor(1) as here:
        search = prepare(source, task.horizon, seed, here, None, None, task.budget, lambda _: None)
        trial = search.settle()
    gap = float(np.mean([problem.table.gap for problem in search.bench.problems[: trial.problems]]))
    return trial.ps[trial.best], np.array(predictive(trial.sample(trial.best), gap * task.horizon))


def _required_p(environment: LinearArms) -> float:
    """Return the p of Theorem 2, repaired where contexts are longer than the printed one allows; inf if none."""
    table = environment.table()
    if table is None:
        return math.inf  # contexts without end: the smallest gap is 0
    required = required_p(table, theta=np.array(environment.theta))
    condition = required.printed or required.repaired
    return math.inf if condition is None else condition.p


def _pilot(environment: LinearArms, rows: int, rng: np.random.Generator) -> Pilot:
    """Play at random for a while."""
    X, arms = environment.contexts(rng, rows), rng.integers(environment.n_arms, size=rows)
    return Pilot(X, arms, environment.rewards(rng, X)[np.arange(rows), arms])


def _family(law: ProblemLaw, advice: Arrays, found: Sequence[Arrays]) -> Family:
    """Put the problems of a family together, each in units of what random play loses."""
    random = np.array([as_floats(one["random"]).mean() for one in found])
    mean = {name: np.array([as_floats(one[name]).mean() for one in found]) for name in ("law", "pilot", "theorem")}
    best = hindsight.best(np.array([as_floats(one["grid"]) for one in found]) / random[:, None, None])
    return Family(
        name=law.family,
        horizon=law.horizon,
        best=best,
        law=mean["law"] / random,
        pilot=mean["pilot"] / random,
        theorem=mean["theorem"] / random,
        law_p=float(advice["p"]),
        pilot_p=np.array([float(one["p"]) for one in found]),
        theorem_p=float(advice["theorem"]),
        law_covered=np.array([_covered(as_floats(one["law"]), as_floats(advice["ends"])) for one in found]),
        pilot_covered=np.array([_covered(as_floats(one["pilot"]), as_floats(one["ends"])) for one in found]),
    )


def _covered(regret: Float64, ends: Float64) -> float:
    return float(np.mean((regret >= ends[0]) & (regret <= ends[1])))


def judge(families: Sequence[Family], rows: int, rng: np.random.Generator) -> Findings:
    """Return the verdict and its section."""
    claim = Claim(
        key="section42-prior",
        where="Section 4.2, first paragraph",
        says="From an a-priori distribution of environments one quickly computes a suitable $p$.",
        reading=(
            f"Suitable: regret within {BOUND:g} times that of the best fixed $p$ in hindsight. As written: the $p$ "
            "that 95 % of the environments ask for at most by Theorem 2, repaired where contexts are longer than 1. "
            f"Our reading: $p$ by simulation of environments from the distribution, or from what a pilot of {rows:,} "
            "random steps leaves possible; the 95 % interval it predicts for one run then holds at least "
            f"{percent(COVERED)} of fresh runs."
        ),
    )
    ratios = [
        Ratios(law=f.ratio("law", rng), pilot=f.ratio("pilot", rng), theorem=f.ratio("theorem", rng)) for f in families
    ]
    verdict = Verdict(claim=claim, statistics=_statistics(families, ratios, rng), explanations=WHY)
    section = Section(
        claim=claim.key,
        heading="A suitable $p$ follows from a distribution of environments",
        pictures=(
            _picture(families, [each.law for each in ratios], "law", "from the distribution of environments"),
            _picture(families, [each.pilot for each in ratios], "pilot", f"from a pilot of {rows:,} steps"),
        ),
        notes=(_note(families),),
        tables=(_table(families, ratios),),
    )
    return Findings((verdict,), (section,))


def _statistics(
    families: Sequence[Family], ratios: Sequence[Ratios], rng: np.random.Generator
) -> tuple[Statistic, ...]:
    rule = Criterion("below", BOUND)
    listed = [
        Statistic(f"theorem's $p$, {f.name}, $T = {f.horizon:,}$", each.theorem, rule)
        for f, each in zip(families, ratios, strict=True)
    ]
    for f, each in zip(families, ratios, strict=True):
        listed.append(
            Statistic(f"$p$ from the distribution, {f.name}, $T = {f.horizon:,}$", each.law, rule, Role.READING)
        )
        listed.append(Statistic(f"$p$ from a pilot, {f.name}, $T = {f.horizon:,}$", each.pilot, rule, Role.READING))
    kept = Criterion("above", COVERED)
    covered = {
        "the distribution": np.concatenate([f.law_covered for f in families]),
        "a pilot": np.concatenate([f.pilot_covered for f in families]),
    }
    for name, shares in covered.items():
        share = bootstrap(_mean, shares, rng=rng)
        listed.append(Statistic(f"fresh runs within the interval from {name}", share, kept, Role.READING))
    return tuple(listed)


def _mean(values: Float64) -> Float64:
    mean: Float64 = values.mean(-1)
    return mean


def _table(families: Sequence[Family], ratios: Sequence[Ratios]) -> Table:
    rows = tuple(
        (
            f.name,
            f"{f.horizon:,}",
            _cell(each.theorem),
            _cell(each.law),
            _cell(each.pilot),
            f"{f.law_covered.mean():.0%}; {f.pilot_covered.mean():.0%}",
            f"{_p(f.theorem_p)}; {f.law_p:,.0f}; {np.median(f.pilot_p):,.0f}",
        )
        for f, each in zip(families, ratios, strict=True)
    )
    ratio = ("theorem / best $p$", "distribution / best $p$", "pilot / best $p$")
    head = ("family", "$T$", *ratio, "covered: distribution; pilot", "$p$ of theorem; distribution; pilot (median)")
    caption = (
        f"Regret relative to that of the best $p$ in hindsight, {len(families[0].best)} environments of each family; "
        "covered is the share of fresh runs within the 95 % interval that was predicted for one run"
    )
    return Table(caption=caption, head=head, rows=rows)


def _cell(ratio: Estimate) -> str:
    return f"{ratio.value:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"


def _p(required: float) -> str:
    return "none" if math.isinf(required) else two_digits(required)


def _picture(families: Sequence[Family], ratios: list[Estimate], key: str, source: str) -> plots.Picture:
    names = [f"{f.name}, T = {f.horizon:,}" for f in families]
    marks = {"best p": 1.0, f"{BOUND:g}": BOUND}
    figure = plots.bars(names, ratios, xlabel="regret / best p", marks=marks)
    alt = f"Regret of the p advised {source}, relative to the best fixed p of each environment"
    return plots.picture(figure, key=f"advisor-{key}", alt=alt, caption=f"{alt}. Bars end in 95 % intervals.")


def _note(families: Sequence[Family]) -> str:
    beyond = sum(f.theorem_p > f.horizon for f in families)
    none = sum(math.isinf(f.theorem_p) for f in families)
    return (
        f"The theorem's $p$ lies beyond $T$ in {beyond} of {len(families)} cases, in {none} of them because there is "
        "none: contexts have no end, so the smallest gap is 0. Every step then explores. The best $p$ in hindsight is "
        "chosen on half of an environment's runs and charged on the others; below 1, they did not tell which it is."
    )


EXPERIMENT: Final = Experiment("advisor", "Section 4.2: p from a distribution of environments or a pilot", run)
