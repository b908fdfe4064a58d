"""Customers with habits: each kind of customer clicks one action a little more often than the others.

The smallest problem on which tuning matters: with two kinds, two actions and clicks of 4 % against 3 %, playing at
random earns 3.5 % and knowing everything 4 %, and telling the actions apart takes thousands of clicks that are not
there. Contexts are one-hot, E xx' is the diagonal of the shares, and its smallest entry is sigma_min.
Drawing n steps is O(n (d + K)), their means O(n K d).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from armlet.environments.environment import (
    LinearArms,
    ListedContexts,
    Noise,
    as_rows,
    check_between,
    check_chances,
)
from armlet.errors import InvalidValueError
from armlet.types import Float64


@dataclass(frozen=True, slots=True, kw_only=True)
class Customers(ListedContexts):
    """Offer every customer one of K actions; the reward is 1 for a click and 0 for none.

    Parameters
    ----------
    theta : tuple of tuples of float, shape (K, number of kinds)
        The click probability of each action for each kind of customer.
    shares
        How often each kind comes.

    Examples
    --------
    >>> environment = Customers(theta=((0.04, 0.03), (0.03, 0.04)), shares=(0.5, 0.5))
    >>> environment.means(np.eye(2))
    array([[0.04, 0.03],
           [0.03, 0.04]])
    """

    shares: tuple[float, ...]

    def __post_init__(self) -> None:
        LinearArms.__post_init__(self)
        check_chances("shares", self.shares, self.dim)
        if abs(sum(self.shares) - 1) > 1e-9:
            raise InvalidValueError(f"shares are {self.shares}; they must sum to 1")
        if np.min(self.theta) < 0 or np.max(self.theta) > 1:
            raise InvalidValueError(f"theta holds click probabilities; keep them in [0, 1], got {self.theta}")

    @classmethod
    def draw(
        cls, rng: np.random.Generator, *, n_arms: int = 2, kinds: int = 2, low: float = 0.03, high: float = 0.04
    ) -> Self:
        """Draw which action each kind of customer likes; the first two kinds never like the same.

        Examples
        --------
        >>> Customers.draw(np.random.default_rng(1)).theta
        ((0.03, 0.04), (0.04, 0.03))
        """
        check_between("low", low, 0.0, 1.0)
        check_between("high", high, low, 1.0)
        theta = np.full((n_arms, kinds), low)
        favourites = rng.integers(n_arms, size=kinds)
        if n_arms > 1 and kinds > 1:
            favourites[:2] = rng.permutation(n_arms)[:2]
        theta[favourites, np.arange(kinds)] = high
        return cls(theta=as_rows(theta), shares=(1.0 / kinds,) * kinds)

    def context_law(self) -> tuple[Float64, Float64]:
        """Return the kinds of customer, a 1 in the place of each, and their shares."""
        return np.eye(self.dim), np.array(self.shares)

    def reward_noise(self) -> tuple[Noise, float]:
        return "bernoulli", 1.0

    def describe(self) -> list[str]:
        """Describe what the environment means, in which units, and what its constants are.

        Examples
        --------
        >>> Customers.draw(np.random.default_rng(0)).describe()[2]
        'rewards: 1 for a click, 0 for none; a random action is clicked on 3.50% of the time, the best one 4.00%'
        """
        table = self.table()
        chance, best = table.chances @ table.means.mean(axis=1), table.chances @ table.means.max(axis=1)
        clicked = f"a random action is clicked on {chance:.2%} of the time, the best one {best:.2%}"
        return [
            f"Customers with habits: {self.dim} kinds, {self.n_arms} actions",
            f"contexts: a 1 in the place of the customer's kind, which come in shares of {self.shares}",
            f"rewards: 1 for a click, 0 for none; {clicked}",
            *self.describe_constants("clicks"),
        ]
