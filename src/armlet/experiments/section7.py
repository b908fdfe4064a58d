"""Section 7: what a rare context costs Algorithm 1, and what it costs when it becomes ever rarer.

With fixed I, the rows an arm needs before the rare context is played right are found by drawing estimates, not
steps: with gaussian noise the sums behind an estimate are gaussian given how often the rare context came, so a
million rows cost as much as ten. O(worlds repeats K log(MOST)) for each I.
With growing I, the world is no table: contexts and rewards are drawn in chunks and played by the kernel. O(T K).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal, TypeAlias

import numpy as np

from armlet.core import kernel
from armlet.core.types import Float64, Int64
from armlet.environments.linear_arms import as_rows
from armlet.environments.section7 import Section7
from armlet.environments.section7_growing import WORDS, Rate, Section7Growing
from armlet.experiments import plots
from armlet.experiments.experiment import Experiment, Findings, Scale
from armlet.experiments.plots import Curve, Series
from armlet.experiments.rates import Estimate, band, bootstrap, doubling_ratio, power_slope
from armlet.experiments.report import Picture, Section
from armlet.experiments.verdicts import Claim, Criterion, Outcome, Role, Statistic, Verdict
from armlet.policies import ContextualEpsilonGreedy

KEY: Final = 7  # of this experiment's streams
MOST: Final = 2**26  # rows: where the search for enough of them ends
RATES: Final[tuple[Rate, ...]] = ("log", "log2", "sqrt")
BOUNDED: Final = 2  # of them the last two: the sum of p / (t I(t)), explored steps in (1, 1), is finite
RidgeName: TypeAlias = Literal["paper", "1/n"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is varied, and how often it is drawn."""

    rarities: tuple[int, ...] = (5, 10, 20, 40, 80, 160)
    worlds: int  # draws of theta, the same for every I
    repeats: int  # estimates for each number of rows
    errors: float = 0.05
    noise: float = 1.0  # standard deviation of a reward
    n_arms: int = 6
    p: float = 1200.0
    fixed: float = 5.0  # the I that does not grow
    gap: float = 0.3  # smallest loss of a wrong arm in the worlds with growing I
    horizon: int
    chunk: int = 100_000
    runs: int


QUICK: Final = Settings(worlds=100, repeats=100, horizon=30_000, runs=120)
FULL: Final = Settings(worlds=400, repeats=400, horizon=1_000_000, runs=200)


def run(scale: Scale, seed: int, say: Callable[[str], None]) -> Findings:
    """Test both claims of Section 7."""
    return analyse(FULL if scale == "full" else QUICK, seed, say)


def analyse(settings: Settings, seed: int, say: Callable[[str], None]) -> Findings:
    """Test both claims with given settings."""
    fixed = _fixed(settings, seed, say)
    growing = _growing(settings, seed, say)
    return Findings((fixed[0], growing[0]), (fixed[1], growing[1]))


def _fixed(settings: Settings, seed: int, say: Callable[[str], None]) -> tuple[Verdict, Section]:
    theta = draw_theta(_stream(seed, 0), settings.worlds, settings.n_arms, gap=0.0)
    cases: list[tuple[str, RidgeName, float]] = [
        ("ridge 1/sqrt n", "paper", settings.noise),
        ("ridge 1/n", "1/n", settings.noise),
        ("no noise, ridge 1/sqrt n", "paper", 0.0),
    ]
    series, slopes = [], []
    for index, (label, ridge, noise) in enumerate(cases):
        say(f"Section 7: rows needed at I = {settings.rarities[0]} to {settings.rarities[-1]}, {label}")
        columns = [rows_needed(settings, theta, i, ridge, noise, _stream(seed, 1, index, i)) for i in settings.rarities]
        rng = _stream(seed, 2, index)
        slopes.append(power_slope(settings.rarities, columns, rng, average="median"))
        middle = tuple(bootstrap(lambda rows: np.median(rows, axis=-1), rows, rng=rng) for rows in columns)
        series.append(Series(label, settings.rarities, middle, slopes[-1]))
    return _judge_fixed(settings, slopes, series)


def draw_theta(rng: np.random.Generator, worlds: int, n_arms: int, gap: float) -> Float64:
    """Draw worlds where (1, 1) and (1, 0) have different best arms, both ahead by `gap`: (worlds, K, 2).

    In the others, an estimate that ignores the rare context is right in it all the same.

    Examples
    --------
    >>> theta = draw_theta(np.random.default_rng(0), 5, 3, gap=0.3)
    >>> theta.shape, bool((theta[:, :, 0].argmax(axis=1) == theta.sum(axis=2).argmax(axis=1)).any())
    ((5, 3, 2), False)
    """
    found: list[Float64] = []
    while len(found) < worlds:
        theta = rng.standard_normal((n_arms, 2))
        means = np.stack([theta.sum(axis=1), theta[:, 0]])
        best = np.sort(means, axis=1)[:, -2:]
        if np.ptp(means.argmax(axis=1)) > 0 and (best[:, 1] - best[:, 0]).min() >= gap:
            found.append(theta)
    return np.array(found)


def _judge_fixed(settings: Settings, slopes: list[Estimate | None], series: list[Series]) -> tuple[Verdict, Section]:
    claim = Claim(
        key="section7-fixed",
        where="Section 7, the example",
        says="When the context (1, 1) comes once in I steps, regret is O(I^2 log T).",
        reading="An upper bound, by way of p: the rows each arm needs, to which p is proportional, until the wrong arm "
        f"is chosen in (1, 1) at most {settings.errors:.0%} of the time, may grow as I^2 at most. Median over "
        f"{settings.worlds} draws of {settings.n_arms} arms of which not the same is best in both contexts; rewards "
        f"are gaussian with deviation {settings.noise:g}.",
    )
    paper, mild, bias = slopes
    rules = (
        Statistic("exponent of I, rows needed", paper, Criterion("below", 2.0)),
        Statistic("exponent of I, rows needed with ridge 1/n", mild, Criterion("within", 0.8, 1.2), Role.READING),
        Statistic("exponent of I, bias alone", bias, Criterion("above", 1.5), Role.CONTROL),
    )
    why = {
        Outcome.HOLDS: "It is the bias of the ridge that may ask for a square: 1/sqrt n must fall far below 1/I. Noise "
        "asks for a number of rare rows, which takes rows in proportion to I. With both, the exponent lies between; a "
        "ridge of 1/n leaves the noise only.",
        Outcome.FAILS: "More rows are needed than the bound through p allows.",
    }
    figure = plots.power_law(series, xlabel="I", ylabel="rows for each arm")
    alt = "Rows needed against I: growing about as I with ridge 1/n, faster with ridge 1/sqrt n, as its square by bias"
    picture = Picture(plots.svg(figure, key=claim.key, alt=alt), "Median over worlds with 95 % intervals.")
    return Verdict(claim=claim, statistics=rules, explanations=why), Section(
        claim=claim.key, heading="What a rare context costs", pictures=(picture,)
    )


def rows_needed(
    settings: Settings, theta: Float64, rarity: float, ridge: RidgeName, noise: float, rng: np.random.Generator
) -> Float64:
    """Give for every world the rows from which on the wrong arm is chosen seldom enough: (worlds,)."""
    sizes = np.unique(np.geomspace(2, MOST, 51).astype(np.int64))
    wrong = np.empty((len(sizes), len(theta)))
    best = theta.sum(axis=2).argmax(axis=1)
    for index, n in enumerate(sizes):
        found = predictions(theta, int(n), rarity, ridge, noise, settings.repeats, rng)
        wrong[index] = (found.argmax(axis=2) != best).mean(axis=0)
    often = wrong > settings.errors
    after = len(sizes) - np.argmax(often[::-1], axis=0)  # the size that follows the last with too many errors
    first: Int64 = np.where(often.any(axis=0), np.minimum(after, len(sizes) - 1), 0)
    return sizes[first].astype(np.float64)


def predictions(
    theta: Float64, n: int, rarity: float, ridge: RidgeName, noise: float, repeats: int, rng: np.random.Generator
) -> Float64:
    """Draw what n rows for every arm make ridge regression predict in (1, 1): (repeats, worlds, K).

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
class Played:
    """What runs came to in one kind of world."""

    label: str
    steps: Int64  # (C,)
    regret: Float64  # (runs, C)
    early: Float64  # (runs,): share of wrong arms in exploited (1, 1), T/16 to T/8
    late: Float64  # the same, T/2 to T


def _growing(settings: Settings, seed: int, say: Callable[[str], None]) -> tuple[Verdict, Section]:
    played = []
    for rate in (None, *RATES):
        label = f"I = {settings.fixed:g}" if rate is None else f"I = 2 + {WORDS[rate]}"
        say(f"Section 7: {settings.runs} runs of {settings.horizon:,} steps, {label}")
        played.append(_play(settings, seed, rate, label))
    return _judge_growing(settings, played, _stream(seed, 4))


def _play(settings: Settings, seed: int, rate: Rate | None, label: str) -> Played:
    T = settings.horizon
    steps = np.union1d(np.geomspace(10, T, 40).astype(np.int64), [T // 16, T // 8, T // 4, T // 2, T])
    curves, counts = np.empty((settings.runs, len(steps))), np.empty((settings.runs, 2, len(steps)))
    # the same theta whatever the rate
    for index, arms in enumerate(draw_theta(_stream(seed, 3), settings.runs, settings.n_arms, settings.gap)):
        theta = as_rows(arms)
        world = Section7(theta=theta, I=settings.fixed) if rate is None else Section7Growing(theta=theta, rate=rate)
        seeds = np.random.SeedSequence(seed, spawn_key=(KEY, 5, index))
        curves[index], counts[index] = _one_run(settings, world, steps, seeds)
    at = np.searchsorted(steps, [T // 16, T // 8, T // 2, T])
    wrong, met = counts[:, :, at].transpose(1, 0, 2)
    early, late = ((wrong[:, j] - wrong[:, i]) / np.maximum(met[:, j] - met[:, i], 1) for i, j in ((0, 1), (2, 3)))
    return Played(label, steps, curves, early, late)


def _one_run(
    settings: Settings, world: Section7 | Section7Growing, steps: Int64, seeds: np.random.SeedSequence
) -> tuple[Float64, Float64]:
    """Give at every step kept the regret, and how often the exploited (1, 1) was played wrong and met: (2, C)."""
    contexts, noise = map(np.random.default_rng, seeds.spawn(2))  # apart, so that chunks change nothing
    policy = ContextualEpsilonGreedy(p=settings.p)
    state, coins = policy.init(world.n_arms, world.dim), int(seeds.generate_state(1)[0])
    total, kept = np.zeros(3), np.empty((3, len(steps)))
    edges = [*range(0, settings.horizon, settings.chunk), settings.horizon]
    for start, end in pairwise(edges):
        X = world.contexts(contexts, end - start, start=start)
        rewards, means = world.rewards(noise, X, start=start), world.means(X, start=start)
        played = kernel.rollout(X, rewards, start=state, schedule=policy.schedule(), seed=coins, t=start)
        state = played.statistics
        loss = means.max(axis=1) - means[np.arange(len(X)), played.arms]
        rare = (X[:, 1] == 1) & ~played.explored
        sums = np.cumsum([loss, rare & (loss > 0), rare], axis=1) + total[:, None]
        inside = (steps > start) & (steps <= end)
        kept[:, inside], total = sums[:, steps[inside] - start - 1], sums[:, -1]
    return kept[0], kept[1:]


def _judge_growing(settings: Settings, played: list[Played], rng: np.random.Generator) -> tuple[Verdict, Section]:
    fixed, *growing = played
    claim = Claim(
        key="section7-growing",
        where="Section 7, after the example",
        says="If I grows slowly with time, Algorithm 1 is expected to lose its logarithmic regret.",
        reading=f"p = {settings.p:g} throughout, T = {settings.horizon:,}, rewards as in Section 6, a new theta in "
        f"every run, with other best arms in (1, 1) than in (1, 0), ahead by {settings.gap:g} at least. As written: "
        "regret gains more from T/2 to T than from T/4 to T/2. Our reading, because rare mistakes are cheap: where "
        "exploration meets (1, 1) a bounded number of times, which is so for log^2 t and sqrt t but not for log t, it "
        "is still played wrong more than 5 % of the time from T/2 to T; with fixed I it is not.",
    )
    often, grows = Criterion("above", 0.05), Criterion("above", 1.1)
    shares = [bootstrap(lambda share: share.mean(-1), one.late, rng=rng) for one in played]
    wrong = [f"wrong arms in (1, 1), {one.label}" for one in played]
    rules = [
        *(Statistic(f"doubling ratio, {one.label}", _ratio(one, rng), grows) for one in growing),
        *(Statistic(*pair, often, Role.READING) for pair in zip(wrong[-BOUNDED:], shares[-BOUNDED:], strict=True)),
        Statistic(wrong[0], shares[0], Criterion("below", 0.05), Role.CONTROL),
        Statistic(f"doubling ratio, {fixed.label}", _ratio(fixed, rng), Criterion("below", 1.1), Role.CONTROL),
    ]
    why = {
        Outcome.HOLDS: "Exploration meets the rare context ever less often, so what is known of it stands still while "
        "it keeps coming.",
        Outcome.UNDER_READING: "The rare context is played wrong as foreseen, but it is so rare, and exploring so "
        "dear, that total regret does not show it at this horizon.",
        Outcome.FAILS: "At this horizon the rare context is neither forgotten nor costly.",
    }
    return Verdict(claim=claim, statistics=tuple(rules), explanations=why), _show_growing(
        claim.key, played, shares, rng
    )


def _show_growing(key: str, played: list[Played], shares: list[Estimate], rng: np.random.Generator) -> Section:
    curves = [Curve(one.label, one.steps.astype(np.float64), band(one.regret, rng)) for one in played]
    alt = "Regret of Algorithm 1 with fixed I and with I growing in three ways, against log t"
    regret = Picture(plots.svg(plots.regret(curves), key=key, alt=alt), "Mean regret with 95 % intervals.")
    figure = plots.bars([one.label for one in played], shares, xlabel="share of wrong arms in (1, 1)")
    alt = "Share of wrong arms in the rare context late in the run, for fixed and growing I"
    errors = Picture(plots.svg(figure, key=f"{key}-errors", alt=alt), "Exploited steps from T/2 to T.")
    note = "; ".join(f"{one.label}: {one.early.mean():.3f}, {one.late.mean():.3f}" for one in played)
    return Section(
        claim=key,
        heading="A context that becomes ever rarer",
        pictures=(regret, errors),
        notes=(f"Mean share of wrong arms in exploited (1, 1), from T/16 to T/8 and from T/2 to T: {note}.",),
    )


def _ratio(one: Played, rng: np.random.Generator) -> Estimate | None:
    return doubling_ratio(one.steps, one.regret, rng)


def _stream(seed: int, *key: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(KEY, *key)))


EXPERIMENT: Final = Experiment("section7", "Section 7: a rare context, and one that becomes ever rarer", run)
