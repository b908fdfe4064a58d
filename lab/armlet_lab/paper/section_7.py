"""Section 7: what a rare context costs Algorithm 1, and what it costs when it becomes ever rarer.

With fixed I, the rows an arm needs before the rare context is played right are found by drawing estimates, not
steps: with gaussian noise the sums behind an estimate are gaussian given how often the rare context came, so a
million rows cost as much as ten. O(environments repeats K log(MOST)) for each I.
With growing I, the environment is no table: contexts and rewards are drawn in chunks and played by the kernel. O(T K).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal, TypeAlias

import numpy as np

from armlet.environments.environment import Theta, as_rows, draw_rewards
from armlet.environments.paper import SECTION_7_CONTEXTS, Rate, Section7, Section7Growing
from armlet.inference.intervals import band, bootstrap, doubling_ratio, power_slope
from armlet.parallel import Seeds
from armlet.policies import Algorithm1
from armlet.report import plots
from armlet.report.numbers import percent
from armlet.simulation.lab import Arrays, Lab, Scale, as_floats
from armlet.simulation.play import player, run_streams
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
)
from armlet_lab.runner.formulas import drawn

GROWING: Final = "A context that becomes ever rarer costs Algorithm 1 its logarithmic regret"
MOST: Final = 2**26  # rows: where the search for enough of them ends
RATES: Final[tuple[Rate | None, ...]] = (None, "log", "log2", "sqrt")  # at first I is fixed
GROWTH: Final[dict[Rate, str]] = {"log": r"\log t", "log2": r"\log^2 t", "sqrt": r"\sqrt t"}
BOUNDED: Final = 2  # of them the last two: the sum of p / (t I(t)), explored steps in (1, 1), is finite
N_ARMS, FIXED = 6, 5.0  # K, and the I that does not grow
GAP: Final = 0.3  # smallest loss of a wrong arm in the environments with growing I
ERRORS: Final = 0.05  # the share of wrong arms that is seldom enough
TOGETHER: Final = 10  # runs in a task
CHUNK: Final = 100_000  # steps drawn at a time
RidgeName: TypeAlias = Literal["paper", "1/n"]
CASES: Final[dict[str, tuple[RidgeName, float]]] = {  # ridge, and the deviation of a reward
    "ridge 1/sqrt n": ("paper", 1.0),
    "ridge 1/n": ("1/n", 1.0),
    "no noise, ridge 1/sqrt n": ("paper", 0.0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`environments` and `repeats` count rows that estimates need at each I; `p`, `horizon`, `runs` are for regret."""

    rarities: tuple[int, ...] = (5, 10, 20, 40, 80, 160)
    environments: int  # draws of theta, the same for every I
    repeats: int  # estimates for each number of rows
    p: float = 1200.0
    horizon: int
    runs: int


SCALES: Final[dict[Scale, Settings]] = {
    "quick": Settings(environments=100, repeats=100, horizon=30_000, runs=120),
    "full": Settings(environments=400, repeats=400, horizon=1_000_000, runs=200),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A task: the rows that every environment needs at one I."""

    seeds: Seeds
    case: str  # of CASES
    rarity: int
    environments: int
    repeats: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """A task: the runs numbered from `first` to before `stop`, with one kind of I."""

    seeds: Seeds
    rate: Rate | None  # None: I is fixed
    first: int
    stop: int
    p: float
    horizon: int


def run(lab: Lab) -> Findings:
    """Run the experiment at the lab's scale."""
    return find(SCALES[lab.scale], lab)


def find(settings: Settings, lab: Lab) -> Findings:
    """Find the rows that a rare context needs, play where it becomes rarer, and judge."""
    return judge(settings, _rows(settings, lab), _runs(settings, lab), lab.rng("regret intervals"))


def judge(
    settings: Settings, rows: list[plots.Series], played: list[EnvironmentRuns], rng: np.random.Generator
) -> Findings:
    """Judge both claims of the section."""
    return Findings.of([_judge_fixed(settings, rows), _judge_growing(settings, played, rng)])


def _rows(settings: Settings, lab: Lab) -> list[plots.Series]:
    I, n, seeds = settings.rarities, settings.environments, lab.seeds  # noqa: E741
    tasks = [
        Search(seeds=seeds, case=case, rarity=i, environments=n, repeats=settings.repeats) for i in I for case in CASES
    ]
    found, series = lab.map("rows", rows_needed, tasks, f"Section 7: rows needed at I = {I[0]} to {I[-1]}"), []
    for index, case in enumerate(CASES):
        columns, rng = (
            [as_floats(arrays["rows"]) for arrays in found[index :: len(CASES)]],
            lab.rng("row intervals", case),
        )
        slope = power_slope(I, columns, rng, average="median")
        middle = tuple(bootstrap(lambda rows: np.median(rows, axis=-1), rows, rng=rng) for rows in columns)
        series.append(plots.Series(drawn(case), I, middle, slope))
    return series


def _draw_theta(rng: np.random.Generator, environments: int, gap: float) -> Float64:
    """Draw environments where (1, 1) and (1, 0) have different best arms, both ahead by `gap`: (environments, K, 2).

    In the others, an estimate that ignores the rare context is right in it all the same.
    """
    found: list[Float64] = []
    while len(found) < environments:
        theta = rng.standard_normal((N_ARMS, 2))
        means = np.stack([theta.sum(axis=1), theta[:, 0]])
        best = np.sort(means, axis=1)[:, -2:]
        if np.ptp(means.argmax(axis=1)) > 0 and (best[:, 1] - best[:, 0]).min() >= gap:
            found.append(theta)
    return np.array(found)


def _judge_fixed(settings: Settings, series: list[plots.Series]) -> tuple[Verdict, Section]:
    claim = Claim(
        key="section7-fixed",
        where="Section 7, the example",
        says=r"When the context $(1, 1)$ comes once in $I$ steps, regret is $O(I^2 \log T)$.",
        reading="An upper bound, by way of $p$: the rows each arm needs, to which $p$ is proportional, until the wrong "
        f"arm is chosen in $(1, 1)$ at most {percent(ERRORS)} of the time, may grow as $I^2$ at most. Median over "
        f"{settings.environments} draws of {N_ARMS} arms of which not the same is best in both contexts; rewards are "
        "gaussian with deviation 1.",
    )
    paper, mild, bias = (one.slope for one in series)
    rules = (
        Statistic("exponent of $I$, rows needed", paper, Criterion("below", 2.0)),
        Statistic("exponent of $I$, rows needed with ridge $1/n$", mild, Criterion("within", 0.8, 1.2), Role.READING),
        Statistic("exponent of $I$, bias alone", bias, Criterion("above", 1.5), Role.CONTROL),
    )
    why = {
        Outcome.HOLDS: r"It is the bias of the ridge that may ask for a square: $1/\sqrt n$ must fall far below $1/I$. "
        "Noise asks for a number of rare rows, which takes rows in proportion to $I$. With both, the exponent lies "
        "between; a ridge of $1/n$ leaves the noise only.",
        Outcome.FAILS: "More rows are needed than the bound through $p$ allows.",
    }
    figure = plots.power_law(series, xlabel="I", ylabel="rows for each arm")
    alt = "Rows needed against I: growing about as I with ridge 1/n, faster with ridge 1/sqrt n, as its square by bias"
    picture = plots.picture(figure, key=claim.key, alt=alt, caption="Median over environments with 95 % intervals.")
    section = Section(claim=claim.key, heading=r"A rare context costs at most $O(I^2 \log T)$", pictures=(picture,))
    return Verdict(claim=claim, statistics=rules, explanations=why), section


def rows_needed(task: Search) -> Arrays:
    """Return for every environment the rows from which on the wrong arm is chosen seldom enough: (environments,)."""
    theta = _draw_theta(task.seeds.rng("worlds"), task.environments, gap=0.0)  # the same for every task
    (ridge, noise), rng = CASES[task.case], task.seeds.rng("estimates", task.case, task.rarity)
    sizes = np.unique(np.geomspace(2, MOST, 51).astype(np.int64))
    often, best = np.empty((len(sizes), len(theta)), dtype=bool), theta.sum(axis=2).argmax(axis=1)
    for index, n in enumerate(sizes):
        found = predictions(theta, int(n), task.rarity, ridge, noise, task.repeats, rng)
        often[index] = (found.argmax(axis=2) != best).mean(axis=0) > ERRORS
    after = len(sizes) - np.argmax(often[::-1], axis=0)  # the size that follows the last with too many errors
    return {"rows": sizes[np.where(often.any(axis=0), np.minimum(after, len(sizes) - 1), 0)]}


def predictions(
    theta: Float64, n: int, rarity: float, ridge: RidgeName, noise: float, repeats: int, rng: np.random.Generator
) -> Float64:
    """Draw what n rows for every arm make ridge regression predict in (1, 1): (repeats, environments, K).

    Examples
    --------
    >>> theta, rng = np.array([[[1.0, 2.0]]]), np.random.default_rng(0)
    >>> predictions(theta, 10**8, 2.0, "1/n", 0.0, 1, rng).round(3)
    array([[[3.]]])
    """
    shape = (repeats, *theta.shape[:2])
    rare = rng.binomial(n, 1 / rarity, size=shape)
    lam = n**-0.5 if ridge == "paper" else 1 / n
    q = rare / n  # A / n = [[1, q], [q, q]]
    b2 = q * theta.sum(axis=2) + noise * np.sqrt(rare) / n * rng.standard_normal(shape)
    b1 = b2 + (1 - q) * theta[:, :, 0] + noise * np.sqrt(n - rare) / n * rng.standard_normal(shape)
    # Cramer's rule for (lam I + A / n) theta_hat = (b1, b2), both entries added up
    total: Float64 = (lam * b1 + (1 + lam - q) * b2) / ((1 + lam) * (q + lam) - q * q)
    return total


@dataclass(frozen=True, slots=True)
class EnvironmentRuns:
    """What runs came to in one kind of environment."""

    label: str
    steps: Int64  # (C,)
    regret: Float64  # (runs, C)
    early: Float64  # (runs,): share of wrong arms in exploited (1, 1), T/16 to T/8
    late: Float64  # the same, T/2 to T


def _runs(settings: Settings, lab: Lab) -> list[EnvironmentRuns]:
    n, p, T = settings.runs, settings.p, settings.horizon
    parts = [(first, min(first + TOGETHER, n), rate) for first in range(0, n, TOGETHER) for rate in RATES]
    tasks = [Runs(seeds=lab.seeds, rate=rate, first=first, stop=stop, p=p, horizon=T) for first, stop, rate in parts]
    found = lab.map("play", play, tasks, f"Section 7: {n} runs of {T:,} steps with each kind of I")
    labels = [f"$I = {FIXED:g}$" if rate is None else f"$I = 2 + {GROWTH[rate]}$" for rate in RATES]
    return [_join(label, T, found[index :: len(RATES)]) for index, label in enumerate(labels)]


def _checkpoints(T: int) -> Int64:
    return np.union1d(np.geomspace(10, T, 40).astype(np.int64), [T // 16, T // 8, T // 4, T // 2, T])


def _join(label: str, T: int, found: list[Arrays]) -> EnvironmentRuns:
    steps, names = _checkpoints(T), ("regret", "wrong", "met")
    regret, wrong, met = (np.concatenate([as_floats(arrays[name]) for arrays in found]) for name in names)
    ends = [np.searchsorted(steps, pair) for pair in ([T // 16, T // 8], [T // 2, T])]
    early, late = (np.diff(wrong[:, at])[:, 0] / np.maximum(np.diff(met[:, at])[:, 0], 1) for at in ends)
    return EnvironmentRuns(label, steps, regret, early, late)


def play(task: Runs) -> Arrays:
    """Return at every step kept the regret, and how often the exploited (1, 1) was played wrong and met: (runs, C)."""
    thetas = _draw_theta(task.seeds.rng("worlds with growing I"), task.stop, gap=GAP)  # the same at every rate
    kept = np.array([_one_run(task, index, as_rows(thetas[index])) for index in range(task.first, task.stop)])
    regret, wrong, met = kept.transpose(1, 0, 2)
    return {"regret": regret.copy(), "wrong": wrong.astype(np.int64), "met": met.astype(np.int64)}


def _one_run(task: Runs, index: int, theta: Theta) -> Float64:
    rate, policy, steps = task.rate, Algorithm1(p=task.p), _checkpoints(task.horizon)
    environment = Section7(theta=theta, I=FIXED) if rate is None else Section7Growing(theta=theta, rate=rate)
    contexts, noise, coins = run_streams(task.seeds, index)
    plays = player(environment, policy, coins)
    total, kept, means = np.zeros(3), np.empty((3, len(steps))), environment.means(SECTION_7_CONTEXTS)
    losses = means.max(axis=1, keepdims=True) - means  # (2, K): there are two contexts only
    for start, end in pairwise([*range(0, task.horizon, CHUNK), task.horizon]):
        X = environment.contexts(contexts, end - start, start=start)
        row = (X[:, 1] == 0).astype(np.int64)  # of SECTION_7_CONTEXTS, the rare one first
        rewards = draw_rewards(noise, means[row], environment.noise, environment.scale)
        arms, explored = plays.play(X, rewards)
        loss, rare = losses[row, arms], (row == 0) & ~explored
        sums = np.cumsum([loss, rare & (loss > 0), rare], axis=1) + total[:, None]
        inside = (steps > start) & (steps <= end)
        kept[:, inside], total = sums[:, steps[inside] - start - 1], sums[:, -1]
    return kept


def _judge_growing(
    settings: Settings, played: list[EnvironmentRuns], rng: np.random.Generator
) -> tuple[Verdict, Section]:
    fixed, *growing = played
    claim = Claim(
        key="section7-growing",
        where="Section 7, after the example",
        says="If $I$ grows slowly with time, Algorithm 1 is expected to lose its logarithmic regret.",
        reading=rf"$p = {settings.p:,.0f}$ throughout, $T = {settings.horizon:,}$, rewards as in Section 6, a new "
        rf"$\theta$ in every run, with other best arms in $(1, 1)$ than in $(1, 0)$, ahead by {GAP:g} at least. As "
        "written: regret gains more from $T/2$ to $T$ than from $T/4$ to $T/2$. Our reading, because rare mistakes are "
        r"cheap: where exploration meets $(1, 1)$ a bounded number of times, which is so for $\log^2 t$ and $\sqrt t$ "
        r"but not for $\log t$, it is still played wrong more than 5 % of the time from $T/2$ to $T$; with fixed $I$ "
        "it is not.",
    )
    often, grows = Criterion("above", 0.05), Criterion("above", 1.1)
    shares = [bootstrap(lambda share: share.mean(-1), one.late, rng=rng) for one in played]
    wrong = [f"wrong arms in $(1, 1)$, {one.label}" for one in played]
    ratios = [doubling_ratio(one.steps, one.regret, rng) for one in (*growing, fixed)]
    names = [f"doubling ratio, {one.label}" for one in (*growing, fixed)]
    rules = [
        *(Statistic(*pair, grows) for pair in zip(names[:-1], ratios[:-1], strict=True)),
        *(Statistic(*pair, often, Role.READING) for pair in zip(wrong[-BOUNDED:], shares[-BOUNDED:], strict=True)),
        Statistic(wrong[0], shares[0], Criterion("below", 0.05), Role.CONTROL),
        Statistic(names[-1], ratios[-1], Criterion("below", 1.1), Role.CONTROL),
    ]
    why = {
        Outcome.HOLDS: "Exploration meets the rare context ever less often, so what is known of it stands still while "
        "it keeps coming.",
        Outcome.UNDER_READING: "The rare context is played wrong as foreseen, but it is so rare, and exploring so "
        "costly, that total regret does not show it at this horizon.",
        Outcome.FAILS: "At this horizon the rare context is neither forgotten nor costly.",
    }
    section = _show_growing(claim.key, played, shares, rng)
    return Verdict(claim=claim, statistics=tuple(rules), explanations=why), section


def _show_growing(key: str, played: list[EnvironmentRuns], shares: list[Estimate], rng: np.random.Generator) -> Section:
    curves = [plots.Curve(drawn(one.label), one.steps.astype(np.float64), band(one.regret, rng)) for one in played]
    alt = "Regret of Algorithm 1 with fixed I and with I growing in three ways, against log t"
    regret = plots.picture(plots.regret(curves), key=key, alt=alt, caption="Mean regret with 95 % intervals.")
    figure = plots.bars([drawn(one.label) for one in played], shares, xlabel="share of wrong arms in (1, 1)")
    alt = "Share of wrong arms in the rare context late in the run, for fixed and growing I"
    errors = plots.picture(figure, key=f"{key}-errors", alt=alt, caption="Exploited steps from $T/2$ to $T$.")
    each = "; ".join(f"{one.label}: {one.early.mean():.3f}, {one.late.mean():.3f}" for one in played)
    note = f"Mean share of wrong arms in exploited $(1, 1)$, from $T/16$ to $T/8$ and from $T/2$ to $T$: {each}."
    return Section(claim=key, heading=GROWING, pictures=(regret, errors), notes=(note,))


EXPERIMENT: Final = Experiment("section-7", "Section 7: a rare context, and one that becomes ever rarer", run)
