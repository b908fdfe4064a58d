"""What follows from many logs of known worlds: how often intervals cover, in six verdicts with their tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

import numpy as np

from armlet.core.intervals import Estimate, bootstrap, mean_of_runs
from armlet.core.types import Float64
from armlet.paper.coverage import plots
from armlet.paper.coverage.plots import percent
from armlet.paper.experiment import Findings
from armlet.paper.page import Section
from armlet.paper.verdicts import Claim, Criterion, Role, Statistic, Verdict
from armlet.report.tables import Table

Columns: TypeAlias = Mapping[str, Float64]
"""By name, a number for each log."""

EACH: Final = (0.91, 0.98)  # fixed intervals of level .95, in every world
ALL: Final = (0.93, 0.97)  # and on average over worlds
LEVEL: Final = 0.95
RMSE: Final = 0.8  # of explored rows, in the world of the study
STUDY: Final = "p/t"
OWN: Final = 0.92
COEFFICIENTS: Final = (0.935, 0.965)
ACCUSED: Final = 1 / 200
FOUND: Final = 0.95
SPOILT: Final = "uniform, 25 % wrong on one arm"


def judge(
    *,
    worlds: Mapping[str, Columns],
    own: Mapping[str, Columns],
    coefficients: Mapping[str, Columns],
    propensities: Mapping[str, Columns],
    horizon: int,
    rng: np.random.Generator,
) -> Findings:
    """Give the verdicts and their sections."""
    parts = (
        _fixed(worlds, horizon, rng),
        _looks(worlds),
        _errors(worlds, rng),
        _own(own, rng),
        _coefficients(coefficients, rng),
        _propensities(propensities),
    )
    return Findings(tuple(verdict for verdict, _ in parts), tuple(section for _, section in parts))


def _claim(key: str, says: str, reading: str) -> Claim:
    return Claim(key=f"coverage-{key}", where="Beyond the paper", says=says, reading=reading, source="Armlet")


def share(hits: Float64) -> Estimate:
    """Give the share of logs, with Wilson's 95 % interval.

    Examples
    --------
    >>> print(f"{share(np.array([1.0] * 95 + [0.0] * 5)):.3f}")
    0.950 [0.888 to 0.978]
    """
    n, p, z = len(hits), float(hits.mean()), 1.959964
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    reach = z / (1 + z * z / n) * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return Estimate(p, max(0.0, min(p, middle - float(reach))), min(1.0, max(p, middle + float(reach))))


def covers(columns: Columns, word: str) -> Float64:
    """Say of every log whether the interval of an estimator holds the truth."""
    return ((columns[f"{word} low"] <= columns["truth"]) & (columns["truth"] <= columns[f"{word} high"])).astype(float)


def _mean_share(hits: Mapping[str, Float64], rng: np.random.Generator) -> Estimate:
    """Give the mean over worlds of the share of logs; logs are drawn within each world."""
    values = [bootstrap(mean_of_runs, each, rng=rng) for each in hits.values()]
    spread = np.sqrt(sum(float(each.var()) / len(each) for each in hits.values())) / len(hits)
    mean = float(np.mean([each.value for each in values]))
    return Estimate(mean, mean - 1.959964 * float(spread), mean + 1.959964 * float(spread))


def _fixed(worlds: Mapping[str, Columns], horizon: int, rng: np.random.Generator) -> tuple[Verdict, Section]:
    """Judge intervals at one look."""
    claim = _claim(
        "fixed",
        "An interval of level 95 % for the value of another policy covers 91 % to 98 % of the time in each of eight "
        "worlds, and 93 % to 97 % on average.",
        "What `armlet.evaluate` chooses by itself, at the end of each log. The truth is exact: contexts come from a "
        "table. Control: the same interval about the mean of all rows in which the target's arm was played, as if they "
        "were a random sample, covers less in the world of the study.",
    )
    hits = {name: covers(columns, "auto") for name, columns in worlds.items()}
    found = {name: share(each) for name, each in hits.items()}
    naive = share(covers(worlds[STUDY], "naive"))
    statistics = (
        *(Statistic(name, each, Criterion("within", *EACH)) for name, each in found.items()),
        Statistic("mean over worlds", _mean_share(hits, rng), Criterion("within", *ALL)),
        Statistic("control: played rows as a sample", naive, Criterion("below", EACH[0]), Role.CONTROL),
    )
    rows = tuple(_row(name, columns) for name, columns in worlds.items())
    n = len(next(iter(worlds.values()))["truth"])
    table = Table(
        caption=f"Values of another policy, {n:,} logs of {horizon:,} decisions in each world",
        head=("world", "truth", "bias / RMSE", "covers", "half-width", "explored rows: covers", "RMSE"),
        rows=rows,
    )
    picture = plots.coverage({name: (found[name], share(covers(worlds[name], "explored"))) for name in worlds}, EACH)
    section = Section(claim=claim.key, heading="Intervals at one look", pictures=(picture,), tables=(table,))
    return Verdict(claim=claim, statistics=statistics), section


def _row(name: str, columns: Columns) -> tuple[str, ...]:
    error = columns["auto value"] - columns["truth"]
    other = columns["explored value"] - columns["truth"]
    return (
        name,
        f"{columns['truth'].mean():.4f}",
        f"{error.mean():+.4f} / {np.sqrt((error**2).mean()):.4f}",
        percent(share(covers(columns, "auto"))),
        f"{np.median(columns['auto high'] - columns['auto low']) / 2:.4f}",
        percent(share(covers(columns, "explored"))),
        f"{np.sqrt((other**2).mean()):.4f}",
    )


def _looks(worlds: Mapping[str, Columns]) -> tuple[Verdict, Section]:
    """Judge sequences, in worlds whose rewards have a range."""
    claim = _claim(
        "sequences",
        "A confidence sequence of level 95 % covers at all looks at once at least 95 % of the time.",
        "Sequences of `armlet.evaluate` at a dozen looks at each log, where rewards have a declared range: 3 % "
        "clicks among them. Control: a fixed interval at the same looks does not.",
    )
    there = {name: columns for name, columns in worlds.items() if np.isfinite(columns["at all looks"]).all()}
    held = {name: share(columns["at all looks"]) for name, columns in there.items()}
    fixed = {name: share(columns["fixed at all looks"]) for name, columns in there.items()}
    statistics = (
        *(Statistic(name, each, Criterion("above", LEVEL)) for name, each in held.items()),
        Statistic("control: fixed intervals", fixed[STUDY], Criterion("below", LEVEL), Role.CONTROL),
    )
    rows = tuple(
        (
            name,
            percent(held[name]),
            percent(fixed[name]),
            f"{np.median(columns['anytime high'] - columns['anytime low']) / 2:.4f}",
            f"{np.median(columns['auto high'] - columns['auto low']) / 2:.4f}",
        )
        for name, columns in there.items()
    )
    table = Table(
        caption="Whether an interval covered at every look",
        head=("world", "sequence", "fixed interval", "half-width at the end", "of the fixed one"),
        rows=rows,
    )
    section = Section(claim=claim.key, heading="Intervals at all looks", tables=(table,))
    return Verdict(claim=claim, statistics=statistics), section


def _errors(worlds: Mapping[str, Columns], rng: np.random.Generator) -> tuple[Verdict, Section]:
    """Judge what all rows add to explored rows."""
    claim = _claim(
        "errors",
        f"Weighing all rows, the error is at most {RMSE:g} of that of explored rows alone in the world of the study, "
        "and nowhere larger.",
        "Root mean squared errors of `estimator='weighted'` over `'explored'`, on the same logs. Larger: by more than "
        "two standard errors.",
    )
    ratios = {name: _rmse_ratio(columns, rng) for name, columns in worlds.items()}
    larger = sum(ratio.value > 1 and ratio.value - 1 > (ratio.high - ratio.low) / 1.96 for ratio in ratios.values())
    statistics = (
        Statistic(f"ratio in {STUDY}", ratios[STUDY], Criterion("below", RMSE)),
        Statistic(f"worlds where it is larger, of {len(ratios)}", _exact(larger), Criterion("within", 0, 0)),
    )
    rows = tuple((name, f"{ratio:.2f}") for name, ratio in ratios.items())
    table = Table(caption="RMSE of all rows over that of explored rows", head=("world", "ratio"), rows=rows)
    section = Section(claim=claim.key, heading="What all rows add", tables=(table,))
    return Verdict(claim=claim, statistics=statistics), section


def _rmse_ratio(columns: Columns, rng: np.random.Generator) -> Estimate:
    ours, theirs = ((columns[f"{word} value"] - columns["truth"]) ** 2 for word in ("weighted", "explored"))
    return bootstrap(lambda a, b: np.sqrt(a.mean(-1) / b.mean(-1)), ours, theirs, rng=rng)


def _own(found: Mapping[str, Columns], rng: np.random.Generator) -> tuple[Verdict, Section]:
    """Judge the value of a model from the very rows that it learned from."""
    claim = _claim(
        "own",
        "The value of a model from its own rows is unbiased within three standard errors where there is nothing to "
        f"learn, and its interval covers at least {OWN:.0%} of the time.",
        "300 uniform rows, 5 arms, d = 5, rewards that are noise: every policy is worth 0. Control: valued by its own "
        "rows as if they were another's, the model seems to be worth more.",
    )
    noise = found["noise"]
    bias = noise["own value"] - noise["truth"]
    se = float(bias.std()) / np.sqrt(len(bias))
    naive = bootstrap(mean_of_runs, noise["same rows"] - noise["truth"], rng=rng)
    statistics = (
        Statistic("bias in standard errors", _exact(float(bias.mean() / se)), Criterion("within", -3, 3)),
        Statistic("covers in pure noise", share(covers(noise, "own")), Criterion("above", OWN)),
        Statistic("control: bias on its own rows", naive, Criterion("above", 0.0), Role.CONTROL),
    )
    rows = tuple(
        (
            name,
            f"{(columns['own value'] - columns['truth']).mean():+.4f}",
            f"{np.sqrt(((columns['own value'] - columns['truth']) ** 2).mean()):.4f}",
            percent(share(covers(columns, "own"))),
            f"{(columns['same rows'] - columns['truth']).mean():+.4f}",
        )
        for name, columns in found.items()
    )
    head = ("world", "bias", "RMSE", "covers", "bias if valued as another's")
    caption = f"Own value from 300 rows, {len(noise['truth']):,} logs"
    section = Section(claim=claim.key, heading="Own value", tables=(Table(caption=caption, head=head, rows=rows),))
    return Verdict(claim=claim, statistics=statistics), section


def _coefficients(found: Mapping[str, Columns], rng: np.random.Generator) -> tuple[Verdict, Section]:
    """Judge intervals of coefficients, from sums alone."""
    claim = _claim(
        "coefficients",
        "Intervals of coefficients from the model alone cover 93.5 % to 96.5 % of the time.",
        "Mean over coefficients and three worlds, K = d = 3, T = 2,000, explored rows, by each law of exploring.",
    )
    means = {name: bootstrap(mean_of_runs, columns["coefficients"], rng=rng) for name, columns in found.items()}
    laws: dict[str, list[Float64]] = {}
    for name, columns in found.items():
        laws.setdefault(name.rpartition(", ")[2], []).append(columns["coefficients"])
    statistics = tuple(
        Statistic(law, bootstrap(mean_of_runs, np.concatenate(parts), rng=rng), Criterion("within", *COEFFICIENTS))
        for law, parts in laws.items()
    )
    rows = tuple(
        (name, percent(means[name]), percent(share(columns["contrasts"])), percent(share(columns["anytime"])))
        for name, columns in found.items()
    )
    n = len(next(iter(found.values()))["coefficients"])
    table = Table(
        caption=f"Intervals of coefficients and contrasts, {n:,} runs",
        head=("world and law", "coefficients", "all contrasts", "anytime, all coefficients at all looks"),
        rows=rows,
    )
    return Verdict(claim=claim, statistics=statistics), Section(
        claim=claim.key, heading="Coefficients", tables=(table,)
    )


def _propensities(found: Mapping[str, Columns]) -> tuple[Verdict, Section]:
    """Judge the check of propensities."""
    claim = _claim(
        "propensities",
        "Right propensities are accused in at most 1 of 200 logs of Algorithm 1; an error of 25 % on one arm is found "
        "in 95 of 100 uniform logs of 3,000 rows.",
        "Counts, as written. Three arms; an error up or down, in turn.",
    )
    accused = {name: columns["accused"] for name, columns in found.items()}
    right = {name: each for name, each in accused.items() if name != SPOILT}
    statistics = (
        *(
            Statistic(f"accused, {name}", _exact(float(each.mean())), Criterion("within", 0.0, ACCUSED))
            for name, each in right.items()
        ),
        Statistic("found, of wrong ones", _exact(float(accused[SPOILT].mean())), Criterion("within", FOUND, 1.0)),
    )
    rows = tuple((name, f"{len(each):,}", f"{each.sum():.0f}") for name, each in accused.items())
    head = ("logs", "number", "accused")
    table = Table(caption="Accused of wrong propensities", head=head, rows=rows)
    section = Section(claim=claim.key, heading="Wrong propensities", tables=(table,))
    return Verdict(claim=claim, statistics=statistics), section


def _exact(value: float) -> Estimate:
    return Estimate(value, value, value)
