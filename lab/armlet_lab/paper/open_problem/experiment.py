"""Sections 7 and 8, the open problem: O(log T) regret whatever contexts come, at O(poly(d)) a step and O(K d^2) space.

A policy that is greedy, and optimistic where a private coin says so, has it: at most N / s + 1 mistakes on average,
`armlet.theory.mostly_greedy`. Here it meets contexts that were made to hurt it; policies that lack one condition of the
theorem meet the same contexts, and must be found out. K = d = 2, gap 0.3, noise 0.1, s = 0.2, ridge 0.05.
Environments: "late" has e1 at first and only e2 from a step on that is drawn between 0.4 T and 0.6 T; "rare" has e2
once in 100 steps; "off schedule" has e2 on a fifth of the steps that a public function of t does not make optimistic;
"growing" is Section 7's with I = 2 + sqrt t; in "adaptive" an adversary who knows theta shows the one of 12 contexts
whose greedy arm has the largest regret. Statistics, settled on seeds 71000 to 71003; limits are one-sided, of 99.9 %:

A  mistakes / bound: the upper limit of the mean is below 1, in every environment and at every T;
B  z of the sum of (C_t - s) Y_t, C_t the coin, Y_t whether the arm of optimism has a bonus of gap / 2: within -4 to 4;
C  runs in which the theta of an arm is ever outside its ellipsoid of level 0.05: the upper limit is below 0.05;
D  mistakes gained in the last decade of T over those of the decade before, or over 5 if they are fewer: the upper limit
   is below 2. Log T gives 1, T gives 10.

Must be rejected: a public coin (by A and B), estimates refreshed by row counts (D), optimism on log^2 t / t of the
steps (D), a radius of 0.7 and of 0.5 of the proved one (C). C is measured with a noise of 1: at 0.1 more than a third
of the radius is sqrt(ridge) Q, which hides a factor of 0.7.
`OccasionalOptimism(radius="proved")` itself is held to A, and to mistakes below 3 times the simulated policy's (E).
Runs are numpy in blocks, `simulator.py`: about 0.3 s for 10^6 steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from armlet.inference.intervals import Pairing, percentile, t_quantile
from armlet.parallel import Seeds
from armlet.report import plots
from armlet.report.document import Table
from armlet.simulation.lab import Arrays, Lab, Scale, as_floats
from armlet.theory import mostly_greedy as theory
from armlet.types import Estimate, Float64
from armlet_lab.paper.open_problem.environments import (
    BY_ROWS,
    CASES,
    CONTROLS,
    GAP,
    HONEST,
    NOISE,
    PUBLIC,
    SELDOM,
    SHARE,
    theta_norm,
)
from armlet_lab.paper.open_problem.simulator import K
from armlet_lab.paper.open_problem.tasks import (
    LEVEL,
    LOUD,
    RIDGE,
    Ellipsoids,
    Runs,
    armlet_policy,
    look,
    play,
    play_armlet,
)
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
from armlet_lab.runner.formulas import drawn

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LIMIT: Final = 0.999  # one-sided, of means and shares
BATCH: Final = 2_000_000  # steps of a task
MISTAKES: Final = r"Occasional optimism makes $O(\log T)$ mistakes regardless of the contexts"
TIMES: Final = 3.0  # of the mistakes of the simulated policy
FEW: Final = 5.0  # mistakes: so few in a decade of T say nothing about growth


WIDTHS: Final = (1.0, 0.7, 0.5)
PRODUCT: Final = ("late", "off schedule")  # where Armlet's own policy plays


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Runs up to the last horizon in each environment, and at each horizon in the one that has its own for each T."""

    horizons: tuple[int, ...]
    runs: int
    late_runs: tuple[int, ...]
    by_rows_runs: tuple[int, ...]
    seldom_runs: tuple[int, ...]
    ellipsoid_runs: int  # at each width
    ellipsoid_steps: int
    product_horizons: tuple[int, ...]
    product_runs: int


SCALES: Final[dict[Scale, Settings]] = {
    "quick": Settings(
        horizons=(10**3, 10**4, 10**5),
        runs=12,
        late_runs=(40, 40, 12),
        by_rows_runs=(20, 20, 16),
        seldom_runs=(100, 120, 64),
        ellipsoid_runs=400,
        ellipsoid_steps=300,
        product_horizons=(10**4, 10**5),
        product_runs=20,
    ),
    "full": Settings(
        horizons=(10**3, 10**4, 10**5, 10**6),
        runs=300,
        late_runs=(1_000, 1_000, 1_000, 300),
        by_rows_runs=(200, 200, 200, 100),
        seldom_runs=(300, 300, 300, 150),
        ellipsoid_runs=2_000,
        ellipsoid_steps=1_000,
        product_horizons=(10**4, 10**5, 10**6),
        product_runs=50,
    ),
}


class Counts(NamedTuple):
    """All runs of a case."""

    mistakes: tuple[Float64, ...]  # (runs,) at each horizon
    pairing: Pairing  # whether these are the same runs at each horizon
    z: float  # of the coins


def run(lab: Lab) -> Findings:
    """Run the experiment at the lab's scale."""
    return find(SCALES[lab.scale], lab)


def find(settings: Settings, lab: Lab) -> Findings:
    """Play all cases, look at the ellipsoids, let Armlet's own policy play, and judge."""
    return judge(settings, play_all(settings, lab), look_all(settings, lab), play_product(settings, lab), lab.seeds)


def _batches(seeds: Seeds, case: str, horizons: tuple[int, ...], runs: int) -> list[Runs]:
    size = max(1, BATCH // horizons[-1])
    starts = range(0, runs, size)
    return [Runs(seeds=seeds, case=case, horizons=horizons, first=i, last=min(i + size, runs)) for i in starts]


def play_all(settings: Settings, lab: Lab) -> dict[str, Counts]:
    """Play every case."""
    late = {"late": settings.late_runs, BY_ROWS: settings.by_rows_runs, SELDOM: settings.seldom_runs}
    tasks: list[Runs] = []
    for name, case in CASES.items():
        if case.environment == "late":
            for T, n in zip(settings.horizons, late[name], strict=True):
                tasks += _batches(lab.seeds, name, (T,), n)
        else:
            tasks += _batches(lab.seeds, name, settings.horizons, settings.runs)
    label = f"Open problem: {len(CASES)} cases up to T = {settings.horizons[-1]:,}"
    found = lab.map("play", play, tasks, label, lambda task: task.horizons[-1] * (task.last - task.first))
    return {name: _join(name, settings, tasks, found) for name in CASES}


def _join(case: str, settings: Settings, tasks: Sequence[Runs], found: Sequence[Arrays]) -> Counts:
    ours = [(task, arrays) for task, arrays in zip(tasks, found, strict=True) if task.case == case]
    mistakes: dict[int, list[Float64]] = {T: [] for T in settings.horizons}
    for task, arrays in ours:
        for column, T in enumerate(task.horizons):
            mistakes[T].append(as_floats(arrays["mistakes"])[:, column])
    coins, variance = (
        sum(float(as_floats(arrays[name]).sum()) for _, arrays in ours) for name in ("coins", "variance")
    )
    pairing: Pairing = "independent" if CASES[case].environment == "late" else "paired"
    return Counts(tuple(np.concatenate(each) for each in mistakes.values()), pairing, coins / math.sqrt(variance))


def look_all(settings: Settings, lab: Lab) -> dict[float, Float64]:
    """Return for each width which runs had an arm outside its ellipsoid."""
    steps, n, size = settings.ellipsoid_steps, settings.ellipsoid_runs, 500
    tasks = [
        Ellipsoids(seeds=lab.seeds, width=width, horizon=steps, first=i, last=min(i + size, n))
        for width in WIDTHS
        for i in range(0, n, size)
    ]
    found = lab.map("ellipsoids", look, tasks, f"Open problem: ellipsoids of {n} runs at each of {len(WIDTHS)} widths")
    parts = {
        w: [as_floats(f["outside"]) for task, f in zip(tasks, found, strict=True) if task.width == w] for w in WIDTHS
    }
    return {width: np.concatenate(outside) for width, outside in parts.items()}


def play_product(settings: Settings, lab: Lab) -> dict[tuple[str, int], Float64]:
    """Return the mistakes of Armlet's own policy by environment and horizon."""
    places = [(name, T) for name in PRODUCT for T in settings.product_horizons]
    n = settings.product_runs
    tasks = [task for name, T in places for task in _batches(lab.seeds, name, (T,), n)]
    found = lab.map(
        "armlet", play_armlet, tasks, f"Open problem: {n} runs of OccasionalOptimism at each of {len(places)} places"
    )
    return {
        (name, T): np.concatenate(
            [
                as_floats(f["mistakes"])[:, 0]
                for task, f in zip(tasks, found, strict=True)
                if (task.case, task.horizons[-1]) == (name, T)
            ]
        )
        for name, T in places
    }


def bound(environment: str, T: int) -> float:
    """Return what the theorem allows the policy of the simulations: N / s + 1, or T if that is less.

    Examples
    --------
    >>> [round(bound("late", T)) for T in (10**3, 10**5)]
    [1000, 8847]
    """
    Q = theta_norm(environment)
    given = theory.Assumptions(n_arms=K, dim=2, noise_scale=NOISE, theta_norm=Q, gap=GAP, ridge=RIDGE, share=SHARE)
    return theory.mistakes_bound(given, T)


def judge(
    settings: Settings,
    played: Mapping[str, Counts],
    outside: Mapping[float, Float64],
    product: Mapping[tuple[str, int], Float64],
    seeds: Seeds,
) -> Findings:
    """Judge the four claims."""
    return Findings.of(
        [
            judge_mistakes(settings, played, seeds.rng("intervals of growth")),
            judge_coin(played),
            judge_radius(settings, outside),
            judge_product(settings, product, played),
        ]
    )


def growth(counts: Counts, rng: np.random.Generator) -> Estimate | None:
    """Return D: what the last decade adds to the mean number of mistakes over what the one before adds, at least 5."""

    def ratio(first: Float64, second: Float64, third: Float64) -> Float64:
        before = np.maximum(second.mean(-1) - first.mean(-1), FEW)
        found: Float64 = (third.mean(-1) - second.mean(-1)) / before
        return found

    level = 2 * LIMIT - 1
    return percentile(ratio, counts.mistakes[-3:], rng, resamples=5_000, level=level, pairing=counts.pairing)


def judge_mistakes(
    settings: Settings, played: Mapping[str, Counts], rng: np.random.Generator
) -> tuple[Verdict, Section]:
    """Hold mistakes to the bound, and their growth to log T."""
    slopes = {name: growth(counts, rng) for name, counts in played.items()}
    verdict = mistakes_verdict(settings, played, slopes)
    picture = plots.picture(
        _draw(settings, played),
        key=verdict.claim.key,
        alt="Mean mistakes against T on log scales: five environments, three controls and the theorem's bound",
        caption="Mean mistakes up to $T$, and the theorem's bound. Controls lack one condition of the theorem each.",
    )
    tables, heading = (_mistakes_table(settings, played, slopes),), MISTAKES
    return verdict, Section(claim=verdict.claim.key, heading=heading, pictures=(picture,), tables=tables)


def mistakes_verdict(
    settings: Settings, played: Mapping[str, Counts], slopes: Mapping[str, Estimate | None]
) -> Verdict:
    """Judge A and D."""
    ratios = {
        (name, T): mean_with_limits(column, bound(CASES[name].environment, T))
        for name, counts in played.items()
        for T, column in zip(settings.horizons, counts.mistakes, strict=True)
    }
    places, last = [(name, T) for name in HONEST for T in settings.horizons], settings.horizons[-1]
    within, slow, fast = Criterion("below", 1), Criterion("below", 2), Criterion("above", 2)
    broken = f"A: mistakes / bound, {PUBLIC}, $T = {last:,}$", ratios[PUBLIC, last], Criterion("above", 1), Role.CONTROL
    statistics = (
        *(Statistic(f"A: mistakes / bound, {name}, $T = {T:,}$", ratios[name, T], within) for name, T in places),
        *(Statistic(f"D: growth, {name}", slopes[name], slow) for name in HONEST),
        Statistic(*broken),
        *(Statistic(f"D: growth, {_shown(name)}", slopes[name], fast, Role.CONTROL) for name in (BY_ROWS, SELDOM)),
    )
    claim = _our_claim(
        "mistakes",
        r"A policy that is greedy, and optimistic where a private coin says so, makes $O(\log T)$ mistakes regardless "
        "of the contexts: at most $N / s + 1$.",
        r"Up to a factor $\log \log T$, the ridge being fixed. $K = d = 2$, gap 0.3, noise 0.1, $s = 0.2$, ridge 0.05; "
        "five environments that were made to hurt, ties go to the worse arm. A: mistakes are below the bound at every "
        "$T$; D: the last decade of $T$ adds less than twice what the one before adds. Controls lack one condition "
        "each, and must break A or D.",
    )
    why = {
        Outcome.HOLDS: "An arm that hides behind a wide interval is played by the next optimistic step, which cannot "
        "happen often. The bound is far from tight."
    }
    ends = conclude(
        r"occasional optimism, which answers the paper's open problem, makes $O(\log T)$ mistakes in every environment",
        r"occasional optimism does not make $O(\log T)$ mistakes in every environment",
    )
    return Verdict(claim=claim, statistics=statistics, explanations=why, conclusions=ends)


def _shown(name: str) -> str:
    """Name a case, with its formula if there is one."""
    return name.replace("log^2 t / t", r"$\log^2 t / t$")


def _our_claim(word: str, says: str, reading: str) -> Claim:
    where = "Sections 7 and 8, the open problem"
    return Claim(key=f"open-problem-{word}", where=where, says=says, reading=reading, source="Armlet")


def _mistakes_table(settings: Settings, played: Mapping[str, Counts], slopes: Mapping[str, Estimate | None]) -> Table:
    rows = [("theorem, late", *(f"{bound('late', T):,.0f}" for T in settings.horizons), "", "")]
    for name, counts in played.items():
        means = (f"{mean_with_limits(column):,.1f}" for column in counts.mistakes)
        slope = slopes[name]
        D = "not defined" if slope is None else f"{slope:.2f}"
        rows.append((_shown(name), *means, D, f"{len(counts.mistakes[-1]):,}"))
    head = ("case", *(f"$T = {T:,}$" for T in settings.horizons), "D", "runs at the last T")
    caption = "Mean mistakes up to $T$, and D, growth from decade to decade, with one-sided limits of 99.9 %"
    return Table(caption=caption, head=head, rows=tuple(rows))


def _draw(settings: Settings, played: Mapping[str, Counts]) -> Figure:
    T = np.array(settings.horizons, dtype=np.float64)
    lines = {"theorem": np.array([bound("late", int(each)) for each in T])}
    lines |= {name: np.array([column.mean() for column in counts.mistakes]) for name, counts in played.items()}
    with plots.frame(height=3.6, labels=list(lines)) as (figure, axes):
        for index, (name, means) in enumerate(lines.items()):
            marked = plots.point_style(index) if name in CONTROLS else {}
            axes.plot(T, means, label=drawn(_shown(name)), **plots.line_style(index) | marked)
        axes.set(xscale="log", yscale="log", xlabel="T (log scale)", ylabel="mistakes (log scale)")
        plots.plain_numbers(axes.xaxis)
        plots.plain_numbers(axes.yaxis)
        plots.legend(figure, axes)
    return figure


def judge_coin(played: Mapping[str, Counts]) -> tuple[Verdict, Section]:
    """Ask whether contexts could tell which steps would be optimistic."""
    near = [Statistic(f"B: $z$, {name}", certain(played[name].z), Criterion("within", -4, 4)) for name in HONEST]
    far = Statistic(f"B: $z$, {PUBLIC}", certain(played[PUBLIC].z), Criterion("outside", -4, 4), Role.CONTROL)
    claim = _our_claim(
        "coin",
        "Steps on which optimism could learn something are optimistic as often as others, regardless of the contexts.",
        "B: the sum of $C_t - s$ over steps on which the arm of optimism has a bonus of at least half the gap, over "
        "its standard deviation. Control: the coin is a public function of $t$, which the contexts avoid.",
    )
    rows = tuple((name, f"{played[name].z:.1f}") for name in (*HONEST, PUBLIC))
    table = Table(caption="B, $z$ of the coins on steps with a large bonus", head=("case", "B"), rows=rows)
    section = Section(claim=claim.key, heading="Contexts cannot tell which steps are optimistic", tables=(table,))
    return Verdict(claim=claim, statistics=(*near, far)), section


def judge_radius(settings: Settings, outside: Mapping[float, Float64]) -> tuple[Verdict, Section]:
    """Count the runs in which an arm ever left its ellipsoid."""
    shares = {width: share_with_limits(int(runs.sum()), len(runs)) for width, runs in outside.items()}
    verdict, names = radius_verdict(settings, shares), [f"{width:g} of the radius" for width in shares]
    picture = plots.picture(
        plots.bars(names, list(shares.values()), xlabel="share of runs", marks={"allowed": LEVEL}),
        key=verdict.claim.key,
        alt="Share of runs in which an arm was ever outside its ellipsoid, at three widths, and the share allowed",
        caption="Runs in which an arm was ever outside its ellipsoid, with one-sided limits of 99.9 %.",
    )
    rows = tuple((name, f"{each:.4f}") for name, each in zip(names, shares.values(), strict=True))
    caption = f"C, share of {settings.ellipsoid_runs:,} runs with an arm ever outside its ellipsoid of level {LEVEL:g}"
    table = Table(caption=caption, head=("radius", "C"), rows=rows)
    return verdict, Section(
        claim=verdict.claim.key,
        heading="The proved radius covers, and a smaller one does not",
        pictures=(picture,),
        tables=(table,),
    )


def radius_verdict(settings: Settings, shares: Mapping[float, Estimate]) -> Verdict:
    """Judge C."""
    (honest, *narrow), name = WIDTHS, "C: runs outside, {:g} of the radius"
    few, many = Criterion("below", LEVEL), Criterion("above", LEVEL)
    statistics = (
        Statistic(name.format(honest), shares[honest], few),
        *(Statistic(name.format(width), shares[width], many, Role.CONTROL) for width in narrow),
    )
    claim = _our_claim(
        "radius",
        r"With the proved radius the $\theta$ of an arm is ever outside its ellipsoid of level 0.05 in less than 5 % "
        "of runs; with 0.7 and 0.5 of it, in more.",
        f"C: the adversary's contexts with a noise of {LOUD:g}, {settings.ellipsoid_steps:,} steps, every step looked "
        r"at. With a noise of 0.1, $\sqrt{\text{ridge}}\, Q$ is a third of the radius and hides a factor of 0.7.",
    )
    return Verdict(claim=claim, statistics=statistics)


def judge_product(
    settings: Settings, product: Mapping[tuple[str, int], Float64], played: Mapping[str, Counts]
) -> tuple[Verdict, Section]:
    """Hold Armlet's own policy to its bound, and to what the simulated one does."""
    simulated = {
        (name, T): float(column.mean())
        for name, counts in played.items()
        for T, column in zip(settings.horizons, counts.mistakes, strict=True)
    }
    statistics, rows = [], []
    for (name, T), mistakes in product.items():
        most = theory.mistakes_bound(theory.for_policy(armlet_policy(name), n_arms=K, dim=2, gap=GAP), T)
        share, times = mean_with_limits(mistakes, most), mean_with_limits(mistakes, simulated[name, T])
        statistics.append(Statistic(f"A: mistakes / bound, {name}, $T = {T:,}$", share, Criterion("below", 1)))
        statistics.append(Statistic(f"E: mistakes / simulated, {name}, $T = {T:,}$", times, Criterion("below", TIMES)))
        mean = f"{mean_with_limits(mistakes):,.1f}"
        rows.append(
            (f"{name}, $T = {T:,}$", mean, f"{mistakes.max():,.0f}", f"{simulated[name, T]:,.1f}", f"{most:,.0f}")
        )
    T = settings.product_horizons[-1]
    public = certain(simulated[PUBLIC, T] / simulated["off schedule", T])
    control = f"E: mistakes / simulated, {PUBLIC}, $T = {T:,}$", public, Criterion("above", TIMES), Role.CONTROL
    claim = _our_claim(
        "policy",
        "OccasionalOptimism(radius='proved') makes no more mistakes than armlet.theory allows its settings, and less "
        f"than {TIMES:g} times those of the policy simulated here.",
        f"Played by the kernel as users get it, {settings.product_runs} runs at each place; mistakes of steps that "
        "explore count too, and the bound has what exploring and solving by leverage add.",
    )
    head = ("environment", "mean mistakes", "most in a run", "simulated, mean", "bound")
    table = Table(caption="Mistakes of OccasionalOptimism(radius='proved')", head=head, rows=tuple(rows))
    section = Section(claim=claim.key, heading="OccasionalOptimism keeps to its bound", tables=(table,))
    return Verdict(claim=claim, statistics=(*statistics, Statistic(*control))), section


EXPERIMENT: Final = Experiment("open-problem", "The open problem: log T mistakes, regardless of the contexts", run)


# ---- means and shares with one-sided limits of 99.9 %, one on each side


def mean_with_limits(column: Float64, unit: float = 1.0) -> Estimate:
    """Return the mean over runs in some unit, with limits of 99.9 % on each side by Student's t.

    Examples
    --------
    >>> print(f"{mean_with_limits(np.array([1.0, 2.0, 3.0, 2.0] * 10)):.2f}")
    2.00 [1.62 to 2.38]
    """
    mean, spread = float(column.mean()), float(column.std(ddof=1)) / math.sqrt(len(column))
    reach = t_quantile(LIMIT, len(column) - 1) * spread
    return Estimate(mean / unit, (mean - reach) / unit, (mean + reach) / unit)


def share_with_limits(cases: int, n: int) -> Estimate:
    """Return the share of cases among n, with limits of 99.9 % on each side by the binomial law (Clopper, Pearson).

    Examples
    --------
    >>> print(f"{share_with_limits(0, 135):.4f}", f"{share_with_limits(50, 100):.3f}")
    0.0000 [0.0000 to 0.0499] 0.500 [0.345 to 0.655]
    """
    low = 0.0 if cases == 0 else _root(lambda p: 1.0 - _at_most(cases - 1, n, p) < 1.0 - LIMIT)
    high = 1.0 if cases == n else _root(lambda p: _at_most(cases, n, p) > 1.0 - LIMIT)
    return Estimate(cases / n, low, high)


def _at_most(cases: int, n: int, p: float) -> float:
    k = np.arange(cases + 1)
    chosen = np.array([math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in k])
    return float(np.exp(chosen + k * math.log(p) + (n - k) * math.log1p(-p)).sum())


def _root(is_below: Callable[[float], bool]) -> float:
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return (low + high) / 2
