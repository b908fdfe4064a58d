"""What the family of Algorithm 1 has in common: a coin that ignores x says whether to explore, else the best is played.

Decide O(K d); update O(d^2), solve O(d^3) for one arm; memory O(K d^2) whatever t.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from armlet.errors import InvalidValueError
from armlet.inputs.settings import RidgeLike
from armlet.kernel import Statistics
from armlet.policies.base import SumsPolicy, record
from armlet.reference.choice import best_arms
from armlet.reference.evidence import Exploring, alike, turn
from armlet.types import Bool, Choice, Coins, Float64, Interaction, LearnsFrom

if TYPE_CHECKING:
    from armlet.kernel import Rule

Warmup = Literal["round-robin", "uniform"]


def check_warmup(warmup: object) -> None:
    """Refuse a word that is no warm-up.

    Examples
    --------
    >>> check_warmup("random")
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: warmup is 'random'; choose 'round-robin' or 'uniform'
    """
    if warmup not in ("round-robin", "uniform"):
        raise InvalidValueError(f"warmup is {warmup!r}; choose 'round-robin' or 'uniform'")


class EpsilonGreedy(SumsPolicy[Statistics]):
    """Explore as `exploring` says, whatever x is; else play the arm that ridge regression thinks best.

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
    warmup: Warmup | None  # None is "round-robin"

    @abstractmethod
    def rule(self) -> Rule:
        """Describe when to explore to the kernel."""

    def check(self, n_arms: int, dim: int, t: int) -> None:  # noqa: ARG002
        """Refuse a warm-up that is too short to see every arm."""
        if self.p != "auto" and t < self.p < n_arms:
            raise InvalidValueError(
                f"p is {self.p} but there are {n_arms} arms, so the first ceil(p) steps cannot try them all; "
                f"use p >= {n_arms}"
            )

    def current_p(self, state: Statistics) -> float:  # noqa: ARG002
        """Give the p in force: the one that was set."""
        return float(self.p)

    def exploring(self, state: Statistics, t: int, eligible: Bool) -> Exploring:
        """Say whether step t explores, and with which arm: by turns or alike, with probability p/t.

        A state without rows explores at every step, if only explored steps are learned: all arms tie, whatever x is.
        """
        p, arms = self.current_p(state), np.flatnonzero(eligible)
        if t <= math.ceil(p) and self.warmup != "uniform":
            return turn(arms, t)
        is_blank = self.learns_from == "explored steps" and not state.n.any()
        return alike(arms, 1.0 if is_blank or t <= math.ceil(p) else p / t)

    def exploration_rate(self, t: int, state: Statistics | None = None) -> float:
        """Give the probability that step t explores, if all arms that are not retired are eligible.

        Without a state, what the clock alone says: that is p/t, where it is the clock that says it.

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
        if state is not None:
            return self.exploring(state, t, state.active).rate
        if self.p == "auto":
            raise InvalidValueError(
                "state is None but p is 'auto': how much it explores depends on what was seen; pass state"
            )
        return 1.0 if t <= math.ceil(self.p) else self.p / t

    def probabilities(self, state: Statistics, t: int, x: Float64, eligible: Bool) -> Float64:
        """Give the exact probability of each arm: exploration, plus the share of the best arms."""
        law = self.exploring(state, t, eligible)
        return law.with_best(state.n_arms, lambda arms: best_arms(state.scores(x), arms))

    def decide(self, state: Statistics, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        """Play step t: what exploring takes, or the best arm, ties broken by the coins."""
        law = self.exploring(state, t, eligible)
        return law.decide(state.n_arms, lambda arms: best_arms(state.scores(x), arms), coins)

    def update(self, state: Statistics, interaction: Interaction) -> None:
        """Record an explored step; what exploitation saw is not recorded, unless the policy learns from every step."""
        if interaction.explored or self.learns_from == "every step":
            record(state, interaction)
