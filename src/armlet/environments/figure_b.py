"""The problem of Figure (b), Section 6: two contexts, one of them rare; the rest as in Figure (a).

The contexts are not normalised, and their span is a plane: E xx' has rank 2 of 3, so sigma_min is its
smallest eigenvalue that is not zero, close to 1/I for large I. The figure's caption says that contexts
are not i.i.d.; they are, only skewed.
Drawing n steps is O(n K), their means O(n K d).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from armlet.environments.finite import FiniteWorld
from armlet.environments.linear_arms import LinearArms, as_rows, check_between, check_steps, draw_rewards, draw_rows
from armlet.errors import InvalidValueError
from armlet.types import Float64

SUPPORT = np.array([[1.0, 1.0, 1.0], [1.0, 0.0, 1.0]])  # the rare context first


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureB(LinearArms):
    """One world of the Figure (b) problem.

    Parameters
    ----------
    theta : tuple of tuples of float, shape (K, 3)
        The parameter of each arm.
    I
        [1, 1, 1] comes with probability 1/I, otherwise [1, 0, 1]. The paper shows 5, 10 and 100.

    Examples
    --------
    >>> world = FigureB(theta=((1.0, 0.0, 0.0), (0.0, 1.0, 1.0)), I=10)
    >>> world.contexts(np.random.default_rng(3), 3)
    array([[1., 1., 1.],
           [1., 0., 1.],
           [1., 0., 1.]])
    """

    I: float = 10.0  # noqa: E741

    def __post_init__(self) -> None:
        LinearArms.__post_init__(self)
        check_between("I", self.I, 1.0, np.inf)
        if self.dim != 3:
            raise InvalidValueError(f"theta has rows of {self.dim} values but the contexts of Figure (b) have 3")

    @classmethod
    def draw(cls, rng: np.random.Generator, *, I: float = 10.0, n_arms: int = 6) -> Self:  # noqa: E741
        """Draw the parameters of a world, independent standard gaussians, as for Figure (a).

        Examples
        --------
        >>> FigureB.draw(np.random.default_rng(0), I=100).n_arms
        6
        """
        return cls(theta=as_rows(rng.standard_normal((n_arms, 3))), I=I)

    def contexts(self, rng: np.random.Generator, n: int, *, start: int = 0) -> Float64:
        """Draw n contexts: (n, 3)."""
        check_steps(n, start)
        return draw_rows(rng, n, SUPPORT, self._chances())

    def rewards(self, rng: np.random.Generator, X: Float64, *, start: int = 0) -> Float64:
        """Draw what every arm would pay in every context, uniform between 0 and twice the mean: (n, K)."""
        return draw_rewards(rng, self.means(X, start=start), "proportional", 1.0)

    def table(self) -> FiniteWorld:
        """Give the world as a table, the rare context first."""
        return self.tabulate(SUPPORT, self._chances(), "proportional", 1.0)

    def describe(self) -> list[str]:
        """Say what the world means, and what its constants are.

        Examples
        --------
        >>> FigureB.draw(np.random.default_rng(0)).describe()[1]
        'contexts: [1, 1, 1] with probability 1/10, otherwise [1, 0, 1]'
        """
        return [
            f"Figure (b), Section 6: {self.n_arms} arms",
            f"contexts: [1, 1, 1] with probability 1/{self.I:g}, otherwise [1, 0, 1]",
            "rewards: uniform between 0 and twice the mean x'theta, without unit",
            *self.describe_constants(),
        ]

    def _chances(self) -> Float64:
        return np.array([1 / self.I, 1 - 1 / self.I])
