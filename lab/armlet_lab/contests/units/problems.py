"""What is played: families of problems, each in any units."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from armlet.environments import Linear, LinearArms, NearTies, Rescaled
from armlet.environments.families import FAMILIES
from armlet.environments.linear import as_rows
from armlet.parallel.seeds import Seeds

Maker = Callable[[np.random.Generator], LinearArms]


def _with_constant(rng: np.random.Generator) -> Linear:
    return Linear(theta=as_rows(0.2 * rng.standard_normal((5, 3))), law="constant")


LEVELS: Final = "a constant and two features"
LENGTHS: Final = "gaussian d = 5"
TIES: Final[dict[str, Maker]] = {
    "a tie of 0.001 and a bad arm": lambda rng: NearTies.draw(rng, gap=0.001),
    "a tie of 0.02 and a bad arm": lambda rng: NearTies.draw(rng, gap=0.02),
    "four near-ties and four bad arms": lambda rng: NearTies.draw(rng, gap=0.02, near=4, n_bad=4),
}
PROBLEMS: Final[dict[str, Maker]] = {
    LEVELS: _with_constant,
    LENGTHS: lambda rng: Linear.draw(rng, n_arms=5, dim=5, law="sphere", scale=0.5),
    **TIES,
    **FAMILIES,
}


def draw_problem(family: str, seeds: Seeds, problem: int, *, level: float, length: float) -> Rescaled:
    """Draw one problem of a family and put it into units: the same problem in all of them.

    Examples
    --------
    >>> draw_problem(LEVELS, Seeds(1), 0, level=30.0, length=1.0).reward_level
    30.0
    """
    environment = PROBLEMS[family](seeds.rng("problems", family, problem))
    return Rescaled(environment=environment, reward_level=level, feature_scales=(length,) * environment.dim)
