"""Any world with rewards that arrive late: the reward of step t comes after `delay` more steps were decided.

Contexts, means and rewards are the inner world's; whoever plays a world asks it for its `delay` (`world.delay`), and
`simulation.player` does. What is decided at step t + delay does not know the reward of step t yet.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armlet.environments import world as worlds
from armlet.environments.around import AroundAnother
from armlet.errors import InvalidValueError
from armlet.types import Float64


@dataclass(frozen=True, slots=True, kw_only=True)
class Delayed(AroundAnother):
    """Another world, whose rewards take their time.

    It is made from a world and not drawn, so it is not in the registry. It is no table: the kernel plays tables
    without delay. `constants` are the inner world's, to which delay does not matter.

    Parameters
    ----------
    world
        The inner world.
    delay
        Steps that are decided between a decision and its reward; 0 is the inner world itself. Rewards that would come
        after the end of a run never do.

    Examples
    --------
    >>> from armlet.environments import FigureA
    >>> world = Delayed(world=FigureA(theta=((1.0, 0.0), (0.0, 2.0))), delay=1000)
    >>> world.n_arms, world.delay
    (2, 1000)
    """

    delay: int

    def __post_init__(self) -> None:
        if self.delay < 0:
            raise InvalidValueError(f"delay is {self.delay}; give 0 steps or more")
        if worlds.delay(self.world):
            raise InvalidValueError("world has a delay of its own; give the inner world and the whole delay")

    def rewards(self, rng: np.random.Generator, X: Float64, *, start: int = 0) -> Float64:
        """Draw the rewards of these steps, whenever they will arrive: (n, K)."""
        return self.world.rewards(rng, X, start=start)

    def table(self) -> None:
        """Give nothing: a table pays at once."""

    def describe(self) -> list[str]:
        """Say how late rewards are, then what the inner world is."""
        return [f"Delayed: the reward of a step comes {self.delay:,} steps later", *self.world.describe()]
