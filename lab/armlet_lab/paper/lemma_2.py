"""Lemma 2, Section 5: how many explored rows every arm has by step t.

The count of an arm is its share of the warm-up plus a sum of independent coins, p/(Ki) at step i, so its law is
computed exactly, by adding one coin after the other. Simulated runs of Algorithm 1 check that this is the right law.
O(t m) for counts up to m.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from armlet.environments.paper import FigureA
from armlet.inference.intervals import bootstrap
from armlet.parallel import Seeds
from armlet.policies import Algorithm1
from armlet.report import plots
from armlet.simulation.lab import Arrays, Lab, Scale, as_floats
from armlet.simulation.play import play_table, table_seeds
from armlet.types import Float64
from armlet_lab.paper.proof import count_chances, lemma2_printed, lemma2_repaired, lemma2_turn
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
from armlet_lab.runner.formulas import two_digits

BATCH: Final = 500  # runs of a task


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What to compute; p is a multiple of the number of arms, so that the warm-up serves them alike.

    Examples
    --------
    >>> Settings(p=301)
    Traceback (most recent call last):
    ValueError: p is 301 but must be a multiple of the number of arms, 6
    """

    p: int = 300
    n_arms: int = 6
    steps: tuple[int, ...] = (1_000, 5_000, 20_000, 100_000, 1_000_000)
    checked: int = 20_000  # the step at which simulated runs are counted
    runs: int = 400

    def __post_init__(self) -> None:
        if self.p % self.n_arms:
            raise ValueError(f"p is {self.p} but must be a multiple of the number of arms, {self.n_arms}")
        if min(*self.steps, self.checked) <= self.p:
            raise ValueError(f"steps are {self.steps} but must lie after the warm-up of {self.p} steps")

    def printed(self, t: float) -> float:
        """Return n_c as the lemma has it, (p / 2K) log t."""
        return lemma2_printed(p=self.p, n_arms=self.n_arms, t=t).rows

    def repaired(self, t: float) -> float:
        """Return n_c as half of what an arm has on average, (p / 2K) (1 + log(t / p))."""
        return lemma2_repaired(p=self.p, n_arms=self.n_arms, t=t).rows

    def bound(self, t: float) -> float:
        """Return the lemma's bound on the chance, t^(-p / 16K)."""
        return lemma2_printed(p=self.p, n_arms=self.n_arms, t=t).chance


SCALES: Final[dict[Scale, Settings]] = {
    "quick": Settings(),
    "full": Settings(steps=(1_000, 5_000, 20_000, 100_000, 1_000_000, 5_000_000), runs=2_000),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CountLaw:
    """The law of an arm's count, to be computed at increasing steps."""

    p: int
    n_arms: int
    steps: tuple[int, ...]
    rows: tuple[tuple[int, ...], ...]  # by rule and step: the chance of fewer than these is asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """Runs of Algorithm 1 in an environment of Figure (a), by their numbers."""

    seeds: Seeds
    p: int
    n_arms: int
    horizon: int
    first: int
    last: int  # not included


def chances(law: CountLaw) -> Arrays:
    """Return P(|T_a,t-1| < n) for every rule's n and every t: (rules, steps).

    Examples
    --------
    >>> chances(CountLaw(p=2, n_arms=2, steps=(3, 4), rows=((2, 2),)))["chances"].round(4).tolist()
    [[1.0, 0.6667]]
    """
    p, K, steps = law.p, law.n_arms, law.steps
    return {"chances": np.array([count_chances(p=p, n_arms=K, steps=steps, rows=rows) for rows in law.rows])}


def play(task: Runs) -> Arrays:
    """Return the explored rows of every arm at the end of every run: (runs, K)."""
    table = FigureA.draw(task.seeds.rng("world"), n_arms=task.n_arms).table()
    if table is None:
        raise ValueError("the environment of Figure (a) has no table")
    policy, end = Algorithm1(p=task.p), np.array([task.horizon])
    pairs = [table_seeds(task.seeds, run) for run in range(task.first, task.last)]
    return {"rows": np.array([play_table(table, policy, end, pair, jumps=True).statistics.n for pair in pairs])}


def compute(settings: Settings, steps: Sequence[int], lab: Lab) -> Float64:
    """Return the chance of fewer rows than n_c, as printed and in our reading, at the steps: (2, steps)."""
    rows = tuple(tuple(math.ceil(rule(t)) for t in steps) for rule in (settings.printed, settings.repaired))
    # a task for each rule: adding the coins takes seconds
    laws = [CountLaw(p=settings.p, n_arms=settings.n_arms, steps=tuple(steps), rows=(rule,)) for rule in rows]
    found = lab.map("law", chances, laws, f"Lemma 2: the law of an arm's count up to t = {steps[-1]:,}")
    return np.concatenate([as_floats(each["chances"]) for each in found])


def simulate(settings: Settings, lab: Lab) -> Float64:
    """Return for each run of Algorithm 1 the share of arms with fewer rows than the printed n_c: (runs,)."""
    t, n = settings.checked, settings.runs
    whole = Runs(seeds=lab.seeds, p=settings.p, n_arms=settings.n_arms, horizon=t - 1, first=0, last=n)
    tasks = [replace(whole, first=run, last=min(run + BATCH, n)) for run in range(0, n, BATCH)]
    found = lab.map("runs", play, tasks, f"Lemma 2: {n} simulated runs of {t:,} steps")
    rows = np.concatenate([as_floats(each["rows"]) for each in found])
    shares: Float64 = np.mean(rows < settings.printed(t), axis=1)
    return shares


def run(lab: Lab) -> Findings:
    """Run the experiment at the lab's scale."""
    return find(SCALES[lab.scale], lab)


def find(settings: Settings, lab: Lab) -> Findings:
    """Compute the chances, compare them with the bound, and check them against simulated runs.

    Examples
    --------
    >>> tiny = Settings(p=60, steps=(100, 400), checked=400, runs=20)
    >>> [verdict.claim.key for verdict in find(tiny, Lab(seed=1)).verdicts]
    ['lemma-2']
    """
    grid = np.geomspace(settings.p + 1, settings.steps[-1], 40).round().astype(int)
    steps = sorted({*grid.tolist(), *settings.steps, settings.checked})
    return judge(settings, steps, compute(settings, steps, lab), simulate(settings, lab), lab.rng("intervals"))


def judge(
    settings: Settings, steps: Sequence[int], law: Float64, shares: Float64, rng: np.random.Generator
) -> Findings:
    """Compare the law of the count with the bound, and the simulated shares with the law."""
    exact = law[0, steps.index(settings.checked)]
    difference = bootstrap(lambda column: column.mean(-1) - exact, shares, rng=rng)
    at = [steps.index(t) for t in settings.steps]
    statistics = (
        *(_against_bound(settings, t, law[0, i], Role.WRITTEN) for t, i in zip(settings.steps, at, strict=True)),
        *(_against_bound(settings, t, law[1, i], Role.READING) for t, i in zip(settings.steps, at, strict=True)),
        Statistic(
            f"simulated minus computed chance at $t = {settings.checked:,}$",
            difference,
            Criterion("within", -0.1, 0.1),
            Role.CONTROL,
        ),
    )
    verdict = Verdict(claim=_claim(settings), statistics=statistics, explanations=_explanations(settings))
    section = Section(
        claim=verdict.claim.key,
        heading="Every arm is explored often enough by step $t$",
        pictures=(_picture(steps, law),),
        notes=_notes(settings, law[:, at]),
    )
    return Findings((verdict,), (section,))


def _against_bound(settings: Settings, t: int, chance: float, role: Role) -> Statistic:
    ratio = chance / settings.bound(t)
    return Statistic(f"chance / bound at $t = {t:,}$", certain(ratio), Criterion("below", 1), role)


def _claim(settings: Settings) -> Claim:
    return Claim(
        key="lemma-2",
        where="Section 5, Lemma 2",
        says=(
            r"By step $t$ every arm has been explored at least $(p / 2K) \log t$ times, except with a chance of at "
            "most $t^{-p / 16K}$."
        ),
        reading=(
            f"$p = {settings.p}$, $K = {settings.n_arms}$; the lemma's $k$ is $K$. The count is $p/K$ from the warm-up "
            "plus independent coins $p/(K i)$ for steps $p < i < t$. In our reading the number of rows is half the "
            r"true mean, $(p / 2K) (1 + \log(t / p))$, under the same bound."
        ),
    )


def _explanations(settings: Settings) -> dict[Outcome, str]:
    turn = lemma2_turn(settings.p)
    why = (
        "The proof lets the coins $p/(K i)$ run from $i = 1$, where they would exceed 1; in truth the first $p$ steps "
        r"give each arm $p/K$ rows, so the mean is $(p / K) (1 + \log(t / p))$. "
        rf"Up to $t = (p / e)^2$, here {turn:,.0f}, that is less than the $(p / 2K) \log t$ that is promised."
    )
    return {
        Outcome.UNDER_READING: f"{why} Half the true mean is reached as surely as the lemma says.",
        Outcome.FAILS: why,
    }


def _notes(settings: Settings, law: Float64) -> tuple[str, ...]:
    rows = (
        f"$t = {t:,}$: chance {two_digits(printed)} of fewer than {settings.printed(t):.0f} rows as printed, "
        f"{two_digits(repaired)} of fewer than {settings.repaired(t):.0f} in our reading; the bound is "
        f"{two_digits(settings.bound(t))}."
        for t, printed, repaired in zip(settings.steps, *law, strict=True)
    )
    above = [f"$t = {t:,}$" for t, chance in zip(settings.steps, law[0], strict=True) if chance > settings.bound(t)]
    return (*rows, f"As printed, the chance is above its bound at {'; '.join(above) or 'none of these'}.")


def _picture(steps: Sequence[int], law: Float64) -> plots.Picture:
    at = np.array(steps, dtype=np.float64)
    names = ("n_c as printed", "n_c in our reading")
    curves = [plots.Curve(name, at, np.tile(row, (3, 1))) for name, row in zip(names, law, strict=True)]
    figure = plots.regret(curves, ylabel="chance of fewer rows than n_c", top=1.05)
    alt = "The chance that an arm has too few explored rows, against t, for the printed count and for ours."
    caption = "The chance of too few rows, computed exactly. The lemma allows less than can be seen on this scale."
    return plots.picture(figure, key="lemma-2", alt=alt, caption=caption)


EXPERIMENT: Final = Experiment("lemma-2", "Lemma 2: how often an arm is explored", run)
