"""What a contender of the leaderboard is: a policy with its theory's settings, and with a few to choose from."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from armlet.types import Policy
from armlet_lab.runner.arena import Brief

Family: TypeAlias = Literal[
    "explores on schedule", "optimism", "randomised", "finite class", "one row a context", "one bit", "floor"
]


def _anywhere(_: Brief) -> bool:
    return True


def few_contexts(told: Brief) -> bool:
    """Say whether contexts repeat, as a table needs."""
    return told.contexts is not None


def learnable(told: Brief) -> float:
    """Give a bound of theta from which SupLinRel learns: below 1 / sqrt(T) it finds every arm known from the start."""
    return max(told.bound, 2 / math.sqrt(told.horizon))


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A policy with its theory's settings, if it has a theory, and those to choose from."""

    family: Family
    theory: Callable[[Brief], Policy] | None
    grid: Callable[[Brief], tuple[Policy, ...]]
    fits: Callable[[Brief], bool] = _anywhere

    def settle(self, told: Brief, choice: int | None) -> Policy:
        """Make the policy for a problem: a choice of the grid, or None for the theory's constants."""
        if choice is not None:
            return self.grid(told)[choice]
        if self.theory is None:
            raise ValueError(f"there is no theory to take constants from; choose one of {len(self.grid(told))}")
        return self.theory(told)
