"""Contextual epsilon-greedy: Algorithm 1, Section 4, for arms that come and go and for delayed rewards.

Explores what lacks evidence, independently of x, and learns only from explored steps, so the contexts behind theta_hat
keep the distribution of the environment. Where nothing comes, goes or is late it ends up exploring as often as
`Algorithm1`, after p log K steps more at its start; Theorem 2 is about p/t, which is `Algorithm1`.
Decide O(K d); update O(d^2), solve O(d^3) for one arm; memory O(K d^2) regardless of t (Theorem 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from armlet.inputs.settings import HUGE, TINY, RidgeLike, Units, number, origin_like, ridge_like, settle, units_word
from armlet.kernel import Evidence, Statistics, sum_shapes
from armlet.policies.base import RidgePolicy
from armlet.policies.epsilon_greedy import ByEvidence
from armlet.types import LearnsFrom, Shapes


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextualEpsilonGreedy(ByEvidence[Statistics], RidgePolicy):
    """Explore arms that lack rows, else play the arm that ridge regression on explored steps thinks best.

    An arm with n rows weighs w = max(min(1, q/t), min(1, exp(1 - n/q))), where q is p over the number of arms that are
    not retired. A step explores with probability min(cap, sum of w over the eligible arms), and then takes an arm by
    its weight. So a newcomer is explored at once, at any t; an arm whose rewards are late is explored until they come;
    rows that are merged in or forgotten count from then on.

    Parameters
    ----------
    p
        How much to explore: about p (1 + log(T / q)) of T decisions, q = p / K of them for each arm to begin with;
        `armlet.advise` recommends one, `AutoEpsilonGreedy` finds one by itself.
    ridge
        "paper" (lambda_n = 1/sqrt(n)), "1/n", or a positive number; see `armlet.inputs.settings.Ridge`.
    units, origin
        "free" units, in which neither zero nor size of features and rewards matters, about an origin (l, o_1, ..., o_d)
        that is found if left out; or "as given". See `armlet.reference.units`.
    cap
        The most that evidence makes a step explore: below 1, newcomers share the traffic with what is known.
    floor
        A share of all steps that explores forever, all eligible arms alike, so that every arm has a propensity of at
        least floor / K and a log can always be evaluated. Its price is that share of what a random arm loses.

    Examples
    --------
    >>> import armlet
    >>> bandit = armlet.Bandit(["a", "b"], 1, policy=ContextualEpsilonGreedy(p=20), seed=1)
    >>> for _ in range(1000):
    ...     decision = bandit.decide([1.0])
    ...     bandit.learn(decision, float(decision.arm == "b"))
    >>> bandit.add_arm("c")
    >>> bandit.decide([1.0]).arm
    'c'
    """

    p: float
    ridge: RidgeLike = "paper"
    units: Units = "free"
    origin: tuple[float, ...] | None = None
    cap: float = 1.0
    floor: float = 0.0

    design: ClassVar[Literal["evidence"]] = "evidence"

    def __post_init__(self) -> None:
        advice = "give a number above 0 (AutoEpsilonGreedy finds one by itself)"
        settle(self, p=number(TINY, HUGE, fix=advice), cap=number(1e-9, 1.0), floor=number(0.0, 1.0))
        settle(self, ridge=ridge_like, units=units_word, origin=origin_like)

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        return sum_shapes(n_arms, dim, units=self.units)

    def rule(self) -> Evidence:
        always = self.learns_from == "every step"
        return Evidence(p=self.p, cap=self.cap, floor=self.floor, learn_always=always)

    def current_p(self, state: Statistics) -> float:  # noqa: ARG002
        return float(self.p)


@dataclass(frozen=True, slots=True, kw_only=True)
class AllDataEpsilonGreedy(ContextualEpsilonGreedy):
    """The same exploration as `ContextualEpsilonGreedy`, but learning from every step.

    All rows of an arm count as evidence, so an arm that is played for being good is not explored as well. Not
    Algorithm 1: the contexts behind an arm's estimate are then those where it looked best, so the theorem's proof
    and the clean confidence intervals are lost. Regret is often lower all the same.
    """

    learns_from: ClassVar[LearnsFrom] = "every step"
