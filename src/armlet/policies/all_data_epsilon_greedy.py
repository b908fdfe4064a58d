"""Epsilon-greedy on all rows: the exploration of Algorithm 1, Section 4, by evidence, but learning from every step.

Decide O(K d); update O(d^2), solve O(d^3) for one arm, at every step; memory O(K d^2) whatever t.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from armlet.policies.contextual_epsilon_greedy import ContextualEpsilonGreedy
from armlet.types import LearnsFrom


@dataclass(frozen=True, slots=True, kw_only=True)
class AllDataEpsilonGreedy(ContextualEpsilonGreedy):
    """The same exploration as `ContextualEpsilonGreedy`, but learning from every step.

    By evidence, all rows of an arm count, so an arm that is played for being good is not explored as well. Not
    Algorithm 1: the contexts behind an arm's estimate are then those where it looked best, so the theorem's proof
    and the clean confidence intervals are lost. Regret is often lower all the same.
    """

    learns_from: ClassVar[LearnsFrom] = "every step"
