"""What the family of Algorithm 1 has in common: a coin that ignores x says whether to explore, else the best is played.

Decide O(K d); update O(d^2), solve O(d^3) for one arm; memory O(K d^2) regardless of t.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from armlet.errors import InvalidValueError
from armlet.policies.base import SumsPolicy, SumsT, record
from armlet.reference.choice import best_arms
from armlet.reference.evidence import ExploringLaw, alike, by_evidence, turn
from armlet.types import Bool, Choice, Coins, Float64, Int64, Interaction, LearnsFrom

if TYPE_CHECKING:
    from armlet.kernel import Rule

Warmup = Literal["round-robin", "uniform"]


class EpsilonGreedy(SumsPolicy[SumsT]):
    """Explore as `exploring` says, independently of x; else play the arm with the highest ridge estimate.

    Examples
    --------
    >>> from armlet.policies import Algorithm1, AllDataEpsilonGreedy, ContextualEpsilonGreedy
    >>> [issubclass(each, EpsilonGreedy) for each in (Algorithm1, ContextualEpsilonGreedy, AllDataEpsilonGreedy)]
    [True, True, True]
    """

    __slots__ = ()

    learns_from: ClassVar[LearnsFrom] = "explored steps"

    @abstractmethod
    def rule(self) -> Rule:
        """Describe when to explore to the kernel."""

    @abstractmethod
    def current_p(self, state: SumsT) -> float:
        """Return the p in force."""

    @abstractmethod
    def exploring(self, state: SumsT, t: int, eligible: Bool) -> ExploringLaw:
        """Return whether step t explores, and with which arm."""

    def probabilities(self, state: SumsT, t: int, x: Float64, eligible: Bool) -> Float64:
        """Return the exact probability of each arm: exploration, plus the share of the best arms."""
        law = self.exploring(state, t, eligible)
        return law.with_best(state.n_arms, lambda arms: self.best(state, x, arms))

    def decide(self, state: SumsT, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        """Play step t: what exploring takes, or the best arm, ties broken by the coins."""
        law = self.exploring(state, t, eligible)
        return law.decide(state.n_arms, lambda arms: self.best(state, x, arms), coins)

    def best(self, state: SumsT, x: Float64, arms: Int64) -> Int64:
        """Return those of some arms that a step plays that does not explore."""
        return best_arms(state.scores(x), arms)

    def update(self, state: SumsT, interaction: Interaction) -> None:
        """Record an explored step; what exploitation saw is not recorded, unless the policy learns from every step."""
        if interaction.explored or self.learns_from == "every step":
            record(state, interaction)


class ByClock(EpsilonGreedy[SumsT]):
    """Explore step t with probability p/t, all eligible arms alike, after a warm-up of ceil(p) steps."""

    __slots__ = ()

    warmup: Warmup

    def exploring(self, state: SumsT, t: int, eligible: Bool) -> ExploringLaw:
        """Return whether step t explores, and with which arm: by turns or alike, with probability p/t.

        A state without rows explores at every step, if only explored steps are learned: all arms tie for any x.
        """
        p, arms = self.current_p(state), np.flatnonzero(eligible)
        if t <= math.ceil(p) and self.warmup == "round-robin":
            return turn(arms, t)
        is_blank = self.learns_from == "explored steps" and not state.n.any()
        return alike(arms, 1.0 if is_blank or t <= math.ceil(p) else p / t)


class ByEvidence(EpsilonGreedy[SumsT]):
    """Explore arms that lack rows.

    An arm with n rows weighs w = max(min(1, q/t), min(1, exp(1 - n/q))), where q is its part of p. A step explores with
    probability min(cap, sum of w over the eligible arms), and then takes an arm by its weight.
    """

    __slots__ = ()

    cap: float
    floor: float

    def quotas(self, state: SumsT) -> float | Float64:
        """Return q: the rows that each arm is given to begin with, the same for all or one for each, (K,)."""
        return self.current_p(state) / state.n_active

    def rows(self, state: SumsT) -> Float64:
        """Return the rows of each arm, (K,), as exploring counts them."""
        return state.n

    def exploring(self, state: SumsT, t: int, eligible: Bool) -> ExploringLaw:
        """Return whether step t explores, and with which arm: by the rows that each arm has."""
        return by_evidence(self.rows(state), eligible, t, q=self.quotas(state), cap=self.cap, floor=self.floor)

    def exploration_rate(self, t: int, state: SumsT | None = None) -> float:
        """Return the probability that step t explores, if all arms that are not retired are eligible.

        Examples
        --------
        >>> from armlet import ContextualEpsilonGreedy
        >>> policy = ContextualEpsilonGreedy(p=2)
        >>> state = policy.init(n_arms=2, dim=1)
        >>> for arm in (0, 1):
        ...     policy.update(state, Interaction(t=1, x=np.ones(1), arm=arm, reward=0.5, weight=5.0))
        >>> round(policy.exploration_rate(10_000, state), 4)
        0.0366
        """
        if state is None:
            raise InvalidValueError(
                f"state is None but {type(self).__name__} explores by evidence: how much depends on rows; pass state"
            )
        return self.exploring(state, t, state.active).rate
