"""An advice, the same with all that may be missing missing, and their pages: looked at as text, and in a browser."""

from __future__ import annotations

import dataclasses
import functools
import math
from pathlib import Path

from armlet.advice import Advice, advise
from armlet.advice.pilot import ArmCheck
from armlet.environments import FigureA
from armlet.types import Estimate, Interval


@functools.cache
def usual() -> Advice:
    """Ask what is asked on the command line by `--environment FigureA --problems 3 --runs 2 --seed 1`."""
    return advise(FigureA.draw, horizon=2000, problems=3, runs=2, seed=1)


def far(advice: Advice) -> Advice:
    """Return advice with every part that may be missing missing, and words that would like to be HTML."""
    unknown = Estimate(1.0, -math.inf, math.inf)
    policies = tuple(
        dataclasses.replace(row, gain=unknown, difference=unknown if row.difference else None)
        for row in advice.policies.rows
    )
    rows = tuple(dataclasses.replace(row, interval=Interval(0.0, math.inf)) for row in advice.grid)
    return dataclasses.replace(
        advice,
        unit="<b>euros</b> & cents",  # as long as it may be
        grid=rows,
        half=None,
        double=None,
        found_by=None,
        theorem_p=None,
        theorem_reason="two arms are alike",
        policies=dataclasses.replace(advice.policies, rows=policies, price=unknown),
        checks=(ArmCheck(arm="<b>loud", model=0.2, weighted=0.5, interval=Interval(0.4, 0.6)),),
        notes=("<img src=http://evil.example/a.png> & more",),
    )


def write_pages(advice: Advice, folder: Path) -> dict[str, Path]:
    """Write the page of an advice, of one that lacks all it may, and of one whose theorem asks for a p close by."""
    near = dataclasses.replace(advice, theorem_p=2 * advice.grid[-1].p, found_by=401, per_day=200)
    for name, each in {"usual": advice, "far": far(advice), "near": near}.items():
        each.save(folder / f"{name}.html")
    return {name: folder / f"{name}.html" for name in ("usual", "far", "near")}
