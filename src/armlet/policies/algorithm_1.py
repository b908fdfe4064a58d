"""Algorithm 1, Section 4, as printed: explores step t with probability p/t, learns from explored steps only.

Exploration ignores the context, so the contexts behind theta_hat keep the distribution of the environment.
Decide O(K d); update O(d^2), solve O(d^3) for one arm; memory O(K d^2) regardless of t (Theorem 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from armlet.errors import InvalidValueError
from armlet.inputs.settings import RidgeLike, Units, number, one_of, origin_like, ridge_like, settle, units_word
from armlet.kernel import Schedule, Statistics, sum_shapes
from armlet.policies.base import RidgePolicy
from armlet.policies.epsilon_greedy import ByClock, Warmup
from armlet.types import LearnsFrom, Shapes


@dataclass(frozen=True, slots=True, kw_only=True)
class Algorithm1(ByClock[Statistics], RidgePolicy):
    """Explore with probability p/t, else play the arm that ridge regression on explored steps thinks best.

    What the paper prints and proves things about. Until the first reward has come, all arms tie for any context,
    so every step explores and is learned. With prompt rewards that is the first step alone, which explores anyway.

    Parameters
    ----------
    p
        How much to explore: about p (1 + log(T / p)) of T decisions. At least the number of arms.
    ridge
        "paper" (lambda_n = 1/sqrt(n)), "1/n", or a positive number; see `armlet.inputs.settings.Ridge`.
    warmup
        The first ceil(p) steps: "round-robin" plays arm t mod K, as printed; "uniform" draws it, so that every
        eligible arm has a positive propensity from the first step on.
    units
        "as given", as printed; or "free": neither zero nor size of features and rewards matters, see
        `armlet.reference.units`.
    origin
        In free units: about where rewards and features lie, l, o_1, ..., o_d, if they are far from zero and no row may
        be used to find out. Left out, it is zero, or beyond 1024 eight bits of the first row.

    Examples
    --------
    >>> policy = Algorithm1(p=60)
    >>> policy.exploration_rate(60), policy.exploration_rate(600)
    (1.0, 0.1)
    """

    p: float
    ridge: RidgeLike = "paper"
    warmup: Warmup = "round-robin"
    units: Units = "as given"
    origin: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        advice = "give a number of at least 1, the number of arms or more (AutoEpsilonGreedy can find one by itself)"
        settle(self, p=number(1, 1e100, fix=advice), warmup=one_of("round-robin", "uniform"))
        settle(self, ridge=ridge_like, units=units_word, origin=origin_like)

    def check(self, n_arms: int, dim: int, t: int) -> None:  # noqa: ARG002
        if t < self.p < n_arms:
            raise InvalidValueError(
                f"p is {self.p} but there are {n_arms} arms, so the first ceil(p) steps cannot try them all; "
                f"use p >= {n_arms}"
            )

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        return sum_shapes(n_arms, dim, units=self.units)

    def rule(self) -> Schedule:
        always = self.learns_from == "every step"
        return Schedule(self.p, round_robin=self.warmup == "round-robin", learn_always=always)

    def current_p(self, state: Statistics) -> float:  # noqa: ARG002
        return float(self.p)

    def exploration_rate(self, t: int, state: Statistics | None = None) -> float:
        """Return the probability that step t explores, if all arms that are not retired are eligible.

        Without a state, p/t as the clock alone has it.
        """
        if state is not None:
            return self.exploring(state, t, state.active).rate
        return 1.0 if t <= math.ceil(self.p) else self.p / t


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledEpsilonGreedy(Algorithm1):
    """The exploration of `Algorithm1`, with probability p/t, but learning from every step.

    Not Algorithm 1: the contexts behind an arm's estimate are those where it looked best, so the theorem's proof and
    the clean confidence intervals are lost. `AllDataEpsilonGreedy` is the same by evidence.
    """

    learns_from: ClassVar[LearnsFrom] = "every step"
