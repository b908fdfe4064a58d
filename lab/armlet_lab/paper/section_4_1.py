"""Section 4.1's orders of growth, one by one: sigma_min, the noise, delta_min, and the p that follows from them.

sigma_min has a formula, checked against the eigenvalues of E xx' summed over all contexts. delta_min is computed, not
sampled: a minimum over all 2^d contexts for every draw of theta. A quantity divided by its claimed order
must not fall by a constant factor with every dimension; a control that is polynomial in d shows that it need not.
O(environments 2^d K d) time for the largest d, a task for each; O(2^d (K + d)) memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from armlet import theory
from armlet.environments.environment import Constants, scale_bits, scaled_bits_eigenvalue
from armlet.environments.paper import Entries, Section41
from armlet.inference.intervals import bootstrap, power_slope
from armlet.inputs.settings import number, positive, whole
from armlet.parallel import Seeds
from armlet.reference.linear import smallest_eigenvalue
from armlet.report import plots
from armlet.report.numbers import show
from armlet.report.plots import Series
from armlet.simulation.lab import Arrays, Lab, Scale, as_floats
from armlet.types import Estimate, Float64
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
from armlet_lab.runner.formulas import drawn, two_digits

READINGS: Final[tuple[Entries, ...]] = ("independent", "together")
MEDIANS: Final = r"Median over draws of $\theta$ with 95 % intervals, and the claimed order."


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The d that are gone through, and what is drawn at each; `w` and `F` as in Section 4.1."""

    dims: tuple[int, ...]  # where every context is listed
    long_dims: tuple[int, ...] = (32, 64, 128, 256, 512, 1024)  # where formulas and draws suffice
    environments: int  # draws of theta for each d
    draws: int  # rewards for each d
    n_arms: int = 6
    w: float = 0.5
    group: float = 4.0  # mean number of ones where w = group / d
    F: float = 0.5


SCALES: Final[dict[Scale, Settings]] = {
    "quick": Settings(dims=tuple(range(3, 11)), environments=200, draws=1_000),
    "full": Settings(dims=tuple(range(3, 15)), environments=500, draws=1_000),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """A task: rewards in one dimension."""

    seeds: Seeds
    dim: int
    entries: Entries
    draws: int
    w: float
    F: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """A task: draws of theta in one dimension."""

    seeds: Seeds
    dim: int
    environments: int
    n_arms: int
    w: float


def sigma_min(*, dim: int, w: float) -> float:
    """Return the smallest non-zero eigenvalue of E xx', (1 - (1 - w)^d - w) / (d - 1).

    For w = 1 all contexts are the same one, and the only non-zero eigenvalue is 1.

    Examples
    --------
    >>> sigma_min(dim=3, w=0.5)
    0.1875
    """
    _check(dim, w)
    return scaled_bits_eigenvalue(dim=dim, w=w)


def sigma_max(*, dim: int, w: float) -> float:
    """Return the largest eigenvalue of E xx', which is w for any d.

    Examples
    --------
    >>> sigma_max(dim=3, w=0.5)
    0.5
    """
    _check(dim, w)
    return float(w)


def noise_bound(*, dim: int, F: float) -> float:
    """Return a sub-gaussian constant that holds however Theta fluctuates by at most F an entry: sigma = F sqrt d.

    |x'(Theta - theta)| <= F |x|_1 <= F sqrt d, and a variable of mean 0 within [-c, c] has constant c (Hoeffding).
    The paper's L is this divided by sqrt 2. If entries are independent and uniform, F / sqrt 3 is enough.

    Examples
    --------
    >>> noise_bound(dim=4, F=0.5)
    1.0
    """
    whole()("dim", dim)
    number(0)("F", F)
    return F * math.sqrt(dim)


def claimed_delta_min(*, n_arms: int, dim: int, w: float) -> float:
    """Return the order that the paper claims for delta_min, 1 / (K d sqrt w). The claim does not hold.

    Differences of opposite signs cancel across the entries of a context, and there are 2^d contexts in which they may:
    delta_min falls exponentially with d (`armlet-lab paper`, claim section41-delta-min).

    Examples
    --------
    >>> claimed_delta_min(n_arms=5, dim=4, w=0.25)
    0.1
    """
    whole()("n_arms", n_arms)
    _check(dim, w)
    return 1 / (n_arms * dim * math.sqrt(w))


def _check(dim: int, w: float) -> None:
    whole()("dim", dim)
    positive(1.0, fix="give the chance of a one, above 0 and at most 1")("w", w)


def run(lab: Lab) -> Findings:
    """Run the experiment at the lab's scale."""
    return find(SCALES[lab.scale], lab)


def find(settings: Settings, lab: Lab) -> Findings:
    """Compute every delta_min, draw rewards, and judge.

    Examples
    --------
    >>> tiny = Settings(dims=(3, 4, 5), long_dims=(32, 64, 128), environments=20, draws=50)
    >>> [verdict.claim.key.removeprefix("section41-") for verdict in find(tiny, Lab(seed=1)).verdicts]
    ['sigma-min', 'noise', 'delta-min', 'implied-p']
    """
    K, w, environments = settings.n_arms, settings.w, settings.environments
    tasks = [Losses(seeds=lab.seeds, dim=d, environments=environments, n_arms=K, w=w) for d in settings.dims]
    label = f"Section 4.1: delta_min of {environments} environments in up to {settings.dims[-1]} dimensions"
    found = lab.map("losses", smallest_losses, tasks, label)
    losses, entries = ([as_floats(arrays[name]) for arrays in found] for name in ("losses", "entries"))
    dims, n, F = settings.long_dims, settings.draws, settings.F
    noisy = [Noise(seeds=lab.seeds, dim=d, entries=each, draws=n, w=w, F=F) for d in dims for each in READINGS]
    noise = lab.map("noise", draw_noise, noisy, f"Section 4.1: {n} rewards in up to {dims[-1]} dimensions")
    return judge(settings, losses, entries, noise, lab.seeds)


def judge(
    settings: Settings, losses: list[Float64], entries: list[Float64], noise: Sequence[Arrays], seeds: Seeds
) -> Findings:
    """Judge the four claims."""
    return Findings.of(
        [
            _sigma_min(settings),
            _noise(settings, noise, seeds),
            _delta_min(settings, losses, entries, seeds.rng("delta_min intervals")),
            _implied_p(settings, losses, seeds.rng("p intervals")),
        ]
    )


def _sigma_min(settings: Settings) -> tuple[Verdict, Section]:
    w, dims = settings.w, settings.long_dims
    error = max(abs(smallest_eigenvalue(_second_moment(d, w)) / sigma_min(dim=d, w=w) - 1) for d in settings.dims)
    columns = {
        f"$w = {w:g}$": [sigma_min(dim=d, w=w) for d in dims],
        f"$w = {settings.group:g}/d$": [sigma_min(dim=d, w=settings.group / d) for d in dims],
    }
    slopes = {name: certain(float(np.polyfit(np.log(dims), np.log(found), 1)[0])) for name, found in columns.items()}
    series = [Series(drawn(name), dims, tuple(map(certain, found)), slopes[name]) for name, found in columns.items()]
    claim = Claim(
        key="section41-sigma-min",
        where="Section 4.1, first item",
        says=r"The smallest eigenvalue of $\mathbb{E} xx'$ falls no faster than $1/d$, also when contexts keep their "
        "mean size.",
        reading="A context of zeros stays zero. The slope on log-log scales is exact: no draws are involved.",
    )
    formula = Statistic(
        "largest relative error of the formula", certain(error), Criterion("below", 1e-10), Role.CONTROL
    )
    rules = [Statistic(f"exponent of $d$, {name}", slopes[name], Criterion("within", -1.05, -0.95)) for name in columns]
    figure = plots.power_law(series, xlabel="dimension d", ylabel="smallest eigenvalue")
    alt = "The smallest eigenvalue against the dimension, falling as 1/d"
    picture = plots.picture(figure, key=claim.key, alt=alt, caption="Exact values, and the lines that fit them.")
    return Verdict(claim=claim, statistics=(*rules, formula)), Section(
        claim=claim.key, heading="The smallest eigenvalue falls no faster than $1/d$", pictures=(picture,)
    )


def _noise(settings: Settings, found: Sequence[Arrays], seeds: Seeds) -> tuple[Verdict, Section]:
    dims, rules, series = settings.long_dims, [], []
    for index, entries in enumerate(READINGS):
        columns = [as_floats(arrays["noise"]) ** 2 for arrays in found[index :: len(READINGS)]]
        rng = seeds.rng("variance intervals", entries)
        slope = power_slope(dims, columns, rng, pairing="independent")
        rules.append(Statistic(f"exponent of $d$ in the variance, entries {entries}", slope, Criterion("below", 1.1)))
        spread = tuple(bootstrap(lambda column: column.mean(-1), column, rng=rng) for column in columns)
        series.append(Series(f"entries {entries}", dims, spread, slope))
    reach = max(float(as_floats(arrays["reach"])[0]) for arrays in found)
    claim = Claim(
        key="section41-noise",
        where="Section 4.1, second item",
        says=r"The noise $x'(\Theta - \theta)$ never exceeds a multiple of $\sqrt d$, and so $L = O(\sqrt d)$.",
        reading=r"Entries of $\Theta$ are uniform within $F$ of $\theta$, either independent of each other or moving "
        "together; variances are taken in the context of all ones, where the noise is widest. $L^2$ may grow as $d$ at "
        "most.",
    )
    bound = Statistic(
        r"largest $\lvert x'(\Theta - \theta)\rvert / (F \sqrt d)$", certain(reach), Criterion("below", 1 + 1e-9)
    )
    figure = plots.power_law(series, xlabel="dimension d", ylabel="noise variance")
    alt = "Variance of the noise against the dimension: flat if entries are independent, growing as d if together"
    said = "Variance in the context of all ones, with 95 % intervals."
    picture = plots.picture(figure, key=claim.key, alt=alt, caption=said)
    note = (
        "The sub-gaussian constant of a sum of uniforms is its standard deviation: it does not grow with $d$ if "
        r"entries are independent, so that $\sqrt d$ is then a large overestimate; if they move together, it grows as "
        r"$\sqrt d$."
    )
    return Verdict(claim=claim, statistics=(bound, *rules)), Section(
        claim=claim.key, heading=r"The noise is at most of order $\sqrt d$", pictures=(picture,), notes=(note,)
    )


def draw_noise(task: Noise) -> Arrays:
    """Return the noise in the context of ones, and the largest |noise| / (F sqrt d) in any context drawn."""
    rng, d = task.seeds.rng("rewards", task.entries, task.dim), task.dim
    environment = Section41.draw(rng, n_arms=1, dim=d, w=task.w, F=task.F, entries=task.entries)
    largest, noise = 0.0, np.empty(0)
    for X in (environment.contexts(rng, task.draws), np.full((task.draws, d), 1 / np.sqrt(d))):
        noise = (environment.rewards(rng, X) - environment.means(X))[:, 0]
        largest = max(largest, float(np.abs(noise).max()))
    return {"noise": noise, "reach": np.array([largest / (task.F * np.sqrt(d))])}


def smallest_losses(task: Losses) -> Arrays:
    """Return the delta_min of every environment, and the smallest difference between entries of two theta."""
    rng, X = task.seeds.rng("worlds", task.dim), scale_bits(_bits(task.dim)[1:])  # in the context of zeros all arms tie
    environments = [Section41.draw(rng, n_arms=task.n_arms, dim=task.dim, w=task.w) for _ in range(task.environments)]
    theta = np.array([environment.theta for environment in environments])  # (environments, K, d)
    losses = np.array([_smallest_lead(X @ each.T) for each in theta])
    return {"losses": losses, "entries": np.diff(np.sort(theta, axis=1), axis=1).min(axis=(1, 2))}


def _smallest_lead(means: Float64) -> float:
    best = np.partition(means, -2, axis=1)[:, -2:]
    return float((best[:, 1] - best[:, 0]).min())


def _delta_min(
    settings: Settings, losses: list[Float64], entries: list[Float64], rng: np.random.Generator
) -> tuple[Verdict, Section]:
    dims = np.array(settings.dims, dtype=np.float64)
    # delta_min divided by this is claimed to stay away from 0
    order = [claimed_delta_min(n_arms=settings.n_arms, dim=d, w=settings.w) for d in settings.dims]
    bits = _bits_per_dimension(dims, losses, rng)
    scaled = _bits_per_dimension(dims, [loss / by for loss, by in zip(losses, order, strict=True)], rng)
    control = _bits_per_dimension(dims, [gap * by for gap, by in zip(entries, dims**1.5, strict=True)], rng)
    claim = Claim(
        key="section41-delta-min",
        where="Section 4.1, third item",
        says=r"The smallest loss of a wrong arm is at least of order $1/(K d \sqrt w)$, with high probability.",
        reading=rf"$K = {settings.n_arms}$, the minimum is over all $2^d$ contexts, the median over draws of $\theta$. "
        r"Multiplied by $K d \sqrt w$ it must not lose a quarter of a bit or more with every dimension.",
    )
    rules = (
        Statistic(r"bits per dimension, $\delta_{\min} K d \sqrt w$", scaled, Criterion("above", -0.25)),
        Statistic(
            "bits per dimension, smallest entry gap times $d^{1.5}$", control, Criterion("above", -0.25), Role.CONTROL
        ),
    )
    why = {
        Outcome.FAILS: "Differences of different signs cancel across the entries of a context, and there are $2^d$ "
        "contexts in which they may: the minimum over that many falls exponentially. That two arms differ in every "
        "entry bounds no sum of such differences.",
        Outcome.HOLDS: "In these dimensions the smallest loss falls no faster than claimed.",
    }
    middle = tuple(_median(loss, rng) for loss in losses)
    claimed = Series(drawn(r"$1/(K d \sqrt w)$"), settings.dims, tuple(map(certain, order)))
    series = [Series("median", settings.dims, middle), claimed]
    figure = plots.power_law(series, xlabel="dimension d", ylabel="smallest loss")
    alt = "Median of the smallest loss against the dimension, falling far faster than the claimed order"
    picture = plots.picture(figure, key=claim.key, alt=alt, caption=MEDIANS)
    note = rf"Without any factor, the median of $\delta_{{\min}}$ changes by {show(bits)} bits with every dimension."
    return Verdict(claim=claim, statistics=rules, explanations=why), Section(
        claim=claim.key,
        heading=r"The smallest loss of a wrong arm is of order $1/(K d \sqrt w)$",
        pictures=(picture,),
        notes=(note,),
    )


def _implied_p(settings: Settings, losses: list[Float64], rng: np.random.Generator) -> tuple[Verdict, Section]:
    dims = np.array(settings.dims, dtype=np.float64)
    needed = [_printed_p(settings, d, loss) for d, loss in zip(settings.dims, losses, strict=True)]
    order = settings.n_arms**3 * dims**5
    bits = _bits_per_dimension(dims, needed, rng)
    scaled = _bits_per_dimension(dims, [p / by for p, by in zip(needed, order, strict=True)], rng)
    claim = Claim(
        key="section41-implied-p",
        where="Section 4.1, last paragraph",
        says="In this example the exploration that the theorem asks for is $O(K^3 d^5)$.",
        reading=rf"$K = {settings.n_arms}$; $p$ from the printed condition with $C = 1$, the exact $\sigma_{{\min}}$ "
        r"and $L$, entries moving together, and the measured $\delta_{\min}$. Divided by $K^3 d^5$ it must not gain a "
        "quarter of a bit or more with every dimension.",
    )
    rules = (Statistic("bits per dimension, $p / (K^3 d^5)$", scaled, Criterion("below", 0.25)),)
    why = {
        Outcome.FAILS: r"$p$ contains $1/\delta_{\min}^2$, and $\delta_{\min}$ falls exponentially with $d$; "
        r"$\sigma_{\min}$ and $L$ do grow as claimed.",
        Outcome.HOLDS: "In these dimensions $p$ grows no faster than claimed.",
    }
    middle = tuple(_median(p, rng) for p in needed)
    series = [
        Series("median p", settings.dims, middle),
        Series(drawn("$K^3 d^5$"), settings.dims, tuple(map(certain, order))),
    ]
    figure = plots.power_law(series, xlabel="dimension d", ylabel="p with C = 1")
    alt = "The p that the theorem asks for against the dimension, overtaking the claimed order"
    picture = plots.picture(figure, key=claim.key, alt=alt, caption=MEDIANS)
    note = (
        f"Without any factor, the median of $p$ grows by {show(bits)} bits with every dimension; at "
        f"$d = {settings.dims[-1]}$ it is {two_digits(middle[-1].value)}. $C$ is not known, so compare the shapes, "
        "not the heights."
    )
    return Verdict(claim=claim, statistics=rules, explanations=why), Section(
        claim=claim.key, heading="The exploration that follows is $O(K^3 d^5)$", pictures=(picture,), notes=(note,)
    )


def _printed_p(settings: Settings, d: int, losses: Float64) -> Float64:
    """Return the condition of Theorem 2 with C = 1 for each delta_min: (environments,)."""
    known = {"sigma_min": sigma_min(dim=d, w=settings.w), "sigma": settings.F * math.sqrt(d / 3)}  # entries together
    unused = {"delta_max": math.nan, "Q": math.nan}  # not in the condition; if they were, nan would tell
    each = (Constants(delta_min=loss, **known, **unused) for loss in losses.tolist())
    return np.array([theory.theorem_p(constants, n_arms=settings.n_arms, C=1) for constants in each])


def _bits_per_dimension(dims: Float64, columns: list[Float64], rng: np.random.Generator) -> Estimate | None:
    return power_slope(2.0**dims, columns, rng, pairing="independent", average="median")


def _bits(d: int) -> Float64:
    """Every row of d zeros and ones, (2^d, d), zero first."""
    rows: Float64 = ((np.arange(2**d)[:, None] >> np.arange(d)) & 1).astype(np.float64)
    return rows


def _second_moment(d: int, w: float) -> Float64:
    bits = _bits(d)
    X, chances = scale_bits(bits), np.where(bits == 1, w, 1 - w).prod(axis=1)
    moment: Float64 = (X.T * chances) @ X
    return moment


def _median(column: Float64, rng: np.random.Generator) -> Estimate:
    return bootstrap(lambda values: np.median(values, axis=-1), column, rng=rng)


EXPERIMENT: Final = Experiment("section-4-1", "Section 4.1: how the constants grow with d", run)
