"""Lemma 2, Section 5: how many explored rows every arm has by step t.

The count of an arm is its share of the warm-up plus a sum of independent coins, p/(Ki) at step i, so its law is
computed exactly, by adding one coin after the other. Simulated runs of Algorithm 1 check that this is the right law.
O(t m) for counts up to m.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from armlet.core import kernel
from armlet.core.types import Float64
from armlet.environments.figure_a import FigureA
from armlet.experiments import plots
from armlet.experiments.experiment import Experiment, Findings, Scale
from armlet.experiments.rates import Estimate, bootstrap
from armlet.experiments.report import Picture, Section
from armlet.experiments.verdicts import Claim, Criterion, Outcome, Role, Statistic, Verdict
from armlet.policies import ContextualEpsilonGreedy


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
        """Give n_c as the lemma has it, (p / 2K) log t."""
        return self.p / (2 * self.n_arms) * math.log(t)

    def repaired(self, t: float) -> float:
        """Give n_c as half of what an arm has on average, (p / 2K) (1 + log(t / p))."""
        return self.p / (2 * self.n_arms) * (1 + math.log(t / self.p))

    def bound(self, t: float) -> float:
        """Give the lemma's bound on the chance, t^(-p / 16K)."""
        return float(t ** (-self.p / (16 * self.n_arms)))


SCALES: dict[Scale, Settings] = {
    "quick": Settings(),
    "full": Settings(steps=(1_000, 5_000, 20_000, 100_000, 1_000_000, 5_000_000), runs=2_000),
}

Threshold = Callable[[float], float]


def chances(settings: Settings, steps: Sequence[int], thresholds: Sequence[Threshold]) -> Float64:
    """Give P(|T_a,t-1| < n_c) for every threshold n_c and every t of the increasing steps: (thresholds, steps).

    Nothing cancels: exact up to rounding even where the chance is as small as 1e-30.

    Examples
    --------
    >>> chances(Settings(p=2, n_arms=2, checked=9, steps=(3, 4)), [3, 4], [lambda t: 2.0]).round(4).tolist()
    [[1.0, 0.6667]]
    """
    p, K = settings.p, settings.n_arms
    most = max(math.ceil(threshold(t)) for threshold in thresholds for t in steps)
    law = np.zeros(max(most - p // K, 1))  # of the explored rows after the warm-up, as far as it is needed
    law[0] = 1.0
    out, done = np.zeros((len(thresholds), len(steps))), p
    for column, t in enumerate(steps):
        for i in range(done + 1, t):
            moved = law * (p / (K * i))
            law -= moved
            law[1:] += moved[:-1]
        done = max(done, t - 1)
        below = [math.ceil(threshold(t)) - p // K for threshold in thresholds]
        out[:, column] = [law[: max(n, 0)].sum() for n in below]
    return out


def simulated(settings: Settings, seed: int) -> Float64:
    """Give for each run of Algorithm 1 the share of arms with fewer rows than the printed n_c: (runs,)."""
    table = FigureA.draw(np.random.default_rng(seed), n_arms=settings.n_arms).table()
    if table is None:
        raise ValueError("the world of Figure (a) has no table")
    policy = ContextualEpsilonGreedy(p=settings.p)
    horizon, shares = settings.checked - 1, np.empty(settings.runs)
    for run in range(settings.runs):
        world_seed, policy_seed = np.random.SeedSequence(seed, spawn_key=(run,)).generate_state(2).tolist()
        found = kernel.simulate_events(
            table,
            start=policy.init(settings.n_arms, table.contexts.shape[1]),
            schedule=policy.schedule(),
            horizon=horizon,
            checkpoints=np.array([horizon]),
            world_seed=world_seed,
            policy_seed=policy_seed,
        )
        shares[run] = np.mean(np.asarray(found.statistics.n) < settings.printed(settings.checked))
    return shares


def find(settings: Settings, seed: int, say: Callable[[str], None]) -> Findings:
    """Compute the chances, compare them with the bound, and check them against simulated runs."""
    say(f"Lemma 2: the law of an arm's count up to t = {settings.steps[-1]:,}")
    grid = np.geomspace(settings.p + 1, settings.steps[-1], 40).round().astype(int)
    steps = sorted({*grid.tolist(), *settings.steps, settings.checked})
    law = chances(settings, steps, [settings.printed, settings.repaired])
    say(f"Lemma 2: {settings.runs} simulated runs of {settings.checked:,} steps")
    shares = simulated(settings, seed)
    exact = law[0, steps.index(settings.checked)]
    difference = bootstrap(lambda column: column.mean(-1) - exact, shares, rng=np.random.default_rng([seed, 2]))
    at = [steps.index(t) for t in settings.steps]
    statistics = (
        *(_against_bound(settings, t, law[0, i], Role.WRITTEN) for t, i in zip(settings.steps, at, strict=True)),
        *(_against_bound(settings, t, law[1, i], Role.READING) for t, i in zip(settings.steps, at, strict=True)),
        Statistic(
            f"simulated minus computed chance at t = {settings.checked:,}",
            difference,
            Criterion("within", -0.1, 0.1),
            Role.CONTROL,
        ),
    )
    verdict = Verdict(claim=_claim(settings), statistics=statistics, explanations=_explanations(settings))
    section = Section(
        claim=verdict.claim.key,
        heading="How often an arm is explored",
        pictures=(_picture(steps, law),),
        notes=_notes(settings, law[:, at]),
    )
    return Findings((verdict,), (section,))


def _against_bound(settings: Settings, t: int, chance: float, role: Role) -> Statistic:
    ratio = chance / settings.bound(t)
    return Statistic(f"chance / bound at t = {t:,}", Estimate(ratio, ratio, ratio), Criterion("below", 1), role)


def _claim(settings: Settings) -> Claim:
    return Claim(
        key="lemma-2",
        where="Section 5, Lemma 2",
        says=(
            "By step t every arm has been explored at least (p / 2K) log t times, except with a chance of at most "
            "t^(-p / 16K)."
        ),
        reading=(
            f"p = {settings.p}, K = {settings.n_arms}; the lemma's k is K. The count is p/K from the warm-up plus "
            f"independent coins p/(Ki) for steps p < i < t. In our reading the number of rows is half the true mean, "
            f"(p / 2K) (1 + log(t / p)), under the same bound."
        ),
    )


def _explanations(settings: Settings) -> dict[Outcome, str]:
    turn = (settings.p / math.e) ** 2
    why = (
        "The proof lets the coins p/(Ki) run from i = 1, where they would exceed 1; in truth the first p steps give "
        "each arm p/K rows, so the mean is (p / K) (1 + log(t / p)). "
        f"Up to t = (p / e)^2, here {turn:,.0f}, that is less than the (p / 2K) log t that is promised."
    )
    return {
        Outcome.UNDER_READING: f"{why} Half the true mean is reached as surely as the lemma says.",
        Outcome.FAILS: why,
    }


def _notes(settings: Settings, law: Float64) -> tuple[str, ...]:
    rows = (
        f"t = {t:,}: chance {printed:.2g} of fewer than {settings.printed(t):.0f} rows as printed, {repaired:.2g} of "
        f"fewer than {settings.repaired(t):.0f} in our reading; the bound is {settings.bound(t):.2g}."
        for t, printed, repaired in zip(settings.steps, *law, strict=True)
    )
    above = [f"{t:,}" for t, chance in zip(settings.steps, law[0], strict=True) if chance > settings.bound(t)]
    return (*rows, f"As printed, the chance is above its bound at t = {', '.join(above) or 'none of these'}.")


def _picture(steps: Sequence[int], law: Float64) -> Picture:
    at = np.array(steps, dtype=np.float64)
    names = ("n_c as printed", "n_c in our reading")
    curves = [plots.Curve(name, at, np.tile(row, (3, 1))) for name, row in zip(names, law, strict=True)]
    figure = plots.regret(curves, ylabel="chance of fewer rows than n_c", top=1.05)
    alt = "The chance that an arm has too few explored rows, against t, for the printed count and for ours."
    caption = "The chance of too few rows, computed exactly. The lemma allows less than can be seen on this scale."
    return Picture(plots.svg(figure, key="lemma-2", alt=alt), caption)


def run(scale: Scale, seed: int, say: Callable[[str], None]) -> Findings:
    """Judge Lemma 2 by the exact law of the counts."""
    return find(SCALES[scale], seed, say)


EXPERIMENT = Experiment("lemma-2", "Lemma 2: how often an arm is explored", run)
