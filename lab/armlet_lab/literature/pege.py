"""PEGE: Rusmevichientong and Tsitsiklis (2010), "Linearly Parameterized Bandits", phased exploration, greedy play.

Works in cycles: in cycle c, first explores long enough to see every direction of the parameter once, then plays
greedily for c steps, by least squares on explored steps only. The paper explores r independent decisions; contexts
cannot be chosen, so here a cycle explores K d steps, arms by turns. Where a step lies follows from t alone.
Decide O(K d), and O(log t) more with exploit="exponential"; update O(d^2), solve O(d^3) for one arm; memory O(K d^2).
Propensities are exact.

Theory: c greedy steps ("linear") give regret of order K d sqrt(T) where the best decision changes smoothly with the
parameter; 2^c ("exponential") is for finitely many decisions with a gap, and explores of order K d log T steps. No
horizon; subgaussian noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from armlet.inputs.settings import RidgeLike, one_of, ridge_like, settle, whole
from armlet.kernel import Statistics
from armlet.policies.base import RidgePolicy, record
from armlet.reference.choice import best_chances, draw, force, play_best
from armlet.types import Bool, Choice, Coins, Float64, Interaction, LearnsFrom

Exploit: TypeAlias = Literal["linear", "exponential"]


def place_in_cycle(t: int, explored: int, exploit: Exploit) -> tuple[int, int]:
    """Return the cycle, from 1 on, and the place in it, from 0 on, of step t: the first `explored` places explore.

    Examples
    --------
    >>> [place_in_cycle(t, 2, "linear") for t in (1, 2, 3, 4, 8)]
    [(1, 0), (1, 1), (1, 2), (2, 0), (3, 0)]
    """
    before = t - 1
    if exploit == "linear":
        # cycles 1..c-1 take (c - 1) explored + c (c - 1) / 2 steps; c is the largest for which that is <= before
        c = (math.isqrt((2 * explored + 1) ** 2 + 8 * before) - (2 * explored - 1)) // 2
        return c, before - (c - 1) * explored - c * (c - 1) // 2
    c = 1
    while before >= explored + 2**c:
        before -= explored + 2**c
        c += 1
    return c, before


@dataclass(frozen=True, slots=True, kw_only=True)
class PEGE(RidgePolicy):
    """Explore K d steps by turns, play greedily for c steps (or 2^c), and go round again with the next c.

    While no reward has come, all arms tie in every context: greedy steps then draw an arm and are learned.

    Parameters
    ----------
    exploit
        How many greedy steps end cycle c: c if "linear", 2^c if "exponential".
    rounds
        A cycle explores rounds K d steps; 1 is the paper.
    ridge
        The paper's least squares has none; the default only keeps it solvable until an arm's contexts span the space.

    Examples
    --------
    >>> policy = PEGE()
    >>> [policy.explores(t, n_arms=2, dim=1) for t in range(1, 8)]
    [True, True, False, True, True, False, False]
    """

    exploit: Exploit = "linear"
    rounds: int = 1
    ridge: RidgeLike = 1e-8

    learns_from: ClassVar[LearnsFrom] = "explored steps"

    def __post_init__(self) -> None:
        settle(self, exploit=one_of("linear", "exponential"), rounds=whole(), ridge=ridge_like)

    def explores(self, t: int, *, n_arms: int, dim: int) -> bool:
        """Return whether step t explores."""
        explored = self.rounds * n_arms * dim
        return place_in_cycle(t, explored, self.exploit)[1] < explored

    def _turn(self, state: Statistics, t: int, eligible: Bool) -> int | None:
        explored = self.rounds * state.n_arms * state.dim
        place = place_in_cycle(t, explored, self.exploit)[1]
        arms = np.flatnonzero(eligible)
        return int(arms[place % len(arms)]) if place < explored else None

    def probabilities(self, state: Statistics, t: int, x: Float64, eligible: Bool) -> Float64:
        """Put all probability on the arm whose turn it is, or on the one that looks best."""
        turn = self._turn(state, t, eligible)
        if turn is None:  # without a row all scores are 0: all tie
            return best_chances(state.scores(x), eligible)
        chances = np.zeros(state.n_arms)
        chances[turn] = 1.0
        return chances

    def decide(self, state: Statistics, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        """Explore by turns or play the arm that looks best, as the place in the cycle says."""
        turn = self._turn(state, t, eligible)
        if turn is not None:
            return force(turn, eligible)
        return play_best(state.scores(x), eligible, coins) if state.n.any() else draw(eligible, coins)

    def update(self, state: Statistics, interaction: Interaction) -> None:
        """Record explored steps only."""
        if interaction.explored:
            record(state, interaction)
