"""The families of problems on which ways of choosing p are calibrated and judged.

A family is a law of environments: every draw has its own theta. Calibration, trials and published figures draw from
different seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from armlet.environments import Customers, DisplayAds, FigureA, GroupActivity, Linear, LinearArms, Scheduling
from armlet.parallel import Seeds

FAMILIES: Final[dict[str, Callable[[np.random.Generator], LinearArms]]] = {
    "Figure (a)": FigureA.draw,
    "scheduling": Scheduling.draw,
    "display ads": DisplayAds.draw,
    "group activity": GroupActivity.draw,
    "gaussian d = 10": lambda rng: Linear.draw(rng, n_arms=10, dim=10, law="sphere", scale=0.5),
    "gaussian d = 30": lambda rng: Linear.draw(rng, n_arms=20, dim=30, law="sphere", scale=0.5),
    "clicks 3 % or 4 %": Customers.draw,
}
"""The gaussian ones have 10 and 20 arms, contexts on the unit sphere, gaussian theta and noise."""


def draw_problem(family: str, seeds: Seeds, *which: int | str) -> LinearArms:
    """Draw one problem of a family; every number is another theta.

    Examples
    --------
    >>> draw_problem("gaussian d = 30", Seeds(1), 0).n_arms
    20
    """
    return FAMILIES[family](seeds.rng("problems", family, *which))
