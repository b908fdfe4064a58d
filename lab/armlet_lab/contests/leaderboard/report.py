"""What the leaderboard shows: three tables, one plot, and the headline about Algorithm 1."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from armlet.inference.intervals import Estimate, bootstrap
from armlet.parallel.seeds import Seeds
from armlet.report import plots
from armlet.report.tables import Table
from armlet.types import Float64
from armlet_lab.contests.leaderboard.costs import Cost
from armlet_lab.contests.leaderboard.verdicts import FIRST, NAMED, OURS, RIVALS, Rank, constant_cost, meets_the_best
from armlet_lab.runner.experiment import Findings, Section
from armlet_lab.runner.scatter import Point, scatter


def judge(
    ranks: Mapping[str, Rank],
    arenas: Sequence[str],
    horizon: int,
    runs: int,
    seeds: Seeds,
    costs: Mapping[str, Cost],
    widths: Mapping[float, Float64],
) -> Findings:
    """Rank, draw and judge; `widths` is the regret of LinUCB at T/4, T/2 and T by its alpha."""
    overall = {name: relative(rank, "tuned", seeds) for name, rank in ranks.items()}
    verdicts = (meets_the_best(ranks, seeds), constant_cost(costs))
    notes = (
        _headline(ranks, overall, seeds),
        *_worse(ranks, seeds),
        _pathologies(ranks, seeds),
        _locked(widths, seeds),
        _how(arenas, horizon, runs),
    )
    sections = (
        Section(
            claim="leaderboard-regret",
            heading="Every system the paper names",
            pictures=(_plot(ranks, overall, arenas),),
            notes=notes,
            tables=(_summary(ranks, overall, arenas, seeds), _by_arena(ranks, overall, arenas, seeds)),
        ),
        Section(claim="leaderboard-cost", heading="What a step costs", tables=(_growth(ranks),)),
    )
    return Findings(verdicts, sections)


def relative(rank: Rank, constants: str, seeds: Seeds, arenas: Iterable[str] | None = None) -> Estimate | None:
    """Give regret relative to uniform play: the geometric mean over arenas of ratios of means, paired by run."""
    chosen = [rank.standings[name] for name in arenas or rank.standings if name in rank.standings]
    pairs = [(getattr(each, constants), each.uniform) for each in chosen]
    if not pairs or any(mine is None for mine, _ in pairs):
        return None

    def ratio(*columns: Float64) -> Float64:
        means = [np.maximum(column.mean(axis=-1), 1e-12) for column in columns]
        logs = [np.log(mine / theirs) for mine, theirs in zip(means[::2], means[1::2], strict=True)]
        middle: Float64 = np.exp(np.mean(logs, axis=0))
        return middle

    return bootstrap(ratio, *(column for pair in pairs for column in pair), rng=seeds.rng("relative intervals"))


def _ordered(ranks: Mapping[str, Rank], overall: Mapping[str, Estimate | None]) -> list[Rank]:
    """Sort by regret, those that need a privileged bit last."""
    return sorted(ranks.values(), key=lambda rank: (rank.family == "one bit", _value(overall[rank.name])))


def _value(estimate: Estimate | None) -> float:
    return math.inf if estimate is None else estimate.value


def _headline(ranks: Mapping[str, Rank], overall: Mapping[str, Estimate | None], seeds: Seeds) -> str:
    ours, cost = overall[OURS], ranks[OURS].cost
    ranked = [rank.name for rank in _ordered(ranks, overall) if rank.family != "one bit"]
    rivals = "; ".join(
        f"{name} {_percent(overall[name])} at {1e6 * ranks[name].cost.seconds:.2g} µs" for name in RIVALS
    )
    here = ", ".join(f"{_percent(relative(ranks[name], 'tuned', seeds, [FIRST]))} ({name})" for name in (OURS, *RIVALS))
    return (
        f"The headline: tuned Algorithm 1 regrets {_percent(ours)} of uniform play at {1e6 * cost.seconds:.2g} µs a "
        f"step, place {ranked.index(OURS) + 1} of {len(ranked)}; {rivals}. On Figure (a): {here}. It is cheap, "
        "mergeable and leaves clean data; it does not regret least."
        if _value(ours) > min(_value(overall[name]) for name in RIVALS)
        else f"The headline: tuned Algorithm 1 regrets {_percent(ours)} of uniform play at {1e6 * cost.seconds:.2g} µs "
        f"a step, place {ranked.index(OURS) + 1} of {len(ranked)}; {rivals}. On Figure (a): {here}."
    )


def _worse(ranks: Mapping[str, Rank], seeds: Seeds) -> list[str]:
    """Name the policies that tuning left above uniform play in the first arena."""
    found = {name: relative(rank, "tuned", seeds, [FIRST]) for name, rank in ranks.items() if name != "uniform"}
    worse = [f"{name} ({_percent(each)})" for name, each in found.items() if each is not None and each.low > 1]
    if not worse:
        return [f"On {FIRST} no tuned policy is found worse than uniform play."]
    return [f"Found worse than uniform play on {FIRST} even when tuned: {', '.join(worse)}."]


def _pathologies(ranks: Mapping[str, Rank], seeds: Seeds) -> str:
    """Name the policies whose theory explores for ever."""
    theory = {name: relative(rank, "theory", seeds, [FIRST]) for name, rank in ranks.items()}
    idle = [name for name, found in theory.items() if found is not None and found.high > 0.9]
    return (
        f"With the theory's constants, {', '.join(idle) or 'none'} cannot be told from uniform play on {FIRST} at this "
        "horizon: their widths, or their p, explore all the time."
    )


def _locked(widths: Mapping[float, Float64], seeds: Seeds) -> str:
    """Show what too small a width does to LinUCB."""
    rng, said = seeds.rng("intervals of widths"), []
    for alpha, regret in widths.items():
        end, ratio = bootstrap(lambda r: r.mean(-1), regret[:, 2], rng=rng), _doubling(regret, rng)
        said.append(f"alpha = {alpha:g} regrets {end:.0f}, and grows by {ratio:.2f} from one doubling of t to the next")
    return (
        f"LinUCB on {len(next(iter(widths.values())))} problems of {FIRST}, T = 20,000: {'; '.join(said)} (1 if "
        "logarithmic, 2 if linear). Too small a width locks in a wrong arm."
    )


def _doubling(regret: Float64, rng: np.random.Generator) -> Estimate:
    quarter, half, end = regret.T
    return bootstrap(lambda e, h: e.mean(-1) / np.maximum(h.mean(-1), 1e-12), end - half, half - quarter, rng=rng)


def _how(arenas: Sequence[str], horizon: int, runs: int) -> str:
    return (
        f"T = {horizon:,} (a third of that for 20 x 30), {runs} draws of each problem, the same for all policies; "
        "constants tuned on other draws. "
        f"Regret is relative to uniform play on the same draws, the geometric mean over {', '.join(arenas)}. Policies "
        "with a row for each context cannot be run where contexts do not repeat. Those that learn from one bit are "
        "told whether the arm was the best, without noise, and are ranked apart."
    )


def _percent(estimate: Estimate | None) -> str:
    if estimate is None:
        return "-"
    return f"{estimate.value:.3g} [{estimate.low:.3g} to {estimate.high:.3g}]"


def _summary(
    ranks: Mapping[str, Rank], overall: Mapping[str, Estimate | None], arenas: Sequence[str], seeds: Seeds
) -> Table:
    rows = []
    for place, rank in enumerate(_ordered(ranks, overall), start=1):
        worst = math.exp(np.mean([math.log(max(each.worst, 1e-12)) for each in rank.standings.values()]))
        cost, fits = rank.cost, len(rank.standings)
        some = "" if fits == len(arenas) else f" ({fits} of {len(arenas)} worlds)"
        rows.append(
            (
                rank.name,
                "" if rank.family == "one bit" else str(place),
                rank.family,
                _percent(overall[rank.name]) + some,
                f"{worst:.2g}",
                _percent(relative(rank, "theory", seeds)),
                f"{1e6 * cost.seconds:.2g}",
                f"{cost.nbytes:,}",
            )
        )
    head = (
        "policy",
        "place",
        "kind",
        "regret, tuned",
        "worst of the grid",
        "regret, theory's constants",
        "µs a step",
        "bytes",
    )
    caption = "Regret relative to uniform play with 95 % intervals; cost at K = 6, d = 3"
    return Table(caption=caption, head=head, rows=tuple(rows))


def _by_arena(
    ranks: Mapping[str, Rank], overall: Mapping[str, Estimate | None], arenas: Sequence[str], seeds: Seeds
) -> Table:
    rows = tuple(
        (rank.name, *(_percent(relative(rank, "tuned", seeds, [arena])) for arena in arenas))
        for rank in _ordered(ranks, overall)
    )
    return Table(caption="Regret with tuned constants, world by world", head=("policy", *arenas), rows=rows)


def _growth(ranks: Mapping[str, Rank]) -> Table:
    rows = tuple(
        (
            rank.name,
            *(f"{rank.cost.time_growth[kind]:.2f}" for kind in ("t", "d", "K")),
            *(f"{rank.cost.bytes_growth[kind]:.2f}" for kind in ("t", "d", "K")),
        )
        for rank in ranks.values()
    )
    head = ("policy", "time in t", "time in d", "time in K", "bytes in t", "bytes in d", "bytes in K")
    return Table(
        caption="Exponents of growth between two sizes: 0 does not grow, 1 in proportion", head=head, rows=rows
    )


def _plot(ranks: Mapping[str, Rank], overall: Mapping[str, Estimate | None], arenas: Sequence[str]) -> plots.Picture:
    points = [
        Point(rank.name if rank.name in NAMED else str(place), 1e6 * rank.cost.seconds, found, rank.family)
        for place, rank in enumerate(_ordered(ranks, overall), start=1)
        if (found := overall[rank.name]) is not None
        if len(rank.standings) == len(arenas) and rank.family != "one bit"
    ]
    return plots.picture(
        scatter(points, xlabel="microseconds a step", ylabel="regret / uniform"),
        key="leaderboard",
        alt="Regret of every policy relative to uniform play against the time of a step, both on log scales",
        caption=(
            "Regret with tuned constants against the time of a step, for policies that fit every world; a number is a "
            "place in the table. Algorithm 1, LinUCB, OFUL, Thompson sampling and the OLS bandit are compiled."
        ),
    )
