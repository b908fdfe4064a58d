"""Uniform play: the floor that any policy should beat, and the cleanest data there is.

Every step explores, so it is also how to collect a log for a warm start or for off-policy evaluation.
Decide O(1); update O(d^2); memory O(K d^2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from armlet.inputs.settings import Ridge, RidgeLike
from armlet.kernel import Schedule, Statistics
from armlet.policies.base import RidgePolicy
from armlet.reference.choice import draw
from armlet.types import Bool, Choice, Coins, Float64


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniform(RidgePolicy):
    """Play every eligible arm with the same probability, forever.

    Examples
    --------
    >>> Uniform().probabilities(Uniform().init(4, 1), 1, np.ones(1), np.array([True, False, True, True]))
    array([0.33333333, 0.        , 0.33333333, 0.33333333])
    """

    ridge: RidgeLike = "paper"

    design: ClassVar[Literal["uniform"]] = "uniform"  # no row depends on another, so inference may be ordinary

    def __post_init__(self) -> None:
        Ridge.parse(self.ridge)

    def rule(self) -> Schedule:
        """Describe it to the kernel: a warm-up without end."""
        return Schedule(math.inf, round_robin=False, learn_always=True)

    def probabilities(self, state: Statistics, t: int, x: Float64, eligible: Bool) -> Float64:  # noqa: ARG002
        return eligible / np.count_nonzero(eligible)

    def decide(self, state: Statistics, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:  # noqa: ARG002
        return draw(eligible, coins)
