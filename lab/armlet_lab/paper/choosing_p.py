"""Section 4.2: finding p while running, read to the letter and with a forecast, against the best p in hindsight.

Every problem of every family is played with a grid of fixed p, with p="auto", and, on Figure (a), with the running
minimum of the section, all on the same contexts and noise; fixed p and "auto" in free units, by evidence. The best p in
hindsight is that of each problem, or one for the family, whichever does better (`hindsight.best`): nobody could know
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from armlet.environments.families import FAMILIES, draw_problem
from armlet.inference.intervals import band, bootstrap
from armlet.parallel import Seeds
from armlet.policies import AutoEpsilonGreedy, ContextualEpsilonGreedy
from armlet.report import plots
from armlet.report.document import Table
from armlet.report.numbers import percent
from armlet.simulation.lab import Arrays, Lab, Scale, as_floats
from armlet.simulation.play import InPython, StepBlock, draw, run_streams
from armlet.types import Estimate, Float64, Int64, Policy
from armlet_lab.literature.running_minimum import RunningMinimumEpsilonGreedy
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
from armlet_lab.runner.hindsight import ratio_of_means

FIRST: Final = "Figure (a)"
AUTOS: Final = ("auto", "longer", "shorter", "untold")  # T, 10 T, T / 10, nothing
BOUND: Final = 1.5
WHY: Final = {
    Outcome.HOLDS: "Estimates gathered on the way choose a $p$ that is nearly as good as the best one.",
    Outcome.UNDER_READING: (
        "Read to the letter it fails: the smallest difference ever seen is that of the noisiest moment, $p$ follows "
        "its inverse square, and every step explores for good. The same three estimates do find $p$ when they enter a "
        "forecast of regret up to a horizon, and the gaps are those of the current estimates."
    ),
    Outcome.FAILS: "Neither the letter nor our reading comes near the best $p$.",
    Outcome.UNSETTLED: "Some interval crosses the bound: more environments are needed.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Problems of each family, every p of a grid next to p = auto; those for Section 4.2 to the letter are fewer."""

    problems: int = 10
    runs: int = 6
    horizons: tuple[int, ...] = (10_000,)
    ratio: float = 2.0  # between two values of p
    literal_horizon: int = 10_000
    literal_problems: int = 3


SCALES: Final[dict[Scale, Settings]] = {
    "quick": Settings(),
    "full": Settings(problems=20, runs=8, horizons=(10_000, 100_000), ratio=2**0.5, literal_problems=12),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """All runs of one problem."""

    seeds: Seeds
    family: str
    problem: int
    runs: int
    horizon: int
    ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Slow:
    """One run of the running minimum, which the kernel does not know, next to a grid and "auto"."""

    seeds: Seeds
    problem: int
    horizon: int
    ratio: float


@dataclass(frozen=True, slots=True)
class Family:
    """Mean regret on each problem of a family, in units of what random play loses on it."""

    name: str
    horizon: int
    best: Float64  # (problems,): with the best fixed p of each problem, chosen in hindsight
    auto: Float64  # (problems,)
    longer: Float64  # the same, for a horizon ten times as long
    shorter: Float64  # or a tenth
    untold: Float64  # or nothing of it
    p: Float64  # (problems,): where "auto" ended

    def ratio(self, rng: np.random.Generator) -> Estimate:
        """Regret of "auto" over that of the best p in hindsight, summed over problems, which are resampled."""
        return bootstrap(ratio_of_means, self.auto, self.best, rng=rng)


@dataclass(frozen=True, slots=True)
class ToTheLetter:
    """Single runs on Figure (a), one on each problem: p and regret on the way."""

    horizon: int
    steps: Float64  # (S,)
    best: Float64  # (problems,): regret of the best fixed p of that run
    literal_p: Float64  # (problems, S)
    literal_regret: Float64
    auto_p: Float64
    auto_regret: Float64


def run(lab: Lab) -> Findings:
    """Run the experiment at the lab's scale."""
    return find(SCALES[lab.scale], lab)


def find(settings: Settings, lab: Lab) -> Findings:
    """Play, then compare."""
    s, both = settings, [(family, T) for T in settings.horizons for family in FAMILIES]
    tasks = [
        Task(seeds=lab.seeds, family=family, problem=i, runs=s.runs, horizon=T, ratio=s.ratio)
        for family, T in both
        for i in range(s.problems)
    ]
    label = f"p = auto: {s.problems} problems of {len(FAMILIES)} families, {len(s.horizons)} horizons"
    found = lab.map("auto", play, tasks, label)
    slow = [
        Slow(seeds=lab.seeds, problem=i, horizon=s.literal_horizon, ratio=s.ratio) for i in range(s.literal_problems)
    ]
    literal = lab.map("literal", play_literal, slow, f"Section 4.2 to the letter: {len(slow)} runs of Figure (a)")
    families = [_family(family, T, found[i * s.problems : (i + 1) * s.problems]) for i, (family, T) in enumerate(both)]
    return judge(families, _literal(s.literal_horizon, literal), lab.rng("auto intervals"))


def play(task: Task) -> Arrays:
    """Return regret of every p of the grid, (runs, grid), and of "auto", (runs,), by its horizon; and its p."""
    environment, T = draw_problem(task.family, task.seeds, task.problem), task.horizon
    grid = hindsight.grid_of_p(environment.n_arms, T, task.ratio)
    autos = [AutoEpsilonGreedy(horizon=horizon) for horizon in (T, 10 * T, T // 10, None)]
    policies: list[Policy] = [*(ContextualEpsilonGreedy(p=p) for p in grid), *autos]
    entries = [together.Entry.of(policy, environment) for policy in policies]
    which = (task.family, task.problem, T)
    runs = [together.play(environment, entries, T, task.seeds, *which, run) for run in range(task.runs)]
    regret = np.array([run.regret for run in runs])
    return {
        "grid": regret[:, : len(grid)].copy(),
        **{name: regret[:, len(grid) + i].copy() for i, name in enumerate(AUTOS)},
        "p": np.array([run.p[len(grid)] for run in runs]),
        "random": np.array([run.random for run in runs]),
    }


def play_literal(task: Slow) -> Arrays:
    """Return p and regret at 40 steps, (40,), of the running minimum and of "auto", and the regret of the best p."""
    environment = draw_problem(FIRST, task.seeds, task.problem)
    T, steps = task.horizon, np.geomspace(20, task.horizon, 40).round().astype(np.int64)
    one = play(Task(seeds=task.seeds, family=FIRST, problem=task.problem, runs=1, horizon=T, ratio=task.ratio))
    contexts, noise, coins = run_streams(task.seeds, FIRST, task.problem, T, 0)  # the very run of `one`
    whole = next(draw(environment, contexts, noise, T, size=T))
    outcome = {}
    for name, policy in _two(T).items():
        outcome[name] = _path(InPython(environment, policy, coins), policy, whole, np.unique(steps))
    return {
        "steps": steps,
        "best": one["grid"].min(axis=1),
        **{f"{name}_{what}": values for name, both in outcome.items() for what, values in both.items()},
    }


def _two(horizon: int) -> dict[str, AutoEpsilonGreedy | RunningMinimumEpsilonGreedy]:
    return {"literal": RunningMinimumEpsilonGreedy(), "auto": AutoEpsilonGreedy(horizon=horizon)}


def _path(
    player: InPython, policy: AutoEpsilonGreedy | RunningMinimumEpsilonGreedy, whole: StepBlock, steps: Int64
) -> dict[str, Float64]:
    """Play step by step and note p and regret at some of them."""
    played, p = [], []
    for start, end in pairwise([0, *steps.tolist()]):
        played.append(player.play(whole.X[start:end], whole.rewards[start:end])[0])
        p.append(policy.current_p(player.bandit.state))
    arms = np.concatenate(played)
    regret = whole.losses[np.arange(len(arms)), arms].cumsum()[steps - 1]
    return {"p": np.array(p), "regret": regret}


def _family(name: str, horizon: int, found: Sequence[Arrays]) -> Family:
    """Put the problems of a family together, each in units of what random play loses."""
    shares = [as_floats(one["random"]).mean() for one in found]
    grids = [as_floats(one["grid"]) / share for one, share in zip(found, shares, strict=True)]
    means = [
        np.array([as_floats(one[name]).mean() / share for one, share in zip(found, shares, strict=True)])
        for name in AUTOS
    ]
    return Family(
        name=name,
        horizon=horizon,
        best=hindsight.best(np.array(grids)),
        auto=means[0],
        longer=means[1],
        shorter=means[2],
        untold=means[3],
        p=np.array([float(np.median(as_floats(one["p"]))) for one in found]),
    )


def _literal(horizon: int, found: Sequence[Arrays]) -> ToTheLetter:
    names = ("literal_p", "literal_regret", "auto_p", "auto_regret")
    columns = {name: np.array([as_floats(one[name]) for one in found]) for name in names}
    best = np.array([float(as_floats(one["best"])[0]) for one in found])
    return ToTheLetter(horizon=horizon, steps=as_floats(found[0]["steps"]), best=best, **columns)


def judge(families: Sequence[Family], literal: ToTheLetter, rng: np.random.Generator) -> Findings:
    """Return the verdict and its section."""
    claim = Claim(
        key="section42-online",
        where="Section 4.2, last paragraph",
        says="Without any prior knowledge, a suitable $p$ can be found from data gathered while Algorithm 1 runs.",
        reading=(
            f"Suitable: regret within {BOUND:g} times that of the best fixed $p$ in hindsight. As written: the "
            f"theorem's formula with $C = 128$ and the running minimum, on Figure (a), $T = {literal.horizon:,}$. Our "
            "reading: "
            'p="auto", on every family and horizon.'
        ),
    )
    rule, ratios = Criterion("below", BOUND), [family.ratio(rng) for family in families]
    to_the_letter = bootstrap(ratio_of_means, literal.literal_regret[:, -1], literal.best, rng=rng)
    statistics = (
        Statistic("running minimum, Figure (a)", to_the_letter, rule),
        *(
            Statistic(f"auto, {family.name}, $T = {family.horizon:,}$", ratio, rule, Role.READING)
            for family, ratio in zip(families, ratios, strict=True)
        ),
    )
    verdict = Verdict(claim=claim, statistics=statistics, explanations=WHY)
    section = Section(
        claim=claim.key,
        heading="A suitable $p$ can be found while running",
        pictures=(_ratios(families, ratios), _paths(literal, rng)),
        notes=(_note(literal),),
        tables=(_table(families, ratios),),
    )
    return Findings((verdict,), (section,))


def _table(families: Sequence[Family], ratios: Sequence[Estimate]) -> Table:
    rows = tuple(
        (
            family.name,
            f"{family.horizon:,}",
            f"{ratio.value:.2f} ({ratio.low:.2f} to {ratio.high:.2f})",
            f"{family.auto.mean():.1%}",
            f"{family.best.mean():.1%}",
            f"{np.median(family.p):,.0f}",
            "; ".join(
                f"{ratio_of_means(regrets, family.best):.2f}"
                for regrets in (family.longer, family.shorter, family.untold)
            ),
        )
        for family, ratio in zip(families, ratios, strict=True)
    )
    head = (
        "family",
        "$T$",
        "auto / best $p$ in hindsight",
        "auto",
        "best $p$",
        "median $p$ of auto",
        "told $10 T$, $T / 10$, nothing",
    )
    caption = (
        f"Regret of p = auto, {len(families[0].auto)} environments of each family; the fourth and fifth column are "
        "shares of what random play loses"
    )
    return Table(caption=caption, head=head, rows=rows)


def _ratios(families: Sequence[Family], ratios: Sequence[Estimate]) -> plots.Picture:
    names = [f"{family.name}, T = {family.horizon:,}" for family in families]
    figure = plots.bars(names, list(ratios), xlabel="regret / best p", marks={"best p": 1.0})
    alt = "Regret of p = auto relative to the best fixed p of each environment, by family and horizon"
    return plots.picture(figure, key="section42-ratios", alt=alt, caption=f"{alt}. Bars end in 95 % intervals.")


def _paths(literal: ToTheLetter, rng: np.random.Generator) -> plots.Picture:
    cap = np.minimum(literal.literal_p, 10.0 * literal.horizon)  # infinite from the first tie on
    curves = [
        plots.Curve("running minimum", literal.steps, band(np.minimum(1.0, cap / literal.steps), rng)),
        plots.Curve("auto", literal.steps, band(np.minimum(1.0, literal.auto_p / literal.steps), rng)),
    ]
    figure = plots.regret(curves, ylabel="probability that step t explores")
    alt = "How often the running minimum and p = auto explore on Figure (a), against log t"
    return plots.picture(figure, key="section42-rates", alt=alt, caption=f"{alt}. Means of runs with 95 % intervals.")


def _note(literal: ToTheLetter) -> str:
    beyond = percent(float(np.mean(literal.literal_p[:, -1] > literal.horizon)))
    return (
        f"At $T = {literal.horizon:,}$ the running minimum asks for a $p$ beyond $T$ in {beyond} of the runs and "
        f"regrets {literal.literal_regret[:, -1].mean():,.0f}; auto ends at $p = {literal.auto_p[:, -1].mean():,.0f}$ "
        f"and regrets {literal.auto_regret[:, -1].mean():,.0f}; the best fixed $p$ of each run "
        f"{literal.best.mean():,.0f}."
    )


EXPERIMENT: Final = Experiment("choosing-p", "Section 4.2: finding p while running", run)
