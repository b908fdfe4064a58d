"""UCB1: Auer, Cesa-Bianchi and Fischer 2002, "Finite-time analysis of the multiarmed bandit problem".

Plays each arm once, then the one with the highest mean + sqrt(2 ln n / n_a), where n counts the rows of all arms.
Decide O(K + d); update O(d); memory O(K), or O(M (K + d)) for M contexts.

The theorem is for independent rewards in [0, 1], so rewards are mapped there from `reward_range`; regret is at most
8 sum_a ln T / gap_a + (1 + pi^2 / 3) sum_a gap_a in each table. It plays without chance but for ties, so propensities,
which are exact, are mostly 0 and 1. With contexts="ignored" it is a floor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from armlet.inputs.settings import Outside, Range, ends, one_of, positive, settle, unit
from armlet.reference.choice import best_chances, play_best
from armlet.types import Bool, Choice, Coins, Float64, Interaction, RewardKind, Shapes
from armlet_lab.literature.parts.tabular import Means, Tabular, table_shapes


@dataclass(frozen=True, slots=True, kw_only=True)
class UCB1(Tabular[Means]):
    """Play the arm whose mean could be highest.

    Parameters
    ----------
    contexts
        "ignored": all steps are one problem; "table": each distinct context is one, with counts of its own.
    reward_range, outside
        The ends of the rewards, and whether one outside is refused or clipped.
    width_scale
        Multiplies the width sqrt(2 ln n / n_a). 1 is the theorem's; smaller often does better.

    Examples
    --------
    >>> policy = UCB1()
    >>> state = policy.init(2, 1)
    >>> policy.update(state, Interaction(t=1, x=np.ones(1), arm=0, reward=1.0))
    >>> policy.probabilities(state, 2, np.ones(1), np.array([True, True]))  # arm 1 was never tried
    array([0., 1.])
    """

    reward_range: Range = (0.0, 1.0)
    outside: Outside = "refuse"
    width_scale: float = 1.0

    rewards: ClassVar[RewardKind] = "bounded"

    def __post_init__(self) -> None:
        Tabular.__post_init__(self)
        settle(self, width_scale=positive(), reward_range=ends, outside=one_of("refuse", "clip"))

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        """Return the shapes of the state's arrays."""
        return table_shapes(n_arms, dim, "n", "sum_r")

    def init(self, n_arms: int, dim: int) -> Means:
        """Start a table in which no arm has rows, so that each is tried once."""
        return Means(n_arms, dim, self.contexts)

    def scores(self, state: Means, x: Float64) -> Float64:
        """Return mean + width, (K,), for rewards in [0, 1]; infinite for arms that were never tried."""
        n = state.read("n", x)
        log_n = math.log(max(1.0, float(n.sum())))
        widths = np.sqrt(2.0 * log_n / np.maximum(n, 1e-9))
        return state.means(x) + self.width_scale * widths

    def probabilities(self, state: Means, t: int, x: Float64, eligible: Bool) -> Float64:  # noqa: ARG002
        """Share everything among the best."""
        return best_chances(self.scores(state, x), eligible)

    def decide(self, state: Means, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:  # noqa: ARG002
        """Play the best, ties broken by the coins."""
        return play_best(self.scores(state, x), eligible, coins)

    def update(self, state: Means, interaction: Interaction) -> None:
        """Count the row and add its reward."""
        old = interaction.replaces
        replaces = None if old is None else unit(old, self.reward_range, self.outside)
        state.add(interaction, unit(interaction.reward, self.reward_range, self.outside), replaces)
