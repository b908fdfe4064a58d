"""Contextual epsilon-greedy: Algorithm 1, Section 4.

Explores step t with probability p/t and learns only from explored steps, so the contexts behind theta_hat keep the
distribution of the world.
Decide O(K d); update O(d^2), solve O(d^3) for one arm; memory O(K d^2) whatever t (Theorem 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from armlet.core.choosing import below, best_arms
from armlet.core.kernel import Schedule, Statistics
from armlet.core.ridge import Ridge, RidgeLike
from armlet.core.statistics import record
from armlet.core.types import Bool, Choice, Coins, Float64, Interaction, LearnsFrom, Memory, Rewards


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextualEpsilonGreedy:
    """Explore with probability p/t, else play the arm that ridge regression on explored steps thinks best.

    Parameters
    ----------
    p
        How much to explore: about p (1 + log(T / p)) of T decisions. At least the number of arms.
    ridge
        "paper" (lambda_n = 1/sqrt(n)), "1/n", or a positive number; see `armlet.core.ridge`.
    warmup
        The first ceil(p) steps: "round-robin" plays arm t mod K, as printed; "uniform" draws it, so that every
        eligible arm has a positive propensity from the first step on.

    Examples
    --------
    >>> policy = ContextualEpsilonGreedy(p=60)
    >>> policy.exploration_rate(60), policy.exploration_rate(600)
    (1.0, 0.1)
    """

    p: float
    ridge: RidgeLike = "paper"
    warmup: Literal["round-robin", "uniform"] = "round-robin"

    learns_from: ClassVar[LearnsFrom] = "explored steps"
    memory: ClassVar[Memory] = "constant"
    rewards: ClassVar[Rewards] = "any"

    def __post_init__(self) -> None:
        if isinstance(self.p, np.generic):
            object.__setattr__(self, "p", self.p.item())
        if isinstance(self.p, bool) or not isinstance(self.p, (int, float)) or not 1 <= self.p < math.inf:
            raise ValueError(f"p is {self.p!r}; give a number of at least 1, the number of arms or more")
        if self.warmup not in ("round-robin", "uniform"):
            raise ValueError(f"warmup is {self.warmup!r}; choose 'round-robin' or 'uniform'")
        Ridge.parse(self.ridge)

    def check(self, n_arms: int, dim: int, t: int) -> None:  # noqa: ARG002
        """Refuse a warm-up that is too short to see every arm."""
        if t < self.p < n_arms:
            raise ValueError(
                f"p is {self.p} but there are {n_arms} arms, so the first ceil(p) steps cannot try them all; "
                f"use p >= {n_arms}"
            )

    def init(self, n_arms: int, dim: int) -> Statistics:
        """For all arms: A = 0, n = 0, b = 0."""
        return Ridge.parse(self.ridge).statistics(n_arms, dim)

    def schedule(self) -> Schedule:
        """Describe when to explore to the kernel."""
        every_step = self.learns_from == "every step"
        return Schedule(self.p, round_robin=self.warmup == "round-robin", learn_always=every_step)

    def estimates(self, state: Statistics) -> Float64:
        """Solve (lambda_n I + A / n) theta = b / n for the arms that changed."""
        return state.estimates()

    def exploration_rate(self, t: int) -> float:
        """Give the probability that step t explores."""
        return 1.0 if t <= math.ceil(self.p) else self.p / t

    def _rotates(self, t: int) -> bool:
        return t <= math.ceil(self.p) and self.warmup == "round-robin"

    def probabilities(self, state: Statistics, t: int, x: Float64, eligible: Bool) -> Float64:
        """Give the exact probability of each arm: exploration, plus the share of the best arms."""
        arms, chances = np.flatnonzero(eligible), np.zeros(state.n_arms)
        if self._rotates(t):
            chances[arms[t % len(arms)]] = 1.0
            return chances
        rate, best = self.exploration_rate(t), best_arms(state.scores(x), arms)
        chances[arms] = rate / len(arms)
        chances[best] += (1 - rate) / len(best)
        return chances

    def decide(self, state: Statistics, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        """Play step t: by turns, by the coin, or the best arm, ties broken by the coins."""
        arms, chances = np.flatnonzero(eligible), self.probabilities(state, t, x, eligible)
        if self._rotates(t):
            return Choice(int(arms[t % len(arms)]), 1.0, True)
        explored = coins.coin < self.exploration_rate(t)
        among = arms if explored else best_arms(state.scores(x), arms)
        arm = int(among[below(coins.pick if explored else coins.tie, len(among))])
        return Choice(arm, float(chances[arm]), explored)

    def update(self, state: Statistics, interaction: Interaction) -> None:
        """Record an explored step; what exploitation saw is not recorded."""
        if interaction.explored or self.learns_from == "every step":
            record(state, interaction)


@dataclass(frozen=True, slots=True, kw_only=True)
class AllDataEpsilonGreedy(ContextualEpsilonGreedy):
    """The same exploration, but learning from every step.

    Not Algorithm 1: the contexts behind an arm's estimate are then those where it looked best, so the theorem's proof
    and the clean confidence intervals are lost. Regret is often lower all the same.
    """

    learns_from: ClassVar[LearnsFrom] = "every step"
    memory: ClassVar[Memory] = "constant"
    rewards: ClassVar[Rewards] = "any"
