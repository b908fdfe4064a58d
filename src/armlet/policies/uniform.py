"""Uniform play: the floor that any policy should beat, and the cleanest data there is.

Every step explores, so it is also how to collect a log for a warm start or for off-policy evaluation.
Decide O(1); update O(d^2); memory O(K d^2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from armlet.core.choosing import below
from armlet.core.kernel import Schedule, Statistics
from armlet.core.ridge import Ridge, RidgeLike
from armlet.core.statistics import record
from armlet.core.types import Bool, Choice, Coins, Float64, Interaction, LearnsFrom, Memory, Rewards


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniform:
    """Play every eligible arm with the same probability, for ever.

    Examples
    --------
    >>> Uniform().probabilities(Uniform().init(4, 1), 1, np.ones(1), np.array([True, False, True, True]))
    array([0.33333333, 0.        , 0.33333333, 0.33333333])
    """

    ridge: RidgeLike = "paper"

    learns_from: ClassVar[LearnsFrom] = "every step"
    memory: ClassVar[Memory] = "constant"
    rewards: ClassVar[Rewards] = "any"

    def __post_init__(self) -> None:
        Ridge.parse(self.ridge)

    def check(self, n_arms: int, dim: int, t: int) -> None:
        """Accept any problem."""

    def init(self, n_arms: int, dim: int) -> Statistics:
        """Know nothing."""
        return Ridge.parse(self.ridge).statistics(n_arms, dim)

    def rule(self) -> Schedule:
        """Describe it to the kernel: a warm-up without end."""
        return Schedule(math.inf, round_robin=False, learn_always=True)

    def estimates(self, state: Statistics) -> Float64:
        """Solve for theta_hat, which play does not look at."""
        return state.estimates()

    def probabilities(self, state: Statistics, t: int, x: Float64, eligible: Bool) -> Float64:  # noqa: ARG002
        """Give each eligible arm the same."""
        return eligible / np.count_nonzero(eligible)

    def decide(self, state: Statistics, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:  # noqa: ARG002
        """Draw an eligible arm."""
        arms = np.flatnonzero(eligible)
        return Choice(int(arms[below(coins.pick, len(arms))]), 1.0 / len(arms), True)

    def update(self, state: Statistics, interaction: Interaction) -> None:
        """Record every step."""
        record(state, interaction)
