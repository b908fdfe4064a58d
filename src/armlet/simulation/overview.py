"""What simulations in a folder found, as one page: regret against time, and what every policy paid."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np

from armlet.core.disk import write_atomically
from armlet.core.files import Json
from armlet.core.intervals import Estimate, band, doubling_ratio
from armlet.report import plots
from armlet.report.document import check_pictures, document, figure
from armlet.report.numbers import show
from armlet.simulation.results import Result
from armlet.simulation.store import ResultsError, read, read_manifest

TITLE = "What simulations found"


def write_overview(folder: str | os.PathLike[str]) -> Path:
    """Write DIR/report.html from the results in DIR, finished or not, and give its path."""
    results, manifest = read(folder), read_manifest(folder)
    if not results:
        raise ResultsError(f"{folder} holds no finished run yet; run the same command again to go on")
    path = Path(folder) / "report.html"
    write_atomically(path, [render_overview(results, manifest).encode()])
    return path


def render_overview(results: Sequence[Result], manifest: dict[str, Json]) -> str:
    """Give the page: a figure of all curves, and a table."""
    rng, names = np.random.default_rng(0), [describe(each.settings["policy"]) for each in results]
    curves = [
        plots.Curve(name, each.steps.astype(np.float64), band(each.regret, rng))
        for name, each in zip(names, results, strict=True)
    ]
    shown = plots.picture(
        plots.regret(curves),
        key="regret",
        alt=f"Cumulative regret against log t of {', '.join(names)}",
        caption="Mean regret over runs with 95 % intervals; a logarithm is a straight line.",
    )
    check_pictures([shown])
    world, runs = describe(results[0].settings["world"]), sum(len(each.runs) for each in results)
    subtitle = f"{world}: {runs} runs in all, up to step {results[0].steps[-1]:,}."
    rows = [_row(name, each, rng) for name, each in zip(names, results, strict=True)]
    names_of_columns = ("Policy", "Regret at T", "Paid exploring", "Explored steps", "Doubling ratio")
    head = "".join(f'<th scope="col">{name}</th>' for name in names_of_columns)
    table = f"<table><caption>At the end of the runs, with 95 % intervals</caption><thead><tr>{head}</tr></thead>"
    return document(TITLE, subtitle, [figure(shown), table, "<tbody>", *rows, "</tbody></table>"], manifest)


def describe(thing: Json) -> str:
    """Name a world or policy with its short settings.

    Examples
    --------
    >>> describe({"name": "Uniform", "settings": {"ridge": "paper", "theta": [1, 2]}})
    "Uniform(ridge='paper')"
    """
    match thing:
        case {"name": str(name), "settings": dict(settings)}:
            short = [f"{key}={value!r}" for key, value in settings.items() if isinstance(value, str | int | float)]
            return f"{name}({', '.join(short)})"
        case {"name": str(name)}:
            return name
    return str(thing)


def _row(name: str, result: Result, rng: np.random.Generator) -> str:
    several = len(result.runs) > 1
    regret = result.estimate(int(result.steps[-1]), rng) if several else _exact(float(result.mean[-1]))
    ratio = doubling_ratio(result.steps, result.regret, rng) if several else None
    paid, explored = (show(_exact(float(curve[:, -1].mean()))) for curve in (result.exploring, result.explored))
    cells = (show(regret), paid, explored, show(ratio))
    told = "".join(f'<td class="number">{escape(cell)}</td>' for cell in cells)
    return f'<tr><th scope="row">{escape(name)}</th>{told}</tr>'


def _exact(value: float) -> Estimate:
    return Estimate(value, value, value)
