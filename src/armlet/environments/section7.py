"""The example of Section 7: contexts (1, 1), rare, and (1, 0), common.

The paper gives the contexts only: parameters are drawn as in Section 6, and rewards are those of Section 6
unless told otherwise. E xx' = [[1, 1/I], [1/I, 1/I]], whose smallest eigenvalue is about 1/I.
(1, 1) has length sqrt 2, beyond the length 1 that the theorem assumes.
Drawing n steps is O(n K).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from armlet.environments.finite import FiniteWorld, Noise
from armlet.environments.linear_arms import LinearArms, as_rows, check_between, check_steps, draw_rewards, draw_rows
from armlet.errors import InvalidValueError
from armlet.types import Float64

SUPPORT = np.array([[1.0, 1.0], [1.0, 0.0]])  # the rare context first


@dataclass(frozen=True, slots=True, kw_only=True)
class Section7(LinearArms):
    """One world of Section 7 with a fixed I.

    Parameters
    ----------
    theta : tuple of tuples of float, shape (K, 2)
        The parameter of each arm.
    I
        (1, 1) comes with probability 1/I, otherwise (1, 0).
    noise, scale
        How rewards spread, as in `armlet.environments.finite.Noise`; by default uniform between 0 and twice the mean.

    Examples
    --------
    >>> world = Section7(theta=((1.0, 0.0), (0.0, 2.0)), I=20)
    >>> world.table().chances
    array([0.05, 0.95])
    """

    I: float = 10.0  # noqa: E741
    noise: Noise = "proportional"
    scale: float = 1.0

    def __post_init__(self) -> None:
        LinearArms.__post_init__(self)
        check_between("I", self.I, 1.0, np.inf)
        check_between("scale", self.scale, 0.0, np.inf)
        if self.dim != 2:
            raise InvalidValueError(f"theta has rows of {self.dim} values but the contexts of Section 7 have 2")
        self.table()  # refuses noise that is not known or does not suit theta

    @classmethod
    def draw(
        cls,
        rng: np.random.Generator,
        *,
        I: float = 10.0,  # noqa: E741
        n_arms: int = 6,
        noise: Noise = "proportional",
        scale: float = 1.0,
    ) -> Self:
        """Draw the parameters of a world, independent standard gaussians, as for Figure (a)."""
        return cls(theta=as_rows(rng.standard_normal((n_arms, 2))), I=I, noise=noise, scale=scale)

    def contexts(self, rng: np.random.Generator, n: int, *, start: int = 0) -> Float64:
        """Draw n contexts: (n, 2)."""
        check_steps(n, start)
        return draw_rows(rng, n, SUPPORT, self._chances())

    def rewards(self, rng: np.random.Generator, X: Float64, *, start: int = 0) -> Float64:
        """Draw what every arm would pay in every context: (n, K)."""
        return draw_rewards(rng, self.means(X, start=start), self.noise, self.scale)

    def table(self) -> FiniteWorld:
        """Give the world as a table, the rare context first."""
        return self.tabulate(SUPPORT, self._chances(), self.noise, self.scale)

    def describe(self) -> list[str]:
        """Say what the world means, and what its constants are.

        Examples
        --------
        >>> Section7.draw(np.random.default_rng(0)).describe()[1]
        'contexts: (1, 1) with probability 1/10, otherwise (1, 0)'
        """
        return [
            f"Section 7: {self.n_arms} arms, a rare context and a common one",
            f"contexts: (1, 1) with probability 1/{self.I:g}, otherwise (1, 0)",
            f"rewards: {self.noise} noise of scale {self.scale:g} around x'theta, without unit",
            *self.describe_constants(),
        ]

    def _chances(self) -> Float64:
        return np.array([1 / self.I, 1 - 1 / self.I])
