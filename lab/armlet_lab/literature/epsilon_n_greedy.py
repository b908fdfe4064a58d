"""Epsilon_n-greedy: Auer, Cesa-Bianchi and Fischer 2002, "Finite-time analysis of the multiarmed bandit problem".

Explores with probability min(1, c K / (gap^2 t)), else plays the best empirical mean. The clock t is that of the table:
the rows learned in this context, plus one; decisions do not count, for deciding changes nothing.
Decide O(K + d); update O(d); memory O(K), or O(M (K + d)) for M contexts.

The theorem is for rewards in [0, 1], a gap between the two best means that is known from below, and c > 5; regret is
then O(K log T / gap^2) in each table. Propensities are exact. With contexts="ignored" it is a floor.
"""

from __future__ import annotations

from dataclasses import dataclass

from armlet.inputs.settings import positive, settle
from armlet.reference.choice import best_chances, mixed, play_or_explore
from armlet.types import Bool, Choice, Coins, Float64, Interaction, Shapes
from armlet_lab.literature.parts.tabular import Means, Tabular, table_shapes


@dataclass(frozen=True, slots=True, kw_only=True)
class EpsilonNGreedy(Tabular[Means]):
    """Explore at a rate that falls like 1/t, else play the arm with the highest mean so far.

    Parameters
    ----------
    gap
        At most the difference between the best and the second best mean, in units of the range of rewards.
    c
        How much to explore. The theorem asks for more than 5; in practice far less does better.
    contexts
        "ignored": all steps are one problem; "table": each distinct context is one, with a clock of its own.

    Examples
    --------
    >>> policy = EpsilonNGreedy(gap=0.5, c=5)
    >>> policy.exploration_rate(4, 60.0), policy.exploration_rate(4, 160.0)
    (1.0, 0.5)
    """

    gap: float
    c: float = 6.0

    def __post_init__(self) -> None:
        Tabular.__post_init__(self)
        settle(self, gap=positive(), c=positive())

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        """Return the shapes of the state's arrays."""
        return table_shapes(n_arms, dim, "n", "sum_r")

    def init(self, n_arms: int, dim: int) -> Means:
        """Start a table in which no arm has rows, so that each is tried once."""
        return Means(n_arms, dim, self.contexts)

    def exploration_rate(self, n_arms: int, clock: float) -> float:
        """Return the probability that a step explores."""
        return min(1.0, self.c * n_arms / (self.gap**2 * clock))

    def _rate(self, state: Means, x: Float64) -> float:
        return self.exploration_rate(state.n_arms, max(1.0, float(state.read("n", x).sum()) + 1.0))

    def _chances(self, means: Float64, rate: float, eligible: Bool) -> Float64:
        return mixed(best_chances(means, eligible), eligible, rate)

    def probabilities(self, state: Means, t: int, x: Float64, eligible: Bool) -> Float64:  # noqa: ARG002
        """Return the exact probability of each arm: exploration, plus the share of the best means."""
        return self._chances(state.means(x), self._rate(state, x), eligible)

    def decide(self, state: Means, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:  # noqa: ARG002
        """Toss the coin: any eligible arm, or the best."""
        means, rate = state.means(x), self._rate(state, x)
        return play_or_explore(means, eligible, coins, self._chances(means, rate, eligible), rate)

    def update(self, state: Means, interaction: Interaction) -> None:
        """Count the row and add its reward."""
        state.add(interaction, interaction.reward, interaction.replaces)
