"""What simulations in a folder found, as one page: regret against time, and what every policy paid."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from armlet.disk import write_atomically
from armlet.inference.intervals import band
from armlet.model_file.encoding import Json
from armlet.parallel.seeds import Seeds
from armlet.report import plots
from armlet.report.document import check_pictures, document, figure
from armlet.report.numbers import show
from armlet.report.tables import Table, table
from armlet.simulation.folder import read
from armlet.simulation.manifest import ResultsError, read_manifest
from armlet.simulation.ranking import Place, describe, exact, rank
from armlet.simulation.results import Result
from armlet.types import Float64

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
    """Give the page: a figure of all curves, and a table, least regret first."""
    check_pictures([shown])
    world, runs = describe(results[0].settings["world"]), sum(len(each.runs) for each in results)
    subtitle = f"{world}: {runs} runs in all, up to step {results[0].steps[-1]:,}."
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
