"""What the family of Algorithm 1 has in common: a coin that ignores x says whether to explore, else the best is played.

Decide O(K d); update O(d^2), solve O(d^3) for one arm; memory O(K d^2) whatever t.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from armlet.core.choosing import below, best_arms
from armlet.core.kernel import Statistics
from armlet.core.policy import SumsPolicy
from armlet.core.ridge import RidgeLike
from armlet.core.statistics import record
from armlet.core.types import Bool, Choice, Coins, Float64, Interaction, LearnsFrom

if TYPE_CHECKING:
    from armlet.core.kernel import Rule

Warmup = Literal["round-robin", "uniform"]


def check_warmup(warmup: object) -> None:
    """Refuse a word that is no warm-up.

    Examples
    --------
    >>> check_warmup("random")
    Traceback (most recent call last):
    ValueError: warmup is 'random'; choose 'round-robin' or 'uniform'
    """
    if warmup not in ("round-robin", "uniform"):
        raise ValueError(f"warmup is {warmup!r}; choose 'round-robin' or 'uniform'")


class EpsilonGreedy(SumsPolicy[Statistics]):
    """Explore with probability p/t, else play the arm that ridge regression thinks best.

    Examples
    --------
    >>> from armlet.policies import Algorithm1, AllDataEpsilonGreedy, ContextualEpsilonGreedy
    >>> [issubclass(each, EpsilonGreedy) for each in (Algorithm1, ContextualEpsilonGreedy, AllDataEpsilonGreedy)]
    [True, True, True]
    """

    __slots__ = ()

    learns_from: ClassVar[LearnsFrom] = "explored steps"
    p: float | Literal["auto"]
    ridge: RidgeLike
    warmup: Warmup

    @abstractmethod
    def rule(self) -> Rule:
        """Describe when to explore to the kernel."""

    def check(self, n_arms: int, dim: int, t: int) -> None:  # noqa: ARG002
        """Refuse a warm-up that is too short to see every arm."""
        if self.p != "auto" and t < self.p < n_arms:
            raise ValueError(
                f"p is {self.p} but there are {n_arms} arms, so the first ceil(p) steps cannot try them all; "
                f"use p >= {n_arms}"
            )

    def current_p(self, state: Statistics) -> float:  # noqa: ARG002
        """Give the p in force: the one that was set."""
        return float(self.p)

    def exploration_rate(self, t: int, state: Statistics | None = None) -> float:
        """Give the probability that step t explores; with p="auto" it depends on the state.

        A state without rows explores at every step, if only explored steps are learned: all arms tie, whatever x is.

        Examples
        --------
        >>> from armlet import Algorithm1
        >>> policy = Algorithm1(p=60)
        >>> state = policy.init(n_arms=2, dim=1)
        >>> policy.exploration_rate(600, state)
        1.0
        >>> policy.update(state, Interaction(t=1, x=np.ones(1), arm=0, reward=0.5))
        >>> policy.exploration_rate(600, state)
        0.1
        """
        if state is None and self.p == "auto":
            raise ValueError("state is None but p is 'auto': how much it explores depends on what was seen; pass state")
        p = float(self.p) if state is None else self.current_p(state)
        is_blank = state is not None and self.learns_from == "explored steps" and not state.n.any()
        return 1.0 if is_blank or t <= math.ceil(p) else p / t

    def _rotates(self, state: Statistics, t: int) -> bool:
        return self.warmup == "round-robin" and t <= math.ceil(self.current_p(state))

    def probabilities(self, state: Statistics, t: int, x: Float64, eligible: Bool) -> Float64:
        """Give the exact probability of each arm: exploration, plus the share of the best arms."""
        arms, chances = np.flatnonzero(eligible), np.zeros(state.n_arms)
        if self._rotates(state, t):
            chances[arms[t % len(arms)]] = 1.0
            return chances
        rate, best = self.exploration_rate(t, state), best_arms(state.scores(x), arms)
        chances[arms] = rate / len(arms)
        chances[best] += (1 - rate) / len(best)
        return chances

    def decide(self, state: Statistics, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        """Play step t: by turns, by the coin, or the best arm, ties broken by the coins."""
        arms, chances = np.flatnonzero(eligible), self.probabilities(state, t, x, eligible)
        if self._rotates(state, t):
            return Choice(int(arms[t % len(arms)]), 1.0, True)
        explored = coins.coin < self.exploration_rate(t, state)
        among = arms if explored else best_arms(state.scores(x), arms)
        arm = int(among[below(coins.pick if explored else coins.tie, len(among))])
        return Choice(arm, float(chances[arm]), explored)

    def update(self, state: Statistics, interaction: Interaction) -> None:
        """Record an explored step; what exploitation saw is not recorded, unless the policy learns from every step."""
        if interaction.explored or self.learns_from == "every step":
            record(state, interaction)
