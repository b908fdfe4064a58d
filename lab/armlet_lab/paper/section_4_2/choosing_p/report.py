"""What follows from trials of AutoEpsilonGreedy and of the running minimum: a verdict on Section 4.2, tables and figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from armlet.inference.intervals import Estimate, band, bootstrap
from armlet.report import plots
from armlet.report.tables import Table
from armlet.types import Float64
from armlet_lab.runner.experiment import Findings
from armlet_lab.runner.hindsight import ratio_of_means
from armlet_lab.runner.page import Section
from armlet_lab.runner.verdicts import Claim, Criterion, Outcome, Role, Statistic, Verdict

BOUND: Final = 1.5
WHY: Final = {
    Outcome.HOLDS: "Estimates gathered on the way choose a p that is nearly as good as the best one.",
    Outcome.UNDER_READING: (
        "Read to the letter it fails: the smallest difference ever seen is that of the noisiest moment, p follows its "
        "inverse square, and every step explores for good. The same three estimates do find p when they enter a "
        "forecast of regret up to a horizon, and the gaps are those of the current estimates."
    ),
    Outcome.FAILS: "Neither the letter nor our reading comes near the best p.",
    Outcome.UNSETTLED: "Some interval crosses the bound: more problems are needed.",
}


@dataclass(frozen=True, slots=True)
class Family:
    """Mean regret on each problem of a family, in units of what random play loses on it."""

    name: str
    horizon: int
    best: Float64  # (problems,): with the best fixed p of each problem, chosen in hindsight
    auto: Float64  # (problems,)
    longer: Float64  # the same, told that the horizon is ten times as long
    shorter: Float64  # or a tenth
    untold: Float64  # or nothing of it
    p: Float64  # (problems,): where "auto" ended

    def ratio(self, rng: np.random.Generator) -> Estimate:
        """Regret of "auto" over that of the best p in hindsight, summed over problems, which are resampled."""
        return bootstrap(ratio_of_means, self.auto, self.best, rng=rng)


@dataclass(frozen=True, slots=True)
class Literal:
    """Single runs on Figure (a), one on each problem: p and regret on the way."""

    horizon: int
    steps: Float64  # (S,)
    best: Float64  # (problems,): regret of the best fixed p of that run
    literal_p: Float64  # (problems, S)
    literal_regret: Float64
    auto_p: Float64
    auto_regret: Float64


def judge(families: Sequence[Family], literal: Literal, rng: np.random.Generator) -> Findings:
    """Give the verdict and its section."""
    claim = Claim(
        key="section42-online",
        where="Section 4.2, last paragraph",
        says="Without any prior knowledge, a suitable p can be found from data gathered while Algorithm 1 runs.",
        reading=(
            f"Suitable: regret within {BOUND:g} times that of the best fixed p in hindsight. As written: the theorem's "
            f"formula with C = 128 and the running minimum, on Figure (a), T = {literal.horizon:,}. Our reading: "
            'AutoEpsilonGreedy, on every family and horizon.'
        ),
    )
    rule, ratios = Criterion("below", BOUND), [family.ratio(rng) for family in families]
    to_the_letter = bootstrap(ratio_of_means, literal.literal_regret[:, -1], literal.best, rng=rng)
    statistics = (
        Statistic("running minimum, Figure (a)", to_the_letter, rule),
        *(
            Statistic(f"auto, {family.name}, T = {family.horizon:,}", ratio, rule, Role.READING)
            for family, ratio in zip(families, ratios, strict=True)
        ),
    )
    verdict = Verdict(claim=claim, statistics=statistics, explanations=WHY)
    section = Section(
        claim=claim.key,
        heading="Finding p while running",
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
            ", ".join(
                f"{ratio_of_means(told, family.best):.2f}" for told in (family.longer, family.shorter, family.untold)
            ),
        )
        for family, ratio in zip(families, ratios, strict=True)
    )
    head = (
        "family",
        "T",
        "auto / best p in hindsight",
        "auto",
        "best p",
        "median p of auto",
        "told 10 T, T / 10, nothing",
    )
    caption = (
        f"Regret of p = auto, {len(families[0].auto)} problems of each family; the fourth and fifth column are shares "
        "of what random play loses"
    )
    return Table(caption=caption, head=head, rows=rows)


def _ratios(families: Sequence[Family], ratios: Sequence[Estimate]) -> plots.Picture:
    names = [f"{family.name}, T = 1e{np.log10(family.horizon):.0f}" for family in families]
    figure = plots.bars(names, list(ratios), xlabel="regret / best p", marks={"best p": 1.0})
    alt = "Regret of p = auto relative to the best fixed p of each problem, by family and horizon"
    return plots.picture(figure, key="section42-ratios", alt=alt, caption=f"{alt}. Bars end in 95 % intervals.")


def _paths(literal: Literal, rng: np.random.Generator) -> plots.Picture:
    cap = np.minimum(literal.literal_p, 10.0 * literal.horizon)  # infinite from the first tie on
    curves = [
        plots.Curve("running minimum", literal.steps, band(np.minimum(1.0, cap / literal.steps), rng)),
        plots.Curve("auto", literal.steps, band(np.minimum(1.0, literal.auto_p / literal.steps), rng)),
    ]
    figure = plots.regret(curves, ylabel="probability that step t explores")
    alt = "How often the running minimum and p = auto explore on Figure (a), against log t"
    return plots.picture(figure, key="section42-rates", alt=alt, caption=f"{alt}. Means of runs with 95 % intervals.")


def _note(literal: Literal) -> str:
    beyond = np.mean(literal.literal_p[:, -1] > literal.horizon)
    return (
        f"At T = {literal.horizon:,} the running minimum asks for a p beyond T in {beyond:.0%} of the runs and regrets "
        f"{literal.literal_regret[:, -1].mean():,.0f}; auto ends at p = {literal.auto_p[:, -1].mean():,.0f} and "
        "regrets "
        f"{literal.auto_regret[:, -1].mean():,.0f}; the best fixed p of each run {literal.best.mean():,.0f}."
    )
