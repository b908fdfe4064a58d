"""Display ads, Example 2: users with attributes, ads with a click probability linear in them, clicks or none.

The first value of a context is 1, so that an ad has a base rate; the others say which attributes a user
has. Settings that would lead a probability out of [0, 1] are refused: clipping would break linearity.
Clicks are rare and their noise is far from gaussian: its sub-gaussian constant is a few times its
standard deviation, and gaps are thousandths.
Drawing n steps is O(n (d + K)), their means O(n K d).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from armlet.environments.environment import (
    MAX_BITS,
    FiniteEnvironment,
    LinearArms,
    Noise,
    as_rows,
    bit_law,
    check_chances,
    check_steps,
)
from armlet.errors import InvalidValueError
from armlet.types import Float64

ATTRIBUTES = ("on a phone", "came back", "bought before", "evening")
SHARES = (0.6, 0.35, 0.1, 0.4)


@dataclass(frozen=True, slots=True, kw_only=True)
class DisplayAds(LinearArms):
    """Show every visitor one of K ads; the reward is 1 for a click and 0 for none.

    Parameters
    ----------
    theta : tuple of tuples of float, shape (K, 1 + number of attributes)
        For each ad, the click probability of a user without attributes, then what each attribute adds.
    attributes
        What the attributes are.
    shares
        What share of users has each attribute, independent of the others.

    Examples
    --------
    >>> environment = DisplayAds(theta=((0.01, 0.02), (0.02, -0.01)), attributes=("on a phone",), shares=(0.5,))
    >>> environment.means(np.array([[1.0, 0.0], [1.0, 1.0]]))
    array([[0.01, 0.02],
           [0.03, 0.01]])
    """

    attributes: tuple[str, ...] = ATTRIBUTES
    shares: tuple[float, ...] = SHARES

    def __post_init__(self) -> None:
        LinearArms.__post_init__(self)
        check_chances("shares", self.shares, len(self.attributes))
        if self.dim != 1 + len(self.attributes):
            raise InvalidValueError(
                f"theta has rows of {self.dim} values; give a base rate and {len(self.attributes)} attributes"
            )
        lifts = np.array(self.theta)[:, 1:]
        low = np.array(self.theta)[:, 0] + np.minimum(lifts, 0).sum(axis=1)
        high = np.array(self.theta)[:, 0] + np.maximum(lifts, 0).sum(axis=1)
        if low.min() < 0 or high.max() > 1:
            raise InvalidValueError(
                f"theta gives click probabilities from {low.min()} to {high.max()}; keep them in [0, 1]"
            )

    @classmethod
    def draw(cls, rng: np.random.Generator, *, n_arms: int = 5) -> Self:
        """Draw ads for the default attributes: base rates of 0.5 to 2 %, attributes that add up to twice as much.

        An attribute may also take away, but all together never more than 90 % of the base rate.

        Examples
        --------
        >>> means = DisplayAds.draw(np.random.default_rng(0)).table().means
        >>> bool(0.0005 <= means.min() and means.max() <= 0.18)
        True
        """
        m = len(ATTRIBUTES)
        base = 0.005 * 4.0 ** rng.random((n_arms, 1))
        lifts = base * rng.uniform(-0.9 / m, 2.0, size=(n_arms, m))
        return cls(theta=as_rows(np.hstack([base, lifts])))

    def contexts(self, rng: np.random.Generator, n: int, *, start: int = 0) -> Float64:
        """Draw n users, a 1 and then a 1 or 0 for each attribute: (n, d)."""
        check_steps(n, start)
        X = np.ones((n, self.dim))
        X[:, 1:] = rng.random((n, self.dim - 1)) < np.array(self.shares)
        return X

    def reward_noise(self) -> tuple[Noise, float]:
        return "bernoulli", 1.0

    def table(self) -> FiniteEnvironment | None:
        if len(self.attributes) > MAX_BITS:
            return None
        rows, chances = bit_law(self.shares)
        return self.tabulate(np.hstack([np.ones((len(rows), 1)), rows]), chances)

    def describe(self) -> list[str]:
        """Describe what the environment means, in which units, and what its constants are.

        Examples
        --------
        >>> for line in DisplayAds.draw(np.random.default_rng(0)).describe()[:3]:
        ...     print(line)
        Display ads, Example 2: 5 ads
        contexts: users, a 1 and then 1 or 0 for: on a phone (60%), came back (35%), bought before (10%), evening (40%)
        rewards: 1 for a click, 0 for none; a random ad for a random user is clicked on 2.25% of the time
        """
        users = ", ".join(f"{name} ({share:.0%})" for name, share in zip(self.attributes, self.shares, strict=True))
        rate = np.array([1.0, *self.shares]) @ np.array(self.theta).mean(axis=0)
        return [
            f"Display ads, Example 2: {self.n_arms} ads",
            f"contexts: users, a 1 and then 1 or 0 for: {users}",
            f"rewards: 1 for a click, 0 for none; a random ad for a random user is clicked on {rate:.2%} of the time",
            *self.describe_constants("clicks"),
        ]
