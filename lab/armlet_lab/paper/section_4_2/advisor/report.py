"""What follows from trials of the advisor: a verdict on the first paragraph of Section 4.2, a table and figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from armlet.inference.means import Estimate, bootstrap
from armlet.report import plots
from armlet.report.document import Table
from armlet.types import Float64
from armlet_lab.runner.experiment import Findings
from armlet_lab.runner.hindsight import ratio_of_means
from armlet_lab.runner.page import Section
from armlet_lab.runner.verdicts import Claim, Criterion, Outcome, Role, Statistic, Verdict

BOUND: Final = 1.3
COVERED: Final = 0.9
WHY: Final = {
    Outcome.HOLDS: "The theorem's p for a law of problems is nearly as good as the best p of each.",
    Outcome.UNDER_READING: (
        "The constants are quickly computed and the p does satisfy the theorem, but it lies beyond any horizon in use "
        "or does not exist, so that every step explores. The same knowledge is enough for a good p when problems drawn "
        "from it are simulated, and so is a short pilot."
    ),
    Outcome.FAILS: "Neither the theorem's p nor that of simulation comes near the best p.",
    Outcome.UNSETTLED: "Some interval crosses its bound: more problems are needed, or some family misses it.",
}

Choice = Literal["law", "pilot", "theorem"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Mean regret on each problem of a family, in units of what random play loses on it, and what was promised."""

    name: str
    horizon: int
    best: Float64  # (problems,): with the best fixed p of each problem, chosen in hindsight
    law: Float64  # (problems,): with the p advised for the law of problems
    pilot: Float64  # with the p advised after a pilot on the very problem
    theorem: Float64
    law_p: float
    pilot_p: Float64  # (problems,)
    theorem_p: float  # inf if there is none
    law_covered: Float64  # (problems,): the share of fresh runs inside the interval predicted for one run
    pilot_covered: Float64

    def ratio(self, choice: Choice, rng: np.random.Generator) -> Estimate:
        """Regret of a choice over that of the best p in hindsight, summed over problems, which are resampled."""
        above: Float64 = {"law": self.law, "pilot": self.pilot, "theorem": self.theorem}[choice]
        return bootstrap(ratio_of_means, above, self.best, rng=rng)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratios:
    """The three choices on one family, relative to the best p in hindsight."""

    law: Estimate
    pilot: Estimate
    theorem: Estimate


def judge(families: Sequence[Family], rows: int, rng: np.random.Generator) -> Findings:
    """Give the verdict and its section."""
    claim = Claim(
        key="section42-prior",
        where="Section 4.2, first paragraph",
        says="From an a-priori distribution of problems one quickly computes a suitable p.",
        reading=(
            f"Suitable: regret within {BOUND:g} times that of the best fixed p in hindsight. As written: the p that 95 "
            "% of the problems ask for at most by Theorem 2, repaired where contexts are longer than 1. Our reading: p "
            f"by simulation of problems from the law, or from what a pilot of {rows:,} random steps leaves possible; "
            f"the 95 % interval it predicts for one run then holds at least {COVERED:.0%} of fresh runs."
        ),
    )
    ratios = [
        Ratios(law=f.ratio("law", rng), pilot=f.ratio("pilot", rng), theorem=f.ratio("theorem", rng)) for f in families
    ]
    verdict = Verdict(claim=claim, statistics=_statistics(families, ratios, rng), explanations=WHY)
    section = Section(
        claim=claim.key,
        heading="p from a law of problems, or from a pilot",
        pictures=(
            _picture(families, [each.law for each in ratios], "law", "from the law of problems"),
            _picture(families, [each.pilot for each in ratios], "pilot", f"from a pilot of {rows:,} steps"),
        ),
        notes=(_note(families),),
        tables=(_table(families, ratios),),
    )
    return Findings((verdict,), (section,))


def _statistics(
    families: Sequence[Family], ratios: Sequence[Ratios], rng: np.random.Generator
) -> tuple[Statistic, ...]:
    rule = Criterion("below", BOUND)
    listed = [
        Statistic(f"theorem's p, {f.name}, T = {f.horizon:,}", each.theorem, rule)
        for f, each in zip(families, ratios, strict=True)
    ]
    for f, each in zip(families, ratios, strict=True):
        listed.append(Statistic(f"p from the law, {f.name}, T = {f.horizon:,}", each.law, rule, Role.READING))
        listed.append(Statistic(f"p from a pilot, {f.name}, T = {f.horizon:,}", each.pilot, rule, Role.READING))
    kept = Criterion("above", COVERED)
    covered = {
        "the law": np.concatenate([f.law_covered for f in families]),
        "a pilot": np.concatenate([f.pilot_covered for f in families]),
    }
    for name, shares in covered.items():
        share = bootstrap(_mean, shares, rng=rng)
        listed.append(Statistic(f"fresh runs within the interval from {name}", share, kept, Role.READING))
    return tuple(listed)


def _mean(values: Float64) -> Float64:
    mean: Float64 = values.mean(-1)
    return mean


def _table(families: Sequence[Family], ratios: Sequence[Ratios]) -> Table:
    rows = tuple(
        (
            f.name,
            f"{f.horizon:,}",
            _cell(each.theorem),
            _cell(each.law),
            _cell(each.pilot),
            f"{f.law_covered.mean():.0%}, {f.pilot_covered.mean():.0%}",
            f"{_p(f.theorem_p)}, {f.law_p:,.0f}, {np.median(f.pilot_p):,.0f}",
        )
        for f, each in zip(families, ratios, strict=True)
    )
    ratio = ("theorem / best p", "law / best p", "pilot / best p")
    head = ("family", "T", *ratio, "covered: law, pilot", "p of theorem, law, pilot (median)")
    caption = (
        f"Regret relative to that of the best p in hindsight, {len(families[0].best)} problems of each family; covered "
        "is the share of fresh runs within the 95 % interval that was predicted for one run"
    )
    return Table(caption=caption, head=head, rows=rows)


def _cell(ratio: Estimate) -> str:
    return f"{ratio.value:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"


def _p(asked: float) -> str:
    return "none" if math.isinf(asked) else f"{asked:.2g}"


def _picture(families: Sequence[Family], ratios: list[Estimate], key: str, source: str) -> plots.Picture:
    names = [f"{f.name}, T = 1e{np.log10(f.horizon):.0f}" for f in families]
    marks = {"best p": 1.0, f"{BOUND:g}": BOUND}
    figure = plots.bars(names, ratios, xlabel="regret / best p", marks=marks)
    alt = f"Regret of the p advised {source}, relative to the best fixed p of each problem"
    return plots.picture(figure, key=f"advisor-{key}", alt=alt, caption=f"{alt}. Bars end in 95 % intervals.")


def _note(families: Sequence[Family]) -> str:
    beyond = sum(f.theorem_p > f.horizon for f in families)
    none = sum(math.isinf(f.theorem_p) for f in families)
    return (
        f"The theorem's p lies beyond T in {beyond} of {len(families)} cases, in {none} of them because there is none: "
        "contexts have no end, so the smallest gap is 0. Every step then explores. The best p in hindsight is chosen "
        "on half of a problem's runs and charged on the others; below 1, they did not tell which it is."
    )
