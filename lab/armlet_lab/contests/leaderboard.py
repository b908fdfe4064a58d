"""Every system that the paper names, and what is used today, on the same problems: regret, time and memory.

Each run is another draw of the problem, the same for all policies, with the same contexts and noise. Constants are the
theory's, or the best of a small grid on other draws. Regret is relative to that of uniform play.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from armlet.environments.environment import Environment
from armlet.environments.wrapped import OracleBit
from armlet.inference.intervals import bootstrap
from armlet.parallel import Seeds
from armlet.policies import LinUCB
from armlet.report import plots
from armlet.report.document import Table
from armlet.report.numbers import column, show
from armlet.simulation import play as playing
from armlet.simulation.lab import Arrays, Lab, Scale
from armlet.types import Estimate, Float64
from armlet_lab.contests.contenders import ALL
from armlet_lab.contests.contest import THEORY, Entry, Score, Task, part, play_all, table, tune_and_play
from armlet_lab.contests.costs import Cost, find_costs, judge_costs
from armlet_lab.runner.arena import ARENAS, brief, draw_environment
from armlet_lab.runner.experiment import Claim, Criterion, Experiment, Findings, Outcome, Role, Statistic
from armlet_lab.runner.formulas import two_digits

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OURS: Final = "Algorithm 1"
RIVALS: Final = ("LinUCB", "Thompson sampling")
FIRST: Final = "Figure (a)"
NAMED: Final = (OURS, *RIVALS, "uniform")  # in the plot; the others are numbers
WIDTHS: Final = (0.1, 2.36)  # a small alpha, and that of LinUCB's own formula at delta = 0.05
DIVIDED: Final = {"gaussian 20 x 30": 3}  # some policies take a millisecond a step there

CLAIM: Final = Claim(
    key="leaderboard-regret",
    where="Section 1, contributions",
    says="The regret of Algorithm 1 meets that of the best known algorithms for contextual bandits.",
    reading=(
        "In numbers, not in orders: on Figure (a), tuned, at most half as much again as LinUCB and as Thompson "
        "sampling. Our reading: the same against epoch-greedy with a ridge oracle, whose bound it meets."
    ),
)
WHY: Final = {
    Outcome.HOLDS: "Exploration by schedule costs no more here than by confidence.",
    Outcome.UNDER_READING: (
        "It meets the schedule that it is compared with in the text. Policies that let their uncertainty decide "
        "when to explore, and learn from every step, regret far less in these environments."
    ),
    Outcome.FAILS: "Others regret far less in these environments.",
    Outcome.UNSETTLED: "Some interval crosses the bound: more environments are needed.",
}


CONCLUSIONS: Final = {
    Outcome.HOLDS: "Algorithm 1 regrets as little as LinUCB and Thompson sampling",
    Outcome.UNDER_READING: "Algorithm 1 regrets as little as epoch-greedy, but more than LinUCB and Thompson sampling",
    Outcome.FAILS: "Algorithm 1 regrets more than LinUCB, Thompson sampling and epoch-greedy",
    Outcome.UNSETTLED: "these runs leave open how much Algorithm 1 regrets next to others",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Each contender in each arena: `trials` of its settings on other problems, then `runs` with the best of them."""

    arenas: tuple[str, ...] = tuple(ARENAS)
    horizon: int = 3000
    runs: int = 6
    trials: int = 2  # runs for each setting of a grid
    timed: tuple[int, int] = (200, 2000)  # steps before a policy is timed


SCALES: Final[dict[Scale, Settings]] = {
    "quick": Settings(arenas=("Figure (a)", "Section 7"), horizon=1000, runs=4, trials=1, timed=(100, 1000)),
    "full": Settings(),
}


def play(task: Task) -> Arrays:
    """Play each problem of a task once: regret, (runs,)."""
    return {"regret": np.array([_play_one(task, problem) for problem in task.draws])}


def _play_one(task: Task, problem: int) -> float:
    environment, contender = draw_environment(task.environment, task.seeds, problem), ALL[task.player]
    policy = contender.settle(brief(environment, task.horizon), None if task.choice == THEORY else task.choice)
    met: Environment = OracleBit(environment=environment) if contender.family == "one bit" else environment
    seed = task.seeds.seed("runs", task.environment, problem)
    job = playing.Job(environment=met, policy=policy, horizon=task.horizon, runs=1, seed=seed, method="python")
    return float(playing.play(job, 0).regret[-1])


def play_width(task: Task) -> Arrays:
    """Return the regret of LinUCB with one alpha at T/4, T/2 and T: (runs, 3)."""
    parts, out = tuple(task.horizon // part for part in (4, 2, 1)), []
    for run in task.draws:
        environment = draw_environment(task.environment, task.seeds, run)
        policy, seed = LinUCB(alpha=WIDTHS[task.choice], units="as given"), task.seeds.seed("runs of a width", run)
        job = playing.Job(
            environment=environment, policy=policy, horizon=task.horizon, runs=1, seed=seed, checkpoints=parts
        )
        out.append(playing.play(job, 0).regret)
    return {"regret": np.array(out)}


def run(lab: Lab) -> Findings:
    """Run the contest at the lab's scale."""
    return find(SCALES[lab.scale], lab)


def find(settings: Settings, lab: Lab) -> Findings:
    """Choose constants, play, time and rank."""
    s, seeds = settings, lab.seeds
    briefs = {arena: brief(draw_environment(arena, seeds), s.horizon) for arena in s.arenas}
    entries = [
        Entry(
            Task(seeds=seeds, environment=arena, horizon=s.horizon // DIVIDED.get(arena, 1), player=name),
            runs=s.runs,
            trials=s.trials,
            settings=len(contender.values),
            theory=contender.theory is not None,
        )
        for arena in s.arenas
        for name, contender in ALL.items()
        if contender.fits(briefs[arena])
    ]
    scores = tune_and_play(lab, play, entries, "Leaderboard", f"{len(ALL)} policies in {len(s.arenas)} environments")
    widths = {
        alpha: [Task(seeds=seeds, environment=FIRST, horizon=20_000, runs=20, choice=i)]
        for i, alpha in enumerate(WIDTHS)
    }
    locked = play_all(lab, "widths", play_width, widths, "Leaderboard: LinUCB with a small and a large alpha")
    costs = find_costs(s.timed, lab)
    by_place = {(each.task.environment, each.task.player): score for each, score in scores.items()}
    ranks = {name: _rank(name, by_place, s.arenas, costs[name]) for name in ALL}
    return judge(ranks, s, seeds, {alpha: columns["regret"] for alpha, columns in locked.items()})


EXPERIMENT: Final = Experiment("leaderboard", "Leaderboard: every system the paper names, regret and cost", run)


# --- what follows ----------------------------------------------------------------------------------------------------


class Standing(NamedTuple):
    """Regret in one arena, one number a run; the same runs for all policies."""

    tuned: Float64
    theory: Float64 | None
    uniform: Float64
    worst: float = 1.0  # mean regret of the worst choice of the grid relative to uniform play, on other problems


class Rank(NamedTuple):
    """One policy in all arenas where it fits."""

    name: str
    family: str
    standings: Mapping[str, Standing]
    cost: Cost


def _rank(name: str, scores: Mapping[tuple[str, str], Score], arenas: Sequence[str], cost: Cost) -> Rank:
    standings = {}
    for arena in arenas:
        if (arena, name) in scores:
            mine, uniform = scores[arena, name], scores[arena, "uniform"]
            worst = float(mine.tried.max() / uniform.tried[0])
            standings[arena] = Standing(mine.tuned, mine.theory, uniform.tuned, worst)
    return Rank(name, ALL[name].family, standings, cost)


def relative(rank: Rank, constants: str, seeds: Seeds, arenas: Iterable[str] | None = None) -> Estimate | None:
    """Return regret relative to uniform play: the geometric mean over arenas of ratios of means, paired by run."""
    chosen = [rank.standings[name] for name in arenas or rank.standings if name in rank.standings]
    pairs = [(getattr(each, constants), each.uniform) for each in chosen]
    if not pairs or any(mine is None for mine, _ in pairs):
        return None

    def middle(*columns: Float64) -> Float64:
        means = [np.maximum(column.mean(axis=-1), 1e-12) for column in columns]
        logs = [np.log(mine / theirs) for mine, theirs in zip(means[::2], means[1::2], strict=True)]
        out: Float64 = np.exp(np.mean(logs, axis=0))
        return out

    return bootstrap(middle, *(column for pair in pairs for column in pair), rng=seeds.rng("relative intervals"))


def _ratio(above: Float64, below: Float64, rng: np.random.Generator) -> Estimate:
    return bootstrap(lambda a, b: a.mean(-1) / np.maximum(b.mean(-1), 1e-12), above, below, rng=rng)


def judge(ranks: Mapping[str, Rank], settings: Settings, seeds: Seeds, widths: Mapping[float, Float64]) -> Findings:
    """Rank, draw and judge; `widths` is the regret of LinUCB at T/4, T/2 and T by its alpha."""
    overall = {name: relative(rank, "tuned", seeds) for name, rank in ranks.items()}
    ordered = sorted(ranks.values(), key=lambda rank: (rank.family == "one bit", _value(overall[rank.name])))
    asked = {**dict.fromkeys(RIVALS, Role.WRITTEN), "epoch-greedy, ridge": Role.READING}
    tuned = {name: ranks[name].standings[FIRST].tuned for name in (OURS, *asked)}
    ratios = {name: _ratio(tuned[OURS], tuned[name], seeds.rng("intervals")) for name in asked}
    statistics = [
        Statistic(f"regret relative to {name}", ratios[name], Criterion("below", 1.5), role)
        for name, role in asked.items()
    ]
    first = {name: relative(rank, "tuned", seeds, [FIRST]) for name, rank in ranks.items()}
    theory = {name: relative(rank, "theory", seeds, [FIRST]) for name, rank in ranks.items()}
    notes = (_headline(ordered, overall, first), _worse(first), _idle(theory), _locked(widths, seeds), _how(settings))
    regret = part(
        CLAIM,
        "Algorithm 1 regrets as little as the best known algorithms",
        statistics,
        _summary(ordered, overall, settings, seeds),
        table(
            "Regret with tuned constants, environment by environment",
            "policy",
            {
                arena: _column({rank.name: relative(rank, "tuned", seeds, [arena]) for rank in ordered})
                for arena in settings.arenas
            },
        ),
        notes=notes,
        pictures=[_picture(ordered, overall, settings)],
        why=WHY,
        conclusions=CONCLUSIONS,
    )
    return Findings.of([regret, judge_costs({name: rank.cost for name, rank in ranks.items()})])


def _value(estimate: Estimate | None) -> float:
    return math.inf if estimate is None else estimate.value


def _column(found: Mapping[str, Estimate | None]) -> dict[str, str]:
    written = zip(found.items(), column(found.values()), strict=True)
    return {name: "-" if each is None else text for (name, each), text in written}


def _headline(
    ordered: Sequence[Rank], overall: Mapping[str, Estimate | None], first: Mapping[str, Estimate | None]
) -> str:
    micros = {rank.name: f"{two_digits(1e6 * rank.cost.seconds)} µs" for rank in ordered}
    ranked = [rank.name for rank in ordered if rank.family != "one bit"]
    rivals = "; ".join(f"{name} {show(overall[name])} at {micros[name]}" for name in RIVALS)
    here = "; ".join(f"{show(first[name])} ({name})" for name in (OURS, *RIVALS))
    beaten = _value(overall[OURS]) > min(_value(overall[name]) for name in RIVALS)
    return (
        f"Tuned, Algorithm 1 regrets {show(overall[OURS])} of uniform play at {micros[OURS]} a "
        f"step, place {ranked.index(OURS) + 1} of {len(ranked)}; {rivals}. On Figure (a): {here}."
    ) + (" It is cheap, mergeable and leaves clean data; it does not regret least." if beaten else "")


def _worse(first: Mapping[str, Estimate | None]) -> str:
    worse = [f"{name} ({show(each)})" for name, each in first.items() if each and each.low > 1 and name != "uniform"]
    if not worse:
        return f"On {FIRST} no tuned policy is found worse than uniform play."
    return f"Found worse than uniform play on {FIRST} even when tuned: {'; '.join(worse)}."


def _idle(theory: Mapping[str, Estimate | None]) -> str:
    """Name the policies whose theory explores forever."""
    idle = [name for name, found in theory.items() if found and found.high > 0.9]
    return (
        f"With the theory's constants, {'; '.join(idle) or 'no policy'} cannot be told from uniform play on {FIRST} at "
        "this horizon: their widths, or their p, explore all the time."
    )


def _locked(widths: Mapping[float, Float64], seeds: Seeds) -> str:
    """Show what too small a width does to LinUCB."""
    rng, said = seeds.rng("intervals of widths"), []
    for alpha, regret in widths.items():
        quarter, half, end = regret.T
        total = bootstrap(lambda r: r.mean(-1), regret[:, 2], rng=rng)
        grows = _ratio(end - half, half - quarter, rng)
        said.append(
            rf"$\alpha = {alpha:g}$ regrets {total:,.0f}, and grows by {grows:.2f} from one doubling of $t$ to the next"
        )
    return (
        f"LinUCB in {len(next(iter(widths.values())))} environments of {FIRST}, $T = 20,000$: {'; '.join(said)} (1 if "
        "logarithmic, 2 if linear). Too small a width locks in a wrong arm."
    )


def _how(settings: Settings) -> str:
    return (
        rf"$T = {settings.horizon:,}$ (a third of that for 20 x 30), {settings.runs} draws of each environment, the "
        "same for all policies; constants tuned on other draws. Regret is relative to uniform play on the same draws, "
        f"the geometric mean over {'; '.join(settings.arenas)}. Policies with a row for each context cannot be run "
        "where contexts do not repeat. Those that learn from one bit are told whether the arm was the best, without "
        "noise, and are ranked apart."
    )


def _summary(
    ordered: Sequence[Rank], overall: Mapping[str, Estimate | None], settings: Settings, seeds: Seeds
) -> Table:
    n, columns = len(settings.arenas), {}
    tuned = _column({rank.name: overall[rank.name] for rank in ordered})
    theory = _column({rank.name: relative(rank, "theory", seeds) for rank in ordered})
    for place, rank in enumerate(ordered, start=1):
        worst = math.exp(np.mean([math.log(max(each.worst, 1e-12)) for each in rank.standings.values()]))
        some = "" if (fits := len(rank.standings)) == n else f" ({fits} of {n} environments)"
        columns[rank.name] = {
            "place": "" if rank.family == "one bit" else str(place),
            "kind": rank.family,
            "regret, tuned": tuned[rank.name] + some,
            "worst of the grid": f"{worst:.2f}",
            "regret, theory's constants": theory[rank.name],
            "µs a step": two_digits(1e6 * rank.cost.seconds),
            "bytes": f"{rank.cost.nbytes:,}",
        }
    caption = "Regret relative to uniform play with 95 % intervals; cost at $K = 6$, $d = 3$"
    rows = tuple((name, *cells.values()) for name, cells in columns.items())
    return Table(caption=caption, head=("policy", *next(iter(columns.values()))), rows=rows)


# --- the figure ------------------------------------------------------------------------------------------------------


class Point(NamedTuple):
    """A named thing with what it costs and what it comes to."""

    label: str
    x: float
    y: Estimate
    kind: str = ""  # points of one kind look alike

    def near(self, other: Point) -> bool:
        """Return whether labels of both would touch."""
        return abs(math.log(self.x / other.x)) < 0.35 and abs(math.log(self.y.value / other.y.value)) < 0.2


def _picture(ordered: Sequence[Rank], overall: Mapping[str, Estimate | None], settings: Settings) -> plots.Picture:
    points = [
        Point(rank.name if rank.name in NAMED else str(place), 1e6 * rank.cost.seconds, found, rank.family)
        for place, rank in enumerate(ordered, start=1)
        if (found := overall[rank.name]) is not None
        if len(rank.standings) == len(settings.arenas) and rank.family != "one bit"
    ]
    return plots.picture(
        scatter(points, xlabel="microseconds a step", ylabel="regret / uniform"),
        key="leaderboard",
        alt="Regret of every policy relative to uniform play against the time of a step, both on log scales",
        caption=(
            "Regret with tuned constants against the time of a step, for policies that fit everywhere; a number is a "
            "place in the table. Algorithm 1, LinUCB, OFUL, Thompson sampling and the OLS bandit are compiled."
        ),
    )


def scatter(points: Sequence[Point], *, xlabel: str, ylabel: str) -> Figure:
    """Draw named points with their intervals on log-log scales."""
    kinds = list(dict.fromkeys(point.kind for point in points))
    with plots.frame(height=5.4, labels=[kind for kind in kinds if kind]) as (figure, axes):
        axes.set(xscale="log", yscale="log", xlabel=f"{xlabel} (log scale)", ylabel=f"{ylabel} (log scale)")
        for index, kind in enumerate(kinds):
            mine = [point for point in points if point.kind == kind]
            x, y = [point.x for point in mine], np.array([(p.y.value, p.y.low, p.y.high) for p in mine]).T
            bars = np.clip([y[0] - y[1], y[2] - y[0]], 0, None)
            style: dict[str, Any] = {"capsize": 2, **plots.point_style(index)}
            axes.errorbar(x, y[0], bars, linestyle="none", label=kind or None, **style)
        for point, (side, lift) in zip(points, _sides(points), strict=True):
            style = {"textcoords": "offset points", "fontsize": 11.5, "ha": "left" if side > 0 else "right"}
            axes.annotate(point.label, (point.x, point.y.value), (5 * side, lift), **style)
        axes.xaxis.set_major_formatter(lambda value, _: plots.short(value))
        axes.yaxis.set_major_formatter(lambda value, _: plots.short(value))
        if any(kinds):
            plots.legend(figure, axes)
    return figure


def _sides(points: Sequence[Point]) -> list[tuple[int, float]]:
    """Move labels apart: words to the right; numbers too, but to the left and below where neighbours are in the way."""
    placed: list[tuple[int, float]] = []
    for index, point in enumerate(points):
        around = [i for i, other in enumerate(points) if other is not point and point.near(other)]
        before = sum(points[i].label.isdecimal() and i < index for i in around)
        in_the_way = before + any(not points[i].label.isdecimal() for i in around)
        near = in_the_way if point.label.isdecimal() else 0
        placed.append((1 if near % 2 == 0 else -1, 4.0 - 14.0 * (near // 2)))
    return placed
