"""What the worlds that are made of another have in common: its arms, contexts and means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armlet.environments import world as worlds
from armlet.environments.constants import Constants
from armlet.environments.world import World
from armlet.types import Bool, Float64


@dataclass(frozen=True, slots=True, kw_only=True)
class AroundAnother:
    """All but what such a world is about: `rewards`, `table` and `describe` are its own, and what it changes besides.

    It is made from a world and not drawn, so it is not in the registry.
    """

    world: World

    @property
    def n_arms(self) -> int:
        """K, the inner world's."""
        return self.world.n_arms

    @property
    def dim(self) -> int:
        """d, the inner world's."""
        return self.world.dim

    def contexts(self, rng: np.random.Generator, n: int, *, start: int = 0) -> Float64:
        """Draw the inner world's contexts: (n, d)."""
        return self.world.contexts(rng, n, start=start)

    def means(self, X: Float64, *, start: int = 0) -> Float64:
        """Give the inner world's means: (n, K)."""
        return self.world.means(X, start=start)

    def present(self, n: int, *, start: int = 0) -> Bool | None:
        """Say which arms of the inner world can be played: (n, K), or None if all can."""
        return worlds.present(self.world, n, start=start)

    def constants(self) -> Constants:
        """Give the inner world's constants."""
        return self.world.constants()
