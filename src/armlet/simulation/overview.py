"""Policies of one environment in the order of their regret, and the page of a folder of results."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from armlet.disk import Json, write_atomically
from armlet.environments import ENVIRONMENTS
from armlet.inference.intervals import SHORTEST, band, doubling_ratio, paired_difference
from armlet.parallel import Seeds
from armlet.policies import PAIR_POLICIES, POLICIES, plugged_policies
from armlet.report import plots
from armlet.report.document import Section, Table, check_pictures, document, figure, folded_section, table
from armlet.report.numbers import column, show
from armlet.simulation.lab import ResultsError, read_manifest
from armlet.simulation.results import Result
from armlet.simulation.run import read
from armlet.types import Estimate, Float64

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Place(NamedTuple):
    """A policy in a ranking."""

    result: Result
    regret: Estimate  # at T
    more: Estimate | None  # than that of the first, paired by run; None if their runs are not the same
    ratio: Estimate | None  # of doubling; None of runs too few or too short to say

    @classmethod
    def of(cls, result: Result, first: Result) -> Place:
        """Estimate what it regrets, exactly if there is but one run."""
        return cls(result, result.estimate(int(result.steps[-1])), _more(result, first), _ratio(result))

    @property
    def name(self) -> str:
        """The policy and its settings."""
        return describe(self.result.settings["policy"])

    @property
    def has_interval(self) -> bool:
        """Whether it has enough runs for an interval."""
        return len(self.result.runs) > 1


def rank(results: Sequence[Result]) -> list[Place]:
    """Put the least regret first."""
    ordered = sorted(results, key=lambda each: float(each.mean[-1]))
    return [Place.of(each, ordered[0]) for each in ordered]


def _more(result: Result, first: Result) -> Estimate | None:
    T = int(result.steps[-1])
    if int(first.steps[-1]) != T or result.runs.tolist() != first.runs.tolist():
        return None
    if len(result.runs) > 1:
        return paired_difference(result.at(T), first.at(T), result.rng("difference interval"))
    return exact(float(result.mean[-1] - first.mean[-1]))


def _ratio(result: Result) -> Estimate | None:
    if len(result.runs) < 2 or result.steps[-1] < SHORTEST:
        return None
    return doubling_ratio(result.steps, result.regret, result.rng("growth interval"))


def exact(value: float) -> Estimate:
    """Return a number that needs no interval."""
    return Estimate(value, value, value)


def describe(thing: Json) -> str:
    """Name an environment or policy with its settings, without long ones and those left at their default.

    Examples
    --------
    >>> describe({"name": "LinUCB", "settings": {"alpha": 0.5, "delta": 0.05, "theta": [1, 2]}})
    'LinUCB(alpha=0.5)'
    """
    match thing:
        case {"name": str(name), "settings": dict(settings)}:
            usual = _defaults(name)
            short = {key: value for key, value in settings.items() if isinstance(value, str | int | float)}
            changed = [f"{key}={value!r}" for key, value in short.items() if usual.get(key) != value]
            return f"{name}({', '.join(changed)})"
        case {"name": str(name)}:
            return name
    return str(thing)


def _defaults(name: str) -> dict[str, object]:
    kind: object = POLICIES.get(name) or PAIR_POLICIES.get(name) or ENVIRONMENTS.get(name)
    kind = kind or plugged_policies().get(name)
    return {field.name: field.default for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else {}


TITLE = "Policies compared in simulation"
PAGE = Seeds(0, "page")  # the same folder gives the same page


def answer(places: Sequence[Place]) -> str:
    """Return which policy regrets least, by how much, and whether the runs tell it from the next: one sentence."""
    first, T, runs = places[0], int(places[0].result.steps[-1]), len(places[0].result.runs)
    where = describe(first.result.settings["environment"])
    start = f"In {where}, {first.name} regrets least after {T:,} steps"
    if len(places) == 1:
        start = f"In {where}, {first.name} regrets {show(first.regret)} after {T:,} steps"
    if runs == 1:
        return f"{start}, in a single run, which cannot tell it from chance."
    if len(places) == 1:
        return f"{start}, in the mean of {runs:,} runs."
    second = places[1]
    if second.more is None:
        return f"{start}: {show(first.regret)} in the mean of {runs:,} runs; not all of them are finished."
    apart = "these runs tell the two apart" if second.more.low > 0 else "these runs cannot tell the two apart"
    return f"{start}, in the mean of {runs:,} runs; {second.name} regrets {show(second.more)} more: {apart}."


def write_overview(folder: str | os.PathLike[str]) -> Path:
    """Write DIR/report.html and its figure from the results in DIR, finished or not, and give the page's path."""
    results, manifest = read(folder), read_manifest(folder)
    if not results:
        raise ResultsError(f"{folder} holds no finished run yet; run the same command again to go on")
    shown, path = draw(results), Path(folder) / "report.html"
    write_atomically(path, [render_overview(results, manifest, shown).encode()])
    write_atomically(path.with_name("regret.svg"), [shown.svg.encode(), b"\n"])
    write_atomically(path.with_name("regret.png"), [shown.png])
    return path


def draw(results: Sequence[Result]) -> plots.Picture:
    """Draw the regret of every policy against log t for a page: see `draw_figure`."""
    shown, names, outside = draw_figure(results)
    caption = "Mean regret over runs with 95 % intervals; logarithmic growth is a straight line."
    return plots.picture(
        shown,
        key="regret",
        alt=f"Cumulative regret against log t, least first: {', '.join(names)}",
        caption=f"{caption} {outside[0]} leaves the picture." if outside else caption,
    )


def draw_figure(results: Sequence[Result]) -> tuple[Figure, list[str], list[str]]:
    """Draw the regret of every policy, playing at random in grey; also return all names, and those that leave it."""
    rng, ranked = PAGE.rng("curve intervals"), [place.result for place in rank(results)]
    names = [describe(each.settings["policy"]) for each in ranked]
    short = short_names(names)
    curves = [
        plots.Curve(name, each.steps.astype(np.float64), _spread(each, rng))
        for name, each in zip(short, ranked, strict=True)
    ]
    random = {name for name, whole in zip(short, names, strict=True) if whole.startswith("Uniform(")}
    # playing at random soon leaves the frame, or the others would be flat lines at the bottom
    tops = [curve.band[2, -1] for curve in curves if curve.label not in random]
    top = 1.08 * float(max(tops)) if tops and max(tops) > 0 else None
    outside = [c.label for c in curves if c.label in random and top is not None and c.band[0, -1] > top]
    return plots.regret(curves, top=top, grey=random), names, outside


def short_names(names: Sequence[str]) -> list[str]:
    """Shorten names of policies for the ends of their lines: the class alone, or its settings where two share it.

    Examples
    --------
    >>> short_names(["LinUCB(alpha=0.5)", "Algorithm1(p=60)", "Algorithm1(p=600)", "Uniform()"])
    ['LinUCB', 'Algorithm1(p=60)', 'Algorithm1(p=600)', 'Uniform']
    """
    kinds = [name.partition("(")[0] for name in names]
    short = [
        kind if kinds.count(kind) == 1 else name if len(name) <= plots.LONGEST else f"…{name[len(kind) :]}"
        for name, kind in zip(names, kinds, strict=True)
    ]
    return short if len(set(short)) == len(short) else list(names)


def render_overview(results: Sequence[Result], manifest: dict[str, Json], shown: plots.Picture) -> str:
    """Return the page: the answer, a figure of all curves, who follows by how much, and the rest folded."""
    check_pictures([shown])
    places = rank(results)
    parts: list[str | Section] = [
        figure(shown),
        table(_ranking(places)),
        f"<p>{escape(_reading(places))}</p>",
        folded_section("growth", "How they explore, and how fast their regret grows", [table(_growth(places))]),
    ]
    return document(TITLE, answer(places), parts, _made(results, manifest))


def _ranking(places: Sequence[Place]) -> Table:
    regrets, more = column(place.regret for place in places), column(place.more for place in places[1:])
    rows = zip((place.name for place in places), regrets, ["", *more], strict=True)
    caption = f"Regret after {places[0].result.steps[-1]:,} steps, least first, with 95 % intervals"
    return Table(caption=caption, head=("policy", "regret", "more than the first, paired by run"), rows=tuple(rows))


def _reading(places: Sequence[Place]) -> str:
    """Return what the table does not say: how to read a difference, and how many runs there were of what."""
    runs = sorted({len(place.result.runs) for place in places})
    many = f"{runs[0]:,}" if len(runs) == 1 else f"{runs[0]:,} to {runs[-1]:,}"
    surpassed = [
        place.name for place in places[1:] if place.more is not None and place.more.low > 0 and place.has_interval
    ]
    beaten = f"The first is better than {len(surpassed)} of the other {len(places) - 1}" if len(places) > 1 else ""
    rest = " beyond chance" + ("." if len(surpassed) == len(places) - 1 else "; differences of the others may be none.")
    start = f"Every policy met the same contexts and noise in its {many} {'run' if runs == [1] else 'runs'}."
    return f"{start} {beaten}{rest}" if beaten and runs[0] > 1 else start


def _growth(places: Sequence[Place]) -> Table:
    results = [place.result for place in places]
    paid = column(float(each.exploring[:, -1].mean()) for each in results)
    explored = column(float(each.explored[:, -1].mean()) for each in results)
    ratios = column(place.ratio for place in places)
    caption = "[R(T) - R(T/2)] / [R(T/2) - R(T/4)] is 1 if regret grows as log t, 1.41 as the root of t, 2 as t"
    head = ("policy", "regret on explored steps", "explored steps", "doubling ratio")
    rows = zip((place.name for place in places), paid, explored, ratios, strict=True)
    return Table(caption=caption, head=head, rows=tuple(rows))


def _made(results: Sequence[Result], manifest: dict[str, Json]) -> dict[str, object]:
    """Return what made the page: the environment and settings in words, the rest as it is in the manifest."""
    first = results[0].settings
    start: dict[str, object] = {
        "environment": describe(first["environment"]),
        "steps": f"{results[0].steps[-1]:,}",
        "runs": f"{sum(len(each.runs) for each in results):,} in all",
        "seed": str(first["seed"]),
    }
    return {**start, **{name: value for name, value in manifest.items() if name not in start}}


def _spread(result: Result, rng: np.random.Generator) -> Float64:
    return band(result.regret, rng) if len(result.runs) > 1 else np.repeat(result.regret, 3, axis=0)
