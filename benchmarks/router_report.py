"""The tables and the figure of router.py: who has the better quality within a budget, by how much, and what that costs.

Budgets are missed a little, by one more than by another, and quality is bought with money. So differences are taken at
equal money: quality - price * (cost - budget), where the price is what a dollar buys at this budget by mixing models
without any context, read off the validation half. Best choices in hindsight are there for scale, and know more than
any router can: the linear one is fitted to all answers of the prompts that it then routes, the oracle has read every
answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from armlet.report import plots
from armlet.types import Float64
from budgets import interval

if TYPE_CHECKING:
    from router import Data, Played, Player, Scene


OVER = 0.02  # of a budget: more is overspent


class Mix(NamedTuple):
    """The best mix of models at a budget: its quality, and what one dollar more would add."""

    quality: float
    price: float


def best_mix(quality: Float64, cost: Float64, budget: float) -> Mix:
    """Return the best random mix of models of such mean qualities and costs, (K,), that costs no more than the budget.

    Below the cheapest model it is that one, and a dollar is worth what it is there; above the best one a dollar is
    worth nothing.
    """
    hull = [int(cost.argmin())]
    while (slopes := _slopes(quality, cost, hull[-1])).max(initial=0.0) > 0.0:
        hull.append(int(slopes.argmax()))
    for low, high in pairwise(hull):
        if budget <= cost[high]:
            slope = (quality[high] - quality[low]) / (cost[high] - cost[low])
            return Mix(float(quality[low] + slope * max(budget - cost[low], 0.0)), float(slope))
    return Mix(float(quality[hull[-1]]), 0.0)


def _slopes(quality: Float64, cost: Float64, at: int) -> Float64:
    """Return what a dollar buys on the way to each dearer model, (K,); 0 for the others."""
    dearer = cost > cost[at]
    return np.where(dearer, (quality - quality[at]) / np.where(dearer, cost - cost[at], 1.0), 0.0)


def best_price(quality: Float64, cost: Float64, guess: tuple[Float64, Float64], budget: float) -> float:
    """Return the quality of the lowest fixed price of a dollar under which the guesses, (n, K), keep the budget."""
    for price in np.append(0.0, np.geomspace(1e-2, 1e6, 2000)):
        arms = np.argmax(guess[0] - price * guess[1], axis=1)
        at = np.arange(len(arms)), arms
        if cost[at].mean() <= budget:
            return float(quality[at].mean())
    return float("nan")  # the cheapest models cost more


def fitted(X: Float64, outcomes: Float64) -> Float64:
    """Return what a linear model of each column says of the rows that it was fitted to."""
    return np.asarray(X @ np.linalg.lstsq(X, outcomes, rcond=None)[0])


class Report:
    """What was played in one scene."""

    def __init__(self, scene: Scene, data: Data, budgets: Sequence[float], n_seeds: int) -> None:
        self.scene, self.data, self.budgets, self.n_seeds = scene, data, budgets, n_seeds
        self.played: dict[str, list[Played]] = {}  # by player: budget by budget, seed by seed
        scale = scene.scale or 1.0
        first, test = data.first, slice(data.n_validation, None)
        self.means = data.quality[first].mean(axis=0), data.cost[first].mean(axis=0) * scale
        self.answers = data.X[test], data.quality[test], data.cost[test] * scale

    def add(self, player: Player, played: list[Played]) -> None:
        """Take in what a player did."""
        self.played[player.name] = played

    def each(self, played: Sequence[Played], take: Callable[[Played, float], float]) -> Float64:
        """Return a figure of every run, (budgets, seeds)."""
        budgets = np.repeat(self.budgets, self.n_seeds).tolist()
        found = [take(one, budget) for one, budget in zip(played, budgets, strict=True)]
        return np.array(found).reshape(len(self.budgets), self.n_seeds)

    def mean(self, name: str, take: Callable[[Played], float]) -> Float64:
        """Return a figure of a player by budget, its mean over seeds."""
        return self.each(self.played[name], lambda one, _: take(one)).mean(axis=1)

    def at_equal_money(self, played: Sequence[Played]) -> Float64:
        """Return quality as if the budget had been met, (budgets, seeds)."""
        price = {budget: best_mix(*self.means, budget).price for budget in self.budgets}
        return self.each(played, lambda one, budget: one.quality - price[budget] * (one.cost - budget))

    def spends(self, played: Sequence[Played]) -> Float64:
        """Return spend over budget, (budgets, seeds)."""
        return self.each(played, lambda one, budget: one.cost / budget)

    def differences(self, ours: str = "Armlet") -> dict[str, list[tuple[float, float, float]]]:
        """Return by how much we are ahead of each other player, at equal money: mean and interval by budget."""
        own = self.at_equal_money(self.played[ours])
        others = {name: self.at_equal_money(each) for name, each in self.played.items() if name != ours}
        return {name: [interval(row) for row in (own - each).tolist()] for name, each in others.items()}

    def hindsight(self) -> dict[str, list[float]]:
        """Return the quality of the best choices in hindsight, on all prompts of the test half, by budget."""
        X, quality, cost = self.answers
        guess = fitted(X, quality), fitted(X, cost)
        return {
            "best mix": [best_mix(quality.mean(axis=0), cost.mean(axis=0), one).quality for one in self.budgets],
            "best fixed price": [best_price(quality, cost, guess, one) for one in self.budgets],
            "oracle": [best_price(quality, cost, (quality, cost), one) for one in self.budgets],
        }

    def quality_table(self) -> str:
        """Write quality a prompt, and spend over budget, by budget and player."""
        qualities = {name: self.mean(name, lambda one: one.quality) for name in self.played}
        costs = {name: self.mean(name, lambda one: one.cost) for name in self.played}
        scale = self.hindsight()
        rows = {
            dollars(budget): [
                *(f"{qualities[name][i]:.4f} ({costs[name][i] / budget:.2f})" for name in self.played),
                *("-" if np.isnan(column[i]) else f"{column[i]:.4f}" for column in scale.values()),
            ]
            for i, budget in enumerate(self.budgets)
        }
        return table("budget", [*self.played, *scale], rows)

    def difference_table(self) -> str:
        """Write by how much Armlet is ahead."""
        found = self.differences()
        rows = {dollars(budget): [signed(each[i]) for each in found.values()] for i, budget in enumerate(self.budgets)}
        return table("budget", [f"over {name}" for name in found], rows)

    def spend_table(self) -> str:
        """Write spend over budget with its spread over seeds."""
        spends = {name: self.spends(each) for name, each in self.played.items()}
        rows = {
            dollars(budget): [f"{s[i].mean():.3f} ({s[i].min():.2f} to {s[i].max():.2f})" for s in spends.values()]
            for i, budget in enumerate(self.budgets)
        }
        return table("budget", list(spends), rows)

    def share_table(self, model: int) -> str:
        """Write which share of prompts a model got."""
        shares = {name: self.mean(name, lambda one: float(one.shares[model])) for name in self.played}
        rows = {dollars(one): [f"{each[i]:.2f}" for each in shares.values()] for i, one in enumerate(self.budgets)}
        return table("budget", list(self.played), rows)

    def verdict(self, rival: str, ours: str = "Armlet") -> list[str]:
        """Say at how many budgets we are ahead of a rival, at equal money, and who overspends at how many."""
        found = self.differences(ours)[rival]
        ahead, behind = sum(low > 0.0 for _, low, _ in found), sum(high < 0.0 for _, _, high in found)
        means = [mean for mean, _, _ in found]
        over = [sum(self.spends(self.played[name]).mean(axis=1) > 1.0 + OVER) for name in (ours, rival)]
        counts = [ahead, len(found) - ahead - behind, behind]
        return [*map(str, counts), f"{min(means):+.4f} to {max(means):+.4f}", *map(str, over)]


def dollars(budget: float) -> str:
    """Write a budget as dollars for a thousand prompts."""
    return f"${1000 * budget:.3g}"


def signed(found: tuple[float, float, float]) -> str:
    return "{:+.4f} [{:+.4f}, {:+.4f}]".format(*found)


def table(corner: str, heads: Sequence[str], rows: Mapping[str, Sequence[str]]) -> str:
    lines = [[corner, *heads], ["---"] * (len(heads) + 1), *([name, *cells] for name, cells in rows.items())]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cpu_table(reports: Mapping[Any, Report]) -> str:
    """Write microseconds a prompt, over all runs of each name."""
    us: dict[str, list[float]] = {}
    for report in reports.values():
        for name, played in report.played.items():
            us.setdefault(name.split(",")[0], []).extend(one.us for one in played)
    return table("", ["CPU a prompt, us"], {name: [f"{np.median(each):.1f}"] for name, each in us.items()})


def picture(report: Report, models: Sequence[str]) -> plots.Picture:
    """Draw quality against spend, a point for each budget."""
    shown = [name for name in report.played if name != "Armlet, known prices"]
    with plots.frame(height=3.4, labels=[*shown, "best fixed price in hindsight", "best mix in hindsight"]) as (
        figure,
        axes,
    ):
        for index, name in enumerate(shown):
            cost, quality = report.mean(name, lambda one: one.cost), report.mean(name, lambda one: one.quality)
            axes.plot(1000 * cost, quality, label=name, **(plots.line_style(index) | plots.point_style(index)))
        scale = report.hindsight()
        for name, dash in (("best fixed price", 2), ("best mix", 4)):
            known = [one for one in zip(report.budgets, scale[name], strict=True) if np.isfinite(one[1])]
            x, y = (np.array(part) for part in zip(*known, strict=True))
            axes.plot(1000 * x, y, label=f"{name} in hindsight", color=plots.GREY, linestyle=plots.DASHES[dash])
        stars = zip(
            models, *(each.mean(axis=0) for each in report.answers[1:]), ((9, -3), (-6, 5), (4, 9)), strict=True
        )
        for model, quality, cost, off in stars:
            axes.plot(1000 * cost, quality, marker="*", color=plots.GREY, markersize=9)
            side = "left" if off[0] > 5 else "right"
            axes.annotate(model, (1000 * cost, quality), off, textcoords="offset points", ha=side, fontsize=10)
        axes.margins(y=0.09)
        axes.set(xscale="log", xlabel="spent, $ for a thousand prompts (log scale)", ylabel="quality a prompt")
        axes.yaxis.set_major_formatter(lambda value, _: plots.short(value))
        plots.plain_numbers(axes.xaxis)
        plots.legend(figure, axes)
    words = "Quality against spend at seven budgets; the stars are the models by themselves."
    return plots.picture(figure, key="router", alt="Quality against spend, one line a router", caption=words)


def verdict_table(reports: Mapping[Any, Report]) -> str:
    """Write who wins where: Armlet against ParetoBandit, in every scene."""
    heads = ["ParetoBandit", "ahead", "not settled", "behind", "difference", "Armlet overspends", "it overspends"]
    lines = [
        [
            report.scene.name,
            name.removeprefix("ParetoBandit").removeprefix(", ") or "as published",
            *report.verdict(name),
        ]
        for report in reports.values()
        for name in report.played
        if name.startswith("ParetoBandit")
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in [["scene", *heads], ["---"] * 8, *lines])


def write(reports: Mapping[Any, Report], seeds: range, models: Sequence[str], out: Path) -> None:
    """Print everything, and write a file for each part of the page."""
    still = next(iter(reports.values()))
    origin = f"{len(seeds)} seeds, {seeds[0]} to {seeds[-1]}, each another order of the prompts; intervals are 95 %."
    parts = {"verdicts": f"{origin}\n\n{verdict_table(reports)}", "cpu": cpu_table(reports)}
    for scene, report in reports.items():
        tables = ["Quality a prompt (spend / budget):", report.quality_table()]
        tables += ["Armlet's quality less that of others, at equal money:", report.difference_table()]
        if scene.newcomer is not None:
            tables += [f"Share of prompts that {models[scene.newcomer]} got:", report.share_table(scene.newcomer)]
        if report is still:
            tables += ["Spend / budget (least to most over seeds):", report.spend_table()]
        parts[scene.key] = "\n\n".join(tables)
    out.mkdir(parents=True, exist_ok=True)
    for name, text in parts.items():
        print(f"\n## {name}\n\n{text}")
        (out / f"{name}.md").write_text(f"{text}\n")
    (out / "router.svg").write_text(picture(still, models).svg, encoding="utf-8")
