"""Group activity, Example 3: those present do something together, then vote in a secret ballot.

A context says who of d people is present; an arm is an activity; theta holds the probability that each
person likes it. The reward is the number of yes votes among those present: independent votes, of which
only the tally is seen.
Drawing n steps is O(n K d).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from armlet.environments.environment import (
    MAX_BITS,
    Constants,
    LinearArms,
    as_rows,
    bernoulli_sigma,
    bit_law,
    check_chances,
    check_steps,
)
from armlet.errors import InvalidValueError
from armlet.types import Float64


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupActivity(LinearArms):
    """Choose one of K activities for those of d people who are present.

    A tally is no noise that a table can name, so `table()` is None; up to 16 people the constants are exact,
    but for sigma, which is a valid constant and may not be the smallest.

    Parameters
    ----------
    theta : tuple of tuples of float, shape (K, d)
        The probability that each person likes each activity, in [0, 1].
    attendance : tuple of float, length d
        The probability that each person is present, independent of the others.

    Examples
    --------
    >>> environment = GroupActivity(theta=((1.0, 0.0, 0.5), (0.2, 0.9, 0.5)), attendance=(0.5, 0.5, 0.9))
    >>> environment.means(np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]))  # expected yes votes
    array([[1.5, 0.7],
           [0. , 0.9]])
    """

    attendance: tuple[float, ...]

    def __post_init__(self) -> None:
        LinearArms.__post_init__(self)
        check_chances("attendance", self.attendance, self.dim)
        if np.min(self.theta) < 0 or np.max(self.theta) > 1:
            raise InvalidValueError(f"theta holds probabilities, so every value must be in [0, 1]; got {self.theta}")

    @classmethod
    def draw(cls, rng: np.random.Generator, *, n_arms: int = 4, dim: int = 6) -> Self:
        """Draw tastes uniform on [0, 1] and attendances uniform on [0.2, 0.9].

        Examples
        --------
        >>> GroupActivity.draw(np.random.default_rng(0), dim=3).n_arms
        4
        """
        theta, attendance = rng.random((n_arms, dim)), rng.uniform(0.2, 0.9, size=dim)
        return cls(theta=as_rows(theta), attendance=tuple(attendance.tolist()))

    def contexts(self, rng: np.random.Generator, n: int, *, start: int = 0) -> Float64:
        """Draw who is present at each of n steps, 1 or 0 for every person: (n, d)."""
        check_steps(n, start)
        return (rng.random((n, self.dim)) < np.array(self.attendance)).astype(np.float64)

    def rewards(self, rng: np.random.Generator, X: Float64, *, start: int = 0) -> Float64:
        """Draw the tally that every activity would get, in yes votes: (n, K)."""
        present = self.means(X, start=start).shape  # refuses contexts of another shape
        likes = rng.random((*present, self.dim)) < np.array(self.theta)
        tally: Float64 = np.einsum("nkd,nd->nk", likes, X)
        return tally

    def constants(self) -> Constants:
        """Return the exact constants, up to 16 people.

        The votes of those present are independent, so the squares of their sub-gaussian constants add up;
        the sum is largest when everyone who ever comes is there.
        """
        if self.dim > MAX_BITS:
            raise InvalidValueError(f"delta_min is a minimum over 2^{self.dim} groups, too many to list")
        rows, chances = bit_law(self.attendance)
        comes = np.array(self.attendance) > 0
        votes = np.square(bernoulli_sigma(np.array(self.theta))) @ comes
        sigma = math.sqrt(float(votes.max()))
        return Constants.of(self.tabulate(rows, chances), np.array(self.theta), sigma)

    def describe(self) -> list[str]:
        """Describe what the environment means, in which units, and what its constants are.

        Examples
        --------
        >>> for line in GroupActivity.draw(np.random.default_rng(0)).describe()[:3]:
        ...     print(line)
        Group activity, Example 3: 4 activities, 6 people
        contexts: who is present, 1 or 0; 4.2 people on average
        rewards: yes votes among those present, as a tally of a secret ballot
        """
        return [
            f"Group activity, Example 3: {self.n_arms} activities, {self.dim} people",
            f"contexts: who is present, 1 or 0; {sum(self.attendance):.1f} people on average",
            "rewards: yes votes among those present, as a tally of a secret ballot",
            *self.describe_constants("votes"),
        ]
