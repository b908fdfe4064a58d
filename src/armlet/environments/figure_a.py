"""The problem of Figure (a), Section 6: normalised coin-flip contexts, gaussian arms, uniform rewards.

Two readings of the printed text. A context of zeros cannot be normalised: it stays zero, where every arm
is worth 0 and nothing can be learned, or with zero="resample" is drawn again. A reward uniform
"on [0, 2 x'theta]" is uniform between the two ends whatever their order, mu (1 + u) with u uniform on
[-1, 1], so its mean is mu = x'theta for either sign.
Drawing n steps is O(n (d + K)), their means O(n K d).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self, TypeAlias

import numpy as np

from armlet.environments.finite import FiniteWorld
from armlet.environments.linear_arms import (
    MAX_BITS,
    LinearArms,
    as_rows,
    bit_law,
    check_steps,
    draw_rewards,
    scale_bits,
)
from armlet.errors import InvalidValueError
from armlet.types import Float64

Zero: TypeAlias = Literal["keep", "resample"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureA(LinearArms):
    """One world of the Figure (a) problem: theta is fixed, contexts and rewards are drawn.

    Contexts and rewards take their generators separately, so that whatever a policy does, and however
    many rewards are drawn, the contexts stay the same.

    Parameters
    ----------
    theta : tuple of tuples of float, shape (K, d)
        The parameter of each arm. `FigureA.draw` draws it as the paper does.
    zero
        What becomes of a context of zeros, one in 2^d: "keep" it, or "resample" until it is not zero.

    Examples
    --------
    >>> world = FigureA(theta=((1.0, 0.0, 0.0), (0.0, 1.0, -1.0)))
    >>> world.n_arms, world.dim
    (2, 3)
    >>> world.means(np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]))
    array([[ 1.,  0.],
           [ 0., -1.]])
    """

    zero: Zero = "keep"

    def __post_init__(self) -> None:
        LinearArms.__post_init__(self)
        if self.zero not in ("keep", "resample"):
            raise InvalidValueError(f"zero is {self.zero!r}; choose 'keep' or 'resample'")

    @classmethod
    def draw(cls, rng: np.random.Generator, *, n_arms: int = 6, dim: int = 3, zero: Zero = "keep") -> Self:
        """Draw the parameters of a world, independent standard gaussians.

        Examples
        --------
        >>> world = FigureA.draw(np.random.default_rng(0))
        >>> world.n_arms, world.dim
        (6, 3)
        """
        return cls(theta=as_rows(rng.standard_normal((n_arms, dim))), zero=zero)

    def support(self) -> Float64:
        """Every context the world can show, each as likely as any other: (2^d, d), or one less without zero.

        Examples
        --------
        >>> FigureA(theta=((1.0, 2.0),)).support().round(3)
        array([[0.   , 0.   ],
               [0.   , 1.   ],
               [1.   , 0.   ],
               [0.707, 0.707]])
        """
        rows, _ = bit_law((0.5,) * self.dim)
        return scale_bits(rows if self.zero == "keep" else rows[1:])

    def contexts(self, rng: np.random.Generator, n: int, *, start: int = 0) -> Float64:
        """Draw n contexts, fair coin flips scaled to length 1: (n, d).

        Examples
        --------
        >>> world = FigureA.draw(np.random.default_rng(0))
        >>> world.contexts(np.random.default_rng(1), 2).round(3)
        array([[0.   , 0.707, 0.707],
               [1.   , 0.   , 0.   ]])
        """
        check_steps(n, start)
        if self.zero == "keep":
            return scale_bits(rng.integers(0, 2, size=(n, self.dim)).astype(np.float64))
        return scale_bits(_flips_but_not_all_zero(rng, n, self.dim))

    def rewards(self, rng: np.random.Generator, X: Float64, *, start: int = 0) -> Float64:
        """Draw what every arm would pay in every context, uniform between 0 and twice the mean: (n, K).

        Examples
        --------
        >>> world = FigureA(theta=((1.0,), (-1.0,)))
        >>> world.rewards(np.random.default_rng(0), np.array([[1.0]])).round(3)
        array([[ 1.274, -0.54 ]])
        """
        return draw_rewards(rng, self.means(X, start=start), "proportional", 1.0)

    def table(self) -> FiniteWorld | None:
        """Give the world as a table of its support, up to 16 dimensions."""
        if self.dim > MAX_BITS:
            return None
        X = self.support()
        return self.tabulate(X, np.full(len(X), 1 / len(X)), "proportional", 1.0)

    def describe(self) -> list[str]:
        """Say what the world means, and what its constants are.

        Examples
        --------
        >>> for line in FigureA.draw(np.random.default_rng(0)).describe()[:3]:
        ...     print(line)
        Figure (a), Section 6: 6 arms
        contexts: 3 fair coin flips scaled to length 1; zero contexts: keep
        rewards: uniform between 0 and twice the mean x'theta, without unit
        """
        return [
            f"Figure (a), Section 6: {self.n_arms} arms",
            f"contexts: {self.dim} fair coin flips scaled to length 1; zero contexts: {self.zero}",
            "rewards: uniform between 0 and twice the mean x'theta, without unit",
            *self.describe_constants(),
        ]


def _flips_but_not_all_zero(rng: np.random.Generator, n: int, dim: int) -> Float64:
    # Flip by flip, from the law given that not all are zero: while the row is blank, the next of m flips
    # left is 1 with probability (1/2) / (1 - 2^-m). Every row takes d draws, so blocks of any size agree.
    u = rng.random((n, dim))
    bits = u < 0.5
    blank = np.ones(n, dtype=np.bool_)
    for j in range(dim):
        bits[blank, j] = u[blank, j] < 0.5 / (1 - 0.5 ** (dim - j))
        blank &= ~bits[:, j]
    return bits.astype(np.float64)
