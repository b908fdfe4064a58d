"""Where policies are compared: nine environments, and what a contender knows of each before it starts.

A brief holds what the theory of some policies assumes known: the size of the noise, of theta, and of rewards. It is
computed from the environment itself; that is more than a user knows, and the same for all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from armlet import theory
from armlet.environments import (
    DisplayAds,
    FigureA,
    FigureB,
    GroupActivity,
    Linear,
    LinearArms,
    Scheduling,
    Section7,
    Section7Growing,
)
from armlet.parallel import Seeds

Maker = Callable[[np.random.Generator], LinearArms]

ARENAS: Final[dict[str, Maker]] = {
    "Figure (a)": FigureA.draw,
    "Figure (b)": lambda rng: FigureB.draw(rng, I=10),
    "Section 7": lambda rng: Section7.draw(rng, I=10),
    "Section 7, growing": lambda rng: Section7Growing.draw(rng, rate="log2"),
    "scheduling": Scheduling.draw,
    "display ads": DisplayAds.draw,
    "group activity": GroupActivity.draw,
    "gaussian 10 x 10": lambda rng: Linear.draw(rng, n_arms=10, dim=10, law="sphere", scale=0.5),
    "gaussian 20 x 30": lambda rng: Linear.draw(rng, n_arms=20, dim=30, law="sphere", scale=0.5),
}
"""K x d for the last two: contexts on the unit sphere, gaussian theta and noise."""

DRAWS = 4000  # rewards looked at for their range
LOOK: Final = Seeds(0, "brief")  # not the experiment's seed: all know the same of an environment
FEW = 512  # contexts: more are too many for a table


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """What a contender knows of an environment."""

    n_arms: int
    dim: int
    horizon: int
    noise: float  # standard deviation of a reward, the largest over contexts and arms
    bound: float  # largest |theta_a|
    rewards: tuple[float, float]  # they lie in this range, but for rare ones
    contexts: int | None  # how many there are; None if too many for a table
    binary: bool
    gap: float | None  # delta_min, where it exists
    theorem_p: float  # what Theorem 2 asks for with C = 128; the horizon if that is less, or if it is not known


def draw_environment(name: str, seeds: Seeds, index: int = 0) -> LinearArms:
    """Draw one of the environments; every index is another theta.

    Examples
    --------
    >>> draw_environment("gaussian 10 x 10", Seeds(1)).dim
    10
    """
    return ARENAS[name](seeds.rng("worlds", name, index))


@lru_cache(maxsize=1024)  # every contender asks for the same
def brief(environment: LinearArms, horizon: int) -> Brief:
    """Look at an environment before the policies meet it.

    Examples
    --------
    >>> known = brief(draw_environment("display ads", Seeds(1)), 1000)
    >>> known.binary, known.rewards
    (True, (0.0, 1.0))
    """
    X = environment.contexts(LOOK.rng("contexts looked at"), DRAWS)
    rewards, means = environment.rewards(LOOK.rng("rewards looked at"), X), environment.means(X)
    kinds = np.unique(X, axis=0)
    low, high = float(rewards.min()), float(rewards.max())
    gap, asked = _theorem(environment)
    spread = max(float((rewards - means)[(x == X).all(axis=1)].std()) for x in kinds) if len(kinds) < FEW else 0.0
    return Brief(
        n_arms=environment.n_arms,
        dim=environment.dim,
        horizon=horizon,
        noise=max(spread, float((rewards - means).std(axis=0).max())),
        bound=float(np.linalg.norm(np.array(environment.theta), axis=1).max()),
        rewards=(low, high),
        contexts=len(kinds) if len(kinds) < FEW else None,
        binary=bool(np.isin(rewards, (0.0, 1.0)).all()),
        gap=gap,
        theorem_p=float(max(environment.n_arms, min(horizon, asked))),
    )


def _theorem(environment: LinearArms) -> tuple[float | None, float]:
    try:
        c = environment.constants()
    except ValueError:  # some environments have no smallest gap
        return None, math.inf
    return c.delta_min, theory.theorem_p(c, n_arms=environment.n_arms, C=128)
