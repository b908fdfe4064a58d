"""The problem of Figure (a), Section 6: normalised coin-flip contexts, gaussian arms, uniform rewards.

Two readings of the printed text. A context of zeros cannot be normalised and stays zero: every arm is
then worth 0 and nothing can be learned. A reward uniform "on [0, 2 x'theta]" is uniform between the
two ends whatever their order, mu (1 + u) with u uniform on [-1, 1], so its mean is mu = x'theta for
either sign.
Drawing n steps is O(n (d + K)), their means O(n K d).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Self

import numpy as np

from armlet.core.types import Float64


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureA:
    """One world of the Figure (a) problem: theta is fixed, contexts and rewards are drawn.

    Contexts and rewards take their generators separately, so that whatever a policy does, and however
    many rewards are drawn, the contexts stay the same.

    Parameters
    ----------
    theta : tuple of tuples of float, shape (K, d)
        The parameter of each arm. `FigureA.draw` draws it as the paper does.

    Examples
    --------
    >>> world = FigureA(theta=((1.0, 0.0, 0.0), (0.0, 1.0, -1.0)))
    >>> world.n_arms, world.dim
    (2, 3)
    >>> world.means(np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]))
    array([[ 1.,  0.],
           [ 0., -1.]])
    """

    theta: tuple[tuple[float, ...], ...]  # (K, d)

    def __post_init__(self) -> None:
        dims = {len(row) for row in self.theta}
        if len(dims) != 1 or 0 in dims:
            raise ValueError(f"theta needs rows of one length, at least 1; got lengths {sorted(dims)}")
        if not np.isfinite(self.theta).all():
            raise ValueError(f"theta has a value that is not finite; got {self.theta}")

    @classmethod
    def draw(cls, rng: np.random.Generator, *, n_arms: int = 6, dim: int = 3) -> Self:
        """Draw the parameters of a world, independent standard gaussians.

        Examples
        --------
        >>> world = FigureA.draw(np.random.default_rng(0))
        >>> world.n_arms, world.dim
        (6, 3)
        """
        rows = rng.standard_normal((n_arms, dim)).tolist()
        return cls(theta=tuple(tuple(row) for row in rows))

    @property
    def n_arms(self) -> int:
        """K, the number of arms."""
        return len(self.theta)

    @property
    def dim(self) -> int:
        """d, the number of values in a context."""
        return len(self.theta[0])

    def support(self) -> Float64:
        """Every context the world can show, each as likely as any other: (2^d, d).

        Examples
        --------
        >>> FigureA(theta=((1.0, 2.0),)).support().round(3)
        array([[0.   , 0.   ],
               [0.   , 1.   ],
               [1.   , 0.   ],
               [0.707, 0.707]])
        """
        return _normalise(np.array(list(itertools.product((0.0, 1.0), repeat=self.dim))))

    def contexts(self, rng: np.random.Generator, n: int) -> Float64:
        """Draw n contexts: fair coin flips scaled to length 1, the zero vector left as it is: (n, d).

        Examples
        --------
        >>> world = FigureA.draw(np.random.default_rng(0))
        >>> world.contexts(np.random.default_rng(1), 2).round(3)
        array([[0.   , 0.707, 0.707],
               [1.   , 0.   , 0.   ]])
        """
        return _normalise(rng.integers(0, 2, size=(n, self.dim)).astype(np.float64))

    def means(self, X: Float64) -> Float64:
        """Give the expected reward of every arm in every context: (n, K)."""
        mu: Float64 = X @ np.array(self.theta).T
        return mu

    def rewards(self, rng: np.random.Generator, X: Float64) -> Float64:
        """Draw what every arm would pay in every context, uniform between 0 and twice the mean: (n, K).

        Examples
        --------
        >>> world = FigureA(theta=((1.0,), (-1.0,)))
        >>> world.rewards(np.random.default_rng(0), np.array([[1.0]])).round(3)
        array([[ 1.274, -0.54 ]])
        """
        mu = self.means(X)
        noise: Float64 = rng.uniform(-1.0, 1.0, size=mu.shape)
        return mu * (1.0 + noise)


def _normalise(bits: Float64) -> Float64:
    # a row of zeros and ones is zero or at least 1 long, so the floor of 1 spares the zero row only
    lengths: Float64 = np.linalg.norm(bits, axis=1, keepdims=True)
    return bits / np.maximum(lengths, 1.0)
