"""What a world is: the stochastic setting of Section 3, with everything a simulation asks of it.

A world is settings only. It is handed its randomness, one generator for contexts and another for noise,
so that contexts are the same whatever a policy does and however many rewards are drawn.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from armlet.environments.constants import Constants
from armlet.environments.finite import FiniteWorld
from armlet.errors import InvalidValueError
from armlet.types import Bool, Float64


class World(Protocol):
    """Contexts, mean rewards and rewards; steps count from 1, and `start` is the number of steps before.

    A frozen dataclass of settings that JSON can hold. Drawing n steps at once or in parts, each with its
    `start`, gives the same contexts and rewards. `armlet.testing.check_environment` checks all of it.

    Two attributes may be left out, see `present` and `delay` in this file: which arms can be played at a step, and how
    many steps a reward takes to arrive.
    """

    @property
    def n_arms(self) -> int:
        """K, the number of arms."""

    @property
    def dim(self) -> int:
        """d, the number of values in a context."""

    def contexts(self, rng: np.random.Generator, n: int, *, start: int = 0) -> Float64:
        """Draw the contexts of steps start + 1 to start + n: (n, d)."""

    def means(self, X: Float64, *, start: int = 0) -> Float64:
        """Give the expected reward of every arm in every context, the first of them at step start + 1: (n, K)."""

    def rewards(self, rng: np.random.Generator, X: Float64, *, start: int = 0) -> Float64:
        """Draw what every arm would pay in every context: (n, K)."""

    def table(self) -> FiniteWorld | None:
        """Give the whole world as a table, where contexts are few, the law stays, and the noise has a name."""

    def constants(self) -> Constants:
        """Give the exact constants of the problem; ValueError says which do not exist, and why."""

    def describe(self) -> list[str]:
        """Say in a few lines what the world means, in which units, and what its constants are."""


def present(world: World, n: int, *, start: int = 0) -> Bool | None:
    """Say which arms can be played at steps start + 1 to start + n, (n, K); None where all can, always.

    A world whose arms come and go has a method of this name, without `world`.

    Examples
    --------
    >>> from armlet.environments import News
    >>> present(News(theta=((1.0,), (2.0,)), births=(1, 3), deaths=(3, 9)), 3)
    array([[ True, False],
           [ True, False],
           [False,  True]])
    """
    ask = getattr(world, "present", None)
    if ask is None:
        return None
    found: Bool | None = ask(n, start=start)
    return found


def delay(world: World) -> int:
    """Say how many steps are decided before the reward of a step arrives; 0 where a world has no `delay`."""
    return int(getattr(world, "delay", 0))


def is_still(world: World) -> bool:
    """Tell whether all arms stay and rewards come at once."""
    return present(world, 1) is None and not delay(world)


def check_still(world: World, who: str) -> None:
    """Refuse a world whose arms come and go, or whose rewards come late, for who plays neither."""
    if not is_still(world):
        what = "has rewards that come late" if delay(world) else "has arms that come and go"
        raise InvalidValueError(f"{type(world).__name__} {what}, which {who} does not play; use armlet.simulate")
