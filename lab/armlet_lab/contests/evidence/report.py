"""What follows from playing with evidence as the clock: five verdicts and their tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

import numpy as np

from armlet.inference.intervals import Estimate, bootstrap, mean_of_runs
from armlet.report.tables import Table
from armlet.types import Float64
from armlet_lab.contests.evidence.contestants import FACTORS, FLOOR, Q
from armlet_lab.runner.experiment import Claim, Criterion, Findings, Role, Section, Statistic, Verdict
from armlet_lab.runner.hindsight import ratio_of_means

Columns: TypeAlias = Mapping[str, Float64]
"""By name, a number for each problem."""

EVIDENCE: Final = f"evidence, q = {Q:g}"
NEWS: Final = 0.25  # of uniform play: more the family of Algorithm 1 may not lose in the gaussian news
TRIES: Final = 10  # of the newcomer
LATE: Final = 1.25  # times the best of several p, chosen in hindsight
SHORT: Final = 0.03  # of all decisions
COUNT: Final = (0.9, 1.15)  # times what the formula says
PRICE: Final = 1.1  # times the floor's share of what random play loses
NOISY: Final = "clicks 3 % or 4 %"  # too few clicks to rank anything: printed, not judged
BY_SCHEDULE: Final = ("Algorithm 1", "evidence", "evidence, all rows", "auto")


def judge(
    *,
    news: Mapping[str, Columns],
    newcomer: Columns,
    delayed: Mapping[str, Columns],
    trained: Columns,
    closed: Mapping[str, Columns],
    settings: Mapping[str, int],
    rng: np.random.Generator,
) -> Findings:
    """Give the verdicts and their sections; `settings` are horizons, for the captions."""
    parts = (
        _news(news, settings["news"], rng),
        _newcomer(newcomer, settings["late"], rng),
        _delayed(delayed, settings["delay"], rng),
        _trained(trained, settings["rows"], rng),
        _closed(closed, settings["closed"], rng),
        _floor(closed, settings["closed"], rng),
    )
    return Findings(tuple(verdict for verdict, _ in parts), tuple(section for _, section in parts))


def _claim(key: str, says: str, reading: str) -> Claim:
    return Claim(key=f"evidence-{key}", where="Beyond the paper", says=says, reading=reading, source="Armlet")


def _ratio(above: Float64, below: Float64, rng: np.random.Generator) -> Estimate:
    return bootstrap(ratio_of_means, above, below, rng=rng)


def _show(ratio: Estimate) -> str:
    return f"{ratio.value:.2f} [{ratio.low:.2f} to {ratio.high:.2f}]"


def _mean(column: Float64, rng: np.random.Generator, digits: int = 0) -> str:
    found = bootstrap(mean_of_runs, column, rng=rng)
    return f"{found.value:,.{digits}f} [{found.low:,.{digits}f} to {found.high:,.{digits}f}]"


def _news(found: Mapping[str, Columns], horizon: int, rng: np.random.Generator) -> tuple[Verdict, Section]:
    """Judge the news by gaussian rewards; clicks are printed."""
    claim = _claim(
        "news",
        f"Where arms come and go, exploring by evidence at q = 1 or 2 regrets at most {NEWS:g} of uniform play.",
        "The better of the two, gaussian rewards; learning from explored rows alone. News of clicks are printed: a "
        "click in sixteen is too little to learn an arm by in its life. Control: by steps it is more than that.",
    )
    judged = found["gaussian"]
    ratios = {name: _ratio(column, judged["uniform"], rng) for name, column in judged.items()}
    better = min((ratios[f"evidence, q = {q}"] for q in (1, 2)), key=lambda ratio: ratio.value)
    small = next(name for name in judged if name.startswith("Algorithm 1"))
    statistics = (
        Statistic("evidence, the better q, over uniform play", better, Criterion("below", NEWS)),
        Statistic(f"{small}, over uniform play", ratios[small], Criterion("above", NEWS), Role.CONTROL),
    )
    rows = tuple(
        (
            name,
            *(f"{_mean(site[name], rng)}; {site[name].mean() / site['uniform'].mean():.2f}" for site in found.values()),
        )
        for name in judged
    )
    caption = f"Mean regret and its share of uniform play, T = {horizon:,}, {len(judged['uniform'])} sites of each kind"
    section = Section(
        claim=claim.key, heading="News", tables=(Table(caption=caption, head=("policy", *found), rows=rows),)
    )
    return Verdict(claim=claim, statistics=statistics), section


def _newcomer(found: Columns, late: int, rng: np.random.Generator) -> tuple[Verdict, Section]:
    """Judge how soon an arm that comes late is tried."""
    claim = _claim(
        "newcomer",
        f"An arm that is best in half of the contexts and comes late is tried {TRIES} times within 300 steps.",
        f"It comes after {late:,} steps; in every problem, by every form of the law. Control: Algorithm 1, which may "
        "play it where all others look bad but learns from explored steps alone, learns less than one row of it.",
    )
    names = [name for name in found if not name.endswith(", learned")]
    laws = [name for name in names if name.startswith("evidence") or name == "auto"]
    learned = _mean_of(found["Algorithm 1, learned"], rng)
    statistics = (
        *(
            Statistic(f"fewest tries, {name}", _exact(found[name].min()), Criterion("above", TRIES - 1))
            for name in laws
        ),
        Statistic("rows learned of it, Algorithm 1", learned, Criterion("below", 1.0), Role.CONTROL),
    )
    rows = tuple(
        (name, _mean(found[name], rng, 1), f"{found[name].min():.0f}", f"{found[f'{name}, learned'].mean():.1f}")
        for name in names
    )
    caption = f"Tries within 300 steps of a new arm, after {late:,} steps, {len(found['auto'])} problems"
    table = Table(caption=caption, head=("policy", "tries, mean", "fewest", "learned, mean"), rows=rows)
    section = Section(claim=claim.key, heading="An arm that comes late", tables=(table,))
    return Verdict(claim=claim, statistics=statistics), section


def _delayed(found: Mapping[str, Columns], horizon: int, rng: np.random.Generator) -> tuple[Verdict, Section]:
    """Judge rewards that come a tenth of the run late."""
    claim = _claim(
        "delay",
        f"With rewards that come T / 10 late, one q regrets at most {LATE:g} times as much as the best p by steps.",
        f"q = {Q:g} for all families against the best of p / K = {', '.join(f'{factor:g}' for factor in FACTORS)} in "
        "each, chosen and judged on the same runs. Clicks are printed.",
    )
    best = {family: _best(columns) for family, columns in found.items()}
    ratios = {
        (family, name): _ratio(columns[name], columns[best[family]], rng)
        for family, columns in found.items()
        for name in (EVIDENCE, "auto")
    }
    statistics = tuple(
        Statistic(family, ratios[family, EVIDENCE], Criterion("below", LATE)) for family in found if family != NOISY
    )
    rows = tuple(
        (
            family,
            f"{columns[best[family]].mean():,.0f} ({best[family]})",
            *(_show(ratios[family, name]) for name in (EVIDENCE, "auto")),
            f"{columns['random'].mean():,.0f}",
        )
        for family, columns in found.items()
    )
    n = len(next(iter(found.values()))["auto"])
    table = Table(
        caption=f"Regret with rewards {horizon // 10:,} steps late, T = {horizon:,}, {n} problems of each family",
        head=("family", "best fixed p by steps", f"{EVIDENCE} / that", "auto / that", "random play"),
        rows=rows,
    )
    return Verdict(claim=claim, statistics=statistics), Section(
        claim=claim.key, heading="Rewards that come late", tables=(table,)
    )


def _best(columns: Columns) -> str:
    means = {name: column.mean() for name, column in columns.items() if name.startswith("p = ")}
    return min(means, key=lambda name: means[name])


def _trained(found: Columns, rows: int, rng: np.random.Generator) -> tuple[Verdict, Section]:
    """Judge the first decisions of a model that was trained on a log."""
    claim = _claim(
        "trained",
        "A model that was trained on a log exploits from its first decision on.",
        f"{rows:,} rows of random play, then 300 decisions: the share of right ones is at most {100 * SHORT:g} points "
        "below that of `predict` on the same contexts and the share of explored steps, for those who explore by a "
        "schedule.",
    )
    names = list(dict.fromkeys(name.rpartition(", ")[0] for name in found))
    short = {
        name: _mean_of(found[f"{name}, predict"] - found[f"{name}, explored"] - found[f"{name}, decide"], rng)
        for name in names
    }
    statistics = tuple(
        Statistic(f"short of predict, {name}", short[name], Criterion("below", SHORT)) for name in BY_SCHEDULE
    )
    table = Table(
        caption=f"The first 300 decisions after {rows:,} logged rows, {len(found[f'{names[0]}, decide'])} problems",
        head=("policy", "right by predict", "right by decide", "explored"),
        rows=tuple(
            (name, *(f"{found[f'{name}, {what}'].mean():.1%}" for what in ("predict", "decide", "explored")))
            for name in names
        ),
    )
    return Verdict(claim=claim, statistics=statistics), Section(
        claim=claim.key, heading="A model that was trained", tables=(table,)
    )


def _closed(found: Mapping[str, Columns], horizon: int, rng: np.random.Generator) -> tuple[Verdict, Section]:
    """Judge the law where nothing happens: it explores as often as its formula says."""
    low, high = COUNT
    claim = _claim(
        "closed",
        "In a closed world with prompt rewards evidence explores p (1 + log(1 + (T - p) / q)) steps.",
        "What n_a rows are after t steps if each is explored with weight exp(1 - n_a / q). Up to rounding p log K more "
        f"than p/t explores, whose first rows come K times as slowly. At p = {Q:g} K: {low:g} to {high:g} times that.",
    )
    counts = {f: _ratio(one["evidence, explored"], one["formula"], rng) for f, one in found.items()}
    beside = {f: _ratio(one["evidence, explored"], one["steps, explored"], rng) for f, one in found.items()}
    regrets = {f: _ratio(one["evidence"], one["steps"], rng) for f, one in found.items()}
    statistics = tuple(Statistic(family, ratio, Criterion("within", low, high)) for family, ratio in counts.items())
    table = Table(
        caption=f"Evidence at p = {Q:g} K, T = {horizon:,}, {_problems(found)}",
        head=("family", "explored / formula", "explored / p/t's", "regret / p/t's"),
        rows=tuple((family, *(_show(each[family]) for each in (counts, beside, regrets))) for family in found),
    )
    section = Section(claim=claim.key, heading="Where nothing happens", tables=(table,))
    return Verdict(claim=claim, statistics=statistics), section


def _floor(found: Mapping[str, Columns], horizon: int, rng: np.random.Generator) -> tuple[Verdict, Section]:
    """Judge what a floor costs: no more than its share of what random play loses."""
    claim = _claim(
        "floor",
        f"A floor of {FLOOR:g} costs at most that share of what random play loses.",
        f"The regret that it adds at p = {Q:g} K over {FLOOR:g} times that of random play: in no family does the "
        f"interval lie wholly above {PRICE:g}. It may be less, since explored rows are learned.",
    )
    price = {
        family: _ratio(one["floor"] - one["evidence"], FLOOR * one["random"], rng) for family, one in found.items()
    }
    above = sum(ratio.low > PRICE for ratio in price.values())
    statistics = (
        Statistic(f"intervals above {PRICE:g}, of {len(price)}", _exact(above), Criterion("within", 0, 0)),
        Statistic("the price where it is known best", _narrowest(price), Criterion("below", PRICE)),
    )
    table = Table(
        caption=f"The price of floor = {FLOOR:g}, T = {horizon:,}, {_problems(found)}",
        head=("family", "without", "with", "with / without", "added, in shares of the floor's"),
        rows=tuple(
            (
                family,
                f"{one['evidence'].mean():,.0f}",
                f"{one['floor'].mean():,.0f}",
                _show(_ratio(one["floor"], one["evidence"], rng)),
                _show(price[family]),
            )
            for family, one in found.items()
        ),
    )
    section = Section(claim=claim.key, heading="The price of a floor", tables=(table,))
    return Verdict(claim=claim, statistics=statistics), section


def _narrowest(ratios: Mapping[str, Estimate]) -> Estimate:
    return min(ratios.values(), key=lambda ratio: ratio.high - ratio.low)


def _problems(found: Mapping[str, Columns]) -> str:
    return f"{len(next(iter(found.values()))['random'])} problems of each family"


def _mean_of(column: Float64, rng: np.random.Generator) -> Estimate:
    return bootstrap(mean_of_runs, column, rng=rng)


def _exact(value: float) -> Estimate:
    return Estimate(float(value), float(value), float(value))
