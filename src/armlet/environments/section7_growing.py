"""The example of Section 7 with a rare context that becomes ever rarer: I grows with t.

The paper says "slowly"; we take I(t) = 2 + log t, 2 + log^2 t and 2 + sqrt t. The law of contexts changes
from step to step, so sigma_min tends to 0 and Theorem 2 does not apply; contexts stay independent.
Drawing n steps is O(n K).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self, TypeAlias

import numpy as np

from armlet.environments.constants import Constants
from armlet.environments.finite import Noise
from armlet.environments.linear_arms import LinearArms, as_rows, check_steps, draw_rewards
from armlet.environments.section7 import SUPPORT, Section7
from armlet.errors import InvalidValueError
from armlet.types import Float64, Int64

Rate: TypeAlias = Literal["log", "log2", "sqrt"]
WORDS: dict[Rate, str] = {"log": "log t", "log2": "log^2 t", "sqrt": "sqrt t"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Section7Growing(LinearArms):
    """One world of Section 7 in which (1, 1) comes with probability 1/I(t).

    Parameters
    ----------
    theta : tuple of tuples of float, shape (K, 2)
        The parameter of each arm.
    rate
        I(t) is 2 + log t for "log", 2 + log^2 t for "log2", 2 + sqrt t for "sqrt".
    noise, scale
        How rewards spread, as in `Section7`.

    Examples
    --------
    >>> world = Section7Growing(theta=((1.0, 0.0), (0.0, 2.0)), rate="sqrt")
    >>> world.rarity(np.array([1, 4, 10_000]))
    array([  3.,   4., 102.])
    """

    rate: Rate = "log"
    noise: Noise = "proportional"
    scale: float = 1.0

    def __post_init__(self) -> None:
        if self.rate not in WORDS:
            raise InvalidValueError(f"rate is {self.rate!r}; choose 'log', 'log2' or 'sqrt'")
        self.at(1)  # refuses what a fixed I refuses

    @classmethod
    def draw(
        cls,
        rng: np.random.Generator,
        *,
        rate: Rate = "log",
        n_arms: int = 6,
        noise: Noise = "proportional",
        scale: float = 1.0,
    ) -> Self:
        """Draw the parameters of a world, independent standard gaussians, as for Figure (a)."""
        return cls(theta=as_rows(rng.standard_normal((n_arms, 2))), rate=rate, noise=noise, scale=scale)

    def rarity(self, t: Int64) -> Float64:
        """Give I(t) for steps t >= 1."""
        growth: Float64 = np.sqrt(t) if self.rate == "sqrt" else np.log(t)
        return 2.0 + (growth * growth if self.rate == "log2" else growth)

    def at(self, t: int) -> Section7:
        """Freeze the world as it is at step t.

        Examples
        --------
        >>> Section7Growing(theta=((1.0, 0.0), (0.0, 2.0)), rate="sqrt").at(64).I
        10.0
        """
        rarity = float(self.rarity(np.array([t]))[0])
        return Section7(theta=self.theta, I=rarity, noise=self.noise, scale=self.scale)

    def contexts(self, rng: np.random.Generator, n: int, *, start: int = 0) -> Float64:
        """Draw the contexts of steps start + 1 to start + n: (n, 2)."""
        check_steps(n, start)
        common = rng.random(n) * self.rarity(np.arange(start + 1, start + n + 1)) >= 1.0
        chosen: Float64 = SUPPORT[common.astype(np.int64)]
        return chosen

    def rewards(self, rng: np.random.Generator, X: Float64, *, start: int = 0) -> Float64:
        """Draw what every arm would pay in every context: (n, K)."""
        return draw_rewards(rng, self.means(X, start=start), self.noise, self.scale)

    def constants(self) -> Constants:
        """Refuse: sigma_min changes with t. `at(t).constants()` has those of one step."""
        raise InvalidValueError("sigma_min does not exist: it falls to 0 as I grows; at(t).constants() is for one step")

    def describe(self) -> list[str]:
        """Say what the world means, and what its constants are at two steps.

        Examples
        --------
        >>> Section7Growing.draw(np.random.default_rng(0), rate="log2").describe()[1]
        'contexts: (1, 1) with probability 1/I(t), I(t) = 2 + log^2 t, otherwise (1, 0)'
        """
        early, late = (self.at(t).describe_constants() for t in (1, 1_000_000))
        return [
            f"Section 7: {self.n_arms} arms, a common context and one that becomes ever rarer",
            f"contexts: (1, 1) with probability 1/I(t), I(t) = 2 + {WORDS[self.rate]}, otherwise (1, 0)",
            f"rewards: {self.noise} noise of scale {self.scale:g} around x'theta, without unit",
            f"at t = 1: {early[0]}",
            f"at t = 10^6: {late[0]}",
            *early[1:],
        ]
