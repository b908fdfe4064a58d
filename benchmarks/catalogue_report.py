"""The tables and the figure of catalogue.py: regret, what new items cost, who is ahead of whom, and CPU time.

Everything is paired: all players meet the same customers, items and luck on a seed, and intervals are Student's t over
seeds. An item is new while it has been on offer for at most 20 steps; what it costs that nobody knows it yet is seen at
the steps whose best item is new, after the first fifth of a run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from armlet.report import plots
from armlet.types import Bool, Float64, Int64
from budgets import interval
from router_report import table

if TYPE_CHECKING:
    from catalogue import Draws, World

NEW = 20  # steps
POINTS = 60  # of a curve


class Played(NamedTuple):
    """What was measured of a run."""

    regret: float
    curve: Float64  # (POINTS,): regret up to steps T / POINTS, 2 T / POINTS, ...
    new: float  # regret a step where the best item is new
    old: float  # and where it is not
    found: float  # how often that new item is played there
    us: float  # CPU time of a decision and its learning

    @classmethod
    def of(cls, draws: Draws, played: Int64, us: float) -> Self:
        """Measure what was played."""
        best = draws.means.argmax(axis=1)
        at = np.arange(len(played))
        lost = draws.means[at, best] - draws.means[at, played]
        new, late = is_new(draws.offered, best), at >= len(at) // 5
        total = lost.cumsum()
        return cls(
            regret=float(total[-1]),
            curve=total[np.linspace(0, len(total), POINTS + 1).astype(int)[1:] - 1],
            new=float(lost[new & late].mean()),
            old=float(lost[~new & late].mean()),
            found=float((played == best)[new & late].mean()),
            us=us,
        )


def is_new(offered: Int64, place: Int64) -> Bool:
    """Return at which steps the item in a place has come within the last 20 steps; those of the start are old."""
    came = np.vstack([np.zeros((1, offered.shape[1]), dtype=bool), offered[1:] != offered[:-1]])
    since = np.where(came, np.arange(len(offered))[:, None], -NEW - 1)
    age = np.arange(len(offered)) - np.maximum.accumulate(since, axis=0)[np.arange(len(offered)), place]
    found: Bool = age < NEW
    return found


class Report:
    """What was played in one environment: by player, seed by seed."""

    def __init__(self, world: World, ours: str, rivals: Sequence[str]) -> None:
        self.world, self.ours, self.rivals = world, ours, rivals
        self.played: dict[str, list[Played]] = {}

    def each(self, name: str, take: Callable[[Played], float] = lambda one: one.regret) -> Float64:
        """Return a figure of a player on each seed."""
        return np.array([take(one) for one in self.played[name]])

    def regret(self, name: str) -> str:
        """Write a mean and its interval."""
        if name not in self.played:
            return ""
        mean, low, high = interval(self.each(name).tolist())
        return f"{mean:,.0f} ± {(high - low) / 2:,.0f}"

    def verdicts(self) -> list[list[str]]:
        """Write how our regret compares: as a share of what rivals regret, and as a difference."""
        lines = []
        for name in self.rivals:
            own, other = self.each(self.ours), self.each(name)
            difference = interval((own - other).tolist())
            ahead = "less" if difference[2] < 0 else "more" if difference[1] > 0 else "not settled"
            shown = "{:+,.0f} [{:+,.0f}, {:+,.0f}]".format(*difference)
            share = f"{own.mean() / other.mean():.3f}"
            lines.append([self.world.name, name, share, shown, f"{(own < other).sum()} of {len(own)}", ahead])
        return lines


def regret_table(reports: Mapping[str, Report], names: Sequence[str]) -> str:
    heads = [report.world.name for report in reports.values()]
    return table("", heads, {name: [report.regret(name) for report in reports.values()] for name in names})


def new_table(report: Report) -> str:
    """Write what it costs that the best item is new."""
    rows = {
        name: [
            *(f"{report.each(name, take).mean():.3f}" for take in (lambda one: one.new, lambda one: one.old)),
            f"{report.each(name, lambda one: one.found).mean():.1%}",
        ]
        for name in report.played
    }
    return table(report.world.name, ["best item is new: regret a step", "it is not", "new one is played"], rows)


def cpu_table(reports: Mapping[str, Report], names: Sequence[str]) -> str:
    """Write the median CPU time of a step over seeds; uniform play has none."""
    heads = [report.world.name for report in reports.values()]
    rows = {
        name: [
            f"{np.median(report.each(name, lambda one: one.us)):,.0f}" if name in report.played else ""
            for report in reports.values()
        ]
        for name in names
        if any(name in report.played and report.played[name][0].us for report in reports.values())
    }
    return table("CPU a step, us", heads, rows)


def verdict_table(reports: Mapping[str, Report]) -> str:
    heads = ["environment", "against", "our regret / its", "ours less its", "seeds on which ours is less", "verdict"]
    lines = [line for report in reports.values() for line in report.verdicts()]
    return "\n".join(f"| {' | '.join(line)} |" for line in [heads, ["---"] * len(heads), *lines])


def picture(report: Report, names: Mapping[str, str]) -> plots.Picture:
    """Draw regret so far against the step, on logarithmic scales."""
    with plots.frame(height=3.6, labels=list(names.values())) as (figure, axes):
        for index, (name, shown) in enumerate(names.items()):
            curves = np.array([one.curve for one in report.played[name]])
            steps = np.linspace(0, report.world.horizon, POINTS + 1)[1:]
            axes.plot(steps, curves.mean(axis=0), label=shown, **plots.line_style(index))
        axes.set(xscale="log", yscale="log", xlabel="step (log scale)", ylabel="regret so far (log scale)")
        for axis in (axes.xaxis, axes.yaxis):
            plots.plain_numbers(axis)
        plots.legend(figure, axes)
    words = "Regret in a catalogue of 200 items of which one is replaced every second step, mean over seeds."
    return plots.picture(figure, key="catalogue", alt="Regret against steps, one line a policy", caption=words)


def write(reports: Mapping[str, Report], names: Sequence[str], drawn: Mapping[str, str], out: Path) -> None:
    """Print everything, and write a file for each part of the page."""
    counts = {report.world.name: len(next(iter(report.played.values()))) for report in reports.values()}
    seeds_of = ", ".join(f"{name} {count}" for name, count in counts.items())
    origin = f"Seeds from 100 on: {seeds_of}; at most 10 of who is there for scale. Intervals are 95 %, over seeds."
    parts = {
        "verdicts": f"{origin}\n\n{verdict_table(reports)}",
        "regret": regret_table(reports, names),
        "new": "\n\n".join(new_table(report) for report in reports.values() if report.world.key in ("both", "clicks")),
        "cpu": cpu_table(reports, names),
    }
    out.mkdir(parents=True, exist_ok=True)
    for name, text in parts.items():
        print(f"\n## {name}\n\n{text}")
        (out / f"{name}.md").write_text(f"{text}\n")
    (out / "catalogue.svg").write_text(picture(next(iter(reports.values())), drawn).svg, encoding="utf-8")
