"""What simulations in a folder found, as one page: regret against time, and what every policy paid."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np

from armlet.core.files.disk import write_atomically
from armlet.core.files.encoding import Json
from armlet.core.intervals import Estimate, band
from armlet.core.types import Float64
from armlet.environments import ENVIRONMENTS
from armlet.parallel.seeds import Seeds
from armlet.policies import POLICIES
from armlet.report import plots
from armlet.report.document import check_pictures, document, figure
from armlet.report.numbers import show
from armlet.simulation.folder import read
from armlet.simulation.growth import SHORTEST, doubling_ratio
from armlet.simulation.manifest import ResultsError, read_manifest
from armlet.simulation.results import Result

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
    """Give the page: a figure of all curves, and a table."""
    check_pictures([shown])
    rng, names = PAGE.rng("table intervals"), [describe(each.settings["policy"]) for each in results]
    world, runs = describe(results[0].settings["world"]), sum(len(each.runs) for each in results)
    subtitle = f"{world}: {runs} runs in all, up to step {results[0].steps[-1]:,}."
    rows = [_row(name, each, rng) for name, each in zip(names, results, strict=True)]
    names_of_columns = ("Policy", "Regret at T", "Paid exploring", "Explored steps", "Doubling ratio")
    head = "".join(f'<th scope="col">{name}</th>' for name in names_of_columns)
    table = f"<table><caption>At the end of the runs, with 95 % intervals</caption><thead><tr>{head}</tr></thead>"
    return document(TITLE, subtitle, [figure(shown), table, "<tbody>", *rows, "</tbody></table>"], manifest)


def describe(thing: Json) -> str:
    """Name a world or policy with its settings, without long ones and those left at their default.

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
    kind = POLICIES.get(name) or ENVIRONMENTS.get(name)
    return {field.name: field.default for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else {}


def _spread(result: Result, rng: np.random.Generator) -> Float64:
    return band(result.regret, rng) if len(result.runs) > 1 else np.repeat(result.regret, 3, axis=0)


def _row(name: str, result: Result, rng: np.random.Generator) -> str:
    several = len(result.runs) > 1
    regret = result.estimate(int(result.steps[-1]), rng) if several else _exact(float(result.mean[-1]))
    long = several and result.steps[-1] >= SHORTEST
    ratio = doubling_ratio(result.steps, result.regret, rng) if long else None
    paid, explored = (show(_exact(float(curve[:, -1].mean()))) for curve in (result.exploring, result.explored))
    cells = (show(regret), paid, explored, show(ratio))
    told = "".join(f'<td class="number">{escape(cell)}</td>' for cell in cells)
    return f'<tr><th scope="row">{escape(name)}</th>{told}</tr>'


def _exact(value: float) -> Estimate:
    return Estimate(value, value, value)
