"""A world that tells whether the arm was best: privileged feedback for policies that learn from one bit.

Banditron and Newtron are made for one right label in every context; no 0/1 reward of Section 3 is that. Here they get
what they ask for, so that they can be told apart, but not from policies that learn from rewards.
Drawing n steps costs what the inner world's means cost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armlet.environments.around import AroundAnother
from armlet.environments.finite import FiniteWorld
from armlet.types import Float64


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleBit(AroundAnother):
    """Another world's contexts and means, but rewards that say 1 for the best arm and 0 for the others.

    The bit is free of noise and follows from the true means, which no experiment could know. It is not in the registry,
    for its rewards are not its means: regret is measured in the inner world's units, as for any policy, while the
    policy sees the bit. So it breaks that one promise of `check_environment`, and is no table.

    Parameters
    ----------
    world
        The inner world. Where several arms are best, each of them pays 1.

    Examples
    --------
    >>> from armlet.environments import FigureA
    >>> world = OracleBit(world=FigureA(theta=((1.0, 0.0), (0.0, 2.0))))
    >>> X = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 0.0]])
    >>> world.rewards(np.random.default_rng(0), X)
    array([[1., 0.],
           [0., 1.],
           [1., 1.]])
    """

    def rewards(self, rng: np.random.Generator, X: Float64, *, start: int = 0) -> Float64:  # noqa: ARG002
        """Give 1 for every arm that is best in a context, 0 for the others: (n, K)."""
        mu = self.means(X, start=start)
        best: Float64 = (mu == mu.max(axis=1, keepdims=True)).astype(np.float64)
        return best

    def table(self) -> FiniteWorld | None:
        """Give nothing: a table's rewards have its means."""
        return None

    def describe(self) -> list[str]:
        """Say that the feedback is privileged, then what the inner world is."""
        return ["feedback: one bit, whether the arm is best; privileged and without noise", *self.world.describe()]
