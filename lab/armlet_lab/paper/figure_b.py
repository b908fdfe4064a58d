"""Figure (b), Section 6: regret against I, when one of two contexts comes with probability 1/I.

Every I meets the same theta and the same seeds, so differences between them are paired; a theta counts once, with
the mean of its runs. The paper does not state p. It is held fixed, at several values, or grows with I, as the p of
Theorem 2 does because sigma_min is about 1/I. Both are published. Criteria and values of p were set on pilot runs
with other seeds. The caption calls the contexts not i.i.d.; they are i.i.d., only skewed.
O(p log T) for a run: simulated in jumps from one exploration to the next.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from armlet.environments.paper import FigureB
from armlet.inference.intervals import bootstrap, paired_difference, power_slope
from armlet.parallel import Seeds
from armlet.policies import Algorithm1
from armlet.report import plots
from armlet.report.numbers import show
from armlet.simulation.lab import Arrays, Lab, Scale, as_floats
from armlet.simulation.play import play_table, table_seeds
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
)
from armlet_lab.runner.formulas import drawn

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N_ARMS: Final = 6
RARITIES: Final = (5, 10, 100)  # I in the figure
GROWS: Final = Criterion("above", 0)
PROPORTIONAL: Final = Criterion("contains", 1)
FOUND: Final = Criterion("within", 0.95, 1.05)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The same problems at every I: with each p of `fixed`, and with p = `growing` I."""

    horizon: int = 100_000
    fixed: tuple[float, ...] = (24, 60, 120, 600)  # the same p for every I
    growing: float = 20  # p / I in our reading
    thetas: int = 40
    runs: int = 10  # with each theta; the paper's number


SCALES: Final[dict[Scale, Settings]] = {"quick": Settings(), "full": Settings(thetas=200)}

HEADING: Final = "Figure (b): regret grows in proportion to the rarity of a context"
CLAIM: Final = Claim(
    key="fig-b",
    where="Section 6, Figure (b)",
    says="When one of two contexts becomes rarer, regret grows in proportion to $I$, one over its probability.",
    reading=(
        "As written: all else unchanged, so $p$ is the same for $I = 5$, 10 and 100. Our reading: $p = 20 I$, because "
        "the $p$ that Theorem 2 asks for grows with $I$. Either way regret must grow from each $I$ to the next, over "
        "many instances, and the exponent of $I$ that fits best must be 1. Control: the first $p$ steps only explore; "
        "with $p = 20 I$, their regret in units of the mean gap is proportional to $I$, and must be found so."
    ),
)
WHY: Final = {
    Outcome.HOLDS: "Mistakes in the rare context cost more than its rarity saves.",
    Outcome.UNDER_READING: "With the same $p$ a rare context costs little because it is rare; only exploring costs "
    "more.",
    Outcome.FAILS: (
        "With the same $p$, exploring costs about the same for every $I$, and the rarer a context, the less often a "
        r"mistake in it is paid for. With $p = 20 I$, a run explores about $p (1 + \log(T / p))$ times, which grows "
        "more slowly than $p$, and what is explored more is mistaken less."
    ),
    Outcome.UNSETTLED: "Some interval leaves it open whether regret grows: more instances are needed.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """All theta at one I and one p."""

    seeds: Seeds
    rarity: int
    p: float
    horizon: int
    thetas: int
    runs: int


@dataclass(frozen=True, slots=True)
class Column:
    """Regret at T of every theta at one I, means over runs, each (thetas,)."""

    total: Float64
    exploiting: Float64  # the part paid on steps that did not explore
    warmup: Float64  # regret of the first p steps, in units of the mean gap


Columns: TypeAlias = Mapping[int, Column]  # by I


def run(lab: Lab) -> Findings:
    """Run the experiment at the lab's scale."""
    return find(SCALES[lab.scale], lab)


def find(settings: Settings, lab: Lab) -> Findings:
    """Play, measure and judge.

    Examples
    --------
    >>> tiny = Settings(thetas=4, runs=2, fixed=(60,))
    >>> [verdict.claim.key for verdict in find(tiny, Lab(seed=1)).verdicts]
    ['fig-b']
    """
    rules = {f"$p = {p:g}$": dict.fromkeys(RARITIES, p) for p in settings.fixed}
    rules[_growing(settings)] = {rarity: max(settings.growing * rarity, N_ARMS) for rarity in RARITIES}
    return judge(settings, _columns(rules, settings, lab), lab.seeds)


def _growing(settings: Settings) -> str:
    return f"$p = {settings.growing:g} I$"


def judge(settings: Settings, found: Mapping[str, Columns], seeds: Seeds) -> Findings:
    """Judge the claim by every rule for p."""
    rule = _growing(settings)
    written = [each for name in found if name != rule for each in _rises(name, found[name], Role.WRITTEN, seeds)]
    warmup = power_slope(RARITIES, [found[rule][rarity].warmup for rarity in RARITIES], _resampling(seeds))
    control = Statistic(f"exponent of $I$, first $p$ steps, {rule}", warmup, FOUND, Role.CONTROL)
    statistics = (*written, *_rises(rule, found[rule], Role.READING, seeds), control)
    verdict = Verdict(claim=CLAIM, statistics=statistics, explanations=WHY)
    notes = (*_general(settings), *(_exploiting(name, columns, seeds) for name, columns in found.items()))
    section = Section(claim=CLAIM.key, heading=HEADING, pictures=_pictures(found, seeds), notes=notes)
    return Findings((verdict,), (section,))


def _columns(rules: Mapping[str, Mapping[int, float]], settings: Settings, lab: Lab) -> dict[str, Columns]:
    seeds, T, n, runs = lab.seeds, settings.horizon, settings.thetas, settings.runs
    cases = list(dict.fromkeys((i, p) for chosen in rules.values() for i, p in chosen.items()))
    tasks = [Task(seeds=seeds, rarity=i, p=p, horizon=T, thetas=n, runs=runs) for i, p in cases]
    label = f"Figure (b): {settings.thetas} instances for each I and p"
    found = dict(zip(cases, (_column(each) for each in lab.map("play", play, tasks, label)), strict=True))
    return {name: {i: found[i, p] for i, p in chosen.items()} for name, chosen in rules.items()}


def _column(arrays: Arrays) -> Column:
    return Column(*(as_floats(arrays[name]) for name in ("total", "exploiting", "warmup")))


def play(task: Task) -> Arrays:
    """Play all theta at one I and one p; theta and seeds are the same for all of them."""
    steps, policy, rows = np.array([math.ceil(task.p), task.horizon]), Algorithm1(p=task.p), []
    for index in range(task.thetas):
        table = FigureB.draw(task.seeds.rng("worlds", index), I=task.rarity, n_arms=N_ARMS).table()
        pairs = [table_seeds(task.seeds, index, run) for run in range(task.runs)]
        runs = [play_table(table, policy, steps, pair, jumps=True) for pair in pairs]
        warmup, total = np.mean([run.regret for run in runs], axis=0)
        _, exploring = np.mean([run.exploring for run in runs], axis=0)
        rows.append((total, total - exploring, warmup / table.gap))
    return dict(zip(("total", "exploiting", "warmup"), np.array(rows).T.copy(), strict=True))


def _resampling(seeds: Seeds) -> np.random.Generator:
    return seeds.rng("intervals")


def _rises(name: str, columns: Columns, role: Role, seeds: Seeds) -> list[Statistic]:
    pairs = zip(RARITIES[1:], RARITIES[:-1], strict=True)
    rises = [
        Statistic(
            f"$R(I = {more}) - R(I = {less})$, {name}",
            paired_difference(columns[more].total, columns[less].total, _resampling(seeds)),
            GROWS,
            role,
        )
        for more, less in pairs
    ]
    exponent = power_slope(RARITIES, [columns[rarity].total for rarity in RARITIES], _resampling(seeds))
    return [*rises, Statistic(f"exponent of $I$, {name}", exponent, PROPORTIONAL, role)]


def _general(settings: Settings) -> Iterable[str]:
    explored = [
        p * (1 + math.log(settings.horizon / p))
        for p in (settings.growing * RARITIES[0], settings.growing * RARITIES[-1])
    ]
    exponent = math.log(explored[1] / explored[0]) / math.log(RARITIES[-1] / RARITIES[0])
    yield (
        "The caption says that the contexts of this figure are not i.i.d. That is wrong: each is drawn from one "
        "distribution, independently of the others. It is only skewed."
    )
    yield "Criteria and values of $p$ were set before these runs, on pilot runs with other seeds."
    yield (
        rf"If exploring were all that costs, $p (1 + \log(T / p))$ steps of it, {_growing(settings)} would give an "
        f"exponent of {exponent:.2f} from $I = {RARITIES[0]}$ to {RARITIES[-1]}: short of 1 at this horizon."
    )


def _exploiting(name: str, columns: Columns, seeds: Seeds) -> str:
    paid = [f"{show(each)} at $I = {rarity}$" for rarity, each in _means(columns, "exploiting", seeds).items()]
    exponent = power_slope(RARITIES, [columns[rarity].exploiting for rarity in RARITIES], _resampling(seeds))
    return f"Paid while exploiting, {name}: {'; '.join(paid)}; exponent of $I$: {show(exponent)}."


def _means(columns: Columns, part: str, seeds: Seeds) -> dict[int, Estimate]:
    values = {rarity: getattr(column, part) for rarity, column in columns.items()}
    return {
        rarity: bootstrap(lambda c: c.mean(axis=-1), each, rng=_resampling(seeds)) for rarity, each in values.items()
    }


def _pictures(found: Mapping[str, Columns], seeds: Seeds) -> tuple[plots.Picture, ...]:
    texts = {
        "total": "Regret at $T$ against $I$, for each rule for $p$: means, 95 % intervals, fitted exponents.",
        "exploiting": "The part of it that was paid while exploiting.",
    }
    return tuple(
        plots.picture(
            _draw(found, part, seeds),
            key=f"fig-b-{part}",
            alt=f"Regret ({part}) against I on log scales",
            caption=text,
        )
        for part, text in texts.items()
    )


def _draw(found: Mapping[str, Columns], part: str, seeds: Seeds) -> Figure:
    series: Sequence[plots.Series] = [
        plots.Series(drawn(name), RARITIES, tuple(_means(columns, part, seeds).values()), _fit(columns, part, seeds))
        for name, columns in found.items()
        if all(getattr(column, part).mean() > 0 for column in columns.values())  # log scales show no zero
    ]
    return plots.power_law(series, xlabel="I", ylabel="regret")


def _fit(columns: Columns, part: str, seeds: Seeds) -> Estimate | None:
    return power_slope(RARITIES, [getattr(columns[rarity], part) for rarity in RARITIES], _resampling(seeds))


EXPERIMENT: Final = Experiment("fig-b", "Figure (b): regret against I", run)
