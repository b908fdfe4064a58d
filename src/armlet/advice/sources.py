"""Sources of problems besides a guess and a pilot: one world, or a law of worlds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, cast

import numpy as np

from armlet.advice.pilot import Pilot
from armlet.advice.posterior import Posterior
from armlet.advice.prior import Prior
from armlet.advice.problem import SampledProblem, Source, condense, draw_from, varied_size
from armlet.environments.world import World
from armlet.errors import InvalidTypeError
from armlet.inputs.settings import Objective

Draw: TypeAlias = Callable[[np.random.Generator], World]
SourceLike: TypeAlias = World | Draw | Prior | Pilot


@dataclass(frozen=True, slots=True)
class Known:
    """One world."""

    world: World
    horizon: int

    def words(self) -> str:
        """Say which."""
        w = self.world
        return f"one known problem: {type(w).__name__}, {w.n_arms} arms, contexts of {w.dim} values"

    def sample(self, n: int, seed: int) -> list[SampledProblem]:
        """Give the world itself if it is a table, else n samples of its contexts."""
        first, *others = draw_from(n, seed)
        known = condense(self.world, first, self.horizon)
        if known.contexts == "all":  # its table is the world, not a sample
            return [known]
        return [known, *(condense(self.world, rng, self.horizon) for rng in others)]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A law of worlds."""

    draw: Draw
    horizon: int

    def words(self) -> str:
        """Say which."""
        name = getattr(self.draw, "__qualname__", type(self.draw).__name__)
        return f"problems drawn by {name}"

    def sample(self, n: int, seed: int) -> list[SampledProblem]:
        """Draw n problems; the first ones are the same whatever n."""
        return [condense(self.draw(rng), rng, self.horizon) for rng in draw_from(n, seed)]


def as_source(source: SourceLike, horizon: int, objective: Objective) -> Source:
    """Make a source of problems of what a user gave."""
    if isinstance(source, Prior):
        return source
    if isinstance(source, Pilot):
        return Posterior.of(source, objective, varied_size(source.n_arms, source.dim + 1))
    if isinstance(source, type):
        raise InvalidTypeError(
            f"source is the class {source.__name__}; give an instance, or {source.__name__}.draw for a law"
        )
    if hasattr(source, "contexts") and hasattr(source, "means"):
        return Known(cast(World, source), horizon)
    if callable(source):
        return Drawn(source, horizon)
    raise InvalidTypeError(
        f"source is {source!r}; give a world, a function that draws one from a generator, a Prior or a Pilot"
    )
