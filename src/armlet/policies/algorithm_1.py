"""Algorithm 1 as printed, Section 4: features and rewards as they are given, p/t by the count of steps, p set by hand.

Explores step t with probability p/t and learns only from explored steps, so the contexts behind theta_hat keep the
distribution of the environment.
Decide O(K d); update O(d^2), solve O(d^3) for one arm; memory O(K d^2) whatever t (Theorem 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from armlet.errors import InvalidValueError
from armlet.inputs.settings import Ridge, RidgeLike
from armlet.kernel import Schedule, Statistics, sum_shapes
from armlet.policies.base import sums
from armlet.policies.epsilon_greedy import EpsilonGreedy, Warmup, check_warmup
from armlet.types import Shapes


@dataclass(frozen=True, slots=True, kw_only=True)
class Algorithm1(EpsilonGreedy):
    """Explore with probability p/t, else play the arm that ridge regression on explored steps thinks best.

    What the paper prints and proves things about. Until the first reward has come, all arms tie whatever the context
    is, so every step explores and is learned. With prompt rewards that is the first step alone, which explores anyway.

    Parameters
    ----------
    p
        How much to explore: about p (1 + log(T / p)) of T decisions. At least the number of arms.
    ridge
        "paper" (lambda_n = 1/sqrt(n)), "1/n", or a positive number; see `armlet.inputs.settings.Ridge`.
    warmup
        The first ceil(p) steps: "round-robin" plays arm t mod K, as printed; "uniform" draws it, so that every
        eligible arm has a positive propensity from the first step on.

    Examples
    --------
    >>> policy = Algorithm1(p=60)
    >>> policy.exploration_rate(60), policy.exploration_rate(600)
    (1.0, 0.1)
    """

    p: float
    ridge: RidgeLike = "paper"
    warmup: Warmup = "round-robin"

    units: ClassVar[Literal["as given"]] = "as given"
    clock: ClassVar[Literal["steps"]] = "steps"

    def __post_init__(self) -> None:
        if isinstance(self.p, np.generic):
            object.__setattr__(self, "p", self.p.item())
        if isinstance(self.p, bool) or not isinstance(self.p, (int, float)) or not 1 <= self.p <= 1e100:
            raise InvalidValueError(
                f"p is {self.p!r}; give a number of at least 1, the number of arms or more "
                "(ContextualEpsilonGreedy can find one by itself)"
            )
        check_warmup(self.warmup)
        Ridge.parse(self.ridge)

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        """Give the shapes of the state's arrays."""
        return sum_shapes(n_arms, dim)

    def init(self, n_arms: int, dim: int) -> Statistics:
        """For all arms: A = 0, n = 0, b = 0."""
        return sums(Ridge.parse(self.ridge), n_arms, dim)

    def rule(self) -> Schedule:
        """Describe when to explore to the kernel."""
        return Schedule(self.p, round_robin=self.warmup == "round-robin", learn_always=False)
