"""Figure (a), Section 6: logarithmic regret, at the horizon of the figure and far beyond.

The paper states neither p nor how theta was picked, so both are varied. Two sets of theta, by rules set before
any of these runs: the first draws without any condition, and the first draws with delta_min / Q >= 0.03. Bounds of
the criteria, the p of our reading and that of the long runs were set on pilot runs with other seeds.
The same seeds serve every p. O(p log T) for a run: simulated in jumps from one exploration to the next.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

import numpy as np

from armlet.environments.environment import FiniteEnvironment
from armlet.environments.paper import FigureA, Zero
from armlet.inference.intervals import band, doubling_ratio, log_slope
from armlet.inputs.settings import RidgeLike
from armlet.parallel import Seeds
from armlet.policies import Algorithm1 as Policy
from armlet.report import plots
from armlet.report.numbers import percent, show
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
)
from armlet_lab.runner.formulas import drawn

WEAK_P: Final = 24.0  # too little exploration: here the check must fail
READING_P: Final = 600.0
EASY: Final = 0.03  # smallest delta_min / Q of a selected theta
RATIO: Final = Criterion("within", 0.8, 1.3)
SLOPE: Final = Criterion("within", 0.95, 1.35)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How much to run. `p` holds 24 and 600, and 10 p leaves at least a doubling before the horizon."""

    horizon: int = 100_000
    p: tuple[float, ...] = (WEAK_P, 120.0, 300.0, READING_P, 1200.0)
    thetas: int = 5  # of each set
    runs: int = 40
    long_horizon: int = 10**12
    long_p: float = 6000.0
    long_runs: int = 40  # at p = 24 and 600
    long_p_runs: int = 10  # at long_p, where a run explores more often


SCALES: Final[dict[Scale, Settings]] = {
    "quick": Settings(),
    "full": Settings(thetas=10, runs=200, long_runs=200, long_p_runs=40),
}

HEADING: Final = "Figure (a): regret is logarithmic over 100,000 steps"
LONG_HEADING: Final = "Figure (a): regret stays logarithmic up to $10^{12}$ steps"
SAYS: Final = "Regret is logarithmic: over 100,000 steps, on a log scale of $t$, its curve ends in a straight line."
READING: Final = (
    r"As written, with no condition on $\theta$ and no $p$: the first instances, each a draw of $\theta$, at the $p$ "
    r"with least regret. Our reading: $p = 600$, and the first instances whose smallest gap is at least 3 % of the "
    r"longest $\theta$. In both, a straight line means that the doubling ratio is near 1 and the slope near $p$ times "
    "the mean gap, the price of exploring. Control: at $p = 24$, on the mean over instances, both must be found wrong."
)
CLAIM: Final = Claim(key="fig-a", where="Section 6, Figure (a)", says=SAYS, reading=READING)
WHY: Final = {
    Outcome.HOLDS: "Where regret is least, it is already little more than the price of exploring.",
    Outcome.UNDER_READING: (
        r"The $p$ with least regret at $T$ explores so little that mistakes while exploiting still matter, and they "
        r"grow faster than $\log t$. With more exploration than is best at this horizon, the line is straight."
    ),
    Outcome.FAILS: r"Mistakes while exploiting still grow faster than $\log t$ at the horizon of the figure.",
    Outcome.UNSETTLED: "Some interval crosses a bound: more runs are needed.",
}
CONCLUSIONS: Final = {
    Outcome.HOLDS: r"regret in Figure (a) grows as $\log t$",
    Outcome.UNDER_READING: r"regret in Figure (a) grows as $\log t$ only with more exploration than is best there",
    Outcome.FAILS: r"regret in Figure (a) still grows faster than $\log t$ after 100,000 steps",
    Outcome.UNSETTLED: r"these runs leave open whether regret in Figure (a) grows as $\log t$",
}
LONG: Final = Claim(
    key="fig-a-decades",
    where="Section 6, Figure (a), and Theorem 2",
    says=r"The growth is of order $\log T$ regardless of $T$: the straight line of the figure does not bend later.",
    reading=(
        "The same checks at $T = 10^{12}$, for the instances selected for Figure (a). As written: $p = 600$, our $p$ "
        "for that figure. Our reading: $p = 6,000$, closer to what Theorem 2 asks for. Control as for Figure (a)."
    ),
)
WHY_LONG: Final = {
    Outcome.HOLDS: "Explorations at $p = 600$ outpace the errors of every instance in the set.",
    Outcome.UNDER_READING: (
        "The chance of a mistake falls as a power of $t$, with an exponent that grows with $p$ and the squared gap. "
        "Where it is below 1, mistakes add up to more than a logarithm, but too late to be seen in 100,000 steps: the "
        "straight end of the figure does not tell what follows."
    ),
    Outcome.FAILS: "Even ten times the exploration leaves mistakes that add up to more than a logarithm.",
    Outcome.UNSETTLED: "Some interval crosses a bound, as it does when a few runs hold most of the regret.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """All runs of Algorithm 1 with one theta."""

    seeds: Seeds
    theta: int  # which draw
    p: float
    horizon: int
    runs: int
    ridge: RidgeLike = "paper"
    zero: Zero = "keep"


@dataclass(frozen=True, slots=True)
class Growth:
    """How regret grew in one environment at one p."""

    steps: Int64  # (checkpoints,)
    regret: Float64  # (runs, checkpoints)
    exploring: Float64  # (runs, checkpoints): the part of it paid on explored steps
    unit: float  # p times the mean gap
    ratio: Estimate | None
    slope: Estimate

    def straight(self) -> bool:
        """Return whether both criteria are met."""
        return Statistic("", self.ratio, RATIO).passed and Statistic("", self.slope, SLOPE).passed


Grid: TypeAlias = Mapping[int, Mapping[float, Growth]]  # by theta, then by p


def play(task: Task) -> Arrays:
    """Play a task; seeds depend on the theta and the run, not on the policy."""
    table = cast(
        FiniteEnvironment, _draw(task.seeds, task.theta, task.zero).table()
    )  # with 3 dimensions there always is one
    policy = Policy(p=task.p, ridge=task.ridge)
    pairs, steps = (
        [table_seeds(task.seeds, task.theta, run) for run in range(task.runs)],
        _checkpoints(task.horizon),
    )
    runs = [play_table(table, policy, steps, pair, jumps=True) for pair in pairs]
    return {"regret": np.array([run.regret for run in runs]), "exploring": np.array([run.exploring for run in runs])}


def select(seeds: Seeds, count: int) -> list[int]:
    """Return the first indices whose theta has delta_min / Q >= 0.03."""
    return list(itertools.islice((i for i in itertools.count() if _ease(_draw(seeds, i)) >= EASY), count))


def run(lab: Lab) -> Findings:
    """Run the experiment at the lab's scale."""
    return find(SCALES[lab.scale], lab)


def find(settings: Settings, lab: Lab) -> Findings:
    """Play, measure and judge.

    Examples
    --------
    >>> tiny = Settings(thetas=1, runs=4, long_runs=4, long_p_runs=2, long_p=1200)
    >>> [verdict.claim.key for verdict in find(tiny, Lab(seed=1)).verdicts]
    ['fig-a', 'fig-a-decades']
    """
    seeds, T, far = lab.seeds, settings.horizon, settings.long_horizon
    chosen, first = select(seeds, settings.thetas), list(range(settings.thetas))
    both = sorted({*chosen, *first})
    tasks = [Task(seeds=seeds, theta=i, p=p, horizon=T, runs=settings.runs) for i in both for p in settings.p]
    found = _grid(lab, "play", tasks, f"Figure (a): {len(both)} instances, {len(settings.p)} values of p")
    runs = {WEAK_P: settings.long_runs, READING_P: settings.long_runs, settings.long_p: settings.long_p_runs}
    tasks = [Task(seeds=seeds, theta=i, p=p, horizon=far, runs=n) for i in chosen for p, n in runs.items()]
    long = _grid(lab, "decades", tasks, f"Figure (a): {len(chosen)} instances to T = {far:,}")
    variants = _variants(chosen, settings, lab)
    return judge(settings, seeds, found=found, long=long, chosen=chosen, first=first, variants=variants)


def judge(
    settings: Settings,
    seeds: Seeds,
    *,
    found: Grid,
    long: Grid,
    chosen: Sequence[int],
    first: Sequence[int],
    variants: Sequence[str],
) -> Findings:
    """Judge both claims, for the theta that were selected and for the first ones."""
    notes = (*_notes(found, chosen, first, seeds), *variants)
    near = Section(claim=CLAIM.key, heading=HEADING, pictures=_pictures(found, chosen, seeds), notes=notes)
    far = Section(claim=LONG.key, heading=LONG_HEADING, pictures=_long_pictures(long, seeds))
    return Findings.of(
        [(_judge_near(found, chosen, first, seeds), near), (_judge_long(long, settings.long_p, seeds), far)]
    )


def _draw(seeds: Seeds, index: int, zero: Zero = "keep") -> FigureA:
    return FigureA.draw(seeds.rng("worlds", index), zero=zero)


def _ease(environment: FigureA) -> float:
    constants = environment.constants()
    return constants.delta_min / constants.Q


def _checkpoints(horizon: int) -> Int64:
    spaced = np.geomspace(1, horizon, 12 * round(np.log10(horizon))).round().astype(np.int64)
    ends = [10**k // part for k in range(3, round(np.log10(horizon)) + 1) for part in (4, 2, 1)]
    return np.union1d(spaced, [*ends, horizon // 4, horizon // 2])


def _grid(lab: Lab, stage: str, tasks: Sequence[Task], label: str) -> Grid:
    grid: dict[int, dict[float, Growth]] = {}
    for task, arrays in zip(tasks, lab.map(stage, play, tasks, label), strict=True):
        grid.setdefault(task.theta, {})[task.p] = _measure(task, arrays)
    return grid


def _measure(task: Task, arrays: Arrays) -> Growth:
    regret, steps, rng = as_floats(arrays["regret"]), _checkpoints(task.horizon), _resampling(task.seeds)
    unit = task.p * cast(FiniteEnvironment, _draw(task.seeds, task.theta, task.zero).table()).gap
    ratio = doubling_ratio(steps, regret, rng)
    slope = log_slope(steps, regret, rng, start=10 * task.p, unit=unit)
    return Growth(steps, regret, as_floats(arrays["exploring"]), unit, ratio, slope)


def _resampling(seeds: Seeds) -> np.random.Generator:
    return seeds.rng("intervals")


def _instance(index: int, found: Iterable[int]) -> str:
    """Name a draw of theta among those that were looked at: the last that was selected is the last of them."""
    return f"instance {index + 1} of {max(found) + 1}"


def _both(found: Grid, index: int, p: float, role: Role) -> list[Statistic]:
    growth, label = found[index][p], f"$p = {p:,.0f}$, {_instance(index, found)}"
    return [
        Statistic(f"doubling ratio, {label}", growth.ratio, RATIO, role),
        Statistic(f"slope / ($p$ gap), {label}", growth.slope, SLOPE, role),
    ]


def _controls(found: Grid, indices: Iterable[int], seeds: Seeds) -> list[Statistic]:
    """Run both checks where they must fail, on the mean over instances: one may be easy enough even for p = 24."""
    grown, rng, label = (
        [found[i][WEAK_P] for i in indices],
        _resampling(seeds),
        f"$p = {WEAK_P:g}$, mean over instances",
    )
    steps, pooled = grown[0].steps, np.mean([each.regret / each.unit for each in grown], axis=0)
    ratio, slope = doubling_ratio(steps, pooled, rng), log_slope(steps, pooled, rng, start=10 * WEAK_P)
    no_ratio, no_slope = (Criterion("outside", each.low, each.high) for each in (RATIO, SLOPE))
    return [
        Statistic(f"doubling ratio, {label}", ratio, no_ratio, Role.CONTROL),
        Statistic(f"slope / ($p$ gap), {label}", slope, no_slope, Role.CONTROL),
    ]


def _judge_near(found: Grid, chosen: Sequence[int], first: Sequence[int], seeds: Seeds) -> Verdict:
    means = {i: [(float(each.regret[:, -1].mean()), p) for p, each in found[i].items()] for i in first}
    written = [(i, min(means[i])[1], Role.WRITTEN) for i in first]  # the p with least regret
    reading = [(i, READING_P, Role.READING) for i in chosen]
    statistics = [each for i, p, role in (*written, *reading) for each in _both(found, i, p, role)]
    return Verdict(
        claim=CLAIM,
        statistics=(*statistics, *_controls(found, chosen, seeds)),
        explanations=WHY,
        conclusions=CONCLUSIONS,
    )


def _judge_long(long: Grid, large: float, seeds: Seeds) -> Verdict:
    cases = [(i, p, role) for p, role in ((READING_P, Role.WRITTEN), (large, Role.READING)) for i in long]
    statistics = [each for case in cases for each in _both(long, *case)]
    return Verdict(claim=LONG, statistics=(*statistics, *_controls(long, long, seeds)), explanations=WHY_LONG)


def _notes(found: Grid, chosen: Sequence[int], first: Sequence[int], seeds: Seeds) -> list[str]:
    read = [found[i][READING_P] for i in chosen]
    shares = [each.exploring[:, -1].sum() / each.regret[:, -1].sum() for each in read]
    weak = "; ".join(show(found[i][WEAK_P].slope) for i in chosen)
    environments = "; ".join(f"{i + 1}: {_ease(_draw(seeds, i)):.4f}" for i in found)
    selected = ", ".join(str(i + 1) for i in chosen)
    straight = sum(found[i][READING_P].straight() for i in first)
    return [
        rf"$\delta_{{\min}} / Q$ of each instance, numbered by draw: {environments}. Selected: {selected}.",
        "Bounds, $p$ and the rules for instances were set before these runs, on pilot runs with other seeds.",
        f"At $p = 600$, {straight} of the {len(first)} first instances, selected or not, meet both criteria.",
        f"Slopes at $p = 24$, instance by instance: {weak}. The control was first asked of each of them. It was "
        "changed to their mean after a run with another seed: an easy instance is close to a line even there.",
        f"At $p = 600$, {percent(min(shares))} to {percent(max(shares))} of the regret at $T$ was paid exploring.",
    ]


def _variants(chosen: Sequence[int], settings: Settings, lab: Lab) -> list[str]:
    # our reading once more, with the two choices that the text leaves open
    T, n = settings.horizon, settings.runs
    again = [Task(seeds=lab.seeds, theta=i, p=READING_P, horizon=T, runs=n, zero="resample") for i in chosen]
    mild = [Task(seeds=lab.seeds, theta=i, p=READING_P, horizon=T, runs=n, ridge="1/n") for i in chosen]
    found = lab.map("variants", play, [*again, *mild], "Figure (a): two other readings")
    grown = [_measure(task, arrays) for task, arrays in zip([*again, *mild], found, strict=True)]
    return [
        _variant("zero contexts drawn again", grown[: len(chosen)]),
        _variant("a ridge of $1/n$", grown[len(chosen) :]),
    ]


def _variant(name: str, grown: Sequence[Growth]) -> str:
    ratios, straight = "; ".join(show(each.ratio) for each in grown), sum(each.straight() for each in grown)
    return f"With {name}, {straight} of {len(grown)} instances meet both criteria; ratios: {ratios}."


def _pictures(found: Grid, chosen: Sequence[int], seeds: Seeds) -> tuple[plots.Picture, ...]:
    one, shown = chosen[0], chosen[:5]
    regret = plots.regret([_curve(f"p = {p:g}", each, seeds) for p, each in found[one].items()])
    said = f"Regret on {_instance(one, found)}, the first that was selected: means and 95 % bands over runs."
    ratios = {i: {p: each.ratio for p, each in found[i].items() if each.ratio} for i in shown}
    series = [plots.Series(_instance(i, found), tuple(by_p), tuple(by_p.values())) for i, by_p in ratios.items()]
    points = plots.power_law(series, xlabel="p", ylabel="doubling ratio")
    scale = r"Doubling ratio at the horizon: 1 if regret grows as $\log t$, 1.41 as $\sqrt t$, 2 as $t$."
    return (
        plots.picture(regret, key="fig-a-regret", alt="Regret against log t for several p", caption=said),
        plots.picture(points, key="fig-a-ratio", alt="Doubling ratio against p for several instances", caption=scale),
    )


def _long_pictures(long: Grid, seeds: Seeds) -> tuple[plots.Picture, ...]:
    hardest = min(long, key=lambda i: _ease(_draw(seeds, i)))
    one, grown = long[hardest][READING_P], {i: long[i][READING_P] for i in long}
    curves = [_curve(_instance(i, long), each, seeds, each.unit) for i, each in grown.items()]
    # a logarithm ends near log T; the others may leave the frame
    figure = plots.regret(curves[:5], ylabel="R(t) / (p gap)", top=2.5 * float(np.log(one.steps[-1] / READING_P)))
    said = "Regret at $p = 600$ in units of $p$ times the mean gap: the price of exploring alone is a line of slope 1."
    powers = range(4, round(np.log10(one.steps[-1])) + 1)
    cuts = [np.searchsorted(one.steps, 10**k) + 1 for k in powers]
    ratios = [doubling_ratio(one.steps[:cut], one.regret[:, :cut], _resampling(seeds)) for cut in cuts]
    labels = [drawn(f"$t = 10^{{{k}}}$") for k in powers]
    decades = plots.bars(labels, ratios, xlabel="local doubling ratio", marks={"log t": 1.0, "t": 2.0})
    hard = f"Doubling ratio at the end of every decade, $p = 600$, {_instance(hardest, long)}: the hardest selected."
    return (
        plots.picture(figure, key="fig-a-long", alt="Regret up to 10^12 steps for several instances", caption=said),
        plots.picture(decades, key="fig-a-decades", alt="Doubling ratio at the end of every decade", caption=hard),
    )


def _curve(label: str, each: Growth, seeds: Seeds, unit: float = 1.0) -> plots.Curve:
    return plots.Curve(label, each.steps.astype(np.float64), band(each.regret / unit, _resampling(seeds)))


EXPERIMENT: Final = Experiment("fig-a", "Figure (a): logarithmic regret", run)
