"""Policies of one environment in the order of their regret, and the page of a folder of results."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from armlet.disk import Json, write_atomically
from armlet.environments import ENVIRONMENTS
from armlet.inference.intervals import SHORTEST, band, doubling_ratio, paired_difference
from armlet.parallel import Seeds
from armlet.policies import POLICIES, plugged_policies
from armlet.report import plots
from armlet.report.document import Table, check_pictures, document, figure, table
from armlet.report.numbers import show
from armlet.simulation.lab import ResultsError, read_manifest
from armlet.simulation.results import Result
from armlet.simulation.run import read
from armlet.types import Estimate, Float64


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
    def is_told(self) -> bool:
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
            told = [f"{key}={value!r}" for key, value in short.items() if usual.get(key) != value]
            return f"{name}({', '.join(told)})"
        case {"name": str(name)}:
            return name
    return str(thing)


def _defaults(name: str) -> dict[str, object]:
    kind = POLICIES.get(name) or ENVIRONMENTS.get(name) or plugged_policies().get(name)
    return {field.name: field.default for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else {}


TITLE = "What simulations found"
PAGE = Seeds(0, "page")  # the same folder gives the same page


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
    """Draw the regret of every policy against log t."""
    rng, names = PAGE.rng("curve intervals"), [describe(each.settings["policy"]) for each in results]
    curves = [
        plots.Curve(name, each.steps.astype(np.float64), _spread(each, rng))
        for name, each in zip(names, results, strict=True)
    ]
    # playing at random soon leaves the frame, or the others would be flat lines at the bottom
    tops = [curve.band[2, -1] for curve, name in zip(curves, names, strict=True) if not name.startswith("Uniform(")]
    return plots.picture(
        plots.regret(curves, top=1.08 * float(max(tops)) if tops and max(tops) > 0 else None),
        key="regret",
        alt=f"Cumulative regret against log t of {', '.join(names)}",
        caption="Mean regret over runs with 95 % intervals; a logarithm is a straight line.",
    )


def render_overview(results: Sequence[Result], manifest: dict[str, Json], shown: plots.Picture) -> str:
    """Return the page: a figure of all curves, and a table, least regret first."""
    check_pictures([shown])
    environment, runs = describe(results[0].settings["environment"]), sum(len(each.runs) for each in results)
    subtitle = f"{environment}: {runs} runs in all, up to step {results[0].steps[-1]:,}."
    rows = tuple(_row(place, number) for number, place in enumerate(rank(results)))
    head = (
        "Policy",
        "Regret at T",
        "More than the first, paired",
        "Paid exploring",
        "Explored steps",
        "Doubling ratio",
    )
    found = Table(caption="At the end of the runs, with 95 % intervals", head=head, rows=rows)
    return document(TITLE, subtitle, [figure(shown), table(found)], manifest)


def _spread(result: Result, rng: np.random.Generator) -> Float64:
    return band(result.regret, rng) if len(result.runs) > 1 else np.repeat(result.regret, 3, axis=0)


def _row(place: Place, number: int) -> tuple[str, ...]:
    found = place.result
    paid, explored = (show(exact(float(curve[:, -1].mean()))) for curve in (found.exploring, found.explored))
    return place.name, show(place.regret), show(place.more) if number else "", paid, explored, show(place.ratio)
